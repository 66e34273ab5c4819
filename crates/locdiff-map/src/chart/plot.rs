//! From values to pixels: the area between the axes, and the lines in it.

use super::axis::Axis;
use crate::clip::Line;
use crate::marks::Rectangle;

/// The area between the axes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plot {
    pub(crate) area: Rectangle,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl Plot {
    pub(crate) fn x_px(&self, value: f64) -> Option<f64> {
        let (left, right) = (self.area.left, self.area.right);
        self.x.position(value).map(|position| left + position * (right - left))
    }

    pub(crate) fn y_px(&self, value: f64) -> Option<f64> {
        let (top, bottom) = (self.area.top, self.area.bottom);
        self.y.position(value).map(|position| bottom - position * (bottom - top))
    }

    /// The pixel of a point, perhaps outside the area; `None` if an axis has no place for it.
    pub(crate) fn pixel(&self, (x, y): (f64, f64)) -> Option<[f64; 2]> {
        Some([self.x_px(x)?, self.y_px(y)?])
    }

    /// Whether a point is within both axes.
    pub(crate) fn shows(&self, (x, y): (f64, f64)) -> bool {
        self.x.shows(x) && self.y.shows(y)
    }

    /// The visible parts of a line through the points, interrupted where a point has no place. A
    /// point without neighbours is a line of one point.
    pub(crate) fn lines(&self, points: &[(f64, f64)]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut run = Vec::new();
        let mut finish = |run: &mut Vec<[f64; 2]>| {
            lines.extend(clipped(&thinned(run), self.area));
            run.clear();
        };
        for point in points {
            match self.pixel(*point) {
                Some(pixel) => run.push(pixel),
                None => finish(&mut run),
            }
        }
        finish(&mut run);
        lines
    }
}

/// At most four points for each column of pixels that the line passes: where it enters and leaves,
/// its highest and its lowest point. What is drawn stays the same.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let mut kept: Vec<[f64; 2]> = Vec::new();
    let same_column = |a: &[f64; 2], b: &[f64; 2]| a[0].floor() == b[0].floor();
    for column in points.chunk_by(same_column) {
        let last = column.len() - 1;
        let by_height = |a: &usize, b: &usize| column[*a][1].total_cmp(&column[*b][1]);
        let highest = (0..=last).min_by(by_height).unwrap_or(0);
        let lowest = (0..=last).max_by(by_height).unwrap_or(0);
        let mut indices = [0, highest.min(lowest), highest.max(lowest), last].to_vec();
        indices.dedup();
        kept.extend(indices.into_iter().map(|index| column[index]));
    }
    kept
}

/// The parts of a line inside the area.
fn clipped(points: &[[f64; 2]], area: Rectangle) -> Vec<Line> {
    if let [point] = points {
        let [x, y] = *point;
        let inside = within(x, area.left, area.right) && within(y, area.top, area.bottom);
        return if inside { vec![Line { points: vec![*point], closed: false }] } else { vec![] };
    }
    let mut lines: Vec<Line> = Vec::new();
    for pair in points.windows(2) {
        let Some([from, to]) = clipped_segment(pair[0], pair[1], area) else { continue };
        match lines.last_mut() {
            Some(line) if line.points.last() == Some(&from) => line.points.push(to),
            _ => lines.push(Line { points: vec![from, to], closed: false }),
        }
    }
    lines
}

fn within(value: f64, low: f64, high: f64) -> bool {
    (low - 1e-6..=high + 1e-6).contains(&value)
}

/// Liang and Barsky: the part of a segment inside a rectangle. Ends inside are kept exactly.
fn clipped_segment(a: [f64; 2], b: [f64; 2], area: Rectangle) -> Option<[[f64; 2]; 2]> {
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    let limits = [[area.left, area.right], [area.top, area.bottom]];
    for axis in 0..2 {
        let step = b[axis] - a[axis];
        let [low, high] = limits[axis].map(|limit| limit - a[axis]);
        if step == 0.0 {
            if low > 1e-6 || high < -1e-6 {
                return None;
            }
        } else {
            let (first, second) = (low / step, high / step);
            enter = enter.max(first.min(second));
            leave = leave.min(first.max(second));
        }
    }
    let at = |share: f64| [0, 1].map(|axis| a[axis] + share * (b[axis] - a[axis]));
    let from = if enter <= 0.0 { a } else { at(enter) };
    let to = if leave >= 1.0 { b } else { at(leave) };
    (enter <= leave).then_some([from, to])
}

#[cfg(test)]
mod tests {
    use super::super::axis::Spacing;
    use super::*;
    use proptest::prelude::*;

    fn plot(width: f64, height: f64) -> Plot {
        let axis = |high| Axis { spacing: Spacing::Linear, low: 0.0, high };
        let area = Rectangle { left: 0.0, top: 0.0, right: width, bottom: height };
        Plot { area, x: axis(1.0), y: axis(1.0) }
    }

    #[test]
    fn thinning_keeps_extremes_and_is_small() {
        let plot = plot(300.0, 200.0);
        let noise = |index: u32| f64::from(index.wrapping_mul(2_654_435_761) >> 16) / 65_536.0;
        let mut points: Vec<(f64, f64)> =
            (0..100_000).map(|i| (f64::from(i) / 1e5, 0.2 + 0.5 * noise(i))).collect();
        points[33_333].1 = 0.97;
        points[77_777].1 = 0.03;
        let lines = plot.lines(&points);
        assert_eq!(lines.len(), 1);
        let drawn = &lines[0].points;
        assert!(drawn.len() <= 4 * 301 && drawn.len() > 600);
        for index in [0, 33_333, 77_777, 99_999] {
            let pixel = plot.pixel(points[index]).unwrap();
            assert!(drawn.contains(&pixel), "{index}");
        }
    }

    #[test]
    fn gaps_stay_gaps() {
        let plot = plot(100.0, 100.0);
        let nan = f64::NAN;
        let points = [(0.0, 0.5), (0.1, 0.5), (0.2, nan), (0.3, 0.5), (0.4, nan), (nan, 0.5)];
        let counts: Vec<usize> = plot.lines(&points).iter().map(|line| line.points.len()).collect();
        assert_eq!(counts, [2, 1]);
        assert!(plot.lines(&[]).is_empty());
        assert!(plot.lines(&[(0.5, 2.0)]).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_drawn_is_inside(points in prop::collection::vec((-3.0..4.0f64, -3.0..4.0f64), 0..40)) {
            let plot = plot(100.0, 60.0);
            for line in plot.lines(&points) {
                for [x, y] in line.points {
                    prop_assert!(within(x, 0.0, 100.0) && within(y, 0.0, 60.0), "{x} {y}");
                }
            }
        }
    }
}
