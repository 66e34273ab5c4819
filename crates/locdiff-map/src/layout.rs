//! Where everything stands in a picture, and the furniture around the map: title, caption, colour
//! bar.
//!
//! Sizes are given for a picture of the default width and grow with the width, so a picture of twice
//! the width is the same picture at twice the resolution. Below a certain width letters stop
//! shrinking; below [`NARROWEST_WITH_TEXT`] there is only the map.

use crate::clip::Line;
use crate::marks::Rectangle;
use crate::projection::{Plane, Projection};
use crate::scale::{ColourBar, Scale};
use crate::scene::{Anchor, Item, Paint, Shape, Stroke, Text};
use crate::text::{Block, CAP_HEIGHT, width};
use crate::theme::Palette;
use locdiff_sphere::LatLon;

/// A picture narrower than this many pixels has no title, caption, labels or colour bar.
pub(crate) const NARROWEST_WITH_TEXT: u32 = 240;

pub(crate) const TITLE_SIZE: f64 = 20.0;
pub(crate) const CAPTION_SIZE: f64 = 13.0;
pub(crate) const TICK_SIZE: f64 = 12.0;
const BAR_WIDTH: f64 = 280.0;
const BAR_HEIGHT: f64 = 11.0;

/// The rectangle of the map in the picture, and how its plane lies in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) plane: Plane,
    pub(crate) projection: Projection,
    pub(crate) at: [u32; 2],
    pub(crate) size: [u32; 2],
    pub(crate) pixels_per_radius: f64,
}

impl Frame {
    fn middle(&self) -> [f64; 2] {
        [0, 1].map(|axis| f64::from(self.at[axis]) + f64::from(self.size[axis]) / 2.0)
    }

    pub(crate) fn pixel_from_plane(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [middle_x, middle_y] = self.middle();
        [middle_x + x * self.pixels_per_radius, middle_y - y * self.pixels_per_radius]
    }

    pub(crate) fn plane_from_pixel(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [middle_x, middle_y] = self.middle();
        [(x - middle_x) / self.pixels_per_radius, (middle_y - y) / self.pixels_per_radius]
    }

    pub(crate) fn pixel_of(&self, place: LatLon) -> Option<[f64; 2]> {
        self.projection.forward(place).map(|point| self.pixel_from_plane(point))
    }

    /// Whether a label stays over the map's rectangle.
    pub(crate) fn holds(&self, area: Rectangle) -> bool {
        let [left, top] = self.at.map(f64::from);
        let [width, height] = self.size.map(f64::from);
        area.left >= left
            && area.right <= left + width
            && area.top >= top
            && area.bottom <= top + height
    }

    /// Whether all of a name lies on the map, which may be smaller than its rectangle.
    pub(crate) fn shows(&self, area: Rectangle) -> bool {
        let corners = [
            [area.left, area.top],
            [area.right, area.top],
            [area.left, area.bottom],
            [area.right, area.bottom],
        ];
        let is_on_map = |corner| self.plane.inverse(self.plane_from_pixel(corner)).is_some();
        self.holds(area) && corners.into_iter().all(is_on_map)
    }

    /// Lines of the plane on a grid of half pixels. Other than [`Frame::pixels`] it treats a line and
    /// its reverse alike, so that neighbours keep a common border.
    pub(crate) fn snapped(&self, lines: &[Line]) -> Vec<Line> {
        let snap =
            |&point: &[f64; 2]| self.pixel_from_plane(point).map(|part| (part * 2.0).round() / 2.0);
        let snapped = lines.iter().map(|line| {
            let mut points: Vec<[f64; 2]> = line.points.iter().map(snap).collect();
            points.dedup();
            Line { points, closed: line.closed }
        });
        snapped.filter(|line| line.points.len() > 1).collect()
    }

    /// Lines of the plane in pixels, without details that no pixel shows.
    pub(crate) fn pixels(&self, lines: &[Line]) -> Vec<Line> {
        lines.iter().filter_map(|line| self.thinned(line)).collect()
    }

    fn thinned(&self, line: &Line) -> Option<Line> {
        const SMALLEST_STEP: f64 = 0.7;
        let mut points: Vec<[f64; 2]> = Vec::new();
        let last = line.points.len().checked_sub(1)?;
        for (index, &point) in line.points.iter().enumerate() {
            let [x, y] = self.pixel_from_plane(point);
            let near = |p: &[f64; 2]| (p[0] - x).hypot(p[1] - y) < SMALLEST_STEP;
            // The ends of an open line stay, so that pieces still meet.
            if !points.last().is_some_and(near) || (index == last && !line.closed) {
                points.push([x, y]);
            }
        }
        let fewest = if line.closed { 3 } else { 2 };
        (points.len() >= fewest).then_some(Line { points, closed: line.closed })
    }
}

