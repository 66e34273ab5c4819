//! Which part of a map the close-up beside it shows.

use crate::clip::{self, Line};
use crate::layout::Frame;
use crate::projection::{Plane, Projection};
use crate::scene::{Item, Shape, Stroke};
use crate::theme::Palette;

/// A frame on the map is at least this large from its middle, in design pixels: it goes around a marker.
const SMALLEST: f64 = 8.0;

/// A frame around that part of the map, and lines from it to the inset; nothing if the inset is no
/// close-up or shows the far side of a globe.
pub(crate) fn items(map: &Frame, inset: &Frame, palette: &Palette, unit: f64) -> Vec<Item> {
    let Some(Mark { lines, corners: [upper, lower] }) = mark(map, inset, unit) else {
        return Vec::new();
    };
    let stroked = |lines, colour, width: f64| {
        let stroke = Some(Stroke { colour, width: width * unit, dash: None });
        Item::Shape(Shape { lines, fill: None, stroke })
    };
    let [left, top] = inset.at.map(f64::from);
    let bottom = top + f64::from(inset.size[1]);
    let ends = [(upper, [left, top]), (lower, [left, bottom])];
    let rays = ends
        .into_iter()
        .filter_map(|(from, to)| Some(Line { points: vec![from?, to], closed: false }));
    let rays: Vec<Line> = rays.collect();
    vec![
        stroked(rays.clone(), palette.halo.with_alpha(0.35), 2.4),
        stroked(rays, palette.text.with_alpha(0.4), 0.9),
        stroked(lines.clone(), palette.halo.with_alpha(0.7), 3.6),
        stroked(lines, palette.text.with_alpha(0.9), 1.4),
    ]
}

/// The frame in pixels.
struct Mark {
    lines: Vec<Line>,
    /// The upper and the lower right corner where they are visible.
    corners: [Option<[f64; 2]>; 2],
}

fn mark(map: &Frame, inset: &Frame, unit: f64) -> Option<Mark> {
    /// Places on each side of the frame.
    const PER_SIDE: usize = 24;
    let (Plane::Around(closeup), Projection::Around { centre, .. }) =
        (&inset.plane, inset.projection)
    else {
        return None;
    };
    let [x, y] = map.pixel_of(centre)?;
    let places = closeup.edge_places(PER_SIDE);
    let mut distances: Vec<f64> = places
        .iter()
        .filter_map(|&place| map.pixel_of(place))
        .map(|point| (point[0] - x).hypot(point[1] - y))
        .collect();
    distances.sort_by(f64::total_cmp);
    let smallest = SMALLEST * unit;
    // The median: at the edge of a flat map, some places are on its other side.
    let median = distances.get(distances.len() / 2).copied().unwrap_or(0.0);
    if median < smallest {
        let (left, right) = (x - smallest, x + smallest);
        let (top, bottom) = (y - smallest, y + smallest);
        let points = vec![[right, bottom], [right, top], [left, top], [left, bottom]];
        let lines = vec![Line { points, closed: true }];
        return Some(Mark { lines, corners: [Some([right, top]), Some([right, bottom])] });
    }
    // Lines to corners on the other side of a flat map would cross all of it.
    let is_near = |corner: &[f64; 2]| (corner[0] - x).hypot(corner[1] - y) < 3.0 * median;
    let corner =
        |index: usize| places.get(index).and_then(|&place| map.pixel_of(place)).filter(is_near);
    let lines = map.pixels(&clip::outline(&map.plane, &places));
    Some(Mark { lines, corners: [corner(PER_SIDE), corner(0)] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Contents, Layout};
    use locdiff_sphere::LatLon;

    #[test]
    fn the_frame_shows_the_place_on_the_map() {
        for (latitude, longitude) in [(47.0, 8.5), (-17.0, 179.99), (88.0, 0.0), (-90.0, 0.0)] {
            let centre = LatLon::new(latitude, longitude).unwrap();
            for radius_km in [5.0, 300.0, 3000.0] {
                let closeup = Projection::Around { centre, radius_km };
                for projection in [Projection::EqualEarth, Projection::Globe { centre }] {
                    let contents =
                        Contents { inset: Some(closeup), ..Contents::bare(projection, 1200) };
                    let layout = Layout::new(&contents);
                    let (map, inset) = (layout.frame, layout.inset.unwrap());
                    let Mark { lines, corners } = mark(&map, &inset, layout.unit).unwrap();
                    let points: Vec<[f64; 2]> =
                        lines.iter().flat_map(|line| line.points.clone()).collect();
                    assert!(points.len() >= 4);
                    let [width, height] = layout.size.map(f64::from);
                    assert!(points.iter().all(|p| {
                        (0.0..=width).contains(&p[0]) && (0.0..=height).contains(&p[1])
                    }));
                    // No line to the inset runs across a whole map.
                    let [x, _] = map.pixel_of(centre).unwrap();
                    let far = f64::from(map.size[0]) / 2.0;
                    assert!(corners.iter().flatten().all(|corner| (corner[0] - x).abs() < far));
                    if let Projection::Globe { .. } = projection {
                        // Around the middle of the globe, and never too small to see.
                        let [x, y] = map.pixel_of(centre).unwrap();
                        let distances = points.iter().map(|p| (p[0] - x).hypot(p[1] - y));
                        let reach = distances.fold(0.0, f64::max);
                        let angle = (radius_km / 6371.0 * 2f64.sqrt()).min(1.57);
                        let expected = (angle.sin() * map.pixels_per_radius).max(8.0);
                        assert!((0.8..1.8).contains(&(reach / expected)), "{reach} {expected}");
                        assert!(corners.iter().flatten().all(|corner| corner[0] > x));
                    }
                }
            }
        }
        let [near, far] = [0.0, 180.0].map(|longitude| LatLon::new(0.0, longitude).unwrap());
        let closeup = Projection::Around { centre: far, radius_km: 300.0 };
        let globe = Projection::Globe { centre: near };
        let contents = Contents { inset: Some(closeup), ..Contents::bare(globe, 1200) };
        let layout = Layout::new(&contents);
        assert!(mark(&layout.frame, &layout.inset.unwrap(), layout.unit).is_none());
    }
}
