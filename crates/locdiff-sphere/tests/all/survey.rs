//! Regions, modes, samples and decisions against independent computations.

use std::f64::consts::PI;

use locdiff_sphere::{
    Anchors, Area, Coefficients, CubeCover, Density, EARTH_RADIUS_KM, Kernel, LatLon, PointMasses,
    geoscore, uniform_place,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn place(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

fn spread(places: Vec<LatLon>, weights: &[f64], width_km: f64) -> Density {
    PointMasses::new(places, weights).unwrap().spread(Kernel::new(width_km).unwrap())
}

/// Cells of all sizes, around towns and the poles, with masses over several orders.
fn classes(rng: &mut ChaCha8Rng) -> Density {
    let mut towns: Vec<LatLon> = (0..12).map(|_| uniform_place(rng)).collect();
    towns.extend([place(89.9, 0.0), place(-89.0, 40.0), place(12.0, 180.0), place(35.3, 45.0)]);
    let near = |k: usize| towns[k % towns.len()].destination(k as f64 * 77.0, (k % 900) as f64);
    let cover = CubeCover::adapted_to(&(0..3000).map(near).collect::<Vec<_>>(), 40);
    let cells = cover.cells().to_vec();
    let masses: Vec<f64> = cells.iter().map(|_| rng.random_range(-6.0..0.0_f64).exp()).collect();
    Density::cells(cells, &masses).unwrap()
}

/// A few densities at awkward places: pole, antimeridian, several peaks, ringing, borders.
fn densities() -> Vec<(&'static str, Density)> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut noise = Coefficients::zeros(14);
    for (index, e) in noise.as_mut_slice().iter_mut().enumerate() {
        *e = rng.random_range(-4.0..4.0) / (index.isqrt() + 1) as f64;
    }
    let sharp = Density::exponential(&Coefficients::of(place(-16.0, 179.9), 11));
    let polar = Density::exponential(&Coefficients::of(place(90.0, 0.0), 12));
    let points = spread(vec![place(0.0, 0.0), place(1.0, 8.0)], &[2.0, 1.0], 200.0);
    let restricted = Density::exponential(&noise)
        .restricted_to(Area::circle(place(20.0, 175.0), 2500.0).unwrap())
        .unwrap();
    let classes = classes(&mut rng);
    let some_classes = classes.restricted_to(Area::circle(place(80.0, 170.0), 3000.0).unwrap());
    vec![
        ("noise", Density::exponential(&noise)),
        (
            "classes mixed",
            Density::mixture(vec![(1.0, classes.clone()), (1.0, sharp.clone())]).unwrap(),
        ),
        (
            "classes multiplied",
            Density::product(vec![(0.5, classes.clone()), (0.7, Density::exponential(&noise))])
                .unwrap(),
        ),
        ("classes restricted", some_classes.unwrap()),
        ("classes", classes),
        ("sharp at the antimeridian", sharp.clone()),
        ("pole", polar.clone()),
        ("points", points.clone()),
        ("mixture", Density::mixture(vec![(1.0, sharp), (2.0, polar), (1.0, points)]).unwrap()),
        ("linear", Density::linear(&Coefficients::of(place(30.0, -179.0), 9).smoothed(600.0))),
        ("restricted", restricted),
        ("uniform", Density::uniform()),
    ]
}

/// Evenly spread places with what they hold: probability, area in km². No border runs along
/// them, as it may along the rings of a grid.
fn nodes(density: &Density, count: usize) -> Vec<(LatLon, f64, f64)> {
    let steradians = 4.0 * PI / count as f64;
    let km2 = steradians * EARTH_RADIUS_KM * EARTH_RADIUS_KM;
    let places = Anchors::fibonacci(count);
    let nodes = places.places().iter();
    nodes.map(|there| (*there, density.log_density(*there).exp() * steradians, km2)).collect()
}

#[test]
fn regions_hold_what_was_asked_and_their_outlines_too() {
    for (name, density) in densities() {
        let survey = density.survey();
        let nodes = nodes(&density, 200_000);
        for level in [0.4, 0.9, 0.99] {
            let region = survey.region(level);
            assert_eq!(region.level(), level);
            let inside: Vec<_> = nodes.iter().filter(|node| region.contains(node.0)).collect();
            let mass: f64 = inside.iter().map(|node| node.1).sum();
            let km2: f64 = inside.iter().map(|node| node.2).sum();
            // 0.2 points, and what the plain grid errs by itself.
            assert!((mass - level).abs() < 0.004, "{name}, {level}: holds {mass}");
            assert!((region.probability() - level).abs() < 5e-4, "{name}, {level}");
            let difference = (region.area_km2() / km2 - 1.0).abs();
            assert!(difference < 0.02, "{name}, {level}: {} and {km2} km²", region.area_km2());
            let outline = region.outline().unwrap();
            let difference = (outline.area_km2() / region.area_km2() - 1.0).abs();
            assert!(difference < 0.02, "{name}, {level}: outline {} km²", outline.area_km2());
            // Some of the places: in the outline as in the region, but for its rim.
            let checked: Vec<_> = nodes.iter().step_by(31).collect();
            let wrong = checked.iter().filter(|n| outline.contains(n.0) != region.contains(n.0));
            assert!(wrong.count() * 100 < checked.len(), "{name}, {level}");
        }
    }
}

#[test]
fn regions_grow_with_the_level_and_the_uniform_one_has_them_too() {
    for (name, density) in densities() {
        let survey = density.survey();
        let areas: Vec<f64> =
            [0.05, 0.3, 0.6, 0.95].iter().map(|level| survey.region(*level).area_km2()).collect();
        assert!(areas.windows(2).all(|pair| pair[0] < pair[1]), "{name}: {areas:?}");
    }
    // Equal places are taken from south to north.
    let uniform = Density::uniform();
    let half = uniform.survey().region(0.5);
    assert!(half.contains(place(-1.0, 77.0)) && !half.contains(place(1.0, 77.0)));
    assert!(half.has_arbitrary_rim());
    // A peak, or else anywhere.
    let peak = spread(vec![place(31.0, 87.0)], &[1.0], 20.0);
    let doubtful = Density::mixture(vec![(0.6, peak), (0.4, uniform)]).unwrap();
    let rims = [0.5, 0.9].map(|level| doubtful.survey().region(level).has_arbitrary_rim());
    assert_eq!(rims, [false, true]);
}

#[test]
fn the_outcome_of_a_truth_is_the_region_that_just_holds_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    for (name, density) in densities() {
        let survey = density.survey();
        for truth in survey.sample(5, &mut rng) {
            let outcome = survey.outcome(truth);
            assert_eq!(outcome.nll_nats, density.nll_nats(truth), "{name}");
            let (less, more) = ((outcome.level - 0.004).max(0.0), (outcome.level + 0.004).min(1.0));
            assert!(!survey.region(less).contains(truth), "{name}: {outcome:?}");
            assert!(survey.region(more).contains(truth), "{name}: {outcome:?}");
            let area_km2 = survey.region(outcome.level.min(1.0)).area_km2();
            assert!((outcome.searched_area_km2 / area_km2 - 1.0).abs() < 0.05, "{name}");
        }
    }
    // A truth that the density excludes is found last of all.
    let area = Area::circle(place(0.0, 0.0), 500.0).unwrap();
    let restricted = Density::uniform().restricted_to(area).unwrap();
    let outcome = restricted.survey().outcome(place(50.0, 0.0));
    assert!(outcome.nll_nats.is_infinite() && outcome.level == 1.0);
}

/// The largest distance between the distribution of the levels and the uniform one.
fn kolmogorov_distance(mut levels: Vec<f64>) -> f64 {
    levels.sort_by(f64::total_cmp);
    let count = levels.len() as f64;
    let gaps = levels.iter().enumerate().map(|(k, level)| {
        let (before, after) = (k as f64 / count, (k + 1) as f64 / count);
        (level - before).abs().max((level - after).abs())
    });
    gaps.fold(0.0, f64::max)
}

#[test]
fn levels_of_samples_are_uniform() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    const COUNT: usize = 400;
    for (name, density) in densities() {
        let survey = density.survey();
        let samples = survey.sample(COUNT, &mut rng);
        let levels: Vec<f64> =
            samples.into_iter().map(|truth| survey.outcome(truth).level).collect();
        let distance = kolmogorov_distance(levels);
        // Chance exceeds 1.95/√n once in a thousand times.
        assert!(distance < 1.95 / (COUNT as f64).sqrt(), "{name}: {distance}");
    }
}