/// What decides about the layout.
pub(crate) struct Contents<'a> {
    pub(crate) projection: Projection,
    pub(crate) width: u32,
    pub(crate) title: &'a str,
    pub(crate) caption: &'a str,
    /// What the colour bar shows and the top of its scale; `None` without one.
    pub(crate) bar: Option<(ColourBar, Scale, f64)>,
    /// The projection of a second map beside the first.
    pub(crate) inset: Option<Projection>,
}

impl Contents<'_> {
    /// Contents of a picture that has a map only.
    #[cfg(test)]
    pub(crate) fn bare(projection: Projection, width: u32) -> Contents<'static> {
        Contents { projection, width, title: "", caption: "", bar: None, inset: None }
    }
}

/// Pixels of a picture unless another size is set, for which sizes are given.
pub(crate) fn design_width(projection: Projection, with_inset: bool) -> u32 {
    match (projection, with_inset) {
        (Projection::Globe { .. } | Projection::Around { .. }, false) => 800,
        (Projection::Globe { .. } | Projection::Around { .. }, true) => 1200,
        (_, false) => 1200,
        (_, true) => 1600,
    }
}

/// The layout of one picture.
pub(crate) struct Layout {
    pub(crate) size: [u32; 2],
    pub(crate) frame: Frame,
    pub(crate) inset: Option<Frame>,
    /// Pixels per design pixel.
    pub(crate) unit: f64,
    margin: f64,
    title: Block,
    caption: Block,
    footer_top: f64,
}

impl Layout {
    pub(crate) fn new(contents: &Contents<'_>) -> Layout {
        let width = f64::from(contents.width);
        let is_globe = matches!(contents.projection, Projection::Globe { .. });
        let with_text = contents.width >= NARROWEST_WITH_TEXT;
        let inset = contents.inset.filter(|_| with_text);
        let design_width = f64::from(design_width(contents.projection, inset.is_some()));
        let unit = if with_text { (width / design_width).max(0.62) } else { width / design_width };
        let margin = (24.0 * unit).round();
        let side = match (is_globe, inset) {
            (true, None) => (0.075 * width).round(),
            (true, Some(_)) => (0.05 * width).round(),
            _ => margin,
        };

        let text_width = width - 2.0 * margin;
        let (mut title, mut caption) = (Block::default(), Block::default());
        let bar = contents.bar.filter(|_| with_text);
        if with_text {
            title = Block::new(contents.title, TITLE_SIZE * unit, text_width);
            let beside_bar =
                if bar.is_some() { bar_width(width, margin, unit) + margin } else { 0.0 };
            caption = Block::new(contents.caption, CAPTION_SIZE * unit, text_width - beside_bar);
        }
        // Without a title the globe keeps the distance to the top that it has to the sides.
        let top = if title.is_empty() { side } else { margin + title.height() + 0.8 * margin };

        let half = contents.projection.half_size();
        let map_width = match inset {
            None => (width - 2.0 * side).max(1.0),
            // Both maps have the same height.
            Some(inset) => {
                let inset_half = inset.half_size();
                let share = 1.0 + inset_half[0] / inset_half[1] * half[1] / half[0];
                ((width - 2.0 * side - margin) / share).floor().max(1.0)
            }
        };
        let pixels_per_radius = map_width / (2.0 * half[0]);
        let map_height = (2.0 * half[1] * pixels_per_radius).round().max(1.0);
        let frame = Frame {
            plane: Plane::new(contents.projection),
            projection: contents.projection,
            at: [side as u32, top.round() as u32],
            size: [map_width as u32, map_height as u32],
            pixels_per_radius,
        };

        let inset = inset.map(|projection| {
            let inset_half = projection.half_size();
            let inset_width = (map_height * inset_half[0] / inset_half[1]).round().max(1.0);
            Frame {
                plane: Plane::new(projection),
                projection,
                at: [(width - margin - inset_width) as u32, top.round() as u32],
                size: [inset_width as u32, map_height as u32],
                pixels_per_radius: map_height / (2.0 * inset_half[1]),
            }
        });

        let map_bottom = top.round() + map_height;
        let bar_block = if bar.is_some() { (12.0 + 8.0 + BAR_HEIGHT + 18.0) * unit } else { 0.0 };
        let footer = caption.height().max(bar_block);
        let gap = if is_globe { side.max(margin) * 0.9 } else { 0.8 * margin };
        let height =
            if footer > 0.0 { map_bottom + gap + footer + margin } else { map_bottom + side };
        Layout {
            size: [contents.width, height.round().max(1.0) as u32],
            frame,
            inset,
            unit,
            margin,
            title,
            caption,
            footer_top: map_bottom + gap,
        }
    }

    /// Title, caption and colour bar.
    pub(crate) fn furniture(&self, contents: &Contents<'_>, palette: &Palette) -> Vec<Item> {
        let margin = self.margin;
        let mut items = self.title.items([margin, margin], Anchor::Start, palette.text);
        let caption_at = [margin, self.footer_top];
        items.extend(self.caption.items(caption_at, Anchor::Start, palette.faint_text));
        if let Some((bar, scale, top)) = contents.bar
            && contents.width >= NARROWEST_WITH_TEXT
        {
            items.extend(self.colour_bar(bar, scale, top, palette));
        }
        items
    }

