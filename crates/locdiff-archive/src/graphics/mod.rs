//! Which pictures are screenshots, documents or drawings: a rule from a thumbnail, not a network.
//!
//! A lens and a sensor leave hardly two neighboring pixels exactly equal, while graphics are made of areas of one color. The
//! rule: a picture without camera tags is a graphic if, among its pixels that are not black,
//! * at least [`EQUAL_NEIGHBORS`] of the pairs of neighbors are exactly equal, or
//! * at least [`ONE_COLOR`] of the pixels have one and the same color, and [`EQUAL_WITH_ONE_COLOR`] of the pairs are equal.
//!
//! Pictures with camera tags are always photos: screenshots have none. Black is left out because night skies and
//! space are clipped to it; a picture that is almost all black is a photo.
//!
//! Error rates, measured on 400 **generated** photos and 400 generated graphics (`graphics/tests.rs`, thumbnails of 96 × 96):
//! less than 1 % of photos are taken for graphics, less than 2 % of graphics for photos. Not covered:
//! screenshots of photos in full screen, and scanned or photographed documents, which have a sensor's noise; both count as
//! photos. Drawings on paper do as well.

use std::collections::HashMap;

use crate::library::Kind;

/// From this share of exactly equal neighbors on, a picture is a graphic.
pub const EQUAL_NEIGHBORS: f64 = 0.5;
/// From this share of one color on, fewer equal neighbors are enough.
pub const ONE_COLOR: f64 = 0.25;
/// Share of equal neighbors above which a picture with one dominant color is a graphic.
pub const EQUAL_WITH_ONE_COLOR: f64 = 0.3;
/// Channels up to this are black.
const BLACK: u8 = 10;
/// With a smaller share of pixels that are not black there is nothing to judge.
const LEAST_LIT: f64 = 0.02;

/// A small picture: rows of red, green and blue bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thumbnail {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

/// What the rule for graphics looks at, measured on a thumbnail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// Of the pairs of neighbors that are not both black, the share that is exactly equal.
    pub equal_neighbors: f64,
    /// Of the pixels that are not black, the share of the most frequent color.
    pub one_color: f64,
    /// The share of pixels that are not black.
    pub lit: f64,
}

impl Thumbnail {
    /// Rows of red, green and blue bytes; none if their number does not fit the size. About 100 pixels on the
    /// longer side are enough; larger ones only take longer.
    pub fn new(width: usize, height: usize, rgb: &[u8]) -> Option<Thumbnail> {
        let count = width.checked_mul(height)?.checked_mul(3)?;
        (count > 0 && rgb.len() == count).then(|| Thumbnail {
            width,
            pixels: rgb.chunks_exact(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect(),
        })
    }

    /// Measures the thumbnail.
    pub fn statistics(&self) -> Statistics {
        let black = |pixel: &[u8; 3]| pixel.iter().all(|channel| *channel <= BLACK);
        let mut colors: HashMap<[u8; 3], usize> = HashMap::new();
        let (mut pairs, mut equal, mut lit) = (0_usize, 0_usize, 0_usize);
        for (at, pixel) in self.pixels.iter().enumerate() {
            if !black(pixel) {
                lit += 1;
                *colors.entry(*pixel).or_default() += 1;
            }
            let right = (at % self.width + 1 < self.width).then(|| self.pixels[at + 1]);
            let below = self.pixels.get(at + self.width).copied();
            for neighbor in [right, below].into_iter().flatten() {
                if !(black(pixel) && black(&neighbor)) {
                    pairs += 1;
                    equal += usize::from(*pixel == neighbor);
                }
            }
        }
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        Statistics {
            equal_neighbors: share(equal, pairs),
            one_color: share(colors.into_values().max().unwrap_or(0), lit),
            lit: share(lit, self.pixels.len()),
        }
    }
}

/// Whether a picture is a photo or a graphic.
///
/// ```
/// use locdiff_archive::graphics::{Thumbnail, kind_of};
/// use locdiff_archive::library::Kind;
///
/// let white_page = Thumbnail::new(10, 10, &[255; 300]).expect("300 bytes");
/// assert_eq!(kind_of(&white_page, false), Kind::Graphic);
/// assert_eq!(kind_of(&white_page, true), Kind::Photo);
/// ```
pub fn kind_of(thumbnail: &Thumbnail, has_camera_tags: bool) -> Kind {
    let Statistics { equal_neighbors, one_color, lit } = thumbnail.statistics();
    if has_camera_tags || lit < LEAST_LIT {
        return Kind::Photo;
    }
    let flat = equal_neighbors >= EQUAL_NEIGHBORS
        || one_color >= ONE_COLOR && equal_neighbors >= EQUAL_WITH_ONE_COLOR;
    if flat { Kind::Graphic } else { Kind::Photo }
}

#[cfg(test)]
mod tests;
