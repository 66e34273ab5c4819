use std::path::Path;

use locdiff_sphere::{Anchors, Area, Coefficients, PlaceIndex};

use super::*;
use crate::{EncoderIdentity, GalleryWriter};

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

/// A gallery with a reference at each place. Embeddings are unit vectors, so that similarities are chosen by the
/// query.
fn gallery(directory: &Path, places: &[LatLon]) -> Gallery {
    let encoder = EncoderIdentity {
        name: "test".to_owned(),
        digest: "0".to_owned(),
        preprocessing: "none".to_owned(),
        dimension: 4,
    };
    let mut writer = GalleryWriter::create(directory, &encoder).unwrap();
    for (k, place) in places.iter().enumerate() {
        let mut embedding = [0.0; 4];
        embedding[k.min(3)] = 1.0;
        writer.push(&embedding, *place, &k.to_string()).unwrap();
    }
    writer.finish(|_| ()).unwrap();
    Gallery::open(directory).unwrap()
}

fn likelihood(width_km: f64) -> Likelihood {
    Likelihood {
        sharpness: 5.0,
        width_km,
        share_offset: -1.0,
        share_slope: 3.0,
        highest_share: 0.99,
        held_out: "none".to_owned(),
        held_out_rows: 98,
        left_out_rows: 0,
        gallery_rows: 0,
        nll_nats: 0.0,
    }
}

/// Three references of interest among others, evenly everywhere.
fn even_places() -> Vec<LatLon> {
    let mut places = Anchors::fibonacci(50_000).places().to_vec();
    for (k, place) in [at(48.86, 2.35), at(-33.9, 151.2), at(89.5, 10.0)].into_iter().enumerate() {
        // In the place of the nearest.
        let (nearest, _) = PlaceIndex::new(&places).nearest(place).unwrap();
        places[nearest] = place;
        places.swap(nearest, k);
    }
    places
}

fn three_hits(gallery: &Gallery) -> Vec<Hit> {
    gallery.search(&[0.8, 0.5, 0.3, 0.0], 3).unwrap()
}

fn integral(density: &Density) -> f64 {
    let anchors = Anchors::fibonacci(40_000);
    let places = anchors.places();
    let sum: f64 = places.iter().map(|place| density.log_density(*place).exp()).sum();
    4.0 * std::f64::consts::PI * sum / places.len() as f64
}

#[test]
fn densities_and_products_are_normalized() {
    let directory = tempfile::tempdir().unwrap();
    let gallery = gallery(&directory.path().join("gallery"), &even_places());
    let hits = three_hits(&gallery);
    let evidence = likelihood(400.0).evidence(&gallery, &hits).unwrap();
    let model = Density::exponential(&Coefficients::of(at(40.0, 10.0), 5));
    assert!((integral(&evidence.density().unwrap()) - 1.0).abs() < 0.01);
    assert!((integral(&evidence.product(&model).unwrap()) - 1.0).abs() < 0.01);
}

#[test]
fn without_priors_the_product_is_the_density() {
    let directory = tempfile::tempdir().unwrap();
    let gallery = gallery(&directory.path().join("gallery"), &even_places());
    let hits = three_hits(&gallery);
    let evidence = likelihood(30.0).evidence(&gallery, &hits).unwrap();
    let density = evidence.density().unwrap();
    let product = evidence.product(&Density::uniform()).unwrap();
    for hit in &hits {
        for distance_km in [0.0, 40.0, 100.0, 1000.0] {
            let place = gallery.place(hit.row).destination(70.0, distance_km);
            let difference = product.log_density(place) - density.log_density(place);
            assert!(difference.abs() < 0.02, "{place}: {difference}");
            // The ratio is the density over the uniform one.
            let ratio = evidence.log_ratio(place) - density.gain_nats(place);
            assert!(ratio.abs() < 0.02, "{place}: {ratio}");
        }
    }
}

#[test]
fn without_a_share_the_product_is_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let gallery = gallery(&directory.path().join("gallery"), &even_places());
    let model = Density::exponential(&Coefficients::of(at(40.0, 10.0), 7));
    let nothing = Likelihood { highest_share: 0.0, ..likelihood(30.0) };
    let no_hits = likelihood(30.0).evidence(&gallery, &[]).unwrap();
    for evidence in [nothing.evidence(&gallery, &three_hits(&gallery)).unwrap(), no_hits] {
        assert_eq!(evidence.share(), 0.0);
        let product = evidence.product(&model).unwrap();
        for place in [at(48.86, 2.35), at(0.0, 0.0), at(-90.0, 0.0)] {
            assert_eq!(product.log_density(place), model.log_density(place));
            assert_eq!(evidence.log_ratio(place), 0.0);
            assert!(evidence.density().unwrap().gain_nats(place).abs() < 1e-9);
        }
    }
}

