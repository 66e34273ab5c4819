//! The loop between decoders and output: batches for the embedder.

use std::sync::atomic::Ordering;
use std::time::Instant;

use half::f16;
use half::slice::HalfFloatSliceExt;
use locdiff_sphere::LatLon;

use super::error::EmbedError;
use super::item::Bad;
use super::journal::Entry;
use super::output::Output;
use super::pipeline::{Ordered, Prepared};
use super::record::Progress;
use super::{EmbedEvent, EmbedOptions, SkippedImage};
use locdiff::encoders::Embedder;

/// Images that may wait for a batch to be full: bad ones come without pixels, but not for free.
const MAX_ENTRIES: usize = 4096;

/// Why the loop ended.
pub(super) enum Ended {
    AllDone,
    Stopped,
}

/// The loop that feeds the embedder.
pub(super) struct Encoding<'a> {
    pub(super) embedder: &'a dyn Embedder,
    pub(super) options: &'a EmbedOptions,
    /// Images per batch.
    pub(super) images: usize,
    pub(super) output: &'a mut Output,
    pub(super) began: Instant,
    pub(super) before: &'a Progress,
}

/// Images in the order of the input, with the pixels of those that have some.
#[derive(Default)]
struct Batch {
    images: Vec<(String, String, Result<Option<LatLon>, Bad>)>,
    pictures: usize,
    /// `[images, views, 3, crop, crop]`
    pixels: Vec<f32>,
}

impl Encoding<'_> {
    pub(super) fn run(
        mut self,
        prepared: &mut Ordered<'_, Prepared>,
        on_event: &mut dyn FnMut(EmbedEvent<'_>),
    ) -> Result<Ended, EmbedError> {
        let mut batch = Batch::default();
        loop {
            // Also at the beginning: the program may have ended when a part was whole.
            if self.output.room() == 0 {
                self.output.end_part(&mut |path| on_event(EmbedEvent::Shard(path)))?;
            }
            let next = prepared.next();
            // A batch that isn't full is left: to encode it now would make others of those that
            // follow.
            if self.options.stop.load(Ordering::Relaxed) {
                return Ok(Ended::Stopped);
            }
            let is_last = next.is_none();
            if let Some(Prepared { id, path, outcome }) = next {
                let outcome = outcome.map(|pixels| {
                    batch.pixels.extend_from_slice(&pixels.numbers);
                    batch.pictures += 1;
                    pixels.place
                });
                batch.images.push((id, path, outcome));
            }
            let is_full = batch.pictures == self.images
                || batch.pictures as u64 == self.output.room()
                || batch.images.len() == MAX_ENTRIES;
            if is_full || is_last {
                self.encode(std::mem::take(&mut batch), on_event)?;
            }
            if is_last {
                return Ok(Ended::AllDone);
            }
        }
    }

    fn encode(
        &mut self,
        batch: Batch,
        on_event: &mut dyn FnMut(EmbedEvent<'_>),
    ) -> Result<(), EmbedError> {
        let numbers = self.numbers(batch.pixels)?;
        let stride = self.options.views.count() * self.embedder.width();
        let mut rows = numbers.chunks_exact(stride);
        let mut entries = Vec::with_capacity(batch.images.len());
        for (id, path, outcome) in batch.images {
            let row = outcome.and_then(|place| {
                let row = rows.next().unwrap_or_default();
                let mut embedding = vec![f16::ZERO; stride];
                embedding.convert_from_f32_slice(row);
                match embedding.iter().position(|number| !number.is_finite()) {
                    None => Ok((place, embedding)),
                    Some(at) => {
                        let number = row[at];
                        let reason = format!("number {at} of its embedding is {number}");
                        Err(Bad::new(Bad::NOT_FINITE, reason + ", which is not finite as f16"))
                    }
                }
            });
            entries.push(match row {
                Ok((place, embedding)) => Entry::Row { id, place, embedding },
                Err(Bad { kind, message }) => {
                    Entry::Skipped(SkippedImage { id, path, kind: kind.to_owned(), message })
                }
            });
        }
        self.output.append(&entries)?;
        for entry in &entries {
            if let Entry::Skipped(image) = entry {
                on_event(EmbedEvent::Skipped(image));
            }
        }
        let now = self.output.progress();
        on_event(EmbedEvent::Advanced {
            done: now.items,
            rows: now.rows,
            skipped: now.skipped.values().sum(),
            images_per_s: (now.items - self.before.items) as f64
                / self.began.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    /// Embeddings of pictures, a batch at a time: one image may have more views than that.
    fn numbers(&self, pixels: Vec<f32>) -> Result<Vec<f32>, EmbedError> {
        let (length, width) = (self.embedder.preprocessing().len(), self.embedder.width());
        let embed = |pixels: Vec<f32>| {
            let pictures = pixels.len() / length;
            let numbers = self.embedder.embed_pixels(pixels);
            match numbers.len() {
                found if found == pictures * width => Ok(numbers),
                found => Err(EmbedError::Encoder { found, pictures, width }),
            }
        };
        if pixels.is_empty() {
            return Ok(Vec::new());
        }
        if pixels.len() <= self.options.batch * length {
            return embed(pixels);
        }
        let mut numbers = Vec::new();
        for pixels in pixels.chunks(self.options.batch * length) {
            numbers.extend(embed(pixels.to_vec())?);
        }
        Ok(numbers)
    }
}
