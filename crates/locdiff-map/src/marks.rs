//! What is drawn over a density: markers with labels, and outlines of regions.

use crate::clip::Line;
use crate::layout::{Frame, circle};
use crate::scene::{Anchor, Item, Paint, Shape, Stroke, Text};
use crate::text::{CAP_HEIGHT, width};
use crate::theme::Palette;
use locdiff_sphere::LatLon;

/// The form of a marker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Symbol {
    /// A filled circle.
    #[default]
    Dot,
    /// An open circle.
    Ring,
    /// A diagonal cross.
    Cross,
}

/// A place to point out.
///
/// ```
/// use locdiff_map::{Marker, Symbol};
/// use locdiff_sphere::LatLon;
///
/// let truth = Marker::new(LatLon::new(-18.14, 178.44)?).label("Suva").symbol(Symbol::Cross);
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Marker {
    place: LatLon,
    label: String,
    symbol: Symbol,
}

impl Marker {
    /// A dot without a label.
    pub fn new(place: LatLon) -> Marker {
        Marker { place, label: String::new(), symbol: Symbol::Dot }
    }

    /// Sets the text beside the marker.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Marker {
        Marker { label: label.into(), ..self }
    }

    /// Sets the form of the marker.
    #[must_use]
    pub fn symbol(self, symbol: Symbol) -> Marker {
        Marker { symbol, ..self }
    }
}

/// How an outline is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineStyle {
    /// An unbroken line.
    #[default]
    Solid,
    /// A dashed line.
    Dashed,
}

/// The outline of a region: any number of closed rings.
///
/// Neighbouring points are joined by the shorter arc of a great circle, the last with the first.
/// Rings may cross the antimeridian or hold a pole. Rings cut as GeoJSON requires (RFC 7946) serve
/// as well: edges along the antimeridian and at the poles are not drawn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outline {
    pub(crate) rings: Vec<Vec<LatLon>>,
    style: LineStyle,
}

impl Outline {
    /// A solid line along the rings.
    pub fn new(rings: impl IntoIterator<Item = Vec<LatLon>>) -> Outline {
        Outline { rings: rings.into_iter().collect(), style: LineStyle::Solid }
    }

    /// Sets how the line is drawn.
    #[must_use]
    pub fn style(self, style: LineStyle) -> Outline {
        Outline { style, ..self }
    }

    /// Two strokes, so that the line shows on every colour. `unit` is the size of a design pixel.
    pub(crate) fn items(&self, lines: Vec<Line>, palette: &Palette, unit: f64) -> [Item; 2] {
        let dash = match self.style {
            LineStyle::Solid => None,
            LineStyle::Dashed => Some([5.0 * unit, 5.0 * unit]),
        };
        let halo = palette.halo.with_alpha(0.55);
        let under = Stroke { colour: halo, width: 3.4 * unit, dash: None };
        let over = Stroke { colour: palette.mark, width: 1.7 * unit, dash };
        [under, over].map(|stroke| {
            Item::Shape(Shape { lines: lines.clone(), stroke: Some(stroke), fill: None })
        })
    }
}

/// The visible markers, and then their labels, in the order of the markers: each takes the first of
/// eight positions that covers nothing, or else the one that covers least. What markers and labels
/// cover is added to `taken`.
pub(crate) fn items(
    markers: &[Marker],
    taken: &mut Vec<Rectangle>,
    frame: &Frame,
    palette: &Palette,
    unit: f64,
) -> Vec<Item> {
    let visible: Vec<(&Marker, [f64; 2])> =
        markers.iter().filter_map(|marker| Some((marker, frame.pixel_of(marker.place)?))).collect();
    let mut items: Vec<Item> = Vec::new();
    for (marker, at) in &visible {
        items.extend(symbol(marker.symbol, *at, palette, unit));
    }
    taken.extend(areas(markers, frame, unit));
    let size = 13.0 * unit;
    for (marker, at) in visible.iter().filter(|(marker, _)| !marker.label.is_empty()) {
        let covered =
            |area: Rectangle| -> f64 { taken.iter().map(|other| other.overlap(area)).sum() };
        let Some((anchor, at, area)) =
            label_positions(*at, width(&marker.label, size), size, unit, 1.0)
                .into_iter()
                // Outside the map only if there is no room in it; the first of equals wins.
                .min_by(|a, b| {
                    let cost = |area: Rectangle| (!frame.holds(area), covered(area));
                    let ((a_outside, a_covered), (b_outside, b_covered)) = (cost(a.2), cost(b.2));
                    a_outside.cmp(&b_outside).then(a_covered.total_cmp(&b_covered))
                })
        else {
            continue;
        };
        taken.push(area);
        items.push(Item::Text(Text {
            at,
            anchor,
            size,
            colour: palette.text,
            halo: Some(palette.halo.with_alpha(0.85)),
            text: marker.label.clone(),
        }));
    }
    items
}

/// What the visible markers cover, without their labels.
pub(crate) fn areas(markers: &[Marker], frame: &Frame, unit: f64) -> Vec<Rectangle> {
    let visible = markers.iter().filter_map(|marker| frame.pixel_of(marker.place));
    visible.map(|at| Rectangle::around(at, 6.0 * unit)).collect()
}

