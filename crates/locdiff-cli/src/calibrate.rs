//! `locdiff calibrate`: scores of a model become probabilities, by pictures whose places are known.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use locdiff::OpenOptions;
use locdiff::locate::{Calibration, Coverage};
use locdiff::models::{EncoderSource, ModelHome, calibration_directory};
use locdiff_evaluate::{
    AnswerProgress, CalibrationData, calibrate, is_embeddings, manifest_path, read_manifest,
};
use locdiff_sphere::shown;
use locdiff_train::{Dataset, OnBadShard};

use crate::asking::{InferenceArguments, OpeningArguments, open};
use crate::progress::Progress;
use crate::text::{json_stdout, stderr};
use crate::{memory, refused};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The model: earth-view, geoclip, or the directory of a trained model or a hybrid
    #[arg(value_name = "MODEL")]
    model: String,
    /// Pictures that the model was not trained on: a manifest (image, latitude, longitude), a folder with a manifest.csv, or
    /// a folder of embeddings that `locdiff embed` wrote with the model's encoder
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Use at most this many rows: half of them to fit, the other half to check
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(100..))]
    rows: u64,
    /// Print the calibration, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// One JSON object, numbers unrounded
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    opening: OpeningArguments,
    #[command(flatten)]
    inference: InferenceArguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    memory::keep_for_a_while();
    let embeddings = is_embeddings(&arguments.data);
    let mut options: OpenOptions = arguments.opening.options();
    if embeddings {
        options.encoder = EncoderSource::NotNeeded;
    }
    let model = match open(&arguments.model, &options, &arguments.inference) {
        Ok(model) => model.uncalibrated()?,
        Err(error) => return Ok(refused(&error.to_string(), error.code())),
    };
    let mut progress = Progress::new("pictures", None);
    let mut watch = |event: &AnswerProgress| {
        progress.of(event.total as u64);
        progress.add(1);
        if let Some((image, reason)) = &event.without_answer {
            // Nobody may be listening there.
            let _ = writeln!(stderr(), "locdiff: {}: {reason}", shown(image));
        }
    };
    let (data, at_most) = (arguments.data.display().to_string(), arguments.rows as usize);
    let calibration = if embeddings {
        let set = Dataset::open(&data, OnBadShard::Fail)?;
        calibrate(&model, CalibrationData::Embeddings(&set), &data, at_most, &mut watch)?
    } else {
        let path = manifest_path(&arguments.data);
        let (manifest, folder) = (read_manifest(&path)?, path.parent().unwrap_or(Path::new("")));
        let rows = CalibrationData::Images(&manifest, folder);
        calibrate(&model, rows, &data, at_most, &mut watch)?
    };
    drop(progress);
    let written = if arguments.dry_run {
        None
    } else {
        let directory =
            calibration_directory(&arguments.model, ModelHome::from_env().ok().as_ref())
                .with_context(|| {
                    format!(
                        "no directory for the calibration of {}: set LOCDIFF_HOME",
                        arguments.model
                    )
                })?;
        Some(calibration.write(&directory)?)
    };
    if arguments.json {
        writeln!(json_stdout(), "{}", serde_json::to_string(&calibration)?)?;
    } else {
        write!(crate::text::stdout(), "{}", text(&model.identity().name, &calibration))?;
    }
    if let Some(path) = written {
        writeln!(
            stderr(),
            "answers are calibrated by {}; remove this file to get scores again",
            path.display()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(model: &str, calibration: &Calibration) -> String {
    let Calibration { sharpness, background, data, fitted_rows, checked_rows, .. } = calibration;
    let line = |name: &str, Coverage { within_50, within_90, nll_nats }: Coverage| {
        format!("  {name:<8} {within_50:>8.1} % {within_90:>9.1} % {nll_nats:>9.3} nats\n")
    };
    let mut text = format!(
        "{model}: sharpness {sharpness:.3}, background {:.2} %, by {fitted_rows} rows of {data}\n\n  on {checked_rows} \
         others  within 50 %  within 90 %        NLL\n",
        100.0 * background
    );
    text += &line("before", calibration.before);
    text += &line("after", calibration.after);
    text
}
