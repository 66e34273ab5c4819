//! Letters: widths, line breaks and outlines, from a font that is part of the program.
//!
//! DejaVu Sans, reduced by `assets/fonts.sh` to Latin, Greek and Cyrillic letters and some signs.
//! No font of the machine is used, so a PNG looks the same everywhere. Widths are sums of advances:
//! there is no kerning, and no shaping of scripts that need it.

use crate::scene::{Anchor, Colour, Item, Text};
use ttf_parser::{Face, GlyphId};

static FONT: &[u8] = include_bytes!("../assets/DejaVuSans-subset.ttf");

/// The fonts to ask for in an SVG; the others are near in width.
pub(crate) const FAMILY: &str = "'DejaVu Sans', Verdana, sans-serif";

/// Height of a capital letter, as a share of the font size.
pub(crate) const CAP_HEIGHT: f64 = 0.729;

/// A move, line or curve of a glyph's outline, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Segment {
    Move([f32; 2]),
    Line([f32; 2]),
    Quad([f32; 2], [f32; 2]),
    Cubic([f32; 2], [f32; 2], [f32; 2]),
    Close,
}

fn face() -> Option<Face<'static>> {
    Face::parse(FONT, 0).ok()
}

/// Whether the font has all letters of a text.
pub(crate) fn is_writable(text: &str) -> bool {
    face().is_some_and(|face| text.chars().all(|letter| face.glyph_index(letter).is_some()))
}

/// Width of a line of text in pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    face().map_or(0.0, |face| width_in(&face, text, size))
}

fn width_in(face: &Face<'_>, text: &str, size: f64) -> f64 {
    let advances = text.chars().map(|letter| advance(face, glyph(face, letter)));
    advances.sum::<f64>() * size / f64::from(face.units_per_em())
}

/// The glyph of a letter; the empty box if the font has none.
fn glyph(face: &Face<'_>, letter: char) -> GlyphId {
    face.glyph_index(letter).unwrap_or(GlyphId(0))
}

fn advance(face: &Face<'_>, glyph: GlyphId) -> f64 {
    f64::from(face.glyph_hor_advance(glyph).unwrap_or(0))
}

/// Breaks a text at blanks into lines of at most `limit` pixels, and at every line end it has.
/// A word that is too long for a line gets one of its own.
pub(crate) fn wrapped(text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if line.is_empty() || width(&longer, size) <= limit {
                line = longer;
            } else {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            }
        }
        lines.push(line);
    }
    lines
}

/// The text, or as much of its beginning as `limit` pixels hold, with an ellipsis.
pub(crate) fn shortened(text: &str, size: f64, limit: f64) -> String {
    if width(text, size) <= limit {
        return text.to_owned();
    }
    let mut start: Vec<char> = text.chars().collect();
    while start.pop().is_some() {
        let shorter = start.iter().chain(&['…']).collect::<String>();
        if width(&shorter, size) <= limit {
            return shorter;
        }
    }
    String::new()
}

/// Distance between baselines, as a share of the font size.
const LINE_HEIGHT: f64 = 1.4;

/// Lines of text below each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Block {
    lines: Vec<String>,
    size: f64,
}