    fn colour_bar(&self, bar: ColourBar, scale: Scale, top: f64, palette: &Palette) -> Vec<Item> {
        let unit = self.unit;
        let picture_width = f64::from(self.size[0]);
        let length = bar_width(picture_width, self.margin, unit);
        let (right, size) = (picture_width - self.margin, TICK_SIZE * unit);
        let left = right - length;
        let bar_top = self.footer_top + (12.0 + 8.0) * unit;
        let bar_bottom = bar_top + BAR_HEIGHT * unit;
        let text = |at, anchor, colour, text| {
            Item::Text(Text { at, anchor, size, colour, halo: None, text })
        };
        let heading_baseline = self.footer_top + CAP_HEIGHT * size;
        let heading = bar.heading().to_owned();
        let mut items =
            vec![text([left, heading_baseline], Anchor::Start, palette.faint_text, heading)];

        let corners =
            vec![[left, bar_top], [right, bar_top], [right, bar_bottom], [left, bar_bottom]];
        let lines = vec![Line { points: corners, closed: true }];
        let stops = (0..=32).map(|step| f64::from(step) / 32.0);
        let gradient = Paint::Linear {
            from: [left, bar_top],
            to: [right, bar_top],
            stops: stops.map(|position| (position, palette.density(position))).collect(),
        };
        let edge = Stroke { colour: palette.frame, width: 0.8 * unit, dash: None };
        let ground = Some(Paint::Plain(palette.sea));
        items.push(Item::Shape(Shape { lines: lines.clone(), fill: ground, stroke: None }));
        items.push(Item::Shape(Shape { lines, fill: Some(gradient), stroke: Some(edge) }));

        let mut occupied = f64::NEG_INFINITY;
        for (position, label) in bar.ticks(scale, top) {
            let x = left + position * length;
            let half = width(&label, size) / 2.0;
            // Labels stay over the bar's length, and never touch.
            let centre = x.clamp(left + half, (right - half).max(left + half));
            if centre - half < occupied {
                continue;
            }
            occupied = centre + half + 6.0 * unit;
            let tick = vec![[x, bar_bottom], [x, bar_bottom + 4.0 * unit]];
            let lines = vec![Line { points: tick, closed: false }];
            let stroke = Stroke { colour: palette.frame, width: unit, dash: None };
            items.push(Item::Shape(Shape { lines, fill: None, stroke: Some(stroke) }));
            let baseline = bar_bottom + 17.0 * unit;
            items.push(text([centre, baseline], Anchor::Middle, palette.text, label));
        }
        items
    }
}

/// The bar takes at most half of the space between the margins.
fn bar_width(picture_width: f64, margin: f64, unit: f64) -> f64 {
    (BAR_WIDTH * unit).min((picture_width - 2.0 * margin) / 2.0)
}

/// A circle as a polygon with corners too small to be visible.
pub(crate) fn circle([x, y]: [f64; 2], radius: f64) -> Line {
    const CORNERS: usize = 360;
    let corners = if radius > 20.0 { CORNERS } else { CORNERS / 10 };
    let points = (0..corners).map(|corner| {
        let (sin, cos) = (corner as f64 / corners as f64 * std::f64::consts::TAU).sin_cos();
        [x + radius * cos, y + radius * sin]
    });
    Line { points: points.collect(), closed: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inset_lies_on_the_canvas_and_beside_the_map() {
        let centre = LatLon::new(-17.0, 179.9).unwrap();
        let closeup = Projection::Around { centre, radius_km: 20.0 };
        for projection in [
            Projection::EqualEarth,
            Projection::Equirectangular,
            Projection::Globe { centre },
            closeup,
        ] {
            for inset in [closeup, Projection::Globe { centre }, Projection::EqualEarth] {
                for width in [240, 241, 400, 777, 1200, 1601, 8192] {
                    for (title, caption) in [("", ""), ("A title", "A caption")] {
                        let contents = Contents {
                            title,
                            caption,
                            inset: Some(inset),
                            ..Contents::bare(projection, width)
                        };
                        let layout = Layout::new(&contents);
                        let (map, inset) = (layout.frame, layout.inset.unwrap());
                        assert!(map.at[0] + map.size[0] <= inset.at[0]);
                        assert!(inset.at[0] + inset.size[0] < layout.size[0]);
                        assert!(inset.at[1] + inset.size[1] < layout.size[1]);
                        assert_eq!((map.at[1], map.size[1]), (inset.at[1], inset.size[1]));
                    }
                }
            }
        }
        let narrow = Contents { inset: Some(closeup), ..Contents::bare(closeup, 239) };
        assert!(Layout::new(&narrow).inset.is_none());
    }
}
