//! Piecewise constant densities: where a polynomial through a cell's points is wrong, the density is asked again.

use super::{Patch, Survey};
use crate::area::Cover;
use crate::cells::{CellId, PointValues, Tiling};
use crate::{Cells, Density, LatLon};

/// The cells of a piecewise constant density, with the scale of a survey's mesh.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps<'a> {
    cells: &'a Cells,
    log_normaliser: f64,
}

impl<'a> Steps<'a> {
    /// Of a density that is piecewise constant, at least in the area that it is restricted to.
    pub(super) fn of(density: &'a Density, shift: f64) -> Option<Steps<'a>> {
        match density {
            Density::Cells(cells) => Some(Steps { cells, log_normaliser: shift }),
            Density::Restriction(part) => {
                let whole = Steps::of(part.whole(), shift)?;
                let log_normaliser = whole.log_normaliser + part.log_probability();
                Some(Steps { log_normaliser, ..whole })
            }
            _ => None,
        }
    }

    pub(super) fn log_density(&self, place: LatLon) -> f64 {
        self.cells.log_density(place) - self.log_normaliser
    }

    fn values(&self, tiling: Tiling, id: CellId) -> PointValues {
        let mut values = self.cells.values(tiling, id);
        values.as_flattened_mut().iter_mut().for_each(|value| *value -= self.log_normaliser);
        values
    }
}

impl Survey<'_> {
    /// The parts of a patch, as exact as they can be had cheaply.
    pub(super) fn parts(&self, patch: &Patch) -> Vec<Patch> {
        let mut parts = match &self.steps {
            Some(steps) => patch.parts_with(|id| steps.values(self.mesh.tiling, id)),
            None => patch.parts(),
        };
        if patch.cut {
            for part in &mut parts {
                let cover = self.density.cover(&self.mesh.tiling.rectangle(part.id));
                part.cut = cover == Cover::Cut;
                part.beyond = cover == Cover::Outside;
            }
        }
        parts
    }
}
