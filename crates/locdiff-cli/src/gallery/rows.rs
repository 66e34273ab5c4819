//! References wherever they come from: embeddings, images that are embedded first, or a list of coordinates.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail, ensure};
use clap::Args;
use locdiff::checksum::Checksum;
use locdiff::encoders::Embedder;
use locdiff::models::geoclip::{GeoClip, GeoClipEmbedder};
use locdiff::tensors::device_by_name;
use locdiff_evaluate::{PlaceTable, Role, Units};
use locdiff_gallery::{EncoderIdentity, Gallery};
use locdiff_sphere::LatLon;
use locdiff_train::{
    Dataset, EmbedEvent, EmbedOptions, Ids, OnBadShard, StoredViews, StreamOptions, embed,
};

use super::{Nonsense, encoder, note};
use crate::progress::Progress;

/// Rows that are read or encoded at a time.
const BATCH: usize = 1024;

/// What becomes references.
#[derive(Args)]
pub(crate) struct Input {
    /// A folder of embeddings that `locdiff embed` wrote (of several views of an image, the first is used); or images,
    /// which are embedded first: a folder, a manifest (.csv or .parquet with path, latitude, longitude), or a WebDataset
    #[arg(long, value_name = "PATH", required_unless_present = "places")]
    data: Option<PathBuf>,
    /// A list of coordinates instead of images: a table with columns latitude, longitude and (optional) id. The gallery
    /// is made by GeoCLIP's location encoder, and photographs are compared by GeoCLIP's image encoder
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    places: Option<PathBuf>,
    /// Encoder of the images: earth-view, geoclip, the name of an installed encoder, or its directory
    #[arg(long, value_name = "NAME")]
    encoder: Option<String>,
    /// Device to compute on: cpu, cuda:N, wgpu or metal, if this program was built with it
    #[arg(long, default_value = "cpu")]
    device: String,
}

/// Which images, and which encoder. `gallery` is where the rows will go; an existing one has its own encoder.
pub(crate) struct Images<'a> {
    pub(crate) data: &'a Path,
    pub(crate) encoder: Option<&'a str>,
    pub(crate) device: &'a str,
    pub(crate) beside: &'a Path,
    pub(crate) gallery: Option<&'a Gallery>,
}

/// Embeddings with places and ids.
pub(crate) struct Rows {
    kind: Kind,
    identity: EncoderIdentity,
    /// Embeddings that were made for this command.
    scratch: Option<PathBuf>,
}

enum Kind {
    Embeddings(Dataset),
    Places(Box<GeoClip>, Vec<(String, LatLon)>),
}

impl Input {
    /// The rows for a new gallery, or for one that is there.
    pub(crate) fn open(
        &self,
        out: &Path,
        gallery: Option<&Gallery>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Rows> {
        let encoder = self.encoder.as_deref();
        let rows = match (&self.places, &self.data) {
            (Some(places), _) => {
                if encoder.is_some_and(|name| name != GeoClipEmbedder::NAME) {
                    let reason =
                        "only GeoCLIP encodes coordinates: use --encoder geoclip with --places";
                    return Err(Nonsense(reason.to_owned()).into());
                }
                Rows::of_places(places, &self.device)?
            }
            (None, Some(data)) => {
                let device = &self.device;
                Rows::of_data(&Images { data, encoder, device, beside: out, gallery }, stop)?
            }
            (None, None) => return Err(Nonsense("give --data or --places".to_owned()).into()),
        };
        if let Some(gallery) = gallery {
            encoder::check(gallery, &rows.identity)?;
        }
        Ok(rows)
    }
}

/// Hears the embedding, place and id of a row.
type Hear<'a> = dyn FnMut(&[f32], LatLon, &str) -> anyhow::Result<()> + 'a;

impl Rows {
    /// Embeddings, or images that are embedded now.
    pub(crate) fn of_data(images: &Images<'_>, stop: &Arc<AtomicBool>) -> anyhow::Result<Rows> {
        let data = images.data;
        if is_embeddings(data) {
            if images.encoder.is_some() {
                let reason =
                    format!("{} contains embeddings: --encoder is for images", data.display());
                return Err(Nonsense(reason).into());
            }
            return Rows::of_embeddings(data, None);
        }
        ensure!(data.exists(), "{} does not exist", data.display());
        let encoder = match (images.gallery, images.encoder) {
            (Some(gallery), name) => encoder::of_gallery(gallery, name, images.device)?,
            (None, Some(name)) => encoder::open(name, images.device)?,
            (None, None) => {
                let reason = format!(
                    "{} contains images: choose an encoder with --encoder NAME (earth-view, geoclip, or an encoder \
                     from `locdiff model fetch`)",
                    data.display()
                );
                return Err(Nonsense(reason).into());
            }
        };
        let scratch = scratch_beside(images.beside, data, encoder.as_ref())?;
        embed_images(&manifest_in(data), encoder.as_ref(), &scratch, stop)?;
        Rows::of_embeddings(&scratch.clone(), Some(scratch))
    }

