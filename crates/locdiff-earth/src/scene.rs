//! One view's light, weather and sensor, drawn from a style.
//!
//! Colours are linear (a map's byte, as a part of 255, squared) until the tone curve.

use crate::camera::{Camera, add, cross, dot, local_axes, normalized};
use crate::noise::{Character, Layer};
use crate::random::Random;
use crate::style::Style;

/// Everything drawn at random for a view, besides its camera.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) sun: [f32; 3],
    /// Brightness of what the sun lights straight on, before exposure.
    pub(crate) ambient: f32,
    pub(crate) exposure: f32,
    /// How far exposure follows the picture's own brightness, 0–1.
    pub(crate) metering: f32,
    pub(crate) air: Air,
    pub(crate) clouds: Option<Clouds>,
    pub(crate) veil: Option<Veil>,
    pub(crate) snow: Option<Snow>,
    pub(crate) sea: Sea,
    /// Broad patches, for sea, snow and air; none in plain views.
    pub(crate) patches: Option<Layer>,
    pub(crate) land_gain: [f32; 3],
    pub(crate) land_contrast: f32,
    pub(crate) level_shift: f32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Air {
    /// Optical depth straight down, red, green, blue.
    pub(crate) depth: [f32; 3],
    pub(crate) colour: [f32; 3],
    /// How uneven the air is.
    pub(crate) patchiness: f32,
}

#[derive(Clone, Debug)]
pub(crate) struct Clouds {
    pub(crate) layers: [Layer; 3],
    pub(crate) weights: [f32; 3],
    pub(crate) warp: f32,
    pub(crate) threshold: f32,
    /// How fast a cloud thickens from its edge.
    pub(crate) thickness: f32,
    /// How much of the fine noise shows inside clouds.
    pub(crate) texture: f32,
    pub(crate) opacity: f32,
    pub(crate) brightness: f32,
    pub(crate) shadow: f32,
    pub(crate) relief: f32,
    pub(crate) height_km: f64,
}

