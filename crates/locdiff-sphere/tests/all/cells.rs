//! Piecewise constant densities against sums over their cells, which are exact.

use std::collections::HashMap;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use locdiff_sphere::{
    Area, Coefficients, CubeCell, CubeCover, Density, EARTH_RADIUS_KM, InvalidDensity, LatLon,
    MultiPolygon, UnitVector, uniform_place,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn place(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

/// Cells with masses that sum to one.
struct Classes {
    name: String,
    cells: Vec<CubeCell>,
    masses: Vec<f64>,
}

impl Classes {
    fn new(name: &str, cells: Vec<CubeCell>, masses: Vec<f64>) -> Classes {
        let sum: f64 = masses.iter().sum();
        let masses = masses.iter().map(|mass| mass / sum).collect();
        Classes { name: name.to_owned(), cells, masses }
    }

    fn density(&self) -> Density {
        Density::cells(self.cells.clone(), &self.masses).unwrap()
    }

    /// The area of the smallest region of a level, in km²: the densest cells first.
    fn region_km2(&self, level: f64) -> f64 {
        let areas = self.cells.iter().map(|cell| cell.area());
        let mut rows: Vec<(f64, f64)> = self.masses.iter().copied().zip(areas).collect();
        rows.sort_by(|a, b| (b.0 / b.1).total_cmp(&(a.0 / a.1)));
        let (mut rest, mut area) = (level, 0.0);
        for (mass, of_cell) in rows {
            area += of_cell * (rest / mass).clamp(0.0, 1.0);
            rest -= mass.min(rest);
        }
        area * EARTH_RADIUS_KM * EARTH_RADIUS_KM
    }
}

fn of_level(level: u32) -> Vec<CubeCell> {
    let divided = |cells: Vec<CubeCell>| cells.into_iter().flat_map(CubeCell::children).collect();
    (0..level).fold(CubeCell::faces().to_vec(), |cells, _| divided(cells))
}

/// Places in towns, as training sets have them.
fn towns(count: usize, rng: &mut ChaCha8Rng) -> Vec<LatLon> {
    let towns: Vec<LatLon> = (0..200).map(|_| uniform_place(rng)).collect();
    let near = |k: usize| {
        let away: f64 = rng.random_range(0.0..1.0);
        towns[k * k % 200].destination(rng.random_range(0.0..360.0), 1500.0 * away.powi(3))
    };
    (0..count).map(near).collect()
}

fn examples() -> Vec<Classes> {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let cover = CubeCover::adapted_to(&towns(20_000, &mut rng), 60).cells().to_vec();
    let mut random = |name: &str, cells: &[CubeCell], nats: f64| {
        let masses = cells.iter().map(|_| rng.random_range(-nats..0.0_f64).exp()).collect();
        Classes::new(name, cells.to_vec(), masses)
    };
    let mut examples = vec![
        random("faces", &of_level(0), 2.0),
        random("level 4, nearly equal", &of_level(4), 0.1),
        random("level 4, of all sizes", &of_level(4), 30.0),
        random("towns, nearly equal", &cover, 0.5),
        random("towns, of all sizes", &cover, 12.0),
        Classes::new("level 3, equal", of_level(3), vec![1.0; 384]),
    ];
    // Nine tenths in one small cell and nothing beyond a second one: at poles, on the antimeridian, in the corner
    // of three faces.
    let corner = 1.0_f64.atan2(2.0_f64.sqrt()).to_degrees();
    for there in [place(90.0, 0.0), place(-89.99, 50.0), place(7.0, 180.0), place(corner, 45.0)] {
        let cells = vec![CubeCell::at(there, 7), CubeCell::at(place(-20.0, 20.0), 9)];
        examples.push(Classes::new(&format!("one at {there}"), cells, vec![0.9, 0.1]));
    }
    examples
}

#[test]
fn the_density_is_mass_over_area_exactly() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for classes in examples() {
        let density = classes.density();
        let numbers: HashMap<CubeCell, usize> = classes.cells.iter().copied().zip(0..).collect();
        let middles = classes.cells.iter().map(|cell| cell.centre());
        let random = (0..500).map(|_| uniform_place(&mut rng));
        for there in middles.chain(random).collect::<Vec<_>>() {
            let above = (0..=10).filter_map(|level| numbers.get(&CubeCell::at(there, level)));
            let expected = above.map(|k| (classes.masses[*k] / classes.cells[*k].area()).ln());
            let expected = expected.fold(f64::NEG_INFINITY, f64::max);
            let found = density.log_density(there);
            assert!(found == expected || (found - expected).abs() < 1e-12, "{}", classes.name);
        }
        assert_eq!(density.normaliser_error(), 0.0);
    }
}

#[test]
fn surveys_know_their_error_and_cells_keep_their_masses() {
    for classes in examples() {
        let density = classes.density();
        let survey = density.survey();
        assert!(survey.error() < 2.2e-3, "{}: {}", classes.name, survey.error());
        let numbers: HashMap<CubeCell, usize> = classes.cells.iter().copied().zip(0..).collect();
        let mut found = vec![0.0; classes.cells.len()];
        survey.for_each_mass(|there, mass| {
            let cells = (0..=10).map(|level| CubeCell::at(there, level));
            let number = cells.filter_map(|cell| numbers.get(&cell)).next();
            found[*number.unwrap()] += mass;
        });
        for ((found, mass), cell) in found.iter().zip(&classes.masses).zip(&classes.cells) {
            let error = (found - mass).abs();
            assert!(error < 1e-3, "{}: cell {cell} has {found}, not {mass}", classes.name);
        }
        let entropy: f64 =
            classes.cells.iter().zip(&classes.masses).fold(0.0, |sum, (c, m)| {
                if *m > 0.0 { sum - m * (m / c.area()).ln() } else { sum }
            });
        let off = survey.entropy_nats() - entropy;
        assert!(off.abs() < 0.01, "{}: entropy off by {off}", classes.name);
    }
}

/// A cell's outline in the plane of longitude and latitude, from the words of `docs/density-record.md`.
fn polygon(cell: CubeCell) -> Area {
    let text = cell.to_string();
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(10).unwrap()).collect();
    let (mut i, mut j) = (0, 0);
    for digit in &digits[1..] {
        (i, j) = (2 * i + digit % 2, 2 * j + digit / 2);
    }
    let count = f64::from(1 << (digits.len() - 1));
    let (face, axis) = (digits[0], digits[0] as usize % 3);
    let corner = |along: f64, across: f64| {
        let tangent = |step: f64| (step / count * FRAC_PI_2 - FRAC_PI_4).tan();
        let mut vector = [0.0; 3];
        vector[axis] = if face < 3 { 1.0 } else { -1.0 };
        vector[(axis + 1) % 3] = tangent(f64::from(i) + along);
        vector[(axis + 2) % 3] = tangent(f64::from(j) + across);
        LatLon::from(UnitVector::from_direction(vector).unwrap())
    };
    let sides =
        [[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [1.0, 1.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0]];
    let mut ring: Vec<[f64; 2]> = Vec::new();
    for [u, v, du, dv] in sides {
        for k in 0..40 {
            let way = f64::from(k) / 40.0;
            let there = corner(u + way * du, v + way * dv);
            let mut longitude = there.longitude();
            // On from the last point, also across the antimeridian.
            if let Some([last, _]) = ring.last() {
                longitude += 360.0 * ((last - longitude) / 360.0).round();
            }
            ring.push([longitude, there.latitude()]);
        }
    }
    Area::polygons(MultiPolygon::of_polygon(vec![ring]).unwrap())
}

#[test]
fn the_outline_of_a_cell_holds_its_mass() {
    for classes in examples() {
        let density = classes.density();
        let survey = density.survey();
        // Not those at a pole, where polygons need an edge along it.
        let off_poles = classes.cells.iter().zip(&classes.masses).filter(|(cell, _)| {
            let reach = 1.2 * cell.area().sqrt().to_degrees();
            cell.centre().latitude().abs() + reach < 90.0
        });
        for (cell, mass) in off_poles.step_by(37).take(30) {
            let found = survey.probability_in(&polygon(*cell));
            let off = (found - mass).abs();
            assert!(off < 1e-3 + 0.01 * mass, "{}: {cell} {found}, not {mass}", classes.name);
        }
    }
}

#[test]
fn circles_hold_the_cells_in_them() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for classes in examples() {
        let density = classes.density();
        let survey = density.survey();
        let heaviest = classes.cells[0].centre();
        let divisions = if classes.cells.len() < 10 { 6 } else { 3 };
        for centre in [LatLon::NORTH_POLE, place(10.0, 180.0), uniform_place(&mut rng), heaviest] {
            for radius_km in [50.0, 700.0, 3000.0, 12_000.0] {
                // How much of a cell lies inside, by parts of it.
                let share = |cell: &CubeCell| {
                    let parts = (0..divisions).fold(vec![*cell], |parts, _| {
                        parts.into_iter().flat_map(CubeCell::children).collect()
                    });
                    let inside =
                        parts.iter().filter(|p| p.centre().distance_km(centre) <= radius_km);
                    inside.map(|part| part.area()).sum::<f64>() / cell.area()
                };
                let rows = classes.cells.iter().zip(&classes.masses);
                let expected: f64 = rows.map(|(cell, mass)| mass * share(cell)).sum();
                let found = survey.probability_within(centre, radius_km);
                let off = (found - expected).abs();
                assert!(
                    off < 4e-3,
                    "{}: {radius_km} km around {centre}: {found}, not {expected}",
                    classes.name
                );
            }
        }
    }
}

