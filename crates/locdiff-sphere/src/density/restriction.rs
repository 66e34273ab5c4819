//! A density on a part of the Earth.

use std::sync::Arc;

use super::{Density, InvalidDensity};
use crate::area::{Area, Cover};
use crate::cells::{CellId, POINTS, Rule, Tiling, place_at};
use crate::mesh::{Mesh, Sheet, Sheets, Surface};
use crate::{EARTH_RADIUS_KM, LatLon};

/// Cells are not forced to be finer than half of this for an area's sake.
const NARROWEST_KM: f64 = 1.0;

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

impl Sheets for RestrictedSheets<'_> {
    fn must_split(&mut self, id: CellId) -> bool {
        match self.area.cover(&self.tiling.rectangle(id)) {
            Cover::Outside => false,
            Cover::Inside => self.whole.must_split(id),
            Cover::Cut => {
                // Cells as wide as the area could miss it; slivers aren't worth the cells.
                let width_km = self.tiling.width(id.level) * EARTH_RADIUS_KM;
                let narrowest_km = self.area.narrowest_km().max(NARROWEST_KM);
                width_km > 0.5 * narrowest_km || self.whole.must_split(id)
            }
        }
    }

    fn sheet(&mut self, id: CellId) -> Sheet {
        let cover = self.area.cover(&self.tiling.rectangle(id));
        if cover == Cover::Outside {
            let nothing = Sheet::open([[f64::NEG_INFINITY; POINTS]; POINTS]);
            return Sheet { inside: 0, ..nothing };
        }
        let mut sheet = self.whole.sheet(id);
        if cover == Cover::Cut {
            let points = Rule::get().points;
            let mut inside = 0;
            for k in 0..POINTS * POINTS {
                let (theta, phi) = self.tiling.point(id, points[k / POINTS], points[k % POINTS]);
                inside |= u64::from(self.area.contains(place_at(theta, phi))) << k;
            }
            sheet.inside &= inside;
            sheet.cut = true;
        }
        sheet
    }
}
