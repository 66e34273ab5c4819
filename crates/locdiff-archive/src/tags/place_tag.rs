//! What is written about a place.

use locdiff_sphere::{EARTH_RADIUS_KM, LatLon};

/// Kilometers in a degree of latitude.
const DEGREE_KM: f64 = std::f64::consts::PI * EARTH_RADIUS_KM / 180.0;

/// An estimated place, as it is written into metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceTag {
    /// Where.
    pub place: LatLon,
    /// A circle of this radius around the place contains the truth with 68 %.
    pub error_km: f64,
    /// How the place was found: names the estimate and the model.
    pub method: String,
}

impl PlaceTag {
    /// The place that a model estimated.
    pub fn estimated(place: LatLon, radius_68_km: f64, model: &str, version: &str) -> PlaceTag {
        let method = format!("estimated from the image by locdiff, model {model} {version}");
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
    fn no_precision_changes_nothing() {
        let tag = PlaceTag::chosen(LatLon::new(1.0, 2.0).unwrap());
        for none in [0.0, -1.0, f64::NAN] {
            assert_eq!(tag.coarsened(none), tag);
        }
    }
}
