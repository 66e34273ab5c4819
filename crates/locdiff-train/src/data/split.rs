//! Rows that are held out from training.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Holds out a share of the rows for validation, by their id alone: the same row is held out
/// whatever shard it is in, and whatever rows are added later.
///
/// A row is held out if the first eight bytes of the SHA-256 of `"{seed}:{id}"`, as a
/// little-endian number divided by 2⁶⁴, are less than `share`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Share of the rows that is held out, between 0 and 1.
    pub share: f64,
    /// Another seed holds out other rows.
    pub seed: u64,
}

impl Split {
    /// Whether this row is for validation.
    ///
    /// ```
    /// use locdiff_train::Split;
    ///
    /// let split = Split { share: 0.5, seed: 1 };
    /// assert!(split.holds_out("oslo"));
    /// assert!(!split.holds_out("lima"));
    /// ```
    pub fn holds_out(&self, id: &str) -> bool {
        let hash = Sha256::new().chain_update(format!("{}:", self.seed)).chain_update(id);
        let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
        let number = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        // Rounded to 53 bits, as any language with doubles does it.
        number as f64 / 2.0_f64.powi(64) < self.share
    }
}

/// Which rows of a data set to stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Every row, without a split.
    #[default]
    All,
    /// Those that the split doesn't hold out.
    Train(Split),
    /// Those that the split holds out.
    Validation(Split),
}

impl Part {
    pub(crate) fn has(&self, id: &str) -> bool {
        match self {
            Part::All => true,
            Part::Train(split) => !split.holds_out(id),
            Part::Validation(split) => split.holds_out(id),
        }
    }
}
