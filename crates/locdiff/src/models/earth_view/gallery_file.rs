//! A gallery as a file: a header in JSON, facts of the maps, which places show land, and the descriptors of the parts that
//! those places need. The rest of a map is sea, and every sea is described alike.

use locdiff_sphere::LatLon;
use serde::{Deserialize, Serialize};

use super::aligned_encoder::NUMBERS;
use super::gallery::{Gallery, GalleryMap, MAP_PARTS, Precision, VIEW_PARTS, WINDOWS};
use crate::tensors::InvalidWeights;

const MAGIC: &[u8; 8] = b"EARTHGA1";
const PARTS: usize = MAP_PARTS * MAP_PARTS;
const PLACES: usize = WINDOWS * WINDOWS;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    maps: usize,
    map_parts: usize,
    view_parts: usize,
    numbers: usize,
    levels: i8,
    steps: Vec<f32>,
}

impl Gallery {
    /// The file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            maps: self.maps.len(),
            map_parts: MAP_PARTS,
            view_parts: VIEW_PARTS,
            numbers: self.precision.numbers,
            levels: self.precision.levels,
            steps: self.steps.clone(),
        };
        let header = serde_json::to_vec(&header).expect("plain numbers");
        let mut bytes = MAGIC.to_vec();
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        for map in &self.maps {
            let facts = [map.middle.latitude(), map.middle.longitude(), map.width_km];
            bytes.extend(facts.iter().flat_map(|number| (*number as f32).to_le_bytes()));
        }
        for places in self.places.chunks_exact(PLACES) {
            bytes.extend(in_bits(places));
        }
        let mut numbers = Vec::new();
        for map in 0..self.maps.len() {
            let parts = self.parts(map);
            let needed = needed(parts.has_land);
            let parts = parts.descriptors.chunks_exact(self.precision.numbers);
            numbers.extend(
                parts.zip(&needed).filter(|(_, needed)| **needed).flat_map(|(part, _)| part),
            );
        }
        if self.precision.levels < 8 {
            let nibble = |number: i8| (number + 8) as u8;
            let pair =
                |pair: &[i8]| nibble(pair[0]) | nibble(pair.get(1).copied().unwrap_or(0)) << 4;
            bytes.extend(numbers.chunks(2).map(pair));
        } else {
            bytes.extend(numbers.iter().map(|number| *number as u8));
        }
        bytes
    }

    /// A gallery from a file's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Gallery, InvalidWeights> {
        let wrong = |reason: String| InvalidWeights::Format { path: "gallery".into(), reason };
        let mut rest = bytes;
        let mut take = |count: usize| {
            let (taken, after) = rest
                .split_at_checked(count)
                .ok_or_else(|| wrong(format!("it ends {} bytes early", count - rest.len())))?;
            rest = after;
            Ok::<&[u8], InvalidWeights>(taken)
        };
        if take(MAGIC.len())? != MAGIC {
            return Err(wrong("it is not a gallery of this version".to_owned()));
        }
        let length = u32::from_le_bytes(take(4)?.try_into().expect("four bytes"));
        let header: Header = serde_json::from_slice(take(length as usize)?)
            .map_err(|error| wrong(format!("its header: {error}")))?;
        let Header { maps: count, numbers, levels, steps, .. } = header;
        let sound = header.map_parts == MAP_PARTS
            && header.view_parts == VIEW_PARTS
            // Parts without land take memory, and no bytes of the file.
            && (super::gallery::LEADING..=NUMBERS).contains(&numbers)
            && steps.len() == numbers
            && levels > 0
            && steps.iter().all(|step| step.is_finite() && *step > 0.0);
        if !sound {
            return Err(wrong("its header is not that of a gallery for this program".to_owned()));
        }
        let facts = take(count.checked_mul(12).ok_or_else(|| wrong("too many maps".to_owned()))?)?;
        let facts: Vec<f32> =
            facts.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
        let map = |facts: &[f32]| {
            let [latitude, longitude, width_km] = [facts[0], facts[1], facts[2]].map(f64::from);
            let middle =
                LatLon::new(latitude, longitude).map_err(|error| wrong(error.to_string()))?;
            let is_wide = width_km > 0.0 && width_km < 20_000.0;
            is_wide
                .then_some(GalleryMap { middle, width_km })
                .ok_or_else(|| wrong(format!("a width of {width_km} km")))
        };
        let maps = facts.chunks_exact(3).map(map).collect::<Result<Vec<_>, _>>()?;
        let places: Vec<u8> = take(count * PLACES.div_ceil(8))?
            .chunks_exact(PLACES.div_ceil(8))
            .flat_map(|bits| (0..PLACES).map(|k| bits[k / 8] >> (k % 8) & 1))
            .collect();
        let needed: Vec<bool> = places.chunks_exact(PLACES).flat_map(needed).collect();
        let stored = needed.iter().filter(|needed| **needed).count() * numbers;
        let packed = levels < 8;
        let stored = take(if packed { stored.div_ceil(2) } else { stored })?;
        let number = |k: usize| match packed {
            true => (stored[k / 2] >> (4 * (k % 2)) & 15) as i8 - 8,
            false => stored[k] as i8,
        };
        let mut descriptors = vec![0; count * PARTS * numbers];
        let mut next = 0;
        for (part, needed) in descriptors.chunks_exact_mut(numbers).zip(&needed) {
            if *needed {
                for (k, value) in part.iter_mut().enumerate() {
                    *value = number(next + k);
                }
                next += numbers;
            }
        }
        Ok(Gallery { maps, precision: Precision { numbers, levels }, steps, descriptors, places })
    }
}

