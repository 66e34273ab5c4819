//! The one record of an answer: what `--json` prints, what the server sends, what GeoJSON and CSV take their
//! numbers from. `docs/answer.schema.json` describes it.

use locdiff_sphere::{Density, DensityRecord, LatLon, Survey};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::estimate::{Candidate, Estimate, Summary};
use super::footprint::Footprint;
use super::in_turn::ChosenBecause;
use super::inference::Inference;
use super::model::{Frame, ModelIdentity};
use super::reference::{Reference, references_near};
use crate::checksum::sha256;
use crate::geography::{Coast, PlaceName, place_name};
use crate::photo::Photo;

/// What a model makes of one image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Name, checksum and size of the image.
    pub image: ImageFacts,
    /// Always true: this is a prediction, not a fact.
    pub prediction: bool,
    /// Name and version of the model, and whether it is calibrated.
    pub model: ModelFacts,
    /// How the answer was computed.
    pub inference: Inference,
    /// What the model's training supports badly of that.
    pub warnings: Vec<String>,
    /// What the answer was restricted to.
    pub within: Vec<String>,
    /// The share of the unconstrained answer that lies there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<f64>,
    /// The file of the map that was drawn, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// The answer as one place, by `inference.decode`.
    pub place: PlaceFacts,
    /// Distinct places, the most probable first.
    pub candidates: Vec<CandidateFacts>,
    /// A circle of this radius around the place holds half of everything.
    pub radius_50_km: f64,
    /// Radius of the circle around the place that contains 90 %.
    pub radius_90_km: f64,
    /// The area of the smallest region that holds half of everything.
    pub area_50_km2: f64,
    /// Area of the smallest region that contains 90 %.
    pub area_90_km2: f64,
    /// Width of the kernel that spread points or samples: finer detail isn't known.
    pub kernel_km: Option<f64>,
    /// The ground that the image shows, if the model registered it against a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footprint: Option<FootprintFacts>,
    /// The best rows of a model that chooses among places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RowFacts>,
    /// The place that the camera recorded.
    pub exif: Option<ExifPlace>,
    /// The whole density, if asked for; not restricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub density: Option<DensityRecord>,
    /// Latitude and longitude of places drawn from the density, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<Vec<[f64; 2]>>,
    /// Steps of the denoising, if asked for and the model has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Vec<Frame>>,
}

/// What is known of an image without looking at it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImageFacts {
    /// As whoever asked named it.
    pub name: Option<String>,
    /// Of its bytes; missing if there are none.
    pub sha256: Option<String>,
    /// Size of the file in bytes.
    pub bytes: Option<usize>,
    /// Pixels, upright; missing if it could not be read.
    pub width: Option<u32>,
    /// Pixels, upright; missing if it could not be read.
    pub height: Option<u32>,
}

/// Identity of the model that answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFacts {
    /// Name, as `--model` takes it.
    pub name: String,
    /// Changes with whatever changes answers.
    pub version: String,
    /// Description of the model in a line.
    pub description: String,
    /// Whether masses are probabilities. If not, they are scores.
    pub calibrated: bool,
    /// What its numbers silently assume.
    pub prior: Option<String>,
    /// Why this model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_because: Option<String>,
}

/// A place with the name of what is there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaceFacts {
    /// Degrees.
    pub latitude: f64,
    /// Degrees.
    pub longitude: f64,
    /// Name of the place in words.
    #[serde(rename = "name")]
    pub words: String,
    /// Town, district and country.
    #[serde(flatten)]
    pub name: PlaceName,
}

/// A place that the image may show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateFacts {
    /// Coordinates and name of the top of the peak.
    #[serde(flatten)]
    pub place: PlaceFacts,
    /// The probability of the whole peak, or the model's score if it isn't calibrated.
    pub mass: f64,
    /// A circle of this radius around the place holds half as much.
    pub radius_km: f64,
    /// Photographs of a gallery that resemble the image and were taken near this place, the most similar first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceFacts>,
}

/// A photograph of a gallery.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReferenceFacts {
    /// Its path or address, as the gallery stores it.
    pub id: String,
    /// Degrees.
    pub latitude: f64,
    /// Degrees.
    pub longitude: f64,
    /// The cosine between the embeddings, at most 1. Not a probability.
    pub similarity: f64,
    /// From the candidate's place.
    pub distance_km: f64,
}

/// A place without a name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PointFacts {
    /// Degrees.
    pub latitude: f64,
    /// Degrees.
    pub longitude: f64,
}

/// The ground of the central square of the upright image, as wide as its shorter side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FootprintFacts {
    /// Upper left, upper right, lower right and lower left corner of the square.
    pub corners: [PointFacts; 4],
    /// The middle of the square.
    pub middle: PointFacts,
    /// Where the image's upward direction points: degrees, clockwise from north.
    pub heading_degrees: f64,
    /// Width of the square on the ground.
    pub width_km: f64,
    /// How much the image looks like the map there, at most 1. Not a probability.
    pub likeness: f64,
}

