//! From a log-density to a position on the colour scale, and the numbers beside the colour bar.
//!
//! Convention: log-densities are natural logarithms of a probability per steradian; the uniform
//! density has −ln 4π = −2.531.

use locdiff_sphere::EARTH_RADIUS_KM;
use std::f64::consts::{LN_10, PI};

/// How densities become colours. The top of the scale is the largest density on the Earth, unless
/// [`Map::top`](crate::Map::top) fixes it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Scale {
    /// Equal steps of colour are equal steps of density, from 0 up: where the probability is.
    Linear,
    /// Equal steps of colour are equal factors of density: shows also what is improbable.
    Log {
        /// How far below the top the scale ends, in nats. What lies deeper is transparent.
        nats: f64,
    },
}

impl Scale {
    /// A logarithmic scale over this many powers of ten.
    pub fn log_decades(decades: f64) -> Scale {
        Scale::Log { nats: decades * LN_10 }
    }

    /// Depth of a logarithmic scale; one that makes sense whatever the caller gave.
    fn depth(nats: f64) -> f64 {
        if nats.is_finite() { nats.clamp(1e-6, 1e6) } else { 3.0 * LN_10 }
    }

    /// Position on the scale in [0, 1]; 0 is transparent. Not-a-number counts as no density.
    pub(crate) fn position(self, log_density: f64, top: f64) -> f64 {
        if log_density.is_nan() {
            return 0.0;
        }
        let below = log_density - top;
        match self {
            _ if log_density == f64::INFINITY => 1.0,
            Scale::Linear => below.exp().min(1.0),
            Scale::Log { nats } => (1.0 + below / Scale::depth(nats)).clamp(0.0, 1.0),
        }
    }
}

impl Default for Scale {
    /// Three powers of ten below the maximum.
    fn default() -> Scale {
        Scale::log_decades(3.0)
    }
}

/// What the numbers beside the colour bar are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColourBar {
    /// No colour bar.
    Hidden,
    /// How many times as probable as if all places were equally probable.
    #[default]
    TimesUniform,
    /// Probability per steradian.
    PerSteradian,
    /// Probability per million square kilometres (about the size of Egypt).
    PerMillionSquareKm,
    /// Percent of the largest density: for fields that are not normalised.
    OfLargest,
}

impl ColourBar {
    /// The heading of the bar.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            ColourBar::Hidden => "",
            ColourBar::TimesUniform => "Density, × uniform",
            ColourBar::PerSteradian => "Density, per steradian",
            ColourBar::PerMillionSquareKm => "Probability per million km²",
            ColourBar::OfLargest => "Density, % of the largest",
        }
    }

    /// Logarithm of what a density per steradian is multiplied by.
    fn log_factor(self, top: f64) -> f64 {
        match self {
            ColourBar::Hidden | ColourBar::PerSteradian => 0.0,
            ColourBar::TimesUniform => (4.0 * PI).ln(),
            ColourBar::PerMillionSquareKm => (1e6 / EARTH_RADIUS_KM.powi(2)).ln(),
            ColourBar::OfLargest => 100f64.ln() - top,
        }
    }

    /// Round numbers along the bar: positions in [0, 1] and what to write there.
    pub(crate) fn ticks(self, scale: Scale, top: f64) -> Vec<(f64, String)> {
        let log_top = top + self.log_factor(top);
        if self == ColourBar::Hidden || !log_top.is_finite() {
            return Vec::new();
        }
        // In powers of ten from here; a hair more, so that rounding never drops a tick at the top.
        let top = log_top / LN_10 + 1e-12;
        match scale {
            Scale::Linear => {
                let exponent = top.floor();
                let leading = 10f64.powf(top - exponent);
                let steps = if leading < 2.0 {
                    0.5
                } else if leading < 5.0 {
                    1.0
                } else {
                    2.0
                };
                (0..)
                    .map(|index| f64::from(index) * steps)
                    .take_while(|&value| value <= leading * (1.0 + 1e-9))
                    .map(|value| (value / leading, written(value, exponent as i64)))
                    .collect()
            }
            Scale::Log { nats } => {
                let depth = Scale::depth(nats) / LN_10;
                let mantissas: &[f64] = if depth > 2.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                // At most about six powers of ten are written.
                let stride = (depth / 6.0).ceil().max(1.0) as i64;
                let first = (top - depth).floor() as i64;
                let last = top.floor() as i64;
                (first..=last)
                    .filter(|exponent| exponent.rem_euclid(stride) == 0)
                    .flat_map(|exponent| mantissas.iter().map(move |&m| (m, exponent)))
                    .map(|(m, exponent)| {
                        let position = 1.0 - (top - m.log10() - exponent as f64) / depth;
                        (position, written(m, exponent))
                    })
                    .filter(|(position, _)| (-1e-9..=1.0 + 1e-9).contains(position))
                    .collect()
            }
        }
    }
}

