//! LocDiff as a model that answers pictures: an image encoder, and a diffusion on its embeddings.
//!
//! In one pass the output is the density itself. Samplers give a place for each draw; these become a density by
//! a kernel that the answer names (`sample_kernel.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use locdiff_sphere::{
    Coefficients, Decoder, Density, DensityRecord, Integrator, LatLon, PointMasses, RecordLimits,
};
use rayon::prelude::*;

use super::diffusion_files::{DiffusionAbout, TrainingFacts, read_diffusion};
use super::directory::{InvalidModel, ModelDirectory, WEIGHTS};
use super::encoder_search::find_encoder;
use super::opening::{CannotOpen, OpenOptions};
use super::sample_kernel::sample_kernel;
use crate::checksum::{Checksum, sha256_of_file};
use crate::diffusion::{Diffusion, Meaning, Method, SampleOptions, encoding_width_km, rows_of};
use crate::encoders::{Embedder, EncoderRecord};
use crate::locate::{
    Frame, Inference, InvalidInference, Located, LocationModel, ModelIdentity, NotItsKind, Sampler,
};
use crate::photo::{Crops, Photo};

/// Draws that go through the network together.
const TOGETHER: usize = 512;
/// Photographs that are encoded together.
const PHOTOS_TOGETHER: usize = 32;
/// Default number of steps of DDIM.
const DDIM_STEPS: usize = 20;
/// Training with less than this share of rows at full noise, or without condition, supports one pass, or guidance, badly.
const LITTLE: f64 = 0.05;

/// A diffusion with the encoder of its condition.
pub struct DiffusionModel {
    diffusion: Diffusion,
    about: DiffusionAbout,
    /// None if only embeddings will be asked about.
    encoder: Option<Arc<dyn Embedder>>,
    /// If the encoder is not the very file that it was trained with.
    other_file: Option<String>,
    identity: ModelIdentity,
}

impl std::fmt::Debug for DiffusionModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DiffusionModel({:?}, {:?})", self.identity, self.diffusion.config())
    }
}

impl DiffusionModel {
    /// The model in a directory, with its encoder.
    pub fn open(
        directory: &ModelDirectory,
        options: &OpenOptions,
    ) -> Result<DiffusionModel, CannotOpen> {
        let (diffusion, about) = read_diffusion(directory, &options.device()?)?;
        let name = directory.name();
        let encoder = find_encoder(directory, &about.encoder, options)?;
        let mut version = Checksum::default();
        version.update(directory.text());
        if directory.files().is_empty() {
            // Version 1 has no checksums of its own.
            let weights = directory.path().join(WEIGHTS);
            let sum = sha256_of_file(&weights).map_err(InvalidModel::file("read", weights))?;
            version.update(sum);
        }
        // Without an encoder, embeddings are those of the one that it was trained with.
        let encoder_record = encoder.as_ref().map_or(&about.encoder, |encoder| encoder.record());
        version.update(&encoder_record.identity);
        Ok(DiffusionModel::new(diffusion, about, encoder, name, version.finish_short()))
    }

    /// A model from its parts. Without an encoder it can be asked about embeddings only.
    pub fn new(
        diffusion: Diffusion,
        about: DiffusionAbout,
        encoder: Option<Arc<dyn Embedder>>,
        name: String,
        version: String,
    ) -> DiffusionModel {
        let config = diffusion.config();
        let description = format!(
            "LocDiff, {} at L = {}, on embeddings of {}",
            config.objective.in_words(),
            config.denoiser.max_degree,
            about.encoder,
        );
        let identity = ModelIdentity {
            name,
            version,
            description,
            calibrated: false,
            prior: Some("pictures are taken where those of its training set were".to_owned()),
        };
        let found = encoder.as_ref().map(|encoder| encoder.record().identity.clone());
        let other_file = found.filter(|found| *found != about.encoder.identity).map(|found| {
            format!(
                "the encoder is another file of the same network: {found} instead of {}",
                about.encoder.identity
            )
        });
        DiffusionModel { diffusion, about, encoder, other_file, identity }
    }

    /// The network with its sampler, for those who have embeddings already.
    pub fn diffusion(&self) -> &Diffusion {
        &self.diffusion
    }

