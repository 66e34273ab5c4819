//! An axis: which values it shows, and where.

use std::ops::{Bound, RangeBounds};

/// How values lie along an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Equal steps are equal differences.
    #[default]
    Linear,
    /// Equal steps are equal factors.
    Log,
}

impl Spacing {
    /// Whether a value has a place on such an axis. Beyond 10³⁰⁰ differences may overflow.
    pub(crate) fn takes(self, value: f64) -> bool {
        match self {
            Spacing::Linear => value.abs() <= 1e300,
            Spacing::Log => (1e-300..=1e300).contains(&value),
        }
    }

    /// What is proportional to the position.
    fn forward(self, value: f64) -> f64 {
        match self {
            Spacing::Linear => value,
            Spacing::Log => value.log10(),
        }
    }

    fn backward(self, place: f64) -> f64 {
        match self {
            Spacing::Linear => place,
            Spacing::Log => 10f64.powf(place),
        }
    }

    /// Whether an axis between the values has positions that numbers can tell apart.
    fn spans(self, low: f64, high: f64) -> bool {
        let (from, to) = (self.forward(low), self.forward(high));
        to - from > 1e-300 && to - from > 1e-9 * from.abs().max(to.abs())
    }
}

/// The ends that the caller sets; `None` follows the data.
pub(crate) type Ends = [Option<f64>; 2];

pub(crate) fn ends(range: &impl RangeBounds<f64>) -> Ends {
    [range.start_bound(), range.end_bound()].map(|bound| match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(*value),
        Bound::Unbounded => None,
    })
}

/// An axis from one value to a larger one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    pub(crate) spacing: Spacing,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Axis {
    /// The axis that shows all values which can be shown, with `margin` (a share of the length) at
    /// both ends. Wanted ends that leave no axis are ignored.
    pub(crate) fn around(
        spacing: Spacing,
        values: impl Iterator<Item = f64>,
        wanted: Ends,
        margin: f64,
    ) -> Axis {
        let data = values.filter(|&value| spacing.takes(value)).fold(
            None,
            |range: Option<[f64; 2]>, value| {
                let [low, high] = range.unwrap_or([value; 2]);
                Some([low.min(value), high.max(value)])
            },
        );
        let [low, high] = match (data, spacing) {
            (None, Spacing::Linear) => [0.0, 1.0],
            (None, Spacing::Log) => [1.0, 10.0],
            (Some([low, high]), _) if spacing.spans(low, high) => {
                padded(spacing, low, high, margin)
            }
            (Some([value, _]), Spacing::Linear) => {
                let half = if value.abs() < 1e-290 { 1.0 } else { 0.1 * value.abs() };
                [value - half, value + half]
            }
            (Some([value, _]), Spacing::Log) => [value / 10f64.sqrt(), value * 10f64.sqrt()],
        };
        let [wanted_low, wanted_high] = wanted.map(|end| end.filter(|&value| spacing.takes(value)));
        let candidates = [
            [wanted_low.unwrap_or(low), wanted_high.unwrap_or(high)],
            [wanted_low.unwrap_or(low), high],
            [low, wanted_high.unwrap_or(high)],
        ];
        let [low, high] = candidates
            .into_iter()
            .find(|&[low, high]| spacing.spans(low, high))
            .unwrap_or([low, high]);
        Axis { spacing, low, high }
    }

    fn places(&self) -> [f64; 2] {
        [self.low, self.high].map(|value| self.spacing.forward(value))
    }

    /// Where a value lies: 0 at the low end, 1 at the high end; `None` if it has no place.
    /// What lies very far outside is taken nearer, so that pixels stay numbers.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        let [from, to] = self.places();
        let position = (self.spacing.forward(value) - from) / (to - from);
        self.spacing.takes(value).then_some(position.clamp(-1e6, 1e6))
    }

    /// The value at a position.
    pub(crate) fn value(&self, position: f64) -> f64 {
        let [from, to] = self.places();
        self.spacing.backward(from + position * (to - from))
    }

    /// Whether a value is on the axis.
    pub(crate) fn shows(&self, value: f64) -> bool {
        self.position(value).is_some_and(|position| (-1e-9..=1.0 + 1e-9).contains(&position))
    }
}

