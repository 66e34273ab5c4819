use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;

/// Pictures are made so large and reduced by the mean of blocks, as thumbnails are.
const SIDE: usize = 288;
const BLOCK: usize = 3;

type Image = Vec<[f64; 3]>;

fn thumbnail(image: &Image) -> Thumbnail {
    let small = SIDE / BLOCK;
    let mut rgb = Vec::new();
    for y in 0..small {
        for x in 0..small {
            for channel in 0..3 {
                let mut sum = 0.0;
                for k in 0..BLOCK * BLOCK {
                    let at = (y * BLOCK + k / BLOCK) * SIDE + x * BLOCK + k % BLOCK;
                    // Files store bytes.
                    sum += image[at][channel].round().clamp(0.0, 255.0);
                }
                rgb.push((sum / (BLOCK * BLOCK) as f64).round() as u8);
            }
        }
    }
    Thumbnail::new(small, small, &rgb).unwrap()
}

/// Smooth noise at a scale in pixels: bilinear between random corners.
fn octave(scale: usize, rng: &mut impl Rng) -> Vec<f64> {
    let corners = SIDE / scale + 2;
    let values: Vec<f64> = (0..corners * corners).map(|_| StandardNormal.sample(rng)).collect();
    let mut field = Vec::with_capacity(SIDE * SIDE);
    for y in 0..SIDE {
        for x in 0..SIDE {
            let (i, j) = (y / scale, x / scale);
            let (v, u) = ((y % scale) as f64 / scale as f64, (x % scale) as f64 / scale as f64);
            let at = |i: usize, j: usize| values[i * corners + j];
            let top = (1.0 - u) * at(i, j) + u * at(i, j + 1);
            let bottom = (1.0 - u) * at(i + 1, j) + u * at(i + 1, j + 1);
            field.push((1.0 - v) * top + v * bottom);
        }
    }
    field
}

/// A landscape under a smooth sky, with a sensor's noise; some at night, some in fog, some clipped.
fn photo(rng: &mut impl Rng) -> Image {
    let contrast = rng.random_range(4.0..45.0);
    let base: [f64; 3] = std::array::from_fn(|_| rng.random_range(20.0..200.0));
    let sky: [f64; 3] = std::array::from_fn(|_| rng.random_range(60.0..250.0));
    let horizon = rng.random_range(0..SIDE);
    let noise = rng.random_range(1.0..5.0);
    let darkness = if rng.random_range(0..4) == 0 { rng.random_range(40.0..160.0) } else { 0.0 };
    let octaves: Vec<Vec<f64>> = [64, 24, 8, 3].map(|scale| octave(scale, rng)).into();
    (0..SIDE * SIDE)
        .map(|at| {
            let y = at / SIDE;
            let texture: f64 = octaves.iter().map(|field| field[at]).sum::<f64>() * 0.5;
            let slope = 40.0 * y as f64 / SIDE as f64;
            std::array::from_fn(|channel| {
                let light = if y < horizon {
                    sky[channel] - slope
                } else {
                    base[channel] + contrast * texture
                };
                let grain: f64 = StandardNormal.sample(rng);
                light - darkness + noise * grain
            })
        })
        .collect()
}

/// A window of panels, a page with lines of text, or a drawing of discs.
fn graphic(rng: &mut impl Rng) -> Image {
    let color = |rng: &mut dyn FnMut() -> f64| std::array::from_fn(|_| (255.0 * rng()).round());
    let mut next = || rng.random_range(0.0..1.0_f64);
    let background: [f64; 3] = if next() < 0.5 { [255.0; 3] } else { color(&mut next) };
    let mut image = vec![background; SIDE * SIDE];
    let style = (3.0 * next()) as usize;
    let shapes = 3 + (10.0 * next()) as usize;
    for _ in 0..shapes {
        let ink: [f64; 3] = color(&mut next);
        let (x, y) = ((SIDE as f64 * next()) as usize, (SIDE as f64 * next()) as usize);
        let (w, h) = (10 + (120.0 * next()) as usize, 10 + (80.0 * next()) as usize);
        for dy in 0..h.min(SIDE - y) {
            for dx in 0..w.min(SIDE - x) {
                let at = (y + dy) * SIDE + x + dx;
                let (u, v) = (2.0 * dx as f64 / w as f64 - 1.0, 2.0 * dy as f64 / h as f64 - 1.0);
                let inside = match style {
                    // Panels.
                    0 => true,
                    // Text: strokes in lines.
                    1 => dy % 12 < 7 && (dx * 7 + dy * 3 + dx / 5) % 5 < 2,
                    _ => u * u + v * v < 1.0,
                };
                if inside {
                    image[at] = ink;
                }
            }
        }
    }
    image
}

#[test]
fn stated_error_rates() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let count = 400;
    let mut wrong = [0; 2];
    for _ in 0..count {
        let photo = thumbnail(&photo(&mut rng));
        wrong[0] += usize::from(kind_of(&photo, false) != Kind::Photo);
        let graphic = thumbnail(&graphic(&mut rng));
        wrong[1] += usize::from(kind_of(&graphic, false) != Kind::Graphic);
    }
    println!("of {count} each: {} photos and {} graphics are wrong", wrong[0], wrong[1]);
    assert!(wrong[0] * 100 < count, "{} photos of {count} are graphics", wrong[0]);
    assert!(wrong[1] * 50 < count, "{} graphics of {count} are photos", wrong[1]);
}

#[test]
fn space_and_night_are_photos() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let mut limb = photo(&mut rng);
    limb.iter_mut().take(SIDE * SIDE * 7 / 10).for_each(|pixel| *pixel = [0.0; 3]);
    assert_eq!(kind_of(&thumbnail(&limb), false), Kind::Photo);
    assert_eq!(kind_of(&thumbnail(&vec![[3.0; 3]; SIDE * SIDE]), false), Kind::Photo);
}

#[test]
fn sizes_must_fit() {
    assert_eq!(Thumbnail::new(2, 2, &[0; 11]), None);
    assert_eq!(Thumbnail::new(0, 5, &[]), None);
    assert_eq!(Thumbnail::new(usize::MAX, 2, &[]), None);
    assert!(Thumbnail::new(1, 1, &[9; 3]).is_some());
}
