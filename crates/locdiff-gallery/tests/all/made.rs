//! Galleries that are made for tests.

use std::path::Path;

use locdiff_gallery::{EncoderIdentity, Gallery, GalleryWriter, Hit};
use locdiff_sphere::{Area, LatLon, uniform_place};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// A photograph: its embedding, place and id.
pub(crate) type Row = (Vec<f32>, LatLon, String);

pub(crate) fn encoder(dimension: usize) -> EncoderIdentity {
    EncoderIdentity {
        name: "test-encoder".to_owned(),
        digest: "sha256:0123".to_owned(),
        preprocessing: "none".to_owned(),
        dimension,
    }
}

/// Rows in clusters: places around a center, embeddings around a direction with a common part, as encoders have
/// it. Each tenth row is almost a copy of the one before.
pub(crate) fn clustered(seed: u64, rows: usize, dimension: usize) -> Vec<Row> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let clusters: Vec<(Vec<f32>, LatLon)> = (0..rows.div_ceil(50))
        .map(|_| (noise(&mut rng, dimension), uniform_place(&mut rng)))
        .collect();
    let mut made: Vec<Row> = Vec::new();
    for row in 0..rows {
        let id = format!("photos/{seed}/{row}.jpg");
        if row % 10 == 9 {
            let (before, place, _) = &made[row - 1];
            let step = noise(&mut rng, dimension);
            let copy = before.iter().zip(step).map(|(x, step)| x + 1e-3 * step).collect();
            made.push((copy, place.destination(10.0, 0.02), id));
            continue;
        }
        let (direction, center) = &clusters[rng.random_range(0..clusters.len())];
        let step = noise(&mut rng, dimension);
        let embedding = direction.iter().zip(step).map(|(x, step)| 1.5 + x + 0.7 * step).collect();
        let distance_km = 100.0 * rng.random::<f64>();
        made.push((embedding, center.destination(rng.random_range(0.0..360.0), distance_km), id));
    }
    made
}

/// Queries near rows, and as far from them as other photographs of a cluster.
pub(crate) fn queries(rows: &[Row], count: usize) -> Vec<Vec<f32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(99);
    (0..count)
        .map(|_| {
            let (embedding, ..) = &rows[rng.random_range(0..rows.len())];
            let scale = rng.random_range(0.1..0.8);
            let step = noise(&mut rng, embedding.len());
            embedding.iter().zip(step).map(|(x, step)| x + scale * step).collect()
        })
        .collect()
}

fn noise(rng: &mut ChaCha8Rng, dimension: usize) -> Vec<f32> {
    (0..dimension).map(|_| rng.sample::<f32, _>(StandardNormal)).collect()
}

pub(crate) fn build(directory: &Path, rows: &[Row]) -> Gallery {
    let mut writer = GalleryWriter::create(directory, &encoder(rows[0].0.len())).unwrap();
    push(&mut writer, rows);
    writer.finish(|_| ()).unwrap();
    Gallery::open(directory).unwrap()
}

pub(crate) fn append(directory: &Path, rows: &[Row]) -> Gallery {
    let mut writer = GalleryWriter::append(directory, &encoder(rows[0].0.len())).unwrap();
    push(&mut writer, rows);
    writer.finish(|_| ()).unwrap();
    Gallery::open(directory).unwrap()
}

pub(crate) fn push(writer: &mut GalleryWriter, rows: &[Row]) {
    for (embedding, place, id) in rows {
        writer.push(embedding, *place, id).unwrap();
    }
}

/// Similarities of all rows with a query, best first.
pub(crate) fn brute_force(
    gallery: &Gallery,
    query: &[f32],
    areas: Option<&[Area]>,
) -> Vec<(f64, usize)> {
    let length = query.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let inside = |row: &usize| {
        areas.is_none_or(|areas| areas.iter().any(|area| area.contains(gallery.place(*row))))
    };
    let mut all: Vec<(f64, usize)> = (0..gallery.len())
        .filter(inside)
        .map(|row| {
            let embedding = gallery.embedding(row);
            let products = embedding.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b));
            let square = embedding.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
            (products.sum::<f64>() / (length * square.sqrt()), row)
        })
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all
}

/// How many hits are as similar as those of the slow reference.
pub(crate) fn as_good(hits: &[Hit], reference: &[(f64, usize)]) -> usize {
    hits.iter()
        .zip(reference)
        .filter(|(hit, best)| f64::from(hit.similarity) > best.0 - 1e-6)
        .count()
}
