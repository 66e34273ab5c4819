//! A flow as a model that answers pictures: an image encoder, and a flow on its embeddings.
//!
//! With the sampler `flow` uniform noise is carried to places, which become a density by a kernel that the answer names. With
//! `exact` cells of places are carried back to the noise: the density is normalized by construction, and its error is stated.

use std::sync::Arc;

use locdiff_sphere::{Density, LatLon, PointMasses, PullBack, UnitVector, uniform_place};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::files::{FlowAbout, read_flow};
use super::network::FlowNetwork;
use crate::checksum::Checksum;
use crate::encoders::{Embedder, EncoderRecord};
use crate::locate::{
    Inference, InvalidInference, Located, LocationModel, ModelIdentity, NotItsKind, Sampler,
};
use crate::models::directory::ModelDirectory;
use crate::models::encoder_search::find_encoder;
use crate::models::sample_kernel::sample_kernel;
use crate::models::{CannotOpen, OpenOptions};
use crate::photo::{Crops, Photo};

/// Photographs that are encoded together.
const PHOTOS_TOGETHER: usize = 32;
/// Steps of Euler's rule from noise to places, as in plonk's demonstration.
const SAMPLE_STEPS: usize = 32;
/// Steps of the midpoint rule from places to noise: the total variation from 200 steps was 0.7 % on a small network.
const EXACT_STEPS: usize = 48;
/// Samples are spread at least so widely: a city.
const LEAST_KERNEL_KM: f64 = 10.0;

/// A flow with the encoder of its condition.
pub struct FlowModel {
    network: FlowNetwork,
    about: FlowAbout,
    /// None if only embeddings will be asked about.
    encoder: Option<Arc<dyn Embedder>>,
    identity: ModelIdentity,
}

impl std::fmt::Debug for FlowModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FlowModel({:?}, {:?})", self.identity, self.network.config())
    }
}

impl FlowModel {
    /// The model in a directory, with its encoder.
    pub fn open(
        directory: &ModelDirectory,
        options: &OpenOptions,
    ) -> Result<FlowModel, CannotOpen> {
        let (network, about) = read_flow(directory, &options.device()?)?;
        let encoder = find_encoder(directory, &about.encoder, options)?;
        let mut version = Checksum::default();
        version.update(directory.text());
        let record = encoder.as_ref().map_or(&about.encoder, |encoder| encoder.record());
        version.update(&record.identity);
        Ok(FlowModel::new(network, about, encoder, directory.name(), version.finish_short()))
    }

    /// A model from its parts. Without an encoder it can be asked about embeddings only.
    pub fn new(
        network: FlowNetwork,
        about: FlowAbout,
        encoder: Option<Arc<dyn Embedder>>,
        name: String,
        version: String,
    ) -> FlowModel {
        let trained_on = about.source.as_ref().map(|source| source.trained_on.clone());
        let on = trained_on.as_ref().map_or(String::new(), |data| format!(" trained on {data},"));
        let identity = ModelIdentity {
            name,
            version,
            description: format!(
                "plonk, a flow of width {},{on} on embeddings of {}",
                network.config().dim,
                about.encoder
            ),
            calibrated: false,
            prior: Some(format!(
                "photographs are taken where those of {} were",
                trained_on.as_deref().unwrap_or("its training set")
            )),
        };
        FlowModel { network, about, encoder, identity }
    }

    /// The network without its encoder.
    pub fn network(&self) -> &FlowNetwork {
        &self.network
    }

    /// Encoder, inference and source of the model.
    pub fn about(&self) -> &FlowAbout {
        &self.about
    }

    fn steps(&self, inference: &Inference) -> usize {
        inference.steps.or(self.usual_steps(inference.sampler)).unwrap_or(SAMPLE_STEPS)
    }

    /// Densities for embeddings `[rows, views, width]`.
    fn located(&self, embeddings: &[f32], views: usize, inference: &Inference) -> Vec<Located> {
        let width = self.network.config().cond_dim;
        let rows = embeddings.chunks_exact(views * width);
        let locate = |row: &[f32]| {
            let views: Vec<&[f32]> = row.chunks_exact(width).collect();
            match inference.sampler {
                Sampler::Exact => self.exact(&views, inference),
                _ => self.sampled(&views, inference).into(),
            }
        };
        rows.map(locate).collect()
    }

