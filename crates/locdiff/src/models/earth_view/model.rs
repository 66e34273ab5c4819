//! earth-view as a model: what it makes of a picture, what it rejects, its files.

use std::path::Path;

use burn::tensor::{Device, Tensor};
use locdiff_sphere::{Coefficients, Density, Grid, Integrator, Transform, UNIFORM_NLL_NATS};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::network::{ViewNetwork, ViewNetworkConfig};
use super::packed_weights::PackedWeights;
use crate::checksum::sha256;
use crate::diffusion::coefficients_of;
use crate::locate::{
    Inference, InvalidInference, Located, LocationModel, ModelIdentity, NotItsKind,
};
use crate::models::directory::{
    CARD, InvalidModel, ModelDirectory, ModelKind, WEIGHTS, write_config,
};
use crate::photo::Photo;
use crate::tensors::InvalidWeights;
use crate::tensors::fused::{exp, numbers_of};

/// The name by which it is opened.
pub const NAME: &str = "earth-view";

const BUILT_IN: &[u8] = include_bytes!("../../../models/earth-view/model.safetensors");
const TURNS: usize = 4;
/// Of the grid on which it is seen how much an answer says.
const RINGS: usize = 96;
/// Grey levels; a night with a single lamp has more.
const LEAST_CONTRAST: f64 = 1.0;
/// Photographs that are looked at together.
const TOGETHER: usize = 32;
/// The header's entry with the settings.
const SETTINGS: &str = "earth-view";

/// What belongs to the weights besides their numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarthViewSettings {
    /// The network's shape.
    pub model: ViewNetworkConfig,
    /// What exponents are multiplied by. Fitted so that regions contain about their nominal share of
    /// rendered views.
    pub sharpness: f64,
    /// Pictures with less likeness to views from above are none of its kind.
    pub least_likeness: f64,
    /// Answers that say less ([`ViewReading::said_nats`]) are none.
    pub least_nats: f64,
    /// Whether regions contain about their nominal share of real pictures too. Not so in the built-in
    /// model: `experiments/earth-view/run --real`.
    pub calibrated: bool,
}

/// What the network makes of a picture, before anything is decided.
#[derive(Debug, Clone)]
pub struct ViewReading {
    /// The mean answer of the four directions, not yet sharpened.
    pub coefficients: Coefficients,
    /// The mean embedding.
    pub embedding: Vec<f32>,
    /// How much the answer says, in nats beyond "anywhere on Earth", before it is sharpened. To a few
    /// hundredths: by sums over a coarse grid.
    pub said_nats: f64,
    /// The logit of its being a view of the Earth from above, against pictures of other things.
    pub likeness: f64,
    /// Deviation of its pixels, in grey levels.
    pub contrast: f64,
}

/// The model.
pub struct EarthView {
    model: ViewNetwork,
    settings: EarthViewSettings,
    recogniser: Option<Recogniser>,
    /// The embedding of the built-in test picture when the file was made.
    reference: Vec<f32>,
    identity: ModelIdentity,
    sha256: String,
    integrator: Integrator,
    /// To see how much an answer says.
    transform: Transform<f32>,
}

impl std::fmt::Debug for EarthView {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "EarthView({:?}, {:?})", self.identity, self.settings)
    }
}

/// Tells views of the Earth from above from pictures of other things, by their embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct Recogniser {
    /// A weight for each number of the embedding.
    pub weights: Vec<f32>,
    /// What is added.
    pub bias: f32,
}

impl Recogniser {
    fn likeness(&self, embedding: &[f32]) -> f64 {
        let products = self.weights.iter().zip(embedding);
        f64::from(self.bias) + products.map(|(w, x)| f64::from(w * x)).sum::<f64>()
    }
}

impl EarthView {
    /// The model inside this program.
    pub fn built_in(device: &Device) -> EarthView {
        EarthView::from_bytes(BUILT_IN, device).expect("the weights in the program are whole")
    }

