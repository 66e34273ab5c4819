//! The countries of the Earth: codes, names and outlines (Natural Earth 1:10m, simplified).
//!
//! Names are short, and the same on the page: `assets/country-names.json`. `assets/countries.mjs` makes the file and describes its format. Outlines are good to a kilometre
//! or two; who owns what is Natural Earth's opinion of who rules there, not ours.

use std::sync::{LazyLock, OnceLock};

use locdiff_sphere::{Area, LatLon, MultiPolygon};

static FILE: &[u8] = include_bytes!("../../assets/countries.bin");
const UNITS_PER_DEGREE: f64 = 1000.0;
/// Distance at which coasts are sampled: about 5 km.
const COAST_STEP_DEGREES: f64 = 0.05;

/// Polygons of rings of points [longitude, latitude].
type Polygons = Vec<Vec<Vec<[f64; 2]>>>;

/// A country of Natural Earth, with its codes, its name and its outline.
#[derive(Debug)]
pub struct Country {
    code: String,
    long_code: String,
    name: String,
    other_names: Vec<String>,
    polygons: Polygons,
    area: OnceLock<Area>,
}

/// No country has that name or code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownCountry {
    /// There is no country of that name or code.
    #[error("there is no country `{name}`{}", .nearest.as_ref().map(|near| format!(" (did you mean {near}?)")).unwrap_or_default())]
    Name {
        /// The name that is unknown.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// Several countries match the name.
    #[error("`{name}` can be {candidates}: use one of these names")]
    Ambiguous {
        /// The ambiguous name.
        name: String,
        /// What may have been meant.
        candidates: String,
    },
    /// Known, but at the scale of our map it has no outline of its own.
    #[error(
        "{0} has no outline of its own in Natural Earth 1:10m: give a box, a circle or a file of polygons"
    )]
    NoOutline(String),
}

static COUNTRIES: LazyLock<Vec<Country>> = LazyLock::new(read);
static LAND: LazyLock<Area> = LazyLock::new(|| {
    let polygons = COUNTRIES.iter().flat_map(|country| country.polygons.clone()).collect();
    Area::Polygons(MultiPolygon::new(polygons).expect("tested"))
});

/// Points on the outlines of each country, as vectors, and its number.
static COASTS: LazyLock<Vec<(Vec<[f32; 3]>, usize)>> = LazyLock::new(|| {
    let points = |country: &Country| country.coast().map(|[x, y]| unit(x, y)).collect();
    COUNTRIES.iter().enumerate().map(|(number, country)| (points(country), number)).collect()
});

impl Country {
    /// Two letters (ISO 3166-1 alpha-2).
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Its English name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Land of the country.
    pub fn area(&self) -> &Area {
        self.area.get_or_init(|| {
            Area::Polygons(MultiPolygon::new(self.polygons.clone()).expect("tested"))
        })
    }

    /// Points [longitude, latitude] on its outlines, not more than about [`COAST_STEP_DEGREES`] apart.
    fn coast(&self) -> impl Iterator<Item = [f64; 2]> {
        self.polygons.iter().filter_map(|rings| rings.first()).flat_map(|ring| {
            let next = ring.iter().cycle().skip(1);
            ring.iter().zip(next).flat_map(|(from, to)| {
                let longest = (to[0] - from[0]).abs().max((to[1] - from[1]).abs());
                let parts = (longest / COAST_STEP_DEGREES).ceil().max(1.0) as usize;
                (0..parts).map(move |k| {
                    let share = k as f64 / parts as f64;
                    [0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis]))
                })
            })
        })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        [&self.name].into_iter().chain(&self.other_names).map(String::as_str)
    }
}

/// The land of all countries, and Antarctica.
pub fn land_area() -> &'static Area {
    &LAND
}

/// The rings of all countries, exteriors and holes.
pub fn outlines() -> impl Iterator<Item = Vec<LatLon>> {
    let rings = COUNTRIES.iter().flat_map(|country| country.polygons.iter().flatten());
    rings.map(|ring| {
        let point = |[longitude, latitude]: &[f64; 2]| LatLon::new(*latitude, *longitude).ok();
        ring.iter().filter_map(point).collect()
    })
}

