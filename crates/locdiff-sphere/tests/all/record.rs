//! Densities that were written and read again, and records that are refused.

use locdiff_sphere::{
    Area, Coefficients, CubeCell, Density, DensityRecord, InvalidRecord, Kernel, LatLon,
    PointMasses, RecordLimits, coefficient_count, uniform_place,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

fn place(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

/// Through text, as files and answers carry it.
fn written_and_read(density: &Density) -> Density {
    let text = serde_json::to_string(&DensityRecord::of(density)).unwrap();
    let record: DensityRecord = serde_json::from_str(&text).unwrap();
    record.density().unwrap()
}

/// The largest difference of log-densities at 1,000 places of the Earth and 200 drawn from the density.
fn difference(a: &Density, b: &Density, rng: &mut ChaCha8Rng) -> f64 {
    let mut places: Vec<LatLon> = (0..1000).map(|_| uniform_place(rng)).collect();
    places.extend(a.survey().sample(200, rng));
    places.extend([LatLon::NORTH_POLE, LatLon::SOUTH_POLE, place(0.0, 180.0)]);
    let off = |there: &LatLon| {
        let (a, b) = (a.log_density(*there), b.log_density(*there));
        if a == b { 0.0 } else { (a - b).abs() }
    };
    places.iter().map(off).fold(0.0, f64::max)
}

/// What a network could give: noise, and a few encodings of places.
fn function(max_degree: usize, largest: f64, rng: &mut ChaCha8Rng) -> Coefficients {
    let peaks = [
        Coefficients::of(uniform_place(rng), max_degree),
        Coefficients::of(uniform_place(rng), max_degree),
    ];
    let mut e = Coefficients::zeros(max_degree);
    for (index, e) in e.as_mut_slice().iter_mut().enumerate() {
        let noise = rng.random_range(-1.0..1.0) / (index.isqrt() + 1) as f64;
        *e = noise + peaks[0].as_slice()[index] + 0.9 * peaks[1].as_slice()[index];
    }
    let now = e.as_slice().iter().fold(0.0_f64, |largest, e| largest.max(e.abs()));
    e.as_mut_slice().iter_mut().for_each(|e| *e *= largest / now);
    e
}

fn in_f32(e: &Coefficients) -> Coefficients {
    Coefficients::from_vec(e.as_slice().iter().map(|e| f64::from(*e as f32)).collect()).unwrap()
}

fn gallery(count: usize, kernel_km: f64, rng: &mut ChaCha8Rng) -> Density {
    let towns: Vec<LatLon> = (0..40).map(|_| uniform_place(rng)).collect();
    let near = |k: usize| towns[k % 40].destination(k as f64, rng.random_range(0.0..400.0));
    let places: Vec<LatLon> = (0..count).map(near).collect();
    let logits: Vec<f64> = (0..count).map(|_| rng.random_range(-45.0..0.0)).collect();
    PointMasses::from_logits(places, &logits).unwrap().spread(Kernel::new(kernel_km).unwrap())
}

fn classes(rng: &mut ChaCha8Rng) -> Density {
    let cells: Vec<CubeCell> = CubeCell::faces()
        .into_iter()
        .flat_map(CubeCell::children)
        .flat_map(CubeCell::children)
        .collect();
    // Far below what f32 numbers reach.
    let masses: Vec<f64> = cells.iter().map(|_| rng.random_range(-200.0..0.0_f64).exp()).collect();
    Density::cells(cells, &masses).unwrap()
}

#[test]
fn exponentials_come_back_to_a_ten_thousandth_of_a_nat() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (max_degree, largest) in [(0, 1.0), (11, 100.0), (23, 30.0), (47, 10.0), (63, 100.0)] {
        for _ in 0..3 {
            let e = function(max_degree, largest, &mut rng);
            let density = Density::exponential(&e);
            let off = difference(&density, &written_and_read(&density), &mut rng);
            assert!(off < 1e-4, "degree {max_degree}, up to {largest}: {off}");
            // What a network gives is f32 already: then nothing changes at all.
            let density = Density::exponential(&in_f32(&e));
            let off = difference(&density, &written_and_read(&density), &mut rng);
            assert_eq!(off, 0.0, "degree {max_degree}, up to {largest}");
        }
    }
    let encoding = Density::exponential(&Coefficients::of(place(-17.0, 179.9), 63));
    assert!(difference(&encoding, &written_and_read(&encoding), &mut rng) < 5e-5);
}

#[test]
fn linear_densities_come_back_but_for_the_rim_where_they_are_zero() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for max_degree in [1, 23, 47] {
        let e = function(max_degree, 2.0, &mut rng);
        let exact = Density::linear(&in_f32(&e));
        assert_eq!(difference(&exact, &written_and_read(&exact), &mut rng), 0.0);
        let density = Density::linear(&e);
        let back = written_and_read(&density);
        let mut places: Vec<LatLon> = (0..1000).map(|_| uniform_place(&mut rng)).collect();
        // A hundredth of the uniform density and less: next to zero.
        places.retain(|there| density.gain_nats(*there) > -4.6);
        assert!(places.len() > 200);
        for there in places {
            let off = (density.log_density(there) - back.log_density(there)).abs();
            assert!(off < 1e-4, "degree {max_degree}: {off} at {there}");
        }
    }
}

