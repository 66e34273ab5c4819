//! Densities as bytes: a third of their JSON.
//!
//! Little-endian. A byte for the kind, then for each list its length as u32 and its items: coefficients and masses
//! f32, degrees i32 in units of 1e-7, cells as their face and quarters in 4-bit groups (u64). A mixture is a list
//! of a weight (f32) and a density each. Masses lose digits that no survey can tell: 6e-8 of their value.

use locdiff_sphere::{CubeCell, DensityRecord, MixturePart, ProductFactor};

const EXPONENTIAL: u8 = 1;
const LINEAR: u8 = 2;
const POINTS: u8 = 3;
const CELLS: u8 = 4;
const MIXTURE: u8 = 5;
const PRODUCT: u8 = 6;
/// For kinds that are younger than this form.
const JSON: u8 = 255;
/// Degrees are stored in steps of a centimeter.
const STEPS_PER_DEGREE: f64 = 1e7;
/// No density nests deeper.
const DEEPEST: usize = 16;

/// A record as bytes.
pub(super) fn pack(record: &DensityRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(record, &mut bytes);
    bytes
}

fn write(record: &DensityRecord, bytes: &mut Vec<u8>) {
    match record {
        DensityRecord::Exponential { coefficients, .. } => {
            bytes.push(EXPONENTIAL);
            floats(coefficients.iter().copied(), bytes);
        }
        DensityRecord::Linear { coefficients, .. } => {
            bytes.push(LINEAR);
            floats(coefficients.iter().copied(), bytes);
        }
        DensityRecord::Points { kernel_km, latitudes, longitudes, masses } => {
            bytes.push(POINTS);
            bytes.extend(kernel_km.to_le_bytes());
            for degrees in [latitudes, longitudes] {
                length(degrees.len(), bytes);
                for degree in degrees {
                    bytes.extend(((degree * STEPS_PER_DEGREE).round() as i32).to_le_bytes());
                }
            }
            floats(masses.iter().map(|mass| *mass as f32), bytes);
        }
        DensityRecord::Cells { cells, masses } => {
            bytes.push(CELLS);
            length(cells.len(), bytes);
            for cell in cells {
                let digits = cell.to_string();
                // A leading 1 keeps the zeros of the face and of the first quarters.
                let code =
                    digits.bytes().fold(1_u64, |code, digit| code << 4 | u64::from(digit & 15));
                bytes.extend(code.to_le_bytes());
            }
            floats(masses.iter().map(|mass| *mass as f32), bytes);
        }
        DensityRecord::Mixture { parts } => {
            bytes.push(MIXTURE);
            length(parts.len(), bytes);
            for MixturePart { weight, density } in parts {
                bytes.extend((*weight as f32).to_le_bytes());
                write(density, bytes);
            }
        }
        DensityRecord::Product { factors } => {
            bytes.push(PRODUCT);
            length(factors.len(), bytes);
            for ProductFactor { exponent, density } in factors {
                bytes.extend((*exponent as f32).to_le_bytes());
                write(density, bytes);
            }
        }
        other => {
            bytes.push(JSON);
            let json = serde_json::to_vec(other).unwrap_or_default();
            length(json.len(), bytes);
            bytes.extend(json);
        }
    }
}

fn length(count: usize, bytes: &mut Vec<u8>) {
    bytes.extend((count as u32).to_le_bytes());
}

fn floats(values: impl ExactSizeIterator<Item = f32>, bytes: &mut Vec<u8>) {
    length(values.len(), bytes);
    values.for_each(|value| bytes.extend(value.to_le_bytes()));
}

