//! Pairs to train the aligned encoder on: a view under all kinds of light, weather and film, and a clean map of the same
//! ground, which is half as wide again.

use std::path::Path;

use anyhow::{Context, Result};
use locdiff::models::earth_view::{PART, SEA, VIEW, local_contrast};
use locdiff_earth::{Camera, LandMask, Pose, Random, Renderer, Style};
use locdiff_sphere::{EARTH_RADIUS_KM, LatLon};

/// Pixels along the side of a map.
pub const MAP: usize = 192;
/// Parts along their sides.
pub const VIEW_PARTS: usize = VIEW / PART;
pub const MAP_PARTS: usize = MAP / PART;
/// Places of a view's parts in a map's, in each direction.
pub const SHIFTS: usize = MAP_PARTS - VIEW_PARTS + 1;

const WIDTHS_KM: [f64; 2] = [100.0, 2200.0];
/// Half the steps of the gallery: 24 headings, widths by 1.3.
const HEADING_DEGREES: f64 = 8.0;
const LOG_WIDTH: f64 = 0.14;
const LEAST_LAND: f64 = 0.12;
/// A source serves only views at least this many of its texels wide.
const FEWEST_TEXELS: f64 = 64.0;
const STEEPEST_DEGREES: f64 = 58.0;
const WIDEST_TANGENT: f64 = 0.65;

/// A view and a map, as the encoder takes them.
pub struct Pair {
    pub view: Vec<f32>,
    /// 1 for the parts of the view that lie in the picture.
    pub inside: Vec<f32>,
    pub map: Vec<f32>,
    /// Where in the map the view is: row and column of its first part, as one number.
    pub shift: usize,
}

/// Makes pairs.
pub struct Pairs {
    renderer: Renderer,
    mask: LandMask,
    clouds: Vec<Clouds>,
}

/// A view, and how much longer its ground is than wide.
struct Drawn {
    pixels: Vec<u8>,
    place: LatLon,
    stretch: f64,
}

struct Clouds {
    side: usize,
    cover: Vec<f32>,
}

impl Pairs {
    /// From a renderer whose first imagery by day makes the maps.
    pub fn new(mut renderer: Renderer, mask: LandMask, clouds: &Path) -> Result<Pairs> {
        renderer.style = Style {
            haze: 0.8,
            clouds: 0.2,
            colour: 1.0,
            blur: 0.7,
            noise: 0.6,
            night_share: 0.0,
            ..Style::training()
        };
        let mut files: Vec<_> = std::fs::read_dir(clouds)
            .with_context(|| clouds.display().to_string())?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        files.retain(|path| path.extension().is_some_and(|extension| extension == "png"));
        files.sort();
        let open = |path: &std::path::PathBuf| {
            let picture = image::open(path)?.into_luma8();
            let cover = picture.as_raw().iter().map(|level| f32::from(*level) / 255.0).collect();
            Ok(Clouds { side: picture.width() as usize, cover })
        };
        Ok(Pairs { renderer, mask, clouds: files.iter().map(open).collect::<Result<_>>()? })
    }

    /// Pairs of about one width each group: what tells them apart is the ground alone.
    pub fn group(&self, seed: u64, number: u64, count: usize) -> Vec<Pair> {
        let mut random = Random::of_view(seed, number);
        let width_km = random.log_between(WIDTHS_KM[0], WIDTHS_KM[1]);
        let pair = || loop {
            let one = width_km * (LOG_WIDTH * random.between(-0.5, 0.5)).exp();
            if let Some(pair) = self.pair(&mut random, one) {
                return pair;
            }
        };
        std::iter::repeat_with(pair).take(count).collect()
    }

    /// A view of some place in any heading, as a picture of [`VIEW`] pixels along its side.
    pub fn picture(&self, random: &mut Random) -> (Vec<u8>, LatLon) {
        loop {
            let width_km = random.log_between(WIDTHS_KM[0], WIDTHS_KM[1]);
            if let Some(Drawn { pixels, place, .. }) = self.drawn(random, width_km, 180.0) {
                return (pixels, place);
            }
        }
    }

    fn drawn(&self, random: &mut Random, width_km: f64, most_turned: f64) -> Option<Drawn> {
        let place = self.place(random, width_km)?;
        let (camera, stretch) = camera(random, place, width_km, most_turned);
        let fits = |k: &usize| self.renderer.day()[*k].texel_km() * FEWEST_TEXELS <= width_km;
        let others: Vec<usize> = (1..self.renderer.day().len()).filter(fits).collect();
        let source = if !others.is_empty() && random.chance(0.5) {
            others[(random.bits() % others.len() as u64) as usize]
        } else {
            0
        };
        let (mut pixels, land) = self.renderer.photograph(&camera, source, random.bits(), VIEW);
        if land < LEAST_LAND || pixels.is_empty() {
            return None;
        }
        if random.chance(0.6) {
            other_film(&mut pixels, random);
        }
        if random.chance(0.7) {
            self.clouds[(random.bits() % self.clouds.len() as u64) as usize]
                .lay(&mut pixels, random);
        }
        if random.chance(0.2) {
            draw_lines(&mut pixels, random);
        }
        Some(Drawn { pixels, place, stretch })
    }

