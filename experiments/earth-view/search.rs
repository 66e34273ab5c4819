//! The search and the registration of its results, measured on real and on rendered views.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use burn::tensor::Device;
use locdiff::Photo;
use locdiff::models::ModelDirectory;
use locdiff::models::earth_view::{
    AlignedEncoder, AlignedEncoderConfig, Atlas, AtlasSettings, EarthLocator, Gallery,
    PackedWeights, Precision,
};
use locdiff_earth::Imagery;
use locdiff_experiments::earth_sources::Folders;
use locdiff_sphere::LatLon;

use crate::aligned_train::PART_NAME;
use crate::findings::Line;
use crate::sets::{SETS, place};

/// Pixels along the side of pictures that are registered.
const SIDE: u32 = 256;
/// Wallpapers in their largest sizes would only cost time.
const MOST_BYTES: u64 = 4_000_000;
const SEED: u64 = 3_000_017;

/// A picture whose place is known.
pub struct KnownView {
    pub name: String,
    pub set: String,
    pub tier: String,
    pub photo: Photo,
    pub place: LatLon,
    pub width_km: f64,
}

pub fn encoder(weights: &Path) -> Result<AlignedEncoder> {
    let bytes = std::fs::read(weights).with_context(|| weights.display().to_string())?;
    let (weights, _) = PackedWeights::from_bytes(&bytes)?;
    Ok(weights.apply(PART_NAME, AlignedEncoderConfig::default().init(&Device::flex()))?)
}

pub fn mosaic() -> Result<Imagery> {
    let folders = Folders::from_environment()?;
    folders.open("blue-marble", &folders.mask()?)
}

/// Builds a gallery and writes it to a file.
pub fn build(weights: &Path, out: &Path, widths_km: [f64; 2]) -> Result<()> {
    let (encoder, imagery) = (encoder(weights)?, mosaic()?);
    let began = Instant::now();
    let gallery = Gallery::build(&encoder, &imagery, widths_km, Precision::FULL, |done, of| {
        if done % 100 == 0 {
            eprintln!("{done} of {of} maps, {:.0} s", began.elapsed().as_secs_f64());
        }
    });
    let bytes = gallery.to_bytes();
    eprintln!("{} maps, {:.1} MB", gallery.maps().len(), bytes.len() as f64 / 1e6);
    std::fs::write(out, bytes)?;
    let small = gallery.rounded(Precision::SMALL).to_bytes();
    eprintln!("small: {:.1} MB", small.len() as f64 / 1e6);
    Ok(std::fs::write(out.with_extension("small"), small)?)
}

/// Real views, from `$LOCDIFF_DATA/realviews`: of tier A, where land is recognizable, and of tier N, which show none. Of the
/// others nobody knows what can be seen.
pub fn real_views() -> Result<Vec<KnownView>> {
    let data = std::env::var("LOCDIFF_DATA").context("LOCDIFF_DATA is not set")?;
    let folder = Path::new(&data).join("realviews");
    let table = std::fs::read_to_string(folder.join("views.csv"))?;
    let view = |line: &str| {
        // Only later columns have quotes: file, latitude, longitude, width_km, heading, tier, …
        let fields: Vec<&str> = line.splitn(7, ',').collect();
        let [file, latitude, longitude, width, _, tier, ..] = fields[..] else {
            anyhow::bail!("views.csv has a line with {} columns: {line}", fields.len());
        };
        let photo = Photo::open(folder.join(file))?;
        let (across, down) = (f64::from(photo.width()), f64::from(photo.height()));
        Ok(KnownView {
            name: file.to_owned(),
            set: file.split('_').next().unwrap_or(file).to_owned(),
            tier: tier.to_owned(),
            place: LatLon::new(latitude.parse()?, longitude.parse()?)?,
            // Of the central square.
            width_km: width.parse::<f64>()? * across.min(down) / across,
            photo,
        })
    };
    let all = table.lines().skip(1).map(view).collect::<Result<Vec<KnownView>>>()?;
    Ok(all.into_iter().filter(|view| view.tier != "B").collect())
}

