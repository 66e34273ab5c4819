//! Several pictures on one sheet: a strip of maps, a contact sheet, charts side by side.
//!
//! Columns are as wide as their widest picture, rows as high as their highest; pictures keep their
//! size and stand in the middle of their cell. In the SVG they stay what they were, and what they
//! have in common (coastlines, gradients) is written once.

use crate::layout::{CAPTION_SIZE, TITLE_SIZE};
use crate::picture::Picture;
use crate::scene::{Anchor, Item, Scene};
use crate::text::Block;
use crate::theme::Theme;

const LABEL_SIZE: f64 = 14.0;

/// Where the label of a panel stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelSide {
    /// Over the picture.
    Above,
    /// Under the picture.
    #[default]
    Below,
}

/// Several pictures with labels on one sheet, in rows from left to right.
///
/// ```
/// use locdiff_map::{Map, Panels, Projection};
///
/// let map = || Map::new(Projection::EqualEarth).width_px(120).draw();
/// let steps = [0, 10, 20, 100, 200].map(|step| (format!("step {step}"), map()));
/// let sheet = Panels::new().title("Denoising").columns(5).panels(steps).draw();
/// assert!(sheet.width_px() > 5 * 120 && sheet.svg().contains("step 200"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Panels {
    panels: Vec<(String, Picture)>,
    columns: Option<usize>,
    side: LabelSide,
    title: String,
    caption: String,
    theme: Option<Theme>,
}

impl Panels {
    /// An empty sheet.
    pub fn new() -> Panels {
        Panels::default()
    }

    /// One more picture, with its label; an empty one takes no space if its whole row has none.
    #[must_use]
    pub fn panel(mut self, label: impl Into<String>, picture: Picture) -> Panels {
        self.panels.push((label.into(), picture));
        self
    }

    /// Several more pictures with their labels.
    #[must_use]
    pub fn panels<L: Into<String>>(
        mut self,
        panels: impl IntoIterator<Item = (L, Picture)>,
    ) -> Panels {
        self.panels.extend(panels.into_iter().map(|(label, picture)| (label.into(), picture)));
        self
    }

    /// How many pictures stand in a row, at least 1. Unless it is set, up to four do, and more make
    /// about as many rows as columns.
    #[must_use]
    pub fn columns(self, columns: usize) -> Panels {
        Panels { columns: Some(columns.max(1)), ..self }
    }

    /// Whether labels stand above or below their pictures.
    #[must_use]
    pub fn labels(self, side: LabelSide) -> Panels {
        Panels { side, ..self }
    }

    /// The heading above all.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Panels {
        Panels { title: title.into(), ..self }
    }

    /// The text below all.
    #[must_use]
    pub fn caption(self, caption: impl Into<String>) -> Panels {
        Panels { caption: caption.into(), ..self }
    }

    /// Light or dark; unless it is set, as the first picture is.
    #[must_use]
    pub fn theme(self, theme: Theme) -> Panels {
        Panels { theme: Some(theme), ..self }
    }

    /// Lays out the sheet. It is as large as its pictures, labels and texts need.
    pub fn draw(&self) -> Picture {
        let first = self.panels.first().map(|(_, picture)| picture.theme);
        let theme = self.theme.or(first).unwrap_or_default();
        let palette = theme.palette();
        let sheet = Sheet::new(self);

        let mut items = sheet.title.items([sheet.margin; 2], Anchor::Start, palette.text);
        for (cell, (_, picture)) in sheet.cells.iter().zip(&self.panels) {
            items.push(Item::Scene { at: cell.picture_at, scene: picture.scene.clone() });
            items.extend(cell.label.items(cell.label_at, Anchor::Middle, palette.text));
        }
        let caption_at = [sheet.margin, sheet.caption_top];
        items.extend(sheet.caption.items(caption_at, Anchor::Start, palette.faint_text));

        let mut description = self.title.clone();
        if description.is_empty() {
            let labels: Vec<&str> = self.panels.iter().map(|(label, _)| label.as_str()).collect();
            description = labels.join(", ");
        }
        let scene = Scene { size: sheet.size, background: palette.background, description, items };
        Picture { scene, theme, frame: None }
    }
}

struct Cell {
    picture_at: [u32; 2],
    label: Block,
    /// The middle of the label's top.
    label_at: [f64; 2],
}

/// Where everything stands on a sheet.
struct Sheet {
    size: [u32; 2],
    margin: f64,
    title: Block,
    cells: Vec<Cell>,
    caption: Block,
    caption_top: f64,
}

