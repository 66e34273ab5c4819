//! Agreement with independent packages: numbers made by `parity/sphere/generate.py` with
//! scipy, ducc0 and mpmath. Errors of harmonics are relative to √((2l+1)/4π).

use std::f64::consts::PI;

use locdiff_sphere::{Basis, Coefficients, Grid, LatLon, Transform};
use serde_json::Value;

fn parity(file: &str) -> Value {
    let path = format!("{}/../../parity/sphere/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn cases(file: &str) -> Vec<Value> {
    let cases = parity(file)["cases"].as_array().expect("cases").clone();
    assert!(cases.len() >= 8, "{file} has only {} cases", cases.len());
    cases
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("an array").iter().map(number).collect()
}

fn indices(value: &Value) -> Vec<usize> {
    numbers(value).iter().map(|index| *index as usize).collect()
}

fn count(value: &Value) -> usize {
    number(value) as usize
}

fn place(case: &Value) -> LatLon {
    LatLon::new(number(&case["latitude"]), number(&case["longitude"])).unwrap()
}

/// √((2l+1)/4π): the root mean square of a harmonic's degree at any place.
fn scale(index: usize) -> f64 {
    ((2 * index.isqrt() + 1) as f64 / (4.0 * PI)).sqrt()
}

fn check_basis(file: &str, tolerance: impl Fn(usize) -> f64) {
    for case in cases(file) {
        let max_degree = count(&case["max_degree"]);
        let harmonics = Basis::new(max_degree).encode(place(&case));
        let expected = numbers(&case["values"]);
        assert!(expected.len() >= 100 && expected.len() == indices(&case["indices"]).len());
        for (index, expected) in indices(&case["indices"]).into_iter().zip(expected) {
            let error = (harmonics.as_slice()[index] - expected).abs() / scale(index);
            assert!(
                error < tolerance(max_degree),
                "{file}, max degree {max_degree}, {}: index {index} is off by {error:e}",
                place(&case)
            );
        }
    }
}

#[test]
fn basis_agrees_with_scipy() {
    // scipy itself is off by up to 7e-14 near the poles (parity/README.md).
    check_basis("basis_scipy.json", |_| 1e-12);
}

#[test]
fn basis_agrees_with_mpmath_to_degree_2000() {
    check_basis("basis_mpmath.json", |max_degree| if max_degree <= 128 { 2e-14 } else { 2e-13 });
}

#[test]
fn derivatives_agree_with_mpmath() {
    for case in cases("derivatives_mpmath.json") {
        let max_degree = count(&case["max_degree"]);
        let jets = Basis::new(max_degree).jets(place(&case));
        for (row, index) in indices(&case["indices"]).into_iter().enumerate() {
            let degree = index.isqrt() as f64;
            let jet = jets[index];
            // Each derivative multiplies a harmonic's size by about √(l(l+1)).
            let step = (degree * (degree + 1.0)).sqrt().max(1.0);
            let fields = [
                ("value", jet.value, 1.0),
                ("east", jet.east, step),
                ("north", jet.north, step),
                ("east_east", jet.east_east, step * step),
                ("east_north", jet.east_north, step * step),
                ("north_north", jet.north_north, step * step),
            ];
            for (field, value, size) in fields {
                let error = (value - number(&case[field][row])).abs() / (size * scale(index));
                assert!(
                    error < 1e-10,
                    "max degree {max_degree}, {}, index {index}: {field} is off by {error:e}",
                    place(&case)
                );
            }
        }
    }
}

/// The coefficients of the parity file: a hash of the index, divided by l + 1.
fn parity_coefficients(max_degree: usize) -> Coefficients {
    let values = (0..(max_degree + 1) * (max_degree + 1)).map(|index| {
        let hash = (index as u64 * 2_654_435_761 + 12_345) % (1 << 32);
        (hash as f64 / 2.0_f64.powi(31) - 1.0) / (index.isqrt() + 1) as f64
    });
    Coefficients::from_vec(values.collect()).unwrap()
}

#[test]
fn transforms_agree_with_ducc0() {
    for case in cases("transform_ducc0.json") {
        let max_degree = count(&case["max_degree"]);
        let (rings, longitudes) = (count(&case["rings"]), count(&case["longitudes"]));
        let coefficients = parity_coefficients(max_degree);
        let transform = Transform::<f64>::new(Grid::new(rings, longitudes), max_degree);
        let values = transform.synthesize(&coefficients);
        let (east, north) = transform.synthesize_gradient(&coefficients);
        let gradient = number(&case["max_gradient"]);
        let fields = [
            ("value", values.clone(), number(&case["max_abs"])),
            ("east", east, gradient),
            ("north", north, gradient),
        ];
        for (row, ring) in indices(&case["ring_indices"]).into_iter().enumerate() {
            let grid = transform.grid();
            assert!(
                (grid.colatitude(ring).cos() - number(&case["ring_cosines"][row])).abs() < 1e-15
            );
            let weight = grid.weight(ring) * longitudes as f64 / (2.0 * PI);
            assert!((weight / number(&case["ring_weights"][row]) - 1.0).abs() < 1e-12);
        }
        for (field, computed, size) in fields {
            let points = indices(&case["ring"]).into_iter().zip(indices(&case["longitude"]));
            for ((ring, longitude), expected) in points.zip(numbers(&case[field])) {
                let error = (computed[ring * longitudes + longitude] - expected).abs() / size;
                assert!(error < 1e-11, "degree {max_degree}, {field}: off by {error:e}");
            }
        }
        let back = transform.analyze(&values);
        for (a, b) in coefficients.as_slice().iter().zip(back.as_slice()) {
            assert!((a - b).abs() < 1e-11, "analysis at degree {max_degree}: {a} became {b}");
        }
    }
}

#[test]
fn gauss_legendre_nodes_agree_with_mpmath() {
    for case in cases("gauss_legendre_mpmath.json") {
        let n = count(&case["n"]);
        let grid = Grid::new(n, 1);
        for (row, ring) in indices(&case["indices"]).into_iter().enumerate() {
            let colatitude = number(&case["colatitudes"][row]);
            let error = (grid.colatitude(ring) - colatitude).abs() / colatitude;
            assert!(error < 1e-15 * 3.0, "n = {n}, node {ring}: off by {error:e} of itself");
            let weight = number(&case["weights"][row]) * 2.0 * PI;
            let error = (grid.weight(ring) - weight).abs() / weight;
            assert!(error < 1e-12, "n = {n}, weight {ring}: off by {error:e} of itself");
        }
    }
}

fn pair(value: &Value) -> LatLon {
    LatLon::new(number(&value[0]), number(&value[1])).unwrap()
}

#[test]
fn great_circles_agree_with_mpmath() {
    let file = parity("geodesy.json");
    for case in file["cases"].as_array().unwrap() {
        let (start, end) = (pair(&case["start"]), pair(&case["end"]));
        let distance_km = number(&case["distance_km"]);
        let error = (start.distance_km(end) - distance_km).abs();
        assert!(error < 1e-11 + 1e-15 * distance_km, "{case}: distance is off by {error:e} km");
        if let Some(bearing) = case["bearing"].as_f64() {
            // A bearing is as good as the sideways offset that it stands for.
            let turn = (start.bearing_to(end) - bearing + 540.0).rem_euclid(360.0) - 180.0;
            let offset = turn.to_radians() * (distance_km / 6371.0088).sin();
            assert!(offset.abs() < 1e-14, "{case}: bearing is off by {turn:e} degrees");
        }
    }
    for case in file["destinations"].as_array().unwrap() {
        let (bearing, distance_km) = (number(&case["bearing"]), number(&case["distance_km"]));
        let end = pair(&case["start"]).destination(bearing, distance_km);
        let error = end.distance_km(pair(&case["end"]));
        assert!(error < 2e-11, "{case}: arrived {error:e} km away, at {end}");
    }
}