#[test]
fn samples_fall_where_the_probability_is() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    for (name, density) in densities() {
        let survey = density.survey();
        let samples = survey.sample(4000, &mut rng);
        for _ in 0..5 {
            let (centre, radius_km) = (uniform_place(&mut rng), rng.random_range(500.0..8000.0));
            let expected = survey.probability_within(centre, radius_km);
            let hits = samples.iter().filter(|there| there.distance_km(centre) <= radius_km);
            let share = hits.count() as f64 / 4000.0;
            let sigma = (expected * (1.0 - expected) / 4000.0).sqrt();
            assert!((share - expected).abs() < 4.0 * sigma + 1e-3, "{name}: {share}, {expected}");
        }
    }
}

#[test]
fn basins_sum_to_one_and_weigh_what_was_put_in() {
    for (name, density) in densities() {
        let modes = density.survey().modes();
        let sum: f64 = modes.modes.iter().map(|mode| mode.mass).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{name}: {sum}");
        assert!(modes.modes.windows(2).all(|pair| pair[0].mass >= pair[1].mass), "{name}");
        for mode in modes.modes.iter().filter(|mode| mode.mass > 0.01) {
            // A mode is a maximum: nothing around it is higher.
            for bearing in [0.0, 90.0, 180.0, 270.0] {
                let beside = mode.place.destination(bearing, 1.0);
                // Along a step the way up may end a little too soon.
                let tolerance = if name.starts_with("classes m") { 0.01 } else { 1e-7 };
                let above = density.log_density(beside) - mode.log_density;
                assert!(above <= tolerance, "{name}: {above} above {mode:?}");
            }
        }
    }
    // Three separate spots of known weights, one at a pole, one on the antimeridian.
    let places = vec![place(90.0, 0.0), place(5.0, 180.0), place(-40.0, 20.0)];
    let weights = [0.5, 0.3, 0.2];
    let density = spread(places.clone(), &weights, 150.0);
    let modes = density.survey().modes();
    assert_eq!(modes.kernel_km, Some(150.0));
    assert_eq!(modes.modes.len(), 3);
    for (mode, (place, weight)) in modes.modes.iter().zip(places.iter().zip(weights)) {
        assert!(mode.place.distance_km(*place) < 0.1, "{mode:?}");
        assert!((mode.mass - weight).abs() < 1e-3, "{mode:?}");
    }
}

