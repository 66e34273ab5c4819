//! Which answer belongs to which image, and what becomes of images without one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use locdiff_sphere::{DensityOutcome, EARTH_RADIUS_KM, LatLon, UNIFORM_NLL_NATS};

use super::error::EvaluationError;
use super::table::{PlaceRow, PlaceTable};

/// How answers found their images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Matching {
    /// By the whole name of the image.
    Name,
    /// By the name without folders.
    FileName,
    /// By the name without folders and ending, as ids often are.
    Stem,
    /// By their order: the answers have no names.
    Order,
}

impl Matching {
    /// Words for a report.
    pub fn described(self) -> &'static str {
        match self {
            Matching::Name => "by name",
            Matching::FileName => "by file name, folders left aside",
            Matching::Stem => "by file name, folders and endings left aside",
            Matching::Order => "by order, as the answers have no names",
        }
    }

    fn key(self, name: &str) -> String {
        // A path of any system: Windows' separators too.
        let name = name.replace('\\', "/");
        let part = match self {
            Matching::Name | Matching::Order => None,
            Matching::FileName => Path::new(&name).file_name(),
            Matching::Stem => Path::new(&name).file_stem(),
        };
        part.map_or(name.clone(), |part| part.to_string_lossy().into_owned())
    }
}

/// What becomes of images without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Missing {
    /// There are no scores. The default: leaving images out silently is how scores become incomparable.
    #[default]
    Refuse,
    /// They are left out, and counted.
    Skip,
    /// They count as the worst answer: the antipode of the truth, and a uniform density.
    Worst,
}

/// Every image of the truth, with its answer if there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    /// Names of the images.
    pub images: Vec<String>,
    /// Where they were taken.
    pub truth: Vec<LatLon>,
    /// Place and, if known, density at the truth; none if the image has no answer.
    pub answers: Vec<Option<(LatLon, Option<DensityOutcome>)>>,
    /// How answers found their images.
    pub matching: Matching,
    /// Answers for images that aren't in the truth.
    pub unknown: usize,
}

/// Images that are scored.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Names of the images.
    pub images: Vec<String>,
    /// Where they were taken.
    pub truth: Vec<LatLon>,
    /// Where they were taken by the model's prediction.
    pub predicted: Vec<LatLon>,
    /// Of each image, whether the model has answered; if not, `predicted` is the antipode.
    pub is_answered: Vec<bool>,
    /// Likelihood and coverage at the truth, if there are densities.
    pub outcomes: Option<Vec<DensityOutcome>>,
    /// Images of the test set, scored or not.
    pub images_in_all: usize,
}

/// Finds the answer to each image of the truth.
pub fn pair(answers: &PlaceTable, truth: &PlaceTable) -> Result<Pairs, EvaluationError> {
    let answer = |row: &PlaceRow| row.place.map(|place| (place, row.outcome));
    let placed: Vec<(&PlaceRow, LatLon)> =
        truth.rows.iter().filter_map(|row| Some((row, row.place?))).collect();
    let true_places: Vec<LatLon> = placed.iter().map(|(_, place)| *place).collect();
    if !answers.has_images() || !truth.has_images() {
        let (rows, images) = (answers.rows.len(), truth.rows.len());
        if rows != images || placed.len() != images {
            return Err(EvaluationError::Order { answers: rows, images: placed.len() });
        }
        let name = |(number, row): (usize, &PlaceRow)| {
            row.image.clone().unwrap_or_else(|| format!("row {}", number + 1))
        };
        return Ok(Pairs {
            images: truth.rows.iter().enumerate().map(name).collect(),
            truth: true_places,
            answers: answers.rows.iter().map(answer).collect(),
            matching: Matching::Order,
            unknown: 0,
        });
    }
    let name = |row: &PlaceRow| row.image.clone().unwrap_or_default();
    let images: Vec<String> = placed.iter().map(|(row, _)| name(row)).collect();
    let names: Vec<String> = answers.rows.iter().map(name).collect();
    let mut best: Option<(Matching, Vec<Option<usize>>, usize)> = None;
    for matching in [Matching::Name, Matching::FileName, Matching::Stem] {
        let Some(found) = matches(&images, &names, matching) else { continue };
        let count = found.iter().flatten().count();
        if best.as_ref().is_none_or(|(_, _, most)| count > *most) {
            best = Some((matching, found, count));
        }
        if count == images.len() {
            break;
        }
    }
    let (matching, found, count) = best.filter(|(_, _, count)| *count > 0).ok_or_else(|| {
        let first = |names: &[String]| names.first().cloned().unwrap_or_default();
        EvaluationError::NothingMatches { answer: first(&names), image: first(&images) }
    })?;
    let of_image = |number: Option<usize>| number.and_then(|number| answer(&answers.rows[number]));
    Ok(Pairs {
        answers: found.into_iter().map(of_image).collect(),
        images,
        truth: true_places,
        matching,
        unknown: names.len() - count,
    })
}