#[test]
fn regions_are_the_densest_cells() {
    for classes in examples() {
        let density = classes.density();
        let survey = density.survey();
        for level in [0.1, 0.5, 0.9, 0.99] {
            let region = survey.region(level);
            let off = region.area_km2() / classes.region_km2(level) - 1.0;
            assert!(off.abs() < 0.01, "{}, {level}: area off by {off}", classes.name);
            let missing = region.probability() - level;
            assert!(missing.abs() < 5e-4, "{}, {level}: {missing}", classes.name);
            let outline = region.outline().unwrap().area_km2() / region.area_km2() - 1.0;
            assert!(outline.abs() < 0.015, "{}, {level}: outline off by {outline}", classes.name);
            // Whole cells are in or out, but for those at the rim.
            let rim = region.rim_log_density();
            for cell in classes.cells.iter().step_by(7) {
                let above = density.log_density(cell.centre()) - rim;
                if above.abs() > 1e-6 {
                    assert_eq!(region.contains(cell.centre()), above > 0.0, "{}", classes.name);
                }
            }
        }
    }
}

#[test]
fn modes_are_middles_of_cells_with_what_slopes_to_them() {
    for classes in examples().iter().filter(|classes| classes.name.starts_with("one")) {
        let density = classes.density();
        let survey = density.survey();
        let modes = survey.modes().modes;
        assert_eq!(modes.len(), 2, "{}: {modes:?}", classes.name);
        for ((mode, cell), mass) in modes.iter().zip(&classes.cells).zip(&classes.masses) {
            assert!(mode.place.distance_km(cell.centre()) < 1e-6, "{}: {mode:?}", classes.name);
            assert!((mode.mass - mass).abs() < 2e-3, "{}: {mode:?}", classes.name);
            assert!((mode.log_density - (mass / cell.area()).ln()).abs() < 1e-9);
        }
        // A circle of a cell's area around its middle holds most of the cell.
        let radius = survey.radius_km(modes[0].place, 0.7);
        let of_area = (classes.cells[0].area() / PI).sqrt() * EARTH_RADIUS_KM;
        assert!((0.7..1.1).contains(&(radius / of_area)), "{}: {radius}", classes.name);
    }
}

