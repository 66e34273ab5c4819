//! Names of series: at the ends of their lines if there is room, else in a list. Both stand to the
//! right of the area, where no data is.

use super::series::{LINE_WIDTH, Look};
use crate::clip::Line;
use crate::marks::Rectangle;
use crate::scene::{Anchor, Item};
use crate::text::Block;
use crate::theme::Palette;

/// More names than this stand in a list.
const MOST_AT_ENDS: usize = 6;
const TEXT_SIZE: f64 = 13.0;
/// In design pixels: from the area to the sign of a series, the sign itself, from it to the name.
const DISTANCE: f64 = 6.0;
const LEADER: f64 = 20.0;
const SWATCH: f64 = 28.0;
const BESIDE: f64 = 6.0;
/// Between names below each other.
const BETWEEN: f64 = 9.0;

/// A name and what it stands for.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) look: Look,
    pub(crate) has_line: bool,
    pub(crate) has_markers: bool,
    /// Where the line ends, as shares of the area from its left and its top.
    pub(crate) end: Option<[f64; 2]>,
}

/// The names, laid out.
pub(crate) struct Legend<'a> {
    entries: &'a [Entry],
    names: Vec<Block>,
    unit: f64,
    at_ends: bool,
}

impl<'a> Legend<'a> {
    /// `width` and `height` are what the legend may take.
    pub(crate) fn new(entries: &'a [Entry], unit: f64, [width, height]: [f64; 2]) -> Legend<'a> {
        let limit = width - (DISTANCE + SWATCH + BESIDE) * unit;
        let name = |entry: &Entry| Block::new(&entry.name, TEXT_SIZE * unit, limit);
        let names = entries.iter().map(name).collect();
        let mut legend = Legend { entries, names, unit, at_ends: false };
        legend.at_ends = legend.fits_at_ends(height);
        legend
    }

    fn heights(&self) -> Vec<f64> {
        self.names.iter().map(Block::height).collect()
    }

    /// All lines end at the right edge, and no name has to go far from its line.
    fn fits_at_ends(&self, height: f64) -> bool {
        let ends: Option<Vec<f64>> = self
            .entries
            .iter()
            .map(|entry| {
                let [x, y] = entry.end.filter(|_| entry.has_line)?;
                (x > 0.95).then_some(y * height)
            })
            .collect();
        let Some(ends) = ends.filter(|ends| ends.len() <= MOST_AT_ENDS) else { return false };
        let gap = BETWEEN * self.unit;
        let heights = self.heights();
        let needed: f64 = heights.iter().map(|height| height + gap).sum();
        let places = spread(&ends, &heights, gap, [0.0, height]);
        needed <= height
            && ends.iter().zip(places).all(|(end, place)| (end - place).abs() < 0.3 * height)
    }

    /// How much of the picture's width it takes.
    pub(crate) fn width(&self) -> f64 {
        let longest = self.names.iter().map(Block::width).fold(0.0, f64::max);
        let sign = if self.at_ends { LEADER } else { SWATCH };
        let before = (DISTANCE + sign + BESIDE) * self.unit;
        if self.names.is_empty() { 0.0 } else { before + longest }
    }

    pub(crate) fn items(&self, area: Rectangle, palette: &Palette) -> Vec<Item> {
        if self.at_ends { self.items_at_ends(area, palette) } else { self.list(area, palette) }
    }

    fn items_at_ends(&self, area: Rectangle, palette: &Palette) -> Vec<Item> {
        let unit = self.unit;
        let height = area.bottom - area.top;
        let ends: Vec<f64> = self
            .entries
            .iter()
            .map(|entry| area.top + entry.end.map_or(0.0, |[_, y]| y * height))
            .collect();
        let range = [area.top, area.bottom];
        let places = spread(&ends, &self.heights(), BETWEEN * unit, range);
        let mut items = Vec::new();
        for (index, (entry, name)) in self.entries.iter().zip(&self.names).enumerate() {
            let (end, place) = (ends[index], places[index]);
            let left = area.right + DISTANCE * unit;
            let right = left + LEADER * unit;
            // From the end of the line itself, which may lie a little inside.
            let inside = entry.end.map_or(0.0, |[x, _]| (1.0 - x) * (area.right - area.left));
            let points = vec![[left - inside, end], [right, place]];
            let leader = vec![Line { points, closed: false }];
            items.push(entry.look.stroked(leader, 1.4, None));
            let at = [right + BESIDE * unit, place - name.height() / 2.0];
            items.extend(name.items(at, Anchor::Start, palette.text));
        }
        items
    }

    fn list(&self, area: Rectangle, palette: &Palette) -> Vec<Item> {
        let unit = self.unit;
        let left = area.right + 2.0 * DISTANCE * unit;
        let right = left + SWATCH * unit - DISTANCE * unit;
        let text_left = right + BESIDE * unit;
        let mut top = area.top;
        let mut items = Vec::new();
        for (index, (entry, name)) in self.entries.iter().zip(&self.names).enumerate() {
            let is_last = index + 1 == self.entries.len();
            let room_after = if is_last { 0.0 } else { (TEXT_SIZE + BETWEEN) * unit };
            if top + name.height() + room_after > area.bottom + unit {
                let more = format!("… {} more", self.entries.len() - index);
                let more = Block::new(&more, TEXT_SIZE * unit, f64::INFINITY);
                items.extend(more.items([text_left, top], Anchor::Start, palette.faint_text));
                break;
            }
            let middle = top + 0.36 * TEXT_SIZE * unit;
            if entry.has_line {
                let points = vec![[left, middle], [right, middle]];
                let line = vec![Line { points, closed: false }];
                items.push(entry.look.stroked(line, LINE_WIDTH, entry.look.dash));
            }
            if entry.has_markers {
                items.extend(entry.look.markers(&[[(left + right) / 2.0, middle]]));
            }
            items.extend(name.items([text_left, top], Anchor::Start, palette.text));
            top += name.height() + BETWEEN * unit;
        }
        items
    }
}

/// Middles of boxes with these heights that overlap nowhere, keep the order of the wanted middles and
/// are as near to them as can be (least squares, by pooling neighbours that are in each other's way).
fn spread(wanted: &[f64], heights: &[f64], gap: f64, [top, bottom]: [f64; 2]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // With the boxes above taken away, the order is all that is left to respect.
    let mut offsets = vec![0.0; wanted.len()];
    let mut above = 0.0;
    for &index in &order {
        offsets[index] = above + heights[index] / 2.0;
        above += heights[index] + gap;
    }
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &index in &order {
        let mut pool = (wanted[index] - offsets[index], 1);
        while let Some(&(mean, count)) = pools.last().filter(|(mean, _)| *mean > pool.0) {
            let total = mean * count as f64 + pool.0 * pool.1 as f64;
            pool = (total / (count + pool.1) as f64, count + pool.1);
            pools.pop();
        }
        pools.push(pool);
    }
    let highest_start = (bottom - (above - gap)).max(top);
    let starts = pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count));
    let mut middles = vec![0.0; wanted.len()];
    for (&index, start) in order.iter().zip(starts) {
        middles[index] = start.clamp(top, highest_start) + offsets[index];
    }
    middles
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_with_room_stay_where_they_are() {
        assert_eq!(spread(&[50.0, 20.0], &[10.0, 10.0], 4.0, [0.0, 100.0]), [50.0, 20.0]);
        // Two at one place share it.
        assert_eq!(spread(&[50.0, 50.0], &[10.0, 10.0], 4.0, [0.0, 100.0]), [43.0, 57.0]);
        assert_eq!(spread(&[0.0, 0.0], &[10.0, 10.0], 4.0, [0.0, 100.0]), [5.0, 19.0]);
    }

    proptest! {
        #[test]
        fn names_never_overlap(names in prop::collection::vec((0.0..300.0f64, 5.0..30.0f64), 0..7)) {
            let (wanted, heights): (Vec<f64>, Vec<f64>) = names.into_iter().unzip();
            let middles = spread(&wanted, &heights, 4.0, [0.0, 300.0]);
            for (index, middle) in middles.iter().enumerate() {
                let half = heights[index] / 2.0;
                prop_assert!(*middle > half - 1e-9 && *middle < 300.0 - half + 1e-9);
                for other in 0..index {
                    let apart = half + heights[other] / 2.0 + 4.0;
                    prop_assert!((middle - middles[other]).abs() > apart - 1e-9);
                }
            }
        }
    }
}
