//! What a run's embeddings are, kept beside its checkpoints, so that any of them can become a model without the data.
//!
//! ```text
//! RUN/data.json               the encoder, the length of its embeddings, the number of rows
//!     condition.safetensors   what embeddings are centered and scaled by, if they are
//! ```

use std::fs;
use std::path::Path;

use locdiff::diffusion::{Diffusion, Standardization};
use locdiff::encoders::EncoderRecord;
use locdiff::models::{
    CONDITION_FILE, DiffusionAbout, DiffusionModel, InvalidModel, TrainingFacts,
};
use serde::{Deserialize, Serialize};

use crate::config::TrainingConfig;
use crate::data::{Dataset, Ids, Part, Split, StreamOptions};
use crate::training_error::TrainingError;

const FILE: &str = "data.json";
/// More rows don't change a mean by much.
const ROWS_FOR_MEANS: usize = 50_000;

/// What a run's embeddings are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunData {
    encoder: EncoderRecord,
    pub(crate) width: usize,
    rows: u64,
    #[serde(skip)]
    pub(crate) standardization: Option<Standardization>,
}

impl RunData {
    /// Writes what is known of a data set into a run's directory; or, if there are checkpoints, reads what was written when
    /// it began, so that a resumed run goes on with the same numbers.
    pub(crate) fn prepare(
        directory: &Path,
        config: &TrainingConfig,
        data: &Dataset,
        split: Split,
        resumed: bool,
    ) -> Result<RunData, TrainingError> {
        let layout = data.layout();
        if resumed && directory.join(FILE).exists() {
            let before = RunData::read(directory)?;
            let same = before.encoder.check(&layout.encoder);
            if same.is_err() || before.width != layout.width {
                return Err(TrainingError::OtherData {
                    path: directory.join(FILE),
                    then: format!("{} ({} numbers)", before.encoder, before.width),
                    now: format!("{} ({} numbers)", layout.encoder, layout.width),
                });
            }
            return Ok(before);
        }
        let standardization = match config.network.standardize {
            true => Some(standardization(data, split)?),
            false => None,
        };
        let condition = directory.join(CONDITION_FILE);
        match &standardization {
            Some(standardization) => {
                standardization.save(&condition).map_err(InvalidModel::from)?;
            }
            // Of an earlier start with another configuration.
            None if condition.exists() => fs::remove_file(&condition)
                .map_err(|error| TrainingError::File { path: condition, error })?,
            None => {}
        }
        let (encoder, width) = (layout.encoder.clone(), layout.width);
        let run_data = RunData { encoder, width, rows: data.rows(), standardization };
        let text = serde_json::to_string_pretty(&run_data).expect("plain values");
        let path = directory.join(FILE);
        let partial = directory.join("data.partial");
        fs::write(&partial, text + "\n")
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(|error| TrainingError::File { path, error })?;
        Ok(run_data)
    }

    /// What [`RunData::prepare`] wrote.
    pub(crate) fn read(directory: &Path) -> Result<RunData, TrainingError> {
        let path = directory.join(FILE);
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => TrainingError::NoRunData { path: path.clone() },
            _ => TrainingError::Unreadable { path: path.clone(), error },
        })?;
        let mut run_data: RunData = serde_json::from_str(&text)
            .map_err(|error| TrainingError::Model(InvalidModel::Config { path, error }))?;
        let condition = directory.join(CONDITION_FILE);
        if condition.exists() {
            let standardization = Standardization::open(&condition).map_err(InvalidModel::from)?;
            let (found, expected) = (standardization.width(), run_data.width);
            if found != expected {
                let reason = format!("is for {found} numbers, {FILE} has {expected}");
                return Err(InvalidModel::Contents { path: condition, reason }.into());
            }
            run_data.standardization = Some(standardization);
        }
        Ok(run_data)
    }

    fn about(&self, config: &TrainingConfig, steps: u64) -> DiffusionAbout {
        DiffusionAbout {
            encoder: self.encoder.clone(),
            inference: config.inference(),
            training: Some(TrainingFacts {
                steps,
                batch: config.run.batch,
                rows: self.rows,
                share_at_full_noise: config.objective.share_at_full_noise,
                condition_dropout: config.objective.condition_dropout,
            }),
        }
    }

    /// The model as it will answer, for embeddings.
    pub(crate) fn model(
        &self,
        config: &TrainingConfig,
        diffusion: Diffusion,
        steps: u64,
    ) -> DiffusionModel {
        let (name, version) = ("in training".to_owned(), steps.to_string());
        DiffusionModel::new(diffusion, self.about(config, steps), None, name, version)
    }

    /// Writes the model directory.
    pub(crate) fn save(
        &self,
        config: &TrainingConfig,
        diffusion: &Diffusion,
        steps: u64,
        directory: &Path,
    ) -> Result<(), InvalidModel> {
        let card = format!(
            "# A LocDiff model\n\n\
             Trained by `locdiff train` for {steps} steps of {} rows, on {} rows of embeddings of {} (width {}).\n\n\
             Its answers are predictions, and not calibrated. The configuration:\n\n```toml\n{}```\n",
            config.run.batch,
            self.rows,
            self.encoder,
            self.width,
            toml::to_string(config).unwrap_or_default(),
        );
        diffusion.save(directory, &self.about(config, steps), &card)
    }
}

/// Mean and deviation of the training rows, or of the first of them.
fn standardization(data: &Dataset, split: Split) -> Result<Standardization, TrainingError> {
    let options = StreamOptions {
        batch: 256,
        part: Part::Train(split),
        ids: Ids::Omit,
        epochs: Some(1),
        ..StreamOptions::default()
    };
    let width = data.layout().width;
    let mut embeddings = Vec::new();
    for batch in data.stream(options)? {
        embeddings.extend(batch?.embeddings);
        if embeddings.len() >= ROWS_FOR_MEANS * width {
            break;
        }
    }
    Ok(Standardization::of(&embeddings, width))
}
