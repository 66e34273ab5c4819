//! Which places are shown: land by area, with coasts, islands and small continents above their
//! share and the ice of the poles below it.

use crate::land_mask::LandMask;
use crate::random::Random;

const ROWS: usize = 180;
const COLUMNS: usize = 360;

/// A distribution over places, by cells of one degree.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    // Running sums of the cells' weights, row by row from the north.
    sums: Vec<f64>,
}

impl Places {
    pub(crate) fn new(mask: &LandMask) -> Self {
        let rows: Vec<Vec<f32>> = (0..ROWS)
            .map(|row| {
                mask.shares(row as f64 / ROWS as f64, (row + 1) as f64 / ROWS as f64, COLUMNS)
            })
            .collect();
        let mut total = 0.0;
        let mut sums = Vec::with_capacity(ROWS * COLUMNS);
        for row in 0..ROWS {
            let latitude = 89.5 - row as f64;
            for column in 0..COLUMNS {
                let longitude = column as f64 - 179.5;
                total += weight(&rows, row, column)
                    * latitude.to_radians().cos()
                    * regional(latitude, longitude);
                sums.push(total);
            }
        }
        Self { sums }
    }

    /// A place, latitude and longitude in degrees.
    pub(crate) fn draw(&self, random: &mut Random) -> (f64, f64) {
        let total = self.sums[self.sums.len() - 1];
        let wanted = random.unit() * total;
        let cell = self.sums.partition_point(|&sum| sum <= wanted).min(self.sums.len() - 1);
        let latitude = 90.0 - (cell / COLUMNS) as f64 - random.unit();
        let longitude = (cell % COLUMNS) as f64 - 180.0 + random.unit();
        (latitude, longitude)
    }
}

/// Land counts by area; a cell with a coast counts as half full even if it is not, and so does
/// one with an island, however small, if it is worth seeing at all.
fn weight(rows: &[Vec<f32>], row: usize, column: usize) -> f64 {
    let here = f64::from(rows[row][column]);
    let mut around = 0.0;
    for step in 0..9 {
        let row = (row + step / 3).saturating_sub(1).min(ROWS - 1);
        let column = (column + COLUMNS + step % 3 - 1) % COLUMNS;
        around += f64::from(rows[row][column]) / 9.0;
    }
    let coast = 4.0 * around * (1.0 - around);
    here + 0.6 * coast + if around > 0.003 { 0.1 } else { 0.0 }
}

/// Continents by rough boxes; what matters is the order of magnitude.
fn regional(latitude: f64, longitude: f64) -> f64 {
    let within = |south: f64, north: f64, west: f64, east: f64| {
        (south..north).contains(&latitude) && (west..east).contains(&longitude)
    };
    if latitude < -60.0 {
        0.3
    } else if latitude > 72.0 {
        0.45
    } else if within(35.0, 72.0, -25.0, 40.0) {
        2.0 // Europe
    } else if within(-50.0, 0.0, 110.0, 180.0) || within(-30.0, 25.0, -180.0, -120.0) {
        1.6 // Oceania
    } else if within(-56.0, 13.0, -82.0, -34.0) || within(7.0, 28.0, -118.0, -60.0) {
        1.3 // South and Central America
    } else {
        1.0
    }
}
