//! Where a photograph can only have been taken, as people write it: `--within`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use geojson::{GeoJson, Geometry, GeometryValue, Position};
use locdiff_sphere::{Area, InvalidArea, InvalidPlace, LatLon, MultiPolygon};

use super::countries::{self, Country, UnknownCountry};

/// A part of the Earth with a name.
///
/// ```
/// use locdiff::Constraint;
///
/// let country: Constraint = "Portugal".parse()?; // or PT, or PRT
/// let land: Constraint = "land".parse()?;
/// let circle: Constraint = "12.3,45.6,2500km".parse()?;
/// let south_west_north_east: Constraint = "35,-10,60,30".parse()?;
/// assert_eq!(circle.to_string(), "2500 km around 12.3,45.6");
/// # Ok::<(), locdiff::geography::InvalidConstraint>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    area: Area,
    name: String,
}

/// Why a text is no part of the Earth.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidConstraint {
    /// No country of that name, and nothing else either.
    #[error(
        "{0}. Other areas: `land`, SOUTH,WEST,NORTH,EAST, LATITUDE,LONGITUDE,RADIUSkm, \
         or a GeoJSON file of polygons"
    )]
    Country(#[from] UnknownCountry),
    /// Numbers that are no box and no circle.
    #[error(
        "`{0}` is not an area: write a box as SOUTH,WEST,NORTH,EAST, a circle as LATITUDE,LONGITUDE,RADIUSkm"
    )]
    Numbers(String),
    /// A box or circle that isn't one.
    #[error("`{text}`: {source}")]
    Area {
        /// The text of the constraint.
        text: String,
        /// Why the area is not valid.
        source: InvalidArea,
    },
    /// A circle around no place.
    #[error("`{text}`: {source}")]
    Place {
        /// The text of the constraint.
        text: String,
        /// Why the place is not valid.
        source: InvalidPlace,
    },
    /// A file that can't be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// Path of the GeoJSON file.
        path: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A file that isn't GeoJSON.
    #[error("{path} is not GeoJSON: {source}")]
    GeoJson {
        /// Path of the GeoJSON file.
        path: String,
        /// The parser's error.
        source: geojson::Error,
    },
    /// GeoJSON without polygons, or with broken ones.
    #[error("{path}: {source}")]
    Polygons {
        /// Path of the GeoJSON file.
        path: String,
        /// Why the polygons are not valid.
        source: InvalidArea,
    },
}

impl Constraint {
    /// An area and what it is called.
    pub fn new(area: Area, name: impl Into<String>) -> Constraint {
        Constraint { area, name: name.into() }
    }

    /// Restricts answers to the land of a country.
    pub fn country(country: &Country) -> Constraint {
        Constraint::new(country.area().clone(), country.name())
    }

    /// All land, Antarctica included.
    pub fn land() -> Constraint {
        Constraint::new(countries::land_area().clone(), "land")
    }