    fn of_embeddings(data: &Path, scratch: Option<PathBuf>) -> anyhow::Result<Rows> {
        let set = Dataset::open(&data.display().to_string(), OnBadShard::Fail)?;
        let layout = set.layout();
        if layout.views > 1 {
            note(&format!("of {} views of each image, only the first is used", layout.views));
        }
        let identity = layout.encoder.for_gallery(layout.width);
        Ok(Rows { kind: Kind::Embeddings(set), identity, scratch })
    }

    fn of_places(file: &Path, device: &str) -> anyhow::Result<Rows> {
        let table = PlaceTable::read(file, Role::Truth, Units::Degrees)?;
        let given = table.rows.len();
        let places: Vec<(String, LatLon)> = table
            .rows
            .into_iter()
            .filter_map(|row| {
                let place = row.place?;
                Some((row.image.unwrap_or_else(|| format!("{place:.5}")), place))
            })
            .collect();
        if places.len() < given {
            note(&format!("{} rows have no place and are left out", given - places.len()));
        }
        let geoclip = encoder::open_geoclip(&device_by_name(device)?)?;
        let identity = encoder::identity_of_geoclip(&geoclip);
        Ok(Rows { kind: Kind::Places(Box::new(geoclip), places), identity, scratch: None })
    }

    pub(crate) fn identity(&self) -> &EncoderIdentity {
        &self.identity
    }

    /// Calls `row` with each embedding, place and id, until it is done or interrupted.
    pub(crate) fn visit(
        &self,
        what: &'static str,
        stop: &AtomicBool,
        row: &mut Hear<'_>,
    ) -> anyhow::Result<()> {
        let go_on = || match stop.load(Ordering::Relaxed) {
            true => Err(interrupted()),
            false => Ok(()),
        };
        match &self.kind {
            Kind::Embeddings(set) => {
                let mut progress = Progress::new(what, Some(set.rows()));
                let width = set.layout().width;
                let stride = set.layout().views * width;
                let options = StreamOptions {
                    batch: BATCH,
                    buffer_groups: 4,
                    ids: Ids::Include,
                    views: StoredViews::All,
                    epochs: Some(1),
                    ..StreamOptions::default()
                };
                for batch in set.stream(options)? {
                    go_on()?;
                    let batch = batch?;
                    let embeddings = batch.embeddings.chunks_exact(stride); // [views, width]
                    for ((views, place), id) in embeddings.zip(&batch.places).zip(&batch.ids) {
                        row(&views[..width], *place, id)?;
                    }
                    progress.add(batch.ids.len() as u64);
                }
            }
            Kind::Places(geoclip, places) => {
                let mut progress = Progress::new(what, Some(places.len() as u64));
                let encoder = &geoclip.location_encoder;
                for batch in places.chunks(BATCH) {
                    go_on()?;
                    let coordinates: Vec<LatLon> = batch.iter().map(|(_, place)| *place).collect();
                    let embeddings = encoder.embed(&coordinates).into_data_as::<f32>();
                    let embeddings: Vec<f32> = embeddings.try_into_vec().expect("f32");
                    let embeddings = embeddings.chunks_exact(encoder.width());
                    for (embedding, (id, place)) in embeddings.zip(batch) {
                        row(embedding, *place, id)?;
                    }
                    progress.add(batch.len() as u64);
                }
            }
        }
        go_on()
    }

