//! A picture compared with all maps of a gallery: in 24 headings, at every place of each.

use locdiff_sphere::{EARTH_RADIUS_KM, LatLon};
use rayon::prelude::*;

use super::aligned_encoder::{AlignedEncoder, NUMBERS, PART};
use super::gallery::{Gallery, LEADING, MAP_PARTS, MapParts, VIEW_PARTS, WINDOWS};
use super::local_contrast::local_contrast;
use crate::geography::Constraint;
use crate::tensors::fused::{Matrix, multiply, numbers_of, vectorised};

/// Pixels along the side of a picture as it is compared.
pub const VIEW: usize = VIEW_PARTS * PART;
/// Headings in which a view is compared with each map.
const HEADINGS: usize = 24;

const PARTS: usize = VIEW_PARTS * VIEW_PARTS;
/// Windows of a map counted row by row, with those that begin in the last columns of a row and end in the next one:
/// they are computed and never looked at.
const ROWS: usize = (WINDOWS - 1) * MAP_PARTS + WINDOWS;
/// Keeps windows without any contrast from looking like everything, as in training.
const LEAST_ENERGY: f32 = 1e-3;
/// A known width may be wrong by so much (in logarithms): a step of the gallery and a half.
const WIDTH_REACH: f64 = 0.4;
/// The smaller an area, the likelier each place in it, up to a factor: people may be wrong.
const MOST_BY_AREA: f64 = 100.0;
const EARTH_KM2: f64 = 4.0 * std::f64::consts::PI * EARTH_RADIUS_KM * EARTH_RADIUS_KM;
/// Of so many places of a map, in each direction, one is asked whether it lies in an area.
const ASKED: usize = 4;
/// Windows of a map that are compared with all numbers.
const CLOSER: usize = 24;

/// A place where a picture may have been taken, as far as its descriptors tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchResult {
    /// The middle of the picture.
    pub middle: LatLon,
    /// Compass bearing of the picture's upward direction.
    pub heading_degrees: f64,
    /// Width of the view on the ground.
    pub width_km: f64,
    /// Correlation of its descriptors with those of the map there, at most 1.
    pub likeness: f64,
    /// The same in standard deviations above the mean over the whole gallery.
    pub deviations: f64,
}

/// What is known of a picture beforehand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// Its middle lies in all of these. Other places are compared too: a picture that is more like one of them is not there.
    pub within: &'a [Constraint],
    /// Width of the view on the ground, if it is known.
    pub width_km: Option<f64>,
}

/// A picture, ready to be compared.
pub struct Query {
    /// `[HEADINGS, PARTS, NUMBERS]`.
    numbers: Vec<f32>,
    /// For each heading, 1 for the parts that lie in the picture: `[HEADINGS, PARTS]`.
    inside: Vec<f32>,
}

/// A picture and the gallery that it is compared with.
struct Comparison<'a> {
    gallery: &'a Gallery,
    leading: QueryNumbers,
    all: QueryNumbers,
    inside: &'a [f32],
}

/// Some of the numbers of each part, for all headings.
struct QueryNumbers {
    count: usize,
    /// `[PARTS · count, HEADINGS]`: of unit length for each heading.
    by_part: Vec<f32>,
}

impl Query {
    /// Describes the red, green and blue bytes of a square of [`VIEW`] pixels, in all headings.
    ///
    /// # Panics
    /// If the bytes are not those of such a square.
    pub fn new(encoder: &AlignedEncoder, pixels: &[u8]) -> Query {
        let contrast = local_contrast(pixels, VIEW);
        let turned: Vec<(Vec<f32>, Vec<f32>)> =
            (0..HEADINGS).into_par_iter().map(|k| turned(&contrast, heading(k))).collect();
        let inside: Vec<f32> =
            turned.iter().flat_map(|(_, inside)| inside.iter().copied()).collect();
        // A thread each: the encoder's own threads wait for one another more often.
        let each = HEADINGS.div_ceil(2 * rayon::current_num_threads());
        let numbers: Vec<f32> = turned
            .par_chunks(each)
            .flat_map_iter(|part| {
                let contrast = part.iter().flat_map(|(contrast, _)| contrast.iter().copied());
                numbers_of(&encoder.parts(contrast.collect(), VIEW))
            })
            .collect();
        Query { numbers, inside }
    }

    /// The descriptors of the picture with its upward direction to the north.
    pub(super) fn upright(&self) -> Vec<f32> {
        self.numbers[..PARTS * NUMBERS].to_vec()
    }
}