#[test]
fn points_come_back_with_all_that_matter() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for (count, kernel_km) in [(1, 25.0), (3000, 1.0), (3000, 25.0), (500, 2000.0)] {
        let density = gallery(count, kernel_km, &mut rng);
        let back = written_and_read(&density);
        let off = difference(&density, &back, &mut rng);
        assert!(off < 1e-4, "{count} points, {kernel_km} km: {off}");
        let Density::PointMasses(points) = &density else { panic!("points") };
        for there in points.points().places().iter().take(500) {
            for away in [0.0, 1.0, 3.0, 5.0] {
                let there = there.destination(30.0, away * kernel_km);
                let off = (density.log_density(there) - back.log_density(there)).abs();
                assert!(off < 1e-4, "{count} points, {kernel_km} km: {off} at {there}");
            }
        }
    }
    // What the millionth of a uniform density drowns is left out.
    let places = vec![place(0.0, 0.0), place(0.0, 90.0), place(9.0, 9.0)];
    let points = PointMasses::new(places, &[1e-30, 0.3, 0.7]).unwrap();
    let record = DensityRecord::of(&points.spread(Kernel::default()));
    let DensityRecord::Points { latitudes, masses, .. } = record else { panic!("points") };
    assert_eq!((latitudes, masses), (vec![9.0, 0.0], vec![0.7, 0.3]));
}

#[test]
fn all_other_kinds_come_back() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let exponential = Density::exponential(&function(15, 5.0, &mut rng));
    let cells = classes(&mut rng);
    let points = gallery(50, 300.0, &mut rng);
    let linear = Density::linear(&Coefficients::of(place(5.0, 5.0), 6).smoothed(1500.0));
    let mixture =
        Density::mixture(vec![(0.1, exponential.clone()), (0.2, points.clone()), (0.7, linear)])
            .unwrap();
    let product =
        Density::product(vec![(1.0, exponential.clone()), (0.3, mixture.clone())]).unwrap();
    let pooled = Density::mixture(vec![(0.5, product.clone()), (0.5, cells.clone())]).unwrap();
    for density in [&cells, &mixture, &product, &pooled] {
        let off = difference(density, &written_and_read(density), &mut rng);
        assert!(off < 1e-4, "{density}: {off}");
    }
    let Density::Cells(classes) = written_and_read(&cells) else { panic!("cells") };
    assert_eq!(classes.cells().len(), 96);
    // Of a restriction, what was restricted.
    let area = Area::circle(place(0.0, 0.0), 3000.0).unwrap();
    let restricted = exponential.restricted_to(area).unwrap();
    assert_eq!(DensityRecord::of(&restricted), DensityRecord::of(&exponential));
}

/// The examples of `docs/density-record.md`.
#[test]
fn records_look_as_they_are_described() {
    let document = include_str!("../../../../docs/density-record.md");
    let mut kinds = Vec::new();
    for block in document.split("```json\n").skip(1) {
        let text = block.split("```").next().unwrap();
        let record: DensityRecord = serde_json::from_str(text).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        kinds.push(value["kind"].as_str().unwrap().to_owned());
        assert_eq!(serde_json::to_value(&record).unwrap(), in_f32_json(value));
        let density = record.density().unwrap();
        // Masses and weights of the examples sum to one, so that they come back.
        assert_eq!(DensityRecord::of(&density), record);
    }
    let known = ["exponential", "linear", "points", "cells", "mixture", "product"];
    assert_eq!(kinds, known);
}

