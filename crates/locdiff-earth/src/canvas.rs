//! A view's pixels while it is made: one plane of numbers per quantity, so that the loops over
//! them become vector instructions; and the geometry that fills the first of them.

use crate::EARTH_RADIUS_KM;
use crate::camera::{Camera, dot, local_axes};
use crate::pyramid::LANES;

/// Air straight through the limb, in units of air straight down.
const LIMB_AIR: f32 = 66.0;
/// Height over which air thins to a third.
const AIR_HEIGHT: f32 = 8.0 / EARTH_RADIUS_KM as f32;

/// Planes of `size × size` numbers, rows from the top.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    pub(crate) size: usize,
    /// Km east and north of the middle, in the plane that touches the Earth there.
    pub(crate) east: Vec<f32>,
    pub(crate) north: Vec<f32>,
    /// Where to look in a pyramid.
    pub(crate) down: Vec<f32>,
    pub(crate) round: Vec<f32>,
    /// Logarithm to base 2 of the pixel's size on the ground in km.
    pub(crate) footprint: Vec<f32>,
    /// Cosine between the vertical and the line to the camera; −1 for space.
    pub(crate) view_cos: Vec<f32>,
    pub(crate) sun_cos: Vec<f32>,
    /// Square of the slope that a wave needs to mirror the sun into the camera.
    pub(crate) wave_slope: Vec<f32>,
    /// How much air the pixel looks through, in units of straight down.
    pub(crate) air: Vec<f32>,
    pub(crate) red: Vec<f32>,
    pub(crate) green: Vec<f32>,
    pub(crate) blue: Vec<f32>,
    pub(crate) land: Vec<f32>,
    pub(crate) cloud: Vec<f32>,
    /// The cloud towards the sun, whose shadow falls here.
    pub(crate) shadow: Vec<f32>,
    pub(crate) veil: Vec<f32>,
    pub(crate) patch: Vec<f32>,
    pub(crate) lamp: Vec<f32>,
    /// Room for filters.
    pub(crate) spare: Vec<f32>,
}

impl Canvas {
    /// Makes room for this size; costs nothing when it is the same as before.
    pub(crate) fn resize(&mut self, size: usize) {
        self.size = size;
        for plane in [
            &mut self.east,
            &mut self.north,
            &mut self.down,
            &mut self.round,
            &mut self.footprint,
            &mut self.view_cos,
            &mut self.sun_cos,
            &mut self.wave_slope,
            &mut self.air,
            &mut self.red,
            &mut self.green,
            &mut self.blue,
            &mut self.land,
            &mut self.cloud,
            &mut self.shadow,
            &mut self.veil,
            &mut self.patch,
            &mut self.lamp,
            &mut self.spare,
        ] {
            plane.resize(size * size, 0.0);
        }
    }

