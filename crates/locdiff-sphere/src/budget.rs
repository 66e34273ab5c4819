//! How much work surveys may be, and whether they are still wanted.
//!
//! A budget holds for all that one thread does inside of [`Budget::run`]: every cell that a density is evaluated on is
//! counted. When the budget is spent, or [`Stop::stop`] is called, no more cells are cut. Modes, regions, radii and
//! outlines, whose work is bounded by the number of cells, end when [`Stop::stop`] is called. What was begun ends at once,
//! on the cells that exist, with an error that states this.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Cost;

/// What work may cost, and who may stop it.
///
/// ```
/// use locdiff_sphere::{Budget, Cost, Kernel, LatLon, OverBudget, PointMasses};
///
/// let places = (0..500).map(|k| LatLon::new(f64::from(k % 40) - 20.0, f64::from(k) / 4.0));
/// let masses = PointMasses::new(places.collect::<Result<_, _>>()?, &[1.0; 500])?;
/// let density = masses.spread(Kernel::new(5.0)?);
/// let small = Budget::of(Cost::of_cells(100.0));
/// assert!(matches!(small.run(|| density.survey().cells()), Err(OverBudget::Cost(_))));
/// let error = small.run_coarsely(|| density.survey().error())?;
/// assert!(error > 0.05);
/// assert!(density.survey().error() < 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Budget {
    most: Option<Cost>,
    stop: Option<Stop>,
}

/// Stops work from another thread.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Stops all work that listens.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why work has no result.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum OverBudget {
    /// It was not allowed to cost more than this.
    #[error("it would cost more than {0}")]
    Cost(Cost),
    /// It was not wanted any longer.
    #[error("it was stopped")]
    Stopped,
}

impl Budget {
    /// A budget without a limit.
    pub fn unlimited() -> Budget {
        Budget::default()
    }

    /// At most so much, for everything in one run.
    pub fn of(most: Cost) -> Budget {
        Budget { most: Some(most), stop: None }
    }

    /// The same, and it can be stopped.
    pub fn stopped_by(self, stop: &Stop) -> Budget {
        Budget { stop: Some(stop.clone()), ..self }
    }

    /// Works within the budget. If that is not enough, there is no result.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T, OverBudget> {
        let (done, meter) = self.metered(work);
        match (self.is_stopped(), self.most) {
            (true, _) => Err(OverBudget::Stopped),
            (false, Some(most)) if meter.is_over.get() => Err(OverBudget::Cost(most)),
            _ => Ok(done),
        }
    }

    /// Works within the budget. If that is not enough, the result is coarser: densities and surveys that were made of it have
    /// larger errors, and say so. Fails if it was stopped.
    pub fn run_coarsely<T>(&self, work: impl FnOnce() -> T) -> Result<T, OverBudget> {
        let (done, _) = self.metered(work);
        if self.is_stopped() { Err(OverBudget::Stopped) } else { Ok(done) }
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::is_stopped)
    }

    fn metered<T>(&self, work: impl FnOnce() -> T) -> (T, Rc<Meter>) {
        let left = self.most.map_or(f64::INFINITY, Cost::cells);
        let meter =
            Meter { left: Cell::new(left), is_over: Cell::new(false), stop: self.stop.clone() };
        let meter = Rc::new(meter);
        let scope = Scope(CURRENT.replace(Some(Rc::clone(&meter))));
        let done = work();
        drop(scope);
        (done, meter)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Meter>>> = const { RefCell::new(None) };
}

/// Puts back what held before, also if the work panics.
struct Scope(Option<Rc<Meter>>);

impl Drop for Scope {
    fn drop(&mut self) {
        CURRENT.replace(self.0.take());
    }
}

/// What is left of the budget that holds.
pub(crate) struct Meter {
    left: Cell<f64>,
    is_over: Cell<bool>,
    stop: Option<Stop>,
}

impl Meter {
    /// The one that holds here; without any, there is no end to it.
    pub(crate) fn current() -> Rc<Meter> {
        CURRENT.with_borrow(|current| current.clone()).unwrap_or_else(|| {
            let left = Cell::new(f64::INFINITY);
            Rc::new(Meter { left, is_over: Cell::new(false), stop: None })
        })
    }

    /// Works with a part of what is left, and counts it.
    pub(crate) fn with_part<T>(part: f64, work: impl FnOnce() -> T) -> T {
        let outer = Meter::current();
        let left = part * outer.left.get();
        let stop = outer.stop.clone();
        let inner = Rc::new(Meter { left: Cell::new(left), is_over: Cell::new(false), stop });
        let scope = Scope(CURRENT.replace(Some(Rc::clone(&inner))));
        let done = work();
        drop(scope);
        if left.is_finite() {
            outer.spend(left - inner.left.get());
        }
        done
    }

    /// Subtracts a number of cells.
    pub(crate) fn spend(&self, cells: f64) {
        self.left.set(self.left.get() - cells);
    }

    /// Whether there is enough left for so many cells; if not, or if the work was stopped, that is remembered.
    pub(crate) fn allows(&self, cells: f64) -> bool {
        if !self.goes_on() || self.left.get() < cells {
            self.is_over.set(true);
        }
        !self.is_over.get()
    }

    /// Whether the work was not stopped. After a stop the result is discarded.
    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.as_ref().is_some_and(Stop::is_stopped)
    }

    /// Whether something had to be left out.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Density, LatLon};

    #[test]
    fn what_is_asked_of_a_survey_ends_when_somebody_says_stop() {
        let density = Density::uniform();
        let survey = density.survey();
        let (stop, mut found) = (Stop::default(), [1.0; 2]);
        stop.stop();
        let run = Budget::unlimited().stopped_by(&stop).run(|| {
            let south = survey.probability_within(LatLon::SOUTH_POLE, 9000.0);
            found = [south, survey.region(0.5).probability()];
        });
        assert_eq!((run, found), (Err(OverBudget::Stopped), [0.0; 2]));
        // What was found so is not remembered.
        assert!((survey.region(0.5).probability() - 0.5).abs() < 1e-3);
        assert!(survey.probability_within(LatLon::SOUTH_POLE, 9000.0) > 0.4);
    }
}
