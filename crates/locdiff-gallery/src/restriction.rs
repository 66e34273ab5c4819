//! Which rows lie in parts of the Earth: ranges of sorted rows, found without a look at most of them.
//!
//! Cells of the curve are divided until they lie inside or outside, or contain few rows. Only rows of cells
//! on the rim are tested, by [`Area::contains`], so that the answer is the one of a test of every row.

use std::ops::Range;

use locdiff_sphere::{Area, EARTH_RADIUS_KM, LatLon, UnitVector};

use crate::curve::{Cell, LEVELS, angle};

/// Cells with so many rows are not divided but tested row by row.
const FEW_ROWS: usize = 24;
/// Added to comparisons of degrees, far more than they are rounded by.
const MARGIN_DEGREES: f64 = 1e-7;

/// The rows in any of the areas, as ascending ranges with gaps between them. Keys are sorted. An error is that of a place.
pub(crate) fn ranges<E>(
    keys: &[u64],
    areas: &[Area],
    place: impl Fn(usize) -> Result<LatLon, E>,
) -> Result<Vec<Range<usize>>, E> {
    let shapes: Vec<Shape> = areas.iter().map(Shape::new).collect();
    let mut walk = Walk { keys, place, ranges: Vec::new() };
    for face in Cell::faces() {
        walk.visit(face, 0..keys.len(), &shapes)?;
    }
    Ok(walk.ranges)
}

struct Walk<'a, P> {
    keys: &'a [u64],
    place: P,
    ranges: Vec<Range<usize>>,
}

impl<P: Fn(usize) -> Result<LatLon, E>, E> Walk<'_, P> {
    /// Takes the rows of a cell. `rows` are those of its parent, `shapes` those that its parent touches.
    fn visit(&mut self, cell: Cell, rows: Range<usize>, shapes: &[Shape]) -> Result<(), E> {
        let keys = cell.keys();
        let within = &self.keys[rows.clone()];
        let first = rows.start + within.partition_point(|key| *key < keys.start);
        let rows = first..rows.start + within.partition_point(|key| *key < keys.end);
        if rows.is_empty() {
            return Ok(());
        }
        let (middle, reach) = cell.cap();
        let cap = Cap { middle, place: middle.into(), reach };
        let mut touched = Vec::new();
        for shape in shapes {
            match shape.cover(&cap) {
                Cover::Inside => {
                    self.take(rows);
                    return Ok(());
                }
                Cover::Outside => {}
                Cover::Cut(shape) => touched.push(shape),
            }
        }
        if touched.is_empty() {
            return Ok(());
        }
        if rows.len() <= FEW_ROWS || cell.level() == LEVELS {
            for row in rows {
                let place = (self.place)(row)?;
                if touched.iter().any(|shape| shape.area.contains(place)) {
                    self.take(row..row + 1);
                }
            }
            return Ok(());
        }
        for child in cell.children() {
            self.visit(child, rows.clone(), &touched)?;
        }
        Ok(())
    }

    fn take(&mut self, rows: Range<usize>) {
        match self.ranges.last_mut() {
            Some(last) if last.end == rows.start => last.end = rows.end,
            _ => self.ranges.push(rows),
        }
    }
}

/// A circle around a cell.
struct Cap {
    middle: UnitVector,
    place: LatLon,
    reach: f64,
}

impl Cap {
    /// The smallest box of latitudes and longitudes around it.
    fn sides(&self) -> Sides {
        let (latitude, longitude) = (self.place.latitude(), self.place.longitude());
        let reach = self.reach.to_degrees() + MARGIN_DEGREES;
        let [south, north] = [latitude - reach, latitude + reach];
        let sine = self.reach.sin() / latitude.to_radians().cos().max(1e-300);
        if south <= -90.0 || north >= 90.0 || sine >= 1.0 || self.reach >= 1.5 {
            return Sides { longitudes: [-180.0, 180.0], latitudes: [south, north] };
        }
        let span = sine.asin().to_degrees() + MARGIN_DEGREES;
        Sides { longitudes: [longitude - span, longitude + span], latitudes: [south, north] }
    }
}

/// Ranges in degrees. Longitudes may exceed ±180.
#[derive(Debug, Clone, Copy)]
struct Sides {
    longitudes: [f64; 2],
    latitudes: [f64; 2],
}

impl Sides {
    /// Around a straight line.
    fn of([a, b]: [[f64; 2]; 2]) -> Sides {
        let range = |k: usize| [a[k].min(b[k]), a[k].max(b[k])];
        Sides { longitudes: range(0), latitudes: range(1) }
    }

    fn touch(&self, other: &Sides) -> bool {
        let overlap =
            |a: [f64; 2], b: [f64; 2], turn: f64| a[0] <= b[1] + turn && b[0] + turn <= a[1];
        overlap(self.latitudes, other.latitudes, 0.0)
            && [-720.0, -360.0, 0.0, 360.0, 720.0]
                .iter()
                .any(|turn| overlap(self.longitudes, other.longitudes, *turn))
    }
}

enum Cover<'a> {
    Inside,
    Outside,
    /// The border may pass through it.
    Cut(Shape<'a>),
}

/// An area, with what of its border is near a cell. Circles need none.
#[derive(Clone)]
struct Shape<'a> {
    area: &'a Area,
    border: Vec<Sides>,
}