    /// Where each pixel's ray ends, and under which angles.
    #[inline(always)]
    pub(crate) fn trace(&mut self, camera: &Camera, sun: [f32; 3]) {
        let size = self.size;
        let narrow = |vector: [f64; 3]| vector.map(|value| value as f32);
        let [_, east, north] = local_axes(camera.pose.latitude, camera.pose.longitude);
        let (east, north) = (narrow(east), narrow(north));
        let (origin, forward) = (narrow(camera.position), narrow(camera.forward));
        let (right, up) = (narrow(camera.right), narrow(camera.up));
        // The ray is forward + x right + y up; its products with camera and sun are linear in x, y.
        let along = |vector: [f64; 3]| {
            [camera.forward, camera.right, camera.up].map(|axis| dot(vector, axis) as f32)
        };
        let from_origin = along(camera.position);
        let from_sun = along(sun.map(f64::from));
        let origin_square = dot(camera.position, camera.position);
        let c = (origin_square - 1.0) as f32;
        let origin_square = origin_square as f32;
        let tan_half = camera.tan_half as f32;
        let step = 2.0 * tan_half / size as f32;
        let radius = EARTH_RADIUS_KM as f32;

        for row in 0..size {
            let y = tan_half - (row as f32 + 0.5) * step;
            let span = row * size..(row + 1) * size;
            let out_east = &mut self.east[span.clone()][..size];
            let out_north = &mut self.north[span.clone()][..size];
            let out_down = &mut self.down[span.clone()][..size];
            let out_round = &mut self.round[span.clone()][..size];
            let out_footprint = &mut self.footprint[span.clone()][..size];
            let out_view = &mut self.view_cos[span.clone()][..size];
            let out_sun = &mut self.sun_cos[span.clone()][..size];
            let out_slope = &mut self.wave_slope[span.clone()][..size];
            let out_air = &mut self.air[span][..size];
            for column in 0..size {
                let x = (column as f32 + 0.5) * step - tan_half;
                let ray: [f32; 3] = std::array::from_fn(|i| forward[i] + x * right[i] + y * up[i]);
                let a = 1.0 + x * x + y * y;
                let b = from_origin[0] + x * from_origin[1] + y * from_origin[2];
                let discriminant = b * b - a * c;
                let hit = discriminant >= 0.0 && b < 0.0;
                let root = discriminant.max(0.0).sqrt();
                // For space, the point of the ray nearest to the Earth.
                let distance = if hit { c / (root - b) } else { -b / a };
                let point: [f32; 3] = std::array::from_fn(|i| origin[i] + distance * ray[i]);
                let inverse_length = 1.0 / a.sqrt();
                let view_cos = root * inverse_length;
                let height = (origin_square - b * b / a).max(0.0).sqrt() - 1.0;

                let in_plane = |axis: [f32; 3]| {
                    (point[0] * axis[0] + point[1] * axis[1] + point[2] * axis[2]) * radius
                };
                out_east[column] = in_plane(east);
                out_north[column] = in_plane(north);
                let from_axis = (point[0] * point[0] + point[1] * point[1]).sqrt();
                out_down[column] =
                    0.5 - arc_tangent(point[2], from_axis) * std::f32::consts::FRAC_1_PI;
                out_round[column] =
                    0.5 + arc_tangent(point[1], point[0]) * (0.5 * std::f32::consts::FRAC_1_PI);
                let across_km = distance * step * radius;
                // Tilted ground makes the footprint longer: the mean of both directions.
                out_footprint[column] = log2(across_km * across_km / view_cos.max(0.03)) * 0.5;
                out_view[column] = if hit { view_cos } else { -1.0 };
                let sun_cos = point[0] * sun[0] + point[1] * sun[1] + point[2] * sun[2];
                out_sun[column] = sun_cos;
                let sun_view = -(from_sun[0] + x * from_sun[1] + y * from_sun[2]) * inverse_length;
                let between_square = 2.0 + 2.0 * sun_view;
                let between_up = (sun_cos + view_cos).max(0.02);
                out_slope[column] = (between_square / (between_up * between_up) - 1.0).max(0.0);
                out_air[column] = if hit {
                    1.0 / (view_cos + 0.03)
                } else {
                    LIMB_AIR * fading(height.max(0.0) / AIR_HEIGHT)
                };
            }
        }
    }

    /// Share of pixels that show land.
    #[inline(always)]
    pub(crate) fn land_fraction(&self) -> f64 {
        f64::from(self.land.iter().sum::<f32>()) / (self.size * self.size) as f64
    }
}

/// Some of a plane's pixels from `start` on; beyond its end, halves.
#[inline(always)]
pub(crate) fn lanes(plane: &[f32], start: usize) -> [f32; LANES] {
    match plane[start..].first_chunk() {
        Some(values) => *values,
        None => {
            let mut values = [0.5; LANES];
            let rest = &plane[start..];
            values[..rest.len()].copy_from_slice(rest);
            values
        }
    }
}

/// Puts pixels back, as many as the plane has from `start` on.
#[inline(always)]
pub(crate) fn put(plane: &mut [f32], start: usize, values: &[f32; LANES]) {
    match plane[start..].first_chunk_mut() {
        Some(out) => *out = *values,
        None => {
            let rest = plane.len() - start;
            plane[start..].copy_from_slice(&values[..rest]);
        }
    }
}

/// About e to the −x, for x ≥ 0: within 0.02, without a call.
#[inline(always)]
pub(crate) fn fading(x: f32) -> f32 {
    let base = 1.0 + x * (1.0 / 16.0);
    let square = base * base;
    let fourth = square * square;
    let eighth = fourth * fourth;
    1.0 / (eighth * eighth)
}

