//! From the map's colours to light that reaches the camera, by day.

use crate::canvas::{Canvas, fading, lanes, put};
use crate::imagery::Imagery;
use crate::noise::Tiles;
use crate::pyramid::LANES;
use crate::scene::Scene;

/// Reads colours and land share of all pixels.
#[inline(always)]
pub(crate) fn fetch(canvas: &mut Canvas, imagery: &Imagery, level_shift: f32) {
    let pixels = canvas.size * canvas.size;
    let shift = level_shift - (imagery.texel_km() as f32).log2();
    let sampler = imagery.pyramid.sampler();
    for start in (0..pixels).step_by(LANES) {
        // Neighbours share a level: it hardly changes over a few pixels.
        let level = lanes(&canvas.footprint, start)[LANES / 2] + shift;
        let mut colours =
            sampler.at(&lanes(&canvas.down, start), &lanes(&canvas.round, start), level);
        let view_cos = lanes(&canvas.view_cos, start);
        for plane in &mut colours {
            for lane in 0..LANES {
                plane[lane] *= if view_cos[lane] >= 0.0 { 1.0 / 255.0 } else { 0.0 };
            }
        }
        let out = [&mut canvas.red, &mut canvas.green, &mut canvas.blue, &mut canvas.land];
        for (plane, values) in out.into_iter().zip(&colours) {
            put(plane, start, values);
        }
    }
}

/// Clouds, veil and patches of all pixels, from noise.
#[inline(always)]
pub(crate) fn weather(canvas: &mut Canvas, scene: &Scene) {
    const STILL: [f32; LANES] = [0.0; LANES];
    let tiles = Tiles::shared();
    for start in (0..canvas.size * canvas.size).step_by(LANES) {
        let (east, north) = (&lanes(&canvas.east, start), &lanes(&canvas.north, start));
        let patch = match &scene.patches {
            Some(layer) => layer.at(tiles, east, north, &STILL),
            None => [0.5; LANES],
        };
        put(&mut canvas.patch, start, &patch);

        let mut cloud = [0.0; LANES];
        if let Some(clouds) = &scene.clouds {
            let [broad_layer, main_layer, fine_layer] = &clouds.layers;
            let [broad_weight, main_weight, fine_weight] = clouds.weights;
            let broad = broad_layer.at(tiles, east, north, &STILL);
            let mut warp = STILL;
            for lane in 0..LANES {
                warp[lane] = (broad[lane] + patch[lane] - 1.0) * clouds.warp;
            }
            let main = main_layer.at(tiles, east, north, &warp);
            let fine = fine_layer.at(tiles, east, north, &warp);
            for lane in 0..LANES {
                let value = broad[lane] * broad_weight
                    + main[lane] * main_weight
                    + fine[lane] * fine_weight;
                // Thin at the edge, thicker inwards; the finest noise makes lumps of it.
                let depth = (value - clouds.threshold).max(0.0) * clouds.thickness;
                let lumpy = depth * (1.0 + clouds.texture * (2.0 * fine[lane] - 1.0));
                cloud[lane] = 1.0 - fading(lumpy);
            }
        }
        put(&mut canvas.cloud, start, &cloud);

        let mut veil = [0.0; LANES];
        if let Some(thin) = &scene.veil {
            let streaks = thin.layer.at(tiles, east, north, &patch.map(|value| 0.1 * value));
            let scale = thin.opacity / (1.0 - thin.threshold);
            for lane in 0..LANES {
                veil[lane] = (streaks[lane] - thin.threshold).max(0.0) * scale;
            }
        }
        put(&mut canvas.veil, start, &veil);
    }
}

/// Moves the clouds by as many pixels as their shadows fall away from them.
#[inline(always)]
pub(crate) fn cast_shadows(canvas: &mut Canvas, shift_px: [f32; 2]) {
    let size = canvas.size;
    let last = (size - 1) as f32;
    for row in 0..size {
        let y = (row as f32 + shift_px[1]).clamp(0.0, last);
        let (above, below) = (y as usize, (y as usize + 1).min(size - 1));
        let lower = y - above as f32;
        let top = &canvas.cloud[above * size..][..size];
        let bottom = &canvas.cloud[below * size..][..size];
        let out = &mut canvas.shadow[row * size..][..size];
        for column in 0..size {
            let x = (column as f32 + shift_px[0]).clamp(0.0, last);
            let (left, right) = (x as usize, (x as usize + 1).min(size - 1));
            let part = x - left as f32;
            let mix = |line: &[f32]| line[left] + (line[right] - line[left]) * part;
            out[column] = mix(top) * (1.0 - lower) + mix(bottom) * lower;
        }
    }
}

/// Rises from 0 to 1 between −1/2 and 1/2.
#[inline(always)]
fn ramp(x: f32) -> f32 {
    (x + 0.5).clamp(0.0, 1.0)
}

