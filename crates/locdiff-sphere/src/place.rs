//! Places on the Earth and the great circles between them.
//!
//! Convention: latitude first, both in degrees; longitude wraps to [−180, 180).
//! The Earth is a sphere of radius [`EARTH_RADIUS_KM`]. Tested against mpmath
//! (`parity/sphere/geodesy.json`), poles, antimeridian and near-antipodal pairs included.

use std::fmt;
use std::str::FromStr;

use crate::UnitVector;

/// Mean radius R₁ of the Earth (IUGG), in kilometres.
pub const EARTH_RADIUS_KM: f64 = 6371.0088;

/// A place on the Earth: latitude and longitude in degrees, valid by construction.
///
/// ```
/// use locdiff_sphere::LatLon;
///
/// let paris = LatLon::new(48.8566, 2.3522)?;
/// let tokyo = LatLon::new(35.6762, 139.6503)?;
/// assert_eq!(paris.distance_km(tokyo).round(), 9712.0);
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatLon {
    latitude: f64,
    longitude: f64,
}

/// Why a pair of numbers, or a text, is not a place.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPlace {
    /// The latitude is not a number between −90 and 90.
    #[error("latitude {0} is not between -90 and 90 degrees")]
    Latitude(f64),
    /// The longitude is infinite or not a number.
    #[error("longitude {0} is not a finite number of degrees")]
    Longitude(f64),
    /// The text is not two numbers.
    #[error(
        "`{0}` is not a place: write it as LATITUDE,LONGITUDE in degrees, for example 48.86,2.35"
    )]
    Text(String),
}

impl LatLon {
    /// The north pole, on the meridian of Greenwich.
    pub const NORTH_POLE: LatLon = LatLon { latitude: 90.0, longitude: 0.0 };
    /// The south pole, on the meridian of Greenwich.
    pub const SOUTH_POLE: LatLon = LatLon { latitude: -90.0, longitude: 0.0 };

    /// A place from degrees. Latitude must lie in [−90, 90]; longitude wraps to [−180, 180).
    pub fn new(latitude: f64, longitude: f64) -> Result<LatLon, InvalidPlace> {
        if !(-90.0..=90.0).contains(&latitude) {
            return Err(InvalidPlace::Latitude(latitude));
        }
        if !longitude.is_finite() {
            return Err(InvalidPlace::Longitude(longitude));
        }
        Ok(LatLon { latitude, longitude: wrap_degrees(longitude) })
    }

    /// Latitude in degrees, north positive.
    pub fn latitude(self) -> f64 {
        self.latitude
    }

    /// Longitude in degrees in [−180, 180), east positive.
    pub fn longitude(self) -> f64 {
        self.longitude
    }

    /// Great-circle distance in kilometres.
    pub fn distance_km(self, other: LatLon) -> f64 {
        self.angle_to(other) * EARTH_RADIUS_KM
    }

    /// Angle between the two places as seen from the Earth's centre, in radians.
    ///
    /// The arctangent form is good to about a nanometre at every distance; arccosine loses
    /// half of the digits for near pairs and haversine for near-antipodal ones.
    pub fn angle_to(self, other: LatLon) -> f64 {
        let (across, along, cosine) = self.components_towards(other);
        across.hypot(along).atan2(cosine)
    }

    /// Initial bearing of the great circle to `other`: degrees in [0, 360), clockwise from north.
    ///
    /// At a pole, "north" is along this place's own meridian. Between equal or exactly
    /// antipodal places every bearing serves, and 0 or 180 is returned.
    pub fn bearing_to(self, other: LatLon) -> f64 {
        let (across, along, _) = self.components_towards(other);
        across.atan2(along).to_degrees().rem_euclid(360.0) % 360.0
    }

    /// The place reached by `distance_km` along the great circle that starts at
    /// `bearing_degrees` (clockwise from north).
    pub fn destination(self, bearing_degrees: f64, distance_km: f64) -> LatLon {
        let [east, north] = UnitVector::frame_at(self);
        let (sin_bearing, cos_bearing) = sin_cos_degrees(bearing_degrees);
        let (sin_angle, cos_angle) = (distance_km / EARTH_RADIUS_KM).sin_cos();
        let start = UnitVector::from(self).to_array();
        let end = std::array::from_fn(|axis| {
            cos_angle * start[axis]
                + sin_angle * (sin_bearing * east[axis] + cos_bearing * north[axis])
        });
        UnitVector::from_direction(end).map_or(self, LatLon::from)
    }

    /// The other place in this place's frame: east, north and up parts of its unit vector.
    fn components_towards(self, other: LatLon) -> (f64, f64, f64) {
        let (sin_here, cos_here) = sin_cos_degrees(self.latitude);
        let (sin_there, cos_there) = sin_cos_degrees(other.latitude);
        let (sin_between, cos_between) = sin_cos_degrees(other.longitude - self.longitude);
        (
            cos_there * sin_between,
            cos_here * sin_there - sin_here * cos_there * cos_between,
            sin_here * sin_there + cos_here * cos_there * cos_between,
        )
    }
}

