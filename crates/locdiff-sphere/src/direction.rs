//! A point in the form that the harmonics need: folded to the northern hemisphere, with the small
//! quantity 1 − cos θ computed without cancellation.

use crate::LatLon;
use crate::place::sin_cos_degrees;

/// A point of the sphere, prepared for the recurrence.
///
/// Harmonics of the southern hemisphere follow from p_lm(π − θ) = (−1)^(l+m) p_lm(θ), so
/// only colatitudes θ ≤ 90° are ever computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direction {
    pub(crate) colatitude: Colatitude,
    pub(crate) south: bool,
    pub(crate) cos_longitude: f64,
    pub(crate) sin_longitude: f64,
}

/// An angle θ from the nearer pole: sin θ and 1 − cos θ, both to full relative precision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Colatitude {
    pub(crate) sin: f64,
    pub(crate) one_minus_cos: f64,
}

impl Colatitude {
    pub(crate) fn from_radians(theta: f64) -> Colatitude {
        let half = (0.5 * theta).sin();
        Colatitude { sin: theta.sin(), one_minus_cos: 2.0 * half * half }
    }
}

impl From<LatLon> for Direction {
    fn from(place: LatLon) -> Direction {
        // 90 − |latitude| is exact for latitudes beyond 45°, where it matters.
        let theta = (90.0 - place.latitude().abs()).to_radians();
        let (sin_longitude, cos_longitude) = sin_cos_degrees(place.longitude());
        Direction {
            colatitude: Colatitude::from_radians(theta),
            south: place.latitude() < 0.0,
            cos_longitude,
            sin_longitude,
        }
    }
}