/// An area of pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rectangle {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rectangle {
    /// A square with its middle at a point.
    pub(crate) fn around([x, y]: [f64; 2], reach: f64) -> Rectangle {
        Rectangle { left: x - reach, top: y - reach, right: x + reach, bottom: y + reach }
    }

    /// With so much more on each side.
    pub(crate) fn grown(self, [x, y]: [f64; 2]) -> Rectangle {
        Rectangle {
            left: self.left - x,
            top: self.top - y,
            right: self.right + x,
            bottom: self.bottom + y,
        }
    }

    pub(crate) fn area(self) -> f64 {
        self.overlap(self)
    }

    /// Area that both cover.
    pub(crate) fn overlap(self, other: Rectangle) -> f64 {
        let width = self.right.min(other.right) - self.left.max(other.left);
        let height = self.bottom.min(other.bottom) - self.top.max(other.top);
        width.max(0.0) * height.max(0.0)
    }
}

/// Right, left, above, below the marker, and then the corners, at `distance` times the distance of a
/// marker's label.
pub(crate) fn label_positions(
    [x, y]: [f64; 2],
    width: f64,
    size: f64,
    unit: f64,
    distance: f64,
) -> [(Anchor, [f64; 2], Rectangle); 8] {
    let [near, beside, away] = [6.0, 10.0, 11.0].map(|pixels| pixels * unit * distance);
    let half_cap = CAP_HEIGHT * size / 2.0;
    [
        (Anchor::Start, [x + beside, y + half_cap]),
        (Anchor::End, [x - beside, y + half_cap]),
        (Anchor::Middle, [x, y - away]),
        (Anchor::Middle, [x, y + away + 2.0 * half_cap]),
        (Anchor::Start, [x + near, y - near]),
        (Anchor::Start, [x + near, y + near + 2.0 * half_cap]),
        (Anchor::End, [x - near, y - near]),
        (Anchor::End, [x - near, y + near + 2.0 * half_cap]),
    ]
    .map(|(anchor, at)| {
        let left = match anchor {
            Anchor::Start => at[0],
            Anchor::Middle => at[0] - width / 2.0,
            Anchor::End => at[0] - width,
        };
        let (top, bottom) = (at[1] - 0.8 * size, at[1] + 0.24 * size);
        (anchor, at, Rectangle { left, top, right: left + width, bottom })
    })
}

fn symbol(symbol: Symbol, [x, y]: [f64; 2], palette: &Palette, unit: f64) -> Vec<Item> {
    let stroke = |colour, width: f64| Some(Stroke { colour, width: width * unit, dash: None });
    let item = |lines, fill: Option<Paint>, stroke| Item::Shape(Shape { lines, fill, stroke });
    match symbol {
        Symbol::Dot => {
            let lines = vec![circle([x, y], 4.6 * unit)];
            vec![item(lines, Some(Paint::Plain(palette.mark)), stroke(palette.halo, 1.8))]
        }
        Symbol::Ring => {
            let lines = vec![circle([x, y], 5.4 * unit)];
            vec![
                item(lines.clone(), None, stroke(palette.halo, 4.6)),
                item(lines, None, stroke(palette.mark, 2.2)),
            ]
        }
        Symbol::Cross => {
            let arm = 4.8 * unit;
            let line = |dx: f64, dy: f64| Line {
                points: vec![[x - dx, y - dy], [x + dx, y + dy]],
                closed: false,
            };
            let lines = vec![line(arm, arm), line(arm, -arm)];
            vec![
                item(lines.clone(), None, stroke(palette.halo, 5.2)),
                item(lines, None, stroke(palette.mark, 2.4)),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Contents, Layout};
    use crate::{Projection, Theme};

    #[test]
    fn labels_of_near_markers_do_not_cover_each_other() {
        let at = |latitude, longitude| LatLon::new(latitude, longitude).unwrap();
        let places = [(45.0, 10.0), (44.0, 8.0), (46.0, 12.0), (47.0, 6.0), (0.0, 179.9)];
        let markers = places.map(|(lat, lon)| Marker::new(at(lat, lon)).label("Somewhere"));
        let projection = Projection::EqualEarth;
        let layout = Layout::new(&Contents::bare(projection, 1200));
        let palette = Theme::Day.palette();
        let items = items(&markers, &mut Vec::new(), &layout.frame, &palette, layout.unit);
        let boxes: Vec<Rectangle> = items
            .iter()
            .filter_map(|item| match item {
                Item::Text(text) => {
                    let width = width(&text.text, text.size);
                    let left = match text.anchor {
                        Anchor::Start => text.at[0],
                        Anchor::Middle => text.at[0] - width / 2.0,
                        Anchor::End => text.at[0] - width,
                    };
                    let (top, bottom) = (text.at[1] - 0.7 * text.size, text.at[1]);
                    Some(Rectangle { left, top, right: left + width, bottom })
                }
                _ => None,
            })
            .collect();
        assert_eq!(boxes.len(), 5);
        for (index, one) in boxes.iter().enumerate() {
            assert!(layout.frame.holds(*one));
            for other in &boxes[index + 1..] {
                assert_eq!(one.overlap(*other), 0.0);
            }
        }
    }
}
