//! Laws that hold whatever the numbers: norms, rotations, round trips.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

use std::f64::consts::PI;

use locdiff_sphere::{
    Anchors, Basis, Coefficients, Decoder, EARTH_RADIUS_KM, Grid, LatLon, Transform, UnitVector,
    reference, uniform_place,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Anywhere, with the poles, the antimeridian and their neighbourhoods over-represented.
fn any_place() -> impl Strategy<Value = LatLon> {
    let latitude = prop_oneof![
        4 => -90.0..=90.0,
        1 => Just(90.0),
        1 => Just(-90.0),
        1 => (0.0..8.0).prop_map(|digits: f64| 90.0 - 10.0_f64.powf(-digits)),
        1 => (0.0..8.0).prop_map(|digits: f64| -90.0 + 10.0_f64.powf(-digits)),
    ];
    let longitude = prop_oneof![
        4 => -180.0..180.0,
        1 => Just(-180.0),
        1 => (0.0..8.0).prop_map(|digits: f64| 180.0 - 10.0_f64.powf(-digits)),
    ];
    (latitude, longitude).prop_map(|(lat, lon)| LatLon::new(lat, lon).unwrap())
}

/// White noise: every coefficient a standard normal number.
fn noise(max_degree: usize, seed: u64) -> Coefficients {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut coefficients = Coefficients::zeros(max_degree);
    for c in coefficients.as_mut_slice() {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        *c = (-2.0 * u.ln()).sqrt() * (2.0 * PI * v).cos();
    }
    coefficients
}

fn norm_error(max_degree: usize, place: LatLon) -> f64 {
    let harmonics = Basis::new(max_degree).encode(place);
    let square: f64 = harmonics.as_slice().iter().map(|y| y * y).sum();
    (square * 4.0 * PI / ((max_degree + 1) * (max_degree + 1)) as f64 - 1.0).abs()
}

#[test]
fn norm_is_exact_at_degree_2000() {
    let near_pole = 90.0 - 1e-6_f64.to_degrees();
    for (latitude, longitude) in [
        (90.0, 12.0),
        (-90.0, 0.0),
        (near_pole, 77.0),
        (-near_pole, -180.0),
        (89.4, 1.0),
        (0.0, 0.0),
        (21.5, -57.0),
        (-54.0, 179.9),
    ] {
        let error = norm_error(2000, LatLon::new(latitude, longitude).unwrap());
        assert!(error < 1e-12, "({latitude}, {longitude}): {error:e}");
    }
}

#[test]
fn fast_harmonics_agree_with_the_readable_reference() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let basis = Basis::new(30);
    for _ in 0..20 {
        let place = uniform_place(&mut rng);
        let harmonics = basis.encode(place);
        for degree in 0..=30 {
            for order in -(degree as isize)..=degree as isize {
                let expected = reference::harmonic(degree, order, place);
                assert!((harmonics.get(degree, order) - expected).abs() < 1e-13);
            }
        }
    }
}

#[test]
fn the_papers_formula_is_right_for_low_degrees_and_breaks_below_47() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let places: Vec<LatLon> = (0..200).map(|_| uniform_place(&mut rng)).collect();
    let worst = |degree: usize| {
        let orders = -(degree as isize)..=degree as isize;
        let errors = orders.flat_map(|order| {
            places.iter().map(move |&place| {
                let paper = reference::harmonic_by_paper_formula(degree, order, place);
                (paper - reference::harmonic(degree, order, place)).abs()
            })
        });
        errors.fold(0.0, f64::max)
    };
    assert!(worst(5) < 1e-12);
    assert!(worst(15) < 1e-8);
    assert!(worst(39) > 1e-3);
    assert!(worst(47) > 0.1, "{}", worst(47));
}

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

/// The bound of `experiments/sphere-drift`, on fewer places.
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