#[test]
fn samples_fall_into_cells_by_mass() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    for classes in examples() {
        let density = classes.density();
        let samples = density.survey().sample(5000, &mut rng);
        let heaviest = (0..classes.cells.len())
            .max_by(|a, b| classes.masses[*a].total_cmp(&classes.masses[*b]));
        let (cell, mass) = (classes.cells[heaviest.unwrap()], classes.masses[heaviest.unwrap()]);
        let hits = samples.iter().filter(|there| CubeCell::at(**there, cell.level()) == cell);
        let share = hits.count() as f64 / 5000.0;
        let sigma = (mass * (1.0 - mass) / 5000.0).sqrt();
        assert!((share - mass).abs() < 4.0 * sigma + 2e-3, "{}: {share}, {mass}", classes.name);
        assert!(samples.iter().all(|there| density.log_density(*there).is_finite()));
    }
}

#[test]
fn restrictions_keep_what_cells_have_there() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let cells = CubeCover::adapted_to(&towns(20_000, &mut rng), 60).cells().to_vec();
    let masses: Vec<f64> = cells.iter().map(|_| rng.random_range(-8.0..0.0_f64).exp()).collect();
    let classes = Classes::new("towns", cells, masses);
    let density = classes.density();
    // A circle within one cell is uniform.
    let widest = classes.cells.iter().max_by(|a, b| a.area().total_cmp(&b.area())).unwrap();
    let spot = density.restricted_to(Area::circle(widest.centre(), 50.0).unwrap()).unwrap();
    let uniform = (EARTH_RADIUS_KM.powi(2) / (PI * 50.0 * 50.0)).ln();
    assert!((spot.log_density(widest.centre()) - uniform).abs() < 5e-3);
    assert!((spot.survey().entropy_nats() - -uniform).abs() < 5e-3);
    // A cell's own outline holds nothing but the cell, however little that is.
    let lightest = classes
        .cells
        .iter()
        .zip(&classes.masses)
        .filter(|(cell, _)| cell.level() > 4 && cell.centre().latitude().abs() < 70.0);
    let (cell, mass) = lightest.min_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    let alone = density.restricted_to(polygon(*cell)).unwrap();
    let Density::Restriction(part) = &alone else { panic!("a restriction") };
    assert!((part.log_probability() - mass.ln()).abs() < 0.05, "{}", part.log_probability());
}

