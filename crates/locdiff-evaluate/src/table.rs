//! Places by image, from whatever table others write.
//!
//! Fields are separated by commas, tabs, semicolons or blanks, whichever the first line has most of.
//! Columns are found by their names, in any case: GeoCLIP's `IMG_FILE,LAT,LON` or `IMG_ID`, plonk's and
//! OSV-5M's `photo_id` or `id` with `latitude` and `longitude`, GeoEstimation's `img_id,gt_lat,predicted_lat,…`
//! (answers and truth in one file), `locdiff predict --csv` (rank 1 counts), or plain. Without a heading,
//! columns are latitude and longitude, maybe after the image. Degrees, unless stated otherwise.

use std::collections::HashMap;
use std::f64::consts::PI;
use std::fs;
use std::path::Path;

use locdiff_sphere::{DensityOutcome, LatLon};

use super::columns::{Columns, plain_name, separator, without_heading};
use super::error::EvaluationError;

/// What the places of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Answers of a model.
    Answers,
    /// Where images were really taken.
    Truth,
}

/// What latitudes and longitudes are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Units {
    /// Numbers are degrees.
    #[default]
    Degrees,
    /// As plonk has them inside.
    Radians,
}

/// Place and scores of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceRow {
    /// Its name, if the table has names.
    pub image: Option<String>,
    /// Its place; none if both numbers are empty or no numbers (`nan`), as after a failure.
    pub place: Option<LatLon>,
    /// Scores of the answer's density at the truth, if the table has them.
    pub outcome: Option<DensityOutcome>,
}

/// Places that were read from a table, by image.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceTable {
    /// One row for each image.
    pub rows: Vec<PlaceRow>,
    /// The columns that were read, for people.
    pub columns: String,
    /// Every number looks like radians, though degrees were expected.
    pub looks_like_radians: bool,
    has_truth_too: bool,
}

impl PlaceTable {
    /// Reads a table in any of the formats that are recognized.
    pub fn read(path: &Path, role: Role, units: Units) -> Result<PlaceTable, EvaluationError> {
        let bytes = fs::read(path).map_err(EvaluationError::file(path))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| EvaluationError::table(path, "it is not UTF-8 text"))?;
        PlaceTable::parse(&text, role, units).map_err(|reason| EvaluationError::table(path, reason))
    }

    /// A table of places that are known by name.
    pub fn of_places(places: impl Iterator<Item = (String, LatLon)>) -> PlaceTable {
        let row =
            |(image, place)| PlaceRow { image: Some(image), place: Some(place), outcome: None };
        PlaceTable {
            rows: places.map(row).collect(),
            columns: "image, latitude, longitude".to_owned(),
            looks_like_radians: false,
            has_truth_too: false,
        }
    }

    /// Whether a table of answers also holds the true places.
    pub fn has_truth_too(&self) -> bool {
        self.has_truth_too
    }

    /// Whether rows are named.
    pub fn has_images(&self) -> bool {
        self.rows.iter().all(|row| row.image.is_some())
    }

    /// Whether every row with a place has the scores of its density.
    pub fn has_outcomes(&self) -> bool {
        let mut placed = self.rows.iter().filter(|row| row.place.is_some()).peekable();
        placed.peek().is_some() && placed.all(|row| row.outcome.is_some())
    }

    /// Reads a text; an error has the number of the line.
    pub(crate) fn parse(text: &str, role: Role, units: Units) -> Result<PlaceTable, String> {
        // numpy writes its heading as a comment.
        let text = text.trim_start_matches('\u{feff}').trim_start_matches("# ");
        let first = text.lines().next().unwrap_or_default();
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .delimiter(separator(first))
            .from_reader(text.as_bytes());
        let mut records = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            // Blanks at the ends of lines are no fields.
            records.push(record);
        }
        let heading = records.first().ok_or("it is empty")?;
        let names: Vec<String> = heading.iter().map(plain_name).collect();
        let (columns, described, first_row) = match without_heading(heading) {
            Some(columns) => (columns, "no heading: latitude, longitude".to_owned(), 0),
            None => {
                let columns = Columns::find(&names, role)?;
                let described = columns.described(heading);
                (columns, described, 1)
            }
        };
        let mut rows = Rows::default();
        for record in &records[first_row..] {
            let line = record.position().map_or(0, csv::Position::line);
            rows.add(record, &columns, units).map_err(|reason| format!("line {line}: {reason}"))?;
        }
        if rows.rows.is_empty() {
            return Err("it has no rows".to_owned());
        }
        Ok(PlaceTable {
            looks_like_radians: units == Units::Degrees && look_like_radians(&rows.rows),
            rows: rows.rows,
            columns: described,
            has_truth_too: columns.has_truth_too,
        })
    }
}