/// The country with a name or a code of two or three letters, in any case.
pub fn find(name: &str) -> Result<&'static Country, UnknownCountry> {
    let wanted = plain(name);
    let codes = |country: &&Country| {
        [&country.code, &country.long_code].iter().any(|code| code.eq_ignore_ascii_case(name))
    };
    let names = |country: &&Country| country.names().any(|known| plain(known) == wanted);
    let named: Vec<&Country> = COUNTRIES.iter().filter(names).collect();
    match COUNTRIES.iter().find(codes).or_else(|| named.first().copied()) {
        Some(_) if named.len() > 1 => {
            let names: Vec<&str> = named.iter().map(|country| country.name()).collect();
            Err(UnknownCountry::Ambiguous { name: name.to_owned(), candidates: names.join(" or ") })
        }
        Some(country) if country.polygons.is_empty() => {
            Err(UnknownCountry::NoOutline(country.name.clone()))
        }
        Some(country) => Ok(country),
        None => Err(UnknownCountry::Name { name: name.to_owned(), nearest: nearest_name(&wanted) }),
    }
}

/// The country of a place on land.
pub(crate) fn country_at(place: LatLon) -> Option<&'static Country> {
    let mut countries = COUNTRIES.iter().filter(|country| !country.polygons.is_empty());
    countries.find(|country| country.area().contains(place))
}

/// The country whose coast is nearest, and how far away it is.
pub(crate) fn nearest_coast(place: LatLon) -> (&'static Country, f64) {
    let here = unit(place.longitude(), place.latitude());
    let mut nearest = (f32::MIN, 0);
    for (points, number) in COASTS.iter() {
        let dot = |[x, y, z]: &[f32; 3]| x * here[0] + y * here[1] + z * here[2];
        let highest = points.iter().map(dot).fold(f32::MIN, f32::max);
        if highest > nearest.0 {
            nearest = (highest, *number);
        }
    }
    // Cosines of f32 are too coarse for short distances: only the country is taken from them.
    let country = &COUNTRIES[nearest.1];
    let km = |[longitude, latitude]: [f64; 2]| {
        LatLon::new(latitude, longitude).map_or(f64::INFINITY, |point| point.distance_km(place))
    };
    (country, country.coast().map(km).fold(f64::INFINITY, f64::min))
}

fn unit(longitude: f64, latitude: f64) -> [f32; 3] {
    let (latitude, longitude) = (latitude.to_radians(), longitude.to_radians());
    let vector =
        [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()];
    vector.map(|number| number as f32)
}

/// Whether the country with a two-letter code has polygons of its own.
pub(crate) fn has_outline(code: &str) -> bool {
    COUNTRIES.iter().any(|country| country.code == code && !country.polygons.is_empty())
}

/// The name of a country by its two-letter code.
pub(crate) fn name_of_code(code: &str) -> Option<&'static str> {
    COUNTRIES.iter().find(|country| country.code == code).map(Country::name)
}

/// Letters and digits only, in lower case, without the commonest accents.
fn plain(name: &str) -> String {
    let letter = |c: char| match c {
        'à'..='å' => 'a',
        'ç' => 'c',
        'è'..='ë' => 'e',
        'ì'..='ï' => 'i',
        'ñ' => 'n',
        'ò'..='ö' => 'o',
        'ù'..='ü' => 'u',
        c => c,
    };
    let name = name.to_lowercase();
    let name = name.strip_prefix("the ").unwrap_or(&name);
    name.chars().map(letter).filter(|c| c.is_alphanumeric()).collect()
}

/// The name that is written most like it, if any is.
fn nearest_name(wanted: &str) -> Option<String> {
    let all = COUNTRIES.iter().flat_map(|country| country.names().map(move |name| (country, name)));
    let scored = all.map(|(country, name)| (strsim::levenshtein(wanted, &plain(name)), country));
    let (edits, country) = scored.min_by_key(|(edits, _)| *edits)?;
    (edits <= 1 + wanted.chars().count() / 5).then(|| country.name.clone())
}

fn read() -> Vec<Country> {
    let mut file = File { bytes: FILE };
    (0..file.unsigned())
        .map(|_| {
            let [code, long_code, name, others] = std::array::from_fn(|_| file.text());
            let polygons =
                (0..file.unsigned()).map(|_| (0..file.unsigned()).map(|_| file.ring()).collect());
            Country {
                polygons: polygons.collect(),
                other_names: others.split('|').filter(|n| !n.is_empty()).map(Into::into).collect(),
                code,
                long_code,
                name,
                area: OnceLock::new(),
            }
        })
        .collect()
}

struct File {
    bytes: &'static [u8],
}

