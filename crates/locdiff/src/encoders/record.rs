//! Which encoder made embeddings: enough to find it again, and to tell another one from it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use locdiff_gallery::EncoderIdentity;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::photo::Preprocessing;

/// Two encoders are the same if the embeddings of [`Photo::test_picture`](crate::Photo::test_picture) have at
/// least this cosine: other processors and half precision stay above it, other weights do not.
pub const SAME_ENCODER_COSINE: f64 = 0.999;

/// Begins checksums of weights in galleries.
const SHA256: &str = "sha256:";

/// An encoder, as data sets and models name it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncoderRecord {
    /// Shape, weights and preprocessing in one line; changes with any of them.
    pub identity: String,
    /// The name by which `locdiff model fetch` gets it, or `earth-view`, which is inside the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The commit on the hub that the weights are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// SHA-256 of the file of weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What is done to pictures beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preprocessing: Option<Preprocessing>,
    /// The embedding of the test picture; in files the base64 of little-endian 32-bit floats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub test_embedding: Vec<f32>,
}

/// Why two encoders must not be mixed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DifferentEncoder {
    /// They give other embeddings.
    #[error(
        "the encoder is {found}, expected {expected} (cosine {cosine:.4} between their embeddings of \
         the test picture, the same encoder has at least {SAME_ENCODER_COSINE})"
    )]
    Embeddings {
        /// The one that was expected.
        expected: String,
        /// The encoder that was found.
        found: String,
        /// Between the embeddings of the test picture; 0 if they have other lengths.
        cosine: f64,
    },
    /// One of them is known by a line of text only, and the other has another.
    #[error("the encoder is {found}, expected {expected}")]
    Identities {
        /// The one that was expected.
        expected: String,
        /// The encoder that was found.
        found: String,
    },
}

impl EncoderRecord {
    /// An encoder of which only a line of text is known, as data sets of others have it.
    pub fn of_identity(identity: impl Into<String>) -> EncoderRecord {
        EncoderRecord {
            identity: identity.into(),
            name: None,
            revision: None,
            sha256: None,
            preprocessing: None,
            test_embedding: Vec::new(),
        }
    }

    /// The encoder as data sets store it: a record, or the line of text of earlier versions.
    pub fn from_text(text: &str) -> EncoderRecord {
        serde_json::from_str(text).unwrap_or_else(|_| EncoderRecord::of_identity(text))
    }

    /// What [`EncoderRecord::from_text`] reads.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a record is plain values")
    }

    /// Whether it can be recognized: this needs the embedding of the test picture.
    pub fn is_known(&self) -> bool {
        !self.test_embedding.is_empty()
    }

    /// Whether another encoder may stand in for this one.
    pub fn check(&self, found: &EncoderRecord) -> Result<(), DifferentEncoder> {
        if self.identity == found.identity {
            return Ok(());
        }
        let (expected, other) = (self.to_string(), found.to_string());
        if !(self.is_known() && found.is_known()) {
            // Of a gallery's encoder the checksum is known, and no embedding.
            if self.sha256.is_some() && self.sha256 == found.sha256 {
                return Ok(());
            }
            return Err(DifferentEncoder::Identities { expected, found: other });
        }
        let cosine = cosine(&self.test_embedding, &found.test_embedding);
        if cosine >= SAME_ENCODER_COSINE {
            return Ok(());
        }
        Err(DifferentEncoder::Embeddings { expected, found: other, cosine })
    }

    /// What a gallery stores of this encoder, whose embeddings have so many numbers. Galleries compare these texts.
    pub fn for_gallery(&self, dimension: usize) -> EncoderIdentity {
        let name = self.name.as_ref().unwrap_or(&self.identity).clone();
        let preprocessing = match (&self.preprocessing, name.as_str()) {
            // A gallery of places is built without CLIP, so that nothing finer can be stored.
            (_, "geoclip") => "that of CLIP ViT-L/14".to_owned(),
            (Some(Preprocessing { shortest_side, crop, mean, std, square_first }), _) => {
                let first = if *square_first { "middle square, " } else { "" };
                format!(
                    "{first}resize {shortest_side}, crop {crop}, mean {mean:?}, deviation {std:?}"
                )
            }
            (None, _) => "unknown".to_owned(),
        };
        let digest = match &self.sha256 {
            Some(sha256) => format!("{SHA256}{sha256}"),
            // Embeddings of other programs: a line of text is all that there is.
            None => self.identity.clone(),
        };
        EncoderIdentity { name, digest, preprocessing, dimension }
    }

    /// What is known of the encoder of a gallery: enough to find it, and to recognize data sets of it.
    pub fn of_gallery(encoder: &EncoderIdentity) -> EncoderRecord {
        match encoder.digest.strip_prefix(SHA256) {
            Some(sha256) => EncoderRecord {
                name: Some(encoder.name.clone()),
                sha256: Some(sha256.to_owned()),
                ..EncoderRecord::of_identity(encoder.digest.clone())
            },
            None => EncoderRecord::of_identity(encoder.digest.clone()),
        }
    }

    /// The command that gets the encoder, if it has a name: from the hub, or from files that somebody has.
    pub fn command(&self) -> Option<String> {
        let name = self.name.as_ref()?;
        if !is_on_the_hub(name) {
            return Some(format!("locdiff model import encoder {name} DIRECTORY"));
        }
        let revision = self.revision.as_ref().map_or(String::new(), |commit| format!("@{commit}"));
        Some(format!("locdiff model fetch {name}{revision}"))
    }
}