/// Rows so far; of an image with ranked answers, the best one.
#[derive(Default)]
struct Rows {
    rows: Vec<PlaceRow>,
    by_image: HashMap<String, (usize, f64)>,
}

impl Rows {
    fn add(
        &mut self,
        record: &csv::StringRecord,
        columns: &Columns,
        units: Units,
    ) -> Result<(), String> {
        let field = |column: usize| record.get(column).unwrap_or_default();
        let image = columns.image.map(field).map(str::to_owned);
        if image.as_deref() == Some("") {
            return Err("the image has no name".to_owned());
        }
        let rank = match columns.rank.map(field).filter(|rank| !rank.is_empty()) {
            None => 0.0,
            Some(rank) => rank.parse().map_err(|_| format!("`{rank}` is not a rank"))?,
        };
        let place = place(field(columns.latitude), field(columns.longitude), units)?;
        let outcome = columns.outcome.map(|columns| outcome(columns.map(field))).transpose()?;
        let row = PlaceRow { image: image.clone(), place, outcome: outcome.flatten() };
        let Some(image) = image else {
            self.rows.push(row);
            return Ok(());
        };
        match self.by_image.get_mut(&image) {
            None => {
                self.by_image.insert(image, (self.rows.len(), rank));
                self.rows.push(row);
            }
            Some((number, best)) if columns.rank.is_some() && rank != *best => {
                if rank < *best {
                    *best = rank;
                    self.rows[*number] = row;
                }
            }
            Some(_) => return Err(format!("`{image}` occurs twice")),
        }
        Ok(())
    }
}

fn place(latitude: &str, longitude: &str, units: Units) -> Result<Option<LatLon>, String> {
    let number = |text: &str| match text {
        "" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(number) if number.is_nan() => Ok(None),
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("`{text}` is not a number of degrees")),
        },
    };
    let in_degrees = |number: f64| match units {
        Units::Degrees => number,
        Units::Radians => number.to_degrees(),
    };
    match (number(latitude)?, number(longitude)?) {
        (None, None) => Ok(None),
        (Some(latitude), Some(longitude)) => {
            LatLon::new(in_degrees(latitude), in_degrees(longitude))
                .map(Some)
                .map_err(|error| error.to_string())
        }
        _ => Err("only one of latitude and longitude is given".to_owned()),
    }
}

fn outcome(fields: [&str; 3]) -> Result<Option<DensityOutcome>, String> {
    if fields.iter().all(|field| field.is_empty()) {
        return Ok(None);
    }
    let mut numbers = [0.0; 3];
    for (number, text) in numbers.iter_mut().zip(fields) {
        *number = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    }
    let [nll_nats, level, searched_area_km2] = numbers;
    Ok(Some(DensityOutcome { nll_nats, level, searched_area_km2 }))
}

