use locdiff_sphere::uniform_place;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::*;
use crate::{EncoderIdentity, GalleryWriter};

const DIMENSION: usize = 24;

fn noise(rng: &mut ChaCha8Rng) -> Vec<f32> {
    (0..DIMENSION).map(|_| rng.sample::<f32, _>(StandardNormal)).collect()
}

/// A gallery of unrelated embeddings anywhere on Earth.
fn gallery(directory: &std::path::Path, rng: &mut ChaCha8Rng) -> (Gallery, Vec<Vec<f32>>) {
    let encoder = EncoderIdentity {
        name: "test".to_owned(),
        digest: "0".to_owned(),
        preprocessing: "none".to_owned(),
        dimension: DIMENSION,
    };
    let path = directory.join("gallery");
    let mut writer = GalleryWriter::create(&path, &encoder).unwrap();
    let rows: Vec<Vec<f32>> = (0..3000).map(|_| noise(rng)).collect();
    for (k, row) in rows.iter().enumerate() {
        writer.push(row, uniform_place(rng), &format!("{k}.jpg")).unwrap();
    }
    writer.finish(|_| ()).unwrap();
    (Gallery::open(&path).unwrap(), rows)
}

fn truth() -> Likelihood {
    Likelihood {
        sharpness: 12.0,
        width_km: 40.0,
        share_offset: -5.0,
        share_slope: 8.0,
        highest_share: 0.999,
        held_out: "simulated".to_owned(),
        held_out_rows: 1000,
        left_out_rows: 0,
        gallery_rows: 3000,
        nll_nats: 0.0,
    }
}

/// A place drawn from the density that a likelihood gives.
fn drawn(
    likelihood: &Likelihood,
    gallery: &Gallery,
    query: &[f32],
    rng: &mut ChaCha8Rng,
) -> LatLon {
    let hits = gallery.search(query, Likelihood::HITS).unwrap();
    let best = f64::from(hits[0].similarity);
    if rng.random::<f64>() >= likelihood.share(best) {
        return uniform_place(rng);
    }
    let weight = |similarity: f32| (likelihood.sharpness * (f64::from(similarity) - best)).exp();
    let sum: f64 = hits.iter().map(|hit| weight(hit.similarity)).sum();
    let mut left = rng.random::<f64>() * sum;
    let hit = hits.iter().find(|hit| {
        left -= weight(hit.similarity);
        left < 0.0
    });
    let distance_km = likelihood.width_km * (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    let place = gallery.place(hit.unwrap_or(&hits[0]).row);
    place.destination(rng.random_range(0.0..360.0), distance_km)
}

fn simulated<'a>(
    gallery: &'a Gallery,
    rows: &[Vec<f32>],
    rng: &mut ChaCha8Rng,
    count: usize,
) -> Fit<'a> {
    let mut fit = Fit::new(gallery);
    for k in 0..count {
        let scale = rng.random_range(0.2..2.0);
        let row = &rows[rng.random_range(0..rows.len())];
        let query: Vec<f32> = row.iter().zip(noise(rng)).map(|(x, z)| x + scale * z).collect();
        let place = drawn(&truth(), gallery, &query, rng);
        fit.push(&query, place, &format!("held-out/{k}.jpg")).unwrap();
    }
    fit
}