/// Thin high cloud.
#[derive(Clone, Debug)]
pub(crate) struct Veil {
    pub(crate) layer: Layer,
    pub(crate) threshold: f32,
    pub(crate) opacity: f32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Snow {
    /// +1 where the north has winter, −1 where the south has.
    pub(crate) winter: f32,
    /// Latitude of the snow line in the winter hemisphere and in the other.
    pub(crate) line: [f32; 2],
    pub(crate) raggedness: f32,
    pub(crate) depth: f32,
    /// Latitudes where the sea is frozen, north and south.
    pub(crate) ice_line: [f32; 2],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sea {
    pub(crate) colour: [f32; 3],
    /// The other end of its range, mixed in by patches.
    pub(crate) other: [f32; 3],
    /// Change of brightness per view width, to the right and upward.
    pub(crate) slope: [f32; 2],
    pub(crate) glint: f32,
    /// One over the mean square slope of the waves.
    pub(crate) smoothness: f32,
}

impl Scene {
    pub(crate) fn draw(
        random: &mut Random,
        style: &Style,
        camera: &Camera,
        size_px: usize,
        night: bool,
    ) -> Self {
        let pixel_km = camera.pose.width_km / size_px as f64;
        let season = random.between(-1.0, 1.0);
        let glint = !night && random.chance(0.3 * f64::from(style.glint));
        let sun = sun_direction(random, style, camera, season, glint);
        let patches = (style.sea + style.snow + style.haze > 0.0).then(|| {
            let period = camera.pose.width_km * random.log_between(0.7, 4.0);
            let stretch = random.log_between(1.0, 3.0);
            Layer::random(random, Character::Swells, period, stretch, pixel_km)
        });
        let white = |random: &mut Random, spread: f32| {
            std::array::from_fn(|_| (random.normal() as f32 * spread * style.colour).exp())
        };
        let level_shift = random.between_f32(-0.6, 0.3) * style.blur.min(1.0);
        Self {
            sun: sun.map(|value| value as f32),
            ambient: 0.04 + 0.06 * random.unit() as f32 * style.light,
            exposure: (random.normal() * 0.28 * f64::from(style.light)).exp() as f32,
            metering: random.between_f32(0.1, 0.6) * style.light,
            air: air(random, style),
            clouds: clouds(random, style, camera.pose.width_km, pixel_km),
            veil: veil(random, style, camera.pose.width_km, pixel_km),
            snow: snow(random, style, season),
            sea: sea(random, style, glint),
            patches,
            land_gain: white(random, 0.03),
            land_contrast: 1.0 + random.between_f32(-0.2, 0.2) * style.colour,
            level_shift,
        }
    }
}

/// Overhead in plain views; else as high as latitude and season allow, or where it glints.
fn sun_direction(
    random: &mut Random,
    style: &Style,
    camera: &Camera,
    season: f64,
    glint: bool,
) -> [f64; 3] {
    let [up, east, north] = local_axes(camera.pose.latitude, camera.pose.longitude);
    if style.light == 0.0 {
        return up;
    }
    let azimuth = random.between(0.0, std::f64::consts::TAU);
    let highest = (90.0 - (camera.pose.latitude - 23.4 * season).abs()).clamp(12.0, 88.0);
    let lowest = if random.chance(0.12) { -3.0 } else { 10.0f64.min(highest - 2.0) };
    let height = random.between(lowest, highest).to_radians();
    if glint {
        // The mirror image of the camera in the sea at some point of the picture.
        let (x, y) = (random.between(-0.9, 0.9), random.between(-0.9, 0.9));
        if let Some((latitude, longitude)) = camera.place_at(x, y) {
            let [normal, ..] = local_axes(latitude, longitude);
            let to_camera = normalized(add(camera.position, -1.0, normal));
            let cosine = dot(to_camera, normal);
            return add(normal.map(|value| 2.0 * cosine * value), -1.0, to_camera);
        }
    }
    let along = add(north.map(|value| value * azimuth.cos()), azimuth.sin(), east);
    debug_assert!(dot(cross(along, up), up).abs() < 1e-9);
    add(up.map(|value| value * height.sin()), height.cos(), along)
}

/// Molecules scatter blue, dust and droplets all colours.
fn air(random: &mut Random, style: &Style) -> Air {
    let molecules = random.between_f32(0.7, 1.5) * style.haze;
    let dust = if random.chance(0.85) {
        random.log_between(0.02, 0.25)
    } else {
        random.log_between(0.2, 0.6)
    };
    let dust = dust as f32 * style.haze;
    let warm = random.between_f32(-0.06, 0.1) * style.colour;
    Air {
        depth: [0.045, 0.10, 0.22].map(|depth| depth * molecules + dust),
        colour: [0.30 + warm, 0.44 + 0.3 * warm, 0.66 - 0.5 * warm],
        patchiness: random.between_f32(0.0, 0.5) * style.haze,
    }
}

fn clouds(random: &mut Random, style: &Style, width_km: f64, pixel_km: f64) -> Option<Clouds> {
    // A quarter of views are clear; heavy cloud is rarer than some.
    let coverage = if random.chance(0.28) { 0.0 } else { random.unit().powf(2.0) * 0.7 };
    let coverage = (coverage as f32) * style.clouds.min(1.0);
    if coverage < 0.004 {
        return None;
    }
    let main = match random.bits() % 8 {
        0..=3 => Character::Billows,
        4..=6 => Character::Cells,
        _ => Character::Ridges,
    };
    let main_period = width_km * random.log_between(0.6, 3.0);
    let stretch = if random.chance(0.4) { random.log_between(1.0, 5.0) } else { 1.0 };
    let fine_period = main_period * random.between(0.23, 0.45);
    let broad_period = width_km * random.log_between(1.2, 5.0);
    let layers = [
        Layer::random(random, Character::Swells, broad_period, 1.5, pixel_km),
        Layer::random(random, main, main_period, stretch, pixel_km),
        Layer::random(random, Character::Billows, fine_period, 1.0, pixel_km),
    ];
    let weights = [random.between_f32(0.2, 1.0), 0.8, random.between_f32(0.25, 0.7)];
    let total: f32 = weights.iter().sum();
    let weights = weights.map(|weight| weight / total);
    // Each layer is uniform over 0–1, with variance 1/12; their sum is nearly normal.
    let deviation = weights.iter().map(|weight| weight * weight / 12.0).sum::<f32>().sqrt();
    Some(Clouds {
        layers,
        weights,
        warp: random.between_f32(0.0, 0.12),
        threshold: 0.5 + deviation * upper_quantile(coverage),
        thickness: random.log_between(0.5, 3.5) as f32 / deviation,
        texture: random.between_f32(0.4, 1.0),
        opacity: random.between_f32(0.75, 1.0),
        brightness: random.between_f32(0.75, 1.1),
        shadow: random.between_f32(0.3, 0.8) * style.clouds.min(1.0),
        relief: random.between_f32(0.0, 0.5),
        height_km: random.log_between(1.5, 12.0),
    })
}

/// How many deviations above the mean this share of a normal distribution lies.
fn upper_quantile(share: f32) -> f32 {
    // A logistic curve is within a few hundredths of it where it matters.
    ((1.0 - share) / share).ln() / 1.702
}

fn veil(random: &mut Random, style: &Style, width_km: f64, pixel_km: f64) -> Option<Veil> {
    let wanted = random.chance(0.3 * f64::from(style.clouds));
    let period = width_km * random.log_between(0.5, 3.0);
    let stretch = random.log_between(1.5, 8.0);
    wanted.then(|| Veil {
        layer: Layer::random(random, Character::Ridges, period, stretch, pixel_km),
        threshold: random.between_f32(0.3, 0.8),
        opacity: random.between_f32(0.1, 0.6),
    })
}

fn snow(random: &mut Random, style: &Style, season: f64) -> Option<Snow> {
    // Deep winter pushes the line towards 35°, summer beyond the land.
    let strength = season.abs();
    let winter_line = 72.0 - 34.0 * strength + 7.0 * random.normal();
    let summer_line = 80.0 + 4.0 * random.normal();
    let ice = |random: &mut Random, winter: f64| 80.0 - 16.0 * winter + 5.0 * random.normal();
    (style.snow > 0.0).then(|| Snow {
        winter: if season < 0.0 { 1.0 } else { -1.0 },
        line: [winter_line as f32, summer_line as f32],
        raggedness: random.between_f32(4.0, 16.0),
        depth: random.between_f32(0.3, 1.0) * style.snow.min(1.0),
        ice_line: [
            ice(random, (-season).max(0.0)) as f32,
            ice(random, season.max(0.0)) as f32 - 8.0,
        ],
    })
}

fn sea(random: &mut Random, style: &Style, glint: bool) -> Sea {
    const PLAIN: [f32; 3] = [0.004, 0.014, 0.035];
    let colour = |random: &mut Random| {
        // From black-blue over blue to turquoise, mostly dark.
        let part = random.unit().powi(2) as f32 * style.sea.min(1.0);
        let bright = (random.normal() as f32 * 0.5 * style.sea).exp();
        let green = random.between_f32(-0.3, 0.5) * style.sea;
        let mix = |low: f32, high: f32| (low + (high - low) * part) * bright;
        [mix(PLAIN[0], 0.012), mix(PLAIN[1], 0.06) * (1.0 + green), mix(PLAIN[2], 0.10)]
    };
    let first = colour(random);
    let second = colour(random);
    let contrast = random.unit() as f32 * style.sea.min(1.0);
    let strength = random.log_between(0.15, 3.0) as f32;
    Sea {
        colour: first,
        other: std::array::from_fn(|c| first[c] + (second[c] - first[c]) * contrast),
        slope: [
            random.between_f32(-0.35, 0.35) * style.sea,
            random.between_f32(-0.35, 0.35) * style.sea,
        ],
        glint: if glint { strength * style.glint } else { 0.02 * style.glint },
        smoothness: random.log_between(15.0, 150.0) as f32,
    }
}