#[test]
fn peaks_of_little_prominence_are_merged() {
    // Two equal spots, three widths apart: the pass lies 0.49 nats below the tops.
    let density = spread(vec![place(0.0, 0.0), place(0.0, 2.698)], &[1.0, 1.0], 100.0);
    let top = density.survey().modes_with_prominence(0.0).modes[0].log_density;
    let pass = density.log_density(place(0.0, 1.349));
    let prominence = top - pass;
    assert!((0.3..0.7).contains(&prominence), "{prominence}");
    let survey = density.survey();
    assert_eq!(survey.modes_with_prominence(prominence - 0.1).modes.len(), 2);
    assert_eq!(survey.modes_with_prominence(prominence + 0.1).modes.len(), 1);
    let halves = survey.modes_with_prominence(prominence - 0.1).modes;
    // Basins part at the points of the cells, a third of a width apart.
    assert!((halves[0].mass - 0.5).abs() < 0.02, "{halves:?}");
}

#[test]
fn decisions_beat_every_other_place() {
    for (name, density) in densities() {
        if name == "uniform" {
            continue;
        }
        let survey = density.survey();
        let circle = survey.most_probable_circle(800.0);
        assert!((survey.probability_within(circle.place, 800.0) - circle.value).abs() < 1e-9);
        let score = survey.best_expected_geoscore();
        let distance = survey.least_expected_distance();
        for other in Anchors::fibonacci(400).places() {
            let held = survey.probability_within(*other, 800.0);
            assert!(held <= circle.value + 1e-3, "{name}: {other} holds {held}, {circle:?}");
        }
        // Brute force over a grid, with sums over another.
        let nodes: Vec<_> = nodes(&density, 60_000).into_iter().filter(|n| n.1 > 1e-7).collect();
        let mean = |there: LatLon, of: &dyn Fn(f64) -> f64| {
            nodes.iter().map(|node| node.1 * of(node.0.distance_km(there))).sum::<f64>()
        };
        // Of cells, the brute force itself misses the smallest.
        let tolerance = if name.starts_with("classes") { 0.01 } else { 0.003 };
        let expected = mean(score.place, &geoscore);
        assert!((score.value / expected - 1.0).abs() < tolerance, "{name}: {score:?} {expected}");
        for other in Anchors::fibonacci(60).places() {
            let value = mean(*other, &geoscore);
            assert!(value <= score.value * (1.0 + tolerance), "{name}: {other} {value} {score:?}");
            let km = mean(*other, &|km| km);
            assert!(km >= distance.value * (1.0 - tolerance), "{name}: {other} {km} {distance:?}");
        }
    }
}

