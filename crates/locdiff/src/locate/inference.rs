//! How an answer is computed: the same options in Rust, on the command line, over HTTP and in a model's
//! `config.json`, and recorded in each answer.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How an answer is computed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Inference {
    /// How the network is asked.
    pub sampler: Sampler,
    /// Noise levels that `ddim` visits, or steps of `flow` and `exact`. `ddpm` visits all levels that were trained, `one-pass` one.
    pub steps: Option<usize>,
    /// Samples that are drawn for each view.
    pub samples: usize,
    /// How strongly the picture counts: 1 is as trained, 0 ignores it.
    pub guidance: f64,
    /// Views of the picture: 1 is its center, more are random crops (10 are GeoCLIP's ten crops).
    pub views: usize,
    /// Of crops and noise: the same seed gives the same answer.
    pub seed: u64,
    /// Which place is taken from the density.
    pub decode: Decode,
    /// Standard deviation of the kernel that spreads samples; chosen by their own likelihood if not given.
    pub kernel_km: Option<f64>,
    /// Whether a view of the Earth from above is registered against a map. Without, it is only searched: faster and coarser.
    pub registration: bool,
    /// How wide the ground is that the picture's shorter side shows, if it is known.
    pub width_km: Option<f64>,
}

impl Default for Inference {
    fn default() -> Inference {
        Inference {
            sampler: Sampler::OnePass,
            steps: None,
            samples: 1,
            guidance: 1.0,
            views: 1,
            seed: 0,
            decode: Decode::Mode,
            kernel_km: None,
            registration: true,
            width_km: None,
        }
    }
}

impl Inference {
    /// The paper's: 16 views, each denoised through all noise levels, and the mean of the places.
    pub const PAPER: Inference = Inference {
        sampler: Sampler::Ddpm,
        steps: None,
        samples: 1,
        guidance: 1.0,
        views: 16,
        seed: 0,
        decode: Decode::Mean,
        kernel_km: None,
        registration: true,
        width_km: None,
    };

    /// With what somebody asked for instead.
    pub fn with(self, options: &InferenceOptions) -> Inference {
        let sampler = options.sampler.unwrap_or(self.sampler);
        // Steps belong to the sampler that they were chosen for.
        let own_steps = self.steps.filter(|_| sampler == self.sampler);
        Inference {
            sampler,
            steps: options.steps.or(own_steps),
            samples: options.samples.unwrap_or(self.samples),
            guidance: options.guidance.unwrap_or(self.guidance),
            views: options.views.unwrap_or(self.views),
            seed: options.seed.unwrap_or(self.seed),
            decode: options.decode.unwrap_or(self.decode),
            kernel_km: options.kernel_km.or(self.kernel_km),
            registration: options.registration.unwrap_or(self.registration),
            width_km: options.width_km.or(self.width_km),
        }
    }

