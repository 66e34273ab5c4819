//! Projections between the sphere and the plane.
//!
//! Convention: plane coordinates are in Earth radii, x to the right, y up, (0, 0) in the middle of
//! the map. The flat maps have Greenwich in the middle and end at the antimeridian, which belongs
//! to their left edge. Equal Earth is that of Šavrič, Patterson and Jenny (2018), checked against
//! their constants and its property of equal areas; the globe is the orthographic view; a close-up is
//! the azimuthal equidistant projection (`closeup`).

use crate::closeup::{Closeup, half_side};
use locdiff_sphere::{LatLon, UnitVector};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_3, PI};

/// How the sphere becomes a plane.
///
/// ```
/// use locdiff_map::Projection;
/// use locdiff_sphere::LatLon;
///
/// let quito = LatLon::new(-0.18, -78.47)?;
/// let globe = Projection::Globe { centre: quito };
/// assert!(globe.forward(quito).is_some_and(|[x, y]| x.hypot(y) < 1e-15));
/// assert_eq!(globe.forward(LatLon::new(0.18, 101.53)?), None); // on the far side
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Projection {
    /// Longitude and latitude as x and y: simple to read off, but areas grow towards the poles.
    Equirectangular,
    /// A world map of equal areas with curved sides: equal ink for equal area, so the best choice
    /// for a density on the whole Earth.
    EqualEarth,
    /// The Earth from far above `centre`, north up; half of it is visible.
    Globe {
        /// The place in the middle of the disc.
        centre: LatLon,
    },
    /// A close-up: a square around `centre`, north up. Distances and bearings from `centre` are true
    /// (azimuthal equidistant), and the map has a scale bar.
    Around {
        /// The place in the middle of the square.
        centre: LatLon,
        /// Distance from `centre` to the middle of each side, from 0.1 to 10,000 km; other numbers are
        /// taken as the nearest of these.
        radius_km: f64,
    },
}

impl Projection {
    /// The point of the plane for a place; `None` on the far side of a globe and outside a close-up.
    pub fn forward(self, place: LatLon) -> Option<[f64; 2]> {
        let plane = Plane::new(self);
        let point = plane.chart(UnitVector::from(place).to_array());
        match plane {
            Plane::Globe(_) | Plane::Around(_) => point,
            // Not through the unit vector: it would lose the longitude of a pole.
            _ => Some(plane.plane_from_chart([place.longitude(), place.latitude()])),
        }
    }

    /// The place at a point of the plane; `None` outside the map.
    pub fn inverse(self, point: [f64; 2]) -> Option<LatLon> {
        Plane::new(self).inverse(point)
    }

    /// Half the width and half the height of the whole map, in Earth radii.
    pub fn half_size(self) -> [f64; 2] {
        match self {
            Projection::Equirectangular => [PI, FRAC_PI_2],
            Projection::EqualEarth => {
                let [x, _] = equal_earth(PI, 0.0);
                [x, equal_earth_y(FRAC_PI_3).0]
            }
            Projection::Globe { .. } => [1.0, 1.0],
            Projection::Around { radius_km, .. } => [half_side(radius_km); 2],
        }
    }
}

/// A projection with what can be computed once, and the chart in which lines are cut.
///
/// The chart of a flat map is longitude and latitude in degrees, where +180 and −180 differ; the
/// chart of a globe or a close-up is its plane. Close-ups are cut by [`Closeup`] itself: what is said
/// here of edges and crossings is for the other maps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plane {
    Equirectangular,
    EqualEarth,
    Globe(View),
    Around(Closeup),
}

/// The axes of a viewer from above.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) right: [f64; 3],
    pub(crate) up: [f64; 3],
    pub(crate) towards: [f64; 3],
}

impl Plane {
    pub(crate) fn new(projection: Projection) -> Plane {
        match projection {
            Projection::Equirectangular => Plane::Equirectangular,
            Projection::EqualEarth => Plane::EqualEarth,
            Projection::Globe { centre } => Plane::Globe(View::above(centre)),
            Projection::Around { centre, radius_km } => {
                Plane::Around(Closeup::new(centre, radius_km))
            }
        }
    }

    /// The chart point of a unit vector, if it is visible. A place on the antimeridian is at +180.
    pub(crate) fn chart(&self, vector: [f64; 3]) -> Option<[f64; 2]> {
        let [x, y, z] = vector;
        match self {
            Plane::Globe(view) => (dot(view.towards, vector) >= 0.0)
                .then(|| [dot(view.right, vector), dot(view.up, vector)]),
            Plane::Around(closeup) => {
                Some(closeup.point(vector)).filter(|&point| closeup.contains(point))
            }
            // `+ 0.0` turns −0 into 0, whose arctangent is π.
            _ => Some([(y + 0.0).atan2(x).to_degrees(), z.atan2(x.hypot(y)).to_degrees()]),
        }
    }

