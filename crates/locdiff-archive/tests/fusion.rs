//! Laws of the fusion, on simulated outings whose motion is not that of the fusion.

#[path = "simulation/mod.rs"]
mod simulation;

use locdiff_archive::fusion::{FusionOptions, Orbit, Sighting, Source, fuse};
use locdiff_sphere::{Area, Density, Kernel, LatLon, PointMasses};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use simulation::{Simulated, Tally, journey, pass, shuffled};

fn tally(outings: &[Vec<Simulated>], options: &FusionOptions) -> Tally {
    let mut tally = Tally::default();
    for outing in outings {
        let sightings: Vec<Sighting> =
            outing.iter().map(|p| Sighting::pictured(p.time_s, p.density.clone())).collect();
        let fused = fuse(&sightings, options);
        assert_eq!(fused.len(), outing.len());
        outing.iter().zip(&fused).for_each(|(picture, fused)| tally.add(picture, fused));
    }
    tally
}

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).expect("a place")
}

fn around(places: Vec<LatLon>, weights: &[f64], width_km: f64) -> Density {
    let kernel = Kernel::new(width_km).expect("a width");
    PointMasses::new(places, weights).expect("masses").spread(kernel)
}

#[test]
fn passes_are_fused_and_calibrated() {
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    let passes: Vec<_> = (0..12).map(|_| pass(12, &mut rng)).collect();
    let tally = tally(&passes, &FusionOptions::orbit(Orbit::default()));
    println!("passes, {tally}");
    assert!(tally.median_ratio() < 0.5, "{}", tally.median_ratio());
    assert!((0.85..=0.97).contains(&tally.coverage()), "{}", tally.coverage());
}

#[test]
fn shuffled_passes_neither_help_nor_hurt() {
    let mut rng = ChaCha8Rng::seed_from_u64(32);
    let passes: Vec<_> = (0..8).map(|_| pass(12, &mut rng)).collect();
    let passes: Vec<_> = passes.into_iter().map(|pass| shuffled(pass, &mut rng)).collect();
    let tally = tally(&passes, &FusionOptions::orbit(Orbit::default()));
    println!("shuffled passes, {tally}");
    assert!((0.95..=1.05).contains(&tally.median_ratio()), "{}", tally.median_ratio());
    assert!((0.83..=0.97).contains(&tally.coverage()), "{}", tally.coverage());
}

#[test]
fn journeys_are_fused_and_calibrated() {
    let mut rng = ChaCha8Rng::seed_from_u64(33);
    let journeys: Vec<_> = (0..12).map(|_| journey(12, &mut rng)).collect();
    let tally = tally(&journeys, &FusionOptions::default());
    println!("journeys, {tally}");
    assert!(tally.median_ratio() < 0.7, "{}", tally.median_ratio());
    assert!((0.85..=0.96).contains(&tally.coverage()), "{}", tally.coverage());
}

/// The figures of the documentation, with more pictures than a test needs.
#[test]
#[ignore = "takes a minute: measures, doesn't check"]
fn measured() {
    let mut rng = ChaCha8Rng::seed_from_u64(36);
    let orbit = FusionOptions::orbit(Orbit::default());
    let passes: Vec<_> = (0..30).map(|_| pass(12, &mut rng)).collect();
    println!("passes, {}", tally(&passes, &orbit));
    let passes = passes.into_iter().map(|pass| shuffled(pass, &mut rng)).collect::<Vec<_>>();
    println!("shuffled passes, {}", tally(&passes, &orbit));
    let short: Vec<_> = (0..60).map(|_| pass(4, &mut rng)).collect();
    println!("short passes, {}", tally(&short, &orbit));
    let journeys: Vec<_> = (0..50).map(|_| journey(12, &mut rng)).collect();
    println!("journeys, {}", tally(&journeys, &FusionOptions::default()));
}

