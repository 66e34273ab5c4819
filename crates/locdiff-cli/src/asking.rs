//! How a model is opened and asked: the same options for every command.

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use locdiff::locate::{Decode, InvalidInference, Sampler};
use locdiff::models::EncoderSource;
use locdiff::{CannotOpen, Geolocator, InferenceOptions, OpenOptions};

/// How a model computes its answer. What isn't given is the model's own choice.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Inference (default: the settings of the model)")]
pub(crate) struct InferenceArguments {
    /// Sampler: one-pass, ddim or ddpm for diffusion models; flow or exact for flows
    #[arg(long, value_name = "HOW")]
    sampler: Option<Sampler>,
    /// Compute the whole density of a flow, with its error, instead of samples; slow. Same as --sampler exact
    #[arg(long, conflicts_with = "sampler")]
    exact: bool,
    /// Noise levels that ddim visits, or steps of a flow
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Samples for each view
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Guidance scale: how strongly the picture conditions the answer; 1 is as trained
    #[arg(long, value_name = "X")]
    guidance: Option<f64>,
    /// Views of each picture: 1 is its center, more are random crops (the paper takes 16; for GeoCLIP 10 are its ten crops)
    #[arg(long, value_name = "N")]
    views: Option<usize>,
    /// Seed of crops, noise and draws: the same seed gives the same answer
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Which place is taken from the density: mode, mean, kl, geoscore or distance
    #[arg(long, value_name = "RULE")]
    decode: Option<Decode>,
    /// Width of the kernel that spreads samples
    #[arg(long, value_name = "KM")]
    kernel_km: Option<f64>,
    /// Do not register views of the Earth from above against a map: faster, but coarser and without footprints
    #[arg(long)]
    no_registration: bool,
    /// For views of the Earth from above: width of the ground along the shorter side of the picture, if you know it
    #[arg(long, value_name = "KM")]
    width_km: Option<f64>,
}

impl InferenceArguments {
    pub(crate) fn options(&self) -> InferenceOptions {
        let InferenceArguments {
            sampler,
            exact,
            steps,
            samples,
            guidance,
            views,
            seed,
            decode,
            kernel_km,
            no_registration,
            width_km,
        } = *self;
        InferenceOptions {
            sampler: sampler.or(exact.then_some(Sampler::Exact)),
            steps,
            samples,
            guidance,
            views,
            seed,
            decode,
            kernel_km,
            registration: no_registration.then_some(false),
            width_km,
        }
    }
}

/// Where a model computes, and with which encoder.
#[derive(Args, Clone)]
pub(crate) struct OpeningArguments {
    /// The image encoder of a model that `locdiff train` made, if it is not an installed one: a directory or a name
    #[arg(long, value_name = "PATH")]
    encoder: Option<PathBuf>,
    /// Device to compute on: cpu, cuda:N, wgpu or metal, if this program was built with it
    #[arg(long, default_value = "cpu")]
    device: String,
}

/// Why a model can't be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotAsk {
    #[error(transparent)]
    Open(#[from] CannotOpen),
    #[error(transparent)]
    Inference(#[from] InvalidInference),
}

impl CannotAsk {
    /// The program's exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            CannotAsk::Open(CannotOpen::Missing { .. }) => crate::NO_MODEL,
            CannotAsk::Open(CannotOpen::Unknown(_) | CannotOpen::Device(_))
            | CannotAsk::Inference(_) => crate::NONSENSE,
            CannotAsk::Open(_) => crate::FAILED,
        }
    }
}

impl OpeningArguments {
    /// What opens a model for photographs.
    pub(crate) fn options(&self) -> OpenOptions {
        let encoder = self.encoder.clone().map_or(EncoderSource::Installed, EncoderSource::Path);
        OpenOptions { device: self.device.clone(), encoder, ..OpenOptions::default() }
    }
}

/// A model by name or directory; a bar on stderr shows what is computed once and then kept.
pub(crate) fn open(
    name: &str,
    options: &OpenOptions,
    inference: &InferenceArguments,
) -> Result<Geolocator, CannotAsk> {
    let template = "{msg} {wide_bar} {pos}/{len} {eta}";
    let bar = ProgressBar::hidden().with_message(format!("{name}: encoding places (only once)"));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let opened = Geolocator::open_with(name, options, &mut |done, total| {
        if bar.is_hidden() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    Ok(opened?.with(&inference.options())?)
}
