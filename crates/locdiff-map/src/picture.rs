//! What every drawing ends in: a scene that can be written in either format.

use crate::layout::Frame;
use crate::scene::Scene;
use crate::theme::Theme;
use crate::{raster, svg};
use locdiff_sphere::LatLon;

/// A drawn map, chart or sheet of them, ready to be written in either format. The same description
/// gives the same bytes.
#[derive(Debug, Clone)]
pub struct Picture {
    pub(crate) scene: Scene,
    pub(crate) theme: Theme,
    /// Where the Earth is in it, if the picture is one map.
    pub(crate) frame: Option<Frame>,
}

impl Picture {
    /// The picture as a PNG file: opaque, 8 bits per channel.
    pub fn png(&self) -> Vec<u8> {
        raster::png(&self.scene)
    }

    /// The picture as an SVG document: paths and text, and every density as an embedded PNG.
    pub fn svg(&self) -> String {
        svg::write(&self.scene)
    }

    /// Width in pixels.
    pub fn width_px(&self) -> u32 {
        self.scene.size[0]
    }

    /// Height in pixels.
    pub fn height_px(&self) -> u32 {
        self.scene.size[1]
    }

    /// Where a place is in the picture: pixels from the left and from the top; `None` if it is on the
    /// far side of a globe or outside a close-up, or the picture isn't one of a [`Map`](crate::Map).
    pub fn position_px(&self, place: LatLon) -> Option<[f64; 2]> {
        self.frame.as_ref()?.pixel_of(place)
    }
}
