//! Colours of everything.
//!
//! The density is painted in inferno, which is perceptually uniform and safe for colour-blind
//! people: on the dark theme from dark to light, on the day theme the other way round, so that
//! more probable always means more contrast with the ground. What we draw on top (markers,
//! outlines) is blue, the one hue that inferno does not have in its brighter half.

use crate::colour_table::INFERNO;
use crate::scene::Colour;

/// Light or dark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Theme {
    /// Dark ink on a light ground.
    #[default]
    Day,
    /// Light ink on a dark ground.
    Dark,
}

pub(crate) struct Palette {
    pub(crate) background: Colour,
    pub(crate) sea: Colour,
    pub(crate) land: Colour,
    pub(crate) coast: Colour,
    /// Color of borders between countries.
    pub(crate) border: Colour,
    pub(crate) graticule: Colour,
    pub(crate) frame: Colour,
    pub(crate) text: Colour,
    pub(crate) faint_text: Colour,
    /// Names of countries, over the ground and over a density.
    pub(crate) country: Colour,
    pub(crate) mark: Colour,
    /// Color of the edge around marks and labels.
    pub(crate) halo: Colour,
    /// Light and shadow of a globe, and the glow around it.
    pub(crate) light: Colour,
    pub(crate) shadow: Colour,
    pub(crate) glow: Colour,
    /// Series of charts, in this order. Far apart also for those who see fewer colours.
    pub(crate) series: [Colour; 6],
    /// The part of inferno in use, from improbable to probable.
    colours: [f64; 2],
}

impl Theme {
    pub(crate) fn palette(self) -> Palette {
        match self {
            Theme::Day => Palette {
                background: Colour::hex(0xffffff),
                sea: Colour::hex(0xe4ecf2),
                land: Colour::hex(0xfaf8f4),
                coast: Colour::hex(0x5d6b78).with_alpha(0.75),
                border: Colour::hex(0x7d6f78).with_alpha(0.7),
                graticule: Colour::hex(0x5d6b78).with_alpha(0.18),
                frame: Colour::hex(0x8896a3),
                text: Colour::hex(0x1c242c),
                faint_text: Colour::hex(0x55616d),
                country: Colour::hex(0x445361),
                mark: Colour::hex(0x0077cc),
                halo: Colour::hex(0xffffff),
                light: Colour::hex(0xffffff).with_alpha(0.55),
                shadow: Colour::hex(0x27425c).with_alpha(0.22),
                glow: Colour::hex(0x6f8ba5).with_alpha(0.28),
                series: [0x0077cc, 0xf75704, 0x00654f, 0xba3990, 0x3f2a80, 0x938f74]
                    .map(Colour::hex),
                colours: [1.0, 0.17],
            },
            Theme::Dark => Palette {
                background: Colour::hex(0x0b0f15),
                sea: Colour::hex(0x141c27),
                land: Colour::hex(0x2a3543),
                coast: Colour::hex(0x93a4b6).with_alpha(0.6),
                border: Colour::hex(0xb9aeb4).with_alpha(0.5),
                graticule: Colour::hex(0x93a4b6).with_alpha(0.13),
                frame: Colour::hex(0x47566a),
                text: Colour::hex(0xecf0f4),
                faint_text: Colour::hex(0x9fadbb),
                country: Colour::hex(0xb7c6d4),
                mark: Colour::hex(0x58c4ff),
                halo: Colour::hex(0x0b0f15),
                light: Colour::hex(0x9cc4ee).with_alpha(0.13),
                shadow: Colour::hex(0x000308).with_alpha(0.5),
                glow: Colour::hex(0x4f8fd0).with_alpha(0.38),
                series: [0x58c4ff, 0xff892c, 0x2b9f86, 0xffaaae, 0x9879eb, 0xf2e27a]
                    .map(Colour::hex),
                colours: [0.18, 1.0],
            },
        }
    }
}

impl Palette {
    /// The colour of a position on the scale, from 0 (transparent) to 1.
    pub(crate) fn density(&self, position: f64) -> Colour {
        let position = position.clamp(0.0, 1.0);
        let [low, high] = self.colours;
        let place = (low + position * (high - low)) * (INFERNO.len() - 1) as f64;
        let index = (place as usize).min(INFERNO.len() - 2);
        let share = place - index as f64;
        let rgb = std::array::from_fn(|channel| {
            let (a, b) = (INFERNO[index][channel], INFERNO[index + 1][channel]);
            (f64::from(a) + share * (f64::from(b) - f64::from(a))).round() as u8
        });
        // Fades in over the lowest part of the scale, without an edge that would look like a
        // border of something.
        let fade = (position / 0.35).min(1.0);
        Colour { rgb, alpha: 0.94 * fade * fade * (3.0 - 2.0 * fade) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(rgb: [u8; 3]) -> [f64; 3] {
        rgb.map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// Relative luminance (WCAG 2).
    fn luminance(rgb: [u8; 3]) -> f64 {
        let [red, green, blue] = linear(rgb);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(a: Colour, b: Colour) -> f64 {
        let (a, b) = (luminance(a.rgb) + 0.05, luminance(b.rgb) + 0.05);
        a.max(b) / a.min(b)
    }

    fn product(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    #[test]
    fn more_probable_means_more_contrast_and_less_transparency() {
        for (theme, sign) in [(Theme::Dark, 1.0), (Theme::Day, -1.0)] {
            let palette = theme.palette();
            assert_eq!(palette.density(0.0).alpha, 0.0);
            let steps: Vec<Colour> =
                (0..=100).map(|step| palette.density(f64::from(step) / 100.0)).collect();
            for pair in steps.windows(2) {
                assert!(sign * (luminance(pair[1].rgb) - luminance(pair[0].rgb)) > -1e-3);
                assert!(pair[1].alpha >= pair[0].alpha);
            }
        }
    }

    #[test]
    fn text_is_readable() {
        for theme in [Theme::Day, Theme::Dark] {
            let palette = theme.palette();
            assert!(contrast(palette.text, palette.background) > 7.0);
            assert!(contrast(palette.faint_text, palette.background) > 4.5);
            assert!(contrast(palette.mark, palette.halo) > 4.5);
            assert!(contrast(palette.country, palette.halo) > 7.0);
        }
    }

    /// Oklab (Ottosson 2020), in which distances are about as large as they look.
    fn oklab(linear: [f64; 3]) -> [f64; 3] {
        let cones = product(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ],
            linear,
        );
        product(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ],
            cones.map(f64::cbrt),
        )
    }

    #[test]
    fn everyone_can_tell_series_apart() {
        // Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB.
        let identity = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let protanopia = [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ];
        let deuteranopia = [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ];
        let tritanopia = [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ];
        for theme in [Theme::Day, Theme::Dark] {
            let palette = theme.palette();
            assert!(palette.series.iter().all(|c| contrast(*c, palette.background) > 3.0));
            for eye in [identity, protanopia, deuteranopia, tritanopia] {
                let seen = palette.series.map(|colour| {
                    oklab(product(eye, linear(colour.rgb)).map(|part| part.clamp(0.0, 1.0)))
                });
                for (index, a) in seen.iter().enumerate() {
                    for b in &seen[index + 1..] {
                        let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
                        assert!(squares.sum::<f64>().sqrt() > 0.1, "{theme:?} {a:?} {b:?}");
                    }
                }
            }
        }
    }
}