#[test]
fn mixtures_and_products_are_what_they_are_made_of() {
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    let mut random = |cells: Vec<CubeCell>| {
        let masses: Vec<f64> = cells.iter().map(|_| rng.random_range(0.1..1.0)).collect();
        Classes::new("random", cells, masses)
    };
    // The second has the first's cells, each divided.
    let (coarse, fine) = (random(of_level(2)), random(of_level(3)));
    let parents: Vec<usize> = fine
        .cells
        .iter()
        .map(|cell| coarse.cells.iter().position(|c| Some(*c) == cell.parent()).unwrap())
        .collect();
    let share = |k: usize| {
        coarse.masses[parents[k]] * fine.cells[k].area() / coarse.cells[parents[k]].area()
    };
    let mixed = (0..fine.cells.len()).map(|k| 0.25 * share(k) + 0.75 * fine.masses[k]).collect();
    let mixed = Classes::new("mixed", fine.cells.clone(), mixed);
    let multiplied =
        |k: usize| fine.masses[k] * coarse.masses[parents[k]] / coarse.cells[parents[k]].area();
    let multiplied = Classes::new(
        "multiplied",
        fine.cells.clone(),
        (0..fine.cells.len()).map(multiplied).collect(),
    );
    let parts = |a, b| vec![(a, coarse.density()), (b, fine.density())];
    for (density, expected) in [
        (Density::mixture(parts(0.25, 0.75)).unwrap(), mixed),
        (Density::product(parts(1.0, 1.0)).unwrap(), multiplied),
    ] {
        let exact = expected.density();
        for cell in expected.cells.iter().step_by(5) {
            let off = density.log_density(cell.centre()) - exact.log_density(cell.centre());
            assert!(off.abs() < 2.5e-3, "{}: {off}", expected.name);
        }
        for level in [0.5, 0.9] {
            let off = density.survey().region(level).area_km2() / expected.region_km2(level) - 1.0;
            assert!(off.abs() < 0.01, "{}, {level}: {off}", expected.name);
        }
    }
}

