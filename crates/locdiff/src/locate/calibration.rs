//! Scores as probabilities: what `locdiff calibrate` has found on held-out pictures.
//!
//! A density is raised to a power and mixed with "anywhere". Two numbers, since one alone cannot make both the half and the
//! nine tenths right: a model that is too sure of itself is too sharp everywhere, or wrong altogether now and then, or both.

use std::fs;
use std::path::{Path, PathBuf};

use locdiff_sphere::Density;
use serde::{Deserialize, Serialize};

use super::inference::Inference;

/// The file in a model's directory.
const FILE: &str = "calibration.json";

/// How scores become probabilities, and on what that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Densities are raised to this power: more than 1 makes them sharper.
    pub sharpness: f64,
    /// The share that is spread over the whole Earth.
    pub background: f64,
    /// The model that it is for: [`ModelIdentity::version`](super::ModelIdentity::version).
    pub model_version: String,
    /// The inference that the calibration is for.
    pub inference: Inference,
    /// What it was fitted and checked on.
    pub data: String,
    /// SHA-256 of the places of those rows: differs if another file of that name has other rows.
    pub places_sha256: String,
    /// Rows that it was fitted on.
    pub fitted_rows: usize,
    /// Other rows, of which the figures are.
    pub checked_rows: usize,
    /// Coverage without the calibration.
    pub before: Coverage,
    /// Coverage with the calibration.
    pub after: Coverage,
}

/// How often regions held the truth, and how probable it was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// The share of truths, in percent, in the smallest region of 50 %.
    pub within_50: f64,
    /// Share of true places in the 90 % region, in percent.
    pub within_90: f64,
    /// Mean of −log density per steradian at the truth.
    pub nll_nats: f64,
}

/// A calibration that can't be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCalibration {
    /// The file is out of reach.
    #[error("cannot {what} {}: {error}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// `calibration.json` of the model.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{}: {reason}; run `locdiff calibrate` again, or remove the file", path.display())]
    Contents {
        /// `calibration.json` of the model.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Calibration {
    /// That of a model's directory, if it has one.
    pub fn read(directory: &Path) -> Result<Option<Calibration>, InvalidCalibration> {
        let path = directory.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(InvalidCalibration::File { what: "read", path, error }),
        };
        let wrong = |reason: String| InvalidCalibration::Contents { path: path.clone(), reason };
        let calibration: Calibration =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let Calibration { sharpness, background, .. } = calibration;
        if !(sharpness > 0.0 && sharpness.is_finite() && (0.0..1.0).contains(&background)) {
            return Err(wrong(format!(
                "sharpness {sharpness} or background {background} is out of range"
            )));
        }
        Ok(Some(calibration))
    }

    /// Writes it into a model's directory, whole or not at all.
    pub fn write(&self, directory: &Path) -> Result<PathBuf, InvalidCalibration> {
        let (path, temporary) = (directory.join(FILE), directory.join(".calibration.json.new"));
        let text = serde_json::to_string_pretty(self).expect("a calibration is JSON") + "\n";
        let written = fs::create_dir_all(directory)
            .and_then(|()| fs::write(&temporary, text))
            .and_then(|()| fs::rename(&temporary, &path));
        match written {
            Ok(()) => Ok(path),
            Err(error) => Err(InvalidCalibration::File { what: "write", path, error }),
        }
    }

    /// The probabilities of a density of scores.
    pub fn apply(&self, density: &Density) -> Density {
        calibrated(density, self.sharpness, self.background)
    }

    /// Why it is not for a model that is asked in some way; `None` if it is.
    pub fn mismatch(&self, model_version: &str, inference: &Inference) -> Option<String> {
        // Neither the place that is taken from a density nor the seed changes what the numbers are worth.
        let asked =
            Inference { seed: self.inference.seed, decode: self.inference.decode, ..*inference };
        if self.model_version != model_version {
            Some("the model has changed since it was calibrated: these are scores, run `locdiff calibrate` again".to_owned())
        } else if asked != self.inference {
            Some(
                "the model was calibrated with other inference options: these are scores"
                    .to_owned(),
            )
        } else {
            None
        }
    }
}

/// A density to a power, mixed with a share of "anywhere".
pub fn calibrated(density: &Density, sharpness: f64, background: f64) -> Density {
    let sharp = if sharpness == 1.0 {
        density.clone()
    } else {
        // Only what is nowhere positive has no power.
        Density::product(vec![(sharpness, density.clone())]).unwrap_or_else(|_| density.clone())
    };
    if background <= 0.0 {
        return sharp;
    }
    let parts = vec![(1.0 - background, sharp), (background, Density::uniform())];
    Density::mixture(parts).unwrap_or_else(|_| density.clone())
}

#[cfg(test)]
mod tests {
    use locdiff_sphere::{Coefficients, LatLon};

    use super::*;

    fn calibration() -> Calibration {
        let none = Coverage { within_50: 0.0, within_90: 0.0, nll_nats: 0.0 };
        Calibration {
            sharpness: 0.5,
            background: 0.2,
            model_version: "abc".to_owned(),
            inference: Inference::default(),
            data: "held-out".to_owned(),
            places_sha256: "0".to_owned(),
            fitted_rows: 10,
            checked_rows: 10,
            before: none,
            after: none,
        }
    }

    #[test]
    fn powers_of_exponentials_are_exponentials_of_multiples() {
        let place = LatLon::new(40.0, -8.0).expect("a place");
        let e = Coefficients::of(place, 11);
        let mut half = e.clone();
        half.as_mut_slice().iter_mut().for_each(|e| *e *= 0.5);
        let found = calibration().apply(&Density::exponential(&e));
        let expected = Density::exponential(&half);
        for there in [place, LatLon::SOUTH_POLE, LatLon::new(35.0, 100.0).expect("a place")] {
            let wanted =
                0.8 * expected.log_density(there).exp() + 0.2 / (4.0 * std::f64::consts::PI);
            assert!((found.log_density(there) - wanted.ln()).abs() < 1e-9);
        }
        // Nothing to do.
        let same = calibrated(&expected, 1.0, 0.0);
        assert_eq!(same.log_density(place), expected.log_density(place));
    }

    #[test]
    fn a_calibration_is_for_one_model_asked_in_one_way() {
        let one = calibration();
        let other_seed = Inference { seed: 7, ..Inference::default() };
        assert_eq!(one.mismatch("abc", &other_seed), None);
        assert!(one.mismatch("abd", &other_seed).is_some_and(|why| why.contains("has changed")));
        let guided = Inference { guidance: 2.0, ..Inference::default() };
        assert!(
            one.mismatch("abc", &guided).is_some_and(|why| why.contains("other inference options"))
        );
    }

    #[test]
    fn files_are_read_as_they_were_written_and_damage_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(Calibration::read(directory.path()).expect("nothing there"), None);
        let path = calibration().write(directory.path()).expect("writes");
        assert_eq!(Calibration::read(directory.path()).expect("reads"), Some(calibration()));
        let text = fs::read_to_string(&path).expect("text").replace("0.5", "-0.5");
        fs::write(&path, text).expect("writes");
        let error = Calibration::read(directory.path()).expect_err("a negative power").to_string();
        assert!(
            error.contains("calibration.json") && error.contains("locdiff calibrate"),
            "{error}"
        );
    }
}