    /// Refuses numbers that make no sense for any model.
    pub fn check(&self) -> Result<(), InvalidInference> {
        let range = |option: &'static str, value: f64, low: f64, high: f64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(InvalidInference::Range { option, value, low, high })
            }
        };
        range("samples", self.samples as f64, 1.0, 1024.0)?;
        range("views", self.views as f64, 1.0, 256.0)?;
        range("samples times views", self.draws() as f64, 1.0, 1024.0)?;
        range("guidance", self.guidance, 0.0, 20.0)?;
        range("kernel_km", self.kernel_km.unwrap_or(1.0), 1.0, 5000.0)?;
        range("width_km", self.width_km.unwrap_or(1.0), 1.0, 20_000.0)?;
        match (self.sampler, self.steps) {
            (sampler, Some(steps)) if sampler.takes_steps() => {
                range("steps", steps as f64, 2.0, 10_000.0)
            }
            (_, None) => Ok(()),
            (sampler, Some(_)) => Err(InvalidInference::Steps { sampler }),
        }
    }

    /// For models without samplers: rejects everything but one pass over so many views.
    pub fn expect_one_pass(&self, model: &str, views: &[usize]) -> Result<(), InvalidInference> {
        let default = Inference::default();
        let remedy = "it answers in one pass; leave the option out, or use a diffusion model";
        let refuse = |option: String, remedy: &str| {
            let (model, remedy) = (model.to_owned(), remedy.to_owned());
            Err(InvalidInference::Unsupported { model, option, remedy })
        };
        if self.sampler != default.sampler {
            return refuse(format!("sampler {}", self.sampler), remedy);
        }
        if self.samples != default.samples {
            return refuse(format!("samples {}", self.samples), remedy);
        }
        if self.guidance != default.guidance {
            return refuse(format!("guidance {}", self.guidance), remedy);
        }
        if let Some(kernel) = self.kernel_km {
            return refuse(format!("kernel_km {kernel}"), remedy);
        }
        if !views.contains(&self.views) {
            let known: Vec<String> = views.iter().map(usize::to_string).collect();
            return refuse(format!("views {}", self.views), &format!("use {}", known.join(" or ")));
        }
        Ok(())
    }

    /// For models that compare nothing with maps.
    pub(crate) fn expect_no_maps(&self, model: &str) -> Result<(), InvalidInference> {
        let option = match (self.registration, self.width_km) {
            (true, None) => return Ok(()),
            (false, _) => "registration false".to_owned(),
            (true, Some(width)) => format!("width_km {width}"),
        };
        let remedy = "leave the option out, or use earth-view, which compares pictures with maps";
        let (model, remedy) = (model.to_owned(), remedy.to_owned());
        Err(InvalidInference::Unsupported { model, option, remedy })
    }

    /// Draws for each picture.
    pub fn draws(&self) -> usize {
        self.views * self.samples
    }
}

/// What somebody asked for; what isn't given is the model's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InferenceOptions {
    /// [`Inference::sampler`].
    pub sampler: Option<Sampler>,
    /// [`Inference::steps`].
    pub steps: Option<usize>,
    /// [`Inference::samples`].
    pub samples: Option<usize>,
    /// [`Inference::guidance`].
    pub guidance: Option<f64>,
    /// [`Inference::views`].
    pub views: Option<usize>,
    /// [`Inference::seed`].
    pub seed: Option<u64>,
    /// [`Inference::decode`].
    pub decode: Option<Decode>,
    /// [`Inference::kernel_km`].
    pub kernel_km: Option<f64>,
    /// [`Inference::registration`].
    pub registration: Option<bool>,
    /// [`Inference::width_km`].
    pub width_km: Option<f64>,
}

/// How the network's output becomes an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Sampler {
    /// Once, at the highest noise level: the whole density.
    OnePass,
    /// Step by step, without fresh noise: a place for each draw.
    Ddim,
    /// Step by step through all noise levels, with fresh noise at each: the paper's.
    Ddpm,
    /// Along a flow from noise to places: a place for each draw.
    Flow,
    /// Along a flow from cells of places back to noise: the whole density, slowly.
    Exact,
}

/// Which place is taken from a density.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Decode {
    /// The top of the peak that holds the most.
    Mode,
    /// The direction of the mean vector: the paper's.
    Mean,
    /// The place whose encoding is nearest in the Kullback-Leibler sense.
    Kl,
    /// The place with the best expected GeoScore.
    Geoscore,
    /// The place with the least expected distance.
    Distance,
}

impl Sampler {
    /// Every sampler, in the order of the documentation.
    pub const ALL: [Sampler; 5] =
        [Sampler::OnePass, Sampler::Ddim, Sampler::Ddpm, Sampler::Flow, Sampler::Exact];

    /// Whether its number of steps can be set.
    pub fn takes_steps(self) -> bool {
        matches!(self, Sampler::Ddim | Sampler::Flow | Sampler::Exact)
    }

    /// Name of the sampler in options and records.
    pub fn name(self) -> &'static str {
        match self {
            Sampler::OnePass => "one-pass",
            Sampler::Ddim => "ddim",
            Sampler::Ddpm => "ddpm",
            Sampler::Flow => "flow",
            Sampler::Exact => "exact",
        }
    }
}

impl Decode {
    /// Every rule, in the order of the documentation.
    pub const ALL: [Decode; 5] =
        [Decode::Mode, Decode::Mean, Decode::Kl, Decode::Geoscore, Decode::Distance];

