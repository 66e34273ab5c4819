//! From coefficients back to places.

use std::f64::consts::PI;

use locdiff_sphere::{
    Basis, Coefficients, Decoder, EARTH_RADIUS_KM, Grid, LatLon, Transform, UnitVector,
    uniform_place,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::laws::noise;

#[test]
fn round_trip_is_under_a_metre_at_every_degree() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for max_degree in (1..=64).chain([95, 128, 191, 255]) {
        let (basis, decoder) = (Basis::new(max_degree), Decoder::new(max_degree));
        let special = [
            (90.0, 0.0),
            (-90.0, 33.0),
            (89.9999, -180.0),
            (-89.99, 120.0),
            (0.0, -180.0),
            (12.0, 179.99999),
        ];
        let special = special.map(|(lat, lon)| LatLon::new(lat, lon).unwrap());
        let random: Vec<LatLon> = (0..6).map(|_| uniform_place(&mut rng)).collect();
        for place in random.into_iter().chain(special) {
            let peak = decoder.mode(&basis.encode(place));
            let error_m = 1000.0 * peak.place.distance_km(place);
            assert!(error_m < 1.0, "degree {max_degree}: {place} came back {error_m} m away");
            let height = ((max_degree + 1) * (max_degree + 1)) as f64 / (4.0 * PI);
            assert!((peak.value / height - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn no_peak_is_missed_on_white_noise() {
    for max_degree in [1, 2, 3, 5, 8, 16, 23, 47] {
        let decoder = Decoder::new(max_degree);
        let rings = 16 * (max_degree + 1);
        let fine = Transform::<f64>::new(Grid::new(rings, 2 * rings), max_degree);
        for seed in 0..4 {
            let coefficients = noise(max_degree, 100 * seed + max_degree as u64);
            let values = fine.synthesize(&coefficients);
            let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let peaks = decoder.modes(&coefficients, 5);
            assert!(peaks[0].value >= highest, "degree {max_degree}, seed {seed}");
            assert!(decoder.mode(&coefficients) == peaks[0]);
            let descending = peaks.windows(2).all(|pair| pair[0].value >= pair[1].value);
            assert!(descending);
            for peak in &peaks {
                let jet = coefficients.jet_at(decoder.basis(), peak.place);
                assert!(jet.east.hypot(jet.north) < 1e-6 * max_degree as f64 * highest.abs());
                assert!(jet.principal_curvatures()[0].0 <= 0.0, "a maximum curves downwards");
            }
            // A local maximum of the fine grid above the worst of the five is one of the five.
            let worst = peaks.last().map_or(f64::INFINITY, |peak| peak.value);
            let (grid, n) = (fine.grid(), fine.grid().longitudes());
            for node in n..values.len() - n {
                let (ring, j) = (node / n, node % n);
                let row =
                    |ring: usize| [(j + n - 1) % n, j, (j + 1) % n].map(|j| values[ring * n + j]);
                let around = [row(ring - 1), row(ring), row(ring + 1)];
                let local_maximum = around.iter().flatten().all(|other| values[node] >= *other);
                if local_maximum && values[node] > worst {
                    let summit = ascend(&coefficients, decoder.basis(), grid.place(ring, j));
                    let angles = peaks.iter().map(|peak| peak.place.angle_to(summit));
                    let nearest = angles.fold(PI, f64::min);
                    assert!(nearest < 1e-3, "degree {max_degree}, seed {seed}: missed {summit}");
                }
            }
        }
    }
}

/// Steepest ascent in small steps: slow and simple, as a reference for the decoder.
fn ascend(coefficients: &Coefficients, basis: &Basis, start: LatLon) -> LatLon {
    let mut place = start;
    let steepest = basis.max_degree().pow(2) as f64;
    for _ in 0..20_000 {
        let jet = coefficients.jet_at(basis, place);
        let slope = jet.east.hypot(jet.north);
        let curvature = jet.principal_curvatures()[1].0.abs().max(1e-3 * steepest);
        let angle = (slope / curvature).min(0.1 / basis.max_degree() as f64);
        if angle < 1e-9 {
            break;
        }
        place = place.destination(jet.east.atan2(jet.north).to_degrees(), angle * EARTH_RADIUS_KM);
    }
    place
}

/// A sum of encodings, each with its weight.
fn mixture(basis: &Basis, parts: &[(f64, LatLon)]) -> Coefficients {
    let mut sum = Coefficients::zeros(basis.max_degree());
    for (weight, place) in parts {
        let encoding = basis.encode(*place);
        for (sum, y) in sum.as_mut_slice().iter_mut().zip(encoding.as_slice()) {
            *sum += weight * y;
        }
    }
    sum
}

/// The rotation by `angle` radians about `axis`, of a place.
fn rotated(place: LatLon, axis: LatLon, angle: f64) -> LatLon {
    let (k, v) = (UnitVector::from(axis).to_array(), UnitVector::from(place).to_array());
    let (sin, cos) = angle.sin_cos();
    let dot: f64 = k.iter().zip(&v).map(|(k, v)| k * v).sum();
    let cross = [k[1] * v[2] - k[2] * v[1], k[2] * v[0] - k[0] * v[2], k[0] * v[1] - k[1] * v[0]];
    let turned = std::array::from_fn(|i| cos * v[i] + sin * cross[i] + (1.0 - cos) * dot * k[i]);
    LatLon::from(UnitVector::from_direction(turned).unwrap())
}

#[test]
fn peaks_on_ridges_and_at_poles_are_not_missed() {
    let basis = Basis::new(20);
    let decoder = Decoder::new(20);
    let fine = Transform::<f64>::new(Grid::new(400, 800), 20);
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for trial in 0..12 {
        // A ridge of uneven height along a great circle that runs across the grid, and a
        // peak near a pole.
        let (start, bearing) = (uniform_place(&mut rng), rng.random_range(20.0..70.0));
        let mut parts: Vec<(f64, LatLon)> = (0..25)
            .map(|k| {
                (0.3 + 0.02 * rng.random::<f64>(), start.destination(bearing, 250.0 * k as f64))
            })
            .collect();
        parts.push((0.5, LatLon::new(90.0 - rng.random_range(0.0..5.0), 77.0).unwrap()));
        let coefficients = mixture(&basis, &parts);
        let values = fine.synthesize(&coefficients);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let peaks = decoder.modes(&coefficients, 30);
        assert!(peaks[0].value >= highest, "trial {trial}: {highest} is above {peaks:?}");
        let summit = ascend(&coefficients, &basis, parts[25].1);
        let nearest = peaks.iter().map(|peak| peak.place.angle_to(summit)).fold(PI, f64::min);
        assert!(nearest < 1e-3, "trial {trial}: missed {summit}");
    }
}

#[test]
fn saddles_and_rims_are_no_peaks() {
    // Degree 12 has a coarse ring on the equator, where this function has a saddle.
    let basis = Basis::new(12);
    let place = |latitude: f64| LatLon::new(latitude, 0.0).unwrap();
    let saddle = mixture(&basis, &[(1.0, place(15.0)), (1.0, place(-15.0))]);
    let peaks = Decoder::new(12).modes(&saddle, 2);
    assert!(peaks.iter().all(|peak| peak.place.latitude().abs() > 5.0), "{peaks:?}");
    assert_eq!(peaks.len(), 2);
    assert!((peaks[0].value - peaks[1].value).abs() < 1e-12);
    // The side lobes of an encoding are rims around it and its antipode, which has a peak
    // of its own for even degrees.
    for latitude in [90.0, 37.0] {
        let peaks = Decoder::new(12).modes(&basis.encode(place(latitude)), 20);
        assert!(peaks.len() <= 2, "{peaks:?}");
        assert!(peaks[0].place.distance_km(place(latitude)) < 1e-3);
    }
    // A function that has nothing but a rim still gets an answer on it: −cos² θ.
    let mut rim = Coefficients::zeros(2);
    rim.as_mut_slice()[6] = -1.0;
    let peaks = Decoder::new(2).modes(&rim, 3);
    assert!(peaks.len() == 1 && peaks[0].place.latitude().abs() < 1e-6, "{peaks:?}");
}

#[test]
fn decoding_is_equivariant_under_every_rotation() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let (basis, decoder) = (Basis::new(15), Decoder::new(15));
    for _ in 0..30 {
        let parts: Vec<(f64, LatLon)> =
            (0..4).map(|_| (rng.random_range(0.5..1.5), uniform_place(&mut rng))).collect();
        let (axis, angle) = (uniform_place(&mut rng), rng.random_range(0.0..PI));
        let turned: Vec<(f64, LatLon)> =
            parts.iter().map(|(weight, place)| (*weight, rotated(*place, axis, angle))).collect();
        let before = decoder.modes(&mixture(&basis, &parts), 4);
        let after = decoder.modes(&mixture(&basis, &turned), 4);
        for (before, after) in before.iter().zip(&after) {
            assert!((before.value - after.value).abs() < 1e-10);
            assert!(rotated(before.place, axis, angle).distance_km(after.place) < 1e-3);
        }
        assert_eq!(before.len(), after.len());
    }
}

/// The bound of `experiments/sphere/sphere-drift`, on fewer places.
#[test]
fn noisy_encodings_decode_to_the_cramer_rao_bound() {
    let (basis, decoder) = (Basis::new(47), Decoder::new(47));
    let mut rng = ChaCha8Rng::seed_from_u64(13);
    let count = 300;
    let mut total_km = 0.0;
    for seed in 0..count {
        let place = uniform_place(&mut rng);
        let mut noisy = basis.encode(place);
        let noise = noise(47, 1000 + seed);
        for (c, noise) in noisy.as_mut_slice().iter_mut().zip(noise.as_slice()) {
            *c += 0.1 * noise;
        }
        total_km += decoder.mode(&noisy).place.distance_km(place);
    }
    // 2.458 km; the mean of 300 such errors scatters by 0.075 km.
    let mean_km = total_km / count as f64;
    assert!((mean_km - 2.458).abs() < 0.25, "{mean_km} km");
}

#[test]
fn round_trip_at_degree_1000() {
    let place = LatLon::new(-41.2, 174.7).unwrap();
    let peak = Decoder::new(1000).mode(&Coefficients::of(place, 1000));
    assert!(peak.place.distance_km(place) < 1e-6);
}

#[test]
fn a_batch_decodes_like_single_vectors_and_survives_any_scale() {
    let decoder = Decoder::new(12);
    let rows: Vec<Coefficients> = (0..7).map(|seed| noise(12, seed)).collect();
    let matrix: Vec<f64> = rows.iter().flat_map(|row| row.as_slice().to_vec()).collect();
    let batch = decoder.modes_of_batch(&matrix, 3);
    for (row, peaks) in rows.iter().zip(&batch) {
        assert_eq!(&decoder.modes(row, 3), peaks);
        for scale in [1e-200, 1e200] {
            let scaled = row.as_slice().iter().map(|c| c * scale).collect();
            let peak = decoder.mode(&Coefficients::from_vec(scaled).unwrap());
            assert!(peak.place.distance_km(peaks[0].place) < 1e-6);
        }
    }
    // A constant has a maximum everywhere: any place will do, but there must be one.
    let mut constant = Coefficients::zeros(12);
    constant.as_mut_slice()[0] = 2.0;
    let peaks = decoder.modes(&constant, 3);
    assert_eq!(peaks.len(), 1);
    assert!((peaks[0].value - 2.0 / (4.0 * PI).sqrt()).abs() < 1e-15);
    // And a large constant must not hide the rest.
    let mut raised = rows[0].clone();
    raised.as_mut_slice()[0] = 1e9;
    assert!(decoder.mode(&raised).place.distance_km(batch[0][0].place) < 1e-6);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    /// Turning the Earth about its axis turns the peaks with it.
    #[test]
    fn decoding_is_equivariant_under_rotation(seed in 0_u64..1000, turn in -180.0..180.0_f64) {
        let coefficients = noise(10, seed);
        let mut turned = coefficients.clone();
        for l in 0_usize..=10 {
            for m in 1..=l {
                let (sin, cos) = (m as f64 * turn.to_radians()).sin_cos();
                let centre = l * l + l;
                let (c, s) = (coefficients.as_slice()[centre + m], coefficients.as_slice()[centre - m]);
                turned.as_mut_slice()[centre + m] = c * cos - s * sin;
                turned.as_mut_slice()[centre - m] = s * cos + c * sin;
            }
        }
        let decoder = Decoder::new(10);
        let (before, after) = (decoder.mode(&coefficients), decoder.mode(&turned));
        let place = before.place;
        let expected = LatLon::new(place.latitude(), place.longitude() + turn).unwrap();
        prop_assert!(after.place.distance_km(expected) < 1e-3);
        prop_assert!((after.value - before.value).abs() < 1e-10);
    }
}
