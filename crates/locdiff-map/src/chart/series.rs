//! A series of points, and how it looks in a chart.

use super::plot::Plot;
use crate::clip::Line;
use crate::layout::circle;
use crate::scene::{Colour, Item, Paint, Shape, Stroke};
use crate::theme::Palette;

/// What is drawn for the points of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Line,
    Points,
    Both,
}

/// Points with a name, for a [`Chart`](crate::Chart).
///
/// Points with a coordinate that is no number, or none of the axis (a zero on a logarithmic one),
/// are left out and interrupt the line.
///
/// ```
/// use locdiff_map::{Chart, Series};
///
/// let recall = Series::points("recall", [(1.0, 0.31), (25.0, 0.52)]).error_bars([(0.28, 0.34), (0.49, 0.55)]);
/// let picture = Chart::new("distance, km", "share").log_x().series(recall.joined()).draw();
/// # assert!(picture.svg().contains("recall"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Low and high end of the bar at the point of the same index.
    pub(crate) bars: Vec<(f64, f64)>,
    form: Form,
}

impl Series {
    /// A line through the points, in the given order.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        let points = points.into_iter().collect();
        Series { name: name.into(), points, bars: Vec::new(), form: Form::Line }
    }

    /// A marker at each point.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series { form: Form::Points, ..Series::line(name, points) }
    }

    /// Markers and a line through them. Where points are dense, not each has a marker.
    #[must_use]
    pub fn joined(self) -> Series {
        Series { form: Form::Both, ..self }
    }

    /// The lower and the upper end of an interval for each point, in the order of the points.
    #[must_use]
    pub fn error_bars(self, bars: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series { bars: bars.into_iter().collect(), ..self }
    }

    /// Everything that the y axis should show.
    pub(crate) fn heights(&self) -> impl Iterator<Item = f64> {
        let bars = self.points.iter().zip(&self.bars).flat_map(|(_, bar)| [bar.0, bar.1]);
        self.points.iter().map(|point| point.1).chain(bars)
    }

    pub(crate) fn has_line(&self) -> bool {
        self.form != Form::Points
    }

    pub(crate) fn has_markers(&self) -> bool {
        self.form != Form::Line
    }

    /// Where the last visible point is.
    pub(crate) fn end(&self, plot: &Plot) -> Option<[f64; 2]> {
        let visible = self.points.iter().rev().find(|point| plot.shows(**point))?;
        plot.pixel(*visible)
    }

    pub(crate) fn items(&self, plot: &Plot, look: &Look) -> Vec<Item> {
        let mut items = Vec::new();
        let marked = if self.has_markers() { self.marked(plot, look.unit) } else { Vec::new() };
        let with_bars: &mut dyn Iterator<Item = usize> = if self.has_markers() {
            &mut marked.iter().copied()
        } else {
            &mut (0..self.points.len())
        };
        let bars = with_bars
            .filter_map(|index| self.bar(index, plot, 3.2 * look.unit))
            .flatten()
            .collect();
        items.push(look.stroked(bars, 1.3, None));
        if self.has_line() {
            let (lines, dots): (Vec<Line>, Vec<Line>) =
                plot.lines(&self.points).into_iter().partition(|line| line.points.len() > 1);
            // Noise that fills whole areas looks heavy.
            let area = plot.area;
            let is_noise = length(&lines) > 4.0 * (area.right - area.left + area.bottom - area.top);
            let width = if is_noise { 0.6 * LINE_WIDTH } else { LINE_WIDTH };
            items.push(look.stroked(lines, width, look.dash));
            if !self.has_markers() {
                let dots = dots.iter().filter_map(|line| line.points.first());
                items.extend(dots.map(|at| look.filled(circle(*at, 3.2 * look.unit))));
            }
        }
        let pixels = marked.iter().filter_map(|&index| plot.pixel(self.points[index]));
        items.extend(look.markers(&pixels.collect::<Vec<_>>()));
        items
    }

    /// The points with a marker: of those that nobody could tell apart, one; along a line, only as
    /// many as don't touch.
    fn marked(&self, plot: &Plot, unit: f64) -> Vec<usize> {
        let visible: Vec<(usize, [f64; 2])> = (0..)
            .zip(&self.points)
            .filter(|(_, point)| plot.shows(**point))
            .filter_map(|(index, point)| Some((index, plot.pixel(*point)?)))
            .collect();
        let mut taken = std::collections::HashSet::new();
        let mut last: Option<[f64; 2]> = None;
        let far = |[x, y]: [f64; 2], [a, b]: [f64; 2]| (x - a).hypot(y - b) > 9.0 * unit;
        let stride = match self.form {
            Form::Both => visible.len().div_ceil(MOST_ON_LINE).max(1),
            _ => 1,
        };
        let mut marked = Vec::new();
        for (index, pixel) in visible.into_iter().step_by(stride) {
            let fresh = match self.form {
                Form::Both => last.is_none_or(|last| far(last, pixel)),
                _ => taken.insert(pixel.map(|part| (part / (1.5 * unit)).round() as i64)),
            };
            if fresh {
                last = Some(pixel);
                marked.push(index);
            }
        }
        marked
    }

    /// The bar of a point, with short lines across those ends that are on the axis.
    fn bar(&self, index: usize, plot: &Plot, half: f64) -> Option<Vec<Line>> {
        let (low, high) = self.bars.get(index)?;
        let (x, _) = self.points.get(index).filter(|point| plot.shows(**point))?;
        let area = plot.area;
        let x = plot.x_px(*x)?;
        let ends = [plot.y_px(*low)?, plot.y_px(*high)?];
        let line = |from, to| Line { points: vec![from, to], closed: false };
        let [bottom, top] = ends.map(|y| y.clamp(area.top, area.bottom));
        let caps = ends.into_iter().filter(|y| (area.top..=area.bottom).contains(y));
        let caps = caps.map(|y| line([x - half, y], [x + half, y]));
        Some(std::iter::once(line([x, bottom], [x, top])).chain(caps).collect())
    }
}

