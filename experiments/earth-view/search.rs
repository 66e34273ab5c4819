//! The search and the registration of its results, measured on real and on rendered views.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use burn::tensor::Device;
use locdiff::Photo;
use locdiff::models::earth_view::{
    AlignedEncoder, AlignedEncoderConfig, Gallery, PackedWeights, Precision, Query, SearchResult,
    VIEW,
};
use locdiff_earth::{Guess, Imagery, Registrar};
use locdiff_experiments::earth_sources::Folders;
use locdiff_sphere::LatLon;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::aligned_train::PART_NAME;
use crate::sets::{SETS, place};

/// Pixels along the side of pictures that are registered.
const SIDE: u32 = 256;
const SEED: u64 = 3_000_017;

/// A picture whose place is known.
pub struct KnownView {
    pub name: String,
    pub set: String,
    pub tier: String,
    pub photo: Photo,
    pub place: LatLon,
    pub width_km: f64,
    pub heading_degrees: Option<f64>,
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

/// Real views of all tiers, from `$LOCDIFF_DATA/realviews`.
pub fn real_views() -> Result<Vec<KnownView>> {
    let data = std::env::var("LOCDIFF_DATA").context("LOCDIFF_DATA is not set")?;
    let folder = Path::new(&data).join("realviews");
    let table = std::fs::read_to_string(folder.join("views.csv"))?;
    let view = |line: &str| {
        // Only later columns have quotes: file, latitude, longitude, width_km, heading, tier, …
        let fields: Vec<&str> = line.splitn(7, ',').collect();
        let [file, latitude, longitude, width, heading, tier, ..] = fields[..] else {
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
            heading_degrees: heading.parse().ok(),
            photo,
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
        heading_degrees: None,
    };
    Ok(views.iter().enumerate().map(known).collect())
}

/// Prints a line of JSON for each view: the results of the search, registered.
pub fn search(weights: &Path, gallery: &Path, views: Vec<KnownView>, count: usize) -> Result<()> {
    let encoder = encoder(weights)?;
    let gallery = Gallery::from_bytes(&std::fs::read(gallery)?)?;
    let imagery = mosaic()?;
    for view in views {
        let began = Instant::now();
        let query = Query::new(&encoder, &view.photo.square(VIEW as u32));
        let encoded_s = began.elapsed().as_secs_f64();
        let results = gallery.search(&query, count, |_| true);
        let search_s = began.elapsed().as_secs_f64();
        let registrar = Registrar::new(&view.photo.square(SIDE), SIDE as usize);
        let results: Vec<Value> = results
            .par_iter()
            .map(|result| registered(&registrar, &imagery, &view, result))
            .collect();
        let line = json!({
            "name": view.name, "set": view.set, "tier": view.tier,
            "latitude": view.place.latitude(), "longitude": view.place.longitude(),
            "width_km": view.width_km, "heading": view.heading_degrees,
            "encoded_s": encoded_s, "search_s": search_s, "all_s": began.elapsed().as_secs_f64(),
            "results": results,
        });
        println!("{line}");
    }
    Ok(())
}

fn registered(
    registrar: &Registrar,
    imagery: &Imagery,
    view: &KnownView,
    result: &SearchResult,
) -> Value {
    let guess = Guess {
        middle: (result.middle.latitude(), result.middle.longitude()),
        heading_degrees: result.heading_degrees,
        width_km: result.width_km,
    };
    let registration = registrar.register(imagery, &guess);
    let found = &registration.found;
    let place = LatLon::new(found.middle.0, found.middle.1).expect("on Earth");
    let round = |number: f64, to: f64| (number * to).round() / to;
    json!({
        "latitude": round(result.middle.latitude(), 1e4), "longitude": round(result.middle.longitude(), 1e4),
        "heading": round(result.heading_degrees, 10.0), "width_km": round(result.width_km, 10.0),
        "likeness": round(result.likeness, 1e4), "deviations": round(result.deviations, 1e3),
        "off_km": round(result.middle.distance_km(view.place), 10.0),
        "registered": {
            "latitude": round(found.middle.0, 1e4), "longitude": round(found.middle.1, 1e4),
            "heading": round(found.heading_degrees, 10.0), "width_km": round(found.width_km, 10.0),
            "likeness": round(registration.likeness, 1e4),
            "off_km": round(place.distance_km(view.place), 10.0),
        },
    })
}