#[test]
fn interpolation_is_good_where_the_probability_is() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    for (name, density) in densities() {
        let survey = density.survey();
        // Beside a step of something else than cells alone, the other side's value may be given.
        let most_wrong =
            if ["classes mixed", "classes multiplied"].contains(&name) { 15 } else { 0 };
        let mut wrong = survey.sample(300, &mut rng);
        wrong.retain(|there| {
            let (a, b) = (survey.interpolated_log_density(*there), density.log_density(*there));
            (a - b).abs() >= 0.05
        });
        assert!(wrong.len() <= most_wrong, "{name} at {wrong:?}");
    }
}

#[test]
fn expected_scores_of_a_uniform_density_are_the_same_everywhere() {
    let uniform = Density::uniform();
    let survey = uniform.survey();
    // ∫ exp(−a·θ)·sin θ dθ / 2 in closed form.
    let a = EARTH_RADIUS_KM / 1492.7;
    let exact = 5000.0 * 0.5 * (1.0 + (-a * PI).exp()) / (1.0 + a * a);
    let best = survey.best_expected_geoscore();
    assert!((best.value / exact - 1.0).abs() < 0.003, "{best:?}, not {exact}");
    assert!((survey.expected_geoscore(place(40.0, 7.0)) / exact - 1.0).abs() < 0.003);
    let quarter_km = 0.5 * PI * EARTH_RADIUS_KM;
    assert!((survey.expected_distance_km(place(40.0, 7.0)) / quarter_km - 1.0).abs() < 0.001);
}

#[test]
fn small_circles_find_the_sharp_peak() {
    let broad = spread(vec![place(10.0, 10.0)], &[1.0], 500.0);
    let sharp = spread(vec![place(-30.0, 60.0)], &[1.0], 5.0);
    let density = Density::mixture(vec![(0.8, broad), (0.2, sharp)]).unwrap();
    let circle = density.survey().most_probable_circle(3.0);
    assert!(circle.place.distance_km(place(-30.0, 60.0)) < 1.0, "{circle:?}");
    // 0.2·(1 − exp(−(3/5)²/2)).
    assert!((circle.value - 0.2 * (1.0 - (-0.18_f64).exp())).abs() < 1e-3, "{circle:?}");
}

#[test]
fn samples_of_mixed_restrictions_stay_inside() {
    let uniform = Density::uniform();
    let restricted = |latitude: f64| {
        uniform.restricted_to(Area::circle(place(latitude, 0.0), 600.0).unwrap()).unwrap()
    };
    let density = Density::mixture(vec![(1.0, restricted(0.0)), (1.0, restricted(30.0))]).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    for there in density.survey().sample(2000, &mut rng) {
        assert!(density.log_density(there).is_finite(), "{there}");
    }
}