fn in_bits(flags: &[u8]) -> impl Iterator<Item = u8> {
    flags
        .chunks(8)
        .map(|chunk| chunk.iter().enumerate().fold(0, |byte, (k, flag)| byte | flag << k))
}

/// The parts of a map that lie in a place with land.
fn needed(has_land: &[u8]) -> Vec<bool> {
    let mut needed = vec![false; PARTS];
    for (at, _) in has_land.iter().enumerate().filter(|(_, land)| **land == 1) {
        let (row, column) = (at / WINDOWS, at % WINDOWS);
        for row in row..row + VIEW_PARTS {
            needed[row * MAP_PARTS + column..][..VIEW_PARTS].fill(true);
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two maps, one with land at a single place; parts that no place needs are zero, as after reading.
    fn gallery(precision: Precision) -> Gallery {
        let map = |latitude: f64| GalleryMap {
            middle: LatLon::new(latitude, -120.5).unwrap(),
            width_km: 260.0,
        };
        let mut places = vec![0; 2 * PLACES];
        places[40] = 1;
        places[PLACES..].fill(1);
        let needed = places.chunks_exact(PLACES).flat_map(needed);
        let levels = i32::from(precision.levels);
        let descriptors = needed
            .enumerate()
            .flat_map(|(part, needed)| {
                let number =
                    move |k: usize| ((part * 31 + k * 17) as i32 % (2 * levels + 1) - levels) as i8;
                (0..precision.numbers).map(move |k| if needed { number(k) } else { 0 })
            })
            .collect();
        let steps = (0..precision.numbers).map(|k| 0.25 + k as f32).collect();
        Gallery { maps: vec![map(-33.0), map(71.25)], precision, steps, descriptors, places }
    }

    #[test]
    fn a_gallery_comes_back_as_it_was() {
        for precision in [Precision::SMALL, Precision::FULL] {
            let gallery = gallery(precision);
            assert_eq!(Gallery::from_bytes(&gallery.to_bytes()).unwrap(), gallery);
        }
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let bytes = gallery(Precision::SMALL).to_bytes();
        for length in [0, 7, 11, 40, 200, 300, bytes.len() - 1] {
            let error = Gallery::from_bytes(&bytes[..length]).unwrap_err().to_string();
            assert!(error.contains("gallery"), "{error}");
        }
        let mut other = bytes.clone();
        other[7] = b'2';
        assert!(Gallery::from_bytes(&other).unwrap_err().to_string().contains("version"));
    }

    /// Without this limit a file of 64 kB could ask for a gigabyte: parts without land are not stored.
    #[test]
    fn descriptors_of_too_many_numbers_are_an_error() {
        let bytes = gallery(Precision::SMALL).to_bytes();
        let start = MAGIC.len() + 4;
        let length = u32::from_le_bytes(bytes[start - 4..start].try_into().unwrap()) as usize;
        let mut header: serde_json::Value =
            serde_json::from_slice(&bytes[start..start + length]).unwrap();
        header["numbers"] = 4096.into();
        header["steps"] = vec![1.0; 4096].into();
        let header = header.to_string();
        let length = (header.len() as u32).to_le_bytes();
        let lie = [MAGIC.as_slice(), &length, header.as_bytes(), &bytes[start..]].concat();
        assert!(Gallery::from_bytes(&lie).unwrap_err().to_string().contains("header"));
    }
}
