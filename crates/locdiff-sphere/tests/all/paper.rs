//! The paper's decoders against their own definitions, by brute force.

use locdiff_sphere::{
    AnchorDecoder, Anchors, Basis, Coefficients, Decoder, Grid, LatLon, Transform,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Two bumps of different height and width, so that the window decides between them.
fn two_bumps(basis: &Basis) -> Coefficients {
    let (tall, broad) = (LatLon::new(20.0, 30.0).unwrap(), LatLon::new(-40.0, -100.0).unwrap());
    let (a, b) = (basis.encode(tall), basis.encode(broad));
    let mut sum = Coefficients::zeros(basis.max_degree());
    for (index, c) in sum.as_mut_slice().iter_mut().enumerate() {
        // The second bump keeps low degrees only.
        let broad = if index < 25 { 3.0 * b.as_slice()[index] } else { 0.0 };
        *c = a.as_slice()[index] * 0.55 + broad;
    }
    sum
}

#[test]
fn mode_decoder_is_the_published_sum() {
    let basis = Basis::new(12);
    let coefficients = two_bumps(&basis);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut answers = Vec::new();
    for anchors in [Anchors::fibonacci(900), Anchors::uniform(900, &mut rng)] {
        let decoder = AnchorDecoder::new(12, anchors.clone());
        for radius_km in [0.0, 300.0, 900.0, 2500.0, 30_000.0] {
            // The equation of the paper, word by word; an anchor is within 0 km of itself.
            let score = |place: &LatLon| -> f64 {
                let near = anchors
                    .places()
                    .iter()
                    .filter(|anchor| place == *anchor || place.distance_km(**anchor) < radius_km);
                near.map(|anchor| coefficients.value_at(&basis, *anchor).exp()).sum()
            };
            let scores: Vec<f64> = anchors.places().iter().map(score).collect();
            let best = scores.iter().copied().fold(0.0, f64::max);
            let found = decoder.mode(&coefficients, radius_km);
            assert!(score(&found) >= best * (1.0 - 1e-9), "radius {radius_km} km");
            answers.push(found.latitude() > 0.0);
        }
    }
    // A narrow window prefers the tall bump, a broad one the broad bump.
    assert!(answers[0] && !answers[3], "{answers:?}");
}

/// argmin over places of the paper's integral, computed by quadrature for every candidate.
#[test]
fn closed_form_of_the_kl_decoder_minimises_the_published_integral() {
    let max_degree = 6;
    let basis = Basis::new(max_degree);
    let decoder = Decoder::new(max_degree);
    let fine = Transform::<f64>::new(Grid::new(60, 120), max_degree);
    let weights: Vec<f64> =
        (0..fine.grid().len()).map(|point| fine.grid().weight(point / 120)).collect();
    let normalised = |coefficients: &Coefficients| -> Vec<f64> {
        let values = fine.synthesize(coefficients);
        let total: f64 = values.iter().zip(&weights).map(|(f, w)| w * f.exp()).sum();
        values.iter().map(|f| f - total.ln()).collect()
    };
    let coefficients = two_bumps(&Basis::new(max_degree));
    let q = normalised(&coefficients);
    let kl = |place: LatLon| -> f64 {
        let p = normalised(&basis.encode(place));
        q.iter().zip(&p).zip(&weights).map(|((q, p), w)| w * q.exp() * (q - p)).sum()
    };
    let decoded =
        AnchorDecoder::new(max_degree, Anchors::fibonacci(20_000)).kl(&coefficients, &decoder);
    let best = kl(decoded);
    for place in Anchors::fibonacci(2000).places() {
        assert!(kl(*place) > best - 1e-6, "{place} is better than {decoded}");
    }
    for bearing in [0.0, 90.0, 180.0, 270.0] {
        assert!(kl(decoded.destination(bearing, 100.0)) > best);
    }
}

#[test]
fn decoding_from_given_values_is_the_same() {
    let basis = Basis::new(8);
    let coefficients = two_bumps(&basis);
    let decoder = AnchorDecoder::new(8, Anchors::fibonacci(500));
    let values = decoder.values(&coefficients);
    for (place, value) in decoder.anchors().places().iter().zip(&values) {
        assert!((coefficients.value_at(&basis, *place) - value).abs() < 1e-12);
    }
    assert_eq!(decoder.mode_from_values(&values, 700.0), decoder.mode(&coefficients, 700.0));
    let exact = Decoder::new(8);
    assert_eq!(decoder.kl_from_values(&values, &exact), decoder.kl(&coefficients, &exact));
}