/// Σ_m |∇Y_lm|² = l(l+1)(2l+1)/4π, and the Hessian's trace is −l(l+1)·Y.
#[test]
fn derivatives_hold_at_degree_2000() {
    let basis = Basis::new(2000);
    for latitude in [90.0, -90.0 + 1e-6_f64.to_degrees(), 31.0, 0.0] {
        let jets = basis.jets(LatLon::new(latitude, 40.0).unwrap());
        for l in [1_usize, 10, 500, 1999, 2000] {
            let row = &jets[l * l..(l + 1) * (l + 1)];
            let squares: f64 = row.iter().map(|jet| jet.east.powi(2) + jet.north.powi(2)).sum();
            let casimir = (l * (l + 1)) as f64;
            let expected = casimir * (2 * l + 1) as f64 / (4.0 * PI);
            assert!((squares / expected - 1.0).abs() < 1e-10, "{latitude}, {l}: {squares}");
            // Σ_m |Hessian|² = l²(l+1)²(2l+1)/4π − l(l+1)(2l+1)/4π, by Bochner's formula.
            let squares: f64 = row
                .iter()
                .map(|jet| {
                    jet.east_east.powi(2) + 2.0 * jet.east_north.powi(2) + jet.north_north.powi(2)
                })
                .sum();
            let expected = expected * (casimir - 1.0);
            assert!((squares / expected - 1.0).abs() < 1e-10, "{latitude}, {l}: {squares}");
        }
    }
}

#[test]
fn odd_longitudes_and_batches_of_five_are_no_exception() {
    // 501 × 1003 points at degree 501 are beyond the tables; 40 rings are not.
    for (max_degree, rings, longitudes) in [(20, 41, 41), (20, 40, 55), (501, 1002, 1003)] {
        let transform = Transform::<f64>::new(Grid::new(rings, longitudes), max_degree);
        let functions: Vec<Coefficients> = (0..5).map(|seed| noise(max_degree, seed)).collect();
        let matrix: Vec<f64> = functions.iter().flat_map(|f| f.as_slice().to_vec()).collect();
        let mut values = vec![0.0; 5 * transform.grid().len()];
        transform.synthesize_into(&matrix, &mut values);
        let single = transform.synthesize(&functions[4]);
        let last = &values[4 * transform.grid().len()..];
        assert!(single.iter().zip(last).all(|(a, b)| (a - b).abs() < 1e-10));
        let mut back = vec![0.0; matrix.len()];
        transform.analyze_into(&values, &mut back);
        assert!(matrix.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-10));
    }
}

