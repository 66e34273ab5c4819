//! A picture of the whole Earth, opened from files and kept in a cache of raw texels.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use image::RgbImage;

use crate::EARTH_RADIUS_KM;
use crate::equirectangular;
use crate::error::Error;
use crate::land_mask::LandMask;
#[cfg(feature = "tiles")]
use crate::mercator;
use crate::pyramid::{LANES, Level, Pyramid, Rows};
use crate::reduction::without_sea;
use crate::texels::Texels;

/// Changes whenever texels would come out otherwise, so that old caches are made anew.
const CACHE_MAGIC: &[u8; 8] = b"EARTHPY2";

/// Where a picture of the Earth comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source {
    /// Web Mercator tiles of 256 pixels, all of one zoom, in an MBTiles file.
    #[cfg(feature = "tiles")]
    Mbtiles(PathBuf),
    /// One JPEG or PNG with equal steps of latitude and longitude, 180° W at its left edge.
    Equirectangular(PathBuf),
    /// A folder with Flightgear's `world_N1.png` to `world_S4.png`.
    EightTiles(PathBuf),
}

#[cfg(feature = "tiles")]
impl Source {
    /// Rows between the poles of the tiles in an MBTiles file, at their full resolution.
    pub fn rows_of_tiles(path: &Path) -> Result<usize, Error> {
        mercator::row_count(path)
    }
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Light {
    /// Land by day; its sea is thrown away.
    Day,
    /// Lights by night, kept as they are.
    Night,
}

/// A picture of the whole Earth that can be sampled at any footprint.
#[derive(Debug)]
pub struct Imagery {
    pub(crate) pyramid: Pyramid,
    pub(crate) light: Light,
}

impl Imagery {
    /// Opens a source, from `cache_folder` if it was opened before.
    ///
    /// Zoom 7 needs 1.8 GB, in memory and in the cache; opening it the first time, twice that.
    /// `most_rows` leaves out levels finer than that many rows between the poles (a quarter of the
    /// memory for each halving).
    pub fn open(
        source: &Source,
        light: Light,
        mask: &LandMask,
        cache_folder: &Path,
        most_rows: Option<usize>,
    ) -> Result<Self, Error> {
        let cache = cache_folder.join(cache_name(source, light)?);
        if let Ok(file) = File::open(&cache)
            && let Some(pyramid) = cached(file, most_rows)
        {
            return Ok(Self { pyramid, light });
        }
        let mut made = Self::read(source, light, mask)?;
        std::fs::create_dir_all(cache_folder).map_err(Error::file(cache_folder))?;
        write_cache(&cache, &made.pyramid).map_err(Error::file(&cache))?;
        if let Some(most) = most_rows {
            made.pyramid.levels.retain(|level| level.rows.count() <= most);
        }
        Ok(made)
    }

    /// Reads a source, without a cache.
    pub fn read(source: &Source, light: Light, mask: &LandMask) -> Result<Self, Error> {
        let painted = |rows: usize, texels: &dyn Fn(&Rows) -> Result<Texels, Error>| {
            let rows = Rows::new(rows);
            let texels = texels(&rows)?;
            Ok::<Level, Error>(Level { rows, texels })
        };
        let from_picture = |picture: RgbImage| {
            painted(picture.height() as usize, &|rows| {
                Ok(equirectangular::texels(&picture, rows, mask))
            })
        };
        let finest = match source {
            #[cfg(feature = "tiles")]
            Source::Mbtiles(path) => {
                painted(mercator::row_count(path)?, &|rows| mercator::texels(path, rows, mask))
            }
            Source::Equirectangular(path) => from_picture(equirectangular::whole(path)?),
            Source::EightTiles(folder) => from_picture(equirectangular::eight_tiles(folder)?),
        }?;
        Ok(Self::over(finest, light))
    }

    /// Imagery from a picture in memory, with equal steps of latitude and longitude.
    ///
    /// # Panics
    /// If the picture is not twice as wide as high.
    pub fn from_picture(picture: &RgbImage, light: Light, mask: &LandMask) -> Self {
        assert_eq!(
            picture.width(),
            2 * picture.height(),
            "the picture must be twice as wide as high"
        );
        let rows = Rows::new(picture.height() as usize);
        let texels = equirectangular::texels(picture, &rows, mask);
        Self::over(Level { rows, texels }, light)
    }