impl Block {
    /// A text broken into lines of at most `limit` pixels; words that are longer are shortened.
    pub(crate) fn new(text: &str, size: f64, limit: f64) -> Block {
        let lines = wrapped(text, size, limit);
        Block { lines: lines.iter().map(|line| shortened(line, size, limit)).collect(), size }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// From the top of the first line's capitals to the last line's baseline.
    pub(crate) fn height(&self) -> f64 {
        match self.lines.len() {
            0 => 0.0,
            lines => (CAP_HEIGHT + (lines as f64 - 1.0) * LINE_HEIGHT) * self.size,
        }
    }

    /// Width of the longest line.
    pub(crate) fn width(&self) -> f64 {
        self.lines.iter().map(|line| width(line, self.size)).fold(0.0, f64::max)
    }

    /// The lines, the capitals of the first with their top at `y`.
    pub(crate) fn items(&self, [x, y]: [f64; 2], anchor: Anchor, colour: Colour) -> Vec<Item> {
        let text = |(index, line): (usize, &String)| {
            let baseline = y + (CAP_HEIGHT + index as f64 * LINE_HEIGHT) * self.size;
            let (at, size, text) = ([x, baseline], self.size, line.clone());
            Item::Text(Text { at, anchor, size, colour, halo: None, text })
        };
        self.lines.iter().enumerate().map(text).collect()
    }
}

/// The outlines of a line of text where it stands.
pub(crate) fn outlines(text: &Text) -> Vec<Segment> {
    let Some(face) = face() else { return Vec::new() };
    let scale = text.size / f64::from(face.units_per_em());
    let shift = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -width_in(&face, &text.text, text.size) / 2.0,
        Anchor::End => -width_in(&face, &text.text, text.size),
    };
    let mut pen = Pen { segments: Vec::new(), origin: [text.at[0] + shift, text.at[1]], scale };
    for letter in text.text.chars() {
        let glyph = glyph(&face, letter);
        face.outline_glyph(glyph, &mut pen);
        pen.origin[0] += advance(&face, glyph) * scale;
    }
    pen.segments
}

struct Pen {
    segments: Vec<Segment>,
    origin: [f64; 2],
    scale: f64,
}

impl Pen {
    fn pixel(&self, x: f32, y: f32) -> [f32; 2] {
        let [left, baseline] = self.origin;
        let (x, y) = (f64::from(x), f64::from(y));
        [(left + x * self.scale) as f32, (baseline - y * self.scale) as f32]
    }
}

impl ttf_parser::OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.segments.push(Segment::Move(self.pixel(x, y)));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.segments.push(Segment::Line(self.pixel(x, y)));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.segments.push(Segment::Quad(self.pixel(x1, y1), self.pixel(x, y)));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.segments.push(Segment::Cubic(
            self.pixel(x1, y1),
            self.pixel(x2, y2),
            self.pixel(x, y),
        ));
    }

    fn close(&mut self) {
        self.segments.push(Segment::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_labels_need() {
        let face = face().unwrap();
        for letter in "AZaz09 äßñøŁőžșΑωκЖя−–—×·…°²¹⁰⁴⁹⁻₀≤≥→%’“”".chars()
        {
            assert!(face.glyph_index(letter).is_some(), "{letter}");
        }
        assert_eq!(f64::from(face.capital_height().unwrap_or(1493)) / 2048.0, 1493.0 / 2048.0);
        assert!((CAP_HEIGHT - 1493.0 / 2048.0).abs() < 1e-3);
    }

    #[test]
    fn long_texts_are_broken_and_nothing_is_lost() {
        let text = "Prediction, not a fact: where this photograph was\ntaken";
        let lines = wrapped(text, 13.0, 120.0);
        assert!(lines.len() > 3);
        assert!(lines.iter().all(|line| width(line, 13.0) <= 120.0));
        assert_eq!(lines.join(" "), text.replace('\n', " "));
        assert_eq!(wrapped("unbreakable", 13.0, 1.0), ["unbreakable"]);
        assert!(wrapped("", 13.0, 100.0).is_empty());
    }

    #[test]
    fn what_is_too_long_is_shortened() {
        assert_eq!(shortened("steps", 13.0, 100.0), "steps");
        let short = shortened("unbreakable", 13.0, 50.0);
        assert!(short.starts_with("unb") && short.ends_with('…') && width(&short, 13.0) <= 50.0);
        assert_eq!(shortened("unbreakable", 13.0, 1.0), "");
        let block = Block::new("two words and some", 10.0, 60.0);
        assert!(block.lines.len() > 1 && block.width() <= 60.0);
        assert!(
            (block.height() - (CAP_HEIGHT + 1.4 * (block.lines.len() - 1) as f64) * 10.0) < 1e-9
        );
    }

    #[test]
    fn unknown_letters_are_boxes() {
        assert!(width("漢", 10.0) > 0.0);
    }
}
