//! `locdiff embed`: images in, embeddings for training out.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use locdiff::photo::{Crops, ReadOptions};
use locdiff_train::{EmbedEvent, EmbedOptions, EmbedSummary, Share, embed};

use crate::counts::count;
use crate::text::{json_stdout, stderr};
use crate::{encoders, interruption, memory};

/// Skipped images that are shown one by one; all of them are in `skipped.csv`.
const SHOWN: u64 = 20;

#[derive(Args)]
pub(crate) struct Arguments {
    /// A folder of images, a manifest (.csv or .parquet with path, latitude, longitude), a
    /// WebDataset (.tar), or a folder of such tars
    input: PathBuf,
    /// Encoder: earth-view, the name of an installed encoder, or its directory
    #[arg(long, value_name = "NAME")]
    encoder: String,
    /// Where shards are written. If embedding is interrupted, run the same command again to resume
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Views of each image: 1 (its center), N random areas (the paper takes 16), flip or ten-crop
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_views)]
    views: Crops,
    /// One machine's share of the images: i of n, from 1/n to n/n. All may write into the same
    /// directory
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Share,
    /// Batch size: pictures that are encoded together. Each view counts as one picture
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = count::<1, 65_536>)]
    batch: usize,
    /// Rows per shard [default: 262144, fewer with several views]
    #[arg(long, value_name = "N", value_parser = count::<1, 100_000_000>)]
    rows_per_shard: Option<usize>,
    /// Threads that read and decode [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = count::<1, 4096>)]
    threads: Option<usize>,
    /// Decode large JPEGs at a reduced size: faster, with slightly different embeddings
    #[arg(long)]
    fast_decode: bool,
    /// Skip images with more pixels
    #[arg(long, value_name = "N", default_value_t = ReadOptions::default().max_pixels)]
    max_pixels: u64,
    /// Skip files with more bytes
    #[arg(long, value_name = "N", default_value_t = ReadOptions::default().max_bytes)]
    max_bytes: u64,
    /// Device to compute on: cpu, cuda:N, wgpu or metal, if this program was built with it
    #[arg(long, default_value = "cpu")]
    device: String,
    /// The summary on stdout as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    memory::keep_for_a_while();
    let encoder = encoders::open(&arguments.encoder, &arguments.device)?;
    // Lets the batch end; what is in the journal isn't lost.
    let interrupted = interruption::flag()?;
    let fast_decode =
        arguments.fast_decode.then(|| arguments.views.least_side(encoder.preprocessing()));
    let defaults = EmbedOptions::new(&arguments.out);
    let options = EmbedOptions {
        views: arguments.views,
        batch: arguments.batch,
        rows_per_shard: arguments.rows_per_shard,
        decode_threads: arguments.threads.unwrap_or(defaults.decode_threads),
        share: arguments.shard,
        read: ReadOptions {
            max_bytes: arguments.max_bytes,
            max_pixels: arguments.max_pixels,
            fast_decode,
            ..ReadOptions::default()
        },
        stop: interrupted,
        ..defaults
    };
    let mut bar = Bar::new();
    let outcome =
        embed(&arguments.input, encoder.as_ref(), &options, &mut |event| bar.show(&event));
    bar.bar.finish_and_clear();
    let summary = outcome?;
    print_summary(&summary, &arguments)?;
    if arguments.json {
        writeln!(json_stdout(), "{}", serde_json::to_string(&summary)?)?;
    }
    // Not 0, so that a script doesn't train on half of the images, or on none.
    if !summary.finished {
        bail!("stopped after {} rows; run the same command again to resume", summary.rows);
    }
    if summary.rows == 0 && summary.skipped.values().any(|count| *count > 0) {
        bail!("no image could be embedded: skipped*.csv lists the reasons");
    }
    Ok(())
}

fn print_summary(summary: &EmbedSummary, arguments: &Arguments) -> anyhow::Result<()> {
    let mut out = stderr();
    let EmbedSummary { rows, without_place, resumed_rows, .. } = summary;
    write!(out, "{rows} rows in {}", arguments.out.display())?;
    if *resumed_rows > 0 {
        write!(out, ", {resumed_rows} of them from an earlier run")?;
    }
    writeln!(out, "; {:.1} images/s", summary.images_per_s)?;
    if *without_place > 0 {
        writeln!(out, "{without_place} rows have no place: they are in without-place/")?;
    }
    let skipped: u64 = summary.skipped.values().sum();
    if skipped > 0 {
        let kinds: Vec<String> =
            summary.skipped.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        writeln!(out, "{skipped} images skipped: {}; skipped*.csv lists them", kinds.join(", "))?;
    }
    Ok(())
}

fn parse_views(text: &str) -> Result<Crops, String> {
    match text {
        "flip" => Ok(Crops::Flip),
        "ten-crop" => Ok(Crops::TEN_CROP),
        "1" => Ok(Crops::Single),
        text => match text.parse() {
            Ok(count) if count > 0 => Ok(Crops::Random { count, seed: 0 }),
            _ => Err("neither a positive number nor flip or ten-crop".to_owned()),
        },
    }
}

/// A progress bar; lines above it for what else happens.
struct Bar {
    bar: ProgressBar,
    skipped: u64,
}

impl Bar {
    /// Until the total is known, if ever.
    fn new() -> Bar {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {pos} images  {msg}  {elapsed}");
        let bar = style.map_or(bar.clone(), |style| bar.with_style(style));
        Bar { bar, skipped: 0 }
    }

    fn show(&mut self, event: &EmbedEvent<'_>) {
        match event {
            EmbedEvent::Begun { total, done, rows, hidden } => {
                if *done > 0 {
                    self.line(format!("resuming after {done} images, {rows} rows"));
                }
                if *hidden > 0 {
                    self.line(format!("{hidden} hidden files are left out"));
                }
                if let Some(total) = total {
                    self.bar.set_length(*total);
                    let template = "{wide_bar} {pos}/{len} images  {msg}  {elapsed} < {eta}";
                    if let Ok(style) = ProgressStyle::with_template(template) {
                        self.bar.set_style(style);
                    }
                }
                self.bar.set_position(*done);
                self.bar.reset_eta();
            }
            EmbedEvent::Advanced { done, skipped, images_per_s, .. } => {
                let skipped = match skipped {
                    0 => String::new(),
                    count => format!("  {count} skipped"),
                };
                self.bar.set_message(format!("{images_per_s:.1}/s{skipped}"));
                self.bar.set_position(*done);
            }
            EmbedEvent::Skipped(image) => {
                self.skipped += 1;
                if self.skipped <= SHOWN {
                    self.line(format!("skipped {}: {}", image.path, image.message));
                }
                if self.skipped == SHOWN {
                    self.line(
                        "more skipped images are only counted here; skipped*.csv lists them all"
                            .to_owned(),
                    );
                }
            }
            EmbedEvent::Shard(path) => self.line(format!("written {}", path.display())),
            _ => {}
        }
    }

    /// Above the bar if there is one to be seen, else plainly on stderr.
    fn line(&self, text: String) {
        self.bar.suspend(|| {
            let _ = writeln!(stderr(), "{text}");
        });
    }
}