/// Numbers that numpy and scipy give for the words of `docs/density-record.md`.
#[test]
fn records_mean_what_the_document_says() {
    let parity = include_str!("../../../../parity/density-record/records.json");
    let parity: Value = serde_json::from_str(parity).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let places: Vec<LatLon> = list(&parity["latitudes"])
        .iter()
        .zip(list(&parity["longitudes"]))
        .map(|(latitude, longitude)| place(latitude.as_f64().unwrap(), longitude.as_f64().unwrap()))
        .collect();
    for case in list(&parity["cases"]) {
        let kind = case["record"]["kind"].as_str().unwrap().to_owned();
        let record: DensityRecord = serde_json::from_value(case["record"].clone()).unwrap();
        let density = record.density().unwrap();
        for (there, expected) in places.iter().zip(list(&case["log_densities"])) {
            let (found, expected) = (density.log_density(*there), expected.as_f64());
            let Some(expected) = expected else {
                assert_eq!(found, f64::NEG_INFINITY, "{kind} at {there}");
                continue;
            };
            let tolerance =
                if kind == "linear" { 1e-3 } else { 1e-5 } * (1.0 + (-expected).max(0.0));
            assert!(
                (found - expected).abs() < tolerance,
                "{kind} at {there}: {found}, not {expected}"
            );
        }
    }
}

/// Coefficients as `serde_json::Value` has those of f32.
fn in_f32_json(mut value: Value) -> Value {
    if let Some(numbers) = value.get_mut("coefficients").and_then(Value::as_array_mut) {
        numbers.iter_mut().for_each(|number| *number = json!(number.as_f64().unwrap() as f32));
    }
    for key in ["parts", "factors"] {
        for part in value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            part["density"] = in_f32_json(part["density"].take());
        }
    }
    value
}

proptest! {
    #[test]
    fn coefficients_are_written_so_that_they_read_back(bits in proptest::collection::vec(0..u32::MAX, 64)) {
        let numbers: Vec<f32> =
            bits.into_iter().map(f32::from_bits).filter(|number| number.is_finite()).collect();
        let record = DensityRecord::Linear { max_degree: 7, coefficients: numbers };
        let text = serde_json::to_string(&record).unwrap();
        prop_assert_eq!(serde_json::from_str::<DensityRecord>(&text).unwrap(), record);
    }
}

