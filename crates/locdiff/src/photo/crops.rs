//! Several views of one picture, whose encodings are averaged or mixed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::picture::Photo;
use super::preprocessing::Preprocessing;
use super::reading::mirror;
use super::resize::Area;

/// Which views of a picture are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Crops {
    /// The center of the picture.
    Single,
    /// The centre, and its mirror image.
    Flip,
    /// Random areas of the picture, half of them mirrored: the paper takes 16. As torchvision's
    /// `RandomResizedCrop` and `RandomHorizontalFlip` with their defaults: from 8 % to all of the
    /// area, 3:4 to 4:3.
    Random {
        /// Number of crops.
        count: u32,
        /// Pictures of the same size are cut alike for the same seed.
        seed: u64,
    },
    /// Four corners, the centre, and the same of the mirrored picture, in the order of
    /// torchvision's `ten_crop`, after resizing. That is what GeoCLIP's paper evaluates with;
    /// the package `geoclip` has no such thing.
    TenCrop {
        /// Length of the shortest side after resizing; at least the crop's is taken.
        shortest_side: u32,
    },
}

impl Crops {
    /// Crops of 224 pixels out of 256.
    pub const TEN_CROP: Crops = Crops::TenCrop { shortest_side: 256 };

    /// How many views.
    pub fn count(&self) -> usize {
        match self {
            Crops::Single => 1,
            Crops::Flip => 2,
            Crops::Random { count, .. } => *count as usize,
            Crops::TenCrop { .. } => 10,
        }
    }

    /// The shortest side that a picture should be decoded at: if it were smaller than what is cut out of it, half of
    /// the pixels would be made up. Random areas are down to 8 % of a picture, or 28 % of its side.
    pub fn least_side(&self, preprocessing: &Preprocessing) -> u32 {
        match self {
            Crops::Single | Crops::Flip => preprocessing.shortest_side,
            Crops::TenCrop { shortest_side } => (*shortest_side).max(preprocessing.crop),
            Crops::Random { .. } => 4 * preprocessing.crop,
        }
    }

    /// The numbers `[views, 3, crop, crop]` of a picture.
    ///
    /// # Panics
    /// As [`Preprocessing::apply`].
    pub fn prepare(&self, photo: &Photo, preprocessing: &Preprocessing) -> Vec<f32> {
        let mut numbers = vec![0.0; self.count() * preprocessing.len()];
        self.prepare_into(photo, preprocessing, &mut numbers);
        numbers
    }

    /// The numbers `[views, 3, crop, crop]` of a picture, written where the caller wants them.
    ///
    /// # Panics
    /// If the slice has another length, and as [`Preprocessing::apply`].
    pub fn prepare_into(&self, photo: &Photo, preprocessing: &Preprocessing, numbers: &mut [f32]) {
        let expected = self.count() * preprocessing.len();
        assert_eq!(numbers.len(), expected, "room for views·3·crop² numbers is wanted");
        let normalisation = preprocessing.normalisation();
        let mut rest = numbers.chunks_exact_mut(preprocessing.len());
        let mut write = |pixels: &[u8]| {
            normalisation.write(pixels, rest.next().expect("there are as many views as counted"));
        };
        match *self {
            Crops::Single => write(&preprocessing.centre(photo)),
            Crops::Flip => {
                let mut pixels = preprocessing.centre(photo);
                write(&pixels);
                mirror_rows(&mut pixels, preprocessing.crop);
                write(&pixels);
            }
            Crops::Random { count, seed } => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                for _ in 0..count {
                    let area = random_area(photo, &mut rng);
                    let mut pixels = photo.cut_and_resized(area, preprocessing.crop);
                    if rng.random_bool(0.5) {
                        mirror_rows(&mut pixels, preprocessing.crop);
                    }
                    write(&pixels);
                }
            }
            Crops::TenCrop { shortest_side } => {
                let crop = preprocessing.crop;
                ten_crops(photo, shortest_side.max(crop), crop).iter().for_each(|view| write(view));
            }
        }
    }
}

fn mirror_rows(rgb: &mut [u8], width: u32) {
    rgb.chunks_exact_mut(3 * width as usize).for_each(mirror);
}

/// torchvision's `RandomResizedCrop.get_params`, with our random numbers.
fn random_area(photo: &Photo, rng: &mut ChaCha8Rng) -> Area {
    const SHARES: std::ops::Range<f64> = 0.08..1.0;
    const RATIOS: [f64; 2] = [3.0 / 4.0, 4.0 / 3.0];
    let (width, height) = (photo.width(), photo.height());
    for _ in 0..10 {
        let target = f64::from(width) * f64::from(height) * rng.random_range(SHARES);
        let ratio = rng.random_range(RATIOS[0].ln()..RATIOS[1].ln()).exp();
        let w = (target * ratio).sqrt().round_ties_even() as u32;
        let h = (target / ratio).sqrt().round_ties_even() as u32;
        if (1..=width).contains(&w) && (1..=height).contains(&h) {
            let top = rng.random_range(0..=height - h);
            let left = rng.random_range(0..=width - w);
            return Area { left: left.into(), top: top.into(), width: w, height: h };
        }
    }
    // Very long pictures: as much of the centre as the ratios allow.
    let ratio = f64::from(width) / f64::from(height);
    let (w, h) = if ratio < RATIOS[0] {
        (width, (f64::from(width) / RATIOS[0]).round_ties_even() as u32)
    } else if ratio > RATIOS[1] {
        ((f64::from(height) * RATIOS[1]).round_ties_even() as u32, height)
    } else {
        (width, height)
    };
    let (w, h) = (w.clamp(1, width), h.clamp(1, height));
    Area { left: u64::from(width - w) / 2, top: u64::from(height - h) / 2, width: w, height: h }
}

