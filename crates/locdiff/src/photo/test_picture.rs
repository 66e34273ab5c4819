//! A picture that this program paints itself, to compare encoders by.

use super::picture::Photo;

impl Photo {
    /// Slopes, waves and edges in all three colors: 256 × 256 pixels, the same in every version of this
    /// program. An encoder is known by what it makes of this picture.
    pub fn test_picture() -> Photo {
        const SIZE: u32 = 256;
        let pixel = |x: u32, y: u32| {
            let board = if (x / 32 + y / 32).is_multiple_of(2) { 255 } else { 40 };
            [x as u8, (x * y / SIZE) as u8 ^ y as u8, board]
        };
        let rgb = (0..SIZE).flat_map(|y| (0..SIZE).flat_map(move |x| pixel(x, y))).collect();
        Photo::from_rgb(SIZE, SIZE, rgb).expect("as many pixels as it says")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_has_all_kinds_of_content() {
        let picture = Photo::test_picture();
        let distinct: std::collections::HashSet<_> = picture.rgb().chunks_exact(3).collect();
        assert!(distinct.len() > 10_000, "{}", distinct.len());
    }
}
