//! How the files of an encoder are read, where its name adds to its files: one checkpoint can be used in several ways, and
//! embeddings of one way are of no use in another.

use crate::photo::Preprocessing;

/// How an encoder is read.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Reading {
    /// As the encoder's files state.
    #[default]
    Published,
    /// Pictures prepared as plonk does, in another size than in the files.
    Plonk,
    /// The last class token, before the norm and the projection.
    ClassToken,
}

impl Reading {
    /// How the encoder of a name is read; a name may end in `@revision`.
    pub fn of(name: &str) -> Reading {
        match name.split('@').next() {
            Some("dinov2-l-14-reg-336") => Reading::Plonk,
            Some("streetclip-token") => Reading::ClassToken,
            _ => Reading::Published,
        }
    }

    /// Preprocessing, if it differs from that of the files.
    pub(super) fn preprocessing(&self) -> Option<Preprocessing> {
        (*self == Reading::Plonk).then_some(Preprocessing::PLONK)
    }
}
