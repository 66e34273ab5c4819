//! Round numbers along an axis, and how they are written.

use super::axis::{Axis, Spacing};
use crate::scale::superscript;

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    /// What is written beside it; nothing at the small marks of a logarithmic axis.
    pub(crate) label: String,
}

/// At most this many labelled ticks (at least two are allowed), all on the axis, in rising order.
pub(crate) fn ticks(axis: &Axis, at_most: usize) -> Vec<Tick> {
    let at_most = at_most.max(2);
    match axis.spacing {
        Spacing::Linear => linear(axis, at_most),
        Spacing::Log => log(axis, at_most),
    }
}

/// Multiples of 1, 2 or 5 times a power of ten: the smallest such step that isn't too small.
fn linear(axis: &Axis, at_most: usize) -> Vec<Tick> {
    let span = axis.high - axis.low;
    let first_exponent = (span / at_most as f64).log10().floor() as i32;
    let steps = (first_exponent..first_exponent + 3)
        .flat_map(|exponent| [1.0, 2.0, 5.0].map(|mantissa| (mantissa, exponent)));
    for (mantissa, exponent) in steps {
        let step = mantissa * 10f64.powi(exponent);
        // A tick may miss the end by rounding only.
        let tolerance = 1e-9 * span / step;
        let first = (axis.low / step - tolerance).ceil() as i64;
        let last = (axis.high / step + tolerance).floor() as i64;
        if last - first < at_most as i64 {
            return labelled(first, last, mantissa, exponent);
        }
    }
    Vec::new()
}

fn labelled(first: i64, last: i64, mantissa: f64, exponent: i32) -> Vec<Tick> {
    // Dividing by a power of ten is exact more often than multiplying by its inverse.
    let value = |index: i64| match index as f64 * mantissa {
        units if exponent < 0 && exponent > -300 => units / 10f64.powi(-exponent),
        units => units * 10f64.powi(exponent),
    };
    let largest = value(first).abs().max(value(last).abs());
    let digits = usize::try_from(-exponent).unwrap_or(0);
    // The only tick may be zero.
    let common = if largest > 0.0 { (largest.log10() + 1e-9).floor() as i32 } else { exponent };
    // Powers of ten shorten only what has few digits.
    let has_few_digits = common - exponent < 5;
    let is_plain = exponent >= -5 && (common < 6 || (common < 13 && !has_few_digits));
    let label = |value: f64| {
        if value == 0.0 {
            "0".to_owned()
        } else if is_plain {
            plain(value, digits)
        } else {
            let digits = usize::try_from(common - exponent).unwrap_or(0);
            scientific(&plain(value / 10f64.powi(common), digits), common)
        }
    };
    (first..=last).map(value).map(|value| Tick { value, label: label(value) }).collect()
}

/// Powers of ten; within few of them also 2 and 5 times those; within one, as on a linear axis.
fn log(axis: &Axis, at_most: usize) -> Vec<Tick> {
    let (first, last) =
        ((axis.low.log10() - 1e-9).ceil() as i32, (axis.high.log10() + 1e-9).floor() as i32);
    let powers = usize::try_from(last - first + 1).unwrap_or(0);
    let multiples = |mantissas: &'static [u8]| {
        (first - 1..=last)
            .flat_map(move |exponent| mantissas.iter().map(move |&mantissa| (mantissa, exponent)))
            .filter(|&(mantissa, exponent)| axis.shows(decimal(mantissa, exponent)))
    };
    let halves = multiples(&[1, 2, 5]).count();
    let labelled_mantissas: &[u8] = if powers < 3 && (3..=at_most).contains(&halves) {
        &[1, 2, 5]
    } else if powers >= 2 {
        &[1]
    } else {
        return linear(axis, at_most);
    };
    let stride = powers.div_ceil(at_most).max(1) as i32;
    // Beyond some powers small ticks are only noise.
    let marked: &[u8] = match powers {
        0..=7 => &[1, 2, 3, 4, 5, 6, 7, 8, 9],
        _ => &[1],
    };
    // One way of writing on one axis.
    let short = first >= -4 && last <= 4;
    multiples(marked)
        .map(|(mantissa, exponent)| {
            let has_label =
                labelled_mantissas.contains(&mantissa) && exponent.rem_euclid(stride) == 0;
            let value = decimal(mantissa, exponent);
            let label = match (has_label, short, mantissa) {
                (false, _, _) => String::new(),
                (_, true, _) => plain(value, usize::try_from(-exponent).unwrap_or(0)),
                (_, false, 1) => format!("10{}", superscript(i64::from(exponent))),
                (_, false, _) => scientific(&mantissa.to_string(), exponent),
            };
            Tick { value, label }
        })
        .collect()
}

/// mantissa · 10^exponent.
fn decimal(mantissa: u8, exponent: i32) -> f64 {
    match exponent {
        -300..0 => f64::from(mantissa) / 10f64.powi(-exponent),
        _ => f64::from(mantissa) * 10f64.powi(exponent),
    }
}

