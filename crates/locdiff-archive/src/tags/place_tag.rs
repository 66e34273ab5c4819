//! What is written about a place.

use locdiff_sphere::{EARTH_RADIUS_KM, LatLon};

use crate::library::ContentHash;

/// Kilometers in a degree of latitude.
const DEGREE_KM: f64 = std::f64::consts::PI * EARTH_RADIUS_KM / 180.0;

/// An estimated place, as it is written into metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceTag {
    /// Position that is written.
    pub place: LatLon,
    /// A circle of this radius around the place contains the truth with 68 %.
    pub error_km: f64,
    /// How the place was found: names the estimate and the model.
    pub method: String,
}

/// What of a file's metadata may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// A place stays, whoever wrote it.
    Nothing,
    /// A place that this program wrote ([`is_ours`]).
    Own,
    /// Any place, together with all that was measured at it: altitude, status, direction.
    Everything,
}

/// Words before the check at the end of a processing method.
const CHECKED: &str = ", check ";
/// Steps of a degree that the check distinguishes: about a meter, because other programs round what they rewrite.
const STEPS: f64 = 1e5;

/// Whether this program wrote a place with its processing method: then it is an estimate or a pin, and must not be taken for
/// what a camera measured. A place that another program corrected, and left the method, is not ours.
pub fn is_ours(place: LatLon, method: &str) -> bool {
    let Some((_, found)) = method.rsplit_once(CHECKED).filter(|_| method.contains("locdiff"))
    else {
        return false;
    };
    let [latitude, longitude] = steps_of(place);
    let near = |k: i64| [latitude + k / 3 - 1, longitude + k % 3 - 1];
    (0..9).any(|k| check(near(k)) == found.trim_end_matches(['\0', ' ']))
}

fn steps_of(place: LatLon) -> [i64; 2] {
    [place.latitude(), place.longitude()].map(|degrees| (STEPS * degrees).round() as i64)
}

fn check([latitude, longitude]: [i64; 2]) -> String {
    let pole = latitude.abs() >= (90.0 * STEPS) as i64;
    let longitude = if pole { 0 } else { longitude.rem_euclid((360.0 * STEPS) as i64) };
    ContentHash::of(format!("{latitude} {longitude}").as_bytes()).to_string()[..8].to_owned()
}

impl PlaceTag {
    /// A tag that names the model, its version and the 68 % radius.
    pub fn estimated(place: LatLon, radius_68_km: f64, model: &str, version: &str) -> PlaceTag {
        let method = format!("estimated from the image by locdiff, model {model} {version}");
        PlaceTag { place, error_km: radius_68_km, method }
    }

    /// The place that was estimated with the help of other pictures of the same outing, or of what the user stated.
    pub fn fused(place: LatLon, radius_68_km: f64, model: &str, version: &str) -> PlaceTag {
        let method =
            format!("estimated from the image and its context by locdiff, model {model} {version}");
        PlaceTag { place, error_km: radius_68_km, method }
    }

    /// The place that a user chose on a map.
    pub fn chosen(place: LatLon) -> PlaceTag {
        PlaceTag { place, error_km: 0.1, method: "placed by hand in locdiff".to_owned() }
    }

    /// The same, moved to the middle of a square of a grid that is the same for all pictures, so that nothing finer than
    /// `precision_km` is written.
    ///
    /// ```
    /// use locdiff_archive::tags::PlaceTag;
    /// use locdiff_sphere::LatLon;
    ///
    /// let home = PlaceTag::chosen(LatLon::new(48.858_37, 2.294_48)?);
    /// let coarse = home.coarsened(10.0);
    /// assert!(coarse.place.distance_km(home.place) < 7.1 && coarse.error_km > 3.0);
    /// # Ok::<(), locdiff_sphere::InvalidPlace>(())
    /// ```
    pub fn coarsened(&self, precision_km: f64) -> PlaceTag {
        if precision_km.is_nan() || precision_km <= 0.0 {
            return self.clone();
        }
        let rows = (180.0 * DEGREE_KM / precision_km).ceil().max(1.0);
        let height = 180.0 / rows;
        let row = ((self.place.latitude() + 90.0) / height).floor().min(rows - 1.0);
        let latitude = (row + 0.5) * height - 90.0;
        let around_km = 360.0 * DEGREE_KM * latitude.to_radians().cos();
        let columns = (around_km / precision_km).ceil().max(1.0);
        let width = 360.0 / columns;
        let column = ((self.place.longitude() + 180.0) / width).floor().min(columns - 1.0);
        let longitude = (column + 0.5) * width - 180.0;
        let place = LatLon::new(latitude, longitude).unwrap_or(self.place);
        // 68 % of a square of side 1 lie within 0.466 of its middle.
        let error_km = self.error_km.hypot(0.466 * precision_km);
        PlaceTag { place, error_km, method: self.method.clone() }
    }

    /// The method with a check of the place, by which [`is_ours`] recognizes it.
    pub(super) fn checked_method(&self) -> String {
        format!("{}{CHECKED}{}", self.method, check(steps_of(self.place)))
    }

    /// The error in meters.
    pub(super) fn error_m(&self) -> f64 {
        (1000.0 * self.error_km).clamp(0.0, 4e7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn coarse_places_are_near_and_few(
            latitude in -90.0..=90.0_f64,
            longitude in -180.0..180.0_f64,
            precision_km in 0.5..500.0_f64,
        ) {
            let tag = PlaceTag::chosen(LatLon::new(latitude, longitude).unwrap());
            let coarse = tag.coarsened(precision_km);
            prop_assert!(coarse.place.distance_km(tag.place) <= 0.75 * precision_km);
            // Coarsening again changes nothing, so the square gives nothing away.
            let again = coarse.coarsened(precision_km);
            prop_assert!(again.place.distance_km(coarse.place) < 1e-6);
        }
    }

    #[test]
    fn a_corrected_place_is_not_ours() {
        let at = |latitude, longitude| LatLon::new(latitude, longitude).unwrap();
        for place in [at(48.858_37, 2.294_48), at(-90.0, 0.0), at(0.000_005, 180.0)] {
            let method = PlaceTag::chosen(place).checked_method();
            assert!(is_ours(place, &method), "{place}");
            // Another program rounds, or somebody corrects.
            assert!(is_ours(place.destination(70.0, 0.0005), &method), "{place}");
            assert!(!is_ours(place.destination(70.0, 0.01), &method), "{place}");
        }
        assert!(!is_ours(at(1.0, 2.0), "GPS") && !is_ours(at(1.0, 2.0), "by locdiff"));
    }

    #[test]
    fn no_precision_changes_nothing() {
        let tag = PlaceTag::chosen(LatLon::new(1.0, 2.0).unwrap());
        for none in [0.0, -1.0, f64::NAN] {
            assert_eq!(tag.coarsened(none), tag);
        }
    }
}