/// A day of holidays: a picture every 18 s of which a quarter have GPS, the others one of eight places each time.
#[test]
#[ignore = "measures, doesn't check: run it with --release"]
fn time_of_a_long_outing() {
    let cities = [
        [48.8566, 2.3522],
        [38.7223, -9.1393],
        [-33.8688, 151.2093],
        [-22.9068, -43.1729],
        [64.1466, -21.9426],
        [-18.1416, 178.4419],
        [35.6762, 139.6503],
        [40.7128, -74.006],
    ];
    let mut rng = ChaCha8Rng::seed_from_u64(37);
    let count = 400;
    let sightings: Vec<Sighting> = (0..count)
        .map(|number| {
            let time_s = 18.0 * f64::from(number);
            if number % 4 == 0 {
                let place = at(rng.random_range(-60.0..70.0), rng.random_range(-180.0..180.0));
                return Sighting::known(time_s, place, 0.02);
            }
            let weights: Vec<f64> = cities.iter().map(|_| rng.random_range(0.05..1.0)).collect();
            let places = cities.iter().map(|city| at(city[0], city[1])).collect();
            Sighting::pictured(time_s, around(places, &weights, 25.0))
        })
        .collect();
    let cpu_ms = || {
        let spent = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
        spent.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("ns") / 1e6
    };
    let before = cpu_ms();
    let fused = fuse(&sightings, &FusionOptions::default());
    let each = (cpu_ms() - before) / f64::from(count);
    let sum: f64 = fused.iter().map(|f| f.stray + f.density.log_density(at(48.0, 2.0))).sum();
    println!("{each:.1} ms of CPU per picture; a digest of the results: {sum:.9}");
}

/// Pictures from all over the world with the times of one outing.
#[test]
fn pictures_that_contradict_each_other_keep_their_answers() {
    let mut rng = ChaCha8Rng::seed_from_u64(34);
    let journeys: Vec<_> = (0..10).map(|_| journey(10, &mut rng)).collect();
    let mut mixed: Vec<Vec<Simulated>> = (0..10).map(|_| Vec::new()).collect();
    for journey in journeys {
        for (outing, picture) in mixed.iter_mut().zip(journey) {
            outing.push(picture);
        }
    }
    let tally = tally(&mixed, &FusionOptions::default());
    println!("mixed journeys, {tally}");
    assert!((0.95..=1.05).contains(&tally.median_ratio()), "{}", tally.median_ratio());
    assert!(tally.strays > 0.8 * tally.single_km.len() as f64, "{}", tally.strays);
}

#[test]
fn one_picture_alone_keeps_its_density() {
    let density = around(vec![at(10.0, 20.0), at(-30.0, 140.0)], &[0.7, 0.3], 60.0);
    let fused = fuse(&[Sighting::pictured(0.0, density.clone())], &FusionOptions::default());
    let [before, after] = [&density, &fused[0].density].map(|d| {
        let survey = d.survey();
        (survey.probability_within(at(10.0, 20.0), 100.0), survey.region(0.9).area_km2())
    });
    assert!((before.0 - after.0).abs() < 0.02, "{before:?}, {after:?}");
    assert!((before.1 / after.1 - 1.0).abs() < 0.15, "{before:?}, {after:?}");
    assert!(fused[0].influences.iter().all(|i| i.source == Source::Itself));
    assert!(fuse(&[], &FusionOptions::default()).is_empty());
}

