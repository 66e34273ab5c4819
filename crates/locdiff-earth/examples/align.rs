//! A map of each source with the land mask's coast drawn over it, to check alignment by eye.
//! `cargo run --release --example align OUT_DIR NAME...`

mod shared;

use image::{Rgb, RgbImage, imageops};
use locdiff_earth::{Imagery, LandMask};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = std::path::PathBuf::from(arguments.next().ok_or("usage: align OUT_DIR NAME...")?);
    std::fs::create_dir_all(&out)?;
    let folders = shared::Folders::from_environment();
    let mask = folders.mask()?;
    // The sea must be there for its coast to be seen: with all of it called land it is kept.
    let everything = LandMask::from_fn(18, 36, |_, _| true);
    let unmasked = shared::Folders { cache: "target/earth/cache-unmasked".into(), ..folders };
    for name in arguments {
        let imagery = unmasked.open(&name, &everything)?;
        let mut sheet = RgbImage::new(1200, 800);
        // South, west, degrees: Europe, Florida, the Bering Strait over the antimeridian,
        // Antarctica, New Zealand, East Africa.
        let windows = [
            (36.0, 5.0, 12.0),
            (22.0, -86.0, 12.0),
            (60.0, 172.0, 12.0),
            (-79.0, 160.0, 12.0),
            (-47.0, 166.0, 12.0),
            (-15.0, 40.0, 12.0),
        ];
        for (index, (south, west, degrees)) in windows.into_iter().enumerate() {
            let window = window(&imagery, &mask, south, west, degrees);
            imageops::replace(
                &mut sheet,
                &window,
                (index as i64 % 3) * 400,
                (index as i64 / 3) * 400,
            );
        }
        sheet.save(out.join(format!("align-{name}.png")))?;
    }
    Ok(())
}

fn window(imagery: &Imagery, mask: &LandMask, south: f64, west: f64, degrees: f64) -> RgbImage {
    const SIDE: u32 = 398;
    let step = degrees / f64::from(SIDE);
    RgbImage::from_fn(SIDE, SIDE, |x, y| {
        let latitude = south + degrees - (f64::from(y) + 0.5) * step;
        let longitude = (west + (f64::from(x) + 0.5) * step + 180.0).rem_euclid(360.0) - 180.0;
        let land = |north: f64, east: f64| mask.is_land(latitude + north, longitude + east);
        if land(0.0, 0.0) != land(step, 0.0) || land(0.0, 0.0) != land(0.0, step) {
            return Rgb([255, 40, 40]);
        }
        let (colour, _) = imagery.colour(latitude, longitude, step * 111.0);
        Rgb(colour.map(|value| ((value * 1.3).min(1.0) * 255.0) as u8))
    })
}
