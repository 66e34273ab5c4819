//! Densities under numbers, and what can be asked of them.

use std::collections::BTreeMap;

use locdiff_sphere::{
    Budget, Cost, Density, DensityRecord, InvalidArea, InvalidDensity, InvalidPlace, InvalidRecord,
    LatLon, MultiPolygon, Survey,
};
use serde_json::{Value, json};

use crate::Tile;
use crate::records::{AreaRecord, CandidateRecord, CornerRecord, ScaleRecord, SummaryRecord};

/// Densities that the page has opened.
#[derive(Debug, Default)]
pub struct Maps {
    densities: BTreeMap<u32, Density>,
    last: u32,
}

/// A restricted density that may be coarse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstLook {
    /// Number of the density.
    pub number: u32,
    /// Whether nothing was left out: [`Maps::restrict`] would give the same.
    pub is_final: bool,
}

/// How many cells a first look may take.
const FIRST_LOOK_CELLS: f64 = 1000.0;
/// A first look with a larger error may show other places than the final one.
const USABLE_ERROR: f64 = 0.2;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A text that isn't JSON, or not what was asked for.
    #[error("the record is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// No density has that number.
    #[error("there is no density number {0}: it was released, or never opened")]
    Unknown(u32),
    /// A level that isn't between 0 and 1.
    #[error("a region of probability {0}: it must be between 0 and 1")]
    Level(f64),
    /// Not a record of a density.
    #[error(transparent)]
    Record(#[from] InvalidRecord),
    /// The record is not a valid density.
    #[error(transparent)]
    Density(#[from] InvalidDensity),
    /// A place is not valid.
    #[error(transparent)]
    Place(#[from] InvalidPlace),
    /// Corners that are all in one place or on one line.
    #[error("there is no area between these corners")]
    NoArea,
    /// An area is not valid.
    #[error(transparent)]
    Area(#[from] InvalidArea),
}

impl Maps {
    /// Takes a density as the server writes it (`docs/density-record.md`); its number.
    pub fn open(&mut self, json: &str) -> Result<u32, Problem> {
        let record: DensityRecord = serde_json::from_str(json)?;
        Ok(self.hold(record.density()?))
    }

    /// The density on a part of the Earth only
    /// (`{"kind":"circle"|"box"|"polygons",…}`), as another density; its number. Restrict that one
    /// again for an intersection.
    pub fn restrict(&mut self, number: u32, json: &str) -> Result<u32, Problem> {
        let record: AreaRecord = serde_json::from_str(json)?;
        let restricted = self.density(number)?.restricted_to(record.area()?)?;
        Ok(self.hold(restricted))
    }

    /// As [`Maps::restrict`], but within a small budget: a first look, with a larger `normaliser_error` if that wasn't enough. Where so
    /// few cells find nothing that is worth drawing, it is [`Maps::restrict`].
    pub fn restrict_coarsely(&mut self, number: u32, json: &str) -> Result<FirstLook, Problem> {
        let record: AreaRecord = serde_json::from_str(json)?;
        let (density, area) = (self.density(number)?, record.area()?);
        let budget = Budget::of(Cost::of_cells(FIRST_LOOK_CELLS));
        let mut restricted = None;
        let within = budget.run(|| restricted = density.restricted_to(area).ok());
        let is_final = within.is_ok();
        let usable = |density: &Density| is_final || density.normaliser_error() < USABLE_ERROR;
        match restricted.filter(usable) {
            Some(restricted) => Ok(FirstLook { number: self.hold(restricted), is_final }),
            None => Ok(FirstLook { number: self.restrict(number, json)?, is_final: true }),
        }
    }

    /// Removes a density; unknown numbers are ignored.
    pub fn release(&mut self, number: u32) {
        self.densities.remove(&number);
    }

    /// The density under a number that [`Maps::open`] or [`Maps::restrict`] returned.
    pub fn density(&self, number: u32) -> Result<&Density, Problem> {
        self.densities.get(&number).ok_or(Problem::Unknown(number))
    }

    /// How much of the whole density lies in the areas that it was restricted to; 1 without any.
    pub fn share(&self, number: u32) -> Result<f64, Problem> {
        Ok(log_share(self.density(number)?).exp())
    }

    /// Up to so many candidates, radii and areas, as JSON: what `locdiff predict` prints.
    pub fn summary(&self, number: u32, candidates: usize) -> Result<String, Problem> {
        let density = self.density(number)?;
        let survey = density.survey();
        let modes = survey.modes();
        let shown = modes.modes.iter().take(candidates.max(1));
        let candidates: Vec<CandidateRecord> = shown
            .map(|mode| CandidateRecord {
                latitude: mode.place.latitude(),
                longitude: mode.place.longitude(),
                mass: mode.mass,
                radius_km: survey.radius_km(mode.place, 0.5 * mode.mass),
            })
            .collect();
        let best = modes.modes.first().ok_or(InvalidDensity::Nowhere("everywhere"))?.place;
        Ok(serde_json::to_string(&SummaryRecord {
            candidates,
            radius_50_km: survey.radius_km(best, 0.5),
            radius_90_km: survey.radius_km(best, 0.9),
            area_50_km2: survey.region(0.5).area_km2(),
            area_90_km2: survey.region(0.9).area_km2(),
            kernel_km: modes.kernel_km,
            scale: scale_of(&survey),
        })?)
    }

    /// The largest log-density, the share of the whole and the error of the normaliser, as JSON: what it takes
    /// to draw a density whose candidates are known already. [`Maps::summary`] has them too, but later: it
    /// measures circles.
    pub fn scale(&self, number: u32) -> Result<String, Problem> {
        Ok(serde_json::to_string(&scale_of(&self.density(number)?.survey()))?)
    }

    /// The smallest regions that hold these probabilities, as a GeoJSON `FeatureCollection` with
    /// `kind`, `level` and `area_km2`. Left out are regions that are too small for polygons, and those of
    /// which only convention says where they end.
    pub fn regions(&self, number: u32, levels: &[f64]) -> Result<String, Problem> {
        let survey = self.density(number)?.survey();
        let mut features = Vec::new();
        for &level in levels {
            if !(0.0..=1.0).contains(&level) {
                return Err(Problem::Level(level));
            }
            let region = survey.region(level);
            if !region.has_arbitrary_rim()
                && let Some(outline) = region.outline()
            {
                let geometry: Value = serde_json::from_str(&outline.to_geojson())?;
                let area_km2 = region.area_km2().round();
                let properties = json!({ "kind": "region", "level": level, "area_km2": area_km2 });
                features.push(
                    json!({ "type": "Feature", "geometry": geometry, "properties": properties }),
                );
            }
        }
        Ok(json!({ "type": "FeatureCollection", "features": features }).to_string())
    }

    /// The polygon between corners `[{"latitude":…,"longitude":…},…]` with great circles as edges, as a GeoJSON geometry: what a
    /// picture's footprint looks like on a map.
    pub fn outline(&self, json: &str) -> Result<String, Problem> {
        let corners: Vec<CornerRecord> = serde_json::from_str(json)?;
        let corners: Result<Vec<LatLon>, _> = corners.iter().map(CornerRecord::place).collect();
        let outline = MultiPolygon::with_great_circles(&corners?).ok_or(Problem::NoArea)?;
        Ok(outline.to_geojson())
    }

    /// Whether a place lies in all areas that the density was restricted to; every place does if there are none.
    pub fn allows(&self, number: u32, latitude: f64, longitude: f64) -> Result<bool, Problem> {
        let place = LatLon::new(latitude, longitude)?;
        let mut density = self.density(number)?;
        while let Density::Restriction(part) = density {
            if !part.area().contains(place) {
                return Ok(false);
            }
            density = part.whole();
        }
        Ok(true)
    }

    /// Log-densities at the middles of a tile's pixels, row by row from the north.
    pub fn tile(&self, number: u32, tile: Tile) -> Result<Vec<f32>, Problem> {
        Ok(tile.log_densities(self.density(number)?))
    }

    fn hold(&mut self, density: Density) -> u32 {
        self.last += 1;
        self.densities.insert(self.last, density);
        self.last
    }
}

fn scale_of(survey: &Survey<'_>) -> ScaleRecord {
    let heights = survey.modes().modes.into_iter().map(|mode| mode.log_density);
    ScaleRecord {
        top_log_density: heights.fold(f64::MIN, f64::max),
        share: log_share(survey.density()).exp(),
        normaliser_error: survey.density().normaliser_error(),
    }
}

fn log_share(density: &Density) -> f64 {
    match density {
        Density::Restriction(part) => part.log_probability() + log_share(part.whole()),
        _ => 0.0,
    }
}
