//! What answers cost, whether that is known beforehand, and whether they are right.
//!
//! `survey-cost GALLERY.csv ROUNDS CASES`: the last line is JSON. Times are processor time of one thread.

mod hostile;
mod random;
mod reference;

use std::path::Path;

use locdiff::Summary;
use locdiff::geography::{find_country, land_area};
use locdiff::locate::{CandidateFacts, Decode, features};
use locdiff_sphere::{
    Area, Basis, Coefficients, Cost, Density, Integrator, Kernel, LatLon, PointMasses,
    uniform_place,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [gallery, rounds, cases] = &arguments[..] else { anyhow::bail!("see the head of main.rs") };
    let (rounds, cases): (usize, u64) = (rounds.parse()?, cases.parse()?);
    // First, while the program is small.
    let hostile = hostile::request()?;
    let constraint_s = hostile::constraints()?;
    let places = read_places(Path::new(gallery))?;
    let typical_ms = typical(rounds);
    let (vague_ms, within_ms) = vague(&places, rounds.min(7));
    let pole_ratio = pole_ratio(rounds.min(30));
    let predictions = predictions(cases);
    let checks = (cases / 10).clamp(20, 200);
    let (max_error_nat, held) = reference::errors(checks);
    println!(
        "{}",
        json!({
            "typical_ms": round(typical_ms), "typical_n": rounds,
            "vague_ms": round(vague_ms), "within_ms": round(within_ms), "vague_n": rounds.min(7),
            "pole_ratio": round(pole_ratio),
            "prediction_p99": round(quantile(&predictions, 0.99)),
            "prediction_p50": round(quantile(&predictions, 0.5)),
            "prediction_p01": round(quantile(&predictions, 0.01)),
            "predictions_n": predictions.len(),
            "max_error_nat": max_error_nat, "error_bound_held": round(held), "errors_n": checks,
            "hostile_ms": round(hostile.ms), "hostile_peak_mb": round(hostile.peak_mb),
            "hostile_answer_kb": round(hostile.answer_kb),
            "constraint_s": round(constraint_s),
        })
    );
    Ok(())
}

fn round(number: f64) -> f64 {
    (1000.0 * number).round() / 1000.0
}

/// Processor time of this thread in ms. It is counted in steps of a few ms: what is quick is repeated.
fn thread_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

/// What something takes, repeated for so long at least.
fn time_ms(least_ms: f64, mut work: impl FnMut()) -> f64 {
    let (began, mut times) = (thread_ms(), 0.0);
    loop {
        work();
        times += 1.0;
        let spent = thread_ms() - began;
        if spent >= least_ms {
            return spent / times;
        }
    }
}

fn quantile(numbers: &[f64], share: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

fn read_places(path: &Path) -> anyhow::Result<Vec<LatLon>> {
    let text = std::fs::read_to_string(path)?;
    let place = |line: &str| {
        let (latitude, longitude) = line.split_once(',').unwrap();
        Ok(LatLon::new(latitude.trim().parse()?, longitude.trim().parse()?)?)
    };
    text.lines().skip(1).map(place).collect()
}

/// Candidates, radii, regions and outlines, as the server sends them.
fn answer(density: &Density) -> String {
    let survey = density.survey();
    let summary = Summary::of(&survey, 5, Decode::Mode);
    let candidates: Vec<CandidateFacts> =
        summary.candidates.iter().map(CandidateFacts::new).collect();
    let features: Vec<Value> = features(&survey, &[0.5, 0.9], &candidates);
    json!({ "type": "FeatureCollection", "features": features }).to_string()
}

/// Answers of the two built-in kinds: a few places that may be it and the rest of the Earth, as earth-view gives them, and what a
/// network of degree 47 gives. The slower kind's median.
fn typical(rounds: usize) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let integrator = Integrator::new(47);
    let (mut by_places, mut by_network) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let found: Vec<(f64, LatLon, f64)> = (0..rng.random_range(1..9))
            .map(|_| {
                (rng.random_range(0.02..1.0), uniform_place(&mut rng), rng.random_range(5.0..60.0))
            })
            .collect();
        by_places.push(time_ms(60.0, || {
            let mut parts: Vec<(f64, Density)> = found
                .iter()
                .map(|(weight, place, km)| {
                    let point = PointMasses::new(vec![*place], &[1.0]).unwrap();
                    (*weight, point.spread(Kernel::new(*km).unwrap()))
                })
                .collect();
            parts.push((0.1, Density::uniform()));
            answer(&Density::mixture(parts).unwrap());
        }));
        let mut e =
            Coefficients::of(uniform_place(&mut rng), 47).smoothed(rng.random_range(50.0..400.0));
        let strength = rng.random_range(0.1..0.6);
        for (k, e) in e.as_mut_slice().iter_mut().enumerate() {
            let noise: f64 = StandardNormal.sample(&mut rng);
            *e = strength * *e + 0.1 * noise / (k.isqrt() + 1) as f64;
        }
        by_network.push(time_ms(60.0, || drop(answer(&integrator.exponential(&e)))));
    }
    let (places, network) = (quantile(&by_places, 0.5), quantile(&by_network, 0.5));
    eprintln!(
        "typical: places {places:.2} ms, network of degree 47 {network:.2} ms, medians of {rounds}"
    );
    places.max(network)
}