    fn pair(&self, random: &mut Random, width_km: f64) -> Option<Pair> {
        let Drawn { pixels, place, stretch } = self.drawn(random, width_km, HEADING_DEGREES)?;
        let mut view = local_contrast(&pixels, VIEW);
        let inside = cut_square(&mut view, random.between(0.0, 90.0));

        // The map is as wide as the view's mean over both directions.
        let factor = stretch.sqrt() * (random.between(-LOG_WIDTH, LOG_WIDTH)).exp();
        let map_km = width_km * factor * MAP as f64 / VIEW as f64;
        let part_km = map_km / MAP_PARTS as f64;
        let (row, column) = (random.bits() as usize % SHIFTS, random.bits() as usize % SHIFTS);
        let from_middle = |shift: usize, random: &mut Random| {
            (shift as f64 - (SHIFTS / 2) as f64 + random.between(-0.5, 0.5)) * part_km
        };
        let (down, right) = (from_middle(row, random), from_middle(column, random));
        let bearing = (-right).atan2(down).to_degrees();
        let middle = place.destination(bearing, down.hypot(right));
        let map =
            self.renderer.day()[0].patch((middle.latitude(), middle.longitude()), map_km, MAP, SEA);
        Some(Pair { view, inside, map: local_contrast(&map, MAP), shift: row * SHIFTS + column })
    }

    /// Anywhere with some land around.
    fn place(&self, random: &mut Random, width_km: f64) -> Option<LatLon> {
        let latitude = random.between(-1.0, 1.0).asin().to_degrees();
        // Of Antarctica and the polar night there are few pictures.
        if latitude < -60.0 || (latitude > 75.0 && random.chance(0.7)) {
            return None;
        }
        let longitude = random.between(-180.0, 180.0);
        let land = self.mask.land_fraction(latitude, longitude, 0.5 * width_km);
        (land > LEAST_LAND).then(|| LatLon::new(latitude, longitude).expect("on Earth"))
    }
}

/// A camera that looks at a place with north up but for so many degrees, and how much longer the ground is than wide.
fn camera(random: &mut Random, place: LatLon, width_km: f64, most_turned: f64) -> (Camera, f64) {
    let mut altitude_km = random.between(380.0, 430.0);
    if random.chance(0.5) {
        altitude_km = random.log_between(altitude_km, 36_000.0);
    }
    let nearly_down = random.chance(0.4);
    let steepest = if nearly_down { 12.0 } else { STEEPEST_DEGREES };
    let incidence = random.between(0.0, steepest).to_radians();
    let heading_degrees = random.between(0.0, 360.0);
    let roll_degrees = random.between(-most_turned, most_turned) - heading_degrees;
    loop {
        let distance = 1.0 + altitude_km / EARTH_RADIUS_KM;
        let camera = Camera::new(Pose {
            latitude: place.latitude(),
            longitude: place.longitude(),
            altitude_km,
            tilt_degrees: (incidence.sin() / distance).asin().to_degrees(),
            heading_degrees,
            roll_degrees,
            width_km,
        });
        if (0.5 * camera.field_of_view_degrees()).to_radians().tan() <= WIDEST_TANGENT {
            return (camera, 1.0 / incidence.cos());
        }
        altitude_km *= 1.15;
    }
}

/// Colors mixed as if by other filters, down to gray, and another curve.
fn other_film(pixels: &mut [u8], random: &mut Random) {
    let gray = if random.chance(0.25) { random.between_f32(0.6, 1.0) } else { 0.0 };
    let spread = random.between_f32(0.1, 0.5);
    let mut mix = [[0.0_f32; 3]; 3];
    for (k, row) in mix.iter_mut().enumerate() {
        for (j, weight) in row.iter_mut().enumerate() {
            *weight = f32::from(u8::from(k == j)) + spread * random.normal() as f32;
        }
        let sum: f32 = row.iter().sum();
        // Keeps gray gray, and no color negative altogether.
        row.iter_mut().for_each(|weight| *weight += (1.0 - sum) / 3.0);
    }
    let gains: [f32; 3] = std::array::from_fn(|_| (0.15 * random.normal() as f32).exp());
    let gamma = (0.25 * random.normal() as f32).exp();
    let lift = random.between_f32(0.0, 40.0);
    for pixel in pixels.chunks_exact_mut(3) {
        let from = [pixel[0], pixel[1], pixel[2]].map(f32::from);
        let mean = from.iter().sum::<f32>() / 3.0;
        for k in 0..3 {
            let mixed: f32 = mix[k].iter().zip(from).map(|(weight, level)| weight * level).sum();
            let mixed = (mixed + gray * (mean - mixed)) * gains[k];
            let curved = 255.0 * (mixed / 255.0).clamp(0.0, 1.0).powf(gamma);
            pixel[k] = (lift + curved * (1.0 - lift / 255.0)) as u8;
        }
    }
}

