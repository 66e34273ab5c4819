//! Where everything stands in a chart, and the furniture around the area: axes, names, texts.
//!
//! Sizes are given for a chart of the default width and grow with the width, as those of maps. A chart
//! that is too small for texts is drawn without.

use super::axis::Axis;
use super::legend::{Entry, Legend};
use super::plot::Plot;
use super::ticks::{Tick, ticks};
use crate::clip::Line;
use crate::layout::{CAPTION_SIZE, NARROWEST_WITH_TEXT, TICK_SIZE, TITLE_SIZE};
use crate::marks::Rectangle;
use crate::scene::{Anchor, Colour, Item, Shape, Stroke, Text};
use crate::text::{Block, CAP_HEIGHT, width};
use crate::theme::Palette;

/// Pixels per design pixel.
pub(crate) fn unit([width, _]: [u32; 2]) -> f64 {
    let share = f64::from(width) / f64::from(super::DEFAULT_WIDTH_PX);
    if width >= NARROWEST_WITH_TEXT { share.max(0.62) } else { share }
}

/// What decides about the layout.
pub(crate) struct Contents<'a> {
    pub(crate) size: [u32; 2],
    pub(crate) title: &'a str,
    pub(crate) caption: &'a str,
    pub(crate) x_name: &'a str,
    pub(crate) y_name: &'a str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) entries: &'a [Entry],
}

/// The layout of one chart.
pub(crate) struct Layout<'a> {
    pub(crate) plot: Plot,
    size: [f64; 2],
    unit: f64,
    margin: f64,
    texts: Option<Texts<'a>>,
}

