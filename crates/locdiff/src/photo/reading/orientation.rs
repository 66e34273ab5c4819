//! Turning pictures upright.

/// Pixels of a tile's side, so that a tile's rows and columns stay in the cache.
const TILE: usize = 32;

/// Width, height and pixels after the turn or mirroring that Exif's orientation asks for. What
/// isn't between 2 and 8 leaves the picture as it is.
pub(super) fn upright(
    width: u32,
    height: u32,
    mut rgb: Vec<u8>,
    orientation: u8,
) -> (u32, u32, Vec<u8>) {
    let row = 3 * width as usize;
    match orientation {
        2 => rgb.chunks_exact_mut(row).for_each(mirror),
        3 => mirror(&mut rgb),
        4 => {
            let (above, below) = rgb.split_at_mut(height as usize / 2 * row);
            let below = below.chunks_exact_mut(row).rev();
            above.chunks_exact_mut(row).zip(below).for_each(|(a, b)| a.swap_with_slice(b));
        }
        // Columns become rows, from the left (5, 6) or the right, read from above (5, 8) or below.
        5 => return (height, width, transposed(width, height, &rgb, false, false)),
        6 => return (height, width, transposed(width, height, &rgb, false, true)),
        7 => return (height, width, transposed(width, height, &rgb, true, true)),
        8 => return (height, width, transposed(width, height, &rgb, true, false)),
        _ => {}
    }
    (width, height, rgb)
}

/// The pixels in reverse order.
pub(in crate::photo) fn mirror(rgb: &mut [u8]) {
    rgb.as_chunks_mut::<3>().0.reverse();
}

fn transposed(width: u32, height: u32, rgb: &[u8], from_right: bool, from_below: bool) -> Vec<u8> {
    let (width, height) = (width as usize, height as usize);
    let mut out = vec![0; rgb.len()];
    let (source, _) = rgb.as_chunks::<3>();
    let (target, _) = out.as_chunks_mut::<3>();
    // `column` and `row` are the source's; the target's rows are `height` long.
    for first_column in (0..width).step_by(TILE) {
        for first_row in (0..height).step_by(TILE) {
            let rows = first_row..height.min(first_row + TILE);
            for column in first_column..width.min(first_column + TILE) {
                let to_row = if from_right { width - 1 - column } else { column };
                let line = &mut target[to_row * height..][..height];
                for row in rows.clone() {
                    let to = if from_below { height - 1 - row } else { row };
                    line[to] = source[row * width + column];
                }
            }
        }
    }
    out
}
