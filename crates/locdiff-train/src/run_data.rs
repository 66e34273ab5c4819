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
use locdiff::models::{DiffusionAbout, DiffusionModel, InvalidModel, TrainingFacts};
use serde::{Deserialize, Serialize};

use crate::config::TrainingConfig;
use crate::data::{Dataset, Ids, Part, Split, StreamOptions};
use crate::training_error::TrainingError;

const FILE: &str = "data.json";
const CONDITION: &str = "condition.safetensors";
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
    /// Writes what is known of a data set into a run's directory; or reads what an earlier start wrote, so that
    /// a resumed run goes on with the same numbers.
    pub(crate) fn prepare(
        directory: &Path,
        config: &TrainingConfig,
        data: &Dataset,
        split: Split,
    ) -> Result<RunData, TrainingError> {
        if directory.join(FILE).exists() {
            return RunData::read(directory);
        }
        let layout = data.layout();
        let standardization = match config.network.standardize {
            true => Some(standardization(data, split)?),
            false => None,
        };
        if let Some(standardization) = &standardization {
            standardization.save(&directory.join(CONDITION)).map_err(InvalidModel::from)?;
        }
        let (encoder, width) = (layout.encoder.clone(), layout.width);
        let run_data = RunData { encoder, width, rows: data.rows(), standardization };
        let text = serde_json::to_string_pretty(&run_data).expect("plain values");
        let path = directory.join(FILE);
        let partial = directory.join("data.partial");
        fs::write(&partial, text + "\n")
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(|source| TrainingError::File { path, source })?;
        Ok(run_data)
    }

    /// What [`RunData::prepare`] wrote.
    pub(crate) fn read(directory: &Path) -> Result<RunData, TrainingError> {
        let path = directory.join(FILE);
        let text = fs::read_to_string(&path)
            .map_err(|source| TrainingError::File { path: path.clone(), source })?;
        let mut run_data: RunData = serde_json::from_str(&text)
            .map_err(|error| TrainingError::Model(InvalidModel::Config { path, error }))?;
        let condition = directory.join(CONDITION);
        if condition.exists() {
            let standardization = Standardization::open(&condition).map_err(InvalidModel::from)?;
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
