//! How similarity becomes a likelihood of places: fitted numbers, and the file that stores them.
//!
//! For a query whose most similar references are at x₁, x₂, … with similarities s₁ ≥ s₂ ≥ …, the density is
//! share·Σ wᵢ K(u; xᵢ) + (1 − share)/4π, with wᵢ proportional to exp(sharpness·sᵢ), a kernel K of a fitted width,
//! and share = 1/(1 + exp(−offset − slope·s₁)), the probability that any of the references is near, at most the highest
//! share that the held-out photographs allow.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::gallery::LIKELIHOOD;
use crate::manifest::replace_json;
use crate::{Gallery, GalleryError};

const FORMAT: &str = "locdiff-gallery-likelihood";
const VERSION: u32 = 1;

/// How nearness follows from similarity, fitted by [`Fit`](crate::Fit) on photographs that are not in the gallery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Likelihood {
    /// Weights of references are proportional to exp(sharpness·similarity).
    pub sharpness: f64,
    /// How far photographs are from the references that match them: the kernel's standard deviation along each axis.
    pub width_km: f64,
    /// The log-odds that a reference is near, if the best similarity were 0.
    pub share_offset: f64,
    /// How much the log-odds grow with the best similarity.
    pub share_slope: f64,
    /// The share is never higher: so few photographs cannot exclude that more of them have no reference nearby.
    pub highest_share: f64,
    /// Name of the held-out data.
    pub held_out: String,
    /// How many photographs were fitted.
    pub held_out_rows: usize,
    /// How many more the gallery contains itself; they were left out.
    pub left_out_rows: usize,
    /// Number of references when it was fitted. A gallery that has grown much should be fitted again.
    pub gallery_rows: usize,
    /// Mean negative log-likelihood of the held-out places, in nats per steradian. The uniform density has 2.531.
    pub nll_nats: f64,
}

/// Contents of the file, with the fields that identify the format.
#[derive(Serialize, Deserialize)]
struct Record {
    format: String,
    version: u32,
    #[serde(flatten)]
    likelihood: Likelihood,
}

impl Likelihood {
    /// How many of the best hits are used. Ask a search for as many.
    pub const HITS: usize = 64;

    /// Whether a gallery has grown so much since a fit, by a fifth, that it should be fitted again.
    pub fn is_outgrown(fitted_rows: usize, rows: usize) -> bool {
        rows as f64 > 1.2 * fitted_rows as f64
    }

    /// Reads the likelihood that was stored in a gallery.
    pub fn read(gallery: &Gallery) -> Result<Likelihood, GalleryError> {
        let path = gallery.path().join(LIKELIHOOD);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(GalleryError::NotFitted { path: gallery.path().to_owned() });
            }
            Err(error) => return Err(GalleryError::File { what: "read", path, error }),
        };
        let damaged = |error| GalleryError::Json { path: path.clone(), error };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        if value["format"] != FORMAT || value["version"] != VERSION {
            let found = format!("of format {} version {}", value["format"], value["version"]);
            let expected = format!("{FORMAT} version {VERSION}");
            return Err(GalleryError::Version { path, found, expected });
        }
        let record: Record = serde_json::from_value(value).map_err(damaged)?;
        match record.likelihood.problem() {
            Some(reason) => Err(GalleryError::Contents { path, reason }),
            None => Ok(record.likelihood),
        }
    }

    /// Stores the likelihood in its gallery; an older one is replaced.
    pub fn write(&self, gallery: &Gallery) -> Result<(), GalleryError> {
        let likelihood = self.clone();
        let record = Record { format: FORMAT.to_owned(), version: VERSION, likelihood };
        replace_json(&gallery.path().join(LIKELIHOOD), &record)
    }

    /// The probability that any reference is near, from the similarity of the best.
    pub fn share(&self, best_similarity: f64) -> f64 {
        let odds = self.share_offset + self.share_slope * best_similarity;
        (1.0 / (1.0 + (-odds).exp())).min(self.highest_share)
    }

    /// What is wrong with the numbers, if they were edited or damaged.
    fn problem(&self) -> Option<String> {
        let Likelihood { sharpness, width_km, share_offset, share_slope, highest_share, .. } = self;
        let checks = [
            ("sharpness", sharpness, *sharpness >= 0.0 && sharpness.is_finite()),
            ("width_km", width_km, WIDTHS_KM.contains(width_km)),
            ("share_offset", share_offset, share_offset.is_finite()),
            ("share_slope", share_slope, share_slope.is_finite()),
            ("highest_share", highest_share, (0.0..=1.0).contains(highest_share)),
        ];
        let (name, value, _) = checks.into_iter().find(|(.., valid)| !valid)?;
        Some(format!("{name} is {value}"))
    }
}

/// The widths that a kernel may have.
pub(crate) const WIDTHS_KM: std::ops::RangeInclusive<f64> = 0.01..=2500.0;