#[test]
fn what_is_not_a_number_is_forgotten_afterwards() {
    let transform = Transform::<f64>::new(Grid::new(24, 48), 20);
    let coefficients = noise(20, 1);
    let values = transform.synthesize(&coefficients);
    assert!(transform.analyze(&vec![f64::NAN; values.len()]).get(3, 2).is_nan());
    assert_eq!(transform.synthesize(&coefficients), values);
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

#[test]
fn tables_and_recurrence_give_the_same_transform() {
    // Degree 500 on 1002 rings is beyond what tables keep; degree 120 within.
    for (max_degree, rings) in [(120, 121), (500, 1002)] {
        let transform = Transform::<f64>::new(Grid::new(rings, 2 * max_degree + 2), max_degree);
        let coefficients = noise(max_degree, 9);
        let values = transform.synthesize(&coefficients);
        let basis = Basis::new(max_degree);
        let grid = transform.grid();
        for (ring, longitude) in [(0, 3), (rings / 3, 0), (rings / 2, 41), (rings - 1, 99)] {
            let expected = coefficients.value_at(&basis, grid.place(ring, longitude));
            let error = (values[ring * grid.longitudes() + longitude] - expected).abs();
            assert!(error < 1e-10, "degree {max_degree}: {error:e}");
        }
        let back = transform.analyze(&values);
        let errors = coefficients.as_slice().iter().zip(back.as_slice());
        assert!(errors.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-11);
    }
}

#[test]
fn single_precision_follows_double() {
    let basis = Basis::new(47);
    let places = Anchors::fibonacci(50);
    let mut narrow = vec![0.0_f32; 50 * basis.len()];
    let mut wide = vec![0.0_f64; 50 * basis.len()];
    basis.encode_into(places.places(), &mut narrow);
    basis.encode_into(places.places(), &mut wide);
    assert!(narrow.iter().zip(&wide).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6));
    let grid = Grid::new(96, 192);
    let mut values = vec![0.0_f32; 7 * grid.len()];
    let transform = Transform::<f32>::new(grid.clone(), 47);
    transform.synthesize_into(&narrow[..7 * basis.len()], &mut values);
    let exact = Transform::<f64>::new(grid, 47);
    for (row, values) in wide.chunks_exact(basis.len()).zip(values.chunks_exact(96 * 192)) {
        let expected = exact.synthesize(&Coefficients::from_vec(row.to_vec()).unwrap());
        let errors = values.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs());
        assert!(errors.fold(0.0, f64::max) < 2e-4, "of a peak of 183");
    }
    let mut back = vec![0.0_f32; 7 * basis.len()];
    transform.analyze_into(&values, &mut back);
    assert!(back.iter().zip(&narrow).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn order_matrices_synthesize() {
    let (max_degree, rings) = (9, 11);
    let grid = Grid::new(rings, 20);
    let matrices = grid.order_matrices(max_degree);
    let basis = Basis::new(max_degree);
    for ring in 0..rings {
        // Longitude 0: cosines are 1 and sines 0.
        let harmonics = basis.encode(grid.place(ring, 0));
        for order in 0..=max_degree {
            for degree in order..=max_degree {
                let entry = matrices[order][(degree - order) * rings + ring];
                assert!((entry - harmonics.get(degree, order as isize)).abs() < 1e-14);
            }
        }
    }
}

#[test]
fn anchors_are_even() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for anchors in [Anchors::fibonacci(20_000), Anchors::uniform(200_000, &mut rng)] {
        let mut mean = [0.0; 9];
        let basis = Basis::new(2);
        for place in anchors.places() {
            for (sum, y) in mean.iter_mut().zip(basis.encode(*place).as_slice()) {
                *sum += y / anchors.len() as f64;
            }
        }
        // The mean of every harmonic but the constant vanishes over the sphere.
        assert!(mean[1..].iter().all(|mean| mean.abs() < 0.005), "{mean:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn norm_is_the_same_everywhere(place in any_place()) {
        prop_assert!(norm_error(47, place) < 1e-13);
        prop_assert!(norm_error(128, place) < 1e-12);
    }

    /// Y(p)·Y(q) depends on the angle between p and q only: it is Σ (2l+1)/4π·P_l(cos).
    #[test]
    fn encodings_are_equivariant_under_rotation(a in any_place(), b in any_place()) {
        let basis = Basis::new(47);
        let (x, y) = (basis.encode(a), basis.encode(b));
        let product: f64 = x.as_slice().iter().zip(y.as_slice()).map(|(x, y)| x * y).sum();
        // The same angle, measured from the pole.
        let turned = LatLon::new(90.0 - a.angle_to(b).to_degrees(), 0.0).unwrap();
        let (pole, turned) = (basis.encode(LatLon::NORTH_POLE), basis.encode(turned));
        let expected: f64 = pole.as_slice().iter().zip(turned.as_slice()).map(|(x, y)| x * y).sum();
        prop_assert!((product - expected).abs() < 1e-10, "{product} != {expected}");
    }

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

    #[test]
    fn synthesis_and_analysis_are_inverse(max_degree in 0_usize..40, seed in 0_u64..1000) {
        let transform = Transform::<f64>::new(Grid::exact(max_degree), max_degree);
        let coefficients = noise(max_degree, seed);
        let values = transform.synthesize(&coefficients);
        let back = transform.analyze(&values);
        for (a, b) in coefficients.as_slice().iter().zip(back.as_slice()) {
            prop_assert!((a - b).abs() < 1e-11);
        }
        let integral = transform.grid().integrate(&values);
        prop_assert!((integral - coefficients.get(0, 0) * (4.0 * PI).sqrt()).abs() < 1e-11);
    }

    #[test]
    fn gradient_on_the_grid_is_the_jets(max_degree in 1_usize..20, seed in 0_u64..1000) {
        let coefficients = noise(max_degree, seed);
        // As few longitudes as the values need, odd; the gradient needs no more.
        let grid = Grid::new(2 * max_degree + 3, 2 * max_degree + 1);
        let transform = Transform::<f64>::new(grid.clone(), max_degree);
        let (east, north) = transform.synthesize_gradient(&coefficients);
        let basis = Basis::new(max_degree);
        let narrow = Transform::<f32>::new(grid.clone(), max_degree);
        let function: Vec<f32> = coefficients.as_slice().iter().map(|c| *c as f32).collect();
        let (mut east_f32, mut north_f32) = (vec![0.0; grid.len()], vec![0.0; grid.len()]);
        narrow.synthesize_gradient_into(&function, &mut east_f32, &mut north_f32);
        let size = east.iter().chain(&north).fold(0.0_f64, |size, value| size.max(value.abs()));
        let pairs = east.iter().zip(&east_f32).chain(north.iter().zip(&north_f32));
        for (wide, narrow) in pairs {
            prop_assert!((wide - f64::from(*narrow)).abs() < 1e-4 * size);
        }
        for ring in [0, max_degree, 2 * max_degree + 2] {
            let jet = coefficients.jet_at(&basis, grid.place(ring, 2));
            let point = ring * grid.longitudes() + 2;
            prop_assert!((jet.east - east[point]).abs() < 1e-9);
            prop_assert!((jet.north - north[point]).abs() < 1e-9);
        }
    }

    /// Jets of a function are the sums of the harmonics' jets, whose gradients satisfy
    /// Σ_m |∇Y_lm|² = l(l+1)(2l+1)/4π at every place.
    #[test]
    fn jets_add_up(place in any_place(), seed in 0_u64..1000) {
        let basis = Basis::new(20);
        let jets = basis.jets(place);
        let coefficients = noise(20, seed);
        let sum = coefficients.jet_at(&basis, place);
        let total = |part: fn(&locdiff_sphere::Jet) -> f64| -> f64 {
            coefficients.as_slice().iter().zip(&jets).map(|(c, jet)| c * part(jet)).sum()
        };
        prop_assert!((total(|jet| jet.value) - sum.value).abs() < 1e-10);
        prop_assert!((total(|jet| jet.east) - sum.east).abs() < 1e-9);
        prop_assert!((total(|jet| jet.north) - sum.north).abs() < 1e-9);
        prop_assert!((total(|jet| jet.east_east) - sum.east_east).abs() < 1e-7);
        prop_assert!((total(|jet| jet.east_north) - sum.east_north).abs() < 1e-7);
        prop_assert!((total(|jet| jet.north_north) - sum.north_north).abs() < 1e-7);
        for l in 0_usize..=20 {
            let row = &jets[l * l..(l + 1) * (l + 1)];
            let squares: f64 = row.iter().map(|jet| jet.east * jet.east + jet.north * jet.north).sum();
            let expected = (l * (l + 1) * (2 * l + 1)) as f64 / (4.0 * PI);
            prop_assert!((squares - expected).abs() < 1e-11 * expected.max(1.0));
        }
    }

    #[test]
    fn great_circles_close(a in any_place(), b in any_place()) {
        let distance_km = a.distance_km(b);
        prop_assert!((distance_km - b.distance_km(a)).abs() < 1e-9);
        prop_assert!(a.destination(a.bearing_to(b), distance_km).distance_km(b) < 1e-6);
        let vectors = UnitVector::from(a).angle_to(UnitVector::from(b));
        prop_assert!((vectors - a.angle_to(b)).abs() < 1e-15 * 10.0);
        prop_assert!(LatLon::from(UnitVector::from(a)).distance_km(a) < 1e-11);
    }
}
