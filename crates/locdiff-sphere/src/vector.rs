//! Unit vectors: x towards (0°, 0°), y towards (0°, 90° E), z towards the north pole.

use crate::LatLon;
use crate::place::sin_cos_degrees;

/// A point of the unit sphere in Cartesian coordinates.
///
/// Without the singularities of latitude and longitude: the form for interpolation,
/// averages and optimisation on the sphere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitVector {
    x: f64,
    y: f64,
    z: f64,
}

impl UnitVector {
    /// Towards the north pole.
    pub const NORTH: UnitVector = UnitVector { x: 0.0, y: 0.0, z: 1.0 };

    /// The unit vector in the direction of `[x, y, z]`; `None` if that has no direction
    /// (zero, infinite or not a number).
    pub fn from_direction([x, y, z]: [f64; 3]) -> Option<UnitVector> {
        let length = x.hypot(y).hypot(z);
        (length > 0.0 && length.is_finite()).then(|| UnitVector {
            x: x / length,
            y: y / length,
            z: z / length,
        })
    }

    /// The three Cartesian coordinates.
    pub fn to_array(self) -> [f64; 3] {
        [self.x, self.y, self.z]
    }

    /// Cosine of the angle between the two vectors.
    pub fn dot(self, other: UnitVector) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    /// Angle between the two vectors in radians, accurate at every angle.
    pub fn angle_to(self, other: UnitVector) -> f64 {
        let across = [
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        ];
        across[0].hypot(across[1]).hypot(across[2]).atan2(self.dot(other))
    }

    /// The directions east and north at a place, as vectors. At a pole they follow the
    /// place's own meridian, which is the limit along it.
    pub(crate) fn frame_at(place: LatLon) -> [[f64; 3]; 2] {
        let (sin_latitude, cos_latitude) = sin_cos_degrees(place.latitude());
        let (sin_longitude, cos_longitude) = sin_cos_degrees(place.longitude());
        [
            [-sin_longitude, cos_longitude, 0.0],
            [-sin_latitude * cos_longitude, -sin_latitude * sin_longitude, cos_latitude],
        ]
    }
}

impl From<LatLon> for UnitVector {
    fn from(place: LatLon) -> UnitVector {
        let (sin_latitude, cos_latitude) = sin_cos_degrees(place.latitude());
        let (sin_longitude, cos_longitude) = sin_cos_degrees(place.longitude());
        UnitVector {
            x: cos_latitude * cos_longitude,
            y: cos_latitude * sin_longitude,
            z: sin_latitude,
        }
    }
}
