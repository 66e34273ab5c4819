//! A density on a part of the Earth.

use std::sync::Arc;

use super::{Density, InvalidDensity, resolved};
use crate::area::{Area, Cover};
use crate::cells::{CellId, Tiling};
use crate::mesh::{Coverage, Mesh, Sheet, Sheets, Surface};
use crate::{EARTH_RADIUS_KM, LatLon};

/// An island of the area isn't worth fine cells if all around it there is less probability than this: there are
/// thousands of islands, and most densities are elsewhere.
const NEGLIGIBLE_MASS: f64 = 1e-7;

/// A density restricted to an area and renormalised there.
#[derive(Debug, Clone)]
pub struct Restriction {
    whole: Arc<Density>,
    area: Arc<Area>,
    pub(super) mesh: Arc<Mesh>,
}

impl Restriction {
    pub(super) fn new(whole: Density, area: Area) -> Result<Restriction, InvalidDensity> {
        let (whole, area) = (Arc::new(whole), Arc::new(area));
        let mesh = Mesh::build(&Restricted { whole: &whole, area: &area })
            .ok_or(InvalidDensity::Nowhere("all over the area"))?;
        resolved(&mesh)?;
        Ok(Restriction { whole, area, mesh: Arc::new(mesh) })
    }

    /// The density before it was restricted.
    pub fn whole(&self) -> &Density {
        &self.whole
    }

    /// Where it is restricted to.
    pub fn area(&self) -> &Area {
        &self.area
    }

    /// The logarithm of the probability that the whole density gives to the area: how much
    /// the constraint had to discard.
    pub fn log_probability(&self) -> f64 {
        self.mesh.log_integral
    }

    pub(super) fn normaliser_error(&self) -> f64 {
        self.mesh.error + self.whole.normaliser_error()
    }

    pub(super) fn allows(&self, place: LatLon) -> bool {
        self.area.contains(place) && self.whole.allows(place)
    }

    pub(super) fn log_density(&self, place: LatLon) -> f64 {
        if self.area.contains(place) {
            self.whole.log_density(place) - self.mesh.log_integral
        } else {
            f64::NEG_INFINITY
        }
    }

    pub(super) fn base(&self) -> u32 {
        self.whole.base()
    }

    pub(super) fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        restricted_sheets(&self.whole, &self.area, tiling)
    }
}

/// The restriction before it is normalised.
struct Restricted<'a> {
    whole: &'a Density,
    area: &'a Area,
}

impl Surface for Restricted<'_> {
    fn base(&self) -> u32 {
        self.whole.base()
    }

    fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        restricted_sheets(self.whole, self.area, tiling)
    }
}

fn restricted_sheets<'a>(
    whole: &'a Density,
    area: &'a Area,
    tiling: Tiling,
) -> Box<dyn Sheets + 'a> {
    Box::new(RestrictedSheets { whole: whole.sheets(tiling), area, tiling })
}

struct RestrictedSheets<'a> {
    whole: Box<dyn Sheets + 'a>,
    area: &'a Area,
    tiling: Tiling,
}

impl RestrictedSheets<'_> {
    /// What a cell holds of the whole density, if that were everywhere as high as at its highest.
    fn mass_at_most(&mut self, id: CellId) -> f64 {
        self.tiling.area(id) * self.whole.sheet(id).summit.exp()
    }
}

impl Sheets for RestrictedSheets<'_> {
    fn must_split(&mut self, id: CellId) -> Option<f64> {
        let rectangle = self.tiling.rectangle(id);
        match self.area.cover(&rectangle) {
            Cover::Outside => None,
            Cover::Inside => self.whole.must_split(id),
            Cover::Cut => {
                // Cells as wide as the area, or as an island of it, could miss it.
                let width_km = self.tiling.width(id.level) * EARTH_RADIUS_KM;
                let narrow = width_km > 0.5 * self.area.narrowest_km(&rectangle);
                let asked = self.whole.must_split(id);
                if !narrow {
                    return asked;
                }
                let at_stake = asked.unwrap_or(0.0) + self.mass_at_most(id);
                (at_stake > NEGLIGIBLE_MASS).then_some(at_stake.min(1.0))
            }
        }
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        match self.area.cover(&self.tiling.rectangle(id)) {
            Cover::Outside => Sheet::nothing(),
            Cover::Inside => self.whole.sheet(id),
            Cover::Cut => {
                let mut sheet = self.whole.sheet(id);
                let share =
                    |i: usize, j: usize| self.area.share(&self.tiling.rectangle_of_point(id, i, j));
                let shares = std::array::from_fn(|i| std::array::from_fn(|j| share(i, j)));
                sheet.coverage = sheet.coverage.and(&Coverage::Partial(Box::new(shares)));
                sheet
            }
        }
    }
}