/// Turns map colours into light: sea, snow, sun, shadows, air, clouds.
#[inline(always)]
pub(crate) fn shade(canvas: &mut Canvas, scene: &Scene) {
    let size = canvas.size;
    let sea = &scene.sea;
    let air = &scene.air;
    let (cloud_opacity, cloud_brightness, shadow_strength, relief) = scene
        .clouds
        .as_ref()
        .map_or((0.0, 0.0, 0.0, 0.0), |c| (c.opacity, c.brightness, c.shadow, c.relief));
    let (winter, snow_lines, ragged, snow_depth, ice_lines) =
        scene.snow.map_or((1.0, [200.0; 2], 1.0, 0.0, [200.0; 2]), |s| {
            (s.winter, s.line, s.raggedness, s.depth, s.ice_line)
        });
    for row in 0..size {
        let span = row * size..(row + 1) * size;
        let red = &mut canvas.red[span.clone()][..size];
        let green = &mut canvas.green[span.clone()][..size];
        let blue = &mut canvas.blue[span.clone()][..size];
        let land = &canvas.land[span.clone()][..size];
        let cloud = &canvas.cloud[span.clone()][..size];
        let shadow = &canvas.shadow[span.clone()][..size];
        let veil = &canvas.veil[span.clone()][..size];
        let patch = &canvas.patch[span.clone()][..size];
        let down = &canvas.down[span.clone()][..size];
        let view_cos = &canvas.view_cos[span.clone()][..size];
        let sun_cos = &canvas.sun_cos[span.clone()][..size];
        let wave_slope = &canvas.wave_slope[span.clone()][..size];
        let air_mass = &canvas.air[span][..size];
        let up = 0.5 - (row as f32 + 0.5) / size as f32;
        for at in 0..size {
            let ground = if view_cos[at] >= 0.0 { 1.0 } else { 0.0 };
            let share = land[at];
            let unmixed = 1.0 / share.max(1.0 / 512.0);
            let uneven = patch[at] - 0.5;

            // The sun fades over the terminator instead of stopping there.
            let sun = 0.5 * (sun_cos[at] + (sun_cos[at] * sun_cos[at] + 0.003).sqrt());
            let direct = sun * (1.0 - shadow_strength * shadow[at]);
            let light = direct + scene.ambient * (sun + 0.1);

            let latitude = 90.0 - 180.0 * down[at];
            let wintry = latitude * winter;
            let line = if wintry > 0.0 { snow_lines[0] } else { snow_lines[1] };
            let snow = ramp((wintry.abs() - line + 2.0 * ragged * uneven) / ragged) * snow_depth;
            let ice_line = if latitude > 0.0 { ice_lines[0] } else { ice_lines[1] };
            let ice = ramp((latitude.abs() - ice_line) * 0.2 + 3.0 * uneven) * snow_depth;

            let right = (at as f32 + 0.5) / size as f32 - 0.5;
            let brightness = (1.0 + sea.slope[0] * right + sea.slope[1] * up).max(0.2);
            let glint = sea.glint * fading(wave_slope[at] * sea.smoothness);

            let cover = cloud[at] * cloud_opacity;
            let thin = veil[at];
            let lit_cloud = cloud_brightness
                * (sun + 0.5 * scene.ambient)
                * (0.72 + 0.28 * cloud[at] + relief * (cloud[at] - shadow[at])).max(0.3);
            let amount = air_mass[at] * (1.0 + 2.0 * air.patchiness * uneven);

            let channel = |index: usize, map: f32| {
                let painted = (map * unmixed).min(1.0);
                let contrasted = (0.3 + (painted - 0.3) * scene.land_contrast).max(0.02)
                    * scene.land_gain[index];
                let bare = contrasted * contrasted;
                // Forests hide part of the snow below them.
                let white = snow * (0.45 + 2.2 * bare).min(1.0);
                let soil = bare + (0.85 - bare) * white;
                let water = (sea.colour[index]
                    + (sea.other[index] - sea.colour[index]) * patch[at])
                    * brightness;
                let water = water + (0.65 - water) * ice + glint * (1.0 - ice);
                let surface = (water + (soil - water) * share) * light * ground;
                let clear = fading(air.depth[index] * amount);
                let scattered = air.colour[index] * (1.0 - clear) * (sun + 0.02);
                let seen = surface * clear + scattered;
                // Clouds float above half of the air.
                let cloudy = lit_cloud * (0.35 + 0.65 * clear) + 0.6 * scattered;
                let seen = seen + (cloudy - seen) * cover * ground;
                seen + (0.75 * sun + 0.3 * scattered - seen) * thin * ground
            };
            let (r, g, b) = (channel(0, red[at]), channel(1, green[at]), channel(2, blue[at]));
            red[at] = r;
            green[at] = g;
            blue[at] = b;
        }
    }
}
