//! Answers to requests, as JSON. The record of one answer is [`locdiff::Answer`]; it and densities are described by
//! `docs/answer.schema.json`.

use locdiff::Answer;
use locdiff::locate::{ImageFacts, ModelFacts};
use serde::Serialize;

use crate::problem::Problem;

/// An image's embedding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Embedded {
    /// Name, checksum and size of the image.
    pub image: ImageFacts,
    /// The model whose encoder looked at it.
    pub model: ModelFacts,
    /// What it made of it.
    pub embedding: Vec<f32>,
}

/// An image without an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failed {
    /// Name, checksum and size of the image.
    pub image: ImageFacts,
    /// Why there is no answer.
    pub problem: Problem,
}

/// An answer, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Outcome<T> {
    /// The model returned an answer.
    Answered(Box<T>),
    /// None.
    Failed(Failed),
}

/// Answers, image by image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LocateAnswer {
    /// Always: these are predictions, not facts.
    pub prediction: bool,
    /// One for each image, in their order.
    pub results: Vec<Outcome<Answer>>,
}

/// Embeddings, image by image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EmbedAnswer {
    /// One for each image, in their order.
    pub results: Vec<Outcome<Embedded>>,
}
