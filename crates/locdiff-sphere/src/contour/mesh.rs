//! The corners and centres of cells over the plane of longitude and
//! latitude, with a value at each.

use std::ops::RangeInclusive;

use crate::LatLon;
use crate::cells::CellId;

/// Corners first, from north to south and then west to east; then the centres of leaves.
pub(super) type VertexId = u32;

/// A point of the lattice whose spacing is half the side of the smallest leaf, so that it
/// holds all corners and centres. Rows count from the north pole, columns from longitude −180.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    row: u32,
    column: u32,
}

#[derive(Debug, Clone, Copy)]
struct Lattice {
    /// Steps from pole to pole; around the Earth it is twice as many.
    rows: u32,
    deepest: u32,
}

/// The leaves of a mesh with their neighbors; the head of this file describes it.
#[derive(Debug)]
pub(super) struct Mesh {
    lattice: Lattice,
    /// In order of row and column; the index is the vertex's name.
    corners: Vec<Point>,
    /// The corners in order of column and row.
    by_column: Vec<VertexId>,
    positions: Vec<[f64; 2]>,
    values: Vec<f64>,
}

impl Mesh {
    pub(super) fn new(
        base: usize,
        leaves: &[CellId],
        mut value: impl FnMut(LatLon) -> f64,
    ) -> Mesh {
        let lattice = Lattice::new(base, leaves);
        let corners = lattice.corners(leaves);
        let mut by_column: Vec<VertexId> = (0..corners.len() as VertexId).collect();
        by_column.sort_unstable_by_key(|&id| {
            let Point { row, column } = corners[id as usize];
            (column, row)
        });
        let points = || corners.iter().copied().chain(leaves.iter().map(|&l| lattice.centre(l)));
        let positions: Vec<_> = points().map(|point| lattice.position(point)).collect();
        let mut values = Vec::with_capacity(positions.len());
        let mut first_of_row = 0;
        for (index, (point, [longitude, latitude])) in points().zip(&positions).enumerate() {
            if point.column == 0 {
                first_of_row = index;
            }
            let is_pole = point.row == 0 || point.row == lattice.rows;
            // The west end of a row on the sphere is its east end, too, and a pole is one place.
            let is_known = (is_pole && point.column > 0) || point.column == 2 * lattice.rows;
            values.push(if is_known {
                values[first_of_row]
            } else {
                value(LatLon::new(*latitude, *longitude).expect("the lattice lies on the Earth"))
            });
        }
        Mesh { lattice, corners, by_column, positions, values }
    }

    pub(super) fn vertex_count(&self) -> usize {
        self.values.len()
    }

    pub(super) fn value(&self, id: VertexId) -> f64 {
        self.values[id as usize]
    }

    pub(super) fn is_inside(&self, id: VertexId) -> bool {
        self.value(id) >= 0.0
    }

    /// Longitude and latitude in degrees.
    pub(super) fn position(&self, id: VertexId) -> [f64; 2] {
        self.positions[id as usize]
    }

    /// The vertex in the middle of the leaf with this index.
    pub(super) fn centre(&self, leaf: usize) -> VertexId {
        (self.corners.len() + leaf) as VertexId
    }

    /// Whether two neighbours on the boundary of a leaf are so on the border of the plane.
    pub(super) fn on_border(&self, a: VertexId, b: VertexId) -> bool {
        let (a, b) = (self.corners[a as usize], self.corners[b as usize]);
        let ends = |last| [0, last];
        (a.row == b.row && ends(self.lattice.rows).contains(&a.row))
            || (a.column == b.column && ends(2 * self.lattice.rows).contains(&a.column))
    }

    /// The vertices around a leaf, counter-clockwise: its corners, and those of smaller
    /// neighbours along its sides.
    pub(super) fn boundary(&self, leaf: CellId, vertices: &mut Vec<VertexId>) {
        let (Point { row: north, column: west }, Point { row: south, column: east }) =
            self.lattice.ends(leaf);
        vertices.clear();
        // Each side ends in the corner where the next one starts.
        vertices.extend(self.along_row(south, west..=east));
        vertices.pop();
        vertices.extend(self.along_column(east, north..=south).iter().rev());
        vertices.pop();
        vertices.extend(self.along_row(north, west..=east).rev());
        vertices.pop();
        vertices.extend(self.along_column(west, north..=south));
        vertices.pop();
    }

    fn along_row(
        &self,
        row: u32,
        columns: RangeInclusive<u32>,
    ) -> impl DoubleEndedIterator<Item = VertexId> {
        let first = self.corners.partition_point(|&p| p < Point { row, column: *columns.start() });
        let length =
            self.corners[first..].partition_point(|&p| p <= Point { row, column: *columns.end() });
        (first..first + length).map(|index| index as VertexId)
    }

    fn along_column(&self, column: u32, rows: RangeInclusive<u32>) -> &[VertexId] {
        let key = |id: VertexId| {
            let Point { row, column } = self.corners[id as usize];
            (column, row)
        };
        let first = self.by_column.partition_point(|&id| key(id) < (column, *rows.start()));
        let after = self.by_column.partition_point(|&id| key(id) <= (column, *rows.end()));
        &self.by_column[first..after]
    }
}

impl Lattice {
    fn new(base: usize, leaves: &[CellId]) -> Lattice {
        let deepest = leaves.iter().map(|leaf| leaf.level).max().unwrap_or(0);
        let columns = 2_u64.checked_pow(deepest + 2).and_then(|f| f.checked_mul(base as u64));
        assert!(
            columns.is_some_and(|columns| columns <= u64::from(u32::MAX)),
            "leaves of level {deepest} over base {base} are too small"
        );
        Lattice { rows: (base as u32) << (deepest + 1), deepest }
    }

    /// The north-west and the south-east corner of a leaf.
    fn ends(self, leaf: CellId) -> (Point, Point) {
        let (high, wide) = (2 << (self.deepest - leaf.level), 2 << (self.deepest - leaf.across));
        let corner = |down: u32, right: u32| Point {
            row: (leaf.ring + down) * high,
            column: (leaf.sector + right) * wide,
        };
        (corner(0, 0), corner(1, 1))
    }

    fn centre(self, leaf: CellId) -> Point {
        let (a, b) = self.ends(leaf);
        Point { row: a.row.midpoint(b.row), column: a.column.midpoint(b.column) }
    }

    /// The corners of all leaves, sorted, each once.
    fn corners(self, leaves: &[CellId]) -> Vec<Point> {
        let columns = 2 * self.rows;
        let mut corners = Vec::with_capacity(4 * leaves.len());
        for &leaf in leaves {
            let (Point { row: north, column: west }, Point { row: south, column: east }) =
                self.ends(leaf);
            for row in [north, south] {
                corners.extend([west, east].map(|column| Point { row, column }));
                // Leaves beyond the antimeridian are neighbours as well, though in the plane
                // they are not: with the same corners, outlines on both sides of it fit.
                if west == 0 {
                    corners.push(Point { row, column: columns });
                }
                if east == columns {
                    corners.push(Point { row, column: 0 });
                }
            }
        }
        corners.sort_unstable();
        corners.dedup();
        corners
    }

    /// Longitude and latitude in degrees, exact on the border.
    fn position(self, Point { row, column }: Point) -> [f64; 2] {
        let rows = f64::from(self.rows);
        let (south, east) = (f64::from(row) / rows, f64::from(column) / (2.0 * rows));
        [360.0 * east - 180.0, 90.0 - 180.0 * south]
    }
}
