//! Names of places, offline: the nearest town (GeoNames, CC BY 4.0, by the crate `reverse_geocoder`), the country, and at sea the
//! nearest coast (Natural Earth, see [`super::countries`]).

use std::fmt;
use std::sync::LazyLock;

use locdiff_sphere::LatLon;
use reverse_geocoder::ReverseGeocoder;
use serde::Serialize;

use super::countries;

/// A town farther away than this doesn't name a place.
const NEAR_KM: f64 = 50.0;

/// A place off the coast, but as near to a town as this, is taken for its harbour.
const HARBOUR_KM: f64 = 10.0;

/// What people call a place.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlaceName {
    /// The nearest town, if there is one within 50 km.
    pub town: Option<String>,
    /// The state, province or county of that town.
    pub district: Option<String>,
    /// The country that the place itself lies in; `None` at sea.
    pub country: Option<String>,
    /// Its code, two letters (ISO 3166-1).
    pub country_code: Option<String>,
    /// The nearest coast, at sea.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<Coast>,
}

/// The nearest coast of a place at sea.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coast {
    /// Country of the coast.
    pub country: String,
    /// Its code, two letters (ISO 3166-1).
    pub country_code: String,
    /// How far away it is, in km.
    pub distance_km: f64,
}

static TOWNS: LazyLock<ReverseGeocoder> = LazyLock::new(ReverseGeocoder::new);

/// Town, district and country of a place; at sea the nearest coast. Offline.
pub fn place_name(place: LatLon) -> PlaceName {
    let town = TOWNS.search((place.latitude(), place.longitude())).record;
    let distance_km =
        LatLon::new(town.lat, town.lon).map_or(f64::INFINITY, |at| at.distance_km(place));
    let country_code = if countries::land_area().contains(place) {
        // Réunion and others have a code of their own, but their outlines are part of another country's.
        let is_part = distance_km <= NEAR_KM && !countries::has_outline(&town.cc);
        let code = countries::country_at(place).map(|country| country.code().to_owned());
        if is_part { Some(town.cc.clone()) } else { code }
    } else {
        // A harbour, at the edge of what the outlines resolve.
        (distance_km <= HARBOUR_KM).then(|| town.cc.clone())
    };
    let off = country_code.is_none().then(|| {
        let (country, distance_km) = countries::nearest_coast(place);
        let (name, code) = (country.name().to_owned(), country.code().to_owned());
        Coast { country: name, country_code: code, distance_km }
    });
    // A town across the border is near, but its district would mislead.
    let near = distance_km <= NEAR_KM && country_code.as_ref().is_none_or(|code| *code == town.cc);
    let text = |text: &String| (near && !text.is_empty()).then(|| text.clone());
    let country = country_code.as_deref().and_then(countries::name_of_code).map(str::to_owned);
    PlaceName { town: text(&town.name), district: text(&town.admin1), country, country_code, off }
}

/// Something on a map that has a name.
#[derive(Debug, Clone, PartialEq)]
pub struct MapName {
    /// Name of the country or town.
    pub name: String,
    /// Where a map writes the name.
    pub place: LatLon,
    /// Whether it is a country; if not, a town.
    pub is_country: bool,
}

/// Points along a radius at which [`names_around`] asks for names.
const RINGS: usize = 6;

/// Countries and some towns within a radius, the towns nearest to the middle first.
pub fn names_around(middle: LatLon, radius_km: f64) -> Vec<MapName> {
    let mut points = vec![middle];
    for ring in 1..=RINGS {
        let (count, km) = (6 * ring, radius_km * ring as f64 / (RINGS as f64 + 0.5));
        points.extend((0..count).map(|k| middle.destination(360.0 * k as f64 / count as f64, km)));
    }
    let mut names: Vec<MapName> = Vec::new();
    for point in &points {
        let town = TOWNS.search((point.latitude(), point.longitude())).record;
        let Ok(place) = LatLon::new(town.lat, town.lon) else { continue };
        let is_new = names.iter().all(|known| known.name != town.name);
        if is_new && place.distance_km(middle) < radius_km {
            names.push(MapName { name: town.name.clone(), place, is_country: false });
        }
    }
    let mut countries: Vec<(&str, Vec<LatLon>)> = Vec::new();
    for point in &points {
        let Some(country) = countries::country_at(*point) else { continue };
        match countries.iter_mut().find(|(name, _)| *name == country.name()) {
            Some((_, places)) => places.push(*point),
            None => countries.push((country.name(), vec![*point])),
        }
    }
    for (name, places) in countries {
        // The point that is nearest to the others.
        let far = |place: &LatLon| places.iter().map(|p| p.distance_km(*place)).sum::<f64>();
        let place = places.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
        let place = *place.expect("a country has a point");
        names.push(MapName { name: name.to_owned(), place, is_country: true });
    }
    names
}

impl fmt::Display for PlaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Coast { country, distance_km, .. }) = &self.off {
            // Two digits that matter.
            let km = match *distance_km {
                km if km >= 100.0 => (km / 10.0).round() * 10.0,
                km => km.round().max(1.0),
            };
            write!(f, "at sea, {km:.0} km off {country}")?;
            return match &self.town {
                Some(town) => write!(f, ", near {town}"),
                None => Ok(()),
            };
        }
        let country = self.country.as_deref().or(self.country_code.as_deref());
        // Luxembourg, Luxembourg, Luxembourg is written once.
        let mut parts: Vec<&str> = Vec::new();
        for part in [self.town.as_deref(), self.district.as_deref(), country].into_iter().flatten()
        {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        write!(f, "{}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(latitude: f64, longitude: f64) -> String {
        place_name(LatLon::new(latitude, longitude).expect("a place")).to_string()
    }

    #[test]
    fn places_have_the_names_that_maps_give_them() {
        for (latitude, longitude, expected) in [
            (48.8566, 2.3522, "Paris, Ile-de-France, France"),
            (-33.8688, 151.2093, "Sydney, New South Wales, Australia"),
            (49.6117, 6.13, "Luxembourg"),
            (-20.0, -20.0, "at sea, 970 km off Brazil"),
            (38.7223, -9.1393, "Lisbon, Portugal"),
            (72.5, -40.0, "Greenland"),
            (-80.0, 60.0, "Antarctica"),
            (21.3, -157.95, "Hawaii, United States"),
        ] {
            let found = name(latitude, longitude);
            assert!(found.contains(expected), "{found} isn't {expected}");
        }
    }

    #[test]
    fn a_map_has_the_names_that_belong_on_it() {
        let names = names_around(LatLon::new(46.2, 6.15).expect("Geneva"), 120.0);
        let named = |name: &str| names.iter().find(|found| found.name == name);
        for country in ["Switzerland", "France"] {
            assert!(named(country).is_some_and(|found| found.is_country), "{country}: {names:?}");
        }
        assert!(names[0].name.contains("Gen") && !names[0].is_country, "{names:?}");
    }

    #[test]
    fn a_border_isn_t_crossed_by_the_nearest_town() {
        // South of the Rio Grande, within sight of El Paso.
        let south = place_name(LatLon::new(31.70, -106.45).expect("a place"));
        assert_eq!(south.country_code.as_deref(), Some("MX"));
        assert_ne!(south.district.as_deref(), Some("Texas"));
        let sea = place_name(LatLon::new(43.0, 5.2).expect("a place")).to_string();
        assert!(sea.starts_with("at sea, ") && sea.contains(" km off France, near "), "{sea}");
    }
}
