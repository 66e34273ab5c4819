//! Pictures of a probability density on the Earth: world maps, globes and close-ups, as PNG and SVG.
//!
//! ```
//! use locdiff_map::{Map, Projection};
//! use locdiff_sphere::LatLon;
//!
//! let tromso = LatLon::new(69.65, 18.96)?;
//! let log_density = |place: LatLon| -(place.distance_km(tromso) / 500.0).powi(2) / 2.0 + 3.23;
//! let picture = Map::new(Projection::EqualEarth).field(log_density).width_px(300).draw();
//! assert!(picture.png().starts_with(b"\x89PNG"));
//! assert!(picture.svg().starts_with("<svg"));
//! # Ok::<(), locdiff_sphere::InvalidPlace>(())
//! ```
//!
//! [`Map`] describes what to draw, [`Picture`] is the result. [`Chart`] draws one quantity over another in the
//! same style, [`Panels`] puts several pictures on one sheet. Nothing here reads or writes files, asks for
//! the machine's fonts or uses the network: coastlines, font and colours are part of the crate. The same
//! map gives the same bytes on the same machine; between platforms only the last bit of a sine may
//! differ, which a pixel seldom shows.
//!
//! Conventions: latitude before longitude, degrees; log-densities in nats per steradian; pixels with
//! (0, 0) at the top left. The crate is one of its own because nobody who computes should have to
//! carry a rasteriser.

mod chart;
mod clip;
mod closeup;
mod coastlines;
mod colour_table;
mod countries;
mod field;
mod graticule;
mod inset;
mod layout;
mod map;
mod marks;
mod names;
mod panels;
mod picture;
mod projection;
mod raster;
mod scale;
mod scale_bar;
mod scene;
mod svg;
mod text;
mod theme;

pub use chart::{Chart, Series};
pub use graticule::Graticule;
pub use map::Map;
pub use marks::{LineStyle, Marker, Outline, Symbol};
pub use names::Name;
pub use panels::{LabelSide, Panels};
pub use picture::Picture;
pub use projection::Projection;
pub use scale::{ColourBar, Scale};
pub use theme::Theme;