fn refusal(record: &Value) -> String {
    match serde_json::from_value::<DensityRecord>(record.clone()) {
        Ok(record) => record.density().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn refusals_name_both_sides() {
    let flat = json!({ "kind": "linear", "max_degree": 0, "coefficients": [0.3] });
    let points = |latitude: f64, kernel_km: f64, masses: &[f64]| json!({ "kind": "points", "kernel_km": kernel_km, "latitudes": [latitude], "longitudes": [0.0], "masses": masses });
    let nested = |depth: usize| {
        (0..depth).fold(
            flat.clone(),
            |inner, _| json!({ "kind": "mixture", "parts": [{ "weight": 1.0, "density": inner }] }),
        )
    };
    let product = |exponent: f64| json!({ "kind": "product", "factors": [{ "exponent": exponent, "density": flat }] });
    let parts = vec![json!({ "weight": 1.0, "density": flat }); 300];
    let cells = |cells: &[&str], masses: &[f64]| json!({ "kind": "cells", "cells": cells, "masses": masses });
    for (record, words) in [
        (
            json!({ "kind": "exponential", "max_degree": 2, "coefficients": [0.0, 0.0, 0.0, 0.0] }),
            "max_degree 2 needs 9 coefficients, but there are 4",
        ),
        (
            json!({ "kind": "linear", "max_degree": 9999, "coefficients": [] }),
            "max_degree is 9999: it may be 127 at most",
        ),
        (
            json!({ "kind": "exponential", "max_degree": 0, "coefficients": [1e300] }),
            "coefficient 0 is inf: it must be between -1e4 and 1e4",
        ),
        (
            json!({ "kind": "exponential", "max_degree": 0, "coefficients": [-2e4] }),
            "coefficient 0 is -2e4",
        ),
        (
            json!({ "kind": "points", "kernel_km": 25.0, "latitudes": [1.0, 2.0], "longitudes": [0.0], "masses": [1.0] }),
            "2 latitudes, 1 longitudes and 1 masses",
        ),
        (points(91.0, 25.0, &[1.0]), "latitude 91"),
        (points(1.0, 0.1, &[1.0]), "kernel_km is 0.1: it must be between 1 and 5000"),
        (points(1.0, 25.0, &[-1.0]), "weight 0 is -1"),
        (points(1.0, 25.0, &[0.0]), "not all zero"),
        (cells(&["0", "01"], &[1.0, 1.0]), "cells 0 and 01 overlap"),
        (cells(&["0", "7"], &[1.0, 1.0]), "`7` is not a cell"),
        (cells(&["0", "1"], &[1.0]), "2 cells, but 1 weights"),
        (cells(&[], &[]), "no cells"),
        (nested(5), "more than 4 deep"),
        (
            json!({ "kind": "mixture", "parts": parts }),
            "there are 257 parts: there may be 256 at most",
        ),
        (json!({ "kind": "mixture", "parts": [] }), "no parts"),
        (product(1e3), "exponent 1000 of a product: it must be between 0 and 100"),
        (product(-1.0), "exponent -1"),
        (json!({ "kind": "gaussian" }), "no kind `gaussian`: use exponential, linear"),
        (json!({ "kind": "\u{1b}".repeat(1 << 20) }), "\\u{1b}…`: use"),
        (json!({ "kind": "cells", "cells": ["0"] }), "missing field `masses`"),
        (
            json!({ "kind": "cells", "cells": ["0"], "masses": [1.0], "parts": [] }),
            "unknown field `parts`",
        ),
        (json!({ "kind": "cells", "places": [] }), "unknown field `places`"),
    ] {
        let said = refusal(&record);
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(
        serde_json::from_str::<DensityRecord>(&nested(4).to_string()).unwrap().density().is_ok()
    );
    // The reader itself stops at depths that no stack can hold.
    let deep = r#"{"kind":"mixture","parts":[{"weight":1,"density":"#.repeat(100_000);
    assert!(serde_json::from_str::<DensityRecord>(&deep).is_err());
}

#[test]
fn totals_are_limited_not_only_parts() {
    let mut limits = RecordLimits::default();
    (limits.max_points, limits.max_cells, limits.max_coefficients) = (3, 3, 10);
    let two_points = || DensityRecord::Points {
        kernel_km: 25.0,
        latitudes: vec![0.0, 1.0],
        longitudes: vec![0.0, 1.0],
        masses: vec![1.0, 1.0],
    };
    let two_cells =
        || DensityRecord::Cells { cells: CubeCell::faces()[..2].to_vec(), masses: vec![1.0, 1.0] };
    let nine = || DensityRecord::Linear { max_degree: 2, coefficients: vec![0.0; 9] };
    let records: [&dyn Fn() -> DensityRecord; 3] = [&two_points, &two_cells, &nine];
    for (record, what) in records.into_iter().zip(["points", "cells", "coefficients"]) {
        assert!(record().density_within(&limits).is_ok(), "{what}");
        let part = || serde_json::to_value(record()).unwrap();
        let pair = json!({ "kind": "product", "factors": [
            { "exponent": 1.0, "density": part() }, { "exponent": 1.0, "density": part() },
        ] });
        let pair: DensityRecord = serde_json::from_value(pair).unwrap();
        let error = pair.density_within(&limits).unwrap_err();
        assert!(matches!(error, InvalidRecord::TooMany { what: w, .. } if w == what), "{error}");
    }
    let DensityRecord::Points { masses, .. } = two_points() else { panic!("points") };
    limits.max_point_km = 24.9 * masses.len() as f64;
    let error = two_points().density_within(&limits).unwrap_err();
    assert_eq!(error, InvalidRecord::PointKm { found: 50.0, limit: 49.8 });
}

/// The largest numbers within the limits: no panic, and an end.
#[test]
fn extremes_within_the_limits_are_densities() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for max_degree in [3, 40] {
        let numbers = |rng: &mut ChaCha8Rng| -> Vec<f32> {
            let count = coefficient_count(max_degree);
            (0..count).map(|_| if rng.random_bool(0.5) { 1e4 } else { -1e4 }).collect()
        };
        let linear = DensityRecord::Linear { max_degree, coefficients: numbers(&mut rng) };
        let exponential =
            DensityRecord::Exponential { max_degree, coefficients: numbers(&mut rng) };
        let record = json!({ "kind": "product", "factors": [{ "exponent": 100.0, "density": exponential }] });
        let record: DensityRecord = serde_json::from_value(record).unwrap();
        for record in [linear, exponential, record] {
            let density = record.density().unwrap();
            assert!(!density.log_density(place(12.0, 34.0)).is_nan());
        }
    }
}