fn heading(k: usize) -> f64 {
    k as f64 * 360.0 / HEADINGS as f64
}

impl QueryNumbers {
    fn new(numbers: &[f32], inside: &[f32], count: usize) -> QueryNumbers {
        let mut by_part = vec![0.0; PARTS * count * HEADINGS];
        for (k, (numbers, inside)) in
            numbers.chunks_exact(PARTS * NUMBERS).zip(inside.chunks_exact(PARTS)).enumerate()
        {
            let mut energy = LEAST_ENERGY;
            for (part, (numbers, inside)) in numbers.chunks_exact(NUMBERS).zip(inside).enumerate() {
                for (j, number) in numbers[..count].iter().enumerate() {
                    by_part[(part * count + j) * HEADINGS + k] = number * inside;
                    energy += number * number * inside;
                }
            }
            let scale = 1.0 / energy.sqrt();
            by_part.iter_mut().skip(k).step_by(HEADINGS).for_each(|number| *number *= scale);
        }
        QueryNumbers { count, by_part }
    }

    /// Products with the windows of a map `[24², count]`: `[ROWS, HEADINGS]`.
    fn products(&self, map: &[f32], output: &mut [f32]) {
        let row = VIEW_PARTS * self.count;
        for (k, of_row) in self.by_part.chunks_exact(row * HEADINGS).enumerate() {
            let windows = &map[k * MAP_PARTS * self.count..];
            let windows = Matrix::overlapping(windows, ROWS, row, self.count);
            multiply(windows, Matrix::by_rows(of_row, HEADINGS), output, k > 0);
        }
    }
}

/// What a map's comparison leaves behind.
struct Compared {
    map: usize,
    sum: f64,
    squares: f64,
    count: usize,
    best: Vec<Match>,
    /// Of those places where the picture is said to be.
    best_inside: Vec<Match>,
}

#[derive(Clone, Copy)]
struct Match {
    map: usize,
    row: usize,
    column: usize,
    heading: usize,
    likeness: f32,
}

impl Gallery {
    /// The most similar places, best first: at most `count`, none like another. Half of them lie where the picture is said to
    /// be, if that is known.
    pub fn search(&self, query: &Query, count: usize, known: &Known<'_>) -> Vec<SearchResult> {
        let Query { numbers, inside } = query;
        let comparison = Comparison {
            gallery: self,
            leading: QueryNumbers::new(numbers, inside, LEADING),
            all: QueryNumbers::new(numbers, inside, self.precision.numbers),
            inside,
        };
        let compared: Vec<Compared> = (0..self.maps().len())
            .into_par_iter()
            .filter(|map| known.is_as_wide_as(self.maps()[*map].width_km))
            .map_init(Scratch::default, |scratch, map| {
                comparison.compare(map, self.inside(map, known).as_deref(), scratch)
            })
            .collect();
        // Wide maps are smoother and more alike: deviations are those among maps of one width.
        let spread = |width_km: f64| {
            let of_width = compared.iter().filter(|one| self.maps()[one.map].width_km == width_km);
            let (sum, squares, count) =
                of_width.fold((0.0, 0.0, 0), |(sum, squares, count), one| {
                    (sum + one.sum, squares + one.squares, count + one.count)
                });
            let mean = sum / count as f64;
            (mean, (squares / count as f64 - mean * mean).max(1e-12).sqrt())
        };
        let mut widths: Vec<f64> = self.maps().iter().map(|map| map.width_km).collect();
        widths.dedup();
        let spreads: Vec<(f64, (f64, f64))> =
            widths.iter().map(|width| (*width, spread(*width))).collect();
        let result = |found: &Match| {
            let (middle, turn) = self.place(found.map, found.row as f64, found.column as f64);
            let width_km = self.maps()[found.map].width_km;
            let likeness = f64::from(found.likeness);
            let (mean, deviation) =
                spreads.iter().find(|(width, _)| *width == width_km).map_or((0.0, 1.0), |of| of.1);
            SearchResult {
                middle,
                heading_degrees: (heading(found.heading) + turn).rem_euclid(360.0),
                width_km,
                likeness,
                deviations: (likeness - mean) / deviation,
            }
        };
        let mut kept: Vec<SearchResult> = Vec::new();
        let mut keep = |found: Vec<&Match>, count: usize| {
            let mut results: Vec<SearchResult> = found.into_iter().map(result).collect();
            results.sort_by(|a, b| b.deviations.total_cmp(&a.deviations));
            for result in results {
                if kept.len() == count {
                    break;
                }
                if !kept.iter().any(|other| alike(other, &result)) {
                    kept.push(result);
                }
            }
        };
        keep(compared.iter().flat_map(|one| &one.best_inside).collect(), count / 2);
        keep(compared.iter().flat_map(|one| &one.best).collect(), count);
        kept.sort_by(|a, b| b.deviations.total_cmp(&a.deviations));
        kept
    }

