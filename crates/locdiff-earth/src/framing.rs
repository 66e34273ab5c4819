//! How views are framed: widths, heights, tilts, and how much land they must show.

use crate::EARTH_RADIUS_KM;
use crate::camera::{Camera, Pose};
use crate::land_mask::LandMask;
use crate::places::Places;
use crate::random::Random;

/// Lenses wider than this are left out: beyond it, they are fish eyes.
const WIDEST_TANGENT: f64 = 0.65;
/// Ground seen flatter than this in the middle of the picture is left out.
const STEEPEST_INCIDENCE_DEGREES: f64 = 62.0;

/// What a view must show.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Shows {
    /// At least a tenth of the picture is land.
    Land,
    /// Hardly any: at most a thousandth.
    OpenSea,
}

impl Shows {
    pub(crate) fn accepts(self, land_fraction: f64) -> bool {
        match self {
            Self::Land => land_fraction >= 0.1,
            Self::OpenSea => land_fraction <= 0.001,
        }
    }
}

/// Ranges from which a view's camera is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Framing {
    /// Narrowest and widest view in km, drawn evenly in the logarithm.
    pub width_km: [f64; 2],
    /// Heights of the station, km.
    pub altitude_km: [f64; 2],
    /// Share of views from higher up, and how high at most.
    pub high_share: f64,
    /// The highest of those, km.
    pub highest_km: f64,
    /// Largest tilt from straight down.
    pub tilt_degrees: f64,
    /// Land or open sea.
    pub shows: Shows,
    /// Share of views that show open sea all the same.
    pub open_sea_share: f64,
}

impl Default for Framing {
    fn default() -> Self {
        Self {
            width_km: [100.0, 2000.0],
            altitude_km: [300.0, 450.0],
            high_share: 0.25,
            highest_km: 3000.0,
            tilt_degrees: 50.0,
            shows: Shows::Land,
            open_sea_share: 0.0,
        }
    }
}

impl Framing {
    /// A camera for a view of this width, looking at a place drawn for it.
    pub(crate) fn camera(&self, random: &mut Random, places: &Places, width_km: f64) -> Camera {
        let (latitude, longitude) = match self.shows {
            Shows::Land => places.draw(random),
            Shows::OpenSea => {
                (random.between(-1.0, 1.0).asin().to_degrees(), random.between(-180.0, 180.0))
            }
        };
        let mut altitude_km = random.between(self.altitude_km[0], self.altitude_km[1]);
        if random.chance(self.high_share) {
            altitude_km = random.log_between(altitude_km, self.highest_km);
        }
        // Three in ten are nearly straight down.
        let tilt = self.tilt_degrees * random.unit() * if random.chance(0.3) { 0.3 } else { 1.0 };
        let upright = random.chance(0.5);
        let roll_degrees =
            if upright { 12.0 * random.normal() } else { random.between(0.0, 360.0) };
        let heading_degrees = random.between(0.0, 360.0);
        loop {
            let sine = STEEPEST_INCIDENCE_DEGREES.to_radians().sin() * EARTH_RADIUS_KM
                / (EARTH_RADIUS_KM + altitude_km);
            let camera = Camera::new(Pose {
                latitude,
                longitude,
                altitude_km,
                tilt_degrees: tilt.min(sine.asin().to_degrees()),
                heading_degrees,
                roll_degrees,
                width_km,
            });
            if camera.tan_half <= WIDEST_TANGENT {
                return camera;
            }
            altitude_km *= 1.15;
        }
    }

    /// A quick look at 8 × 8 points, before the work of rendering: false where it is hopeless.
    pub(crate) fn worth_rendering(&self, camera: &Camera, mask: &LandMask) -> bool {
        const STEPS: usize = 8;
        let land = (0..STEPS * STEPS).filter(|at| {
            let place = |step: usize| (step as f64 + 0.5) / STEPS as f64 * 2.0 - 1.0;
            camera
                .place_at(place(at % STEPS), place(at / STEPS))
                .is_some_and(|(latitude, longitude)| mask.is_land(latitude, longitude))
        });
        let fraction = land.count() as f64 / (STEPS * STEPS) as f64;
        match self.shows {
            Shows::Land => fraction >= 0.1,
            Shows::OpenSea => fraction == 0.0,
        }
    }
}