/// RGB of torchvision's ten crops.
fn ten_crops(photo: &Photo, shortest_side: u32, crop: u32) -> Vec<Vec<u8>> {
    let size = photo.size_with_shortest(shortest_side);
    let (right, bottom) = (size.0 - u64::from(crop), size.1 - u64::from(crop));
    // Python rounds halves to even.
    let half = |length: u64| (length as f64 / 2.0).round_ties_even() as u64;
    let corners = [(0, 0), (right, 0), (0, bottom), (right, bottom), (half(right), half(bottom))];
    let mirrored = corners.map(|(left, top)| (right - left, top));
    let area = |(left, top): (u64, u64)| Area { left, top, width: crop, height: crop };

    // Resizing once is cheaper, unless the picture is a very long one.
    let side = u64::from(crop);
    let once = (size.0 * size.1 <= 16 * side * side).then(|| {
        let all = Area { left: 0, top: 0, width: size.0 as u32, height: size.1 as u32 };
        photo.resized_area(size, all)
    });
    let cut = |area: Area| match &once {
        Some(rgb) => rgb
            .chunks_exact(3 * size.0 as usize)
            .skip(area.top as usize)
            .take(crop as usize)
            .flat_map(|row| &row[3 * area.left as usize..][..3 * crop as usize])
            .copied()
            .collect(),
        None => photo.resized_area(size, area),
    };
    let mut crops: Vec<Vec<u8>> =
        corners.into_iter().chain(mirrored).map(|corner| cut(area(corner))).collect();
    crops[5..].iter_mut().for_each(|pixels| mirror_rows(pixels, crop));
    crops
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient(width: u32, height: u32) -> Photo {
        let pixel = |x: u32, y: u32| [(x * 255 / width) as u8, (y * 255 / height) as u8, 77];
        let rgb = (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect();
        Photo::from_rgb(width, height, rgb).unwrap()
    }

    #[test]
    fn seeds_decide() {
        let photo = gradient(300, 200);
        let views = |seed| Crops::Random { count: 4, seed }.prepare(&photo, &Preprocessing::CLIP);
        assert_eq!(views(1), views(1));
        assert_ne!(views(1), views(2));
        // More views begin with the same ones.
        let fewer = Crops::Random { count: 2, seed: 1 }.prepare(&photo, &Preprocessing::CLIP);
        assert_eq!(views(1)[..fewer.len()], fewer[..]);
    }

    #[test]
    fn random_areas_fit_and_vary() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (width, height) in [(1, 1), (1, 5000), (5000, 1), (640, 480), (2, 3)] {
            let photo =
                Photo::from_rgb(width, height, vec![0; (3 * width * height) as usize]).unwrap();
            for _ in 0..200 {
                let area = random_area(&photo, &mut rng);
                assert!(
                    area.width > 0 && area.left + u64::from(area.width) <= u64::from(width),
                    "{area:?}"
                );
                assert!(
                    area.height > 0 && area.top + u64::from(area.height) <= u64::from(height),
                    "{area:?}"
                );
            }
        }
        let photo = gradient(640, 480);
        let shares: Vec<f64> = (0..2000)
            .map(|_| random_area(&photo, &mut rng))
            .map(|area| f64::from(area.width * area.height) / f64::from(640 * 480))
            .collect();
        let mean = shares.iter().sum::<f64>() / 2000.0;
        // Uniform between 0.08 and 1, but what doesn't fit is drawn again.
        assert!((0.4..0.54).contains(&mean), "{mean}");
        assert!(shares.iter().any(|&share| share < 0.1) && shares.iter().any(|&s| s > 0.85));
    }

    #[test]
    fn flips_mirror() {
        let photo = gradient(300, 224);
        let numbers = Crops::Flip.prepare(&photo, &Preprocessing::CLIP);
        let single = Crops::Single.prepare(&photo, &Preprocessing::CLIP);
        let (plain, flipped) = numbers.split_at(single.len());
        assert_eq!(plain, single);
        for (row, mirrored) in plain.chunks(224).zip(flipped.chunks(224)) {
            assert!(row.iter().eq(mirrored.iter().rev()));
        }
        assert_eq!(Crops::Flip.count(), 2);
    }

    #[test]
    fn crops_are_the_same_resized_once_or_apart() {
        // 3.9 is still resized as a whole, the parts of 30 are not.
        let photo = gradient(3000, 100);
        let crops = ten_crops(&photo, 256, 224);
        let size = photo.size_with_shortest(256);
        assert!(size.0 * size.1 > 16 * 224 * 224);
        let whole = photo.resized_area(
            size,
            Area { left: 0, top: 0, width: size.0 as u32, height: size.1 as u32 },
        );
        let row = |y: usize, x: usize| &whole[3 * (y * size.0 as usize + x)..][..3 * 224];
        let (right, bottom) = (size.0 as usize - 224, size.1 as usize - 224);
        for y in 0..224 {
            let line = |crop: &[u8]| crop[3 * 224 * y..][..3 * 224].to_vec();
            assert_eq!(line(&crops[0]), row(y, 0));
            assert_eq!(line(&crops[3]), row(y + bottom, right));
            let mut mirrored = line(&crops[5]);
            mirror(&mut mirrored);
            assert_eq!(mirrored, row(y, right));
        }
    }
}