    /// Projects degrees into the plane of the map, in radians.
    pub(crate) fn plane_from_chart(self, [longitude, latitude]: [f64; 2]) -> [f64; 2] {
        match self {
            Plane::Equirectangular => [longitude.to_radians(), latitude.to_radians()],
            Plane::EqualEarth => equal_earth(longitude.to_radians(), latitude.to_radians()),
            Plane::Globe(_) | Plane::Around(_) => [longitude, latitude],
        }
    }

    pub(crate) fn inverse(&self, [x, y]: [f64; 2]) -> Option<LatLon> {
        match self {
            Plane::Equirectangular => from_radians(y, x),
            Plane::EqualEarth => {
                let limit = equal_earth_y(FRAC_PI_3).0;
                // At the pole itself rounding must not decide.
                if y.is_nan() || y.abs() > limit * (1.0 + 4.0 * f64::EPSILON) {
                    return None;
                }
                let theta = equal_earth_theta(y.clamp(-limit, limit));
                let latitude = (2.0 / 3f64.sqrt() * theta.sin()).clamp(-1.0, 1.0).asin();
                from_radians(latitude, x / equal_earth_width(theta))
            }
            Plane::Globe(view) => {
                let depth = (1.0 - x * x - y * y).sqrt(); // NaN outside
                let vector = std::array::from_fn(|axis| {
                    x * view.right[axis] + y * view.up[axis] + depth * view.towards[axis]
                });
                UnitVector::from_direction(vector).map(LatLon::from)
            }
            Plane::Around(closeup) => closeup.inverse([x, y]),
        }
    }

    /// A point of the map near a point of the plane, and the point itself if that is on the map.
    pub(crate) fn nearest(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        match self {
            Plane::Equirectangular => [x.clamp(-PI, PI), y.clamp(-FRAC_PI_2, FRAC_PI_2)],
            Plane::EqualEarth => {
                let limit = equal_earth_y(FRAC_PI_3).0;
                let y = y.clamp(-limit, limit);
                let half_width = PI * equal_earth_width(equal_earth_theta(y));
                [x.clamp(-half_width, half_width), y]
            }
            Plane::Globe(_) => {
                // Just inside, where the depth under the root is not lost to rounding.
                let shrink = (1.0 - 1e-9) / x.hypot(y).max(1.0 - 1e-9);
                [x * shrink, y * shrink]
            }
            Plane::Around(closeup) => closeup.nearest([x, y]),
        }
    }

    /// The edge of the map as a closed ring in the plane, anticlockwise.
    pub(crate) fn edge(&self) -> Vec<[f64; 2]> {
        if let Plane::Around(closeup) = self {
            return closeup.corners().to_vec();
        }
        let positions = 0..self.edge_length() as i64;
        positions.map(|step| self.plane_from_chart(self.edge_point(step as f64))).collect()
    }

    /// Length of the edge in the units of [`Plane::edge_position`].
    pub(crate) fn edge_length(&self) -> f64 {
        match self {
            Plane::Globe(_) => 360.0,
            _ => 1080.0,
        }
    }

    /// Where a chart point on the edge lies along it, anticlockwise. For flat maps: up the right
    /// side (0 to 180), along the top (to 540), down the left side (to 720), along the bottom.
    pub(crate) fn edge_position(&self, [x, y]: [f64; 2]) -> f64 {
        match self {
            Plane::Globe(_) => y.atan2(x).to_degrees().rem_euclid(360.0),
            _ if x >= 180.0 => y + 90.0,
            _ if x <= -180.0 => 540.0 + 90.0 - y,
            _ if y > 0.0 => 180.0 + 180.0 - x,
            _ => 720.0 + 180.0 + x,
        }
    }

    /// Chart points strictly between two positions on the edge, anticlockwise, one per unit.
    pub(crate) fn along_edge(&self, from: f64, to: f64) -> impl Iterator<Item = [f64; 2]> + use<> {
        let length = self.edge_length();
        let end = if to < from { to + length } else { to };
        let plane = *self;
        let steps = (from.floor() as i64 + 1)..=(end.ceil() as i64 - 1);
        steps.map(move |step| plane.edge_point((step as f64).rem_euclid(length)))
    }