/// The product is the model times the ratio, up to one constant, if the model is smooth.
#[test]
fn products_are_models_times_ratios() {
    let directory = tempfile::tempdir().unwrap();
    let gallery = gallery(&directory.path().join("gallery"), &even_places());
    let hits = three_hits(&gallery);
    let evidence = likelihood(5.0).evidence(&gallery, &hits).unwrap();
    let model = Density::exponential(&Coefficients::of(at(30.0, 20.0), 4));
    let product = evidence.product(&model).unwrap();
    let constant = |place: LatLon| {
        model.log_density(place) + evidence.log_ratio(place) - product.log_density(place)
    };
    let expected = constant(at(10.0, 60.0));
    for hit in &hits {
        for distance_km in [0.0, 4.0, 10.0, 17.0, 3000.0] {
            let place = gallery.place(hit.row).destination(-50.0, distance_km);
            let difference = constant(place) - expected;
            assert!(difference.abs() < 0.02, "{place}: {difference}");
        }
    }
}

/// Of two equally similar references, the one where there are few others counts more, once the gallery's prior is
/// divided out.
#[test]
fn priors_are_divided_out() {
    let directory = tempfile::tempdir().unwrap();
    let (city, island) = (at(48.86, 2.35), at(-16.0, 179.9));
    let mut places = vec![city, island];
    places.extend((0..2000).map(|k| city.destination(f64::from(k), 0.02 * f64::from(k))));
    let gallery = gallery(&directory.path().join("gallery"), &places);
    let hits = gallery.search(&[1.0, 1.0, 0.0, 0.0], 2).unwrap();
    let evidence = likelihood(5.0).evidence(&gallery, &hits).unwrap();
    let density = evidence.density().unwrap();
    assert!((density.log_density(city) - density.log_density(island)).abs() < 1e-3);
    let product = evidence.product(&Density::uniform()).unwrap();
    let difference = product.log_density(island) - product.log_density(city);
    let prior = evidence.prior().log_density(city) - evidence.prior().log_density(island);
    assert!(difference > 3.0 && (difference - prior).abs() < 0.1, "{difference} {prior}");
}

/// References where the model excludes the query have no weight, and if all are, the model stays.
#[test]
fn models_exclude_references() {
    let directory = tempfile::tempdir().unwrap();
    let gallery = gallery(&directory.path().join("gallery"), &even_places());
    let hits = three_hits(&gallery);
    let evidence = likelihood(5.0).evidence(&gallery, &hits).unwrap();
    let only = |latitude, longitude| {
        let area = Area::circle(at(latitude, longitude), 500.0).unwrap();
        Density::uniform().restricted_to(area).unwrap()
    };
    let product = evidence.product(&only(-33.9, 151.2)).unwrap();
    assert!(product.log_density(at(-33.9, 151.2)) > 5.0);
    // What spread points keep everywhere.
    assert!(product.log_density(at(48.86, 2.35)) < -14.0);
    let model = only(0.0, -30.0);
    let product = evidence.product(&model).unwrap();
    assert_eq!(product.log_density(at(0.0, -30.0)), model.log_density(at(0.0, -30.0)));
}

#[test]
fn likelihoods_are_stored_in_their_gallery() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gallery");
    let gallery = gallery(&path, &even_places()[..100]);
    let error = Likelihood::read(&gallery).unwrap_err();
    assert!(matches!(error, GalleryError::NotFitted { .. }), "{error}");
    let stored = likelihood(12.5);
    stored.write(&gallery).unwrap();
    assert_eq!(Likelihood::read(&gallery).unwrap(), stored);
    // Rows that are appended leave it.
    let mut writer = GalleryWriter::append(&path, gallery.encoder()).unwrap();
    writer.push(&[1.0; 4], at(0.0, 0.0), "new").unwrap();
    writer.finish(|_| ()).unwrap();
    assert_eq!(Likelihood::read(&Gallery::open(&path).unwrap()).unwrap(), stored);
    let file = path.join("likelihood.json");
    let text = std::fs::read_to_string(&file).unwrap();
    for (from, to, expected) in [
        ("12.5", "-1.0", "width_km is -1"),
        ("\"version\": 1", "\"version\": 3", "version 3, this program reads"),
        ("\"sharpness\"", "\"bluntness\"", "missing field `sharpness`"),
    ] {
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let error = Likelihood::read(&gallery).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