    /// Encoder, inference and training of the model.
    pub fn about(&self) -> &DiffusionAbout {
        &self.about
    }

    fn max_degree(&self) -> usize {
        self.diffusion.config().denoiser.max_degree
    }

    fn meaning(&self) -> Meaning {
        self.diffusion.config().objective.meaning()
    }

    fn method(&self, inference: &Inference) -> Method {
        match inference.sampler {
            Sampler::OnePass => Method::OnePass,
            Sampler::Ddim => Method::Ddim(inference.steps.unwrap_or(DDIM_STEPS)),
            Sampler::Ddpm => Method::Ddpm,
            Sampler::Flow | Sampler::Exact => unreachable!("`check` refuses samplers of flows"),
        }
    }

    /// Densities for embeddings `[rows, views, width]`; `None` where the network returns no numbers of a density.
    fn densities(
        &self,
        embeddings: &[f32],
        views: usize,
        inference: &Inference,
    ) -> Vec<Option<Density>> {
        let width = self.diffusion.config().denoiser.condition_size;
        let draws = inference.draws();
        let at_once = (TOGETHER / draws).max(1) * views * width;
        embeddings
            .chunks(at_once)
            .flat_map(|rows| {
                let outputs = self.draw(rows, views, inference);
                outputs
                    .into_par_iter()
                    .map(|draws| Some(self.density(draws?, inference)))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// How the network denoises while somebody watches: one pass has no steps, so all of them are taken instead.
    fn watched(&self, inference: &Inference) -> Method {
        match self.method(inference) {
            Method::OnePass => Method::Ddpm,
            method => method,
        }
    }

    /// What the network gives for each draw of each row.
    fn draw(&self, rows: &[f32], views: usize, inference: &Inference) -> Vec<Option<Draws>> {
        let width = self.diffusion.config().denoiser.condition_size;
        let (count, draws) = (rows.len() / (views * width), inference.draws());
        let mut conditions = Vec::with_capacity(count * draws * width);
        for row in rows.chunks_exact(views * width) {
            for draw in 0..draws {
                // Fewer views than are asked for are taken again, with other noise.
                let view = (draw / inference.samples) % views;
                conditions.extend_from_slice(&row[view * width..][..width]);
            }
        }
        let options = SampleOptions {
            method: self.method(inference),
            guidance: inference.guidance,
            seed: inference.seed,
            noise_repeats_after: draws,
        };
        let condition = self.diffusion.condition(conditions);
        let output = self.diffusion.sample(Some(condition), count * draws, options, |_| ());
        let outputs = rows_of(&output).into_iter().map(|row| row.ok().filter(is_a_density));
        together(outputs, draws)
    }

    /// The density of several draws.
    fn density(&self, draws: Draws, inference: &Inference) -> Density {
        let is_density =
            inference.sampler == Sampler::OnePass && self.meaning() != Meaning::ModeOnly;
        if is_density {
            let integrator = Integrator::new(self.max_degree());
            let mut parts: Vec<Density> = draws
                .iter()
                .map(|e| match self.meaning() {
                    Meaning::Exponential => integrator.exponential(e),
                    _ => integrator.linear(e),
                })
                .collect();
            if parts.len() == 1 {
                return parts.remove(0);
            }
            let parts = parts.into_iter().map(|part| (1.0, part)).collect();
            return Density::mixture(parts).expect("there are parts, all of the same weight");
        }
        let decoder = Decoder::new(self.max_degree());
        let places: Vec<LatLon> = draws.iter().map(|e| decoder.mode(e).place).collect();
        let kernel =
            sample_kernel(&places, inference.kernel_km, encoding_width_km(self.max_degree()));
        let masses = vec![1.0; places.len()];
        PointMasses::new(places, &masses).expect("there are samples").spread(kernel)
    }

    fn encoder(&self) -> Option<&dyn Embedder> {
        self.encoder.as_deref()
    }
}

const NO_DENSITY: &str =
    "the network returned numbers that are no density: its weights may be damaged";

/// Outputs in groups of so many; `None` where one of a group is missing, without taking from the next group.
fn together<T>(outputs: impl Iterator<Item = Option<T>>, size: usize) -> Vec<Option<Vec<T>>> {
    let outputs: Vec<Option<T>> = outputs.collect();
    let mut outputs = outputs.into_iter();
    let mut groups = Vec::new();
    while outputs.len() > 0 {
        let group: Vec<Option<T>> = outputs.by_ref().take(size).collect();
        groups.push(group.into_iter().collect());
    }
    groups
}

/// Whether a density with these coefficients can be integrated.
fn is_a_density(coefficients: &Coefficients) -> bool {
    let largest = f64::from(RecordLimits::default().largest_coefficient);
    coefficients.as_slice().iter().all(|number| number.abs() <= largest)
}

/// Outputs of the network for one picture.
type Draws = Vec<Coefficients>;

impl LocationModel for DiffusionModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn inference(&self) -> Inference {
        self.about.inference
    }

    fn check(&self, inference: &Inference) -> Result<Vec<String>, InvalidInference> {
        if matches!(inference.sampler, Sampler::Flow | Sampler::Exact) {
            return Err(InvalidInference::Unsupported {
                model: self.identity.name.clone(),
                option: format!("sampler {}", inference.sampler),
                remedy: "use one-pass, ddim or ddpm".to_owned(),
            });
        }
        let mut warnings: Vec<String> = self.other_file.iter().cloned().collect();
        let levels = self.diffusion.trained_levels().count();
        let share_at_full_noise = self.about.training.map(|facts| facts.share_at_full_noise);
        if inference.sampler != Sampler::OnePass {
            match share_at_full_noise {
                Some(share) if share >= 1.0 => {
                    return Err(InvalidInference::Untrained {
                        option: format!("sampler {}", inference.sampler),
                        reason: "the network was trained at the highest noise level only; use one-pass, \
                                 or train with objective.share_at_full_noise = 0.5"
                            .to_owned(),
                    });
                }
                Some(share) if share > 1.0 - LITTLE => warnings.push(format!(
                    "only {:.1} % of the rows in training were below the highest noise level, which sampling needs",
                    100.0 * (1.0 - share)
                )),
                _ => {}
            }
        }
        if let (Sampler::Ddim, Some(steps)) = (inference.sampler, inference.steps)
            && steps > levels
        {
            return Err(InvalidInference::Unsupported {
                model: self.identity.name.clone(),
                option: format!("steps {steps}"),
                remedy: format!(
                    "it was trained at {levels} noise levels; use at most {levels} steps"
                ),
            });
        }
        if inference.sampler == Sampler::OnePass {
            if self.meaning() == Meaning::ModeOnly {
                warnings.push(format!(
                    "trained for {}, which gives no probabilities: radii and regions are those of the kernel",
                    self.diffusion.config().objective.in_words()
                ));
            }
            if let Some(share) = share_at_full_noise {
                let share = share + (1.0 - share) / levels as f64;
                if share < LITTLE {
                    warnings.push(format!(
                        "only {:.1} % of the rows in training were at the highest noise level, which one pass uses: \
                         use the sampler ddpm, or train with objective.share_at_full_noise = 0.5",
                        100.0 * share
                    ));
                }
            }
            if share_at_full_noise.is_none() {
                warnings.push(
                    "it is not known how often the network was trained at the highest noise level, which one pass uses"
                        .to_owned(),
                );
            }
        } else if inference.draws() == 1 {
            warnings.push("one sample: radii and regions are those of the kernel".to_owned());
        }
        if inference.guidance != 1.0 {
            match self.about.training.map(|facts| facts.condition_dropout) {
                Some(0.0) => {
                    return Err(InvalidInference::Untrained {
                        option: format!("guidance {}", inference.guidance),
                        reason: "the network was never trained without its condition; train with \
                                 objective.condition_dropout = 0.1, or use guidance 1"
                            .to_owned(),
                    });
                }
                Some(share) if share < LITTLE => warnings.push(format!(
                    "only {:.1} % of the rows in training had no condition, which guidance uses",
                    100.0 * share
                )),
                Some(_) => {}
                None => warnings.push(
                    "it is not known whether the network was trained without conditions, which guidance uses"
                        .to_owned(),
                ),
            }
        }
        Ok(warnings)
    }

    fn locate(&self, photos: &[Photo], inference: &Inference) -> Vec<Result<Located, NotItsKind>> {
        let Some(encoder) = self.encoder() else {
            let why = "the model was opened without its encoder";
            return photos.iter().map(|_| Err(NotItsKind::Other(why.to_owned()))).collect();
        };
        let crops = match inference.views {
            1 => Crops::Single,
            views => Crops::Random { count: views as u32, seed: inference.seed },
        };
        photos
            .chunks(PHOTOS_TOGETHER)
            .flat_map(|photos| {
                let embeddings = encoder.embed_photos(photos, &crops);
                let densities = self.densities(&embeddings, inference.views, inference);
                let located = |density: Option<Density>| {
                    let density = density.ok_or(NotItsKind::TellsNothing(NO_DENSITY.to_owned()));
                    Ok(density?.into())
                };
                densities.into_iter().map(located).collect::<Vec<_>>()
            })
            .collect()
    }

    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        let Some(encoder) = self.encoder() else { return Vec::new() };
        let embeddings = encoder.embed_photos(photos, &Crops::Single);
        embeddings.chunks_exact(encoder.width()).map(<[f32]>::to_vec).collect()
    }

    fn locate_embeddings(
        &self,
        embeddings: &[f32],
        views: usize,
        inference: &Inference,
    ) -> Option<Vec<Located>> {
        let located = |density: Option<Density>| {
            density.map_or_else(
                || Located {
                    warnings: vec![NO_DENSITY.to_owned()],
                    ..Located::from(Density::uniform())
                },
                Located::from,
            )
        };
        Some(self.densities(embeddings, views, inference).into_iter().map(located).collect())
    }

    fn takes_embeddings_of(&self) -> Option<(&EncoderRecord, usize)> {
        Some((&self.about.encoder, self.diffusion.config().denoiser.condition_size))
    }

    fn denoising(&self, photo: &Photo, frames: usize, inference: &Inference) -> Vec<Frame> {
        let embedding = self.embed(std::slice::from_ref(photo)).pop();
        let (Some(embedding), true) = (embedding, self.can_denoise()) else { return Vec::new() };
        let method = self.watched(inference);
        let of = self.diffusion.levels(method).len() - 1;
        let shown: Vec<usize> = (0..frames).map(|k| of * k / (frames - 1).max(1)).collect();
        let (guidance, seed) = (inference.guidance, inference.seed);
        let options = SampleOptions { method, guidance, seed, ..SampleOptions::default() };
        let record = |coefficients: &Coefficients| match self.meaning() {
            Meaning::Exponential => DensityRecord::exponential(coefficients),
            _ => DensityRecord::linear(coefficients),
        };
        let mut densities = BTreeMap::new();
        let mut number = 0;
        self.diffusion.sample(Some(self.diffusion.condition(embedding)), 1, options, |step| {
            // Only what is shown: there may be thousands of steps.
            if shown.contains(&number) {
                let row = rows_of(step.output).pop();
                let row = row.and_then(Result::ok).filter(is_a_density);
                densities.extend(row.map(|coefficients| (number, record(&coefficients))));
            }
            number += 1;
        });
        let frame = |step: usize| Some(Frame { step, of, density: densities.get(&step)?.clone() });
        shown.into_iter().filter_map(frame).collect()
    }

    fn steps_of_denoising(&self, inference: &Inference) -> usize {
        self.diffusion.levels(self.watched(inference)).len()
    }

    fn can_denoise(&self) -> bool {
        let is_sampled = |facts: TrainingFacts| facts.share_at_full_noise < 1.0;
        self.meaning() != Meaning::ModeOnly
            && self.encoder.is_some()
            && self.about.training.is_none_or(is_sampled)
    }

    fn usual_steps(&self, _sampler: Sampler) -> Option<usize> {
        Some(DDIM_STEPS.min(self.diffusion.trained_levels().count()))
    }

    fn evaluations(&self, inference: &Inference) -> usize {
        inference.draws() * self.diffusion.levels(self.method(inference)).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_output_is_missed_in_its_group_only() {
        let outputs = [Some(1), None, Some(3), Some(4), Some(5), Some(6)];
        let groups = together(outputs.into_iter(), 2);
        assert_eq!(groups, [None, Some(vec![3, 4]), Some(vec![5, 6])]);
    }
}
