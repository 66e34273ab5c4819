use locdiff_sphere::{Anchors, Coefficients, UnitVector, uniform_place};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::*;
use crate::{EncoderIdentity, GalleryWriter};

/// Embeddings are directions: the nearer, the more similar.
fn embedding(place: LatLon, noise: f64, rng: &mut ChaCha8Rng) -> Vec<f32> {
    let direction = UnitVector::from(place).to_array();
    direction.iter().map(|x| (x + noise * rng.sample::<f64, _>(StandardNormal)) as f32).collect()
}

fn gallery(directory: &Path, places: &[LatLon]) -> Gallery {
    let encoder = EncoderIdentity {
        name: "compass".to_owned(),
        digest: "0".to_owned(),
        preprocessing: "none".to_owned(),
        dimension: 3,
    };
    let path = directory.join("gallery");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut writer = GalleryWriter::create(&path, &encoder).unwrap();
    for (k, place) in places.iter().enumerate() {
        writer.push(&embedding(*place, 0.0, &mut rng), *place, &k.to_string()).unwrap();
    }
    writer.finish(|_| ()).unwrap();
    Gallery::open(&path).unwrap()
}

/// The density of a model of low degree.
fn model(place: LatLon) -> Density {
    let mut e = Coefficients::of(place, 5);
    e.as_mut_slice().iter_mut().for_each(|e| *e *= 2.0);
    Density::exponential(&e)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Photographs whose embeddings tell more than the model does.
fn photographs(count: usize, rng: &mut ChaCha8Rng) -> Vec<(LatLon, Vec<f32>, Density)> {
    let photograph = |_| {
        let place = uniform_place(rng);
        let blurred = place.destination(rng.random_range(0.0..360.0), 1500.0 * rng.random::<f64>());
        (place, embedding(place, 0.02, rng), model(blurred))
    };
    (0..count).map(photograph).collect()
}

fn fit(gallery: &Gallery, rng: &mut ChaCha8Rng) -> Fusion {
    let mut fit = FusionFit::new(gallery);
    for (k, (place, query, model)) in photographs(120, rng).into_iter().enumerate() {
        fit.push(&query, place, &format!("held-out {k}"), &model).unwrap();
    }
    fit.finish("photographs", "1").unwrap()
}

#[test]
fn together_they_know_more_and_nothing_is_lost_where_references_are_missing() {
    let scratch = tempfile::tempdir().unwrap();
    let gallery = gallery(scratch.path(), Anchors::fibonacci(10_000).places());
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let fusion = fit(&gallery, &mut rng);
    assert!(fusion.nll_nats < fusion.model_nll_nats - 0.5, "{fusion:?}");
    let test = photographs(40, &mut rng);
    let (mut with, mut without, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for (place, query, model) in &test {
        let hits = gallery.search(query, 4096).unwrap();
        let density = fusion.density(&gallery, &hits, model, None).unwrap();
        with.push(-density.log_density(*place));
        let hole = Area::circle(*place, 1000.0).unwrap();
        let far: Vec<Hit> =
            hits.into_iter().filter(|hit| !hole.contains(gallery.place(hit.row))).collect();
        let density = fusion.density(&gallery, &far, model, Some(&hole)).unwrap();
        without.push(-density.log_density(*place));
        alone.push(-model.log_density(*place));
    }
    let [with, without, alone] = [with, without, alone].map(|nll| mean(nll.into_iter()));
    assert!(with < alone - 0.5, "{with} {alone}");
    assert!((with - fusion.nll_nats).abs() < 0.3, "{with} {fusion:?}");
    // Hits elsewhere are no evidence that the place is elsewhere.
    assert!(without < alone + 0.05, "{without} {alone}");
}

/// A model that is wrong now and then is overruled by hits that are not.
#[test]
fn hits_overrule_a_model_that_is_sometimes_wrong() {
    let scratch = tempfile::tempdir().unwrap();
    let gallery = gallery(scratch.path(), Anchors::fibonacci(10_000).places());
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let unsure =
        |model: Density| Density::mixture(vec![(0.7, model), (0.3, Density::uniform())]).unwrap();
    let mut fit = FusionFit::new(&gallery);
    for (k, (place, query, right)) in photographs(150, &mut rng).into_iter().enumerate() {
        let said = if k % 3 == 0 { model(uniform_place(&mut rng)) } else { right };
        fit.push(&query, place, &format!("held-out {k}"), &unsure(said)).unwrap();
    }
    let fusion = fit.finish("photographs", "1").unwrap();
    for (place, query, _) in photographs(10, &mut rng) {
        let elsewhere = place.destination(90.0, 9000.0);
        let hits = gallery.search(&query, Likelihood::HITS).unwrap();
        let wrong = unsure(model(elsewhere));
        let density = fusion.density(&gallery, &hits, &wrong, None).unwrap();
        let found = density.survey().modes().modes[0].place;
        assert!(found.distance_km(place) < 1000.0, "{found} for {place}: {fusion:?}");
    }
}

/// The density that is made is the one that was fitted.
#[test]
fn densities_are_normalized_and_fitted_as_they_are_made() {
    let scratch = tempfile::tempdir().unwrap();
    // Half of the Earth has references.
    let places: Vec<LatLon> = Anchors::fibonacci(8000)
        .places()
        .iter()
        .copied()
        .filter(|place| place.latitude() > 0.0)
        .collect();
    let gallery = gallery(scratch.path(), &places);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let fusion = fit(&gallery, &mut rng);
    for (place, query, model) in photographs(5, &mut rng) {
        let hits = gallery.search(&query, SEARCHED).unwrap();
        let density = fusion.density(&gallery, &hits, &model, None).unwrap();
        let anchors = Anchors::fibonacci(40_000);
        let integral = mean(anchors.places().iter().map(|place| density.log_density(*place).exp()))
            * 4.0
            * std::f64::consts::PI;
        assert!((integral - 1.0).abs() < 0.02, "{integral}");
        let mut one = FusionFit::new(&gallery);
        one.push(&query, place, "new", &model).unwrap();
        let fitted = mean_nll(&fusion, &one.reduced(fusion.width_km).unwrap());
        assert!(
            (fitted + density.log_density(place)).abs() < 1e-5,
            "{fitted} {}",
            density.log_density(place)
        );
    }
}

#[test]
fn numbers_are_stored_beside_the_hybrid() {
    let scratch = tempfile::tempdir().unwrap();
    assert_eq!(Fusion::read(scratch.path()).unwrap(), None);
    let gallery = gallery(scratch.path(), Anchors::fibonacci(3000).places());
    let fusion = fit(&gallery, &mut ChaCha8Rng::seed_from_u64(4));
    fusion.write(scratch.path()).unwrap();
    assert_eq!(Fusion::read(scratch.path()).unwrap(), Some(fusion));
    let path = scratch.path().join(FILE);
    let text = fs::read_to_string(&path).unwrap().replace("\"width_km\": ", "\"width_km\": -");
    fs::write(&path, text).unwrap();
    assert!(matches!(Fusion::read(scratch.path()), Err(GalleryError::Contents { .. })));
}