    /// A model from a file of weights.
    pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<EarthView, InvalidWeights> {
        let (weights, about) = PackedWeights::from_bytes(bytes)?;
        let wrong = |reason: String| InvalidWeights::Format { path: "earth-view".into(), reason };
        let settings = about.get(SETTINGS).ok_or_else(|| wrong("it has no settings".to_owned()))?;
        let settings: EarthViewSettings =
            serde_json::from_str(settings).map_err(|error| wrong(error.to_string()))?;
        let model = weights.apply("view", settings.model.init(device))?;
        let recogniser = match (weights.numbers("likeness"), weights.numbers("likeness.bias")) {
            (Some(weights), Some([bias])) if weights.len() == settings.model.encoder.embedding => {
                Some(Recogniser { weights: weights.to_vec(), bias: *bias })
            }
            _ => None,
        };
        if recogniser.is_none() && settings.least_likeness > f64::MIN {
            return Err(wrong(
                "it has nothing to tell views of the Earth from others by".to_owned(),
            ));
        }
        let sha256 = sha256(bytes);
        let identity = ModelIdentity {
            name: NAME.to_owned(),
            version: sha256[..16].to_owned(),
            description: "LocDiff for views of the Earth from above, about 100 to 2,000 km wide"
                .to_owned(),
            calibrated: settings.calibrated,
            prior: Some("a tenth of the picture or more is land".to_owned()),
        };
        let reference = weights.numbers("reference").unwrap_or_default().to_vec();
        let max_degree = settings.model.max_degree;
        let integrator = Integrator::new(max_degree);
        let transform = Transform::new(Grid::new(RINGS, 2 * RINGS), max_degree);
        Ok(EarthView {
            model,
            settings,
            recogniser,
            reference,
            identity,
            sha256,
            integrator,
            transform,
        })
    }

    /// The model in a directory.
    pub fn open(directory: &ModelDirectory, device: &Device) -> Result<EarthView, InvalidModel> {
        directory.expect(ModelKind::EarthView)?;
        let path = directory.path().join(WEIGHTS);
        let bytes = std::fs::read(&path).map_err(InvalidModel::file("read", path))?;
        let mut model = EarthView::from_bytes(&bytes, device)?;
        model.identity.name = directory.name();
        Ok(model)
    }

    /// Writes a directory from the bytes of [`EarthView::to_bytes`], with a model card.
    pub fn save(bytes: &[u8], directory: &Path, card: &str) -> Result<(), InvalidModel> {
        let make = InvalidModel::file("make", directory.to_owned());
        std::fs::create_dir_all(directory).map_err(make)?;
        for (name, contents) in [(WEIGHTS, bytes), (CARD, card.as_bytes())] {
            let path = directory.join(name);
            std::fs::write(&path, contents).map_err(InvalidModel::file("write", path))?;
        }
        write_config(directory, ModelKind::EarthView, json!({}), &[WEIGHTS])
    }

    /// The file's bytes for a model.
    pub fn to_bytes(
        model: &ViewNetwork,
        settings: &EarthViewSettings,
        recogniser: Option<&Recogniser>,
    ) -> Vec<u8> {
        let settings = serde_json::to_string(settings).expect("plain numbers");
        let bytes = |weights: &PackedWeights| weights.to_bytes(&[(SETTINGS, &settings)]);
        let mut weights = PackedWeights::default();
        weights.add("view", model);
        if let Some(Recogniser { weights: numbers, bias }) = recogniser {
            weights.add_numbers("likeness", vec![numbers.len()], numbers.clone());
            weights.add_numbers("likeness.bias", vec![1], vec![*bias]);
        }
        // What the rounded weights give.
        let rounded = EarthView::from_bytes(&bytes(&weights), &Device::flex());
        let reference =
            rounded.expect("what was just written").embedding_of(&Photo::test_picture());
        weights.add_numbers("reference", vec![reference.len()], reference);
        bytes(&weights)
    }