/// A record from bytes; none if they are damaged.
pub(super) fn unpack(bytes: &[u8]) -> Option<DensityRecord> {
    let mut reader = Reader(bytes);
    let record = reader.record(0)?;
    reader.0.is_empty().then_some(record)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*bytes)
    }

    /// A list's length, which its items must have room for.
    fn length(&mut self, item: usize) -> Option<usize> {
        let count = u32::from_le_bytes(self.take()?) as usize;
        (count.checked_mul(item)? <= self.0.len()).then_some(count)
    }

    fn floats(&mut self) -> Option<Vec<f32>> {
        let count = self.length(4)?;
        (0..count).map(|_| self.take().map(f32::from_le_bytes)).collect()
    }

    fn masses(&mut self) -> Option<Vec<f64>> {
        Some(self.floats()?.into_iter().map(f64::from).collect())
    }

    fn degrees(&mut self) -> Option<Vec<f64>> {
        let count = self.length(4)?;
        let degree = |bytes| f64::from(i32::from_le_bytes(bytes)) / STEPS_PER_DEGREE;
        (0..count).map(|_| self.take().map(degree)).collect()
    }

    fn function(&mut self) -> Option<(usize, Vec<f32>)> {
        let coefficients = self.floats()?;
        let degree = (coefficients.len() as f64).sqrt() as usize;
        (degree > 0).then(|| (degree - 1, coefficients))
    }

    fn cell(&mut self) -> Option<CubeCell> {
        let code = u64::from_le_bytes(self.take()?);
        let digits = format!("{code:x}");
        digits.strip_prefix('1')?.parse().ok()
    }

    fn record(&mut self, depth: usize) -> Option<DensityRecord> {
        if depth > DEEPEST {
            return None;
        }
        let [kind] = self.take()?;
        Some(match kind {
            EXPONENTIAL => {
                let (max_degree, coefficients) = self.function()?;
                DensityRecord::Exponential { max_degree, coefficients }
            }
            LINEAR => {
                let (max_degree, coefficients) = self.function()?;
                DensityRecord::Linear { max_degree, coefficients }
            }
            POINTS => DensityRecord::Points {
                kernel_km: f64::from_le_bytes(self.take()?),
                latitudes: self.degrees()?,
                longitudes: self.degrees()?,
                masses: self.masses()?,
            },
            CELLS => {
                let count = self.length(8)?;
                let cells = (0..count).map(|_| self.cell()).collect::<Option<_>>()?;
                DensityRecord::Cells { cells, masses: self.masses()? }
            }
            MIXTURE => {
                let count = self.length(5)?;
                let mut part = || {
                    let weight = f64::from(f32::from_le_bytes(self.take()?));
                    Some(MixturePart { weight, density: self.record(depth + 1)? })
                };
                DensityRecord::Mixture { parts: (0..count).map(|_| part()).collect::<Option<_>>()? }
            }
            PRODUCT => {
                let count = self.length(5)?;
                let mut factor = || {
                    let exponent = f64::from(f32::from_le_bytes(self.take()?));
                    Some(ProductFactor { exponent, density: self.record(depth + 1)? })
                };
                let factors = (0..count).map(|_| factor()).collect::<Option<_>>()?;
                DensityRecord::Product { factors }
            }
            JSON => {
                let count = self.length(1)?;
                let (json, rest) = self.0.split_at(count);
                self.0 = rest;
                serde_json::from_slice(json).ok()?
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locdiff_sphere::{Coefficients, Density, Kernel, LatLon, PointMasses};

    fn densities() -> Vec<Density> {
        let at = |latitude, longitude| LatLon::new(latitude, longitude).unwrap();
        let places: Vec<LatLon> = (0..50).map(|k| at(f64::from(k), 3.0 * f64::from(k))).collect();
        let weights: Vec<f64> = (1..=50).map(f64::from).collect();
        let points = PointMasses::new(places, &weights).unwrap().spread(Kernel::default());
        let function = Density::exponential(&Coefficients::of(at(-80.0, 179.0), 7));
        let cells: Vec<CubeCell> = ["00", "5123", "20000000000"].map(|c| c.parse().unwrap()).into();
        let cells = Density::cells(cells, &[0.2, 0.3, 0.5]).unwrap();
        let linear = Density::linear(&Coefficients::of(at(10.0, 10.0), 5));
        let mixture = Density::mixture(vec![(0.3, points.clone()), (0.7, cells.clone())]).unwrap();
        let product =
            Density::product(vec![(0.5, points.clone()), (0.5, function.clone())]).unwrap();
        vec![points, function, cells, linear, mixture, product]
    }

    #[test]
    fn densities_survive_packing() {
        for density in densities() {
            let record = DensityRecord::of(&density);
            let bytes = pack(&record);
            assert!(bytes.len() < serde_json::to_vec(&record).unwrap().len(), "{density}");
            let again = unpack(&bytes).unwrap().density().unwrap();
            for k in 0..40 {
                let place = LatLon::new(f64::from(2 * k) - 40.0, 9.0 * f64::from(k)).unwrap();
                let (before, after) = (density.log_density(place), again.log_density(place));
                assert!(
                    before == after || (before - after).abs() < 1e-3,
                    "{density}: {before} {after}"
                );
            }
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        for density in densities() {
            let bytes = pack(&DensityRecord::of(&density));
            for cut in 0..bytes.len().min(200) {
                assert_eq!(unpack(&bytes[..cut]), None);
            }
            assert_eq!(unpack(&[bytes.as_slice(), &[0]].concat()), None);
        }
        // Lengths beyond any memory, and endless nesting.
        assert_eq!(unpack(&[POINTS, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]), None);
        let nested: Vec<u8> =
            (0..10_000).flat_map(|_| [MIXTURE, 1, 0, 0, 0, 0, 0, 128, 63]).collect();
        assert_eq!(unpack(&nested), None);
    }
}
