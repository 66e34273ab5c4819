//! Answers and densities as they travel: JSON.

use locdiff::{Candidate, ModelIdentity, Summary};
use locdiff_sphere::{Coefficients, Density, Kernel, LatLon, PointMasses};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::{BAD_BODY, Problem};

/// Of point masses, the lightest that hold less than this together need not travel.
const NEGLIGIBLE_MASS: f64 = 1e-4;
/// The largest degree that is taken.
pub(crate) const MAX_DEGREE: usize = 127;
/// The largest coefficient: beyond it a density is one point for every purpose.
pub(crate) const LARGEST_COEFFICIENT: f64 = 1e4;
/// The most points that are taken.
pub(crate) const MAX_POINTS: usize = 100_000;
/// The most points times km of the kernel: wide kernels make every point matter everywhere.
const MAX_POINT_KM: f64 = 2e7;

/// A density on the Earth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DensityWire {
    /// exp(Σ c·Y − A): real orthonormal harmonics, (l, m) at index l² + l + m, sine for m < 0.
    Exponential {
        /// The largest degree.
        #[schema(maximum = 127)]
        max_degree: usize,
        /// (max_degree + 1)² numbers.
        #[schema(min_items = 1, max_items = 16384)]
        coefficients: Vec<f64>,
    },
    /// Places with masses, each spread by a von Mises-Fisher kernel.
    Points {
        /// The kernel's standard deviation along each axis.
        #[schema(minimum = 1, maximum = 5000)]
        kernel_km: f64,
        /// Degrees.
        #[schema(min_items = 1)]
        latitudes: Vec<f64>,
        /// Degrees.
        #[schema(min_items = 1)]
        longitudes: Vec<f64>,
        /// Not negative; scaled to sum to one.
        #[schema(min_items = 1)]
        masses: Vec<f64>,
    },
}

impl DensityWire {
    /// What can travel: `None` for kinds that no model of ours answers with.
    pub(crate) fn of(density: &Density) -> Option<DensityWire> {
        match density {
            Density::Exponential(exponential) => {
                Some(Self::of_coefficients(exponential.coefficients()))
            }
            Density::PointMasses(spread) => {
                let points = spread.points();
                let mut rows: Vec<(LatLon, f64)> =
                    points.places().iter().copied().zip(points.weights()).collect();
                rows.sort_by(|a, b| b.1.total_cmp(&a.1));
                let mut rest = 1.0;
                let enough = rows.iter().position(|(_, mass)| {
                    rest -= mass;
                    rest < NEGLIGIBLE_MASS
                });
                rows.truncate(enough.map_or(rows.len(), |last| last + 1));
                Some(DensityWire::Points {
                    kernel_km: spread.kernel().width_km(),
                    latitudes: rows.iter().map(|(place, _)| rounded(place.latitude(), 6)).collect(),
                    longitudes: rows
                        .iter()
                        .map(|(place, _)| rounded(place.longitude(), 6))
                        .collect(),
                    masses: rows.iter().map(|(_, mass)| *mass).collect(),
                })
            }
            _ => None,
        }
    }

    /// Exponents.
    pub(crate) fn of_coefficients(coefficients: &Coefficients) -> DensityWire {
        let numbers = coefficients.as_slice().iter().map(|number| rounded(*number, 5)).collect();
        DensityWire::Exponential { max_degree: coefficients.max_degree(), coefficients: numbers }
    }