    /// The mean embedding of a photograph.
    pub(crate) fn embedding_of(&self, photo: &Photo) -> Vec<f32> {
        self.read(std::slice::from_ref(photo)).remove(0).embedding
    }

    pub(crate) fn reference(&self) -> &[f32] {
        &self.reference
    }

    /// Of the file of weights.
    pub(super) fn sha256(&self) -> &str {
        &self.sha256
    }

    /// What belongs to the weights.
    pub fn settings(&self) -> &EarthViewSettings {
        &self.settings
    }

    /// What tells views of the Earth from other pictures.
    pub fn recogniser(&self) -> Option<&Recogniser> {
        self.recogniser.as_ref()
    }

    /// The network.
    pub fn network(&self) -> &ViewNetwork {
        &self.model
    }

    /// What the network makes of photographs.
    pub fn read(&self, photos: &[Photo]) -> Vec<ViewReading> {
        let side = self.model.encoder().side();
        let read = |photos: &[Photo]| {
            let squares: Vec<Vec<u8>> =
                photos.par_iter().map(|photo| photo.square(side as u32)).collect();
            self.read_squares(&squares.concat())
        };
        photos.chunks(TOGETHER).flat_map(read).collect()
    }

    /// The same for squares of the network's size, as red, green and blue bytes.
    pub fn read_squares(&self, pixels: &[u8]) -> Vec<ViewReading> {
        let side = self.model.encoder().side();
        let Some(embeddings) = self.embeddings(pixels) else { return Vec::new() };
        let answers = coefficients_of(&mean_of_turns(self.model.answer(embeddings.clone())));
        let [_, width] = embeddings.dims();
        let means = numbers_of(&mean_of_turns(embeddings));
        let squares = pixels.chunks_exact(3 * side * side);
        let readings = answers.into_iter().zip(means.chunks_exact(width)).zip(squares);
        readings
            .map(|((coefficients, embedding), square)| ViewReading {
                said_nats: self.said_nats(&coefficients),
                coefficients,
                contrast: deviation(square),
                likeness: self.recogniser.as_ref().map_or(0.0, |r| r.likeness(embedding)),
                embedding: embedding.to_vec(),
            })
            .collect()
    }

    /// The embeddings of squares, each in four directions one after the other; `None` of no squares.
    fn embeddings(&self, pixels: &[u8]) -> Option<Tensor<2>> {
        let side = self.model.encoder().side();
        let turned = self.in_four_directions(pixels);
        if turned.is_empty() {
            return None;
        }
        // Both cores, also for a single picture.
        let squares = turned.len() / (3 * side * side);
        let part = squares.div_ceil(rayon::current_num_threads()).max(2) * 3 * side * side;
        let encode = |part: &[u8]| self.model.encoder().forward(part);
        Some(Tensor::cat(turned.par_chunks(part).map(encode).collect(), 0))
    }

    /// The mean embeddings of squares; `None` of no squares.
    pub(super) fn mean_embeddings(&self, pixels: &[u8]) -> Option<Tensor<2>> {
        self.embeddings(pixels).map(mean_of_turns)
    }

    /// Each square as it is, and after one, two and three quarter turns.
    pub fn in_four_directions(&self, pixels: &[u8]) -> Vec<u8> {
        let side = self.model.encoder().side();
        let mut turned = Vec::with_capacity(TURNS * pixels.len());
        for square in pixels.chunks_exact(3 * side * side) {
            let mut square = square.to_vec();
            for _ in 0..TURNS {
                turned.extend_from_slice(&square);
                square = quarter_turn(&square, side);
            }
        }
        turned
    }

    /// The density of a reading, its exponent multiplied by the settings' `sharpness`.
    pub fn density(&self, reading: &ViewReading) -> Density {
        let mut sharp = reading.coefficients.clone();
        sharp.as_mut_slice().iter_mut().for_each(|number| *number *= self.settings.sharpness);
        self.integrator.exponential(&sharp)
    }

