//! Pictures of the whole Earth with equal steps of latitude and longitude.

use std::path::{Path, PathBuf};

use image::{RgbImage, imageops};

use crate::error::Error;
use crate::land_mask::LandMask;
use crate::pyramid::{Rows, in_order};
use crate::reduction::row_from_colours;
use crate::texels::Texels;

fn decoded(path: &Path) -> Result<RgbImage, Error> {
    let mut reader = image::ImageReader::open(path).map_err(Error::file(path))?;
    reader.no_limits();
    let failed = |source| Error::Picture { path: path.to_owned(), source };
    Ok(reader.decode().map_err(failed)?.into_rgb8())
}

/// One picture, 180° W at its left edge.
pub(crate) fn whole(path: &Path) -> Result<RgbImage, Error> {
    let picture = decoded(path)?;
    let (width, height) = picture.dimensions();
    if width != 2 * height {
        let found = format!("a picture of {width} × {height} pixels");
        return Err(Error::format(path, found, "twice as wide as high"));
    }
    Ok(picture)
}

/// Flightgear's files `world_N1.png` to `world_S4.png`: two rows of four squares of 90 degrees.
///
/// Each square of 2048 pixels has a border of 16 that repeats its neighbours (measured: tiles side
/// by side agree over exactly 32 columns or rows). Left in, it would move places by up to 0.7°.
pub(crate) fn eight_tiles(folder: &Path) -> Result<RgbImage, Error> {
    let mut whole = RgbImage::new(0, 0);
    for (down, row) in ["N", "S"].iter().enumerate() {
        for across in 0..4i64 {
            let tile = decoded(&eight_tile_path(folder, row, across + 1))?;
            let border = tile.height() / 128;
            let side = tile.height() - 2 * border;
            let tile = imageops::crop_imm(&tile, border, border, side, side).to_image();
            if whole.width() == 0 {
                whole = RgbImage::new(4 * side, 2 * side);
            }
            imageops::replace(
                &mut whole,
                &tile,
                across * i64::from(side),
                down as i64 * i64::from(side),
            );
        }
    }
    Ok(whole)
}

pub(crate) fn eight_tile_path(folder: &Path, row: &str, number: i64) -> PathBuf {
    folder.join(format!("world_{row}{number}.png"))
}

/// All rows of the reduced grid, which has as many as the picture.
pub(crate) fn texels(picture: &RgbImage, rows: &Rows, mask: &LandMask) -> Texels {
    let stride = picture.width() as usize * 3;
    in_order(rows.count(), rows.texel_count(), |row| {
        let line = &picture.as_raw()[row * stride..][..stride];
        let colours: Vec<f32> = line.iter().map(|&byte| f32::from(byte)).collect();
        row_from_colours(&colours, rows, row, mask)
    })
}
