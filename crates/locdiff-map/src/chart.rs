//! Charts of one quantity over another: training logs, error over budget, reliability.

mod axis;
mod layout;
mod legend;
mod plot;
mod series;
mod ticks;

pub use series::Series;

use crate::picture::Picture;
use crate::scene::{Anchor, Item, Scene, Text};
use crate::theme::Theme;
use axis::{Axis, Ends, Spacing, ends};
use layout::{Contents, Layout};
use legend::Entry;
use plot::Plot;
use series::Look;
use std::ops::RangeBounds;

/// The width at which letters have their design size.
const DEFAULT_WIDTH_PX: u32 = 800;

/// A description of a chart: series of points over two axes.
///
/// ```
/// use locdiff_map::Chart;
///
/// let loss = (1..1000).map(|step| (f64::from(step), 9.0 / f64::from(step).sqrt()));
/// let png = Chart::new("steps", "loss").line("train", loss).log_x().draw().png();
/// # assert!(png.starts_with(b"\x89PNG"));
/// ```
///
/// Names of series stand at the ends of their lines where there is room, else in a list to the right.
/// A chart without any point that can be shown is drawn with its axes and a note.
#[derive(Debug, Clone)]
pub struct Chart {
    x: AxisDescription,
    y: AxisDescription,
    series: Vec<Series>,
    references: Vec<(String, Reference)>,
    size: [Option<u32>; 2],
    theme: Theme,
    title: String,
    caption: String,
}

#[derive(Debug, Clone)]
struct AxisDescription {
    name: String,
    spacing: Spacing,
    ends: Ends,
}

/// A line to compare with.
#[derive(Debug, Clone, Copy)]
enum Reference {
    Diagonal,
    Horizontal(f64),
}

impl Chart {
    /// The largest width and height that are drawn.
    pub const MAX_SIZE_PX: u32 = 8192;

    /// An empty chart of 800 × 480 pixels in the day theme, with linear axes of these names.
    pub fn new(x_name: impl Into<String>, y_name: impl Into<String>) -> Chart {
        let axis = |name| AxisDescription { name, spacing: Spacing::Linear, ends: [None, None] };
        Chart {
            x: axis(x_name.into()),
            y: axis(y_name.into()),
            series: Vec::new(),
            references: Vec::new(),
            size: [None, None],
            theme: Theme::default(),
            title: String::new(),
            caption: String::new(),
        }
    }