/// A place of a model's own list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowFacts {
    /// Degrees.
    pub latitude: f64,
    /// Degrees.
    pub longitude: f64,
    /// Softmax over all rows.
    pub score: f64,
    /// How often it stands in the list.
    pub times: usize,
}

/// The place that the camera recorded with the image; not predicted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExifPlace {
    /// Coordinates and name of the recorded place.
    #[serde(flatten)]
    pub place: PlaceFacts,
    /// Always `camera`.
    pub recorded_by: &'static str,
    /// From the answer's place, if there is an answer.
    pub distance_km: Option<f64>,
}

/// Areas that keep less of an answer than this are worth a warning.
const LITTLE: f64 = 0.01;

/// What an answer should hold beyond the numbers that all have.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerOptions {
    /// Candidates and rows at most.
    pub top: usize,
    /// Whether the whole density is wanted.
    pub density: bool,
    /// Places to draw from the density.
    pub draws: usize,
}

impl Default for AnswerOptions {
    fn default() -> AnswerOptions {
        AnswerOptions { top: 5, density: false, draws: 0 }
    }
}

impl Answer {
    /// The facts of an image. `gps` is the place that the camera recorded.
    pub fn new(
        image: ImageFacts,
        estimate: &Estimate,
        because: ChosenBecause,
        gps: Option<LatLon>,
        options: &AnswerOptions,
    ) -> Answer {
        let survey = estimate.survey();
        let summary = Summary::of(&survey, options.top, estimate.inference().decode);
        let whole = unrestricted(estimate.density());
        let candidate = |found: &Candidate| {
            let near = references_near(estimate.references(), found.place, summary.kernel_km);
            let references = near.into_iter().map(|(found, km)| ReferenceFacts::new(found, km));
            CandidateFacts { references: references.collect(), ..CandidateFacts::new(found) }
        };
        Answer {
            image,
            prediction: true,
            model: ModelFacts::new(estimate.model(), Some(because)),
            inference: *estimate.inference(),
            warnings: warnings(estimate),
            within: estimate.within().to_vec(),
            kept: estimate.kept().map(|kept| rounded(kept, 9)),
            map: None,
            place: PlaceFacts::new(summary.place, &summary.name),
            candidates: summary.candidates.iter().map(candidate).collect(),
            radius_50_km: kilometers(summary.radius_50_km),
            radius_90_km: kilometers(summary.radius_90_km),
            area_50_km2: summary.area_50_km2.round(),
            area_90_km2: summary.area_90_km2.round(),
            kernel_km: summary.kernel_km,
            footprint: estimate.footprint().map(FootprintFacts::new),
            rows: best_rows(whole, options.top, estimate.inference().draws()),
            exif: gps.map(|gps| ExifPlace::new(gps, Some(summary.place))),
            density: options.density.then(|| DensityRecord::of(whole)),
            draws: (options.draws > 0)
                .then(|| drawn(&survey, options.draws, estimate.inference().seed)),
            frames: None,
        }
    }

    /// What the masses may be called.
    pub fn measure(&self) -> &'static str {
        if self.model.calibrated { "probability" } else { "score" }
    }
}

/// Those of the estimate, and one if the areas keep almost nothing.
fn warnings(estimate: &Estimate) -> Vec<String> {
    let mut warnings = estimate.warnings().to_vec();
    if let Some(kept) = estimate.kept().filter(|kept| *kept < LITTLE) {
        let areas = estimate.within().join(" and ");
        warnings.push(format!(
            "{areas} keeps less than {} of the unconstrained answer: the picture or the area may be wrong",
            if kept < 1e-4 { "0.01 %" } else { "1 %" }
        ));
    }
    warnings
}

fn unrestricted(density: &Density) -> &Density {
    match density {
        Density::Restriction(restriction) => unrestricted(restriction.whole()),
        density => density,
    }
}

fn drawn(survey: &Survey<'_>, count: usize, seed: u64) -> Vec<[f64; 2]> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let places = survey.sample(count, &mut rng).into_iter();
    places.map(|place| [degrees(place.latitude()), degrees(place.longitude())]).collect()
}

impl ImageFacts {
    /// What the bytes tell, before they are decoded.
    pub fn of_bytes(name: Option<String>, bytes: &[u8]) -> ImageFacts {
        let (sha256, bytes) = (Some(sha256(bytes)), Some(bytes.len()));
        ImageFacts { name, sha256, bytes, width: None, height: None }
    }

    /// An image that could not even be read.
    pub fn named(name: &str) -> ImageFacts {
        let name = Some(name.to_owned());
        ImageFacts { name, sha256: None, bytes: None, width: None, height: None }
    }