impl Sheet {
    fn new(panels: &Panels) -> Sheet {
        let pictures = &panels.panels;
        let columns = panels.columns.unwrap_or(match pictures.len() {
            count @ 0..=4 => count,
            count => (count as f64).sqrt().ceil() as usize,
        });
        let columns = columns.clamp(1, pictures.len().max(1));
        let widths: Vec<f64> = (0..columns)
            .map(|column| {
                let pictures = pictures.iter().skip(column).step_by(columns);
                f64::from(pictures.map(|(_, picture)| picture.width_px()).max().unwrap_or(0))
            })
            .collect();
        let pictures_width: f64 = widths.iter().sum();
        // As letters of a map of this width, but never too small for a strip of thumbnails.
        let unit = (pictures_width / 1200.0).max(0.8);
        let (margin, gap) = ((24.0 * unit).round(), (16.0 * unit).round());
        let inner_width = pictures_width + gap * (columns - 1) as f64;

        let title = Block::new(&panels.title, TITLE_SIZE * unit, inner_width);
        let caption = Block::new(&panels.caption, CAPTION_SIZE * unit, inner_width);
        let mut top = margin;
        if !title.is_empty() {
            top += title.height() + 0.9 * margin;
        }
        let mut cells = Vec::with_capacity(pictures.len());
        let label_gap = 9.0 * unit;
        for (row, pictures) in pictures.chunks(columns).enumerate() {
            if row > 0 {
                top += 2.0 * gap;
            }
            let labels: Vec<Block> = pictures
                .iter()
                .zip(&widths)
                .map(|((label, _), width)| Block::new(label, LABEL_SIZE * unit, *width))
                .collect();
            let label_height = labels.iter().map(Block::height).fold(0.0, f64::max);
            let label_space = if label_height > 0.0 { label_height + label_gap } else { 0.0 };
            let highest = pictures.iter().map(|(_, picture)| picture.height_px()).max();
            let row_height = f64::from(highest.unwrap_or(0));
            let mut left = margin;
            for ((label, (_, picture)), width) in labels.into_iter().zip(pictures).zip(&widths) {
                let spare =
                    [width - f64::from(picture.width_px()), row_height].map(|space| space / 2.0);
                let half_height = f64::from(picture.height_px()) / 2.0;
                let (picture_top, label_top) = match panels.side {
                    LabelSide::Above => (top + label_space, top + label_height - label.height()),
                    LabelSide::Below => (top, top + row_height + label_gap),
                };
                let at = [left + spare[0], picture_top + spare[1] - half_height];
                cells.push(Cell {
                    picture_at: at.map(|part| part.round() as u32),
                    label,
                    label_at: [left + width / 2.0, label_top],
                });
                left += width + gap;
            }
            top += label_space + row_height;
        }
        let mut bottom = top;
        let caption_top = top + margin;
        if !caption.is_empty() {
            bottom = caption_top + caption.height();
        }
        let size = [inner_width + 2.0 * margin, bottom + margin];
        let size = size.map(|length| length.ceil().max(1.0) as u32);
        Sheet { size, margin, title, cells, caption, caption_top }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Projection;
    use crate::map::Map;

    #[test]
    fn pictures_keep_their_size_and_never_overlap() {
        let widths = [100, 60, 240, 30, 130, 90, 50];
        for columns in [1, 2, 3, 5, 7, 90] {
            for side in [LabelSide::Above, LabelSide::Below] {
                let mut panels =
                    Panels::new().columns(columns).labels(side).title("Title").caption("Caption");
                for width in widths {
                    let projection = if width % 20 == 0 {
                        Projection::EqualEarth
                    } else {
                        Projection::Equirectangular
                    };
                    let picture = Map::new(projection).width_px(width).draw();
                    panels = panels.panel(format!("a map {width} pixels wide"), picture);
                }
                let picture = panels.draw();
                let areas: Vec<[u32; 4]> = picture
                    .scene
                    .items
                    .iter()
                    .filter_map(|item| match item {
                        Item::Scene { at: [x, y], scene } => {
                            Some([*x, *y, x + scene.size[0], y + scene.size[1]])
                        }
                        _ => None,
                    })
                    .collect();
                assert_eq!(areas.len(), widths.len());
                for (index, a) in areas.iter().enumerate() {
                    assert_eq!(a[2] - a[0], widths[index]);
                    assert!(a[2] < picture.width_px() && a[3] < picture.height_px());
                    for b in &areas[index + 1..] {
                        let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                        assert!(apart, "{columns} columns: {a:?} and {b:?}");
                    }
                }
                for item in &picture.scene.items {
                    let Item::Text(text) = item else { continue };
                    let [x, y] = text.at;
                    assert!(y < f64::from(picture.height_px()), "{text:?}");
                    let over = |a: &&[u32; 4]| {
                        let [left, top, right, bottom] = a.map(f64::from);
                        x > left && x < right && y > top && y - 0.7 * text.size < bottom
                    };
                    assert_eq!(areas.iter().find(over), None, "{text:?}");
                }
            }
        }
    }
}
