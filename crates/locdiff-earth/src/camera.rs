//! The camera: a pinhole above a sphere.
//!
//! Vectors are Earth-centred: x through 0° N 0° E, y through 0° N 90° E, z through the north pole,
//! in Earth radii. Picture coordinates run from −1 to 1: x to the right, y up.

use crate::EARTH_RADIUS_KM;

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// `a + k b`.
pub(crate) fn add(a: [f64; 3], k: f64, b: [f64; 3]) -> [f64; 3] {
    [a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]]
}

pub(crate) fn normalized(a: [f64; 3]) -> [f64; 3] {
    let length = dot(a, a).sqrt();
    a.map(|value| value / length)
}

/// Upward, eastward and northward at a place (degrees).
pub(crate) fn local_axes(latitude: f64, longitude: f64) -> [[f64; 3]; 3] {
    let (sin_lat, cos_lat) = latitude.to_radians().sin_cos();
    let (sin_lon, cos_lon) = longitude.to_radians().sin_cos();
    [
        [cos_lat * cos_lon, cos_lat * sin_lon, sin_lat],
        [-sin_lon, cos_lon, 0.0],
        [-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat],
    ]
}

pub(crate) fn place_of(point: [f64; 3]) -> (f64, f64) {
    let latitude = point[2].atan2(point[0].hypot(point[1]));
    (latitude.to_degrees(), point[1].atan2(point[0]).to_degrees())
}

/// The place (degrees) at an arc from another, in a direction clockwise from north (radians).
pub(crate) fn destination(latitude: f64, longitude: f64, azimuth: f64, arc: f64) -> (f64, f64) {
    let [up, east, north] = local_axes(latitude, longitude);
    let along = add(north.map(|value| value * azimuth.cos()), azimuth.sin(), east);
    place_of(add(up.map(|value| value * arc.cos()), arc.sin(), along))
}

/// How a camera looks at the place in the middle of its picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Latitude of the place in the middle of the picture, degrees.
    pub latitude: f64,
    /// Its longitude, degrees.
    pub longitude: f64,
    /// Height of the camera above the ground.
    pub altitude_km: f64,
    /// Angle at the camera between straight down and the middle of the picture.
    pub tilt_degrees: f64,
    /// Direction in which the camera looks, clockwise from north, at the middle of the picture.
    pub heading_degrees: f64,
    /// Turn of the camera about its axis; at 0 the top of the picture points along the heading.
    pub roll_degrees: f64,
    /// Width that the picture takes in at the distance of its middle.
    pub width_km: f64,
}

/// A pinhole camera with a square picture.
#[derive(Clone, Copy, Debug)]
pub struct Camera {
    /// What it was made from.
    pub pose: Pose,
    pub(crate) position: [f64; 3],
    pub(crate) forward: [f64; 3],
    pub(crate) right: [f64; 3],
    pub(crate) up: [f64; 3],
    /// Tangent of half the field of view.
    pub(crate) tan_half: f64,
}

/// The largest tilt at which the optical axis meets the ground.
pub fn horizon_tilt_degrees(altitude_km: f64) -> f64 {
    (EARTH_RADIUS_KM / (EARTH_RADIUS_KM + altitude_km)).asin().to_degrees()
}

impl Camera {
    /// The camera of a pose.
    ///
    /// # Panics
    /// If the tilt points above the horizon.
    pub fn new(pose: Pose) -> Self {
        let tilt = pose.tilt_degrees.to_radians();
        let distance = 1.0 + pose.altitude_km / EARTH_RADIUS_KM;
        let sin_incidence = distance * tilt.sin();
        assert!(
            sin_incidence < 1.0,
            "tilt {}° looks above the horizon at {}°",
            pose.tilt_degrees,
            horizon_tilt_degrees(pose.altitude_km)
        );
        // The law of sines in the triangle of camera, ground and Earth's centre.
        let arc = sin_incidence.asin() - tilt;
        let [ground, east, north] = local_axes(pose.latitude, pose.longitude);
        let (sin_heading, cos_heading) = pose.heading_degrees.to_radians().sin_cos();
        let ahead = add(north.map(|value| value * cos_heading), sin_heading, east);
        let below = add(ground.map(|value| value * arc.cos()), -arc.sin(), ahead);
        let position = below.map(|value| value * distance);
        let line = add(ground, -1.0, position);
        let forward = normalized(line);
        let upright = normalized(add(ahead, -dot(ahead, forward), forward));
        let sideways = cross(forward, upright);
        let (sin_roll, cos_roll) = pose.roll_degrees.to_radians().sin_cos();
        let slant_km = dot(line, line).sqrt() * EARTH_RADIUS_KM;
        Self {
            pose,
            position,
            forward,
            right: add(sideways.map(|value| value * cos_roll), -sin_roll, upright),
            up: add(upright.map(|value| value * cos_roll), sin_roll, sideways),
            tan_half: pose.width_km / (2.0 * slant_km),
        }
    }

    /// Field of view from edge to edge.
    pub fn field_of_view_degrees(&self) -> f64 {
        2.0 * self.tan_half.atan().to_degrees()
    }

    /// The place (latitude, longitude in degrees) seen at a point of the picture, none for space.
    pub fn place_at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let ray = add(self.forward, x * self.tan_half, self.right);
        let ray = add(ray, y * self.tan_half, self.up);
        let (a, b) = (dot(ray, ray), dot(self.position, ray));
        let c = dot(self.position, self.position) - 1.0;
        let discriminant = b * b - a * c;
        (discriminant >= 0.0 && b < 0.0).then(|| {
            let distance = c / (-b + discriminant.sqrt());
            place_of(add(self.position, distance, ray))
        })
    }
}
