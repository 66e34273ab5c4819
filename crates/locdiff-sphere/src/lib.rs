//! Spherical harmonics on the Earth: places to coefficients and back, exactly and fast.
//!
//! ```
//! use locdiff_sphere::{Coefficients, Decoder, LatLon};
//!
//! let coefficients = Coefficients::of(LatLon::new(48.8566, 2.3522)?, 47);
//! let place = Decoder::new(47).mode(&coefficients).place;
//! assert_eq!(format!("{place:.4}"), "48.8566,2.3522");
//! # Ok::<(), locdiff_sphere::InvalidPlace>(())
//! ```
//!
//! Conventions, once for the whole project: latitude before longitude, degrees; a sphere of
//! radius [`EARTH_RADIUS_KM`]; real orthonormal harmonics without Condon-Shortley phase,
//! (l, m) at index l² + l + m, sine for m < 0; `max_degree` inclusive.

mod anchors;
mod area;
mod basis;
mod budget;
mod cells;
mod coefficients;
mod contour;
mod cost;
mod cube_cells;
mod decoder;
mod density;
mod derivatives;
mod direction;
mod grid;
mod legendre;
mod legendre_stage;
mod mesh;
mod paper_decoders;
mod place;
mod place_index;
mod polygons;
mod pull_back;
mod quadrature;
pub mod reference;
mod scalar;
mod scores;
mod shown;
mod simd;
mod survey;
mod transform;
mod triangle;
mod vector;
mod wave_field;

pub use anchors::{Anchors, uniform_place};
pub use area::{Area, BoundingBox, Circle, InvalidArea};
pub use basis::{Basis, coefficient_count};
pub use budget::{Budget, OverBudget, Stop};
pub use coefficients::{Coefficients, InvalidCoefficients};
pub use cost::Cost;
pub use cube_cells::{CubeCell, CubeCover, DEEPEST_CUBE_LEVEL, InvalidCell};
pub use decoder::{Decoder, Peak};
pub use density::{
    Cells, Density, Exponential, Integrator, InvalidDensity, Kernel, Linear, LogIntegral, Mixture,
    PointMasses, Product, Restriction, SpreadPoints,
};
#[cfg(feature = "serde")]
pub use density::{DensityRecord, InvalidRecord, MixturePart, ProductFactor, RecordLimits};
pub use derivatives::Jet;
pub use grid::Grid;
pub use legendre::LARGEST_DEGREE;
pub use paper_decoders::AnchorDecoder;
pub use place::{EARTH_RADIUS_KM, InvalidPlace, LatLon, mean_place};
pub use place_index::PlaceIndex;
pub use polygons::MultiPolygon;
pub use pull_back::{PullBack, PulledBack};
pub use scalar::Scalar;
pub use scores::{
    ACCURACY_RADII_KM, COVERAGE_LEVELS, Comparison, DensityOutcome, DensityScores, DistanceRule,
    GEOSCORE_MAXIMUM, GEOSCORE_SCALE_KM, GeoscoreRule, Interval, InvalidScores,
    MANIFOLD_NEIGHBOURS, ManifoldScores, PointScores, RECALL_AREAS_KM2, RadiusRule, Resampling,
    Score, Statistic, UNIFORM_NLL_NATS, geoscore,
};
pub use shown::{is_odd_character, shown, shown_message};
pub use survey::{Decision, Mode, Modes, Region, Survey};
pub use transform::Transform;
pub use vector::UnitVector;

/// Documentation tests run the example of this page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;
