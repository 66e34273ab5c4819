//! Flows: the network beside plonk's own, densities in two ways.

pub(crate) mod parity;

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
    for guidance in [1.0, 2.5] {
        let fine = PullBack { base_level: 4, most_points: 1600, ..PullBack::default() };
        let pulled = fine.density(|places| network.pull_back(embedding, places, 24, guidance));
        assert!((pulled.total - 1.0).abs() < 1e-9, "{}", pulled.total);
        assert!(pulled.folded < 0.01, "{}", pulled.folded);
        let Density::Cells(cells) = &pulled.density else { panic!("{}", pulled.density) };
        let middles: Vec<UnitVector> =
            cells.cells().iter().map(|cell| UnitVector::from(cell.centre())).collect();
        let logs = network.log_density(embedding, &middles, 24, guidance);
        let areas = cells.cells().iter().map(|cell: &CubeCell| cell.area());
        let likelihoods: Vec<f64> =
            logs.iter().zip(areas).map(|(log, area)| log.exp() * area).collect();
        let integral: f64 = likelihoods.iter().sum();
        assert!((integral - 1.0).abs() < 0.01, "{integral}");
        let difference: f64 =
            likelihoods.iter().zip(cells.masses()).map(|(a, b)| (a - b).abs()).sum();
        assert!(difference < 0.02, "guidance {guidance}: {difference}");
    }
}

#[test]
fn samples_come_from_the_density() {
    let (network, expected) = (parity::network(&small()), parity::expected(&small()));
    let embedding = &parity::embeddings(&expected)[1];
    let noise: Vec<UnitVector> =
        Anchors::fibonacci(2000).places().iter().map(|place| UnitVector::from(*place)).collect();
    let places = network.sample(embedding, &noise, 200, 1.0);
    let coarse = PullBack { base_level: 4, heavy: 1.0, ..PullBack::default() };
    let pulled = coarse.density(|places| network.pull_back(embedding, places, 24, 1.0));
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
    // There and back.
    let back = network.pull_back(embedding, &places, 200, 1.0);
    let apart = back.iter().zip(&noise).map(|(a, b)| a.angle_to(*b)).fold(0.0, f64::max);
    assert!(apart < 0.1, "{apart}");
}