impl Clouds {
    /// Lays a turned part of them over a picture.
    fn lay(&self, pixels: &mut [u8], random: &mut Random) {
        let scale = random.log_between(1.0, 2.8);
        let (sine, cosine) = random.between(0.0, std::f64::consts::TAU).sin_cos();
        let mirror = if random.chance(0.5) { -1.0 } else { 1.0 };
        let middle =
            [random.between(0.3, 0.7), random.between(0.3, 0.7)].map(|x| x * self.side as f64);
        let strength = random.between_f32(0.5, 1.3);
        let white: [f32; 3] = std::array::from_fn(|_| random.between_f32(205.0, 255.0));
        for (at, pixel) in pixels.chunks_exact_mut(3).enumerate() {
            let x = mirror * ((at % VIEW) as f64 - VIEW as f64 / 2.0) * scale;
            let y = ((at / VIEW) as f64 - VIEW as f64 / 2.0) * scale;
            let u = middle[0] + cosine * x - sine * y;
            let v = middle[1] + sine * x + cosine * y;
            let cover = (strength * self.at(u, v)).min(1.0);
            for (level, white) in pixel.iter_mut().zip(white) {
                *level = (f32::from(*level) * (1.0 - cover) + white * cover) as u8;
            }
        }
    }

    /// Interpolated, mirrored beyond the edges.
    fn at(&self, x: f64, y: f64) -> f32 {
        let last = (self.side - 1) as f64;
        let folded = |x: f64| {
            let turned = x.rem_euclid(2.0 * last);
            if turned > last { 2.0 * last - turned } else { turned }
        };
        let (x, y) = (folded(x), folded(y));
        let (column, row) = ((x as usize).min(self.side - 2), (y as usize).min(self.side - 2));
        let (right, down) = ((x - column as f64) as f32, (y - row as f64) as f32);
        let of = |row: usize| {
            let line = &self.cover[row * self.side + column..][..2];
            line[0] + right * (line[1] - line[0])
        };
        of(row) + down * (of(row + 1) - of(row))
    }
}

/// Thin bright lines, as services draw coasts and borders into their pictures.
fn draw_lines(pixels: &mut [u8], random: &mut Random) {
    let level = random.between(150.0, 255.0) as u8;
    for _ in 0..1 + random.bits() % 4 {
        let (mut x, mut y) = (random.between(0.0, VIEW as f64), random.between(0.0, VIEW as f64));
        let mut direction = random.between(0.0, std::f64::consts::TAU);
        let wriggle = random.between(0.0, 0.5);
        for _ in 0..random.bits() % 300 {
            direction += wriggle * random.normal();
            (x, y) = (x + 0.7 * direction.cos(), y + 0.7 * direction.sin());
            let (column, row) = (x as usize, y as usize);
            if x >= 0.0 && y >= 0.0 && column < VIEW && row < VIEW {
                pixels[3 * (row * VIEW + column)..][..3].fill(level);
            }
        }
    }
}

/// Leaves what a picture of this side, turned by so many degrees, shows of the view; and which parts it shows.
fn cut_square(view: &mut [f32], degrees: f64) -> Vec<f32> {
    let (sine, cosine) = degrees.to_radians().sin_cos();
    let half = VIEW as f64 / 2.0;
    let mut counts = vec![0_usize; VIEW_PARTS * VIEW_PARTS];
    for (at, numbers) in view.chunks_exact_mut(3).enumerate() {
        let (x, y) = ((at % VIEW) as f64 + 0.5 - half, (at / VIEW) as f64 + 0.5 - half);
        let (u, v) = (cosine * x + sine * y, cosine * y - sine * x);
        if u.abs() <= half && v.abs() <= half {
            counts[at / VIEW / PART * VIEW_PARTS + at % VIEW / PART] += 1;
        } else {
            numbers.fill(0.0);
        }
    }
    counts.iter().map(|count| f32::from(u8::from(2 * count > PART * PART))).collect()
}