    /// The density itself.
    pub(crate) fn density(self) -> Result<Density, Problem> {
        let wrong = |detail: String| Problem::new(BAD_BODY, detail);
        match self {
            DensityWire::Exponential { max_degree, coefficients } => {
                if max_degree > MAX_DEGREE {
                    return Err(wrong(format!("max_degree {max_degree}: at most {MAX_DEGREE}")));
                }
                let (found, expected) = (coefficients.len(), (max_degree + 1).pow(2));
                if found != expected {
                    return Err(wrong(format!(
                        "max_degree {max_degree} wants {expected} coefficients, here are {found}"
                    )));
                }
                let bad = coefficients.iter().find(|c| c.is_nan() || c.abs() > LARGEST_COEFFICIENT);
                if let Some(bad) = bad {
                    return Err(wrong(format!(
                        "coefficient {bad:e}: between -{LARGEST_COEFFICIENT} and {LARGEST_COEFFICIENT}"
                    )));
                }
                let coefficients = Coefficients::from_vec(coefficients)
                    .map_err(|error| wrong(error.to_string()))?;
                Ok(Density::exponential(&coefficients))
            }
            DensityWire::Points { kernel_km, latitudes, longitudes, masses } => {
                if latitudes.len() != longitudes.len() || latitudes.len() != masses.len() {
                    return Err(wrong(format!(
                        "{} latitudes, {} longitudes, {} masses: one of each for each point",
                        latitudes.len(),
                        longitudes.len(),
                        masses.len()
                    )));
                }
                if masses.len() > MAX_POINTS {
                    return Err(wrong(format!("{} points: at most {MAX_POINTS}", masses.len())));
                }
                if masses.len() as f64 * kernel_km > MAX_POINT_KM {
                    return Err(wrong(format!(
                        "{} points and a kernel of {kernel_km} km: their product must be {MAX_POINT_KM} at most",
                        masses.len()
                    )));
                }
                let places: Result<Vec<LatLon>, _> = latitudes
                    .iter()
                    .zip(&longitudes)
                    .map(|(lat, lon)| LatLon::new(*lat, *lon))
                    .collect();
                let places = places.map_err(|error| wrong(error.to_string()))?;
                if !(1.0..=5000.0).contains(&kernel_km) {
                    return Err(wrong(format!("kernel_km {kernel_km}: between 1 and 5000")));
                }
                let kernel = Kernel::new(kernel_km).map_err(|error| wrong(error.to_string()))?;
                let points =
                    PointMasses::new(places, &masses).map_err(|error| wrong(error.to_string()))?;
                Ok(points.spread(kernel))
            }
        }
    }
}

/// A number with so many digits after the point.
pub(crate) fn rounded(number: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (number * scale).round() / scale
}

/// What is known of an image without looking at it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ImageFacts {
    /// As the client named it.
    pub name: Option<String>,
    /// Of the bytes that were sent.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub sha256: String,
    /// How many.
    pub bytes: usize,
    /// Pixels, upright; missing if it could not be read.
    pub width: Option<u32>,
    /// Pixels, upright; missing if it could not be read.
    pub height: Option<u32>,
}

/// Which model answered.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ModelFacts {
    /// Its name.
    pub name: String,
    /// Changes with whatever changes answers.
    pub version: String,
    /// In a line.
    pub description: String,
    /// Whether masses are probabilities. If not, they are scores.
    pub calibrated: bool,
    /// What its numbers silently assume.
    pub prior: Option<String>,
    /// Why it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_because: Option<String>,
}

impl ModelFacts {
    pub(crate) fn of(identity: &ModelIdentity, because: Option<&str>) -> ModelFacts {
        ModelFacts {
            name: identity.name.clone(),
            version: identity.version.clone(),
            description: identity.description.clone(),
            calibrated: identity.calibrated,
            prior: identity.prior.clone(),
            chosen_because: because.map(str::to_owned),
        }
    }
}

/// A place that the image may show.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CandidateWire {
    /// Degrees.
    #[schema(minimum = -90, maximum = 90)]
    pub latitude: f64,
    /// Degrees.
    #[schema(minimum = -180, maximum = 180)]
    pub longitude: f64,
    /// The probability of the whole peak, or the model's score if it isn't calibrated.
    #[schema(minimum = 0, maximum = 1.000001)]
    pub mass: f64,
    /// A circle of this radius around the place holds half as much.
    pub radius_km: f64,
    /// The nearest town.
    pub town: Option<String>,
    /// Its district.
    pub district: Option<String>,
    /// The country.
    pub country: Option<String>,
    /// Its two letters.
    pub country_code: Option<String>,
}

impl CandidateWire {
    pub(crate) fn of(candidate: &Candidate) -> CandidateWire {
        let name = &candidate.name;
        CandidateWire {
            latitude: rounded(candidate.place.latitude(), 6),
            longitude: rounded(candidate.place.longitude(), 6),
            mass: rounded(candidate.mass, 9),
            radius_km: rounded(candidate.radius_km, 3),
            town: name.town.clone(),
            district: name.district.clone(),
            country: name.country.clone(),
            country_code: name.country_code.clone(),
        }
    }
}

/// Where the camera says it was.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExifPlace {
    /// Degrees.
    pub latitude: f64,
    /// Degrees.
    pub longitude: f64,
    /// From the first candidate.
    pub distance_km: f64,
}

/// One step of a denoising.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Frame {
    /// Which step: 0 is pure noise.
    pub step: usize,
    /// The last step.
    pub of: usize,
    /// What is believed there.
    pub density: DensityWire,
}

