//! Views by night: city lights, moonlight, clouds that dim them.

use crate::camera::Camera;
use crate::canvas::{Canvas, fading};
use crate::imagery::Imagery;
use crate::random::Random;
use crate::scene::Scene;

/// One night's moon and lamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Night {
    lamps: f32,
    lamp_colour: [f32; 3],
    moon: f32,
    /// How much of a lamp's light clouds let through.
    through_cloud: f32,
}

/// Lamps brighter than this are seen, and a night view needs this share of its pixels to have them.
const SEEN_LAMP: f32 = 0.04;
const LIT_SHARE: f32 = 0.015;

impl Night {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let warmth = random.between_f32(0.0, 1.0);
        Self {
            lamps: random.log_between(0.8, 6.0) as f32,
            lamp_colour: [1.0, 0.92 - 0.37 * warmth, 0.85 - 0.65 * warmth],
            moon: if random.chance(0.5) { random.log_between(0.01, 0.25) as f32 } else { 0.0 },
            through_cloud: random.between_f32(0.2, 0.8),
        }
    }

    /// A quick look at 8 × 8 points: false where it is hopeless.
    pub(crate) fn worth_rendering(camera: &Camera, imagery: &Imagery) -> bool {
        const STEPS: usize = 8;
        // Coarse texels contain every lamp near them.
        let footprint_km = camera.pose.width_km / STEPS as f64;
        (0..STEPS * STEPS).any(|at| {
            let place = |step: usize| (step as f64 + 0.5) / STEPS as f64 * 2.0 - 1.0;
            camera.place_at(place(at % STEPS), place(at / STEPS)).is_some_and(|(lat, lon)| {
                let ([red, green, blue], _) = imagery.colour(lat, lon, footprint_km);
                lamp_brightness(red, green, blue) > 0.1 * SEEN_LAMP
            })
        })
    }

    /// Whether the moon shows any of the ground.
    pub(crate) fn has_moon(&self) -> bool {
        self.moon > 0.0
    }

    /// Takes the lamps out of the colours of a map by night; false if there are too few to know
    /// anything from.
    #[inline(always)]
    pub(crate) fn light_lamps(&self, canvas: &mut Canvas) -> bool {
        let pixels = canvas.size * canvas.size;
        let (red, green) = (&canvas.red[..pixels], &canvas.green[..pixels]);
        let (blue, lamp) = (&canvas.blue[..pixels], &mut canvas.lamp[..pixels]);
        let mut lit = 0.0;
        for at in 0..pixels {
            lamp[at] = lamp_brightness(red[at], green[at], blue[at]) * self.lamps;
            lit += if lamp[at] > SEEN_LAMP { 1.0 } else { 0.0 };
        }
        lit >= LIT_SHARE * pixels as f32
    }

    /// Turns lamps and the day's colours, already read, into light by night.
    #[inline(always)]
    pub(crate) fn shade(&self, canvas: &mut Canvas, scene: &Scene) {
        let pixels = canvas.size * canvas.size;
        let (red, green) = (&mut canvas.red[..pixels], &mut canvas.green[..pixels]);
        let (blue, lamp) = (&mut canvas.blue[..pixels], &canvas.lamp[..pixels]);
        let (cloud, veil) = (&canvas.cloud[..pixels], &canvas.veil[..pixels]);
        let (view_cos, air) = (&canvas.view_cos[..pixels], &canvas.air[..pixels]);
        let land = &canvas.land[..pixels];
        for at in 0..pixels {
            let here = if view_cos[at] >= 0.0 { 1.0 } else { 0.0 };
            // Airglow: a faint green arc above the limb.
            let glow = (1.0 - here) * 0.012 * (air[at] * 0.05).min(1.0);
            let cover = cloud[at] + veil[at] * (1.0 - cloud[at]);
            let clear = fading(scene.air.depth[1] * air[at]) * here;
            let dimmed = lamp[at] * (1.0 - cover * (1.0 - self.through_cloud)) * clear;
            let moonlight = self.moon * clear;
            let share = land[at];
            let unmixed = 1.0 / share.max(1.0 / 512.0);
            let seen = |channel: usize, map: f32, moon_colour: f32, glow_colour: f32| {
                let painted = (map * unmixed).min(1.0);
                let water = scene.sea.colour[channel];
                let bare = water + (painted * painted - water) * share;
                let ground = bare + (0.6 - bare) * cover;
                let lamps = dimmed * self.lamp_colour[channel];
                lamps + moonlight * moon_colour * ground + glow * glow_colour
            };
            red[at] = seen(0, red[at], 0.75, 0.4);
            green[at] = seen(1, green[at], 0.85, 1.0);
            blue[at] = seen(2, blue[at], 1.0, 0.5);
        }
    }
}

/// The lamps in a colour (0–1) of the map by night, whose land is painted dark blue: what is
/// brighter than that paint, and yellow rather than blue.
#[inline(always)]
fn lamp_brightness(red: f32, green: f32, blue: f32) -> f32 {
    let warm = (0.6 * red + 0.4 * green - 0.25 * blue - 0.047).max(0.0) * 1.417;
    warm * warm
}