    /// One more series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Chart {
        self.series.push(series);
        self
    }

    /// One more series, as a line.
    #[must_use]
    pub fn line(
        self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Chart {
        self.series(Series::line(name, points))
    }

    /// One more series, as markers.
    #[must_use]
    pub fn points(
        self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Chart {
        self.series(Series::points(name, points))
    }

    /// A dashed line where both coordinates are equal, as in reliability plots.
    #[must_use]
    pub fn diagonal(mut self, name: impl Into<String>) -> Chart {
        self.references.push((name.into(), Reference::Diagonal));
        self
    }

    /// A dashed line at one height, such as a baseline to beat.
    #[must_use]
    pub fn horizontal(mut self, name: impl Into<String>, y: f64) -> Chart {
        self.references.push((name.into(), Reference::Horizontal(y)));
        self
    }

    /// A logarithmic x axis. Points at or below zero have no place on it and are left out.
    #[must_use]
    pub fn log_x(mut self) -> Chart {
        self.x.spacing = Spacing::Log;
        self
    }

    /// A logarithmic y axis. Points at or below zero have no place on it and are left out.
    #[must_use]
    pub fn log_y(mut self) -> Chart {
        self.y.spacing = Spacing::Log;
        self
    }

    /// The ends of the x axis: `0.0..=1.0`, or only one of them, as `0.0..`. The other follows the
    /// data. Ends that leave no axis are ignored.
    #[must_use]
    pub fn x_range(mut self, range: impl RangeBounds<f64>) -> Chart {
        self.x.ends = ends(&range);
        self
    }

    /// The ends of the y axis, as for [`Chart::x_range`].
    #[must_use]
    pub fn y_range(mut self, range: impl RangeBounds<f64>) -> Chart {
        self.y.ends = ends(&range);
        self
    }

    /// The heading above the chart.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Chart {
        Chart { title: title.into(), ..self }
    }

    /// The text below the chart.
    #[must_use]
    pub fn caption(self, caption: impl Into<String>) -> Chart {
        Chart { caption: caption.into(), ..self }
    }

    /// Sets the theme: light or dark.
    #[must_use]
    pub fn theme(self, theme: Theme) -> Chart {
        Chart { theme, ..self }
    }

    /// Width in pixels, from 1 to [`Chart::MAX_SIZE_PX`]; other numbers are taken as the nearest of
    /// these. Letters and lines grow with it. Charts too small for texts have none.
    #[must_use]
    pub fn width_px(mut self, width: u32) -> Chart {
        self.size[0] = Some(width.clamp(1, Chart::MAX_SIZE_PX));
        self
    }

    /// Height in pixels, within the limits of the width; without it, 0.6 of the width.
    #[must_use]
    pub fn height_px(mut self, height: u32) -> Chart {
        self.size[1] = Some(height.clamp(1, Chart::MAX_SIZE_PX));
        self
    }

    /// Chooses the axes and lays out the picture.
    pub fn draw(&self) -> Picture {
        let palette = self.theme.palette();
        let width = self.size[0].unwrap_or(DEFAULT_WIDTH_PX);
        let size = [width, self.size[1].unwrap_or((width * 3 / 5).max(1))];
        let unit = layout::unit(size);
        let (x, y) = self.axes();

        // The ends of lines are wanted as shares of an area whose size depends on the names.
        let area = crate::marks::Rectangle { left: 0.0, top: 0.0, right: 1.0, bottom: 1.0 };
        let shares = Plot { area, x, y };
        let looks: Vec<Look> = (0..)
            .zip(&self.series)
            .map(|(index, series)| Look::of(index, series, &palette, unit))
            .collect();
        let reference_look = Look::of_reference(&palette, unit);
        let of_series = self.series.iter().zip(&looks).map(|(series, look)| Entry {
            name: series.name.clone(),
            look: *look,
            has_line: series.has_line(),
            has_markers: series.has_markers(),
            end: series.end(&shares),
        });
        let of_references = self.references.iter().map(|(name, reference)| Entry {
            name: name.clone(),
            look: reference_look,
            has_line: true,
            has_markers: false,
            end: reference.line(&shares).last().copied().and_then(|end| shares.pixel(end)),
        });
        let entries: Vec<Entry> = of_series
            .chain(of_references)
            .filter(|entry| !entry.name.trim().is_empty() && entry.end.is_some())
            .collect();
        let contents = Contents {
            size,
            title: &self.title,
            caption: &self.caption,
            x_name: &self.x.name,
            y_name: &self.y.name,
            x,
            y,
            entries: &entries,
        };
        let layout = Layout::new(&contents);

        let mut items = layout.grid(&palette);
        for (_, reference) in &self.references {
            let lines = layout.plot.lines(&reference.line(&layout.plot));
            items.push(reference_look.stroked(lines, 1.4, reference_look.dash));
        }
        for (series, look) in self.series.iter().zip(&looks) {
            items.extend(series.items(&layout.plot, look));
        }
        items.extend(layout.furniture(&palette));
        if !self.series.iter().any(|series| series.end(&shares).is_some()) {
            let area = layout.plot.area;
            items.push(Item::Text(Text {
                at: [(area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0],
                anchor: Anchor::Middle,
                size: 13.0 * unit,
                colour: palette.faint_text,
                halo: None,
                text: "no data".to_owned(),
            }));
        }
        let (background, description) = (palette.background, self.description());
        let scene = Scene { size, background, description, items };
        Picture { scene, theme: self.theme, frame: None }
    }

    /// The axes that show all points, or what the caller wanted.
    fn axes(&self) -> (Axis, Axis) {
        // Markers need some room beside the axes; lines may begin at them.
        let x_margin = if self.series.iter().any(Series::has_markers) { 0.03 } else { 0.0 };
        let drawable =
            |point: &&(f64, f64)| self.x.spacing.takes(point.0) && self.y.spacing.takes(point.1);
        let points = self.series.iter().flat_map(|series| &series.points);
        let columns = points.filter(drawable).map(|point| point.0);
        let x = Axis::around(self.x.spacing, columns, self.x.ends, x_margin);
        let references = self.references.iter().filter_map(|(_, reference)| match reference {
            Reference::Horizontal(y) => Some(*y),
            Reference::Diagonal => None,
        });
        let rows = self.series.iter().flat_map(Series::heights).chain(references);
        (x, Axis::around(self.y.spacing, rows, self.y.ends, 0.05))
    }

    /// What the chart shows, for those who cannot see it.
    fn description(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let mut text =
            if self.title.is_empty() { String::new() } else { format!("{}. ", self.title) };
        text += &format!("Chart of {} over {}", self.y.name, self.x.name);
        if !names.is_empty() {
            text += &format!(": {}", names.join(", "));
        }
        if self.caption.is_empty() { text } else { format!("{text}. {}", self.caption) }
    }
}

impl Reference {
    /// Points along it from left to right, inside the area.
    fn line(self, plot: &Plot) -> Vec<(f64, f64)> {
        match self {
            Reference::Horizontal(y) => {
                let ends = vec![(plot.x.low, y), (plot.x.high, y)];
                if plot.y.shows(y) { ends } else { Vec::new() }
            }
            // A curve if one axis is logarithmic and the other is not.
            Reference::Diagonal => {
                let (low, high) = (plot.x.low.max(plot.y.low), plot.x.high.min(plot.y.high));
                let [Some(from), Some(to)] = [low, high].map(|end| plot.x.position(end)) else {
                    return Vec::new();
                };
                if from >= to {
                    return Vec::new();
                }
                let steps = if plot.x.spacing == plot.y.spacing { 1 } else { 64 };
                (0..=steps)
                    .map(|step| {
                        plot.x.value(from + (to - from) * f64::from(step) / f64::from(steps))
                    })
                    .map(|value| (value, value))
                    .collect()
            }
        }
    }
}
