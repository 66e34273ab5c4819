//! A scene as SVG: paths and letters stay paths and letters, the field is an embedded PNG.
//!
//! Numbers are written with two digits after the point: a hundredth of a pixel. What is not a
//! finite number is left out.

use crate::clip::Line;
use crate::raster;
use crate::scene::{Anchor, Colour, Image, Item, Paint, Scene, Shape, Text};
use crate::text::FAMILY;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;

/// Paths of at least this many letters are written once and referred to.
const LONG_PATH: usize = 1000;

/// The scene as an SVG document.
pub(crate) fn write(scene: &Scene) -> String {
    let mut body = Body { markup: String::new(), definitions: Vec::new() };
    body.scene(scene);
    let [width, height] = scene.size;
    let description = escaped(&scene.description);
    let definitions = body.definitions.join("\n");
    let markup = body.markup;
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" font-family="{FAMILY}">
<title>{description}</title>
<defs>
{definitions}
</defs>
{markup}</svg>
"#
    )
}

struct Body {
    markup: String,
    definitions: Vec<String>,
}

impl Body {
    fn scene(&mut self, scene: &Scene) {
        let ([width, height], background) = (scene.size, colour(scene.background));
        let _ = writeln!(
            self.markup,
            r#"<rect width="{width}" height="{height}" fill="{background}"/>"#
        );
        for item in &scene.items {
            match item {
                Item::Shape(shape) => self.shape(shape),
                Item::Text(text) => self.text(text),
                Item::Image(image) => self.image(image),
                Item::BeginClip(lines) => {
                    let id = self.define(|id| {
                        format!(r#"<clipPath id="{id}"><path d="{}"/></clipPath>"#, path(lines))
                    });
                    let _ = writeln!(self.markup, r#"<g clip-path="url(#{id})">"#);
                }
                Item::EndClip => self.markup.push_str("</g>\n"),
                Item::Scene { at, scene } => self.nested(*at, scene),
            }
        }
    }

    /// An element `svg` has its own coordinates, and hides what leaves it. Definitions stay common
    /// to the document, so that several maps have one coastline.
    fn nested(&mut self, [x, y]: [u32; 2], scene: &Scene) {
        let ([width, height], description) = (scene.size, escaped(&scene.description));
        let _ = writeln!(
            self.markup,
            r#"<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="0 0 {width} {height}"><title>{description}</title>"#
        );
        self.scene(scene);
        self.markup.push_str("</svg>\n");
    }

    /// Adds a definition under a name that depends on its content alone, so that several pictures
    /// can stand in one web page.
    fn define(&mut self, definition: impl Fn(&str) -> String) -> String {
        let id = format!("d{:016x}", fnv1a(definition("").as_bytes()));
        let definition = definition(&id);
        if !self.definitions.contains(&definition) {
            self.definitions.push(definition);
        }
        id
    }

    fn shape(&mut self, shape: &Shape) {
        let data = path(&shape.lines);
        if data.is_empty() {
            return;
        }
        let fill = match &shape.fill {
            None => r#"fill="none""#.to_owned(),
            Some(paint) => self.paint(paint),
        };
        let mut stroke = String::new();
        if let Some(pen) = &shape.stroke {
            stroke = format!(
                r#" stroke="{}"{} stroke-width="{}" stroke-linejoin="round" stroke-linecap="round""#,
                colour(pen.colour),
                opacity("stroke-opacity", pen.colour),
                number(pen.width)
            );
            if let Some([dash, gap]) = pen.dash {
                let _ = write!(stroke, r#" stroke-dasharray="{} {}""#, number(dash), number(gap));
            }
        }
        // A long path, such as the coastlines, may be painted twice: it is written once.
        let _ = if data.len() < LONG_PATH {
            writeln!(self.markup, r#"<path {fill} fill-rule="evenodd"{stroke} d="{data}"/>"#)
        } else {
            let id = self.define(|id| format!(r#"<path id="{id}" d="{data}"/>"#));
            writeln!(self.markup, r##"<use href="#{id}" {fill} fill-rule="evenodd"{stroke}/>"##)
        };
    }

    fn paint(&mut self, paint: &Paint) -> String {
        let (tag, place, stops) = match paint {
            Paint::Plain(plain) => {
                let opacity = opacity("fill-opacity", *plain);
                return format!(r#"fill="{}"{opacity}"#, colour(*plain));
            }
            Paint::Linear { from: [x1, y1], to: [x2, y2], stops } => {
                let [x1, y1, x2, y2] = [*x1, *y1, *x2, *y2].map(number);
                ("linearGradient", format!(r#"x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}""#), stops)
            }
            Paint::Radial { centre: [x, y], radius, stops } => {
                let [x, y, r] = [*x, *y, *radius].map(number);
                ("radialGradient", format!(r#"cx="{x}" cy="{y}" r="{r}""#), stops)
            }
        };
        let stops: String = stops
            .iter()
            .map(|&(position, stop)| {
                let (offset, opacity) = (number(position), opacity("stop-opacity", stop));
                format!(r#"<stop offset="{offset}" stop-color="{}"{opacity}/>"#, colour(stop))
            })
            .collect();
        let id = self.define(|id| {
            format!(r#"<{tag} id="{id}" gradientUnits="userSpaceOnUse" {place}>{stops}</{tag}>"#)
        });
        format!(r#"fill="url(#{id})""#)
    }

    fn text(&mut self, text: &Text) {
        let anchor = match text.anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let halo = text.halo.map_or(String::new(), |halo| {
            format!(
                r#" stroke="{}"{} stroke-width="{}" stroke-linejoin="round" paint-order="stroke""#,
                colour(halo),
                opacity("stroke-opacity", halo),
                number(raster::halo_width(text.size))
            )
        });
        let [x, y, size] = [text.at[0], text.at[1], text.size].map(number);
        let _ = writeln!(
            self.markup,
            r#"<text x="{x}" y="{y}" font-size="{size}" fill="{}"{anchor}{halo}>{}</text>"#,
            colour(text.colour),
            escaped(&text.text)
        );
    }

    fn image(&mut self, image: &Image) {
        let ([x, y], [width, height]) = (image.at, image.size);
        let data = STANDARD.encode(raster::png_rgba(image));
        let _ = writeln!(
            self.markup,
            r#"<image x="{x}" y="{y}" width="{width}" height="{height}" href="data:image/png;base64,{data}"/>"#
        );
    }
}

/// Steps from point to point are shorter to write than the points; they are differences of rounded
/// numbers, so that no error adds up.
fn path(lines: &[Line]) -> String {
    let mut data = String::new();
    for line in lines {
        let mut previous: Option<[i64; 2]> = None;
        for point in line.points.iter().filter(|point| point.iter().all(|part| part.is_finite())) {
            let rounded = point.map(|part| (part * 100.0).round() as i64);
            let (command, from) = previous.map_or(('M', [0, 0]), |from| ('l', from));
            if previous != Some(rounded) {
                let [dx, dy] =
                    [0, 1].map(|axis| number((rounded[axis] - from[axis]) as f64 / 100.0));
                // A minus sign separates as well as a blank.
                let blank = if dy.starts_with('-') { "" } else { " " };
                let _ = write!(data, "{command}{dx}{blank}{dy}");
            }
            previous = Some(rounded);
        }
        if line.closed && previous.is_some() {
            data.push('z');
        }
    }
    data
}

/// Two digits after the point, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.strip_prefix("-0") {
        Some("") => "0".to_owned(),
        Some(fraction) => format!("-{fraction}"),
        None => text.strip_prefix('0').filter(|rest| !rest.is_empty()).unwrap_or(text).to_owned(),
    }
}

fn colour(colour: Colour) -> String {
    let [red, green, blue] = colour.rgb;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn opacity(attribute: &str, colour: Colour) -> String {
    if colour.alpha >= 1.0 {
        return String::new();
    }
    format!(r#" {attribute}="{}""#, number(colour.alpha))
}

/// Text for XML 1.0, which has no place for most control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{FFFE}' | '\u{FFFF}' => {}
            _ if letter.is_control() => {}
            _ => out.push(letter),
        }
    }
    out
}

/// FNV-1a: a name for a content, not a protection against anything.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(-0.001), "0");
        assert_eq!(number(100.25), "100.25");
        assert_eq!(number(-10.5), "-10.5");
        assert_eq!(number(0.25), ".25");
        assert_eq!(number(-0.5), "-.5");
        assert_eq!(number(0.0), "0");
        let line = |points, closed| Line { points, closed };
        let lines = [
            line(vec![[1.0, 2.0], [1.004, 2.0], [2.5, 1.0], [f64::NAN, 0.0]], true),
            line(vec![[0.0, 0.0], [1.0, 1.0]], false),
        ];
        assert_eq!(path(&lines), "M1 2l1.5-1zM0 0l1 1");
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(escaped("a<b> & \"c\"\u{0}\u{7}\n"), "a&lt;b&gt; &amp; &quot;c&quot; ");
    }
}
