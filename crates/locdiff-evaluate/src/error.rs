//! Why answers can't be scored.

use std::io;
use std::path::{Path, PathBuf};

use locdiff::encoders::DifferentEncoder;
use locdiff_sphere::InvalidScores;
use locdiff_train::DataError;

/// Why answers can't be scored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A file can't be read or written.
    #[error("cannot read {path}: {source}", path = path.display())]
    File {
        /// The file that could not be read or written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file isn't a table of places.
    #[error("{path}: {reason}", path = path.display())]
    Table {
        /// The file without a table of places.
        path: PathBuf,
        /// What is wrong with it, and where.
        reason: String,
    },
    /// A model that looks at photographs was given embeddings.
    #[error("{model} needs photographs, not embeddings: give a manifest of images with --data")]
    PhotographsOnly {
        /// The model's name.
        model: String,
    },
    /// The embeddings are another encoder's.
    #[error("{model} can't be scored on these embeddings: {error}")]
    OtherEncoder {
        /// The model's name.
        model: String,
        /// Both encoders.
        error: DifferentEncoder,
    },
    /// There is too little to calibrate on.
    #[error(
        "{found} rows with answers: a calibration needs at least {least}, half to fit and half to check"
    )]
    FewRows {
        /// Rows that were found.
        found: usize,
        /// Rows that are needed.
        least: usize,
    },
    /// The embeddings have another length.
    #[error("{model} needs embeddings of {expected} numbers, these have {found}")]
    Width {
        /// The model's name.
        model: String,
        /// Length of the embeddings that the model takes.
        expected: usize,
        /// Length of the embeddings in the data.
        found: usize,
    },
    /// Answers without names of images belong to the truth by their order only.
    #[error("{answers} answers without names, but {images} images: add a column of image names")]
    Order {
        /// Rows of answers.
        answers: usize,
        /// Images of the truth.
        images: usize,
    },
    /// No answer names an image of the truth.
    #[error(
        "no answer matches an image: answers name images such as `{answer}`, the true places name images such as `{image}`"
    )]
    NothingMatches {
        /// One of the answers' images.
        answer: String,
        /// One of the truth's images.
        image: String,
    },
    /// Some images have no answer, and no rule was given for counting them.
    #[error(
        "{missing} of {images} images have no answer, `{first}` for example: count them as wrong (--missing worst) or leave them out (--missing skip)"
    )]
    Missing {
        /// Images without an answer.
        missing: usize,
        /// Number of images of the truth.
        images: usize,
        /// The first image without an answer.
        first: String,
    },
    /// Two models are compared on different images.
    #[error(
        "the two models are compared on the same images only: `{image}` has no answer of {model}"
    )]
    Unpaired {
        /// An image that only one has answered.
        image: String,
        /// The model without an answer to it.
        model: String,
    },
    /// Two sets of embeddings don't compare.
    #[error(
        "the embeddings of {test} are from {test_encoder}, the embeddings of {train} from {train_encoder}"
    )]
    Encoders {
        /// The test set.
        test: String,
        /// Its encoder and width.
        test_encoder: String,
        /// The training set.
        train: String,
        /// Its encoder and width.
        train_encoder: String,
    },
    /// An image can't be answered, and unanswered images were not allowed.
    #[error(
        "no answer for {image}: {reason}; count it as wrong (--missing worst) or leave it out (--missing skip)"
    )]
    Unanswered {
        /// Name of the image.
        image: String,
        /// Why there is no answer.
        reason: String,
    },
    /// Numbers can't be scored.
    #[error(transparent)]
    Scores(#[from] InvalidScores),
    /// A data set of embeddings can't be read.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl EvaluationError {
    pub(super) fn table(path: &Path, reason: impl ToString) -> EvaluationError {
        EvaluationError::Table { path: path.to_owned(), reason: reason.to_string() }
    }

    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> EvaluationError {
        let path = path.to_owned();
        move |source| EvaluationError::File { path, source }
    }
}