/// The mean of places on the sphere: the direction of the mean of their unit vectors.
/// Unlike the mean of latitudes and longitudes it has no special cases at the antimeridian and the poles. `None`
/// if there are no places or they cancel out, as two antipodes do.
pub fn mean_place(places: &[LatLon]) -> Option<LatLon> {
    let mut sum = [0.0; 3];
    for place in places {
        let vector = UnitVector::from(*place).to_array();
        sum.iter_mut().zip(vector).for_each(|(sum, part)| *sum += part);
    }
    // Antipodes leave rounding errors, which point nowhere.
    let length = sum.iter().map(|part| part * part).sum::<f64>().sqrt();
    let direction = (length > 1e-9 * places.len() as f64).then_some(sum)?;
    UnitVector::from_direction(direction).map(LatLon::from)
}

impl From<UnitVector> for LatLon {
    fn from(vector: UnitVector) -> LatLon {
        let [x, y, z] = vector.to_array();
        let latitude = z.atan2(x.hypot(y)).to_degrees().clamp(-90.0, 90.0);
        // `+ 0.0` turns a longitude of −0 into 0, so that printing it doesn't surprise.
        LatLon { latitude, longitude: wrap_degrees(y.atan2(x).to_degrees()) + 0.0 }
    }
}

/// Writes `latitude,longitude`, with as many digits as the formatter asks for.
impl fmt::Display for LatLon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.latitude, f)?;
        f.write_str(",")?;
        fmt::Display::fmt(&self.longitude, f)
    }
}

/// Reads `48.86,2.35`, with a comma, blanks or both between the numbers.
impl FromStr for LatLon {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<LatLon, InvalidPlace> {
        let invalid = || InvalidPlace::Text(text.trim().to_owned());
        // With a comma, both sides of it must be numbers; without, blanks separate.
        let parts: Vec<&str> = if text.contains(',') {
            text.split(',').map(str::trim).collect()
        } else {
            text.split_whitespace().collect()
        };
        let [latitude, longitude] = parts[..] else { return Err(invalid()) };
        match (latitude.parse(), longitude.parse()) {
            (Ok(latitude), Ok(longitude)) => LatLon::new(latitude, longitude),
            _ => Err(invalid()),
        }
    }
}

/// Sine and cosine of an angle in degrees, exact at multiples of 90.
///
/// The remainder by 90 is computed without rounding in degrees; converting to radians
/// first would make cos 90° = 6e-17 and put poles 0.4 nm off the axis.
pub(crate) fn sin_cos_degrees(degrees: f64) -> (f64, f64) {
    let quarters = (degrees / 90.0).round_ties_even();
    let (sin, cos) = (degrees - 90.0 * quarters).to_radians().sin_cos();
    match (quarters as i64).rem_euclid(4) {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

pub(crate) fn wrap_degrees(longitude: f64) -> f64 {
    if (-180.0..180.0).contains(&longitude) {
        return longitude;
    }
    let wrapped = (longitude + 180.0).rem_euclid(360.0) - 180.0;
    // A tiny negative remainder rounds up to the modulus itself.
    if wrapped >= 180.0 { -180.0 } else { wrapped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_places_knows_no_antimeridian_and_no_poles() {
        let at = |latitude, longitude| LatLon::new(latitude, longitude).unwrap();
        let mean = mean_place(&[at(10.0, 179.0), at(10.0, -179.0)]).unwrap();
        assert!(mean.distance_km(at(10.0, 180.0)) < 2.0);
        let mean = mean_place(&[at(80.0, 0.0), at(80.0, 120.0), at(80.0, -120.0)]).unwrap();
        assert!(mean.distance_km(LatLon::NORTH_POLE) < 1e-6);
        assert_eq!(mean_place(&[at(20.0, 30.0), at(-20.0, -150.0)]), None);
        assert_eq!(mean_place(&[]), None);
    }

    #[test]
    fn longitude_wraps_and_latitude_does_not() {
        assert_eq!(LatLon::new(0.0, 180.0).unwrap().longitude(), -180.0);
        assert_eq!(LatLon::new(0.0, 540.0).unwrap().longitude(), -180.0);
        assert_eq!(LatLon::new(0.0, -190.0).unwrap().longitude(), 170.0);
        assert!(LatLon::new(0.0, -180.0 - 1e-14).unwrap().longitude() < 180.0);
        assert!(matches!(LatLon::new(90.1, 0.0), Err(InvalidPlace::Latitude(_))));
        assert!(matches!(LatLon::new(f64::NAN, 0.0), Err(InvalidPlace::Latitude(_))));
        assert!(matches!(LatLon::new(0.0, f64::INFINITY), Err(InvalidPlace::Longitude(_))));
    }

    #[test]
    fn places_are_read_and_written() {
        let place: LatLon = "48.86, 2.35".parse().unwrap();
        assert_eq!(place, LatLon::new(48.86, 2.35).unwrap());
        assert_eq!(format!("{place:.1}"), "48.9,2.4");
        assert!("48.86".parse::<LatLon>().is_err());
        assert!("1 2 3".parse::<LatLon>().is_err());
        assert!("1,,3".parse::<LatLon>().is_err());
        assert!("91 0".parse::<LatLon>().is_err());
    }

    #[test]
    fn quarter_turns_are_exact() {
        for (degrees, expected) in [
            (0.0, (0.0, 1.0)),
            (90.0, (1.0, 0.0)),
            (-90.0, (-1.0, 0.0)),
            (180.0, (0.0, -1.0)),
            (270.0, (-1.0, 0.0)),
        ] {
            assert_eq!(sin_cos_degrees(degrees), expected, "{degrees}");
        }
    }
}