    /// Places of a map that lie in the areas where the picture is, as [`MapParts::has_land`]; `None` if there are no areas, or
    /// no such places.
    fn inside(&self, map: usize, known: &Known<'_>) -> Option<Vec<u8>> {
        if known.within.is_empty() {
            return None;
        }
        let has_land = self.parts(map).has_land;
        // Whether some places lie in all areas; the others lie where the nearest of these do.
        let asked = (WINDOWS - 1) / ASKED + 1;
        let inside: Vec<bool> = (0..asked * asked)
            .map(|at| {
                let (row, column) = (at / asked * ASKED, at % asked * ASKED);
                let (middle, _) = self.place(map, row as f64, column as f64);
                known.within.iter().all(|constraint| constraint.area().contains(middle))
            })
            .collect();
        let is_near = |at: usize| {
            let (row, column) = (at / WINDOWS, at % WINDOWS);
            let around = |x: usize| x / ASKED..=x.div_ceil(ASKED);
            around(row).any(|row| around(column).any(|column| inside[row * asked + column]))
        };
        let inside: Vec<u8> =
            has_land.iter().enumerate().map(|(at, land)| land & u8::from(is_near(at))).collect();
        inside.contains(&1).then_some(inside)
    }
}

impl Known<'_> {
    /// By how many nats a place is likelier for what is known, in a gallery of these widths: it is one of fewer.
    pub(super) fn nats(&self, widths_km: [f64; 2]) -> impl Fn(LatLon) -> f64 {
        let widths = (widths_km[1] / widths_km[0]).ln();
        let by_width = self.width_km.map_or(0.0, |_| (widths / (2.0 * WIDTH_REACH)).ln().max(0.0));
        let smallest =
            self.within.iter().map(|constraint| constraint.area().area_km2()).reduce(f64::min);
        let by_area = smallest.map_or(0.0, |area_km2| {
            (EARTH_KM2 / area_km2.max(1.0)).min(MOST_BY_AREA).ln().max(0.0)
        });
        move |place| {
            let is_inside = self.within.iter().all(|constraint| constraint.area().contains(place));
            by_width + if is_inside { by_area } else { 0.0 }
        }
    }

    fn is_as_wide_as(&self, width_km: f64) -> bool {
        self.width_km.is_none_or(|known| (known / width_km).ln().abs() <= WIDTH_REACH)
    }
}

/// Whether registration would come to the same from both.
fn alike(a: &SearchResult, b: &SearchResult) -> bool {
    let turn = (a.heading_degrees - b.heading_degrees + 180.0).rem_euclid(360.0) - 180.0;
    let ratio = (a.width_km / b.width_km).ln().abs();
    turn.abs() < 20.0 && ratio < 0.1 && a.middle.distance_km(b.middle) < 0.2 * a.width_km
}

#[derive(Default)]
struct Scratch {
    map: Vec<f32>,
    products: Vec<f32>,
    energies: Vec<f32>,
}