    /// Name of the rule in options and records.
    pub fn name(self) -> &'static str {
        match self {
            Decode::Mode => "mode",
            Decode::Mean => "mean",
            Decode::Kl => "kl",
            Decode::Geoscore => "geoscore",
            Decode::Distance => "distance",
        }
    }
}

impl fmt::Display for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Decode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Sampler {
    type Err = InvalidInference;

    fn from_str(text: &str) -> Result<Sampler, InvalidInference> {
        Sampler::ALL.into_iter().find(|sampler| sampler.name() == text).ok_or_else(|| {
            InvalidInference::Name {
                option: "sampler",
                text: text.to_owned(),
                known: "one-pass, ddim, ddpm, flow, exact",
            }
        })
    }
}

impl FromStr for Decode {
    type Err = InvalidInference;

    fn from_str(text: &str) -> Result<Decode, InvalidInference> {
        Decode::ALL.into_iter().find(|decode| decode.name() == text).ok_or_else(|| {
            InvalidInference::Name {
                option: "decode",
                text: text.to_owned(),
                known: "mode, mean, kl, geoscore, distance",
            }
        })
    }
}

/// Why a model can't answer in this way.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidInference {
    /// No option has that value.
    #[error("{option} `{text}`: use one of {known}")]
    Name {
        /// Name of the option.
        option: &'static str,
        /// The text that is not a value of the option.
        text: String,
        /// Values that the option has.
        known: &'static str,
    },
    /// A number that makes no sense.
    #[error("{option} is {value}: use {low} to {high}")]
    Range {
        /// Name of the option.
        option: &'static str,
        /// The value that is out of range.
        value: f64,
        /// Smallest value that is accepted.
        low: f64,
        /// Largest value that is accepted.
        high: f64,
    },
    /// Steps for a sampler that has its own.
    #[error(
        "sampler {sampler} has a fixed number of steps: leave steps out, or use the sampler ddim, flow or exact"
    )]
    Steps {
        /// The sampler with a fixed number of steps.
        sampler: Sampler,
    },
    /// The model has no such thing.
    #[error("{model} does not support {option}: {remedy}")]
    Unsupported {
        /// Name of the model.
        model: String,
        /// The option with its value.
        option: String,
        /// What to do.
        remedy: String,
    },
    /// The network was not trained for that, so the answer would mean nothing.
    #[error("{option} is not possible: {reason}")]
    Untrained {
        /// The option with its value.
        option: String,
        /// What the training lacks for it.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_override_and_names_are_read_as_they_are_written() {
        let base = Inference { steps: Some(20), sampler: Sampler::Ddim, ..Inference::default() };
        let options = InferenceOptions { samples: Some(4), ..InferenceOptions::default() };
        assert_eq!(base.with(&options), Inference { samples: 4, ..base });
        // Steps of another sampler are not taken along.
        let other = InferenceOptions { sampler: Some(Sampler::Ddpm), ..options };
        assert_eq!(base.with(&other).steps, None);
        assert_eq!(base.with(&other).check(), Ok(()));
        for sampler in Sampler::ALL {
            assert_eq!(sampler.name().parse(), Ok(sampler));
            assert_eq!(serde_json::to_value(sampler).unwrap(), sampler.name());
        }
        for decode in Decode::ALL {
            assert_eq!(decode.name().parse(), Ok(decode));
            assert_eq!(serde_json::to_value(decode).unwrap(), decode.name());
        }
        assert!("ddimm".parse::<Sampler>().unwrap_err().to_string().contains("ddim, ddpm"));
    }

    #[test]
    fn nonsense_is_refused() {
        let default = Inference::default();
        for wrong in [
            Inference { samples: 0, ..default },
            Inference { views: 0, ..default },
            Inference { guidance: f64::NAN, ..default },
            Inference { steps: Some(5), ..default },
            Inference { steps: Some(1), sampler: Sampler::Ddim, ..default },
            Inference { steps: Some(1), sampler: Sampler::Exact, ..default },
            Inference { kernel_km: Some(-1.0), ..default },
            Inference { width_km: Some(0.0), ..default },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        assert_eq!(Inference::PAPER.check(), Ok(()));
    }
}