    fn edge_point(&self, position: f64) -> [f64; 2] {
        match self {
            Plane::Globe(_) => {
                let (sin, cos) = position.to_radians().sin_cos();
                [cos, sin]
            }
            _ if position <= 180.0 => [180.0, position - 90.0],
            _ if position <= 540.0 => [180.0 - (position - 180.0), 90.0],
            _ if position <= 720.0 => [-180.0, 90.0 - (position - 540.0)],
            _ => [position - 720.0 - 180.0, -90.0],
        }
    }

    /// Where the short arc between two unit vectors meets the edge: the chart points at which it
    /// leaves and enters the map. A globe has only one of them; a flat map has both or none.
    pub(crate) fn crossing(&self, from: [f64; 3], to: [f64; 3]) -> Option<Crossing> {
        let (start, end) = match self {
            Plane::Globe(view) => (dot(view.towards, from), dot(view.towards, to)),
            _ => (from[1], to[1]),
        };
        if (start >= 0.0) == (end >= 0.0) {
            return None;
        }
        let share = start / (start - end);
        let [x, y, z] = std::array::from_fn(|axis| from[axis] + share * (to[axis] - from[axis]));
        match self {
            Plane::Globe(view) => {
                let (right, up) = (dot(view.right, [x, y, z]), dot(view.up, [x, y, z]));
                let length = right.hypot(up).max(f64::MIN_POSITIVE);
                let point = Some([right / length, up / length]);
                Some(if start >= 0.0 {
                    Crossing { exit: point, entry: None }
                } else {
                    Crossing { exit: None, entry: point }
                })
            }
            // Through the meridian of Greenwich, which is no edge.
            _ if x > 0.0 => None,
            _ => {
                let latitude = z.atan2(-x).to_degrees();
                let side = if start >= 0.0 { 180.0 } else { -180.0 };
                Some(Crossing { exit: Some([side, latitude]), entry: Some([-side, latitude]) })
            }
        }
    }
}

/// See [`Plane::crossing`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crossing {
    pub(crate) exit: Option<[f64; 2]>,
    pub(crate) entry: Option<[f64; 2]>,
}

impl View {
    pub(crate) fn above(centre: LatLon) -> View {
        let (sin_latitude, cos_latitude) = centre.latitude().to_radians().sin_cos();
        let (sin_longitude, cos_longitude) = centre.longitude().to_radians().sin_cos();
        View {
            right: [-sin_longitude, cos_longitude, 0.0],
            up: [-sin_latitude * cos_longitude, -sin_latitude * sin_longitude, cos_latitude],
            towards: [cos_latitude * cos_longitude, cos_latitude * sin_longitude, sin_latitude],
        }
    }
}

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// A place from radians, if they are on the map; the right edge is the antimeridian too.
fn from_radians(latitude: f64, longitude: f64) -> Option<LatLon> {
    // Rounding may carry a point of the edge over it by a few units in the last place.
    let within = |angle: f64, limit: f64| angle.abs() <= limit * (1.0 + 4.0 * f64::EPSILON);
    if !within(latitude, FRAC_PI_2) || !within(longitude, PI) {
        return None;
    }
    LatLon::new(latitude.to_degrees().clamp(-90.0, 90.0), longitude.to_degrees()).ok()
}

/// The polynomial of Equal Earth: A₁ to A₄ of the paper.
const EQUAL_EARTH: [f64; 4] = [1.340264, -0.081106, 0.000893, 0.003796];

fn equal_earth(longitude: f64, latitude: f64) -> [f64; 2] {
    let theta = (3f64.sqrt() / 2.0 * latitude.sin()).asin();
    [longitude * equal_earth_width(theta), equal_earth_y(theta).0]
}

/// y and dy/dθ for the parametric latitude θ, in [−π/3, π/3].
fn equal_earth_y(theta: f64) -> (f64, f64) {
    let [a1, a2, a3, a4] = EQUAL_EARTH;
    let t2 = theta * theta;
    let t6 = t2 * t2 * t2;
    let y = theta * (a1 + a2 * t2 + t6 * (a3 + a4 * t2));
    (y, a1 + 3.0 * a2 * t2 + t6 * (7.0 * a3 + 9.0 * a4 * t2))
}

/// x per radian of longitude.
fn equal_earth_width(theta: f64) -> f64 {
    2.0 * 3f64.sqrt() / 3.0 * theta.cos() / equal_earth_y(theta).1
}

/// θ for y on the map, by Newton's method; the slope never falls below 1.
fn equal_earth_theta(y: f64) -> f64 {
    let mut theta = y / EQUAL_EARTH[0];
    for _ in 0..12 {
        let (value, slope) = equal_earth_y(theta);
        let step = (value - y) / slope;
        theta -= step;
        if step.abs() < 1e-15 {
            break;
        }
    }
    theta.clamp(-FRAC_PI_3, FRAC_PI_3)
}