impl Comparison<'_> {
    fn compare(&self, map: usize, inside: Option<&[u8]>, scratch: &mut Scratch) -> Compared {
        let parts = self.gallery.parts(map);
        let steps = &self.gallery.steps;
        let Scratch { map: numbers, products, energies } = scratch;
        products.resize(ROWS * HEADINGS, 0.0);
        numbers.clear();
        for part in parts.descriptors.chunks_exact(steps.len()) {
            let leading = part[..LEADING].iter().zip(&steps[..LEADING]);
            numbers.extend(leading.map(|(number, step)| f32::from(*number) * step));
        }
        self.leading.products(numbers, products);
        self.energies(numbers, LEADING, energies);
        vectorised!(turn_into_likenesses(products, energies));
        let (mut sum, mut squares, mut count) = (0.0, 0.0, 0);
        let mut best: Vec<Match> = Vec::with_capacity(CLOSER + 1);
        let mut best_inside: Vec<Match> = Vec::new();
        for place in (0..WINDOWS * WINDOWS).filter(|place| parts.has_land[*place] > 0) {
            let (row, column) = (place / WINDOWS, place % WINDOWS);
            let likenesses = &products.as_chunks::<HEADINGS>().0[row * MAP_PARTS + column];
            let of_place = vectorised!(Summary::of(likenesses));
            sum += f64::from(of_place.sum);
            squares += f64::from(of_place.squares);
            count += HEADINGS;
            let is_inside = inside.is_some_and(|inside| inside[place] > 0);
            for (list, is_looked_at) in [(&mut best, true), (&mut best_inside, is_inside)] {
                if !is_looked_at || of_place.highest <= least_of(list) {
                    continue;
                }
                for (heading, likeness) in likenesses.iter().enumerate() {
                    keep(list, Match { map, row, column, heading, likeness: *likeness });
                }
            }
        }
        for found in best.iter_mut().chain(&mut best_inside) {
            found.likeness = self.likeness(&parts, found);
        }
        Compared { map, sum, squares, count, best, best_inside }
    }

    /// Lengths of the windows under the parts that lie in the picture: `[TURNED, ROWS]`.
    fn energies(&self, map: &[f32], count: usize, output: &mut Vec<f32>) {
        let squares: Vec<f32> =
            map.chunks_exact(count).map(|part| part.iter().map(|x| x * x).sum()).collect();
        output.clear();
        output.resize(TURNED * ROWS, LEAST_ENERGY);
        for (sums, inside) in output.chunks_exact_mut(ROWS).zip(self.inside.chunks_exact(PARTS)) {
            for part in (0..PARTS).filter(|part| inside[*part] > 0.0) {
                let first = part / VIEW_PARTS * MAP_PARTS + part % VIEW_PARTS;
                let squares = &squares[first..][..ROWS];
                vectorised!(sums.iter_mut().zip(squares).for_each(|(sum, square)| *sum += square));
            }
        }
        vectorised!(output.iter_mut().for_each(|sum| *sum = sum.sqrt()));
    }

    /// Likeness by all numbers of the descriptors.
    fn likeness(&self, parts: &MapParts<'_>, found: &Match) -> f32 {
        let steps = &self.gallery.steps;
        let (mut product, mut energy) = (0.0, LEAST_ENERGY);
        let inside = &self.inside[found.heading * PARTS..][..PARTS];
        for part in (0..PARTS).filter(|part| inside[*part] > 0.0) {
            let at = (found.row + part / VIEW_PARTS) * MAP_PARTS + found.column + part % VIEW_PARTS;
            let numbers = &parts.descriptors[at * steps.len()..][..steps.len()];
            let of_query = self.all.by_part[part * steps.len() * HEADINGS + found.heading..].iter();
            for ((number, step), of_query) in
                numbers.iter().zip(steps).zip(of_query.step_by(HEADINGS))
            {
                let number = f32::from(*number) * step;
                product += number * of_query;
                energy += number * number;
            }
        }
        product / energy.sqrt()
    }
}

/// Headings whose pictures cover different parts: after a quarter turn they are the same again.
const TURNED: usize = HEADINGS / 4;

/// Divides the products of each window `[ROWS, HEADINGS]` by its lengths `[TURNED, ROWS]`.
#[inline(always)]
fn turn_into_likenesses(products: &mut [f32], lengths: &[f32]) {
    for (at, products) in products.as_chunks_mut::<HEADINGS>().0.iter_mut().enumerate() {
        let lengths: [f32; TURNED] = std::array::from_fn(|turned| lengths[turned * ROWS + at]);
        for quarter in products.as_chunks_mut::<TURNED>().0 {
            for (product, length) in quarter.iter_mut().zip(&lengths) {
                *product /= length;
            }
        }
    }
}

/// Likenesses of a place in all headings.
struct Summary {
    sum: f32,
    squares: f32,
    highest: f32,
}

impl Summary {
    #[inline(always)]
    fn of(likenesses: &[f32; HEADINGS]) -> Summary {
        const LANES: usize = 8;
        let (mut sums, mut squares, mut highest) = ([0.0; LANES], [0.0; LANES], [f32::MIN; LANES]);
        for eight in likenesses.as_chunks::<LANES>().0 {
            for (lane, likeness) in eight.iter().enumerate() {
                sums[lane] += likeness;
                squares[lane] += likeness * likeness;
                highest[lane] = if *likeness > highest[lane] { *likeness } else { highest[lane] };
            }
        }
        Summary {
            sum: sums.iter().sum(),
            squares: squares.iter().sum(),
            highest: highest.into_iter().fold(f32::MIN, f32::max),
        }
    }
}