    fn over(finest: Level, light: Light) -> Self {
        let finest = match light {
            Light::Day => without_sea(finest),
            Light::Night => finest,
        };
        Self { pyramid: Pyramid::over(finest), light }
    }

    /// Where there is land, in so many rows and twice as many columns.
    ///
    /// # Panics
    /// With more than 32,767 rows.
    pub fn land_mask(&self, rows: u32) -> LandMask {
        let cell_km = std::f64::consts::PI * EARTH_RADIUS_KM / f64::from(rows);
        LandMask::from_fn(rows, 2 * rows, |latitude, longitude| {
            self.colour(latitude, longitude, cell_km).1 > 0.5
        })
    }

    /// Day or night.
    pub fn light(&self) -> Light {
        self.light
    }

    /// Size of a texel of the finest level.
    pub fn texel_km(&self) -> f64 {
        std::f64::consts::PI * EARTH_RADIUS_KM / self.pyramid.levels[0].rows.count() as f64
    }

    /// Memory of the texels.
    pub fn bytes(&self) -> usize {
        self.pyramid.levels.iter().map(|level| level.texels.len() * 4).sum()
    }

    /// Colour and share of land (0–1) at a place (degrees), averaged over about `footprint_km`.
    /// By day it is the colour of the land alone, black where there is none.
    pub fn colour(&self, latitude: f64, longitude: f64, footprint_km: f64) -> ([f32; 3], f32) {
        let down = ((90.0 - latitude) / 180.0) as f32;
        let round = ((longitude + 180.0) / 360.0).rem_euclid(1.0) as f32;
        let level = (footprint_km / self.texel_km()).log2() as f32;
        let sampler = self.pyramid.sampler();
        let [r, g, b, land] =
            sampler.at(&[down; LANES], &[round; LANES], level).map(|values| values[0] / 255.0);
        let scale = if self.light == Light::Day && land > 0.0 { 1.0 / land } else { 1.0 };
        ([r, g, b].map(|value| (value * scale).min(1.0)), land)
    }
}

/// Names the source by its path and size, so that another file of the same name is not mistaken.
fn cache_name(source: &Source, light: Light) -> Result<String, Error> {
    let (path, probe) = match source {
        #[cfg(feature = "tiles")]
        Source::Mbtiles(path) => (path, path.clone()),
        Source::Equirectangular(path) => (path, path.clone()),
        Source::EightTiles(folder) => (folder, equirectangular::eight_tile_path(folder, "N", 1)),
    };
    let size = std::fs::metadata(&probe).map_err(Error::file(&probe))?.len();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let light = if light == Light::Day { "day" } else { "night" };
    Ok(format!("{stem}-{size}-{light}.earth"))
}

/// The finest level's rows, then the levels' texels, coarse before fine.
fn write_cache(path: &Path, pyramid: &Pyramid) -> std::io::Result<()> {
    // Renamed when whole: a run that is stopped leaves no half cache.
    let unfinished = path.with_extension("unfinished");
    let mut file = BufWriter::new(File::create(&unfinished)?);
    file.write_all(CACHE_MAGIC)?;
    file.write_all(&(pyramid.levels[0].rows.count() as u64).to_le_bytes())?;
    for level in pyramid.levels.iter().rev() {
        file.write_all(bytemuck::cast_slice(&level.texels[..]))?;
    }
    file.into_inner()?.sync_all()?;
    std::fs::rename(unfinished, path)
}

fn cached(file: File, most_rows: Option<usize>) -> Option<Pyramid> {
    let mut file = BufReader::with_capacity(1 << 20, file);
    let (mut magic, mut rows) = ([0; 8], [0; 8]);
    file.read_exact(&mut magic).ok()?;
    file.read_exact(&mut rows).ok()?;
    if &magic != CACHE_MAGIC {
        return None;
    }
    let mut levels = Vec::new();
    for &count in Pyramid::row_counts(u64::from_le_bytes(rows) as usize).iter().rev() {
        if most_rows.is_some_and(|most| count > most) {
            break;
        }
        let rows = Rows::new(count);
        let mut texels = Texels::zero(rows.texel_count());
        file.read_exact(bytemuck::cast_slice_mut(&mut texels[..])).ok()?;
        levels.insert(0, Level { rows, texels });
    }
    (!levels.is_empty()).then_some(Pyramid { levels })
}
