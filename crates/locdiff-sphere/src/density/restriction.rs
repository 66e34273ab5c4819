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
/// An area with less probability than this is looked at more closely.
const LITTLE_MASS: f64 = 0.05;
/// No density that we restrict is thinner than this part of the uniform one, but where it is zero.
const LEAST_DENSITY: f64 = 1e-6;

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
        let build = |whole: &Density, negligible_mass| {
            Mesh::build(&Restricted { whole, area: &area, negligible_mass })
        };
        let mut mesh = build(&whole, NEGLIGIBLE_MASS);
        let mass = mesh.as_ref().map_or(0.0, |mesh| mesh.log_integral.exp());
        // What is negligible on the whole may be all that there is in the area. Also if the mass is not a
        // number.
        if mass.is_nan() || mass <= LITTLE_MASS {
            let least = LEAST_DENSITY * area.area_km2() / Area::WHOLE_KM2;
            let focused = whole.focused_on(&area);
            let whole = focused.as_ref().unwrap_or(&whole);
            mesh = build(whole, 1e-3 * if mass > least { mass } else { least });
        }
        let mesh = mesh.ok_or(InvalidDensity::Nowhere("all over the area"))?;
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
        let sheets = self.whole.sheets(tiling);
        let negligible_mass = NEGLIGIBLE_MASS * self.mesh.log_integral.exp().min(1.0);
        Box::new(RestrictedSheets { whole: sheets, area: &self.area, tiling, negligible_mass })
    }
}

/// The restriction before it is normalised.
struct Restricted<'a> {
    whole: &'a Density,
    area: &'a Area,
    negligible_mass: f64,
}

impl Surface for Restricted<'_> {
    fn base(&self) -> u32 {
        self.whole.base()
    }

    fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        let &Restricted { whole, area, negligible_mass } = self;
        Box::new(RestrictedSheets { whole: whole.sheets(tiling), area, tiling, negligible_mass })
    }
}

struct RestrictedSheets<'a> {
    whole: Box<dyn Sheets + 'a>,
    area: &'a Area,
    tiling: Tiling,
    negligible_mass: f64,
}

impl RestrictedSheets<'_> {
    /// What a cell holds of the whole density, if that were everywhere as high as at its highest.
    fn mass_at_most(&mut self, id: CellId) -> f64 {
        let sheet = self.whole.sheet(id);
        let highest = sheet.values.iter().flatten().copied().fold(sheet.summit, f64::max);
        self.tiling.area(id) * highest.exp()
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
                let width_km = self.tiling.size(id) * EARTH_RADIUS_KM;
                let narrow = width_km > 0.5 * self.area.narrowest_km(&rectangle);
                let asked = self.whole.must_split(id);
                if !narrow {
                    return asked;
                }
                let at_stake = asked.unwrap_or(0.0) + self.mass_at_most(id);
                (at_stake > self.negligible_mass).then_some(at_stake.min(1.0))
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