/// The number of the answer to each image; `None` if names are ambiguous under this rule.
fn matches(images: &[String], names: &[String], matching: Matching) -> Option<Vec<Option<usize>>> {
    let mut numbers = HashMap::new();
    for (number, name) in names.iter().enumerate() {
        match numbers.entry(matching.key(name)) {
            Entry::Vacant(entry) => entry.insert(number),
            Entry::Occupied(_) => return None,
        };
    }
    let keys: Vec<String> = images.iter().map(|image| matching.key(image)).collect();
    let mut sorted: Vec<&String> = keys.iter().collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    Some(keys.iter().map(|key| numbers.get(key).copied()).collect())
}

impl Pairs {
    /// The truth by itself, for another model's answers to the same images.
    pub fn truth_table(&self) -> PlaceTable {
        let rows = self.images.iter().zip(&self.truth);
        PlaceTable::of_places(rows.map(|(image, place)| (image.clone(), *place)))
    }

    /// Number of images without an answer.
    pub fn missing(&self) -> usize {
        self.answers.iter().filter(|answer| answer.is_none()).count()
    }

    /// Takes the answers away to which the other model has none, and the other way round, so that both are
    /// scored on the same images if those without answers are left out.
    pub fn keep_common(&mut self, other: &mut Pairs) {
        for (ours, theirs) in self.answers.iter_mut().zip(&mut other.answers) {
            if ours.is_none() || theirs.is_none() {
                (*ours, *theirs) = (None, None);
            }
        }
    }

    /// What readers should know about how answers found their images.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.matching != Matching::Name {
            notes.push(format!("answers were matched with images {}", self.matching.described()));
        }
        if self.unknown > 0 {
            notes.push(format!("{} answers are for images that aren't in the truth", self.unknown));
        }
        notes
    }

    /// The answers as a table that can be read again, densities included: numbers are not rounded.
    pub fn to_csv(&self) -> String {
        let has_densities = self.answers.iter().flatten().any(|(_, outcome)| outcome.is_some());
        let mut writer = csv::Writer::from_writer(Vec::new());
        let columns = ["image", "latitude", "longitude", "nll_nats", "level", "searched_area_km2"];
        let width = if has_densities { columns.len() } else { 3 };
        // Into memory: it can't fail.
        let _ = writer.write_record(&columns[..width]);
        for (image, answer) in self.images.iter().zip(&self.answers) {
            let mut row = vec![image.clone()];
            if let Some((place, outcome)) = answer {
                row.extend([place.latitude().to_string(), place.longitude().to_string()]);
                row.extend(outcome.iter().flat_map(|outcome| {
                    let DensityOutcome { nll_nats, level, searched_area_km2 } = outcome;
                    [nll_nats, level, searched_area_km2].map(|number| number.to_string())
                }));
            }
            row.resize(width, String::new());
            let _ = writer.write_record(row);
        }
        let bytes = writer.into_inner().unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The images to be scored.
    pub fn answered(&self, missing: Missing) -> Result<Answered, EvaluationError> {
        let images_in_all = self.images.len();
        if let (Missing::Refuse, Some(first)) =
            (missing, self.answers.iter().position(Option::is_none))
        {
            return Err(EvaluationError::Missing {
                missing: self.missing(),
                images: images_in_all,
                first: self.images[first].clone(),
            });
        }
        let has_densities = self.answers.iter().flatten().all(|(_, outcome)| outcome.is_some());
        let mut scored = Answered {
            images: Vec::new(),
            truth: Vec::new(),
            predicted: Vec::new(),
            is_answered: Vec::new(),
            outcomes: has_densities.then(Vec::new),
            images_in_all,
        };
        for ((image, truth), answer) in self.images.iter().zip(&self.truth).zip(&self.answers) {
            let (predicted, outcome) = match (answer, missing) {
                (Some((place, outcome)), _) => (*place, *outcome),
                (None, Missing::Worst) => (antipode(*truth), Some(ignorance())),
                (None, _) => continue,
            };
            scored.images.push(image.clone());
            scored.truth.push(*truth);
            scored.predicted.push(predicted);
            scored.is_answered.push(answer.is_some());
            if let (Some(outcomes), Some(outcome)) = (&mut scored.outcomes, outcome) {
                outcomes.push(outcome);
            }
        }
        Ok(scored)
    }
}

fn antipode(place: LatLon) -> LatLon {
    LatLon::new(-place.latitude(), place.longitude() + 180.0).unwrap_or(place)
}