    /// With the size of the picture.
    pub fn with_size(self, photo: &Photo) -> ImageFacts {
        ImageFacts { width: Some(photo.width()), height: Some(photo.height()), ..self }
    }
}

impl ModelFacts {
    /// Name, version and description of a model.
    pub fn new(identity: &ModelIdentity, because: Option<ChosenBecause>) -> ModelFacts {
        ModelFacts {
            name: identity.name.clone(),
            version: identity.version.clone(),
            description: identity.description.clone(),
            calibrated: identity.calibrated,
            prior: identity.prior.clone(),
            chosen_because: because.map(|because| because.to_string()),
        }
    }
}

impl PlaceFacts {
    /// A place, rounded, with its name.
    pub fn new(place: LatLon, name: &PlaceName) -> PlaceFacts {
        PlaceFacts {
            latitude: degrees(place.latitude()),
            longitude: degrees(place.longitude()),
            words: name.to_string(),
            name: PlaceName {
                off: name
                    .off
                    .clone()
                    .map(|coast| Coast { distance_km: rounded(coast.distance_km, 1), ..coast }),
                ..name.clone()
            },
        }
    }
}

impl PointFacts {
    fn new(place: LatLon) -> PointFacts {
        PointFacts { latitude: degrees(place.latitude()), longitude: degrees(place.longitude()) }
    }
}

impl FootprintFacts {
    /// The facts of a footprint, with rounded numbers.
    pub fn new(footprint: &Footprint) -> FootprintFacts {
        FootprintFacts {
            corners: footprint.corners.map(PointFacts::new),
            middle: PointFacts::new(footprint.middle),
            // 359.96 is 0.
            heading_degrees: rounded(footprint.heading_degrees, 1).rem_euclid(360.0),
            width_km: kilometers(footprint.width_km),
            likeness: rounded(footprint.likeness, 4),
        }
    }
}

impl CandidateFacts {
    /// A candidate, rounded, without references.
    pub fn new(candidate: &Candidate) -> CandidateFacts {
        let mut facts = CandidateFacts {
            place: PlaceFacts::new(candidate.place, &candidate.name),
            mass: rounded(candidate.mass, 9),
            radius_km: kilometers(candidate.radius_km),
            references: Vec::new(),
        };
        if facts.is_anywhere() {
            facts.place.words = "anywhere else on Earth".to_owned();
            facts.place.name = PlaceName::default();
        }
        facts
    }

    /// A candidate that is spread over a quarter of the way around the Earth is no place: it has no name and no marker.
    pub fn is_anywhere(&self) -> bool {
        self.radius_km > 9_000.0
    }
}

impl ExifPlace {
    /// The place that the camera recorded, with its name.
    pub fn new(gps: LatLon, predicted: Option<LatLon>) -> ExifPlace {
        ExifPlace {
            place: PlaceFacts::new(gps, &place_name(gps)),
            recorded_by: "camera",
            distance_km: predicted.map(|place| kilometers(gps.distance_km(place))),
        }
    }
}

impl ReferenceFacts {
    fn new(reference: &Reference, distance_km: f64) -> ReferenceFacts {
        ReferenceFacts {
            id: reference.id.clone(),
            latitude: degrees(reference.place.latitude()),
            longitude: degrees(reference.place.longitude()),
            similarity: rounded(reference.similarity, 4),
            distance_km: kilometers(distance_km),
        }
    }
}

/// The best rows of a model that chooses among places, as its authors list them: distinct places, by the
/// score of one row.
fn best_rows(density: &Density, count: usize, draws: usize) -> Vec<RowFacts> {
    let Density::PointMasses(spread) = density else { return Vec::new() };
    let points = spread.points();
    // Samples of a diffusion are no list.
    if points.len() <= draws {
        return Vec::new();
    }
    let pairs = points.places().iter().zip(points.weights());
    let mut rows: Vec<RowFacts> = pairs
        .map(|(place, score)| RowFacts {
            latitude: place.latitude(),
            longitude: place.longitude(),
            score,
            times: 1,
        })
        .collect();
    let place = |row: &RowFacts| (row.latitude, row.longitude);
    rows.sort_by(|a, b| place(a).partial_cmp(&place(b)).expect("places are numbers"));
    rows.dedup_by(|next, row| {
        let same = place(next) == place(row);
        row.times += usize::from(same);
        same
    });
    rows.sort_by(|a, b| b.score.total_cmp(&a.score));
    rows.truncate(count);
    rows
}

/// Digits that mean something: a millionth of a degree is 11 cm.
pub(super) fn degrees(value: f64) -> f64 {
    rounded(value, 6)
}

fn kilometers(value: f64) -> f64 {
    rounded(value, 3)
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}