impl File {
    /// The next LEB128 number.
    fn unsigned(&mut self) -> usize {
        let mut value = 0;
        for position in 0.. {
            let (&byte, rest) = self.bytes.split_first().expect("the file is whole: tested");
            self.bytes = rest;
            value |= usize::from(byte & 127) << (7 * position);
            if byte < 128 {
                break;
            }
        }
        value
    }

    fn signed(&mut self) -> i64 {
        let zigzag = self.unsigned() as i64;
        (zigzag >> 1) ^ -(zigzag & 1)
    }

    fn text(&mut self) -> String {
        let length = self.unsigned();
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    fn ring(&mut self) -> Vec<[f64; 2]> {
        let (mut latitude, mut longitude) = (0, 0);
        (0..self.unsigned())
            .map(|_| {
                latitude += self.signed();
                longitude += self.signed();
                [longitude, latitude].map(|units| units as f64 / UNITS_PER_DEGREE)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area_km2(name: &str) -> f64 {
        find(name).expect(name).area().area_km2()
    }

    #[test]
    fn countries_have_about_the_size_that_is_printed_everywhere() {
        for (name, million_km2) in [
            ("Russia", 17.1),
            ("Canada", 9.98),
            ("BR", 8.51),
            ("AUS", 7.7),
            ("Fiji", 0.0183),
            ("Antarctica", 13.5),
            ("Iceland", 0.103),
        ] {
            let ratio = area_km2(name) / (million_km2 * 1e6);
            assert!((0.9..1.1).contains(&ratio), "{name}: {ratio}");
        }
        let land = land_area().area_km2();
        assert!((land / 148.9e6 - 1.0).abs() < 0.03, "{land}");
    }

    #[test]
    fn every_outline_is_valid_and_no_two_share_a_place() {
        let areas: Vec<&Country> =
            COUNTRIES.iter().filter(|country| !country.polygons.is_empty()).collect();
        assert!(areas.len() > 230, "{}", areas.len());
        let sum: f64 = areas.iter().map(|country| country.area().area_km2()).sum();
        assert!((sum / land_area().area_km2() - 1.0).abs() < 1e-9);
        for (latitude, longitude, code) in
            [(46.8, 8.2, "CH"), (-29.5, 28.3, "LS"), (42.6, 20.9, "XK"), (43.94, 12.45, "SM")]
        {
            let place = LatLon::new(latitude, longitude).expect("a place");
            let holders: Vec<&str> = areas
                .iter()
                .filter(|country| country.area().contains(place))
                .map(|country| country.code())
                .collect();
            assert_eq!(holders, [code]);
        }
    }

    #[test]
    fn coasts_are_as_far_as_they_are() {
        // Hurghada's sea; the middle of the North Sea; the South Atlantic; off Antarctica.
        for (latitude, longitude, name, km) in [
            (27.2, 34.15, "Egypt", 30.0),
            (56.0, 3.0, "United Kingdom", 300.0),
            (-20.0, -20.0, "Brazil", 974.0),
            (-62.0, 100.0, "Antarctica", 400.0),
        ] {
            let place = LatLon::new(latitude, longitude).expect("a place");
            let (country, found) = nearest_coast(place);
            let ratio = found / km;
            assert!(
                country.name() == name && (0.7..1.4).contains(&ratio),
                "{} {found}",
                country.name()
            );
        }
    }

    #[test]
    fn every_country_has_a_continent() {
        let without: Vec<&str> = COUNTRIES
            .iter()
            .filter(|country| crate::geography::Continent::of_country(&country.code).is_none())
            .map(|country| country.name())
            .collect();
        assert_eq!(without, [""; 0]);
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for (name, code) in [
            ("cote d'ivoire", "CI"),
            ("Côte d’Ivoire", "CI"),
            ("The Netherlands", "NL"),
            ("united states", "US"),
            ("UNITED KINGDOM", "GB"),
            ("gbr", "GB"),
            ("Czechia", "CZ"),
            ("South Korea", "KR"),
            ("kosovo", "XK"),
        ] {
            assert_eq!(find(name).map(Country::code), Ok(code), "{name}");
        }
        let error = find("Germny").expect_err("a slip").to_string();
        assert!(error.contains("did you mean Germany?"), "{error}");
        assert!(matches!(find("Congo"), Err(UnknownCountry::Ambiguous { .. })));
        assert_eq!(find("CG").map(Country::code), Ok("CG"));
        assert!(matches!(find("Réunion"), Err(UnknownCountry::NoOutline(_))));
    }
}