fn scientific(mantissa: &str, exponent: i32) -> String {
    format!("{mantissa}·10{}", superscript(i64::from(exponent)))
}

/// A number with so many digits after the point, a real minus sign, and gaps between groups of
/// three digits if there are five or more.
fn plain(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 {
        out.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && whole.len() > 4 && (whole.len() - index).is_multiple_of(3) {
            out.push('\u{a0}');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(spacing: Spacing, low: f64, high: f64, at_most: usize) -> Vec<String> {
        let ticks = ticks(&Axis { spacing, low, high }, at_most);
        ticks.into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_written_as_people_do() {
        let labels = |low, high, at_most| labels(Spacing::Linear, low, high, at_most);
        assert_eq!(labels(0.0, 1.0, 6), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(-0.7, 0.7, 5), ["−0.5", "0", "0.5"]);
        assert_eq!(labels(-6e7, 6e7, 2), ["0"]);
        assert_eq!(
            labels(0.0, 20_000.0, 5),
            ["0", "5000", "10\u{a0}000", "15\u{a0}000", "20\u{a0}000"]
        );
        assert_eq!(labels(0.0, 2.2e6, 5), ["0", "0.5·10⁶", "1.0·10⁶", "1.5·10⁶", "2.0·10⁶"]);
        assert_eq!(
            labels(1e9, 1e9 + 1.0, 2),
            ["1\u{a0}000\u{a0}000\u{a0}000", "1\u{a0}000\u{a0}000\u{a0}001"]
        );
        assert_eq!(labels(1.0e-7, 3.1e-7, 3), ["1·10⁻⁷", "2·10⁻⁷", "3·10⁻⁷"]);
    }

    #[test]
    fn log_ticks_are_written_as_people_do() {
        let labels = |low, high, at_most| labels(Spacing::Log, low, high, at_most);
        assert_eq!(labels(0.5, 2000.0, 6), ["1", "10", "100", "1000"]);
        assert_eq!(labels(1.0, 50.0, 8), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(3e-9, 3e-6, 8), ["10⁻⁸", "10⁻⁷", "10⁻⁶"]);
        assert_eq!(labels(1e-12, 1.0, 4), ["10⁻¹²", "10⁻⁸", "10⁻⁴", "10⁰"]);
        // Within one power, round numbers as on a linear axis.
        assert_eq!(labels(2.3, 3.2, 5), ["2.4", "2.6", "2.8", "3.0", "3.2"]);
        assert_eq!(labels(1e5, 5e6, 8), ["10⁵", "2·10⁵", "5·10⁵", "10⁶", "2·10⁶", "5·10⁶"]);
    }

    proptest! {
        #[test]
        fn linear_ticks_are_round_few_and_on_the_axis(
            middle in -1e6..1e6f64, log_span in -3.0..12.0f64, at_most in 2usize..15,
        ) {
            let span = 10f64.powf(log_span);
            let axis = Axis { spacing: Spacing::Linear, low: middle - span / 2.0, high: middle + span / 2.0 };
            let ticks = ticks(&axis, at_most);
            prop_assert!(ticks.len() <= at_most);
            prop_assert!(ticks.len() >= if at_most >= 5 { 2 } else { 1 }, "{ticks:?}");
            prop_assert!(ticks.iter().all(|tick| axis.shows(tick.value)));
            for pair in ticks.windows(2) {
                prop_assert!(pair[0].label != pair[1].label);
                let step = pair[1].value - pair[0].value;
                let leading = step / 10f64.powf((step.log10() + 1e-5).floor());
                prop_assert!([1.0, 2.0, 5.0].iter().any(|round| (leading / round - 1.0).abs() < 1e-4), "{step}");
                let multiple = pair[0].value / step;
                prop_assert!((multiple - multiple.round()).abs() < 1e-4 * multiple.abs().max(1.0));
            }
        }

        #[test]
        fn log_ticks_are_round_few_and_on_the_axis(
            log_low in -200.0..200.0f64, decades in 0.01..90.0f64, at_most in 2usize..15,
        ) {
            let axis = Axis {
                spacing: Spacing::Log,
                low: 10f64.powf(log_low),
                high: 10f64.powf(log_low + decades),
            };
            let ticks = ticks(&axis, at_most);
            let labelled = ticks.iter().filter(|tick| !tick.label.is_empty()).count();
            prop_assert!((1..=at_most).contains(&labelled), "{ticks:?}");
            prop_assert!(ticks.iter().all(|tick| axis.shows(tick.value)));
            prop_assert!(ticks.windows(2).all(|pair| pair[0].value < pair[1].value));
            if decades > 2.0 {
                for tick in ticks.iter().filter(|tick| !tick.label.is_empty()) {
                    let power = tick.value.log10();
                    prop_assert!((power - power.round()).abs() < 1e-9 || decades < 3.0);
                }
            }
        }
    }
}
