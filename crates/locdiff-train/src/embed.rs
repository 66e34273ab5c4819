//! Embedding images at scale: pictures in, shards for training out.
//!
//! [`embed`] takes the images of a folder, of a manifest (CSV or Parquet) or of tars in the
//! manner of WebDataset, and writes what an [`Embedder`] makes of them in the layout of
//! [`Dataset`](crate::Dataset). It may be interrupted at any moment, by ctrl-C, a kill or a power
//! failure; called again, it goes on, and in the end the directory holds the same files as if
//! nothing had happened, byte for byte if the embedder gives the same numbers for the same batch.
//! `docs/embedding.md` is the user's view.
//!
//! The flow: [`input`] lists images in a fixed order → [`pipeline`] reads and decodes them on
//! several threads, a window at a time → [`encoding`] gathers batches for the embedder → [`output`]
//! appends what a batch came to to a [`journal`], and turns that into shards.

mod encoding;
mod error;
mod folder;
mod input;
mod item;
mod journal;
mod manifest;
mod output;
mod pipeline;
mod record;
mod share;
mod tars;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use locdiff::encoders::Embedder;
use locdiff::photo::{Crops, ReadOptions};
use serde::Serialize;
use serde_json::json;

use crate::data::{Layout, Numbers, WriteOptions};

pub use error::EmbedError;
pub use share::{InvalidShare, Share};

/// Images of folders, manifests and tars, for others who walk through them.
pub mod images {
    pub use super::folder::{Folder, list, tars_in, with_slashes};
    pub use super::input::Listed;
    pub use super::item::{Bad, Content, Item, Stated};
    pub use super::manifest::{visit_csv, visit_parquet};
    pub use super::pipeline::{Ordered, Pixels, Preparation, Waiting, read_file, run_ahead};
    pub use super::tars::visit_tar;
}

use encoding::{Encoding, Ended};
use input::Input;
use output::Output;
use pipeline::Preparation;
use record::{Progress, SHARE, Settings};

/// How images are embedded.
#[derive(Debug, Clone)]
pub struct EmbedOptions {
    /// The directory for shards. If there are some already, and were made with the same
    /// settings, it is gone on with.
    pub out: PathBuf,
    /// Which crops of each image.
    pub views: Crops,
    /// Pictures that are encoded at a time; each view is one.
    pub batch: usize,
    /// Rows after which the next shard begins. `None`: as many as make 400 MB at width 768.
    pub rows_per_shard: Option<usize>,
    /// Threads that read and decode.
    pub decode_threads: usize,
    /// The share of the images that this process embeds.
    pub share: Share,
    /// Limits to what an image may cost, and how exactly it is decoded.
    pub read: ReadOptions,
    /// Set it to stop soon.
    pub stop: Arc<AtomicBool>,
}

impl EmbedOptions {
    /// Single views in batches of 32, all images, on as many threads as there are processors.
    pub fn new(out: impl Into<PathBuf>) -> EmbedOptions {
        EmbedOptions {
            out: out.into(),
            views: Crops::Single,
            batch: 32,
            rows_per_shard: None,
            decode_threads: std::thread::available_parallelism().map_or(1, usize::from),
            share: Share::ALL,
            read: ReadOptions::default(),
            stop: Arc::default(),
        }
    }

    /// Several views make rows longer; shards needn't become longer too.
    fn rows_per_part(&self) -> usize {
        let WriteOptions { rows_per_group, rows_per_shard } = WriteOptions::default();
        let groups = (rows_per_shard / rows_per_group / self.views.count().max(1)).max(1);
        self.rows_per_shard.unwrap_or(groups * rows_per_group)
    }

    /// What decides about the rows. The batch may change: it concerns only the last digits.
    fn settings(&self, embedder: &dyn Embedder, input: &Input) -> Result<Settings, EmbedError> {
        let settings = json!({
            "encoder": embedder.record().identity,
            "width": embedder.width(),
            "preprocessing": embedder.preprocessing(),
            "views": self.views,
            "input": input.identity()?,
            SHARE: self.share.number(),
            "shares": self.share.of(),
            "rows_per_shard": self.rows_per_part(),
            "max_bytes": self.read.max_bytes,
            "max_pixels": self.read.max_pixels,
            "fast_decode": self.read.fast_decode,
        });
        Ok(settings.as_object().cloned().unwrap_or_default())
    }
}