    /// Removes what was only made for this command.
    pub(crate) fn discard(self) -> anyhow::Result<()> {
        let Some(scratch) = &self.scratch else { return Ok(()) };
        fs::remove_dir_all(scratch).with_context(|| format!("cannot remove {}", scratch.display()))
    }
}

pub(crate) fn interrupted() -> anyhow::Error {
    anyhow::anyhow!("interrupted: the gallery was not changed")
}

/// A folder of shards, which has no images, no manifest and no tars; or an address in an object store.
fn is_embeddings(data: &Path) -> bool {
    let ending = |path: &Path, ending: &str| path.extension().is_some_and(|found| found == ending);
    if data.starts_with("s3:") {
        return true;
    }
    let Ok(entries) = fs::read_dir(data) else { return false };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let named = |name: &str| paths.iter().any(|path| path.file_name().is_some_and(|n| n == name));
    let ends = |found: &str| paths.iter().any(|path| ending(path, found));
    named("embed.json") || ends("parquet") && !ends("tar") && !named("manifest.csv")
}

/// A folder with a manifest stands for its manifest, as in `locdiff evaluate`.
fn manifest_in(data: &Path) -> PathBuf {
    let manifest = data.join("manifest.csv");
    if manifest.is_file() { manifest } else { data.to_owned() }
}

/// Where embeddings of images are written until they are in the gallery. The same command finds them again.
fn scratch_beside(out: &Path, data: &Path, encoder: &dyn Embedder) -> anyhow::Result<PathBuf> {
    let name = out
        .file_name()
        .with_context(|| format!("{} is not the name of a directory", out.display()))?;
    let data = data.canonicalize().with_context(|| data.display().to_string())?;
    let mut digest = Checksum::default();
    digest.update(data.as_os_str().as_encoded_bytes());
    digest.update(&encoder.record().identity);
    let name = format!(".{}.embeddings-{}", name.to_string_lossy(), digest.finish_short());
    Ok(out.with_file_name(name))
}

fn embed_images(
    data: &Path,
    encoder: &dyn Embedder,
    scratch: &Path,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let options = EmbedOptions { stop: Arc::clone(stop), ..EmbedOptions::new(scratch) };
    let mut progress = Progress::new("embedding images", None);
    let mut known = 0;
    let summary = embed(data, encoder, &options, &mut |event| match event {
        EmbedEvent::Begun { total, done, .. } => {
            total.into_iter().for_each(|total| progress.of(total));
            known = done;
            progress.add(done);
        }
        EmbedEvent::Advanced { done, .. } => {
            progress.add(done - known);
            known = done;
        }
        EmbedEvent::Skipped(image) => {
            progress.line(&format!("skipped {}: {}", image.path, image.message));
        }
        _ => {}
    })?;
    drop(progress);
    if !summary.finished {
        bail!(
            "{}; run the same command again to resume after {} embeddings",
            interrupted(),
            summary.rows
        );
    }
    let placed = summary.rows - summary.without_place;
    if placed == 0 {
        // Nothing to go on with.
        let _ = fs::remove_dir_all(scratch);
        bail!(
            "no image in {} has a place: give a manifest with columns path, latitude, longitude, or photographs with GPS",
            data.display()
        );
    }
    if summary.without_place > 0 {
        note(&format!("{} images have no place and are left out", summary.without_place));
    }
    Ok(())
}
