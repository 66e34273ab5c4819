//! A density on a square of the web's map projection.
//!
//! Convention: tile (z, x, y) of the usual pyramid, x to the east and y to the south, 2^z on a side,
//! on the square Mercator map that ends at 85.05° of latitude. Rows of pixels are latitudes and columns
//! longitudes, so that a function of degree L separates: Legendre functions once a row, then a
//! Fourier sum of 2·L terms a pixel instead of L².

use std::f64::consts::PI;

use locdiff_sphere::{Area, Basis, Coefficients, Density, LatLon, coefficient_count};

/// A tile of the map, with so many pixels on a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    /// Zoom level: 2^zoom tiles on a side.
    pub zoom: u32,
    /// From the antimeridian to the east.
    pub x: u32,
    /// From the north to the south.
    pub y: u32,
    /// Pixels on a side.
    pub size: u32,
}

impl Tile {
    /// Latitude of the middle of a row of pixels, in degrees.
    pub fn latitude(&self, row: u32) -> f64 {
        let down =
            (f64::from(self.y) + (f64::from(row) + 0.5) / f64::from(self.size)) / self.side();
        (PI * (1.0 - 2.0 * down)).sinh().atan().to_degrees()
    }

    /// Longitude of the middle of a column of pixels, in degrees.
    pub fn longitude(&self, column: u32) -> f64 {
        let along = f64::from(self.x) + (f64::from(column) + 0.5) / f64::from(self.size);
        360.0 * along / self.side() - 180.0
    }

    fn side(&self) -> f64 {
        f64::from(self.zoom).exp2()
    }

    fn pixels(&self) -> usize {
        self.size as usize * self.size as usize
    }

    /// Log-densities per steradian, row by row from the north; −∞ where there is none.
    pub(crate) fn log_densities(&self, density: &Density) -> Vec<f32> {
        let mut values = vec![f32::NEG_INFINITY; self.pixels()];
        let mut areas = Vec::new();
        let mut log_share = 0.0;
        let mut whole = density;
        while let Density::Restriction(part) = whole {
            areas.push(part.area());
            log_share += part.log_probability();
            whole = part.whole();
        }
        match whole {
            Density::Exponential(density) => {
                let constant = density.log_normaliser() + log_share;
                self.fill(density.coefficients(), |f| f - constant, &areas, &mut values);
            }
            Density::Linear(density) => {
                let constant = density.log_normaliser() + log_share;
                let log = |f: f64| f.max(0.0).ln() - constant;
                self.fill(density.coefficients(), log, &areas, &mut values);
            }
            // A lookup, and sharp at the borders of cells.
            Density::Cells(_) => self.ask(|place| density.log_density(place), &mut values),
            // As the program draws it: the cells' points were asked already, and lie closest together
            // where the probability is.
            _ => {
                let survey = density.survey();
                self.ask(|place| survey.interpolated_log_density(place), &mut values);
            }
        }
        values
    }

    fn ask(&self, log_density: impl Fn(LatLon) -> f64, values: &mut [f32]) {
        for (pixel, value) in values.iter_mut().enumerate() {
            if let Some(place) = self.place(pixel) {
                *value = log_density(place) as f32;
            }
        }
    }

    fn place(&self, pixel: usize) -> Option<LatLon> {
        let (row, column) = (pixel as u32 / self.size, pixel as u32 % self.size);
        LatLon::new(self.latitude(row), self.longitude(column)).ok()
    }

    /// Log-densities from the values of a function, inside of all areas.
    fn fill(
        &self,
        function: &Coefficients,
        log_density: impl Fn(f64) -> f64,
        areas: &[&Area],
        out: &mut [f32],
    ) {
        let (max_degree, coefficients) = (function.max_degree(), function.as_slice());
        let basis = Basis::new(max_degree);
        let (orders, size) = (max_degree + 1, self.size as usize);
        // [order, column], so that one order's wave is added to a whole row at a time.
        let longitudes = (0..self.size).map(|column| self.longitude(column).to_radians());
        let waves: Vec<(f64, f64)> = (0..orders)
            .flat_map(|order| longitudes.clone().map(move |phi| (order as f64 * phi).sin_cos()))
            .collect();
        let (sines, cosines): (Vec<f64>, Vec<f64>) = waves.into_iter().unzip();
        let mut harmonics = vec![0.0; coefficient_count(max_degree)];
        let mut row_values = vec![0.0; size];
        for (row, values) in out.chunks_exact_mut(size).enumerate() {
            let latitude = self.latitude(row as u32);
            let Ok(meridian) = LatLon::new(latitude, 0.0) else { continue };
            // On the meridian 0 every cosine is 1: what is left are the Legendre functions.
            basis.encode_into(&[meridian], &mut harmonics);
            row_values.fill(0.0);
            for order in 0..orders {
                let (mut with_cosine, mut with_sine) = (0.0, 0.0);
                for degree in order..orders {
                    let middle = degree * degree + degree;
                    let legendre = harmonics[middle + order];
                    with_cosine += coefficients[middle + order] * legendre;
                    with_sine += coefficients[middle - order] * legendre;
                }
                let cosines = &cosines[order * size..][..size];
                let sines = &sines[order * size..][..size];
                for ((value, cosine), sine) in row_values.iter_mut().zip(cosines).zip(sines) {
                    *value += with_cosine * cosine + with_sine * sine;
                }
            }
            for (column, value) in values.iter_mut().enumerate() {
                let place = || LatLon::new(latitude, self.longitude(column as u32));
                let inside = |place| areas.iter().all(|area| area.contains(place));
                if areas.is_empty() || place().is_ok_and(inside) {
                    *value = log_density(row_values[column]) as f32;
                }
            }
        }
    }
}