/// What is written around the area.
struct Texts<'a> {
    title: Block,
    caption: Block,
    x_name: Block,
    y_name: Block,
    y_name_top: f64,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    legend: Legend<'a>,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(contents: &Contents<'a>) -> Layout<'a> {
        let with_texts =
            Layout::with_texts(contents).filter(|_| contents.size[0] >= NARROWEST_WITH_TEXT);
        with_texts.unwrap_or_else(|| {
            let [width, height] = contents.size.map(f64::from);
            let margin = (0.03 * width.min(height)).round();
            let area = Rectangle {
                left: margin,
                top: margin,
                right: (width - margin).max(margin + 1.0),
                bottom: (height - margin).max(margin + 1.0),
            };
            let plot = Plot { area, x: contents.x, y: contents.y };
            Layout { plot, size: [width, height], unit: unit(contents.size), margin, texts: None }
        })
    }

    /// `None` if too little is left for the area.
    fn with_texts(contents: &Contents<'a>) -> Option<Layout<'a>> {
        let unit = unit(contents.size);
        let [picture_width, picture_height] = contents.size.map(f64::from);
        let margin = (24.0 * unit).round();
        let inner = picture_width - 2.0 * margin;
        let title = Block::new(contents.title, TITLE_SIZE * unit, inner);
        let caption = Block::new(contents.caption, CAPTION_SIZE * unit, inner);
        let x_name = Block::new(contents.x_name, CAPTION_SIZE * unit, inner);
        let y_name = Block::new(contents.y_name, CAPTION_SIZE * unit, inner);

        // From the top.
        let mut top = margin;
        if !title.is_empty() {
            top += title.height() + 20.0 * unit;
        }
        let y_name_top = top;
        if !y_name.is_empty() {
            top += y_name.height() + 14.0 * unit;
        }
        // From the bottom.
        let mut below = margin + (9.0 + CAP_HEIGHT * TICK_SIZE) * unit;
        if !x_name.is_empty() {
            below += 11.0 * unit + x_name.height();
        }
        if !caption.is_empty() {
            below += 20.0 * unit + caption.height();
        }
        let bottom = picture_height - below;
        if bottom - top < 50.0 * unit {
            return None;
        }

        let at_most = ((bottom - top) / (44.0 * unit)) as usize;
        let y_ticks = ticks(&contents.y, at_most.clamp(3, 8));
        let tick_width = |tick: &Tick| width(&tick.label, TICK_SIZE * unit);
        let left = margin + y_ticks.iter().map(tick_width).fold(0.0, f64::max) + 9.0 * unit;
        let legend = Legend::new(contents.entries, unit, [0.32 * picture_width, bottom - top]);
        let right = picture_width - margin - legend.width();
        if right - left < 80.0 * unit {
            return None;
        }
        // Lines on whole pixels are sharp.
        let area = Rectangle {
            left: left.round(),
            top: top.round(),
            right: right.round(),
            bottom: bottom.round(),
        };
        let plot = Plot { area, x: contents.x, y: contents.y };
        let mut layout =
            Layout { plot, size: [picture_width, picture_height], unit, margin, texts: None };
        let at_most = ((area.right - area.left) / (64.0 * unit)) as usize;
        // As many labels as don't touch; none if not even two have room.
        let x_ticks = (2..=at_most.clamp(2, 12))
            .rev()
            .map(|at_most| ticks(&contents.x, at_most))
            .find(|ticks| layout.x_labels(ticks).is_some())
            .unwrap_or_default();
        layout.texts =
            Some(Texts { title, caption, x_name, y_name, y_name_top, x_ticks, y_ticks, legend });
        Some(layout)
    }

    /// The middle of each label on the x axis, inside the picture; `None` if labels would touch.
    fn x_labels(&self, ticks: &[Tick]) -> Option<Vec<(f64, String)>> {
        let mut occupied = f64::NEG_INFINITY;
        let mut labels = Vec::new();
        for tick in ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let half = width(&tick.label, TICK_SIZE * self.unit) / 2.0;
            let (low, high) = (0.3 * self.margin + half, self.size[0] - 0.3 * self.margin - half);
            let middle = self.plot.x_px(tick.value)?.min(high).max(low);
            if middle - half < occupied {
                return None;
            }
            occupied = middle + half + 12.0 * self.unit;
            labels.push((middle, tick.label.clone()));
        }
        Some(labels)
    }

    /// What lies under the data: the lines at round numbers.
    pub(crate) fn grid(&self, palette: &Palette) -> Vec<Item> {
        let Some(texts) = &self.texts else { return Vec::new() };
        let area = self.plot.area;
        let with_label = |tick: &&Tick| !tick.label.is_empty();
        let columns = texts.x_ticks.iter().filter(with_label);
        let columns = columns.filter_map(|tick| self.plot.x_px(tick.value));
        let rows = texts.y_ticks.iter().filter(with_label);
        let rows = rows.filter_map(|tick| self.plot.y_px(tick.value));
        let lines = columns
            .map(|x| segment([sharp(x), area.top], [sharp(x), area.bottom]))
            .chain(rows.map(|y| segment([area.left, sharp(y)], [area.right, sharp(y)])));
        vec![stroked(lines.collect(), palette.graticule, self.unit)]
    }

    /// What lies over the data: axes, numbers, names and texts.
    pub(crate) fn furniture(&self, palette: &Palette) -> Vec<Item> {
        let (area, unit) = (self.plot.area, self.unit);
        let corner = [sharp(area.left), sharp(area.bottom)];
        let axes =
            vec![segment([corner[0], area.top], corner), segment(corner, [area.right, corner[1]])];
        let mut items = vec![stroked(axes, palette.frame, unit)];
        let Some(texts) = &self.texts else { return items };

        let length = |tick: &Tick| if tick.label.is_empty() { 2.5 * unit } else { 5.0 * unit };
        let x_marks = texts.x_ticks.iter().filter_map(|tick| {
            let x = sharp(self.plot.x_px(tick.value)?);
            Some(segment([x, corner[1]], [x, corner[1] + length(tick)]))
        });
        let y_marks = texts.y_ticks.iter().filter_map(|tick| {
            let y = sharp(self.plot.y_px(tick.value)?);
            Some(segment([corner[0] - length(tick), y], [corner[0], y]))
        });
        items.push(stroked(x_marks.chain(y_marks).collect(), palette.frame, unit));

        let size = TICK_SIZE * unit;
        let text = |at, anchor, text| {
            let colour = palette.text;
            Item::Text(Text { at, anchor, size, colour, halo: None, text })
        };
        let baseline = area.bottom + 9.0 * unit + CAP_HEIGHT * size;
        let x_labels = self.x_labels(&texts.x_ticks).unwrap_or_default();
        items.extend(
            x_labels.into_iter().map(|(x, label)| text([x, baseline], Anchor::Middle, label)),
        );
        for tick in texts.y_ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let Some(y) = self.plot.y_px(tick.value) else { continue };
            let at = [area.left - 9.0 * unit, y + CAP_HEIGHT * size / 2.0];
            items.push(text(at, Anchor::End, tick.label.clone()));
        }

        let margin = self.margin;
        let faint = palette.faint_text;
        items.extend(texts.title.items([margin, margin], Anchor::Start, palette.text));
        items.extend(texts.y_name.items([margin, texts.y_name_top], Anchor::Start, faint));
        let x_name_at = [(area.left + area.right) / 2.0, baseline + 11.0 * unit];
        items.extend(texts.x_name.items(x_name_at, Anchor::Middle, faint));
        let caption_top = self.size[1] - margin - texts.caption.height();
        items.extend(texts.caption.items([margin, caption_top], Anchor::Start, faint));
        items.extend(texts.legend.items(area, palette));
        items
    }
}

/// The middle of a pixel.
fn sharp(place: f64) -> f64 {
    place.floor() + 0.5
}

fn segment(from: [f64; 2], to: [f64; 2]) -> Line {
    Line { points: vec![from, to], closed: false }
}

fn stroked(lines: Vec<Line>, colour: Colour, width: f64) -> Item {
    let stroke = Some(Stroke { colour, width, dash: None });
    Item::Shape(Shape { lines, fill: None, stroke })
}
