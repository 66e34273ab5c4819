//! What is left of a picture when light, haze and film are taken out: how each pixel differs from its surroundings,
//! in units of how much they vary.

/// The surroundings: two means over boxes of this reach, about ten pixels of standard deviation.
const REACH: usize = 12;
const PASSES: usize = 2;
/// Deviations that count as none, in levels of 0 to 255: of brightness, and of the two color differences.
const FLOORS: [f32; 3] = [6.0, 4.0, 4.0];
/// Larger ones are cut off.
const MOST: f32 = 4.0;

/// Brightness, red against green, and yellow against blue of each pixel, against its surroundings: `[side², 3]` from the
/// red, green and blue bytes of a square picture.
///
/// # Panics
/// If the bytes are not those of a square.
pub fn local_contrast(pixels: &[u8], side: usize) -> Vec<f32> {
    assert_eq!(pixels.len(), 3 * side * side, "the bytes of a square");
    let mut contrast = vec![0.0; pixels.len()];
    let (mut plane, mut mean) = (vec![0.0; side * side], vec![0.0; side * side]);
    let (mut square, mut spare) = (mean.clone(), mean.clone());
    let channels: [fn([f32; 3]) -> f32; 3] = [
        |[red, green, blue]| (red + green + blue) / 3.0,
        |[red, green, _]| red - green,
        |[red, green, blue]| 0.5 * (red + green) - blue,
    ];
    for (channel, (of, floor)) in channels.iter().zip(FLOORS).enumerate() {
        for (value, pixel) in plane.iter_mut().zip(pixels.chunks_exact(3)) {
            *value = of([pixel[0], pixel[1], pixel[2]].map(f32::from));
        }
        mean.copy_from_slice(&plane);
        square.iter_mut().zip(&plane).for_each(|(square, value)| *square = value * value);
        blur(&mut mean, &mut spare, side);
        blur(&mut square, &mut spare, side);
        let out = contrast.iter_mut().skip(channel).step_by(3);
        for (((out, value), mean), square) in out.zip(&plane).zip(&mean).zip(&square) {
            let deviation = (square - mean * mean).max(0.0).sqrt();
            *out = ((value - mean) / (deviation + floor)).clamp(-MOST, MOST);
        }
    }
    contrast
}

/// Means over boxes, of what is inside of the picture.
fn blur(plane: &mut [f32], spare: &mut [f32], side: usize) {
    let mut sums = vec![0.0_f64; side + 1];
    for _ in 0..PASSES {
        // Rows of the plane become columns of the other one: twice, and all is where it was.
        for (from, to) in [(0, 1), (1, 0)] {
            let (read, write) =
                if (from, to) == (0, 1) { (&*plane, &mut *spare) } else { (&*spare, &mut *plane) };
            for row in 0..side {
                let line = &read[row * side..][..side];
                for (k, value) in line.iter().enumerate() {
                    sums[k + 1] = sums[k] + f64::from(*value);
                }
                for k in 0..side {
                    let (first, end) = (k.saturating_sub(REACH), (k + REACH + 1).min(side));
                    let mean = (sums[end] - sums[first]) / (end - first) as f64;
                    write[k * side + row] = mean as f32;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(side: usize, of: impl Fn(usize, usize) -> [f32; 3]) -> Vec<u8> {
        let pixels = (0..side * side).flat_map(|at| of(at % side, at / side));
        pixels.map(|level| level.round() as u8).collect()
    }

    /// Another exposure and haze change next to nothing, as long as there is contrast.
    #[test]
    fn light_and_haze_are_taken_out() {
        let side = 64;
        let pattern = |x: usize, y: usize| ((x * 7 + y * y * 3) % 41) as f32 * 2.5;
        let clear = picture(side, |x, y| {
            let p = pattern(x, y);
            [p + 20.0, 120.0 - p, 0.7 * p]
        });
        let hazy = picture(side, |x, y| {
            let p = pattern(x, y);
            [p + 20.0, 120.0 - p, 0.7 * p].map(|level| 0.75 * level + 40.0 + 0.5 * y as f32)
        });
        let (a, b) = (local_contrast(&clear, side), local_contrast(&hazy, side));
        let products: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        let squares = |of: &[f32]| of.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!(products / squares(&a) / squares(&b) > 0.98);
    }

    #[test]
    fn what_is_all_the_same_has_none() {
        let plain = picture(32, |_, _| [30.0, 90.0, 200.0]);
        assert!(local_contrast(&plain, 32).iter().all(|x| x.abs() < 1e-2));
    }

    /// A turned picture has the turned contrast.
    #[test]
    fn rows_and_columns_are_treated_alike() {
        let side = 48;
        let of =
            |x: usize, y: usize| [(x * 5 % 97) as f32, (y * 11 % 89) as f32, (x * y % 101) as f32];
        let upright = local_contrast(&picture(side, of), side);
        let mirrored = local_contrast(&picture(side, |x, y| of(y, x)), side);
        for y in 0..side {
            for x in 0..side {
                for c in 0..3 {
                    let (a, b) =
                        (upright[3 * (y * side + x) + c], mirrored[3 * (x * side + y) + c]);
                    assert!((a - b).abs() < 1e-3, "{x} {y} {c}: {a} {b}");
                }
            }
        }
    }
}
