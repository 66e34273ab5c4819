//! Small maps around a place, cut from imagery: what registration compares a picture with.

use crate::EARTH_RADIUS_KM;
use crate::camera::local_axes;
use crate::canvas::arc_tangent;
use crate::imagery::{Imagery, Light};
use crate::pyramid::LANES;
use crate::vectorized::vectorized;

impl Imagery {
    /// A map of `size` × `size` pixels around a place (latitude, longitude in degrees), north up,
    /// `width_km` wide, as red, green, blue bytes from the top. By day, sea gets the given color;
    /// a pixel that is part land is mixed from both.
    ///
    /// The projection is azimuthal equidistant: distances and directions from the middle are true.
    /// Points beyond the antipode show the antipode.
    pub fn patch(&self, middle: (f64, f64), width_km: f64, size: usize, sea: [u8; 3]) -> Vec<u8> {
        let mut pixels = vec![0; 3 * size * size];
        vectorized(
            #[inline(always)]
            || self.fill_patch(middle, width_km, size, sea, &mut pixels),
        );
        pixels
    }

    #[inline(always)]
    fn fill_patch(
        &self,
        middle: (f64, f64),
        width_km: f64,
        size: usize,
        sea: [u8; 3],
        pixels: &mut [u8],
    ) {
        let [up, east, north] =
            local_axes(middle.0, middle.1).map(|axis| axis.map(|value| value as f32));
        let step = width_km / EARTH_RADIUS_KM / size as f64;
        let level = (step * EARTH_RADIUS_KM / self.texel_km()).log2() as f32;
        let half = 0.5 * (size as f64 - 1.0);
        let along = |at: usize| ((at as f64 - half) * step) as f32;
        // Night imagery is not multiplied by the share of land: nothing is missing at sea.
        let by_day = if self.light() == Light::Day { 1.0 / 255.0 } else { 0.0 };
        let sea = sea.map(|value| f32::from(value) * by_day);
        let sampler = self.pyramid.sampler();
        for row in 0..size {
            let y = -along(row);
            let line = &mut pixels[3 * row * size..][..3 * size];
            for start in (0..size).step_by(LANES) {
                let (mut down, mut round) = ([0.0; LANES], [0.0; LANES]);
                for lane in 0..LANES {
                    // Lanes beyond the end of the row read somewhere and are not written.
                    let x = ((start + lane) as f32 - half as f32) * step as f32;
                    let (cos, sin_part) = arc_of_square(x * x + y * y);
                    let point: [f32; 3] = std::array::from_fn(|i| {
                        up[i] * cos + (east[i] * x + north[i] * y) * sin_part
                    });
                    let from_axis = (point[0] * point[0] + point[1] * point[1]).sqrt();
                    down[lane] =
                        0.5 - arc_tangent(point[2], from_axis) * std::f32::consts::FRAC_1_PI;
                    round[lane] =
                        0.5 + arc_tangent(point[1], point[0]) * (0.5 * std::f32::consts::FRAC_1_PI);
                }
                let [red, green, blue, land] = sampler.at(&down, &round, level);
                let out = line[3 * start..].chunks_exact_mut(3);
                for (lane, pixel) in out.take(LANES).enumerate() {
                    let missing = 255.0 - land[lane];
                    pixel[0] = (red[lane] + missing * sea[0] + 0.5) as u8;
                    pixel[1] = (green[lane] + missing * sea[1] + 0.5) as u8;
                    pixel[2] = (blue[lane] + missing * sea[2] + 0.5) as u8;
                }
            }
        }
    }
}

/// Cosine of an arc (radians), and its sine divided by it, from the square of the arc, by series
/// that end below the precision of the numbers. Arcs beyond a half turn count as a half turn.
#[inline(always)]
fn arc_of_square(square: f32) -> (f32, f32) {
    const TERMS: usize = 10;
    let square = square.min(std::f32::consts::PI * std::f32::consts::PI);
    let (mut cos, mut sin_part) = (1.0, 1.0);
    // Horner's scheme with factors: 1 − s/(1·2) (1 − s/(3·4) (1 − …)).
    for term in (1..=TERMS).rev() {
        let twice = 2.0 * term as f32;
        cos = 1.0 - square * cos * (1.0 / ((twice - 1.0) * twice));
        sin_part = 1.0 - square * sin_part * (1.0 / (twice * (twice + 1.0)));
    }
    (cos, sin_part)
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};

    use super::*;
    use crate::camera::destination;
    use crate::land_mask::LandMask;

    #[test]
    fn series_agree_with_the_library() {
        for step in 1..=1000 {
            let arc = f64::from(step) / 1000.0 * std::f64::consts::PI;
            let (cos, sin_part) = arc_of_square((arc * arc) as f32);
            assert!((f64::from(cos) - arc.cos()).abs() < 1e-6, "cosine of {arc}");
            assert!((f64::from(sin_part) - arc.sin() / arc).abs() < 1e-6, "sine of {arc}");
        }
    }

    #[test]
    fn pixels_show_the_color_of_their_place() {
        const SEA: [u8; 3] = [20, 60, 120];
        let waves = |lat: f64, lon: f64| (9.0 * lat).sin() + (7.0 * lon).sin() * lat.cos();
        let picture = RgbImage::from_fn(2048, 1024, |x, y| {
            let lat = (0.5 - (f64::from(y) + 0.5) / 1024.0) * std::f64::consts::PI;
            let lon = ((f64::from(x) + 0.5) / 1024.0 - 1.0) * std::f64::consts::PI;
            Rgb([0.0, 0.4, 0.8].map(|shift| (127.0 + 60.0 * waves(lat + shift, lon)) as u8))
        });
        let mask = LandMask::from_fn(720, 1440, |lat, lon| {
            waves(lat.to_radians() + 1.0, lon.to_radians()) > -0.3
        });
        let imagery = Imagery::from_picture(&picture, Light::Day, &mask);
        let places = [(12.0, 40.0), (89.9, 10.0), (-90.0, 0.0), (35.0, 179.9), (-60.0, -180.0)];
        for (latitude, longitude) in places {
            for (size, width_km) in [(33, 900.0), (64, 5000.0)] {
                let patch = imagery.patch((latitude, longitude), width_km, size, SEA);
                for at in 0..size * size {
                    let km = |step: usize| {
                        ((step as f64 + 0.5) / size as f64 - 0.5) * width_km / EARTH_RADIUS_KM
                    };
                    let (east, north) = (km(at % size), -km(at / size));
                    let arc = east.hypot(north);
                    let (lat, lon) = destination(latitude, longitude, east.atan2(north), arc);
                    let (color, land) = imagery.colour(lat, lon, width_km / size as f64);
                    for channel in 0..3 {
                        let sea = f32::from(SEA[channel]);
                        let wanted = sea + (color[channel] * 255.0 - sea) * land;
                        let off = f32::from(patch[3 * at + channel]) - wanted;
                        assert!(off.abs() < 2.5, "off by {off} at {lat}, {lon}");
                    }
                }
            }
        }
    }
}