impl Shape<'_> {
    fn new(area: &Area) -> Shape<'_> {
        let border = match area {
            Area::Box(sides) => {
                let [south, west, north, east] = sides.sides();
                let east = if west > east { east + 360.0 } else { east };
                let corners = [[west, south], [east, south], [east, north], [west, north]];
                (0..4).map(|k| Sides::of([corners[k], corners[(k + 1) % 4]])).collect()
            }
            Area::Polygons(polygons) => {
                let rings = polygons.coordinates().iter().flatten();
                rings
                    .flat_map(|ring| ring.windows(2).map(|edge| Sides::of([edge[0], edge[1]])))
                    .collect()
            }
            _ => Vec::new(),
        };
        Shape { area, border }
    }
}

impl<'a> Shape<'a> {
    fn cover(&self, cap: &Cap) -> Cover<'a> {
        if let Area::Circle(circle) = self.area {
            let angle = angle(cap.middle, circle.centre().into());
            let radius = circle.radius_km() / EARTH_RADIUS_KM;
            return match () {
                () if angle + cap.reach <= radius => Cover::Inside,
                () if angle - cap.reach > radius => Cover::Outside,
                () => Cover::Cut(self.clone()),
            };
        }
        let sides = cap.sides();
        let border: Vec<Sides> =
            self.border.iter().filter(|edge| edge.touch(&sides)).copied().collect();
        match () {
            () if !border.is_empty() => Cover::Cut(Shape { area: self.area, border }),
            // Where no border passes, one place stands for all.
            () if self.area.contains(cap.place) => Cover::Inside,
            () => Cover::Outside,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use locdiff_sphere::{MultiPolygon, uniform_place};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::curve::key;

    fn at(latitude: f64, longitude: f64) -> LatLon {
        LatLon::new(latitude, longitude).unwrap()
    }

    fn sorted_places() -> Vec<LatLon> {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut places: Vec<LatLon> = (0..20_000).map(|_| uniform_place(&mut rng)).collect();
        for centre in [at(90.0, 0.0), at(-89.9, 50.0), at(16.0, 180.0), at(48.86, 2.35)] {
            places.extend((0..3000).map(|_| {
                centre.destination(rng.random_range(0.0..360.0), 300.0 * rng.random::<f64>())
            }));
            places.extend([centre; 40]);
        }
        places.sort_by_key(|place| key(*place));
        places
    }

    fn areas() -> Vec<Vec<Area>> {
        let circle =
            |latitude, longitude, radius| Area::circle(at(latitude, longitude), radius).unwrap();
        let ring = vec![[-10.0, 40.0], [5.0, 35.0], [20.0, 55.0], [0.0, 52.0], [-10.0, 40.0]];
        let hole = vec![[2.0, 48.0], [3.0, 48.0], [3.0, 49.0], [2.0, 48.0]];
        let across = vec![[170.0, 10.0], [195.0, 10.0], [195.0, 20.0], [170.0, 20.0]];
        let polar = vec![[-180.0, 80.0], [180.0, 80.0], [180.0, 90.0], [-180.0, 90.0]];
        let polygons = |parts| Area::polygons(MultiPolygon::new(parts).unwrap());
        vec![
            vec![circle(48.86, 2.35, 200.0)],
            vec![circle(48.86, 2.35, 1.0), circle(48.9, 2.4, 30.0), circle(-80.0, 0.0, 2500.0)],
            vec![circle(90.0, 0.0, 100.0)],
            vec![circle(-90.0, 0.0, 0.5)],
            vec![circle(16.0, 179.9, 150.0)],
            vec![circle(0.0, 0.0, 10_000.0)],
            vec![circle(0.0, 0.0, 30_000.0)],
            vec![Area::whole()],
            vec![Area::bounding_box(-21.0, 176.5, 18.0, -178.0).unwrap()],
            vec![Area::bounding_box(89.0, -180.0, 90.0, 180.0).unwrap()],
            vec![Area::bounding_box(48.0, 2.0, 49.0, 3.0).unwrap(), circle(48.5, 2.5, 60.0)],
            vec![polygons(vec![vec![ring, hole], vec![across]])],
            vec![polygons(vec![vec![polar]])],
            vec![],
        ]
    }

    #[test]
    fn ranges_hold_the_rows_that_a_test_of_each_finds() {
        let places = sorted_places();
        let keys: Vec<u64> = places.iter().map(|place| key(*place)).collect();
        for areas in areas() {
            let found = ranges(&keys, &areas, |row| Ok::<_, Infallible>(places[row])).unwrap();
            assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
            let found: Vec<usize> = found.into_iter().flatten().collect();
            let plain: Vec<usize> = (0..places.len())
                .filter(|row| areas.iter().any(|area| area.contains(places[*row])))
                .collect();
            assert_eq!(found, plain, "{areas:?}");
        }
    }

    #[test]
    fn few_rows_are_tested() {
        let places = sorted_places();
        let keys: Vec<u64> = places.iter().map(|place| key(*place)).collect();
        let tests = std::cell::Cell::new(0);
        let area = Area::circle(at(48.86, 2.35), 200.0).unwrap();
        let found = ranges(&keys, &[area], |row| {
            tests.set(tests.get() + 1);
            Ok::<_, Infallible>(places[row])
        })
        .unwrap();
        let found: usize = found.into_iter().map(|range| range.len()).sum();
        assert!(found > 1900 && tests.get() < 1200, "{found} found, {} tested", tests.get());
    }
}