    /// Samples of all views, spread by a kernel. All pictures have the same noise, so that an answer does not depend on the
    /// pictures beside it.
    fn sampled(&self, views: &[&[f32]], inference: &Inference) -> Density {
        let mut rng = ChaCha8Rng::seed_from_u64(inference.seed);
        let (steps, guidance) = (self.steps(inference), inference.guidance);
        let mut places = Vec::with_capacity(inference.draws());
        for view in 0..inference.views {
            let noise: Vec<UnitVector> =
                (0..inference.samples).map(|_| uniform_place(&mut rng).into()).collect();
            // Fewer views than are asked for are taken again, with other noise.
            let drawn = self.network.sample(views[view % views.len()], &noise, steps, guidance);
            places.extend(drawn.into_iter().map(LatLon::from));
        }
        let kernel = sample_kernel(&places, inference.kernel_km, LEAST_KERNEL_KM);
        let masses = vec![1.0; places.len()];
        PointMasses::new(places, &masses).expect("there are samples").spread(kernel)
    }

    fn exact(&self, views: &[&[f32]], inference: &Inference) -> Located {
        let (steps, guidance) = (self.steps(inference), inference.guidance);
        let mut folded: f64 = 0.0;
        let mut parts: Vec<Density> = Vec::new();
        for view in views {
            let back =
                |places: &[UnitVector]| self.network.pull_back(view, places, steps, guidance);
            let pulled = PullBack::default().density(back);
            folded = folded.max(pulled.folded);
            parts.push(pulled.density);
        }
        let density = match parts.len() {
            1 => parts.remove(0),
            _ => Density::mixture(parts.into_iter().map(|part| (1.0, part)).collect())
                .expect("there are parts, all of the same weight"),
        };
        let mut error = format!(
            "exact density: its error is at least {:.2} % (mass of cells whose images in the noise are folded)",
            100.0 * folded
        );
        if steps < EXACT_STEPS {
            error.push_str(&format!(
                ", and more because {steps} steps were taken instead of {EXACT_STEPS}"
            ));
        }
        Located { warnings: vec![error], ..Located::from(density) }
    }

    fn unsupported(&self, option: String, remedy: &str) -> InvalidInference {
        let (model, remedy) = (self.identity.name.clone(), remedy.to_owned());
        InvalidInference::Unsupported { model, option, remedy }
    }
}

impl LocationModel for FlowModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn inference(&self) -> Inference {
        self.about.inference
    }

    fn check(&self, inference: &Inference) -> Result<Vec<String>, InvalidInference> {
        let sampler = inference.sampler;
        if !matches!(sampler, Sampler::Flow | Sampler::Exact) {
            let option = format!("sampler {sampler}");
            return Err(self.unsupported(option, "it is a flow; use flow or exact"));
        }
        let mut warnings = Vec::new();
        if let (Sampler::Exact, Some(kernel_km)) = (sampler, inference.kernel_km) {
            let option = format!("kernel_km {kernel_km} with sampler exact");
            return Err(
                self.unsupported(option, "leave kernel_km out: an exact density has no samples")
            );
        }
        if sampler == Sampler::Flow && inference.draws() == 1 {
            warnings.push("one sample: radii and regions are those of the kernel".to_owned());
        }
        if inference.guidance != 1.0 {
            warnings.push(format!(
                "guidance {} changes the density that the network was trained for: its masses are not probabilities",
                inference.guidance
            ));
        }
        Ok(warnings)
    }

    fn locate(&self, photos: &[Photo], inference: &Inference) -> Vec<Result<Located, NotItsKind>> {
        let Some(encoder) = &self.encoder else {
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
                self.located(&embeddings, inference.views, inference).into_iter().map(Ok)
            })
            .collect()
    }

    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        let Some(encoder) = &self.encoder else { return Vec::new() };
        let embeddings = encoder.embed_photos(photos, &Crops::Single);
        embeddings.chunks_exact(encoder.width()).map(<[f32]>::to_vec).collect()
    }

    fn locate_embeddings(
        &self,
        embeddings: &[f32],
        views: usize,
        inference: &Inference,
    ) -> Option<Vec<Located>> {
        Some(self.located(embeddings, views, inference))
    }

    fn takes_embeddings_of(&self) -> Option<(&EncoderRecord, usize)> {
        Some((&self.about.encoder, self.network.config().cond_dim))
    }

    fn usual_steps(&self, sampler: Sampler) -> Option<usize> {
        match sampler {
            Sampler::Flow => Some(SAMPLE_STEPS),
            Sampler::Exact => Some(EXACT_STEPS),
            _ => None,
        }
    }

    fn evaluations(&self, inference: &Inference) -> usize {
        let conditions = if inference.guidance == 1.0 { 1 } else { 2 };
        let particles = match inference.sampler {
            Sampler::Exact => 2 * PullBack::default().most_points * inference.views,
            _ => inference.draws(),
        };
        conditions * particles * self.steps(inference)
    }
}
