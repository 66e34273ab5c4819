//! Views in a file: a head, all pixels, then a table of labels.
//!
//! Little endian: the magic "VIEWSET1", the number of views and their size as u32; `count × size ×
//! size × 3` bytes of pixels; `count` rows of eight f32: latitude, longitude, width in km, tilt in
//! degrees, altitude in km, land fraction, night (0 or 1), source.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::Error;
use crate::renderer::{Label, View};

const MAGIC: &[u8; 8] = b"VIEWSET1";
const COLUMNS: usize = 8;

/// Writes views of one size to a file.
///
/// # Panics
/// If their sizes differ.
pub fn write_shard(path: &Path, views: &[View]) -> Result<(), Error> {
    let size = views.first().map_or(0, |view| view.size_px);
    assert!(views.iter().all(|view| view.size_px == size), "a shard holds views of one size");
    let write = || {
        // Renamed when whole, so that a stopped run leaves no half shard.
        let unfinished = path.with_extension("unfinished");
        let mut file = BufWriter::new(File::create(&unfinished)?);
        file.write_all(MAGIC)?;
        file.write_all(&(views.len() as u32).to_le_bytes())?;
        file.write_all(&(size as u32).to_le_bytes())?;
        views.iter().try_for_each(|view| file.write_all(&view.pixels))?;
        for view in views {
            for value in row(&view.label) {
                file.write_all(&value.to_le_bytes())?;
            }
        }
        file.into_inner()?.sync_all()?;
        std::fs::rename(unfinished, path)
    };
    write().map_err(Error::file(path))
}

/// Reads what [`write_shard`] wrote; labels come back with the precision of f32.
pub fn read_shard(path: &Path) -> Result<Vec<View>, Error> {
    let bytes = std::fs::read(path).map_err(Error::file(path))?;
    if bytes.get(..8) != Some(MAGIC) || bytes.len() < 16 {
        return Err(Error::format(path, "another kind of file", "a shard of views"));
    }
    let number =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (count, size_px) = (number(8) as usize, number(12) as usize);
    let view_bytes = size_px * size_px * 3;
    let expected = 16 + count * (view_bytes + COLUMNS * 4);
    if bytes.len() != expected {
        let found = format!("{} bytes", bytes.len());
        return Err(Error::format(
            path,
            found,
            format!("{expected} for {count} views of {size_px} px"),
        ));
    }
    let table = 16 + count * view_bytes;
    Ok((0..count)
        .map(|index| {
            let row = std::array::from_fn(|column| {
                f32::from_bits(number(table + (index * COLUMNS + column) * 4))
            });
            let pixels = bytes[16 + index * view_bytes..][..view_bytes].to_vec();
            View { pixels, size_px, label: label(row) }
        })
        .collect())
}

fn row(label: &Label) -> [f32; COLUMNS] {
    [
        label.latitude as f32,
        label.longitude as f32,
        label.width_km as f32,
        label.tilt_degrees as f32,
        label.altitude_km as f32,
        label.land_fraction as f32,
        f32::from(u8::from(label.night)),
        label.source as f32,
    ]
}

fn label(row: [f32; COLUMNS]) -> Label {
    let [latitude, longitude, width_km, tilt_degrees, altitude_km, land_fraction] =
        std::array::from_fn(|column| f64::from(row[column]));
    Label {
        latitude,
        longitude,
        width_km,
        tilt_degrees,
        altitude_km,
        land_fraction,
        night: row[6] != 0.0,
        source: row[7] as usize,
    }
}