    fn said_nats(&self, coefficients: &Coefficients) -> f64 {
        let grid = self.transform.grid();
        let mut values = vec![0.0_f32; grid.len()];
        let coefficients: Vec<f32> = coefficients.as_slice().iter().map(|x| *x as f32).collect();
        self.transform.synthesize_into(&coefficients, &mut values);
        let highest = values.iter().copied().fold(f32::MIN, f32::max);
        // Σ exp F and Σ F·exp F, against the highest F.
        let (mut mass, mut moment) = (0.0, 0.0);
        for (ring, values) in values.chunks_exact(grid.longitudes()).enumerate() {
            let (mut ring_mass, mut ring_moment) = (0.0_f32, 0.0_f32);
            for value in values {
                let log = value - highest;
                let weight = exp(log);
                ring_mass += weight;
                ring_moment += weight * log;
            }
            mass += f64::from(ring_mass) * grid.weight(ring);
            moment += f64::from(ring_moment) * grid.weight(ring);
        }
        UNIFORM_NLL_NATS - mass.ln() + moment / mass
    }

    /// Whether the picture is one that an answer can be made of.
    pub fn accept(&self, reading: &ViewReading) -> Result<(), NotItsKind> {
        if reading.contrast < LEAST_CONTRAST {
            return Err(NotItsKind::Other("it is all of one colour".to_owned()));
        }
        if reading.likeness < self.settings.least_likeness {
            let why = "it looks unlike views of the Earth from above";
            return Err(NotItsKind::Other(why.to_owned()));
        }
        if reading.said_nats < self.settings.least_nats {
            let why = "nothing in it tells where on Earth it is; open sea, clouds, or far too \
                narrow a view?";
            return Err(NotItsKind::TellsNothing(why.to_owned()));
        }
        Ok(())
    }
}

impl LocationModel for EarthView {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn rejects_pictures(&self) -> bool {
        true
    }

    fn check(&self, inference: &Inference) -> Result<Vec<String>, InvalidInference> {
        inference.expect_one_pass(&self.identity.name, &[1])?;
        Ok(Vec::new())
    }

    fn locate(&self, photos: &[Photo], _inference: &Inference) -> Vec<Result<Located, NotItsKind>> {
        self.read(photos)
            .into_par_iter()
            .map(|reading| {
                self.accept(&reading)?;
                Ok(self.density(&reading).into())
            })
            .collect()
    }

    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        self.read(photos).into_iter().map(|reading| reading.embedding).collect()
    }
}

/// The mean of each picture's directions.
fn mean_of_turns(x: Tensor<2>) -> Tensor<2> {
    let [rows, width] = x.dims();
    x.reshape([rows / TURNS, TURNS, width]).mean_dim(1).reshape([rows / TURNS, width])
}

/// Of the colour that varies most.
fn deviation(pixels: &[u8]) -> f64 {
    let of = |colour: usize| {
        let values = || pixels.iter().skip(colour).step_by(3).map(|byte| f64::from(*byte));
        let count = (pixels.len() / 3) as f64;
        let mean = values().sum::<f64>() / count;
        (values().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
    };
    (0..3).map(of).fold(0.0, f64::max)
}

/// The picture turned to the left.
fn quarter_turn(pixels: &[u8], side: usize) -> Vec<u8> {
    let mut turned = Vec::with_capacity(pixels.len());
    for row in 0..side {
        for column in 0..side {
            let from = 3 * (column * side + side - 1 - row);
            turned.extend_from_slice(&pixels[from..from + 3]);
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_quarter_turns_are_none() {
        let pixels: Vec<u8> = (0..27).collect();
        // The top right corner comes to the top left.
        assert_eq!(quarter_turn(&pixels, 3)[..3], pixels[6..9]);
        let turned = (0..4).fold(pixels.clone(), |pixels, _| quarter_turn(&pixels, 3));
        assert_eq!(turned, pixels);
    }
}
