//! Land and sea, as runs: each row of the mask is the list of columns where they change places.
//!
//! From PyPI's `global-land-mask` (GLOBE, 30 seconds of arc), packed by `scripts/pack_land_mask.py`
//! to 1.6 MB. Runs make areas exact and cheap: the cost is the number of coasts, not of cells.

use std::path::Path;

use rayon::prelude::*;

use crate::error::Error;

const MAGIC: &[u8; 8] = b"LANDRUN1";

/// Where land is.
#[derive(Clone, Debug)]
pub struct LandMask {
    columns: u32,
    // From north to south; a row begins as sea at 180° W.
    rows: Vec<Box<[u16]>>,
}

impl LandMask {
    /// Reads what `scripts/pack_land_mask.py` wrote.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(Error::file(path))?;
        let cut = || Error::format(path, "a file that ends early", "a packed land mask");
        if bytes.get(..8) != Some(MAGIC) {
            return Err(Error::format(path, "another kind of file", "a packed land mask"));
        }
        let mut numbers =
            bytes[8..].chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]]));
        let mut next = || numbers.next().ok_or_else(cut);
        let mut next_u32 = || Ok::<u32, Error>(u32::from(next()?) | u32::from(next()?) << 16);
        let (row_count, columns) = (next_u32()?, next_u32()?);
        let mut rows = Vec::with_capacity(row_count as usize);
        for _ in 0..row_count {
            let changes = next()?;
            rows.push((0..changes).map(|_| next()).collect::<Result<_, _>>()?);
        }
        Ok(Self { columns, rows })
    }

    /// A mask of this many rows and columns, asked at the middle of each cell (degrees).
    /// For tests and for masks from elsewhere.
    ///
    /// # Panics
    /// With more than 65,535 columns.
    pub fn from_fn(rows: u32, columns: u32, is_land: impl Fn(f64, f64) -> bool + Sync) -> Self {
        assert!(columns <= u32::from(u16::MAX), "{columns} columns don't fit 16 bits");
        let runs_of_row = |row: u32| {
            let latitude = 90.0 - (f64::from(row) + 0.5) * 180.0 / f64::from(rows);
            let mut inside = false;
            (0..columns)
                .filter(|&column| {
                    let longitude = (f64::from(column) + 0.5) * 360.0 / f64::from(columns) - 180.0;
                    let changed = is_land(latitude, longitude) != inside;
                    inside ^= changed;
                    changed
                })
                .map(|column| column as u16)
                .collect()
        };
        Self { columns, rows: (0..rows).into_par_iter().map(runs_of_row).collect() }
    }

    /// Whether the cell at a place (degrees) is land.
    pub fn is_land(&self, latitude: f64, longitude: f64) -> bool {
        let rows = self.rows.len();
        let row = ((90.0 - latitude) / 180.0 * rows as f64) as usize;
        let turn = ((longitude + 180.0) / 360.0).rem_euclid(1.0);
        let column = (turn * f64::from(self.columns)) as u16;
        self.rows[row.min(rows - 1)].partition_point(|&change| change <= column) % 2 == 1
    }

    /// Share of land in each of `cells` equal cells around the globe between two latitudes, given
    /// as parts of the way from the north pole to the south pole: exact, by area in the mask.
    pub(crate) fn shares(&self, top: f64, bottom: f64, cells: usize) -> Vec<f32> {
        let rows = self.rows.len();
        let (first, last) = (top * rows as f64, bottom * rows as f64);
        // Changes of the share at each cell's edge, summed up at the end.
        let mut steps = vec![0.0f64; cells + 2];
        let scale = cells as f64 / f64::from(self.columns);
        for row in (first as usize)..(last.ceil() as usize).min(rows) {
            let weight = (last.min(row as f64 + 1.0) - first.max(row as f64)) / (last - first);
            let mut sign = weight;
            for &change in &self.rows[row] {
                let position = f64::from(change) * scale;
                let cell = position as usize;
                let inside = 1.0 - (position - cell as f64);
                steps[cell] += sign * inside;
                steps[cell + 1] += sign * (1.0 - inside);
                sign = -sign;
            }
        }
        let mut share = 0.0;
        steps[..cells]
            .iter()
            .map(|step| {
                share += step;
                share.clamp(0.0, 1.0) as f32
            })
            .collect()
    }

    /// Share of land within a cap of this radius around a place (degrees, km), counted on a
    /// lattice of 32 × 32 points of equal area.
    pub fn land_fraction(&self, latitude: f64, longitude: f64, radius_km: f64) -> f64 {
        const STEPS: u32 = 32;
        let mut land = 0u32;
        for ring in 0..STEPS {
            // Equal areas lie between circles of equal steps in 1 − cos(radius).
            let part = (f64::from(ring) + 0.5) / f64::from(STEPS);
            let cos_rim = (radius_km / crate::EARTH_RADIUS_KM).cos();
            let arc = (1.0 - part * (1.0 - cos_rim)).acos();
            for step in 0..STEPS {
                let azimuth = (f64::from(step) + 0.5 * f64::from(ring % 2)) / f64::from(STEPS)
                    * std::f64::consts::TAU;
                let (lat, lon) = crate::camera::destination(latitude, longitude, azimuth, arc);
                land += u32::from(self.is_land(lat, lon));
            }
        }
        f64::from(land) / f64::from(STEPS * STEPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_what_counting_gives() {
        let mask = LandMask::from_fn(60, 120, |lat, lon| (3.0 * lat + 7.0 * lon).sin() > 0.2);
        // Rows 10 to 20, in cells of four columns: count them.
        let shares = mask.shares(10.0 / 60.0, 20.0 / 60.0, 30);
        for (cell, &share) in shares.iter().enumerate() {
            let mut land = 0;
            for row in 10..20 {
                for column in 4 * cell..4 * cell + 4 {
                    let latitude = 90.0 - (f64::from(row) + 0.5) * 3.0;
                    land += i32::from(mask.is_land(latitude, (column as f64 + 0.5) * 3.0 - 180.0));
                }
            }
            assert!((share - land as f32 / 40.0).abs() < 1e-6, "cell {cell}: {share}, {land}");
        }
        // Cells that cut columns, and rows cut in the middle, keep the total.
        let cut: f32 = mask.shares(0.171, 0.3, 37).iter().sum::<f32>() / 37.0;
        let fine: f32 = mask.shares(0.171, 0.3, 120).iter().sum::<f32>() / 120.0;
        assert!((cut - fine).abs() < 1e-5);
    }
}