#[test]
fn divergences_between_cells_are_sums() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut random = || {
        let masses = (0..384).map(|_| rng.random_range(0.1..1.0)).collect();
        Classes::new("random", of_level(3), masses)
    };
    let (p, q) = (random(), random());
    let exact: f64 = p.masses.iter().zip(&q.masses).map(|(p, q)| p * (p / q).ln()).sum();
    let found = p.density().survey().divergence_from(&q.density());
    assert!((found - exact).abs() < 5e-3, "{found}, not {exact}");
    let smooth = Density::exponential(&Coefficients::of(place(0.0, 0.0), 3));
    assert!(smooth.survey().divergence_from(&p.density()).is_finite());
    let one_face = Density::cells(CubeCell::faces()[..1].to_vec(), &[1.0]).unwrap();
    assert_eq!(smooth.survey().divergence_from(&one_face), f64::INFINITY);
}

/// What a survey costs is its mesh cells.
#[test]
fn thousands_of_cells_take_tens_of_thousands_of_mesh_cells() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let cells = CubeCover::adapted_to(&towns(60_000, &mut rng), 24).cells().to_vec();
    assert!(cells.len() > 4000, "{}", cells.len());
    for nats in [0.1, 12.0, 30.0] {
        let masses: Vec<f64> =
            cells.iter().map(|_| rng.random_range(-nats..0.0_f64).exp()).collect();
        let classes = Classes::new("thousands", cells.clone(), masses);
        let density = classes.density();
        let survey = density.survey();
        assert!(survey.cells() < 8 * cells.len(), "{nats} nats: {}", survey.cells());
        assert!(survey.error() < 2.2e-3, "{nats} nats: {}", survey.error());
        let off = survey.region(0.5).area_km2() / classes.region_km2(0.5) - 1.0;
        assert!(off.abs() < 0.01, "{nats} nats: {off}");
    }
}

#[test]
fn what_cannot_be_a_density_says_why() {
    let face = CubeCell::faces()[0];
    let [a, b, ..] = face.children();
    assert_eq!(Density::cells(vec![], &[]).unwrap_err(), InvalidDensity::Empty("cells"));
    let error = Density::cells(vec![a, b], &[1.0]).unwrap_err();
    assert_eq!(error.to_string(), "2 cells, but 1 weights: give one weight for each");
    for pair in [[a, a], [face, a], [a, face]] {
        let error = Density::cells(pair.to_vec(), &[1.0, 1.0]).unwrap_err();
        assert_eq!(error, InvalidDensity::Overlap { first: pair[0], second: pair[1] });
    }
    let zero = Density::cells(vec![a, b], &[0.0, 0.0]).unwrap_err();
    assert!(matches!(zero, InvalidDensity::Weight { index: 0, .. }));
    let half = Density::cells(vec![a, b], &[0.0, 2.0]).unwrap();
    assert_eq!(half.log_density(a.centre()), f64::NEG_INFINITY);
    assert!((half.log_density(b.centre()) + b.area().ln()).abs() < 1e-12);
    assert_eq!(half.to_string(), "piecewise constant density on 2 cells");
}