/// The uniform density: the whole Earth must be searched.
fn ignorance() -> DensityOutcome {
    let earth_km2 = 4.0 * std::f64::consts::PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM;
    DensityOutcome { nll_nats: UNIFORM_NLL_NATS, level: 1.0, searched_area_km2: earth_km2 }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Role, Units};
    use super::*;

    fn table(text: &str, role: Role) -> PlaceTable {
        PlaceTable::parse(text, role, Units::Degrees).expect(text)
    }

    fn pairs(answers: &str, truth: &str) -> Result<Pairs, EvaluationError> {
        pair(&table(answers, Role::Answers), &table(truth, Role::Truth))
    }

    const TRUTH: &str = "IMG_ID,LAT,LON\nx/1.jpg,10,20\ny/2.jpg,-10,180\n";

    #[test]
    fn answers_find_their_images_in_any_order_and_by_any_name() {
        for (answers, matching) in [
            ("image,lat,lon\ny/2.jpg,-10,179\nx/1.jpg,10,21\n", Matching::Name),
            ("image,lat,lon\n/data/2.jpg,-10,179\n/data/1.jpg,10,21\n", Matching::FileName),
            ("image,lat,lon\nC:\\data\\2.jpg,-10,179\nC:\\data\\1.jpg,10,21\n", Matching::FileName),
            ("id,latitude,longitude\n2,-10,179\n1,10,21\n", Matching::Stem),
            ("10,21\n-10,179\n", Matching::Order),
        ] {
            let pairs = pairs(answers, TRUTH).expect(answers);
            assert_eq!(pairs.matching, matching);
            let scored = pairs.answered(Missing::Refuse).expect("all answered");
            let longitudes: Vec<f64> = scored.predicted.iter().map(|p| p.longitude()).collect();
            assert_eq!(longitudes, [21.0, 179.0]);
            assert_eq!(scored.images, ["x/1.jpg", "y/2.jpg"]);
        }
    }

    #[test]
    fn images_without_an_answer_are_never_left_out_silently() {
        let pairs = pairs("image,lat,lon\nx/1.jpg,10,21\nother.jpg,0,0\n", TRUTH).expect("pairs");
        assert_eq!((pairs.missing(), pairs.unknown), (1, 1));
        let error = pairs.answered(Missing::Refuse).expect_err("one is missing");
        assert!(
            error.to_string().starts_with("1 of 2 images have no answer, `y/2.jpg`"),
            "{error}"
        );
        let skipped = pairs.answered(Missing::Skip).expect("one is left");
        assert_eq!((skipped.images.len(), skipped.images_in_all), (1, 2));
        let worst = pairs.answered(Missing::Worst).expect("both");
        assert_eq!(worst.is_answered, [true, false]);
        let distance_km = worst.predicted[1].distance_km(worst.truth[1]);
        assert!((distance_km - std::f64::consts::PI * EARTH_RADIUS_KM).abs() < 1e-6);
    }

    #[test]
    fn answers_are_written_as_they_are_read() {
        let text = "image,latitude,longitude,nll_nats,level,searched_area_km2\n\
            \"x, 1.jpg\",10,20.000000000000004,-1.5,0.25,123\n2.jpg,,,,,\n";
        let truth = "image,latitude,longitude\n\"x, 1.jpg\",0,0\n2.jpg,0,0\n";
        let pairs = pairs(text, truth).expect("pairs");
        assert_eq!(pairs.to_csv(), text);
    }

    #[test]
    fn two_models_are_compared_on_images_that_both_answer() {
        let mut ours = pairs("image,lat,lon\nx/1.jpg,1,1\ny/2.jpg,,\n", TRUTH).expect("pairs");
        let mut theirs = pairs("image,lat,lon\nx/1.jpg,1,1\ny/2.jpg,2,2\n", TRUTH).expect("pairs");
        ours.keep_common(&mut theirs);
        assert_eq!((ours.missing(), theirs.missing()), (1, 1));
    }

    #[test]
    fn answers_to_other_questions_are_an_error_that_shows_both() {
        let error = pairs("image,lat,lon\nq.jpg,10,21\n", TRUTH).expect_err("nothing in common");
        assert!(error.to_string().contains("`q.jpg`") && error.to_string().contains("`x/1.jpg`"));
        let error = pairs("10,21\n", TRUTH).expect_err("too few");
        assert_eq!(
            error.to_string(),
            "1 answers without names, but 2 images: add a column of image names"
        );
        // Two folders with the same file names: only whole names will do.
        let truth = "image,lat,lon\na/1.jpg,0,0\nb/1.jpg,1,1\n";
        let pairs = pairs("image,lat,lon\nb/1.jpg,1,1\na/1.jpg,0,0\n", truth).expect("pairs");
        assert_eq!(pairs.matching, Matching::Name);
    }
}