/// Known places before and after leave a circle of a few km, far below the smallest cell.
#[test]
fn known_neighbors_decide_between_candidates() {
    let density = around(vec![at(47.05, 8.31), at(35.0, 135.8)], &[0.3, 0.7], 25.0);
    let sightings = [
        Sighting::pictured(300.0, density),
        Sighting::known(0.0, at(47.06, 8.30), 0.01),
        Sighting::known(600.0, at(47.061, 8.301), 0.01),
    ];
    let fused = fuse(&sightings, &FusionOptions::default());
    let survey = fused[0].density.survey();
    let near = survey.probability_within(at(47.06, 8.30), 3.0);
    assert!(near > 0.8, "{near}");
    assert!(fused[0].stray < 0.05, "{}", fused[0].stray);
    assert!(fused[0].moved_km > 9000.0, "{}", fused[0].moved_km);
    let sources: Vec<Source> = fused[0].influences.iter().map(|i| i.source).collect();
    assert!(sources.contains(&Source::Earlier(1)), "{sources:?}");
    assert!(sources.contains(&Source::Later), "{sources:?}");
}

/// A density that is certainly wrong does not take its neighbors along, and is corrected by them.
#[test]
fn a_wrong_answer_is_corrected_by_its_neighbors() {
    let here = around(vec![at(-13.5, -72.0)], &[1.0], 40.0);
    let wrong = around(vec![at(60.0, 10.0)], &[1.0], 40.0);
    let densities = [here.clone(), here.clone(), here.clone(), wrong, here.clone(), here];
    let sightings: Vec<Sighting> = densities
        .into_iter()
        .enumerate()
        .map(|(k, density)| Sighting::pictured(1800.0 * k as f64, density))
        .collect();
    let fused = fuse(&sightings, &FusionOptions::default());
    for (k, fused) in fused.iter().enumerate() {
        let near = fused.density.survey().probability_within(at(-13.5, -72.0), 150.0);
        let expected = if k == 3 { 0.2 } else { 0.95 };
        assert!(near > expected, "picture {k}: {near}, stray {}", fused.stray);
    }
}

/// Ten copies of one picture count as one.
#[test]
fn a_burst_is_one_picture() {
    let density = around(vec![at(1.0, 2.0), at(-30.0, 140.0)], &[0.7, 0.3], 60.0);
    let burst: Vec<Sighting> =
        (0..10).map(|k| Sighting::pictured(f64::from(k), density.clone())).collect();
    let fused = fuse(&burst, &FusionOptions::default());
    let survey = fused[4].density.survey();
    let inside = survey.probability_within(at(1.0, 2.0), 500.0);
    assert!((0.6..0.85).contains(&inside), "{inside}");
}

/// The result does not depend on the order in which sightings are given, nor on when time began.
#[test]
fn order_and_origin_of_time_do_not_matter() {
    let mut rng = ChaCha8Rng::seed_from_u64(35);
    let outing = journey(5, &mut rng);
    let sighting =
        |p: &Simulated, later: f64| Sighting::pictured(p.time_s + later, p.density.clone());
    let forward: Vec<Sighting> = outing.iter().map(|p| sighting(p, 0.0)).collect();
    let reversed: Vec<Sighting> = outing.iter().rev().map(|p| sighting(p, 1e6)).collect();
    let options = FusionOptions::default();
    let (one, mut other) = (fuse(&forward, &options), fuse(&reversed, &options));
    other.reverse();
    for ((a, b), picture) in one.iter().zip(&other).zip(&outing) {
        let difference =
            a.density.log_density(picture.truth) - b.density.log_density(picture.truth);
        assert!(difference.abs() < 1e-6, "{difference}");
    }
}

/// "This trip: Peru" is a restriction of the single density.
#[test]
fn a_stated_area_reaches_the_neighbors() {
    let peru = Area::bounding_box(-18.5, -81.5, 0.0, -68.5).expect("a box");
    let both = || around(vec![at(-13.5, -72.0), at(60.0, 10.0)], &[0.4, 0.6], 40.0);
    let stated = both().restricted_to(peru).expect("a restriction");
    let fused = fuse(
        &[Sighting::pictured(0.0, stated), Sighting::pictured(900.0, both())],
        &FusionOptions::default(),
    );
    let near = fused[1].density.survey().probability_within(at(-13.5, -72.0), 200.0);
    assert!(near > 0.9, "{near}");
}
