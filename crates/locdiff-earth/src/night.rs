//! Views by night: city lights, moonlight, clouds that dim them.

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

impl Night {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let warmth = random.between_f32(0.0, 1.0);
        Self {
            lamps: random.log_between(0.6, 5.0) as f32,
            lamp_colour: [1.0, 0.9 - 0.35 * warmth, 0.8 - 0.6 * warmth],
            moon: if random.chance(0.5) { random.log_between(0.01, 0.4) as f32 } else { 0.0 },
            through_cloud: random.between_f32(0.1, 0.6),
        }
    }

    /// Turns the day's colours, already read, into light by night.
    #[inline(always)]
    pub(crate) fn shade(&self, canvas: &mut Canvas, scene: &Scene, imagery: &Imagery) {
        let pixels = canvas.size * canvas.size;
        let shift = scene.level_shift - (imagery.texel_km() as f32).log2();
        for at in 0..pixels {
            if canvas.view_cos[at] < 0.0 {
                // Airglow: a faint green arc above the limb.
                let glow = 0.012 * (canvas.air[at] * 0.05).min(1.0);
                (canvas.red[at], canvas.green[at], canvas.blue[at]) = (0.4 * glow, glow, 0.5 * glow);
                continue;
            }
            let level = canvas.footprint[at] + shift;
            let [r, g, b, _] = imagery.pyramid.sample(canvas.down[at], canvas.round[at], level);
            let lamp = lamp_brightness(r, g, b) * self.lamps;
            let cover = canvas.cloud[at] + canvas.veil[at] * (1.0 - canvas.cloud[at]);
            let dimmed = lamp * (1.0 - cover * (1.0 - self.through_cloud));
            let clear = fading(scene.air.depth[1] * canvas.air[at]);
            let moonlight = self.moon * clear;
            let share = canvas.land[at];
            let unmixed = 1.0 / share.max(1.0 / 512.0);
            let ground = |map: f32, sea: f32| {
                let painted = (map * unmixed).min(1.0);
                let bare = sea + (painted * painted - sea) * share;
                bare + (0.6 - bare) * cover
            };
            let sea = scene.sea.colour;
            let [red, green, blue] = self.lamp_colour;
            canvas.red[at] = dimmed * red * clear + 0.75 * moonlight * ground(canvas.red[at], sea[0]);
            canvas.green[at] = dimmed * green * clear + 0.85 * moonlight * ground(canvas.green[at], sea[1]);
            canvas.blue[at] = dimmed * blue * clear + moonlight * ground(canvas.blue[at], sea[2]);
        }
    }
}

/// The lamps in a colour (0–255) of the map by night, whose land is painted dark blue: what is
/// brighter than that paint, and yellow rather than blue.
#[inline(always)]
fn lamp_brightness(red: f32, green: f32, blue: f32) -> f32 {
    let warm = (0.6 * red + 0.4 * green - 0.25 * blue - 12.0).max(0.0) * (1.0 / 180.0);
    warm * warm
}
