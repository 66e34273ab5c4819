//! Between coefficients and grids.

use std::f64::consts::PI;

use locdiff_sphere::{Anchors, Basis, Coefficients, Grid, Transform};
use proptest::prelude::*;

use crate::laws::noise;

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
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
}
