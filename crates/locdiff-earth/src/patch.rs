//! Maps of small parts of the Earth, north up.

use crate::EARTH_RADIUS_KM;
use crate::camera::local_axes;
use crate::canvas::arc_tangent;
use crate::imagery::Imagery;
use crate::pyramid::LANES;

impl Imagery {
    /// A square map around a place (latitude, longitude in degrees), with true distances and bearings from its middle
    /// (azimuthal equidistant), north up: red, green and blue bytes, row by row. The sea has one color.
    ///
    /// # Panics
    /// If it would be wider than 8,000 km.
    pub fn patch(
        &self,
        (latitude, longitude): (f64, f64),
        width_km: f64,
        size: usize,
        sea: [u8; 3],
    ) -> Vec<u8> {
        assert!(width_km <= 8000.0, "a map {width_km} km wide");
        let axes = local_axes(latitude, longitude).map(|axis| axis.map(|value| value as f32));
        let pixel = width_km / size as f64;
        let level = (pixel / self.texel_km()).log2() as f32;
        let pixel = (pixel / EARTH_RADIUS_KM) as f32;
        let mut bytes = vec![0; 3 * size * size];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || self.draw(axes, pixel, level, size, sea.map(f32::from), &mut bytes),
        );
        bytes
    }

    #[inline(always)]
    fn draw(
        &self,
        [up, east, north]: [[f32; 3]; 3],
        pixel: f32,
        level: f32,
        size: usize,
        sea: [f32; 3],
        bytes: &mut [u8],
    ) {
        let sampler = self.pyramid.sampler();
        let middle = size as f32 / 2.0 - 0.5;
        for (row, line) in bytes.chunks_exact_mut(3 * size).enumerate() {
            let y = (middle - row as f32) * pixel;
            for (chunk, out) in line.chunks_mut(3 * LANES).enumerate() {
                let (mut down, mut round) = ([0.0; LANES], [0.0; LANES]);
                for lane in 0..LANES {
                    let x = ((chunk * LANES + lane) as f32 - middle) * pixel;
                    // The cosine and sin(c)/c of the arc c, to 1e-6 up to the corners of the widest map.
                    let c = x * x + y * y;
                    let cosine = 1.0
                        - c * (1.0 / 2.0
                            - c * (1.0 / 24.0 - c * (1.0 / 720.0 - c * (1.0 / 40_320.0))));
                    let sine = 1.0
                        - c * (1.0 / 6.0
                            - c * (1.0 / 120.0 - c * (1.0 / 5040.0 - c * (1.0 / 362_880.0))));
                    let point: [f32; 3] = std::array::from_fn(|i| {
                        up[i] * cosine + (east[i] * x + north[i] * y) * sine
                    });
                    let from_axis = (point[0] * point[0] + point[1] * point[1]).sqrt();
                    down[lane] =
                        0.5 - arc_tangent(point[2], from_axis) * std::f32::consts::FRAC_1_PI;
                    round[lane] =
                        0.5 + arc_tangent(point[1], point[0]) * (0.5 * std::f32::consts::FRAC_1_PI);
                }
                let [red, green, blue, land] = sampler.at(&down, &round, level);
                for (lane, out) in out.chunks_exact_mut(3).enumerate() {
                    let water = 1.0 - land[lane] / 255.0;
                    out[0] = (red[lane] + sea[0] * water + 0.5) as u8;
                    out[1] = (green[lane] + sea[1] * water + 0.5) as u8;
                    out[2] = (blue[lane] + sea[2] * water + 0.5) as u8;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use image::RgbImage;

    use crate::camera::destination;
    use crate::{EARTH_RADIUS_KM, Imagery, LandMask, Light};

    /// Each pixel is the color of its place: near a pole, across the antimeridian, and far from the middle.
    #[test]
    fn pixels_are_the_colors_of_their_places() {
        let waves = |x: u32, y: u32| {
            let (x, y) = (x as f32 * 0.0245, y as f32 * 0.021);
            image::Rgb([x.sin(), (x + y).cos(), (2.0 * y).sin()].map(|s| (120.0 + 100.0 * s) as u8))
        };
        let picture = RgbImage::from_fn(1024, 512, waves);
        let mask = LandMask::from_fn(512, 1024, |latitude, longitude| {
            longitude.abs() > 20.0 || latitude > 10.0
        });
        let imagery = Imagery::from_picture(&picture, Light::Day, &mask);
        for (middle, width_km) in
            [((86.0, 30.0), 3000.0), ((-20.0, 179.5), 900.0), ((5.0, 0.0), 6600.0)]
        {
            let size = 96;
            let bytes = imagery.patch(middle, width_km, size, [10, 20, 60]);
            for at in (0..size * size).step_by(37) {
                let offset =
                    |k: usize| (k as f64 + 0.5 - size as f64 / 2.0) * width_km / size as f64;
                let (right, down) = (offset(at % size), offset(at / size));
                let arc = right.hypot(down) / EARTH_RADIUS_KM;
                let (latitude, longitude) =
                    destination(middle.0, middle.1, right.atan2(-down), arc);
                let (color, land) = imagery.colour(latitude, longitude, width_km / size as f64);
                for (k, sea) in [10.0, 20.0, 60.0].into_iter().enumerate() {
                    let expected = 255.0 * color[k] * land + sea * (1.0 - land);
                    let found = f32::from(bytes[3 * at + k]);
                    assert!(
                        (found - expected).abs() <= 2.0,
                        "{middle:?} {at}: {found}, {expected}"
                    );
                }
            }
        }
    }
}