/// An image that could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedImage {
    /// Id of the image.
    pub id: String,
    /// Where it is: a path, or a tar and the member in it.
    pub path: String,
    /// One of [`PhotoError::kind`](locdiff::photo::PhotoError::kind), or `bad-place`, `bad-row`,
    /// `no-picture`, `second-picture`, `panic` or `not-finite`.
    pub kind: String,
    /// What is wrong.
    pub message: String,
}

/// What happens on the way, for those who watch.
#[derive(Debug)]
#[non_exhaustive]
pub enum EmbedEvent<'a> {
    /// The input is listed.
    Begun {
        /// Images to look at, if known: those in tars aren't counted beforehand.
        total: Option<u64>,
        /// Those that were looked at before an interruption.
        done: u64,
        /// Rows that were made of them.
        rows: u64,
        /// Hidden files of a folder, which are left out.
        hidden: u64,
    },
    /// A batch is in the journal.
    Advanced {
        /// Images that were looked at, so far.
        done: u64,
        /// Rows so far.
        rows: u64,
        /// Images that were skipped, so far.
        skipped: u64,
        /// Since it began this time.
        images_per_s: f64,
    },
    /// An image can't be embedded. Each is reported once, also over interruptions.
    Skipped(&'a SkippedImage),
    /// A shard was completed.
    Shard(&'a Path),
}

/// Counts of a run of `locdiff embed`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EmbedSummary {
    /// False if it was stopped; then it can be gone on with.
    pub finished: bool,
    /// Rows in the directory, those from before an interruption included.
    pub rows: u64,
    /// Those of them without a place, in `without-place`.
    pub without_place: u64,
    /// Rows that were there already.
    pub resumed_rows: u64,
    /// Skipped images by kind, those from before an interruption included.
    pub skipped: BTreeMap<String, u64>,
    /// Time that this call took.
    pub seconds: f64,
    /// Images that this call looked at per second.
    pub images_per_s: f64,
}

/// Embeds the images of a folder, a manifest or tars.
///
/// # Panics
/// If there is nothing to do it with: no batch, threads, rows per shard, views or width. A panic
/// of the embedder is passed on; what was embedded before is kept.
pub fn embed(
    input: &Path,
    embedder: &dyn Embedder,
    options: &EmbedOptions,
    on_event: &mut dyn FnMut(EmbedEvent<'_>),
) -> Result<EmbedSummary, EmbedError> {
    assert!(options.batch > 0 && options.decode_threads > 0, "a batch and a thread are needed");
    assert!(options.rows_per_part() > 0, "no rows per shard");
    let began = Instant::now();
    let views = options.views.count();
    let layout = Layout {
        encoder: embedder.record().clone(),
        width: embedder.width(),
        views,
        numbers: Numbers::F16,
    };
    assert!(layout.stride() > 0, "a row has at least one number");
    let input = Input::open(input, &options.out)?;
    let settings = options.settings(embedder, &input)?;
    let rows_per_part = options.rows_per_part() as u64;
    let mut output = Output::open(&options.out, options.share, layout, rows_per_part, settings)?;
    let before = output.progress().clone();
    on_event(EmbedEvent::Begun {
        total: input.total(options.share),
        done: before.items,
        rows: before.rows,
        hidden: input.hidden,
    });
    if before.finished {
        output.remove_journal();
        return Ok(summary(before.clone(), &before, began));
    }
    let preparation = Preparation {
        read: options.read.clone(),
        views: options.views,
        preprocessing: embedder.preprocessing().clone(),
    };
    let images = (options.batch / views).max(1);
    let (share, max_bytes) = (options.share, options.read.max_bytes);
    let ended = pipeline::run_ahead(
        |visit| input.visit(share, before.items, max_bytes, visit),
        &|item| preparation.prepare(item),
        options.decode_threads,
        2 * images + options.decode_threads,
        |prepared| {
            Encoding { embedder, options, images, output: &mut output, began, before: &before }
                .run(prepared, on_event)
        },
    )?;
    let after = match ended {
        Ended::AllDone => output.finish(&mut |path| on_event(EmbedEvent::Shard(path)))?,
        Ended::Stopped => {
            output.sync()?;
            output.progress().clone()
        }
    };
    Ok(summary(after, &before, began))
}

fn summary(after: Progress, before: &Progress, began: Instant) -> EmbedSummary {
    let seconds = began.elapsed().as_secs_f64();
    EmbedSummary {
        finished: after.finished,
        rows: after.rows,
        without_place: after.without_place,
        resumed_rows: before.rows,
        skipped: after.skipped,
        seconds,
        images_per_s: (after.items - before.items) as f64 / seconds,
    }
}
