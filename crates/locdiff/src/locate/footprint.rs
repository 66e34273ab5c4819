//! The ground that a picture from above shows.

use locdiff_sphere::{LatLon, MultiPolygon};

/// The quadrilateral on the ground that a picture from above shows, found by registering the picture against a map.
///
/// It is the ground of the picture's central square ([`Photo::square`](crate::Photo::square)): as wide as the shorter side of
/// the upright picture, around its middle. Of a picture that is not square, the ends of the longer side lie outside.
/// Edges are great circles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Footprint {
    /// Upper left, upper right, lower right and lower left corner of the square.
    pub corners: [LatLon; 4],
    /// The middle of the square.
    pub middle: LatLon,
    /// Where the picture's upward direction points at its middle: degrees in [0, 360), clockwise from north.
    pub heading_degrees: f64,
    /// Width of the square on the ground, through its middle.
    pub width_km: f64,
    /// How much the picture looks like the map there, at most 1. Not a probability.
    pub likeness: f64,
}

impl Footprint {
    /// The quadrilateral as polygons, valid by RFC 7946: cut at the antimeridian, with the poles as edges. `None` if it has
    /// no area.
    pub fn outline(&self) -> Option<MultiPolygon> {
        MultiPolygon::with_great_circles(&self.corners)
    }

    /// The heading as one of eight points of the compass: `N`, `NE`, `E` and so on.
    pub fn compass_point(&self) -> &'static str {
        const POINTS: [&str; 8] = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
        POINTS[(self.heading_degrees.rem_euclid(360.0) / 45.0).round() as usize % POINTS.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_names() {
        let middle = LatLon::new(60.0, 179.0).unwrap();
        let corners = [-45.0, 45.0, 135.0, 225.0].map(|corner| middle.destination(corner, 400.0));
        let footprint =
            Footprint { corners, middle, heading_degrees: 0.0, width_km: 566.0, likeness: 0.8 };
        for (heading_degrees, name) in
            [(0.0, "N"), (22.0, "N"), (37.0, "NE"), (180.0, "S"), (337.0, "NW"), (338.0, "N")]
        {
            assert_eq!(Footprint { heading_degrees, ..footprint }.compass_point(), name);
        }
        assert_eq!(footprint.outline().unwrap().coordinates().len(), 2);
    }
}