#[test]
fn a_fit_finds_the_likelihood_that_drew_the_data() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (gallery, rows) = gallery(directory.path(), &mut rng);
    let fit = simulated(&gallery, &rows, &mut rng, 1500);
    let cases = fit.cases.clone();
    let fitted = fit.finish("simulated").unwrap();
    let truth = truth();
    assert!((fitted.width_km / truth.width_km - 1.0).abs() < 0.08, "{fitted:?}");
    assert!((fitted.sharpness / truth.sharpness - 1.0).abs() < 0.15, "{fitted:?}");
    for similarity in [0.5, 0.7, 0.9] {
        assert!((fitted.share(similarity) - truth.share(similarity)).abs() < 0.07, "{fitted:?}");
    }
    // Nothing is better than what was fitted, neither the truth nor what is near.
    let nll = mean_nll(&fitted, &cases);
    assert_eq!(nll, fitted.nll_nats);
    assert!(nll <= mean_nll(&truth, &cases) + 1e-6);
    for factor in [0.8, 1.25] {
        let others = [
            Likelihood { sharpness: factor * fitted.sharpness, ..fitted.clone() },
            Likelihood { width_km: factor * fitted.width_km, ..fitted.clone() },
            Likelihood { share_slope: factor * fitted.share_slope, ..fitted.clone() },
            Likelihood { share_offset: factor * fitted.share_offset, ..fitted.clone() },
        ];
        for other in others {
            assert!(nll < mean_nll(&other, &cases), "{other:?}");
        }
    }
}

/// What is fitted is the likelihood of the density that is returned.
#[test]
fn the_fitted_numbers_are_those_of_the_density() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let (gallery, rows) = gallery(directory.path(), &mut rng);
    for width_km in [3.0, 300.0] {
        let likelihood = Likelihood { width_km, ..truth() };
        for row in rows.iter().take(20) {
            let query: Vec<f32> = row.iter().zip(noise(&mut rng)).map(|(x, z)| x + z).collect();
            let place = drawn(&likelihood, &gallery, &query, &mut rng);
            let mut fit = Fit::new(&gallery);
            fit.push(&query, place, "").unwrap();
            let hits = gallery.search(&query, Likelihood::HITS).unwrap();
            let density = likelihood.evidence(&gallery, &hits).unwrap().density().unwrap();
            let difference = density.nll_nats(place) - mean_nll(&likelihood, &fit.cases);
            assert!(difference.abs() < 1e-4, "{difference}");
        }
    }
}

/// Chance makes some of the fit, but not a density that would be wrong about others.
#[test]
fn references_that_never_match_say_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (gallery, _) = gallery(directory.path(), &mut rng);
    let unrelated = |count: usize, rng: &mut ChaCha8Rng| {
        let mut fit = Fit::new(&gallery);
        for _ in 0..count {
            fit.push(&noise(rng), uniform_place(rng), "").unwrap();
        }
        fit
    };
    let fitted = unrelated(200, &mut rng).finish("unrelated").unwrap();
    assert!((2.45..2.532).contains(&fitted.nll_nats), "{fitted:?}");
    let others = unrelated(1000, &mut rng);
    let nll = mean_nll(&fitted, &others.cases);
    assert!(nll < 2.58, "{nll} {fitted:?}");
}

#[test]
fn photographs_of_the_gallery_itself_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (gallery, _) = gallery(directory.path(), &mut rng);
    let mut fit = Fit::new(&gallery);
    for row in 0..60 {
        // The same photograph under another name, and one with its name that was encoded a little differently.
        let embedding = gallery.embedding(row);
        fit.push(&embedding, gallery.place(row), "copy").unwrap();
        let shifted: Vec<f32> = embedding.iter().map(|x| x + 0.01).collect();
        fit.push(&shifted, LatLon::NORTH_POLE, gallery.id(row)).unwrap();
        // Another one that looks the same elsewhere stays.
        fit.push(&embedding, gallery.place(row).destination(0.0, 1.0), "other").unwrap();
    }
    assert_eq!((fit.given, fit.cases.len()), (180, 60));
    let fitted = fit.finish("copies").unwrap();
    assert_eq!((fitted.held_out_rows, fitted.left_out_rows), (60, 120));
    assert!((0.3..1.5).contains(&fitted.width_km), "{fitted:?}");
    // All sixty match, which does not exclude that others don't.
    assert!(fitted.share(1.0) <= 1.0 - 1.0 / 62.0);
}

#[test]
fn few_photographs_are_not_enough() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (gallery, rows) = gallery(directory.path(), &mut rng);
    let error = simulated(&gallery, &rows, &mut rng, 49).finish("few").unwrap_err().to_string();
    assert!(error.contains("at least 50") && error.contains("49 are left of 49"), "{error}");
}
