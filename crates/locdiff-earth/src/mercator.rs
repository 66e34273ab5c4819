//! Web Mercator tiles in an MBTiles database, as rows of the reduced grid.
//!
//! Tiles are read and decoded strip by strip (one row of tiles, 25 MB at zoom 7), so that the whole
//! picture is never in memory. Rows beyond ±85.05°, where the projection ends, repeat its last row:
//! in the north that is sea and replaced anyway, in the south the Antarctic plateau.

use std::path::Path;

use rayon::prelude::*;
use rusqlite::{Connection, OpenFlags};

use crate::error::Error;
use crate::land_mask::LandMask;
use crate::pyramid::{Rows, overlaps};
use crate::reduction::row_from_colours;
use crate::texels::Texels;

const TILE_PX: usize = 256;
/// NASA's tiles are black or dark along the antimeridian, up to this many pixels on either side:
/// bridged, or a model would learn to recognize the line.
const SEAM_PX: usize = 14;

/// Mercator's y at a latitude (radians), from 0 in the north to 1 in the south.
fn mercator_down(latitude: f64) -> f64 {
    (1.0 - latitude.tan().asinh() / std::f64::consts::PI) / 2.0
}

struct Tiles<'a> {
    path: &'a Path,
    database: Connection,
    zoom: u32,
}

impl<'a> Tiles<'a> {
    fn open(path: &'a Path) -> Result<Self, Error> {
        let failed = |source| Error::Tiles { path: path.to_owned(), source };
        // Immutable: the file may lie where SQLite cannot make its lock files.
        let address = format!("file:{}?immutable=1", path.display());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let database = Connection::open_with_flags(address, flags).map_err(failed)?;
        let zoom = database
            .query_row("SELECT max(zoom_level) FROM tiles", [], |row| row.get(0))
            .map_err(failed)?;
        Ok(Self { path, database, zoom })
    }

    /// The pixels of a row of tiles, counted from the north.
    fn strip(&self, index: usize) -> Result<Vec<u8>, Error> {
        let count = 1usize << self.zoom;
        let failed = |source| Error::Tiles { path: self.path.to_owned(), source };
        let mut statement = self
            .database
            .prepare_cached(
                "SELECT tile_data FROM tiles WHERE zoom_level=? AND tile_column=? AND tile_row=?",
            )
            .map_err(failed)?;
        // MBTiles count rows from the south.
        let row = (count - 1 - index) as i64;
        let encoded: Vec<Vec<u8>> = (0..count as i64)
            .map(|column| statement.query_row((self.zoom, column, row), |row| row.get(0)))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let tiles: Vec<_> = encoded
            .par_iter()
            .map(|bytes| {
                let tile = image::load_from_memory(bytes)
                    .map_err(|source| Error::Picture { path: self.path.to_owned(), source })?
                    .into_rgb8();
                if tile.dimensions() != (TILE_PX as u32, TILE_PX as u32) {
                    let found = format!("a tile of {:?} pixels", tile.dimensions());
                    return Err(Error::format(self.path, found, "256 × 256"));
                }
                Ok(tile.into_raw())
            })
            .collect::<Result<_, _>>()?;
        let mut pixels = Vec::with_capacity(count * TILE_PX * TILE_PX * 3);
        for line in 0..TILE_PX {
            for tile in &tiles {
                pixels.extend_from_slice(&tile[line * TILE_PX * 3..][..TILE_PX * 3]);
            }
        }
        Ok(pixels)
    }
}

/// The number of rows of level 0: texels as large as the tiles' pixels at the equator.
pub(crate) fn row_count(path: &Path) -> Result<usize, Error> {
    Ok((TILE_PX << Tiles::open(path)?.zoom) / 2)
}

/// All rows of the reduced grid, texel by texel.
pub(crate) fn texels(path: &Path, rows: &Rows, mask: &LandMask) -> Result<Texels, Error> {
    let tiles = Tiles::open(path)?;
    let strips = 1usize << tiles.zoom;
    let height = strips * TILE_PX;
    let stride = height * 3;
    // The lines of the tiles that a row covers.
    let lines_of = |row: usize| {
        let latitude = |row: usize| (0.5 - row as f64 / rows.count() as f64) * std::f64::consts::PI;
        let line =
            |row: usize| (mercator_down(latitude(row)) * height as f64).clamp(0.0, height as f64);
        let (start, end) = (line(row), line(row + 1));
        // Beyond the projection's end: its last line.
        let start = start.min(height as f64 - 1.0);
        (start, end.max(start + 1e-6).max(if end <= 0.0 { 1.0 } else { 0.0 }))
    };

    let mut texels = Texels::zero(rows.texel_count());
    let (mut before, mut row) = (Vec::new(), 0);
    for index in 0..strips {
        let strip = tiles.strip(index)?;
        let (strip_start, strip_end) = (index * TILE_PX, (index + 1) * TILE_PX);
        let first = row;
        while row < rows.count() && lines_of(row).1 <= strip_end as f64 + 1e-6 {
            row += 1;
        }
        let line = |at: usize| {
            let at = at.min(strip_end - 1);
            if at >= strip_start {
                &strip[(at - strip_start) * stride..][..stride]
            } else {
                &before[(at + TILE_PX - strip_start) * stride..][..stride]
            }
        };
        let made: Vec<Vec<u32>> = (first..row)
            .into_par_iter()
            .map(|row| {
                let (start, end) = lines_of(row);
                let mut colours = vec![0.0f32; stride];
                for (at, weight) in overlaps(start, end) {
                    for (sum, &byte) in colours.iter_mut().zip(line(at)) {
                        *sum += weight as f32 * f32::from(byte);
                    }
                }
                bridge_seam(&mut colours);
                row_from_colours(&colours, rows, row, mask)
            })
            .collect();
        for (row, made) in (first..row).zip(made) {
            texels[rows.range(row)].copy_from_slice(&made);
        }
        before = strip;
    }
    Ok(texels)
}

/// Replaces both ends of a row around the globe by what lies between their neighbours.
fn bridge_seam(colours: &mut [f32]) {
    let pixels = colours.len() / 3;
    for channel in 0..3 {
        let west = colours[(pixels - 1 - SEAM_PX) * 3 + channel];
        let east = colours[SEAM_PX * 3 + channel];
        for step in 0..2 * SEAM_PX {
            let part = (step + 1) as f32 / (2 * SEAM_PX + 1) as f32;
            let pixel = (pixels - SEAM_PX + step) % pixels;
            colours[pixel * 3 + channel] = west + (east - west) * part;
        }
    }
}