/// What a model says of one image.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Located {
    /// The image.
    pub image: ImageFacts,
    /// The model.
    pub model: ModelFacts,
    /// What the answer was restricted to.
    pub within: Vec<String>,
    /// Distinct places, the most probable first.
    pub candidates: Vec<CandidateWire>,
    /// A circle of this radius around the first holds half of everything.
    pub radius_50_km: f64,
    /// And nine tenths.
    pub radius_90_km: f64,
    /// The area of the smallest region that holds half of everything.
    pub area_50_km2: f64,
    /// And nine tenths.
    pub area_90_km2: f64,
    /// Width of the kernel that spread point masses: finer detail isn't known.
    pub kernel_km: Option<f64>,
    /// Where the camera says it was.
    pub exif: Option<ExifPlace>,
    /// The whole density, if asked for; not restricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub density: Option<DensityWire>,
    /// Latitude and longitude of places drawn from the density, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Vec<[f64; 2]>>,
    /// The denoising, if asked for and the model has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denoising: Option<Vec<Frame>>,
}

impl Located {
    /// The numbers of a summary; the rest is still to be said.
    pub(crate) fn new(image: ImageFacts, model: ModelFacts, summary: &Summary) -> Located {
        Located {
            image,
            model,
            within: Vec::new(),
            candidates: summary.candidates.iter().map(CandidateWire::of).collect(),
            radius_50_km: rounded(summary.radius_50_km, 3),
            radius_90_km: rounded(summary.radius_90_km, 3),
            area_50_km2: summary.area_50_km2.round(),
            area_90_km2: summary.area_90_km2.round(),
            kernel_km: summary.kernel_km,
            exif: None,
            density: None,
            samples: None,
            denoising: None,
        }
    }
}

/// An image's embedding.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Embedded {
    /// The image.
    pub image: ImageFacts,
    /// The model whose encoder looked at it.
    pub model: ModelFacts,
    /// What it made of it.
    pub embedding: Vec<f32>,
}

/// An image without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Failed {
    /// The image.
    pub image: ImageFacts,
    /// Why.
    pub problem: Problem,
}

/// An answer, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Outcome<Answer> {
    /// An answer.
    Answered(Box<Answer>),
    /// None.
    Failed(Failed),
}

/// Answers, image by image.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LocateAnswer {
    /// Always: these are predictions, not facts.
    pub prediction: bool,
    /// One for each image, in their order.
    pub results: Vec<Outcome<Located>>,
}

/// Embeddings, image by image.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EmbedAnswer {
    /// One for each image, in their order.
    pub results: Vec<Outcome<Embedded>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_come_back_as_they_were() {
        let lisbon = LatLon::new(38.72, -9.14).expect("a place");
        let mut coefficients = Coefficients::of(lisbon, 15);
        coefficients.as_mut_slice().iter_mut().for_each(|number| *number *= 3.0);
        let density = Density::exponential(&coefficients);
        let wire = DensityWire::of(&density).expect("an exponential travels");
        let text = serde_json::to_string(&wire).expect("plain");
        let back: DensityWire = serde_json::from_str(&text).expect("the same");
        let back = back.density().expect("valid");
        assert!((back.log_density(lisbon) - density.log_density(lisbon)).abs() < 1e-3);
    }

    #[test]
    fn the_lightest_points_stay_at_home() {
        let places: Vec<LatLon> =
            (0..90).map(|i| LatLon::new(f64::from(i), 10.0).expect("a place")).collect();
        let masses: Vec<f64> = (0..90).map(|i| 0.5_f64.powi(i)).collect();
        let kernel = Kernel::new(25.0).expect("a width");
        let density = PointMasses::new(places, &masses).expect("points").spread(kernel);
        let Some(DensityWire::Points { masses, latitudes, .. }) = DensityWire::of(&density) else {
            panic!("points travel as points")
        };
        assert!(masses.len() < 20 && 1.0 - masses.iter().sum::<f64>() < NEGLIGIBLE_MASS);
        assert_eq!(latitudes[0], 0.0);
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        let numbers =
            |max_degree, coefficients| DensityWire::Exponential { max_degree, coefficients };
        for (wire, complaint) in [
            (numbers(2, vec![0.0; 4]), "wants 9 coefficients, here are 4"),
            (numbers(9999, vec![]), "at most 127"),
            (numbers(0, vec![1e300]), "coefficient 1e300"),
            (
                DensityWire::Points {
                    kernel_km: 25.0,
                    latitudes: vec![91.0],
                    longitudes: vec![0.0],
                    masses: vec![1.0],
                },
                "91",
            ),
        ] {
            let problem = wire.density().expect_err(complaint);
            assert!(problem.detail().contains(complaint), "{}", problem.detail());
        }
    }
}