/// mantissa · 10^exponent as people write it.
fn written(mantissa: f64, exponent: i64) -> String {
    if mantissa == 0.0 {
        return "0".to_owned();
    }
    if (-3..=4).contains(&exponent) {
        let digits = usize::try_from(-exponent).unwrap_or(0) + usize::from(mantissa.fract() != 0.0);
        let digits = if exponent > 0 { 0 } else { digits };
        let plain = format!("{:.digits$}", mantissa * 10f64.powi(exponent as i32));
        // A thin gap before the last three digits of five.
        return match plain.len() {
            5 if !plain.contains('.') => format!("{}\u{a0}{}", &plain[..2], &plain[2..]),
            _ => plain,
        };
    }
    let superscript = superscript(exponent);
    if mantissa == 1.0 {
        format!("10{superscript}")
    } else {
        format!("{mantissa}·10{superscript}")
    }
}

/// An integer in raised digits.
pub(crate) fn superscript(exponent: i64) -> String {
    let raised = |sign: char| match sign.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    };
    exponent.to_string().chars().map(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bar: ColourBar, scale: Scale, top: f64) -> Vec<String> {
        bar.ticks(scale, top).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn positions_stay_on_the_scale() {
        for scale in [Scale::Linear, Scale::default(), Scale::Log { nats: f64::NAN }] {
            for value in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -1e300, 0.0, 3.0, 1e300] {
                let position = scale.position(value, 3.0);
                assert!((0.0..=1.0).contains(&position), "{scale:?} {value} {position}");
            }
            assert_eq!(scale.position(3.0, 3.0), 1.0);
            assert_eq!(scale.position(f64::NEG_INFINITY, 3.0), 0.0);
        }
        assert!((Scale::Linear.position(0.5f64.ln(), 0.0) - 0.5).abs() < 1e-15);
        assert!((Scale::Log { nats: 4.0 }.position(-1.0, 0.0) - 0.75).abs() < 1e-15);
    }

    #[test]
    fn uniform_is_one_times_uniform() {
        let uniform = -(4.0 * PI).ln();
        let ticks = ColourBar::TimesUniform.ticks(Scale::log_decades(2.5), uniform + 1e-12);
        assert_eq!(ticks.last().unwrap().1, "1");
        assert!((ticks.last().unwrap().0 - 1.0).abs() < 1e-9);
        let area = 4.0 * PI * EARTH_RADIUS_KM.powi(2);
        let log_factor = ColourBar::PerMillionSquareKm.log_factor(0.0);
        assert!(((uniform + log_factor).exp() - 1e6 / area).abs() < 1e-15);
    }

    #[test]
    fn ticks_are_round_numbers() {
        let top = 321f64.ln();
        let bar = ColourBar::PerSteradian;
        assert_eq!(texts(bar, Scale::log_decades(3.0), top), ["1", "10", "100"]);
        assert_eq!(texts(bar, Scale::log_decades(1.0), top), ["50", "100", "200"]);
        assert_eq!(texts(bar, Scale::Linear, top), ["0", "100", "200", "300"]);
        assert_eq!(texts(bar, Scale::Linear, 0.12f64.ln()), ["0", "0.05", "0.1"]);
        assert_eq!(texts(bar, Scale::Linear, 1.6e7f64.ln()), ["0", "0.5·10⁷", "10⁷", "1.5·10⁷"]);
        assert_eq!(
            texts(bar, Scale::log_decades(3.0), 2e5f64.ln()),
            ["1000", "10\u{a0}000", "10⁵"]
        );
        assert_eq!(
            texts(ColourBar::OfLargest, Scale::log_decades(2.1), -700.0),
            ["1", "10", "100"]
        );
        assert!(texts(bar, Scale::Linear, f64::NAN).is_empty());
        assert!(texts(bar, Scale::log_decades(1e9), top).len() < 10);
    }
}