/// Logarithm to base 2 of a positive number, within 0.01.
#[inline(always)]
fn log2(x: f32) -> f32 {
    let bits = x.to_bits();
    let exponent = (bits >> 23) as i32 - 127;
    let mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000);
    exponent as f32 + (mantissa - 1.0) * (1.0 + 0.346_6 * (2.0 - mantissa))
}

/// The angle of (x, y), radians in −π..=π, within 1e-6: ten metres on the ground, without a call.
#[inline(always)]
pub(crate) fn arc_tangent(y: f32, x: f32) -> f32 {
    let (width, height) = (x.abs(), y.abs());
    let (low, high) = (width.min(height), width.max(height).max(1e-30));
    let ratio = low / high;
    let square = ratio * ratio;
    // Abramowitz and Stegun 4.4.49: error below 2e-8 in exact arithmetic.
    let series = 1.0
        + square
            * (-0.333_331_45
                + square
                    * (0.199_935_5
                        + square
                            * (-0.142_089
                                + square
                                    * (0.106_562_64
                                        + square
                                            * (-0.075_289_64
                                                + square
                                                    * (0.042_909_614
                                                        + square
                                                            * (-0.016_165_737
                                                                + square * 0.002_866_225_7)))))));
    let angle = ratio * series;
    let angle = if height > width { std::f32::consts::FRAC_PI_2 - angle } else { angle };
    let angle = if x < 0.0 { std::f32::consts::PI - angle } else { angle };
    if y < 0.0 { -angle } else { angle }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arc_tangent_agrees_with_the_library() {
        for step in 0..10_000 {
            let angle =
                (f64::from(step) + 0.5) / 10_000.0 * std::f64::consts::TAU - std::f64::consts::PI;
            let (sin, cos) = angle.sin_cos();
            let found = f64::from(arc_tangent(sin as f32, cos as f32));
            assert!((found - angle).abs() < 1e-6, "{found} for {angle}");
        }
    }

    #[test]
    fn pixels_see_what_exact_rays_see() {
        let mut random = crate::random::Random::new(11);
        let mut canvas = Canvas::default();
        canvas.resize(32);
        for _ in 0..200 {
            let camera = Camera::new(crate::camera::Pose {
                latitude: random.between(-90.0, 90.0),
                longitude: random.between(-180.0, 180.0),
                altitude_km: random.between(300.0, 450.0),
                tilt_degrees: random.between(0.0, 50.0),
                heading_degrees: random.between(0.0, 360.0),
                roll_degrees: random.between(0.0, 360.0),
                width_km: random.log_between(100.0, 900.0),
            });
            canvas.trace(&camera, [1.0, 0.0, 0.0]);
            for at in 0..32 * 32 {
                let place = |step: usize| (step as f64 + 0.5) / 16.0 - 1.0;
                let exact = camera.place_at(place(at % 32), -place(at / 32));
                // At the limb itself rounding decides.
                if canvas.view_cos[at].abs() < 0.05 {
                    continue;
                }
                assert_eq!(exact.is_some(), canvas.view_cos[at] >= 0.0);
                let Some((latitude, longitude)) = exact else { continue };
                let down = f64::from(canvas.down[at]) * 180.0;
                let round = f64::from(canvas.round[at]) * 360.0;
                let north_km = (90.0 - down - latitude).to_radians() * EARTH_RADIUS_KM;
                let turn = (round - 180.0 - longitude + 180.0).rem_euclid(360.0) - 180.0;
                let east_km = turn.to_radians() * latitude.to_radians().cos() * EARTH_RADIUS_KM;
                assert!(north_km.hypot(east_km) < 0.05, "{north_km} km north, {east_km} km east");
            }
        }
    }

    #[test]
    fn approximations_are_as_good_as_they_say() {
        for step in 0..1000 {
            let x = step as f32 * 0.01;
            assert!((fading(x) - (-x).exp()).abs() < 0.02, "e^-{x}");
            let y = 0.1 + x;
            assert!((log2(y) - y.log2()).abs() < 0.01, "log2 {y}");
        }
    }
}
