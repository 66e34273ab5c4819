//! From a picture to the numbers a vision network takes.

use serde::{Deserialize, Serialize};

use super::picture::Photo;
use super::resize::Area;

const CLIP_MEAN: [f32; 3] = [0.48145466, 0.4578275, 0.40821073];
const CLIP_STD: [f32; 3] = [0.26862954, 0.2613026, 0.2757771];
const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

/// What is done to a picture before it is encoded, as the image processors of Python's
/// `transformers` do it with Pillow: resized (bicubic, antialiased) until its shortest side has
/// a length, cropped around its centre, scaled to between 0 and 1, and normalised.
///
/// ```ignore
/// let photo = Photo::open("holiday.jpg")?;
/// let numbers = Preprocessing::CLIP.apply(&photo); // [3, 224, 224]
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preprocessing {
    /// Length of the shortest side after resizing, in pixels.
    pub shortest_side: u32,
    /// Side of the square that is cut out of the centre. Where the picture is smaller, black is
    /// added.
    pub crop: u32,
    /// Subtracted from red, green and blue between 0 and 1.
    pub mean: [f32; 3],
    /// What is left is divided by this.
    pub std: [f32; 3],
    /// Whether the largest square in the middle is cut out before it is resized to the crop, as plonk does, instead of resizing
    /// first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub square_first: bool,
}

impl Preprocessing {
    /// CLIP with an input of 224 pixels; GeoCLIP too.
    pub const CLIP: Preprocessing = Preprocessing::plain(224, 224, CLIP_MEAN, CLIP_STD);

    /// CLIP ViT-L/14@336px.
    pub const CLIP_336: Preprocessing = Preprocessing::plain(336, 336, CLIP_MEAN, CLIP_STD);

    /// DINOv2: 224 pixels out of 256.
    pub const DINO_V2: Preprocessing = Preprocessing::plain(256, 224, IMAGENET_MEAN, IMAGENET_STD);

    /// DINOv2 as plonk uses it: the middle, resized to 336 pixels.
    pub const PLONK: Preprocessing = Preprocessing {
        square_first: true,
        ..Preprocessing::plain(336, 336, IMAGENET_MEAN, IMAGENET_STD)
    };

    /// Resized first, then cropped.
    pub const fn plain(
        shortest_side: u32,
        crop: u32,
        mean: [f32; 3],
        std: [f32; 3],
    ) -> Preprocessing {
        Preprocessing { shortest_side, crop, mean, std, square_first: false }
    }

    /// Numbers that a picture becomes: 3·crop².
    pub fn len(&self) -> usize {
        3 * self.crop as usize * self.crop as usize
    }

    /// Whether pictures become no numbers at all.
    pub fn is_empty(&self) -> bool {
        self.crop == 0
    }

    /// The numbers `[3, crop, crop]` of a picture.
    ///
    /// # Panics
    /// If the shortest side or the crop is 0.
    pub fn apply(&self, photo: &Photo) -> Vec<f32> {
        let mut numbers = vec![0.0; self.len()];
        self.apply_into(photo, &mut numbers);
        numbers
    }

    /// The numbers `[3, crop, crop]` of a picture, written where the caller wants them.
    ///
    /// # Panics
    /// If the slice isn't [`len`](Preprocessing::len) long, or the shortest side or the crop is 0.
    pub fn apply_into(&self, photo: &Photo, numbers: &mut [f32]) {
        self.normalisation().write(&self.centre(photo), numbers);
    }

