//! Flows: the network beside plonk's own, densities in two ways.

pub(crate) mod parity;

use std::f64::consts::PI;
use std::path::{Path, PathBuf};

use locdiff_sphere::{Anchors, CubeCell, Density, LatLon, PullBack, UnitVector};

fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../parity/plonk/small")
}

#[test]
fn the_network_is_that_of_the_package() {
    let parity = parity::compare(&small());
    assert!(parity.velocity < 1e-5, "{parity:?}");
    assert!(parity.gamma < 2e-7, "{parity:?}");
    assert!(parity.trajectory < 1e-4, "{parity:?}");
    assert!(parity.their_likelihood_nat < 1e-3, "{parity:?}");
}

/// Masses by areas, without derivatives, are those of the density by the divergence; both integrate to one.
#[test]
fn cells_hold_what_the_likelihood_says() {
    let (network, expected) = (parity::network(&small()), parity::expected(&small()));
    let embedding = &parity::embeddings(&expected)[0];
    // The flow is steep: cells must be small for a density in their middles to stand for their mass.
    let fine = PullBack { heavy: 0.001, most_points: 6000, ..PullBack::default() };
    let pulled = fine.density(|places| network.pull_back(embedding, places, 48, 1.0));
    assert!((pulled.total - 1.0).abs() < 1e-9, "{}", pulled.total);
    assert!(pulled.folded < 0.01, "{}", pulled.folded);
    let Density::Cells(cells) = &pulled.density else { panic!("{}", pulled.density) };
    let middles: Vec<UnitVector> =
        cells.cells().iter().map(|cell| UnitVector::from(cell.centre())).collect();
    let logs = network.log_density(embedding, &middles, 48, 1.0);
    let areas = cells.cells().iter().map(|cell: &CubeCell| cell.area());
    let likelihoods: Vec<f64> =
        logs.iter().zip(areas).map(|(log, area)| log.exp() * area).collect();
    let integral: f64 = likelihoods.iter().sum();
    assert!((integral - 1.0).abs() < 0.01, "{integral}");
    let difference: f64 = likelihoods.iter().zip(cells.masses()).map(|(a, b)| (a - b).abs()).sum();
    // By the density's variation within cells.
    assert!(difference < 0.08, "{difference}");
}

/// A square of 40 km is so small that its area in the noise is the density, with guidance too.
#[test]
fn the_likelihood_is_the_area_of_small_squares_in_the_noise() {
    let (network, expected) = (parity::network(&small()), parity::expected(&small()));
    let embedding = &parity::embeddings(&expected)[0];
    let places = Anchors::fibonacci(60).places().to_vec();
    let corners = places.iter().flat_map(|place| {
        [0.0, 90.0, 180.0, 270.0].map(|to| UnitVector::from(place.destination(to, 30.0)))
    });
    let corners: Vec<UnitVector> = corners.collect();
    let centers: Vec<UnitVector> = places.iter().map(|place| UnitVector::from(*place)).collect();
    for guidance in [0.0, 1.0, 2.5] {
        let logs = network.log_density(embedding, &centers, 96, guidance);
        let images = network.pull_back(embedding, &corners, 96, guidance);
        let squares = corners.as_chunks::<4>().0.iter().zip(images.as_chunks::<4>().0);
        let mut off: Vec<f64> = squares
            .zip(&logs)
            .map(|((square, image), log)| {
                let ratio = (area(image) / area(square)).ln() - (4.0 * PI).ln();
                (ratio - log).abs()
            })
            .collect();
        off.sort_by(f64::total_cmp);
        // A few lie where the flow tears: there 40 km are not small.
        let (median, nine_tenths) = (off[30], off[54]);
        assert!(median < 0.01 && nine_tenths < 0.1, "guidance {guidance}: {median} {nine_tenths}");
    }
}

/// Of a small quadrilateral, by its diagonals.
fn area(corners: &[UnitVector; 4]) -> f64 {
    let [a, b, c, d] = corners.map(UnitVector::to_array);
    let difference =
        |a: [f64; 3], b: [f64; 3]| -> [f64; 3] { std::array::from_fn(|k| a[k] - b[k]) };
    let ([ux, uy, uz], [vx, vy, vz]) = (difference(c, a), difference(d, b));
    let cross = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
    0.5 * cross.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn samples_come_from_the_density() {
    let (network, expected) = (parity::network(&small()), parity::expected(&small()));
    let embedding = &parity::embeddings(&expected)[1];
    let noise: Vec<UnitVector> =
        Anchors::fibonacci(2000).places().iter().map(|place| UnitVector::from(*place)).collect();
    let places = network.sample(embedding, &noise, 200, 1.0);
    let pulled =
        PullBack::default().density(|places| network.pull_back(embedding, places, 48, 1.0));
    // Shares of the six faces.
    let Density::Cells(cells) = &pulled.density else { panic!("{}", pulled.density) };
    for face in CubeCell::faces() {
        let of_face = |place: LatLon| CubeCell::at(place, 0) == face;
        let sampled = places.iter().filter(|place| of_face(LatLon::from(**place))).count();
        let masses = cells.cells().iter().zip(cells.masses());
        let mass: f64 =
            masses.filter(|(cell, _)| of_face(cell.centre())).map(|(_, mass)| mass).sum();
        let share = sampled as f64 / 2000.0;
        assert!((share - mass).abs() < 0.01, "{face}: {share} {mass}");
    }
    // There and back: Euler's error grows backwards, where the flow spreads.
    let noise: Vec<UnitVector> = noise.into_iter().step_by(5).collect();
    let places = network.sample(embedding, &noise, 400, 1.0);
    let back = network.pull_back(embedding, &places, 200, 1.0);
    let apart = back.iter().zip(&noise).map(|(a, b)| a.angle_to(*b)).fold(0.0, f64::max);
    assert!(apart < 0.1, "{apart}");
}