/// Twenty places or more, none farther than π/2 from the equator nor than π from Greenwich.
fn look_like_radians(rows: &[PlaceRow]) -> bool {
    let mut places = rows.iter().filter_map(|row| row.place);
    let small = |place: LatLon| {
        place.latitude().abs() <= 0.5 * PI + 1e-6 && place.longitude().abs() <= PI + 1e-6
    };
    rows.iter().filter(|row| row.place.is_some()).count() >= 20 && places.all(small)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(text: &str) -> Result<PlaceTable, String> {
        PlaceTable::parse(text, Role::Answers, Units::Degrees)
    }

    type Row<'a> = (Option<&'a str>, Option<(f64, f64)>);

    fn places(table: &PlaceTable) -> Vec<Row<'_>> {
        let row = |row: &PlaceRow| row.place.map(|place| (place.latitude(), place.longitude()));
        table
            .rows
            .iter()
            .zip(table.rows.iter().map(row))
            .map(|(r, p)| (r.image.as_deref(), p))
            .collect()
    }

    #[test]
    fn every_usual_heading_is_understood() {
        let expected = vec![(Some("a.jpg"), Some((1.5, -2.0)))];
        for text in [
            "image,latitude,longitude\na.jpg,1.5,-2\n",
            "IMG_FILE,LAT,LON\na.jpg,1.5,-2\n",
            "IMG_ID,AUTHOR,LAT,LON,S3_Label\na.jpg,x,1.5,-2,1\n",
            "photo_id\tlongitude\tlatitude\taccuracy\na.jpg\t-2\t1.5\t16\n",
            "id;lat;lng\na.jpg;1.5;-2\n",
            "img_id,gt_lat,predicted_lat,gt_long,predicted_long,great_circle_distance\na.jpg,9,1.5,9,-2,3\n",
            "filename,lat_pred,lon_pred\r\na.jpg, 1.5, -2\r\n",
            "\u{feff}Image,Latitude,Longitude\n\"a.jpg\",1.5,-2\n",
            "a.jpg,1.5,-2\n",
            "image,rank,latitude,longitude,error\na.jpg,2,9,9,\na.jpg,1,1.5,-2,\n",
        ] {
            assert_eq!(places(&answers(text).expect(text)), expected, "{text}");
        }
        let truth = "img_id,gt_lat,predicted_lat,gt_long,predicted_long\na.jpg,1.5,9,-2,9\n";
        let truth = PlaceTable::parse(truth, Role::Truth, Units::Degrees).expect("a table");
        assert_eq!(places(&truth), expected);
        assert!(truth.has_truth_too());
    }

    #[test]
    fn arrays_without_names_are_read_in_their_order() {
        for text in [
            "1.5,-2\n90,180\n",
            "1.500000000000000000e+00 -2.000000000000000000e+00\n9e+01 1.8e+02\n",
            "# latitude,longitude\n1.5,-2\n90,180\n",
        ] {
            let table = answers(text).expect(text);
            assert_eq!(places(&table), [(None, Some((1.5, -2.0))), (None, Some((90.0, -180.0)))]);
            assert!(!table.has_images());
        }
        let radians = PlaceTable::parse("1.5707963267948966,0\n", Role::Answers, Units::Radians);
        assert_eq!(places(&radians.expect("a table")), [(None, Some((90.0, 0.0)))]);
        let many: String = (0..30).map(|i| format!("{},0.5\n", 0.01 * f64::from(i))).collect();
        assert!(answers(&many).expect("a table").looks_like_radians);
    }

    #[test]
    fn failures_are_no_answers_and_mistakes_have_a_line() {
        let table = answers("image,latitude,longitude\na,,\nb,nan,nan\nc,0,0\n").expect("a table");
        let answered: Vec<bool> = table.rows.iter().map(|row| row.place.is_some()).collect();
        assert_eq!(answered, [false, false, true]);
        for (text, reason) in [
            ("image,latitude,longitude\na,91,0\n", "line 2: latitude 91 is not between"),
            ("image,latitude,longitude\na,1,0\na,1,0\n", "line 3: `a` occurs twice"),
            ("image,latitude,longitude\na,1,\n", "line 2: only one of latitude and longitude"),
            ("image,latitude,longitude\na,north,0\n", "line 2: `north` is not a number"),
            ("image,latitude,longitude\n", "it has no rows"),
            (
                "image,latitude\na,1\n",
                "it has no columns for latitude and longitude; its columns are image, latitude",
            ),
            ("", "it is empty"),
        ] {
            let error = answers(text).expect_err(text);
            assert!(error.starts_with(reason), "{error}");
        }
    }

    #[test]
    fn densities_of_others_are_read_too() {
        let table = answers(
            "image,latitude,longitude,nll_nats,level,searched_area_km2\na,1,2,-3.5,0.25,1e4\nb,,,,,\n",
        );
        let table = table.expect("a table");
        let outcome = DensityOutcome { nll_nats: -3.5, level: 0.25, searched_area_km2: 1e4 };
        assert_eq!(table.rows[0].outcome, Some(outcome));
        assert!(table.has_outcomes());
    }
}
