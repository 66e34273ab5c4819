//! A mosaic of the Earth: maps cut from it, pictures registered against it, and views rendered from it with known places.
//!
//! The flow: [`Source`] files become [`Imagery`] (colours of the land at every resolution, with the
//! share of land from a [`LandMask`]); a [`Renderer`] draws a [`Camera`] by its [`Framing`], light,
//! weather and sensor by its [`Style`], and makes a [`View`]. A [`Registrar`] finds where exactly a picture lies.
//! The sea that maps paint is thrown away when imagery is opened: what a view shows of it comes from
//! [`Style`] alone.
//!
//! Conventions: degrees, latitude before longitude; a spherical Earth; pixels as red, green, blue
//! bytes, rows from the top. The same seed gives the same bytes on the same machine, whatever the
//! number of threads. SQLite is needed to read MBTiles alone, and only with the feature `tiles`.
//! Programs that come without files of imagery carry it packed: [`Imagery::unpack`].

mod camera;
mod canvas;
mod equirectangular;
mod error;
mod framing;
mod imagery;
mod land_code;
mod land_mask;
#[cfg(feature = "tiles")]
mod mercator;
mod night;
mod noise;
mod packed;
mod patch;
mod places;
mod pyramid;
mod random;
mod range_coder;
mod reduction;
mod registration;
mod renderer;
mod scene;
mod sensor;
mod shading;
mod style;
mod texels;
mod vectorized;

pub use camera::{Camera, Pose, horizon_tilt_degrees};
pub use error::Error;
pub use framing::{Framing, Shows};
pub use imagery::{Imagery, Light, Source};
pub use land_mask::LandMask;
pub use random::Random;
pub use registration::{Coarse, Guess, Registrar, Registration, Stretch};
pub use renderer::{Label, Renderer, View};
pub use style::Style;

/// Mean radius of the Earth (IUGG), as in `locdiff-sphere`.
pub const EARTH_RADIUS_KM: f64 = 6371.0088;
