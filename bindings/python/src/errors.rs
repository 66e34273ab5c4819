//! Errors of the library as exceptions of the package, with their own words.

use locdiff::CannotOpen;
use locdiff::locate::NoAnswer;
use locdiff::photo::PhotoError;
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(locdiff._errors, BatchError);
import_exception!(locdiff._errors, ForkError);
import_exception!(locdiff._errors, ImageError);
import_exception!(locdiff._errors, ImageFileError);
import_exception!(locdiff._errors, ModelError);
import_exception!(locdiff._errors, ModelMissingError);
import_exception!(locdiff._errors, NoAnswerError);
import_exception!(locdiff._errors, OptionError);

/// What somebody asked for makes no sense.
pub(crate) fn wrong_option(error: impl ToString) -> PyErr {
    OptionError::new_err(error.to_string())
}

/// Why a model could not be opened.
pub(crate) fn cannot_open(error: CannotOpen) -> PyErr {
    match error {
        CannotOpen::Missing { .. } => ModelMissingError::new_err(error.to_string()),
        CannotOpen::Inference(_) | CannotOpen::Device(_) => wrong_option(error),
        _ => ModelError::new_err(error.to_string()),
    }
}

/// Why there is no answer about an image, in words and as an exception.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    kind: Kind,
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    File,
    Image,
    NoAnswer,
}

impl From<NoAnswer> for Problem {
    fn from(none: NoAnswer) -> Problem {
        Problem { kind: Kind::NoAnswer, reason: none.reason }
    }
}

impl Problem {
    pub(crate) fn image(reason: impl Into<String>) -> Problem {
        Problem { kind: Kind::Image, reason: reason.into() }
    }

    pub(crate) fn unreadable(error: &PhotoError) -> Problem {
        let kind = match error {
            PhotoError::Unreadable { .. } => Kind::File,
            _ => Kind::Image,
        };
        Problem { kind, reason: error.reason() }
    }

    /// The exception, with the image's name before the reason if it has one.
    pub(crate) fn exception(&self, name: Option<&str>) -> PyErr {
        let text = match name {
            Some(name) => format!("{name}: {}", self.reason),
            None => self.reason.clone(),
        };
        match self.kind {
            Kind::File => ImageFileError::new_err(text),
            Kind::Image => ImageError::new_err(text),
            Kind::NoAnswer => NoAnswerError::new_err(text),
        }
    }
}
