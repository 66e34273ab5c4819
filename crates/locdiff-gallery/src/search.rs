//! The most similar rows of a segment.
//!
//! Sketches of all rows choose some thousand candidates: those whose signs differ from the query's in the
//! fewest numbers. Candidates are compared in 8 bits, whose error is bounded row by row; the rows that could
//! be among the best, given these bounds, are compared in 16 bits. So only the sketches can miss a row, and a
//! search of given rows, which uses no sketches, is exact.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::quantize::{self, Query, sketch_words};
use crate::segment::Segment;
use crate::simd::{Differences, Dot, Products, vectorized};

/// Rows whose products are computed together.
const BLOCK: usize = 256;
/// Candidates of a small segment, those per row of a large one, and the most. At a million rows of 512 numbers,
/// 8,000 have found 99.6 % of the best ten (GeoCLIP's gallery).
const FEWEST_CANDIDATES: usize = 2000;
const CANDIDATES_PER_ROW: f64 = 0.006;
const MOST_CANDIDATES: usize = 8000;
/// Candidates for each row that is wanted, at least.
const CANDIDATES_PER_HIT: usize = 40;

/// A row that is similar to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The row, valid for this opened gallery: appending changes the numbers of rows.
    pub row: usize,
    /// Cosine of the angle between the two embeddings.
    pub similarity: f32,
}

impl Hit {
    /// Best first; of equals, the one that comes first.
    fn order(&self, other: &Hit) -> Ordering {
        other.similarity.total_cmp(&self.similarity).then(self.row.cmp(&other.row))
    }
}

/// Collects the best rows of all segments.
pub(crate) struct Best<'a> {
    query: &'a Query,
    count: usize,
    /// The best `count` lower bounds of similarities; a row below the lowest is not among the best.
    bounds: BinaryHeap<Reverse<Number>>,
    /// Similarity at most, segment and row, of those that could be.
    open: Vec<(f32, usize, u32)>,
    /// Space for products of rows with the query.
    products: Vec<i32>,
}

impl<'a> Best<'a> {
    pub(crate) fn new(query: &'a Query, count: usize) -> Best<'a> {
        Best { query, count, bounds: BinaryHeap::new(), open: Vec::new(), products: vec![0; BLOCK] }
    }

    /// Compares rows of a segment.
    pub(crate) fn compare(
        &mut self,
        number: usize,
        segment: &Segment,
        rows: impl Iterator<Item = u32>,
    ) {
        let mut rows = rows.peekable();
        let mut block = Vec::with_capacity(BLOCK);
        while rows.peek().is_some() {
            block.clear();
            block.extend(rows.by_ref().take(BLOCK));
            let products = Products {
                query: &self.query.integers,
                bytes: segment.bytes(),
                rows: &block,
                products: &mut self.products[..block.len()],
            };
            products.compute();
            for (k, row) in block.iter().enumerate() {
                let scale = segment.scale(*row as usize);
                let (similarity, error) = self.query.similarity(self.products[k], scale);
                let (low, high) = (similarity - error, similarity + error);
                if high < self.threshold() {
                    continue;
                }
                self.open.push((high, number, *row));
                self.bounds.push(Reverse(Number(low)));
                if self.bounds.len() > self.count {
                    self.bounds.pop();
                }
            }
            // The first rows were kept when the threshold was low.
            if self.open.len() > 4 * self.count + 4 * BLOCK {
                let threshold = self.threshold();
                self.open.retain(|(high, ..)| *high >= threshold);
            }
        }
    }

    fn threshold(&self) -> f32 {
        match self.bounds.peek() {
            Some(Reverse(Number(low))) if self.bounds.len() == self.count => *low,
            _ => f32::NEG_INFINITY,
        }
    }

    /// The best rows by 16 bits, best first. `starts` are the numbers of the segments' first rows.
    pub(crate) fn finish(self, segments: &[Segment], starts: &[usize]) -> Vec<Hit> {
        let threshold = self.threshold();
        let mut numbers = vec![0.0; self.query.numbers.len()];
        let open = self.open.iter().filter(|(high, ..)| *high >= threshold);
        let mut hits: Vec<Hit> = open
            .map(|(_, segment, row)| {
                segments[*segment].embedding(*row as usize, &mut numbers);
                let [product, square] = [&self.query.numbers, &numbers].map(|other| {
                    let mut product = 0.0;
                    vectorized(Dot { a: &numbers, b: other, product: &mut product });
                    product
                });
                // Rounding has changed the row's length.
                Hit { row: starts[*segment] + *row as usize, similarity: product / square.sqrt() }
            })
            .collect();
        hits.sort_unstable_by(Hit::order);
        hits.truncate(self.count);
        hits
    }
}

/// A number of f32 that can be compared and sorted.
struct Number(f32);

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

/// The rows whose sketches differ least from the query's, ascending; all rows of a small segment.
pub(crate) fn candidates(segment: &Segment, query: &Query, count: usize) -> Vec<u32> {
    let rows = segment.rows();
    let wanted = (CANDIDATES_PER_ROW * rows as f64) as usize;
    let wanted = wanted.clamp(FEWEST_CANDIDATES, MOST_CANDIDATES);
    let wanted = wanted.max(count.saturating_mul(CANDIDATES_PER_HIT));
    if rows <= wanted {
        return (0..rows as u32).collect();
    }
    let mut words = vec![0; sketch_words(query.numbers.len())];
    quantize::sketch(&query.numbers, segment.mean(), &mut words);
    let mut differences = vec![0_u16; rows];
    let sketches = segment.sketches();
    vectorized(Differences { query: &words, sketches, differences: &mut differences });
    let limit = limit(&differences, 64 * words.len(), wanted);
    // Many rows may differ in just as many numbers, as copies of a row do.
    let mut room = 2 * wanted;
    let mut candidates = Vec::with_capacity(room);
    for (row, difference) in differences.iter().enumerate() {
        if *difference <= limit {
            let is_last = *difference == limit;
            if is_last && room == 0 {
                continue;
            }
            room -= usize::from(is_last);
            candidates.push(row as u32);
        }
    }
    candidates
}

/// The difference that so many rows do not exceed.
fn limit(differences: &[u16], largest: usize, wanted: usize) -> u16 {
    // Four counts, because neighbors often differ alike, and an addition would wait for the one before.
    let mut counts = vec![[0_u32; 4]; largest + 1];
    let (blocks, rest) = differences.as_chunks::<4>();
    for block in blocks {
        for k in 0..4 {
            counts[usize::from(block[k])][k] += 1;
        }
    }
    rest.iter().for_each(|difference| counts[usize::from(*difference)][0] += 1);
    let mut sum = 0;
    for (difference, counts) in counts.iter().enumerate() {
        sum += counts.iter().map(|count| *count as usize).sum::<usize>();
        if sum >= wanted {
            return difference as u16;
        }
    }
    u16::MAX
}
