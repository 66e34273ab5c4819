//! A density on a part of the Earth.

use std::sync::Arc;

use super::{Density, InvalidDensity, resolved};
use crate::area::{Area, Cover};
use crate::budget::Meter;
use crate::cells::{CellId, Tiling};
use crate::mesh::{Coverage, Mesh, Sheet, Sheets, Surface};
use crate::{EARTH_RADIUS_KM, LatLon};

/// An island of the area isn't worth fine cells if all around it there is less probability than this: there are
/// thousands of islands, and most densities are elsewhere.
const NEGLIGIBLE_MASS: f64 = 1e-7;
/// As [`NEGLIGIBLE_MASS`], as a part of what the area holds, if that is little.
const NEGLIGIBLE_PART: f64 = 1e-3;
/// An area with less probability than this is looked at more closely.
const LITTLE_MASS: f64 = 0.05;
/// No density that we restrict is thinner than this part of the uniform one, but where it is zero.
const LEAST_DENSITY: f64 = 1e-6;

/// Of a cell that a border cuts, 40 x 40 places tell how much counts: an island of this part of its width isn't missed.
const NARROW: f64 = 6.0;

/// The part of a budget that may be spent on what an area holds.
const FIRST_PART: f64 = 0.25;

/// What a cell costs that the border of the area cuts, beyond what every cell does.
pub(crate) const CUT_CELL: f64 = 0.6;

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
        let build = |whole: &Density, mass, negligible| {
            Mesh::build(&Restricted { whole, area: &area, mass, negligible })
        };
        // If the area holds little, this is only how much, and cells are better spent after it.
        let mut mesh = Meter::with_part(FIRST_PART, || build(&whole, 1.0, NEGLIGIBLE_MASS));
        let mass = mesh.as_ref().map_or(0.0, |mesh| mesh.log_integral.exp());
        // What is negligible on the whole may be all that there is in the area. Also if the mass is not a
        // number.
        if mass.is_nan() || mass <= LITTLE_MASS {
            let least = LEAST_DENSITY * area.area_km2() / Area::WHOLE_KM2;
            let focused = whole.focused_on(&area);
            let whole = focused.as_ref().unwrap_or(&whole);
            mesh = build(whole, if mass > least { mass } else { least }, NEGLIGIBLE_PART);
        } else if mesh.as_ref().is_some_and(|mesh| mesh.cut_short) {
            mesh = build(&whole, 1.0, NEGLIGIBLE_MASS);
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
        let mass = self.mesh.log_integral.exp().min(1.0);
        let restricted =
            Restricted { whole: &self.whole, area: &self.area, mass, negligible: NEGLIGIBLE_MASS };
        restricted.sheets_on(tiling)
    }
}

/// The restriction before it is normalised.
struct Restricted<'a> {
    whole: &'a Density,
    area: &'a Area,
    /// What the area is thought to hold.
    mass: f64,
    /// The part of it that isn't worth fine cells.
    negligible: f64,
}

impl<'a> Restricted<'a> {
    fn sheets_on(&self, tiling: Tiling) -> Box<dyn Sheets + 'a> {
        let &Restricted { whole, area, mass, negligible } = self;
        Box::new(RestrictedSheets {
            whole: whole.sheets(tiling),
            area,
            tiling,
            mass,
            negligible,
            cut: 0,
        })
    }
}

impl Surface for Restricted<'_> {
    fn base(&self) -> u32 {
        self.whole.base()
    }

    fn sheets(&self, tiling: Tiling) -> Box<dyn Sheets + '_> {
        self.sheets_on(tiling)
    }
}

struct RestrictedSheets<'a> {
    whole: Box<dyn Sheets + 'a>,
    area: &'a Area,
    tiling: Tiling,
    mass: f64,
    negligible: f64,
    /// Cells that the border cuts.
    cut: usize,
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
        // As a part of what the area holds.
        let mass = self.mass;
        let part = |at_stake: f64| (at_stake / mass).min(1.0);
        match self.area.cover(&rectangle) {
            Cover::Outside => None,
            Cover::Inside => self.whole.must_split(id).map(part),
            Cover::Cut => {
                // Cells as wide as the area, or as an island of it, could miss it.
                let width_km = self.tiling.size(id) * EARTH_RADIUS_KM;
                let narrow = width_km > NARROW * self.area.narrowest_km(&rectangle);
                let asked = self.whole.must_split(id).map(part);
                if !narrow {
                    return asked;
                }
                let at_stake = asked.unwrap_or(0.0) + part(self.mass_at_most(id));
                (at_stake > self.negligible).then_some(at_stake.min(1.0))
            }
        }
    }

    fn take_cost(&mut self) -> f64 {
        CUT_CELL * std::mem::take(&mut self.cut) as f64 + self.whole.take_cost()
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        match self.area.cover(&self.tiling.rectangle(id)) {
            Cover::Outside => Sheet::nothing(),
            Cover::Inside => self.whole.sheet(id),
            Cover::Cut => {
                self.cut += 1;
                let mut sheet = self.whole.sheet(id);
                let shares = self.area.shares(|i, j| self.tiling.rectangle_of_point(id, i, j));
                sheet.coverage = sheet.coverage.and(&Coverage::Partial(Box::new(shares)));
                sheet
            }
        }
    }
}
