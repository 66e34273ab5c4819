//! The committed weights at work: their cost, what they say of the real photographs, and of pictures
//! of other things.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use burn::tensor::Device;
use image::{RgbImage, imageops};
use locdiff::Inference;
use locdiff::models::earth_view::EarthView;
use locdiff::{LocationModel, Photo};
use locdiff_map::{ColourBar, Map, Marker, Projection, Scale, Symbol};
use locdiff_sphere::{Density, LatLon};

use crate::astronaut::photographs;
use crate::predictions::within_circle;

/// Milliseconds from a decoded photograph to its density with all checks, and of the head and the density alone.
pub fn cost(model: &EarthView) -> Result<(f64, f64)> {
    const TIMES: usize = 30;
    const SIDE: usize = 1024;
    let example = Photo::open("examples/madagascar.jpg")?;
    let (width, height) = (example.width() as usize, example.height() as usize);
    let pixels = (0..SIDE * SIDE).flat_map(|at| {
        let (row, column) = (at / SIDE * height / SIDE, at % SIDE * width / SIDE);
        example.rgb()[3 * (row * width + column)..][..3].iter().copied()
    });
    let pixels = pixels.collect();
    let photos = [Photo::from_rgb(SIDE as u32, SIDE as u32, pixels).context("a photograph")?];
    let reading = model.read(&photos).remove(0);
    let four = reading.embedding.repeat(4);
    let four = burn::tensor::TensorData::new(four, [4, reading.embedding.len()]);
    let four = burn::tensor::Tensor::<2>::from_data(four, &Device::flex());
    let (mut totals, mut maps) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let began = Instant::now();
        std::hint::black_box(model.locate(&photos, &Inference::default()));
        totals.push(1e3 * began.elapsed().as_secs_f64());
        let began = Instant::now();
        std::hint::black_box(model.network().answer(four.clone()).into_data());
        std::hint::black_box(model.density(&reading));
        maps.push(1e3 * began.elapsed().as_secs_f64());
    }
    totals.sort_by(f64::total_cmp);
    maps.sort_by(f64::total_cmp);
    Ok((totals[TIMES / 2], maps[TIMES / 2]))
}

/// The fifteen photographs as a table, and as a sheet: each beside what is said of it.
pub fn real_photographs(model: &EarthView, sheet: &Path) -> Result<()> {
    let photographs = photographs()?;
    println!(
        "The fifteen real photographs, about as wide as their lens says (a view needs about 100 km). In the sheet each stands beside the map of its answer, also if that was held back: the cross is the truth, the ring the point below the station.\n"
    );
    println!(
        "| photograph | lens, mm | width, km | says | off by, km | within the circle, off by, km | 90 % region, million km² | truth in it | 90 % within the circle | truth in it |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    let mut pictures = Vec::new();
    for photograph in photographs {
        let photo = Photo::open(&photograph.path)?;
        pictures.push(photo.square(SHEET_PX));
        let reading = model.read(&[photo]).remove(0);
        let density = model.density(&reading);
        pictures.push(map(&density, photograph.truth, photograph.below)?);
        let survey = density.survey();
        let best = survey.modes().modes[0].place;
        let region = survey.region(0.9);
        let yes = |is: bool| if is { "yes" } else { "no" };
        let (off, area, held) = match within_circle(&density, photograph.below, photograph.truth) {
            Some(inside) => (
                format!("{:.0}", inside.mode.distance_km(photograph.truth)),
                format!("{:.1}", inside.region_km2 / 1e6),
                yes(inside.level <= 0.9),
            ),
            None => ("–".to_owned(), "–".to_owned(), "–"),
        };
        let said = match model.accept(&reading) {
            Ok(()) => "an answer".to_owned(),
            Err(refused) => refused.to_string(),
        };
        println!(
            "| {} | {} | {:.0} | {said} | {:.0} | {off} | {:.1} | {} | {area} | {held} |",
            photograph.name(),
            photograph.focal_length_mm,
            photograph.width_km(),
            best.distance_km(photograph.truth),
            region.area_km2() / 1e6,
            yes(region.contains(photograph.truth)),
        );
    }
    println!("\n![The photographs, and what is said of them](photographs.jpg)\n");
    draw(&pictures, sheet)
}

/// Height of a row of the sheet.
const SHEET_PX: u32 = 160;
const MAP_PX: u32 = 320;
/// Photographs in a row.
const COLUMNS: usize = 3;
const GAP_PX: u32 = 6;

/// A map as high as a photograph: three bytes per pixel.
fn map(density: &Density, truth: LatLon, below: LatLon) -> Result<Vec<u8>> {
    let picture = Map::new(Projection::EqualEarth)
        .width_px(MAP_PX)
        .field(|place| density.log_density(place))
        .scale(Scale::log_decades(3.0))
        .colour_bar(ColourBar::Hidden)
        .marker(Marker::new(below).symbol(Symbol::Ring))
        .marker(Marker::new(truth).symbol(Symbol::Cross))
        .draw();
    let picture = image::load_from_memory(&picture.png())?.into_rgb8();
    let mut framed = RgbImage::from_pixel(MAP_PX, SHEET_PX, image::Rgb([255; 3]));
    let top = (i64::from(SHEET_PX) - i64::from(picture.height())) / 2;
    imageops::replace(&mut framed, &picture, 0, top);
    Ok(framed.into_raw())
}

fn draw(pictures: &[Vec<u8>], out: &Path) -> Result<()> {
    let cell = SHEET_PX + MAP_PX + 2 * GAP_PX;
    let rows = (pictures.len() / 2).div_ceil(COLUMNS) as u32;
    let size = [COLUMNS as u32 * cell, rows * (SHEET_PX + GAP_PX)];
    let mut sheet = RgbImage::from_pixel(size[0], size[1], image::Rgb([255; 3]));
    for (at, pair) in pictures.chunks_exact(2).enumerate() {
        let left = i64::from((at % COLUMNS) as u32 * cell);
        let top = i64::from((at / COLUMNS) as u32 * (SHEET_PX + GAP_PX));
        for (bytes, width, left) in
            [(&pair[0], SHEET_PX, left), (&pair[1], MAP_PX, left + i64::from(SHEET_PX + GAP_PX))]
        {
            let picture =
                RgbImage::from_raw(width, SHEET_PX, bytes.clone()).context("a picture")?;
            imageops::replace(&mut sheet, &picture, left, top);
        }
    }
    Ok(sheet.save(out)?)
}

/// Pictures of other things, from the packages scikit-image and scikit-learn.
pub fn other_pictures(model: &EarthView) -> Result<()> {
    let mut turned_away = Vec::new();
    let mut taken = Vec::new();
    for folder in ["skimage/data", "sklearn/datasets/images"] {
        let folder = Path::new("target/experiments/earth/other").join(folder);
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let Ok(photo) = Photo::open(&path) else { continue };
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let reading = model.read(&[photo]).remove(0);
            let list = if model.accept(&reading).is_err() { &mut turned_away } else { &mut taken };
            let said = reading.said_nats;
            list.push(format!("{name} ({:.1}, {said:.1})", reading.likeness));
        }
    }
    turned_away.sort();
    taken.sort();
    println!(
        "Pictures of other things (scikit-image, scikit-learn), with their likeness and what is said, in nats. Turned away: {} of {}: {}. Taken for views of the Earth: {}.\n",
        turned_away.len(),
        turned_away.len() + taken.len(),
        turned_away.join(", "),
        taken.join(", "),
    );
    Ok(())
}