    /// The polygons in a GeoJSON file.
    pub fn from_file(path: &Path) -> Result<Constraint, InvalidConstraint> {
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| InvalidConstraint::File { path: name(), source })?;
        Constraint::from_geojson(&text, &name())
    }

    /// The polygons in the text of a GeoJSON document, under a name.
    pub fn from_geojson(text: &str, name: &str) -> Result<Constraint, InvalidConstraint> {
        let path = || name.to_owned();
        let json: GeoJson =
            text.parse().map_err(|source| InvalidConstraint::GeoJson { path: path(), source })?;
        let mut polygons = Vec::new();
        add_polygons(json, &mut polygons);
        let polygons = MultiPolygon::new(polygons)
            .map_err(|source| InvalidConstraint::Polygons { path: path(), source })?;
        Ok(Constraint::new(Area::Polygons(polygons), name))
    }

    /// As [`FromStr`], but never a file: for texts from strangers.
    pub fn from_words(text: &str) -> Result<Constraint, InvalidConstraint> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("land") {
            return Ok(Constraint::land());
        }
        if text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
            return from_numbers(text);
        }
        Ok(Constraint::country(countries::find(text)?))
    }

    /// The part of the Earth that answers are restricted to.
    pub fn area(&self) -> &Area {
        &self.area
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl FromStr for Constraint {
    type Err = InvalidConstraint;

    fn from_str(text: &str) -> Result<Constraint, InvalidConstraint> {
        let text = text.trim();
        let path = Path::new(text);
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let is_file = !text.eq_ignore_ascii_case("land") && path.is_file();
        if is_file || ["geojson", "json"].contains(&ending.to_ascii_lowercase().as_str()) {
            return Constraint::from_file(path);
        }
        Constraint::from_words(text)
    }
}

/// A circle of three numbers, the last with its unit, or a box of four.
fn from_numbers(text: &str) -> Result<Constraint, InvalidConstraint> {
    let neither = || InvalidConstraint::Numbers(text.to_owned());
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let number = |part: &str| part.parse::<f64>().map_err(|_| neither());
    let invalid = |source| InvalidConstraint::Area { text: text.to_owned(), source };
    match &parts[..] {
        [latitude, longitude, radius] => {
            let radius = radius.strip_suffix("km").ok_or_else(neither)?;
            let (latitude, longitude, radius) =
                (number(latitude)?, number(longitude)?, number(radius.trim_end())?);
            let centre = LatLon::new(latitude, longitude)
                .map_err(|source| InvalidConstraint::Place { text: text.to_owned(), source })?;
            let area = Area::circle(centre, radius).map_err(invalid)?;
            Ok(Constraint::new(area, format!("{radius} km around {latitude},{longitude}")))
        }
        [south, west, north, east] => {
            let [south, west, north, east] =
                [number(south)?, number(west)?, number(north)?, number(east)?];
            let area = Area::bounding_box(south, west, north, east).map_err(invalid)?;
            Ok(Constraint::new(area, format!("the box {south},{west},{north},{east}")))
        }
        _ => Err(neither()),
    }
}

/// Adds the polygons of a GeoJSON object; points and lines have no area.
fn add_polygons(json: GeoJson, polygons: &mut Vec<Rings>) {
    match json {
        GeoJson::Geometry(geometry) => add_geometry(geometry, polygons),
        GeoJson::Feature(feature) => {
            feature.geometry.into_iter().for_each(|geometry| add_geometry(geometry, polygons));
        }
        GeoJson::FeatureCollection(collection) => {
            let features = collection.features.into_iter();
            features.for_each(|feature| add_polygons(GeoJson::Feature(feature), polygons));
        }
    }
}

fn add_geometry(geometry: Geometry, polygons: &mut Vec<Rings>) {
    match geometry.value {
        GeometryValue::Polygon { coordinates } => polygons.push(rings(coordinates)),
        GeometryValue::MultiPolygon { coordinates } => {
            polygons.extend(coordinates.into_iter().map(rings));
        }
        GeometryValue::GeometryCollection { geometries } => {
            geometries.into_iter().for_each(|geometry| add_geometry(geometry, polygons));
        }
        _ => {}
    }
}

/// Longitudes and latitudes of a polygon, ring by ring; what may follow is a height.
type Rings = Vec<Vec<[f64; 2]>>;

fn rings(coordinates: Vec<Vec<Position>>) -> Rings {
    let position = |position: Position| {
        let number = |index: usize| position.as_slice().get(index).copied().unwrap_or(f64::NAN);
        [number(0), number(1)]
    };
    coordinates.into_iter().map(|ring| ring.into_iter().map(position).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(text: &str, latitude: f64, longitude: f64) -> bool {
        let constraint: Constraint = text.parse().expect(text);
        constraint.area().contains(LatLon::new(latitude, longitude).expect("a place"))
    }

    #[test]
    fn each_kind_holds_what_it_should() {
        assert!(contains("portugal", 38.72, -9.14) && !contains("PT", 40.42, -3.70));
        assert!(contains("USA", 64.84, -147.72) && contains("us", 21.31, -157.86));
        assert!(contains("Fiji", -16.8, -179.95) && contains("FJ", -17.7, 178.0));
        assert!(contains("Russia", 66.0, -172.0) && contains("Antarctica", -89.9, 10.0));
        assert!(contains("land", 48.86, 2.35) && !contains("land", 0.0, -30.0));
        assert!(contains("-33.87,151.21,100km", -33.5, 151.0));
        assert!(contains("-21,176.5,-12,-178", -16.8, -179.9));
        assert!(!contains("35,-10,60,30", 30.0, 0.0));
    }

    #[test]
    fn files_of_polygons_may_be_nested() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("area.geojson");
        let square = r#"{"type": "Polygon", "coordinates": [[[0, 0, 9], [10, 0, 9], [10, 10, 9], [0, 10, 9], [0, 0, 9]]]}"#;
        let text = format!(
            r#"{{"type": "FeatureCollection", "features": [{{"type": "Feature", "properties": {{}}, "geometry": {square}}},
            {{"type": "Feature", "geometry": null}}, {{"type": "Feature", "geometry": {{"type": "Point", "coordinates": [1, 2]}}}}]}}"#
        );
        std::fs::write(&path, text).expect("written");
        let name = path.to_str().expect("UTF-8");
        assert!(contains(name, 5.0, 5.0) && !contains(name, 5.0, 15.0));
        // Names that begin like numbers.
        let dated = folder.path().join("2024.json");
        std::fs::copy(&path, &dated).expect("copied");
        assert!(contains(dated.to_str().expect("UTF-8"), 5.0, 5.0));
        assert!(matches!(
            "./none.geojson".parse::<Constraint>(),
            Err(InvalidConstraint::File { .. })
        ));
        for (text, complaint) in [
            ("{", "not GeoJSON"),
            (r#"{"type": "Point"}"#, "no `coordinates`"),
            (r#"{"type": "Point", "coordinates": [1, 2]}"#, "no polygon"),
        ] {
            std::fs::write(&path, text).expect("written");
            let error = name.parse::<Constraint>().expect_err("no area").to_string();
            assert!(error.contains(complaint) && error.contains("area.geojson"), "{error}");
        }
    }

    #[test]
    fn words_are_never_files() {
        let file = tempfile::Builder::new().suffix(".geojson").tempfile().expect("a file");
        let name = file.path().to_str().expect("UTF-8");
        assert!(matches!(Constraint::from_words(name), Err(InvalidConstraint::Country(_))));
    }

    #[test]
    fn mistakes_are_told_with_what_would_be_right() {
        for (text, complaint) in [
            ("Atlantis", "no country `Atlantis`"),
            ("Portugl", "Portugal"),
            ("1,2", "a box as SOUTH,WEST,NORTH,EAST"),
            ("1,2,300", "RADIUSkm"),
            ("99,2,300km", "99"),
            ("60,-10,35,30", "swapped"),
            ("nowhere.geojson", "nowhere.geojson"),
        ] {
            let error = text.parse::<Constraint>().expect_err(text).to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