/// Whether the hub has an encoder of that name.
#[cfg(feature = "hub")]
fn is_on_the_hub(name: &str) -> bool {
    name.parse::<super::hub::Encoder>().is_ok()
}

#[cfg(not(feature = "hub"))]
fn is_on_the_hub(name: &str) -> bool {
    name.contains('/')
}

impl fmt::Display for EncoderRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({})", self.identity),
            None => f.write_str(&self.identity),
        }
    }
}

/// 0 if the lengths differ or one is zero.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if a.len() == b.len() && lengths > 0.0 { dot(a, b) / lengths } else { 0.0 }
}

fn to_base64<S: Serializer>(numbers: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(serde::de::Error::custom("not whole 32-bit floats"));
    }
    Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(identity: &str, test_embedding: Vec<f32>) -> EncoderRecord {
        EncoderRecord { test_embedding, ..EncoderRecord::of_identity(identity) }
    }

    #[test]
    fn a_record_survives_its_text() {
        let mut full = record("clip", vec![0.1, -3.5e-8, f32::MAX]);
        full.name = Some("clip-vit-b-32".to_owned());
        full.preprocessing = Some(Preprocessing::CLIP);
        assert_eq!(EncoderRecord::from_text(&full.to_text()), full);
        // Version 1 of our files.
        let old = EncoderRecord::from_text("clip 32×2/8 id:0123 resize 224 crop 224");
        assert!(!old.is_known() && old.identity.starts_with("clip 32"));
    }

    #[test]
    fn another_encoder_is_known_by_its_embedding() {
        let ours = record("a", vec![1.0, 2.0, 3.0]);
        // Scaled or slightly off is the same; anything else is not.
        assert_eq!(ours.check(&record("b", vec![2.0, 4.01, 6.0])), Ok(()));
        let error = ours.check(&record("b", vec![1.0, 2.0, 2.7])).unwrap_err();
        assert!(matches!(error, DifferentEncoder::Embeddings { .. }), "{error}");
        assert!(error.to_string().contains("the encoder is b, expected a"), "{error}");
        assert!(ours.check(&record("b", vec![1.0, 2.0])).is_err());
        assert!(ours.check(&record("b", Vec::new())).is_err());
        assert_eq!(ours.check(&record("a", Vec::new())), Ok(()));
    }

    #[test]
    fn a_gallery_recognizes_data_sets_of_its_encoder() {
        let mut full = record("clip id:1", vec![0.1, 0.2]);
        full.sha256 = Some("ab".repeat(32));
        full.preprocessing = Some(Preprocessing::CLIP);
        let mut other = full.clone();
        other.sha256 = Some("cd".repeat(32));
        let of_gallery = EncoderRecord::of_gallery(&full.for_gallery(2));
        assert_eq!(of_gallery.check(&full), Ok(()));
        assert!(of_gallery.check(&other).is_err());
        assert!(full.for_gallery(2).is_same(&full.for_gallery(2)));
        assert!(!full.for_gallery(2).is_same(&full.for_gallery(3)));
        assert!(!full.for_gallery(2).is_same(&other.for_gallery(2)));
        // A line of text.
        let old = EncoderRecord::of_identity("somebody's");
        assert_eq!(EncoderRecord::of_gallery(&old.for_gallery(2)), old);
    }

    #[test]
    fn the_command_gets_it() {
        let named = |name: &str, revision: Option<&str>| EncoderRecord {
            name: Some(name.to_owned()),
            revision: revision.map(str::to_owned),
            ..EncoderRecord::of_identity("x")
        };
        let command = |record: EncoderRecord| record.command().unwrap();
        assert_eq!(
            command(named("owner/name", Some("0a1b"))),
            "locdiff model fetch owner/name@0a1b"
        );
        assert_eq!(command(named("mine", None)), "locdiff model import encoder mine DIRECTORY");
        assert_eq!(EncoderRecord::of_identity("x").command(), None);
    }
}
