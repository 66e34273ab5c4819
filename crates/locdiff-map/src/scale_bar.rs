//! The bar of so many kilometres in a corner of a close-up.

use crate::clip::Line;
use crate::layout::{Frame, TICK_SIZE};
use crate::marks::Rectangle;
use crate::projection::Plane;
use crate::scene::{Anchor, Item, Shape, Stroke, Text};
use crate::text::{CAP_HEIGHT, width};
use crate::theme::Palette;
use locdiff_sphere::EARTH_RADIUS_KM;

/// The bar is at most this share of the map's width.
const LONGEST_SHARE: f64 = 0.25;

/// The bar, and what it covers; `None` for maps of more than a close-up.
pub(crate) fn items(frame: &Frame, palette: &Palette, unit: f64) -> Option<([Item; 3], Rectangle)> {
    let Plane::Around(_) = frame.plane else { return None };
    let pixels_per_km = frame.pixels_per_radius / EARTH_RADIUS_KM;
    let length_km = round_km(LONGEST_SHARE * f64::from(frame.size[0]) / pixels_per_km);
    let length = length_km * pixels_per_km;

    let left = f64::from(frame.at[0]) + 12.0 * unit;
    let bottom = f64::from(frame.at[1] + frame.size[1]) - 12.0 * unit;
    let (right, tick) = (left + length, 5.0 * unit);
    let corners = [[left, bottom - tick], [left, bottom], [right, bottom], [right, bottom - tick]];
    let lines = vec![Line { points: corners.to_vec(), closed: false }];
    let pen = |colour, width: f64| Some(Stroke { colour, width: width * unit, dash: None });
    let shape = |stroke| Item::Shape(Shape { lines: lines.clone(), fill: None, stroke });

    let (text, size) = (label(length_km), TICK_SIZE * unit);
    let at = [right + 6.0 * unit, bottom];
    let area = Rectangle {
        left,
        top: bottom - CAP_HEIGHT * size,
        right: at[0] + width(&text, size),
        bottom: bottom + unit,
    };
    let halo = palette.halo.with_alpha(0.8);
    let text =
        Text { at, anchor: Anchor::Start, size, colour: palette.text, halo: Some(halo), text };
    let items = [shape(pen(halo, 4.0)), shape(pen(palette.text, 1.6)), Item::Text(text)];
    Some((items, area))
}

/// The largest of 1, 2 and 5 times a power of ten that is not longer.
fn round_km(longest: f64) -> f64 {
    let power = 10f64.powi(longest.log10().floor() as i32);
    [5.0, 2.0].into_iter().map(|digit| digit * power).find(|&km| km <= longest).unwrap_or(power)
}

/// Whole numbers with their unit, in groups of three digits.
fn label(km: f64) -> String {
    match km.round() as u32 {
        0 => format!("{} m", (1000.0 * km).round()),
        short @ 1..1000 => format!("{short} km"),
        long => format!("{},{:03} km", long / 1000, long % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Contents, Layout};
    use crate::{Projection, Theme};
    use locdiff_sphere::LatLon;

    #[test]
    fn lengths_are_round() {
        let shown = [0.05, 0.26, 1.0, 2.4, 9.9, 75.0, 1500.0, 5000.0].map(|km| label(round_km(km)));
        let round = ["50 m", "200 m", "1 km", "2 km", "5 km", "50 km", "1,000 km", "5,000 km"];
        assert_eq!(shown, round);
    }

    #[test]
    fn the_bar_is_as_long_as_it_says() {
        let centre = LatLon::new(47.0, 8.5).unwrap();
        for radius_km in [5.0, 20.0, 300.0, 3000.0, 10_000.0] {
            let projection = Projection::Around { centre, radius_km };
            let layout = Layout::new(&Contents::bare(projection, 700));
            let (items, area) =
                super::items(&layout.frame, &Theme::Dark.palette(), layout.unit).unwrap();
            assert!(layout.frame.holds(area));
            let Item::Shape(bar) = &items[1] else { panic!("{items:?}") };
            let Item::Text(text) = &items[2] else { panic!("{items:?}") };
            let [left, right] = [1, 2].map(|index| bar.lines[0].points[index][0]);
            let km: f64 = text.text.replace(" km", "").replace(',', "").parse().unwrap();
            // The same way from the middle of the map to the east.
            let east = layout.frame.pixel_of(centre.destination(90.0, km)).unwrap();
            let middle = layout.frame.pixel_of(centre).unwrap();
            let apart = (east[0] - middle[0]).hypot(east[1] - middle[1]);
            assert!((apart - (right - left)).abs() < 1e-6, "{radius_km}: {apart}");
        }
    }
}
