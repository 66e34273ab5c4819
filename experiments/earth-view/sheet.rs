//! Pictures to look at: rendered views, and beside each real photograph what the renderer makes
//! of the same camera.

use std::path::Path;

use anyhow::{Context, Result};
use image::{RgbImage, imageops};
use locdiff::Photo;
use locdiff_earth::{Camera, Pose, Renderer};

use crate::astronaut::photographs;
use locdiff_experiments::earth_sources::Folders;

const SIDE: usize = 128;
const GAP: u32 = 2;
/// Views per row.
const ROW: usize = 12;

pub fn draw(out: &Path) -> Result<()> {
    let folders = Folders::from_environment()?;
    let mask = folders.mask()?;
    let open = |name: &str| folders.open(name, &mask);
    let renderer =
        Renderer::new(mask.clone(), vec![open("blue-marble")?], vec![open("black-marble")?]);
    let mut squares: Vec<Vec<u8>> = Vec::new();
    for photograph in photographs()? {
        squares.push(Photo::open(&photograph.path)?.square(SIDE as u32));
        let camera = Camera::new(Pose {
            latitude: photograph.truth.latitude(),
            longitude: photograph.truth.longitude(),
            altitude_km: 415.0,
            tilt_degrees: photograph.tilt_degrees.min(55.0),
            heading_degrees: 0.0,
            roll_degrees: 0.0,
            width_km: photograph.width_km().max(100.0),
        });
        for seed in 0..3 {
            squares.push(renderer.photograph(&camera, 0, seed, SIDE).0);
        }
    }
    while !squares.len().is_multiple_of(ROW) {
        squares.push(vec![255; 3 * SIDE * SIDE]);
    }
    squares.extend(renderer.render_batch(1, 5 * ROW, SIDE).into_iter().map(|view| view.pixels));
    let step = SIDE as u32 + GAP;
    let rows = (squares.len() / ROW) as u32;
    let white = image::Rgb([255; 3]);
    let mut sheet = RgbImage::from_pixel(ROW as u32 * step - GAP, rows * step - GAP, white);
    for (at, square) in squares.into_iter().enumerate() {
        let square = RgbImage::from_raw(SIDE as u32, SIDE as u32, square).context("a square")?;
        let (column, row) = ((at % ROW) as i64, (at / ROW) as i64);
        imageops::replace(&mut sheet, &square, column * i64::from(step), row * i64::from(step));
    }
    Ok(sheet.save(out)?)
}

/// Pictures for people to try: name, latitude, longitude, width in km, tilt and heading.
const EXAMPLES: [(&str, [f64; 5]); 2] =
    [("sinai", [28.5, 34.0, 900.0, 25.0, 20.0]), ("madagascar", [-19.5, 46.5, 1500.0, 10.0, 75.0])];

/// From imagery that the model was trained on, as the caption must say.
pub fn examples(folder: &Path) -> Result<()> {
    let folders = Folders::from_environment()?;
    let mask = folders.mask()?;
    let day = vec![folders.open("blue-marble", &mask)?];
    let renderer = Renderer::new(mask, day, Vec::new());
    for (name, [latitude, longitude, width_km, tilt_degrees, heading_degrees]) in EXAMPLES {
        let camera = Camera::new(Pose {
            latitude,
            longitude,
            altitude_km: 1200.0,
            tilt_degrees,
            heading_degrees,
            roll_degrees: 0.0,
            width_km,
        });
        const SIDE: usize = 640;
        let (pixels, _) = renderer.photograph(&camera, 0, 4, SIDE);
        let picture = RgbImage::from_raw(SIDE as u32, SIDE as u32, pixels).context("a square")?;
        picture.save(folder.join(format!("{name}.jpg")))?;
    }
    Ok(())
}