/// A vague answer over GeoCLIP's 100,000 places, and the slower of it on land and in a country.
fn vague(places: &[LatLon], rounds: usize) -> (f64, f64) {
    let areas: [(&str, &Area); 2] =
        [("land", land_area()), ("France", find_country("France").expect("a country").area())];
    let (mut whole, mut within) = (Vec::new(), [Vec::new(), Vec::new()]);
    for round in 0..rounds {
        let mut rng = ChaCha8Rng::seed_from_u64(round as u64);
        // Logits that vary over thousands of km, and from place to place.
        let mut field = Coefficients::zeros(8);
        for e in field.as_mut_slice() {
            let number: f64 = StandardNormal.sample(&mut rng);
            *e = 0.4 * number;
        }
        let basis = Basis::new(8);
        let logits: Vec<f64> = places
            .iter()
            .map(|place| {
                let noise: f64 = StandardNormal.sample(&mut rng);
                field.value_at(&basis, *place) + 0.5 * noise
            })
            .collect();
        let density = || {
            let masses = PointMasses::from_logits(places.to_vec(), &logits).unwrap();
            masses.spread(Kernel::default())
        };
        let mut cells = 0;
        whole.push(time_ms(1.0, || {
            let density = density();
            cells = density.survey().cells();
            answer(&density);
        }));
        eprintln!("vague: {:.0} ms, {cells} cells", whole[round]);
        for ((name, area), times) in areas.iter().zip(&mut within) {
            let whole = density();
            let ms = time_ms(1.0, || {
                let part = whole.restricted_to((*area).clone()).unwrap();
                cells = part.survey().cells();
                answer(&part);
            });
            eprintln!("  within {name}: {ms:.0} ms, {cells} cells");
            times.push(ms);
        }
    }
    let within = within.map(|times| quantile(&times, 0.5));
    (quantile(&whole, 0.5), within[0].max(within[1]))
}

/// A peak at the pole over the same peak at the equator: of coefficients of degree 47, and of a point of 1 km; the larger.
fn pole_ratio(rounds: usize) -> f64 {
    let integrator = Integrator::new(47);
    let ms = |place: LatLon| {
        let e = Coefficients::of(place, 47);
        let function = time_ms(40.0, || drop(answer(&integrator.exponential(&e))));
        let point = time_ms(40.0, || {
            let point = PointMasses::new(vec![place], &[1.0]).unwrap();
            answer(&point.spread(Kernel::new(1.0).unwrap()));
        });
        [function, point]
    };
    let at = |latitude, longitude| LatLon::new(latitude, longitude).unwrap();
    let (mut ratios, mut rng) = ([Vec::new(), Vec::new()], ChaCha8Rng::seed_from_u64(2));
    for _ in 0..rounds {
        let (pole, equator) = (ms(at(90.0, 0.0)), ms(at(0.0, rng.random_range(-180.0..180.0))));
        for kind in 0..2 {
            ratios[kind].push(pole[kind] / equator[kind]);
        }
    }
    let [function, point] = ratios.map(|ratios| quantile(&ratios, 0.5));
    eprintln!(
        "pole over equator: degree 47 {function:.2}, a point of 1 km {point:.2}, medians of {rounds}"
    );
    function.max(point)
}

/// Measured over predicted time, for random densities with and without constraints.
fn predictions(cases: u64) -> Vec<f64> {
    let mut ratios = Vec::new();
    let mut csv = String::from("seed,kind,within,predicted_ms,measured_ms,cells\n");
    for seed in 0..cases {
        let case = random::case(&mut ChaCha8Rng::seed_from_u64(seed));
        let areas: Vec<&Area> = case.within.as_ref().into_iter().collect();
        let predicted = case.what.density().expected_cost(&areas);
        let (mut cells, mut failed) = (0, false);
        let measured = time_ms(15.0, || {
            let mut density = case.what.density();
            if let Some(area) = &case.within {
                match density.restricted_to(area.clone()) {
                    Ok(part) => density = part,
                    // Nothing is there: the cost of finding that out is not asked for.
                    Err(_) => {
                        failed = true;
                        return;
                    }
                }
            }
            cells = density.survey().cells();
            answer(&density);
        });
        if failed {
            continue;
        }
        let predicted_ms = predicted_ms(predicted);
        ratios.push(measured / predicted_ms);
        let within = case.within.as_ref().map_or("whole", random::name_of);
        csv += &format!(
            "{seed},{},{within},{predicted_ms:.3},{measured:.3},{cells}\n",
            case.what.name()
        );
        if seed % 100 == 99 {
            eprintln!("predictions: {} of {cases}", seed + 1);
        }
    }
    std::fs::create_dir_all("target/experiments").unwrap();
    std::fs::write("target/experiments/survey-cost.csv", csv).unwrap();
    ratios
}

fn predicted_ms(cost: Cost) -> f64 {
    cost.duration().as_secs_f64() * 1e3
}