/// More room at both ends, but not beyond a zero that the data respects.
fn padded(spacing: Spacing, low: f64, high: f64, margin: f64) -> [f64; 2] {
    let (from, to) = (spacing.forward(low), spacing.forward(high));
    let room = margin * (to - from);
    let mut ends = [from - room, to + room].map(|place| spacing.backward(place));
    if spacing == Spacing::Linear && low >= 0.0 {
        ends[0] = ends[0].max(0.0);
    }
    if spacing == Spacing::Linear && high <= 0.0 {
        ends[1] = ends[1].min(0.0);
    }
    // At the limits of what an axis takes there is no more room.
    if ends.iter().all(|&end| spacing.takes(end)) { ends } else { [low, high] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FREE: Ends = [None, None];

    fn axis(spacing: Spacing, values: &[f64], wanted: Ends) -> [f64; 2] {
        let axis = Axis::around(spacing, values.iter().copied(), wanted, 0.05);
        [axis.low, axis.high]
    }

    #[test]
    fn an_axis_exists_for_any_data() {
        let nothing = [f64::NAN, f64::INFINITY];
        assert_eq!(axis(Spacing::Linear, &nothing, FREE), [0.0, 1.0]);
        assert_eq!(axis(Spacing::Log, &[0.0, -1.0], FREE), [1.0, 10.0]);
        assert_eq!(axis(Spacing::Linear, &[0.0, 0.0], FREE), [-1.0, 1.0]);
        assert_eq!(axis(Spacing::Linear, &[10.0], FREE), [9.0, 11.0]);
        let [low, high] = axis(Spacing::Log, &[10.0], FREE);
        assert!((high / low - 10.0).abs() < 1e-12 && low < 10.0 && 10.0 < high);
        // Not below a zero that no value passes.
        assert_eq!(axis(Spacing::Linear, &[0.0, 10.0], FREE), [0.0, 10.5]);
        assert_eq!(axis(Spacing::Linear, &[-10.0, 0.0], FREE), [-10.5, 0.0]);
    }

    #[test]
    fn wanted_ends_are_taken_if_they_leave_an_axis() {
        let data = [2.0, 4.0];
        assert_eq!(axis(Spacing::Linear, &data, ends(&(0.0..=10.0))), [0.0, 10.0]);
        assert_eq!(axis(Spacing::Linear, &data, ends(&(0.0..))), [0.0, 4.1]);
        assert_eq!(axis(Spacing::Linear, &data, ends(&(5.0..))), [1.9, 4.1]);
        assert_eq!(axis(Spacing::Linear, &data, ends(&(f64::NAN..=10.0))), [1.9, 10.0]);
        let [low, high] = axis(Spacing::Log, &data, ends(&(0.0..=100.0)));
        assert!(low > 1.0 && high == 100.0);
    }

    proptest! {
        #[test]
        fn positions_and_values_are_inverse(low in -1e6..1e6f64, span in 1e-3..1e6f64, at in 0.0..1.0f64) {
            let linear = Axis { spacing: Spacing::Linear, low, high: low + span };
            let log = Axis { spacing: Spacing::Log, low: span, high: span * (2.0 + low.abs()) };
            for axis in [linear, log] {
                let value = axis.value(at);
                prop_assert!(axis.shows(value));
                prop_assert!((axis.position(value).unwrap() - at).abs() < 1e-6);
                prop_assert!(axis.position(axis.low) == Some(0.0));
                prop_assert!((axis.position(axis.high).unwrap() - 1.0).abs() < 1e-12);
            }
        }
    }
}
