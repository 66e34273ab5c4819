//! Image encoders that several models have in common: opened once, and each picture encoded once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::encoders::{Embedder, EncoderRecord};
use crate::photo::Preprocessing;

/// Embeddings are kept of so many pictures at most, because their pixels are kept, too.
const PICTURES_KEPT: usize = 8;

/// The encoders that models have open. Copies share them.
#[derive(Debug, Clone, Default)]
pub struct SharedEncoders(Arc<Mutex<Opened>>);

type Opened = Vec<(Key, Weak<SharedEncoder>)>;

/// Home, name and device.
type Key = (PathBuf, String, String);

impl SharedEncoders {
    /// The encoder if a model has it open, or else what `open` finds.
    pub(super) fn get_or_open<E>(
        &self,
        key: Key,
        open: impl FnOnce() -> Result<Option<Arc<dyn Embedder>>, E>,
    ) -> Result<Option<Arc<dyn Embedder>>, E> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|(other, _)| *other == key);
        if let Some(encoder) = found.and_then(|(_, encoder)| encoder.upgrade()) {
            encoder.has_several_users.store(true, Ordering::Relaxed);
            return Ok(Some(encoder));
        }
        let Some(encoder) = open()? else { return Ok(None) };
        let encoder = Arc::new(SharedEncoder {
            encoder,
            has_several_users: AtomicBool::new(false),
            last: Mutex::default(),
        });
        all.retain(|(_, encoder)| encoder.strong_count() > 0);
        all.push((key, Arc::downgrade(&encoder)));
        Ok(Some(encoder))
    }
}

/// An encoder that returns the embeddings of the last pictures again if another model asks about the same.
struct SharedEncoder {
    encoder: Arc<dyn Embedder>,
    /// For one user alone nothing is kept.
    has_several_users: AtomicBool,
    /// Pixels and their embeddings.
    last: Mutex<(Vec<f32>, Vec<f32>)>,
}

impl Embedder for SharedEncoder {
    fn record(&self) -> &EncoderRecord {
        self.encoder.record()
    }

    fn width(&self) -> usize {
        self.encoder.width()
    }

    fn preprocessing(&self) -> &Preprocessing {
        self.encoder.preprocessing()
    }

    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
        let few = pixels.len() <= PICTURES_KEPT * self.preprocessing().len();
        if !few || !self.has_several_users.load(Ordering::Relaxed) {
            return self.encoder.embed_pixels(pixels);
        }
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let (before, embeddings) = &*last();
            if *before == pixels {
                return embeddings.clone();
            }
        }
        let embeddings = self.encoder.embed_pixels(pixels.clone());
        *last() = (pixels, embeddings.clone());
        embeddings
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts the pictures that it looks at.
    struct Counting(EncoderRecord, AtomicUsize);

    impl Embedder for Counting {
        fn record(&self) -> &EncoderRecord {
            &self.0
        }

        fn width(&self) -> usize {
            1
        }

        fn preprocessing(&self) -> &Preprocessing {
            &Preprocessing::CLIP
        }

        fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
            let pictures = pixels.chunks(self.preprocessing().len());
            self.1.fetch_add(pictures.len(), Ordering::Relaxed);
            pictures.map(|picture| picture[0]).collect()
        }
    }

    #[test]
    fn models_with_the_same_encoder_share_it_and_its_passes() {
        let shared = SharedEncoders::default();
        let record = EncoderRecord::of_identity("counting".to_owned());
        let counting = Arc::new(Counting(record, AtomicUsize::new(0)));
        let open = |name: &str| {
            let key = (PathBuf::new(), name.to_owned(), "cpu".to_owned());
            let found = shared.clone().get_or_open(key, || {
                Ok::<Option<Arc<dyn Embedder>>, Infallible>(Some(counting.clone()))
            });
            found.expect("it is there").expect("it is there")
        };
        let seen = || counting.1.load(Ordering::Relaxed);
        let picture = |value: f32| vec![value; Preprocessing::CLIP.len()];

        let first = open("a");
        assert_eq!(
            [first.embed_pixels(picture(1.0)), first.embed_pixels(picture(1.0))],
            [[1.0]; 2]
        );
        assert_eq!(seen(), 2, "nothing is kept for one user");
        let (second, other) = (open("a"), open("b"));
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &other));
        assert_eq!(
            [first.embed_pixels(picture(2.0)), second.embed_pixels(picture(2.0))],
            [[2.0]; 2]
        );
        assert_eq!(seen(), 3, "one pass for both");
        assert_eq!(second.embed_pixels(picture(3.0)), [3.0]);
        assert_eq!(seen(), 4);
        let many: Vec<f32> = (0..=PICTURES_KEPT).flat_map(|k| picture(k as f32)).collect();
        assert_eq!(first.embed_pixels(many).len(), PICTURES_KEPT + 1);
    }
}