/// Photographs by astronauts, from `$LOCDIFF_DATA/astronaut`; their widths are not known.
pub fn astronaut_photos() -> Result<Vec<KnownView>> {
    let data = std::env::var("LOCDIFF_DATA").context("LOCDIFF_DATA is not set")?;
    let folder = Path::new(&data).join("astronaut");
    let table = std::fs::read_to_string(folder.join("photos.csv"))?;
    let view = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        Ok(KnownView {
            name: fields[0].to_owned(),
            set: "astronaut".to_owned(),
            tier: "astronaut".to_owned(),
            photo: Photo::open(folder.join(fields[0]))?,
            place: LatLon::new(fields[1].parse()?, fields[2].parse()?)?,
            width_km: 0.0,
        })
    };
    table.lines().skip(1).map(view).collect()
}

/// Rendered views of a test set.
pub fn rendered_views(set: &str, count: usize) -> Result<Vec<KnownView>> {
    let set = SETS.iter().find(|one| one.name == set).context("no such set")?;
    let views = set.render(&Folders::from_environment()?, SEED, count, SIDE as usize)?;
    let known = |(k, view): (usize, &locdiff_earth::View)| KnownView {
        name: format!("{}-{k}", set.name),
        set: set.name.to_owned(),
        tier: "rendered".to_owned(),
        photo: Photo::from_rgb(SIDE, SIDE, view.pixels.clone()).expect("a square"),
        place: place(view),
        width_km: view.label.width_km,
    };
    Ok(views.iter().enumerate().map(known).collect())
}

/// Pictures of other things, from packages: every so manieth of them, so that there are about `count`.
pub fn other_pictures(count: usize) -> Result<Vec<KnownView>> {
    let mut paths = Vec::new();
    for folder in ["negatives", "other"] {
        collect(&Path::new("target/experiments/earth").join(folder), &mut paths)?;
    }
    paths.sort();
    let every = paths.len().div_ceil(count).max(1);
    let known = |path: &PathBuf| {
        Some(KnownView {
            name: path.file_name()?.to_string_lossy().into_owned(),
            set: "other".to_owned(),
            tier: "other".to_owned(),
            photo: Photo::open(path).ok()?,
            place: LatLon::new(0.0, 0.0).ok()?,
            width_km: 0.0,
        })
    };
    Ok(paths.iter().step_by(every).filter_map(known).collect())
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let kind = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        // Letters would be too easy.
        let is_letter = path.components().any(|part| part.as_os_str() == "symbols");
        let is_picture = !is_letter && ["jpg", "jpeg", "png", "webp"].contains(&&*kind);
        if path.is_dir() {
            collect(&path, paths)?;
        } else if is_picture && path.metadata()?.len() < MOST_BYTES {
            paths.push(path);
        }
    }
    Ok(())
}

/// What is inside the program, or what somebody built.
pub fn locator(model: &str) -> Result<EarthLocator> {
    if model == "built-in" {
        return Ok(EarthLocator::built_in(&Device::flex()));
    }
    Ok(EarthLocator::open(&ModelDirectory::read(Path::new(model))?, &Device::flex())?)
}

/// Writes a model directory from its parts; its card stays.
pub fn assemble(
    weights: &Path,
    gallery: &Path,
    mosaic: &Path,
    with: &Path,
    out: &Path,
) -> Result<()> {
    let gallery = Gallery::from_bytes(&std::fs::read(gallery)?)?;
    let settings: AtlasSettings = serde_json::from_slice(&std::fs::read(with)?)?;
    let mosaic = std::fs::read(mosaic)?;
    let card = std::fs::read_to_string(out.join("README.md")).context("its card")?;
    Ok(EarthLocator::save(&encoder(weights)?, &settings, &gallery, &mosaic, out, &card)?)
}

/// Writes a model directory again with other settings.
pub fn apply(settings: &Path, directory: &Path) -> Result<()> {
    let locator = EarthLocator::open(&ModelDirectory::read(directory)?, &Device::flex())?;
    let settings: AtlasSettings = serde_json::from_slice(&std::fs::read(settings)?)?;
    let mosaic = std::fs::read(directory.join("mosaic.bin"))?;
    let card = std::fs::read_to_string(directory.join("README.md")).context("its card")?;
    let Atlas { encoder, gallery, .. } = locator.atlas();
    Ok(EarthLocator::save(encoder, &settings, gallery, &mosaic, directory, &card)?)
}

/// Prints a line of JSON for each view: what was found, registered.
pub fn search(atlas: &Atlas, views: Vec<KnownView>) -> Result<()> {
    for view in views {
        println!("{}", serde_json::to_string(&Line::of(&view, atlas))?);
    }
    Ok(())
}
