//! Sheets of rendered views, to be looked at.
//! `cargo run --release --example sheet OUT_DIR [SEED]`: `views.png` (12 × 8 views of 64 px) and
//! `beside-real.png` (each real photograph, downscaled, with three rendered views beside it).

mod shared;

use std::path::Path;

use image::{RgbImage, imageops};
use locdiff_earth::{Camera, Pose, Renderer, View};

const SIZE: usize = 64;
const SCALE: u32 = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = std::path::PathBuf::from(arguments.next().ok_or("usage: sheet OUT_DIR [SEED]")?);
    let seed: u64 = arguments.next().map_or(Ok(9), |word| word.parse())?;
    std::fs::create_dir_all(&out)?;
    let folders = shared::Folders::from_environment();
    let mask = folders.mask()?;
    let day = vec![folders.open("blue-marble", &mask)?];
    let night = vec![folders.open("black-marble", &mask)?];
    let mut renderer = Renderer::new(mask, day, night);

    let views = renderer.render_batch(seed, 96, SIZE);
    sheet(&views.iter().map(picture).collect::<Vec<_>>(), 12).save(out.join("views.png"))?;

    renderer.style.night_share = 1.0;
    let views = renderer.render_batch(seed, 48, SIZE);
    sheet(&views.iter().map(picture).collect::<Vec<_>>(), 12).save(out.join("night.png"))?;

    let real = Path::new("target/earth/astronaut");
    let mut pictures = Vec::new();
    for (index, line) in
        std::fs::read_to_string(real.join("photos.csv"))?.lines().skip(1).enumerate()
    {
        let fields: Vec<&str> = line.split(',').collect();
        let photograph = image::open(real.join(fields[0]))?.into_rgb8();
        let side = SIZE as u32 * SCALE;
        let small =
            imageops::resize(&photograph, SIZE as u32, SIZE as u32, imageops::FilterType::Triangle);
        pictures.push(imageops::resize(&small, side, side, imageops::FilterType::Nearest));
        let number = |index: usize| fields[index].parse::<f64>();
        // A 36 mm frame; zoom 7 shows nothing below 100 km, so narrower views are widened.
        let width_km = (36.0 / number(6)? * 430.0).max(150.0);
        for seed in 0..3 {
            let camera = Camera::new(Pose {
                latitude: number(1)?,
                longitude: number(2)?,
                altitude_km: 410.0,
                tilt_degrees: number(5)?,
                heading_degrees: 0.0,
                roll_degrees: 0.0,
                width_km,
            });
            let (pixels, _) = renderer.photograph(&camera, 0, seed + 3 * index as u64, SIZE);
            pictures.push(enlarged(pixels));
        }
    }
    sheet(&pictures, 12).save(out.join("beside-real.png"))?;
    Ok(())
}

fn picture(view: &View) -> RgbImage {
    enlarged(view.pixels.clone())
}

fn enlarged(pixels: Vec<u8>) -> RgbImage {
    let side = SIZE as u32;
    let picture = RgbImage::from_raw(side, side, pixels).unwrap_or_default();
    imageops::resize(&picture, side * SCALE, side * SCALE, imageops::FilterType::Nearest)
}

fn sheet(pictures: &[RgbImage], columns: u32) -> RgbImage {
    let cell = SIZE as u32 * SCALE + 3;
    let rows = (pictures.len() as u32).div_ceil(columns);
    let mut sheet = RgbImage::from_pixel(columns * cell, rows * cell, image::Rgb([255; 3]));
    for (index, picture) in pictures.iter().enumerate() {
        let (column, row) = (index as i64 % i64::from(columns), index as i64 / i64::from(columns));
        imageops::replace(&mut sheet, picture, column * i64::from(cell), row * i64::from(cell));
    }
    sheet
}