/// How many pixels a pen goes along the lines.
fn length(lines: &[Line]) -> f64 {
    let steps = lines.iter().flat_map(|line| line.points.windows(2));
    steps.map(|pair| (pair[0][0] - pair[1][0]).hypot(pair[0][1] - pair[1][1])).sum()
}

pub(crate) const LINE_WIDTH: f64 = 2.0;
const MARKER_RADIUS: f64 = 4.2;
/// A cloud of more points than this is drawn as small dots, in one stroke.
const CROWD: usize = 500;
/// A line has at most this many markers.
const MOST_ON_LINE: usize = 200;

/// How the n-th series of a chart is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) colour: Colour,
    pub(crate) dash: Option<[f64; 2]>,
    /// Which of the forms of markers.
    shape: usize,
    is_crowd: bool,
    halo: Colour,
    /// Pixels per design pixel.
    pub(crate) unit: f64,
}

impl Look {
    /// Series differ by colour and, for those who don't see colours or print in grey, by the
    /// pattern of a line or the form of a marker. No two of the first twelve look the same.
    pub(crate) fn of(index: usize, series: &Series, palette: &Palette, unit: f64) -> Look {
        let patterns = [None, Some([7.0, 5.0]), Some([1.0, 4.5]), Some([14.0, 5.0])];
        let colours = palette.series.len();
        Look {
            colour: palette.series[index % colours],
            dash: match series.has_markers() {
                true => None,
                false => patterns[index % patterns.len()].map(|dash| dash.map(|l| l * unit)),
            },
            shape: (index + index / colours) % 6,
            is_crowd: series.form == Form::Points && series.points.len() > CROWD,
            halo: palette.background,
            unit,
        }
    }

    /// The look of a line to compare with.
    pub(crate) fn of_reference(palette: &Palette, unit: f64) -> Look {
        let dash = Some([4.0 * unit, 4.0 * unit]);
        Look {
            colour: palette.faint_text,
            dash,
            shape: 0,
            is_crowd: false,
            halo: palette.background,
            unit,
        }
    }

    pub(crate) fn stroked(&self, lines: Vec<Line>, width: f64, dash: Option<[f64; 2]>) -> Item {
        let stroke = Some(Stroke { colour: self.colour, width: width * self.unit, dash });
        Item::Shape(Shape { lines, fill: None, stroke })
    }

    fn filled(&self, line: Line) -> Item {
        let fill = Some(Paint::Plain(self.colour));
        Item::Shape(Shape { lines: vec![line], fill, stroke: None })
    }

    /// Markers at these pixels.
    pub(crate) fn markers(&self, pixels: &[[f64; 2]]) -> Vec<Item> {
        if !self.is_crowd {
            return pixels.iter().map(|at| self.marker(*at)).collect();
        }
        // The round ends of a very short line are a dot. One path, so that the file stays small.
        let dot = |&[x, y]: &[f64; 2]| Line { points: vec![[x, y], [x + 0.02, y]], closed: false };
        vec![self.stroked(pixels.iter().map(dot).collect(), 3.2, None)]
    }

    /// A marker with a halo, so that overlapping ones can be told apart. All have about one area.
    fn marker(&self, [x, y]: [f64; 2]) -> Item {
        let radius = MARKER_RADIUS * self.unit;
        let polygon = |corners: &[[f64; 2]]| {
            let points = corners.iter().map(|[dx, dy]| [x + dx * radius, y + dy * radius]);
            Line { points: points.collect(), closed: true }
        };
        let line = match self.shape {
            0 => {
                let angles = (0..20).map(|corner| f64::from(corner) / 20.0 * std::f64::consts::TAU);
                polygon(&angles.map(|angle| [angle.cos(), angle.sin()]).collect::<Vec<_>>())
            }
            1 => polygon(&[[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]]),
            2 => polygon(&[[0.0, -1.3], [1.2, 0.85], [-1.2, 0.85]]),
            3 => polygon(&[[0.0, -1.35], [1.1, 0.0], [0.0, 1.35], [-1.1, 0.0]]),
            4 => polygon(&[[0.0, 1.3], [1.2, -0.85], [-1.2, -0.85]]),
            _ => {
                let (arm, half) = (1.25, 0.45);
                let quarter = [[-half, -arm], [half, -arm], [half, -half]];
                let turned = |[x, y]: [f64; 2]| [-y, x];
                let corners = (0..4).flat_map(|turns| {
                    quarter.map(|corner| (0..turns).fold(corner, |corner, _| turned(corner)))
                });
                polygon(&corners.collect::<Vec<_>>())
            }
        };
        let stroke = Some(Stroke { colour: self.halo, width: self.unit, dash: None });
        Item::Shape(Shape { lines: vec![line], fill: Some(Paint::Plain(self.colour)), stroke })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Theme;

    #[test]
    fn twelve_series_look_different() {
        let palette = Theme::Day.palette();
        for series in [Series::line("", []), Series::points("", [])] {
            let looks: Vec<Look> =
                (0..12).map(|index| Look::of(index, &series, &palette, 1.0)).collect();
            for (index, a) in looks.iter().enumerate() {
                for b in &looks[index + 1..] {
                    let form = |look: &Look| if series.has_line() { 0 } else { look.shape };
                    assert!(a.colour != b.colour || a.dash != b.dash || form(a) != form(b));
                }
            }
        }
    }
}
