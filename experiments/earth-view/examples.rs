//! The pictures of `examples/`.

use std::path::Path;

use anyhow::{Context, Result};
use image::RgbImage;
use locdiff_earth::{Camera, Pose, Renderer};
use locdiff_experiments::earth_sources::Folders;

const SIDE: usize = 640;
/// Pictures for people to try: name, latitude, longitude, width in km, tilt and heading.
const EXAMPLES: [(&str, [f64; 5]); 2] =
    [("sinai", [28.5, 34.0, 900.0, 25.0, 20.0]), ("madagascar", [-19.5, 46.5, 1500.0, 10.0, 75.0])];

/// From the imagery of the mosaic, as the caption must say.
pub fn draw(folder: &Path) -> Result<()> {
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
        let (pixels, _) = renderer.photograph(&camera, 0, 4, SIDE);
        let picture = RgbImage::from_raw(SIDE as u32, SIDE as u32, pixels).context("a square")?;
        picture.save(folder.join(format!("{name}.jpg")))?;
    }
    Ok(())
}
