//! The best of the places of a list for every row, block by block: a million places times 576 numbers don't have to be in
//! memory at once.

use locdiff_experiments::paper::Task;
use locdiff_experiments::{Dense, multiply};
use locdiff_sphere::{Anchors, Basis, LatLon};

const BLOCK: usize = 2048;
/// MP16's places, then even grids, as in the paper.
pub const LISTS: [&str; 5] = ["MP16, 100k", "grid, 1M", "grid, 500k", "grid, 100k", "grid, 21k"];
const GRIDS: [usize; 4] = [1_000_000, 500_000, 100_000, 21_000];

/// The lists' places.
pub fn lists(task: &Task) -> impl Iterator<Item = Vec<LatLon>> {
    let grids = GRIDS.iter().map(|count| Anchors::fibonacci(*count).places().to_vec());
    std::iter::once(task.simulation.gallery.clone()).chain(grids)
}

/// For each row of coefficients, the place where F is largest.
pub fn highest(outputs: &[f32], max_degree: usize, places: &[LatLon]) -> Vec<LatLon> {
    let basis = Basis::new(max_degree);
    best_of(outputs, basis.len(), places, |block| {
        let mut harmonics = vec![0.0_f32; block.len() * basis.len()];
        basis.encode_into(block, &mut harmonics);
        harmonics
    })
}

/// For each test image, the place whose GeoCLIP embedding has the largest product with it.
pub fn nearest(task: &Task, places: &[LatLon]) -> Vec<LatLon> {
    let embed = |block: &[LatLon]| task.simulation.embed(block);
    best_of(&task.test.conditions, task.simulation.width, places, embed)
}

fn best_of(
    rows: &[f32],
    width: usize,
    places: &[LatLon],
    features: impl Fn(&[LatLon]) -> Vec<f32>,
) -> Vec<LatLon> {
    let count = rows.len() / width;
    let mut best: Vec<(f32, usize)> = vec![(f32::NEG_INFINITY, 0); count];
    let mut products = vec![0.0_f32; BLOCK * count];
    let matrix = Dense { entries: rows, row: 1, column: width };
    for (number, block) in places.chunks(BLOCK).enumerate() {
        // products[place, row] = features[place, ·] · rows[row, ·]
        multiply(&mut products, &features(block), matrix, [block.len(), count, width]);
        for (place, values) in products.chunks_exact(count).take(block.len()).enumerate() {
            for (best, value) in best.iter_mut().zip(values) {
                if *value > best.0 {
                    *best = (*value, number * BLOCK + place);
                }
            }
        }
    }
    best.into_iter().map(|(_, place)| places[place]).collect()
}
