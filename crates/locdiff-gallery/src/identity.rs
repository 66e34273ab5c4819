//! Which encoder made the embeddings of a gallery.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Identifies an encoder. Only embeddings of one encoder can be compared.
///
/// The texts are compared and shown, never interpreted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncoderIdentity {
    /// What people call the encoder. Two names of the same weights are the same encoder.
    pub name: String,
    /// A checksum of its weights.
    pub digest: String,
    /// What is done to photographs before the encoder.
    pub preprocessing: String,
    /// How many numbers an embedding has.
    pub dimension: usize,
}

impl EncoderIdentity {
    /// Whether embeddings of the two can be compared: same weights, same preprocessing, same dimension.
    pub fn is_same(&self, other: &EncoderIdentity) -> bool {
        self.digest == other.digest
            && self.preprocessing == other.preprocessing
            && self.dimension == other.dimension
    }
}

/// All of it in one line, as errors show it.
impl fmt::Display for EncoderIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EncoderIdentity { name, digest, preprocessing, dimension } = self;
        write!(f, "{name} ({digest}, preprocessing {preprocessing}, {dimension} numbers)")
    }
}