/// What a match must exceed to be put into a list.
fn least_of(best: &[Match]) -> f32 {
    if best.len() < CLOSER { f32::MIN } else { best[CLOSER - 1].likeness }
}

/// Puts a match into the list, unless a better one is next to it; drops a worse one that is.
#[inline]
fn keep(best: &mut Vec<Match>, found: Match) {
    if found.likeness <= least_of(best) {
        return;
    }
    let near = |other: &Match| {
        let turn = other.heading.abs_diff(found.heading);
        let turn = turn.min(HEADINGS - turn);
        turn <= 1 && other.row.abs_diff(found.row) <= 1 && other.column.abs_diff(found.column) <= 1
    };
    if best.iter().any(|other| near(other) && other.likeness >= found.likeness) {
        return;
    }
    best.retain(|other| !near(other));
    let at = best.partition_point(|other| other.likeness >= found.likeness);
    best.insert(at, found);
    best.truncate(CLOSER);
}

/// A contrast turned so that north is up if the picture's upward direction has this bearing, and the parts that lie in
/// the picture then.
fn turned(contrast: &[f32], heading_degrees: f64) -> (Vec<f32>, Vec<f32>) {
    let (sine, cosine) = heading_degrees.to_radians().sin_cos();
    let (sine, cosine) = (sine as f32, cosine as f32);
    let half = VIEW as f32 / 2.0;
    let mut output = vec![0.0; contrast.len()];
    let mut counts = [0_usize; PARTS];
    for (at, output) in output.chunks_exact_mut(3).enumerate() {
        let (x, y) = ((at % VIEW) as f32 + 0.5 - half, (at / VIEW) as f32 + 0.5 - half);
        let (u, v) = (cosine * x + sine * y, cosine * y - sine * x);
        if u.abs() > half || v.abs() > half {
            continue;
        }
        counts[at / VIEW / PART * VIEW_PARTS + at % VIEW / PART] += 1;
        let clamped = |u: f32| (u + half - 0.5).clamp(0.0, VIEW as f32 - 1.001);
        let (u, v) = (clamped(u), clamped(v));
        let (column, row) = (u as usize, v as usize);
        let (right, down) = (u - column as f32, v - row as f32);
        for (k, output) in output.iter_mut().enumerate() {
            let of = |row: usize, column: usize| contrast[3 * (row * VIEW + column) + k];
            let across =
                |row: usize| of(row, column) + right * (of(row, column + 1) - of(row, column));
            *output = across(row) + down * (across(row + 1) - across(row));
        }
    }
    let inside = counts.iter().map(|count| f32::from(u8::from(2 * count > PART * PART)));
    (output, inside.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bayes: a place is as many times likelier as there are fewer of them.
    #[test]
    fn what_is_known_makes_places_likelier() {
        let widths_km = [200.0, 2000.0];
        let place = LatLon::new(31.0, 87.0).unwrap();
        let elsewhere = LatLon::new(-20.0, 30.0).unwrap();
        let known = Known::default();
        let nothing = known.nats(widths_km);
        assert_eq!((nothing(place), nothing(elsewhere)), (0.0, 0.0));
        // A box of a quarter of a half of the Earth.
        let eighth = [Constraint::from_words("0,45,90,135").unwrap()];
        let known = Known { within: &eighth, width_km: None };
        let known = known.nats(widths_km);
        assert!((known(place) - 8.0_f64.ln()).abs() < 1e-3, "{}", known(place));
        assert_eq!(known(elsewhere), 0.0);
        // A constraint counts as no smaller than a hundredth of the Earth.
        let small = [Constraint::from_words("31,87,30km").unwrap()];
        let known = Known { within: &small, width_km: None };
        let known = known.nats(widths_km);
        assert!((known(place) - 100.0_f64.ln()).abs() < 1e-9);
        // The logarithm of a width is known within 0.4, instead of within that of the gallery.
        let known = Known { within: &[], width_km: Some(300.0) };
        let known = known.nats(widths_km);
        assert!((known(place) - (10.0_f64.ln() / 0.8).ln()).abs() < 1e-9);
        assert_eq!(known(place), known(elsewhere));
    }
}