    /// RGB of the centre, `crop`×`crop`.
    pub(super) fn centre(&self, photo: &Photo) -> Vec<u8> {
        let crop = self.crop;
        if self.square_first {
            return photo.cut_and_resized(photo.middle_square(), crop);
        }
        let size = photo.size_with_shortest(self.shortest_side);
        // Where the area begins in the resized picture, how long it is, and the black before it.
        let along = |length: u64| match u32::try_from(length) {
            Ok(length) if length < crop => (0, length, (crop - length).div_ceil(2)),
            _ => ((length - u64::from(crop)) / 2, crop, 0),
        };
        let (left, width, black_left) = along(size.0);
        let (top, height, black_above) = along(size.1);
        let pixels = photo.resized_area(size, Area { left, top, width, height });
        if (width, height) == (crop, crop) {
            return pixels;
        }
        let mut padded = vec![0; self.len()];
        let rows = padded.chunks_exact_mut(3 * crop as usize).skip(black_above as usize);
        for (to, from) in rows.zip(pixels.chunks_exact(3 * width as usize)) {
            to[3 * black_left as usize..][..from.len()].copy_from_slice(from);
        }
        padded
    }

    /// The mean of each channel and what divides it, as a table.
    pub(super) fn normalisation(&self) -> Normalisation {
        // In the order and precision of numpy's float32, so that the numbers are the same ones.
        let number = |channel: usize, level: usize| {
            let unit = (level as f64 * (1.0 / 255.0)) as f32;
            (unit - self.mean[channel]) / self.std[channel]
        };
        let table = |channel| std::array::from_fn(|level| number(channel, level));
        Normalisation { tables: [table(0), table(1), table(2)] }
    }
}

/// What each of the 256 levels of each channel becomes.
pub(super) struct Normalisation {
    tables: [[f32; 256]; 3],
}

impl Normalisation {
    /// From `[height, width, 3]` to `[3, height, width]`.
    ///
    /// # Panics
    /// If there aren't as many numbers as samples.
    pub(super) fn write(&self, rgb: &[u8], numbers: &mut [f32]) {
        assert_eq!(numbers.len(), rgb.len(), "room for 3·crop² numbers is wanted");
        let (red, rest) = numbers.split_at_mut(rgb.len() / 3);
        let (green, blue) = rest.split_at_mut(rgb.len() / 3);
        let planes = red.iter_mut().zip(green).zip(blue);
        for (&[r, g, b], ((red, green), blue)) in rgb.as_chunks::<3>().0.iter().zip(planes) {
            *red = self.tables[0][usize::from(r)];
            *green = self.tables[1][usize::from(g)];
            *blue = self.tables[2][usize::from(b)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panorama_costs_no_more_than_a_square() {
        // Resized as a whole it would have 224 × 13 million pixels.
        let line = Photo::from_rgb(60_000, 1, [10, 20, 30].repeat(60_000)).unwrap();
        let numbers = Preprocessing::CLIP.apply(&line);
        let table = Preprocessing::CLIP.normalisation().tables;
        assert!(numbers[..224 * 224].iter().all(|&number| number == table[0][10]));
        assert!(numbers[2 * 224 * 224..].iter().all(|&number| number == table[2][30]));
    }

    #[test]
    fn the_centre_is_that_of_the_whole_picture_resized() {
        for (width, height) in [(400, 1024), (1024, 400), (331, 500), (150, 190), (224, 300)] {
            let noise = (0..3 * width * height).map(|k| ((k * 2_654_435_761_u64) >> 13) as u8);
            let photo = Photo::from_rgb(width as u32, height as u32, noise.collect()).unwrap();
            let size = photo.size_with_shortest(224);
            let all = Area { left: 0, top: 0, width: size.0 as u32, height: size.1 as u32 };
            let whole = photo.resized_area(size, all);
            let (left, top) = ((size.0 as usize - 224) / 2, (size.1 as usize - 224) / 2);
            let rows = whole.chunks_exact(3 * size.0 as usize).skip(top).take(224);
            let centre: Vec<u8> =
                rows.flat_map(|row| row[3 * left..][..3 * 224].to_vec()).collect();
            assert!(Preprocessing::CLIP.centre(&photo) == centre, "{width}×{height}");
        }
    }

    #[test]
    #[should_panic(expected = "room for")]
    fn a_slice_of_another_length_is_a_mistake() {
        let photo = Photo::from_rgb(1, 1, vec![0; 3]).unwrap();
        Preprocessing::CLIP.apply_into(&photo, &mut [0.0; 10]);
    }
}
