//! Fits and asks all methods, two at a time, each on one thread and by that thread's clock.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use locdiff_experiments::baselines::{
    Answer, Calibration, FitOptions, Fitted, Method, Rule, Shape, log_with_uniform,
};
use locdiff_experiments::{round, thread_seconds};
use locdiff_sphere::LatLon;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::predictions::{Prediction, Predictions, Truth};
use crate::views::{AllViews, Views};

const RATES: [f64; 3] = [5e-4, 1.5e-3, 4.5e-3];
/// Of the budget, for each rate that is tried.
const TUNING_SHARE: f64 = 0.25;
/// Views by which a rate is chosen.
const TUNING_VIEWS: usize = 600;
const SEED: u64 = 1;

pub fn fit_all(embeddings: &Path, seconds: f64, folder: &Path) -> Result<()> {
    let views = AllViews::read(embeddings)?;
    eprintln!(
        "{} views to train, {} to tune, {:?} to test",
        views.train.places.len(),
        views.calibration.places.len(),
        views.tests.iter().map(|test| test.places.len()).collect::<Vec<_>>()
    );
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(method) = Method::ALL.get(number) else { return Ok(()) };
            let (predictions, about) = pool.install(|| fit_one(*method, &views, seconds));
            eprintln!("{}: {about}", method.name());
            done.lock().unwrap().push((number, predictions, about));
        }
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().try_for_each(|worker| worker.join().unwrap())
    })?;
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(number, ..)| *number);
    let mut methods = Map::new();
    let mut predictions = Predictions { truths: truths(&views), methods: Vec::new() };
    for (number, of_method, about) in done {
        methods.insert(Method::ALL[number].name().to_owned(), about);
        predictions.methods.push(of_method);
    }
    predictions.write(&folder.join("predictions.npy"))?;
    let about = json!({
        "seconds": seconds,
        "rates": RATES,
        "tuning_share": TUNING_SHARE,
        "training_views": views.train.places.len(),
        "calibration_views": views.calibration.places.len(),
        "seed": SEED,
        "methods": methods,
    });
    Ok(std::fs::write(folder.join("fits.json"), format!("{about:#}\n"))?)
}

fn truths(views: &AllViews) -> Vec<Truth> {
    let sets = views.tests.iter().enumerate();
    sets.flat_map(|(set, views)| {
        let rows = views.places.iter().zip(&views.widths_km);
        rows.map(move |(place, width)| Truth { place: *place, set, width_km: f64::from(*width) })
    })
    .collect()
}

/// A method's log-densities: of its answers, or its own where those are better.
#[derive(Clone, Copy)]
struct Reading {
    calibration: Calibration,
    /// Uniform share of the method's own densities.
    own: Option<f64>,
    rule: Rule,
}

fn fit_one(method: Method, views: &AllViews, seconds: f64) -> (Vec<Prediction>, Value) {
    let options = FitOptions { seconds, rate: RATES[0], seed: SEED, clock: thread_seconds };
    let fit = |rate: f64, share: f64| {
        let options = FitOptions { rate, seconds: share * seconds, ..options };
        method.fit(&views.train.embeddings, &views.train.places, &options)
    };
    let rates: &[f64] = if method.is_trained() { &RATES } else { &RATES[..1] };
    let mut tried: Vec<(f64, f64)> = Vec::new();
    if rates.len() > 1 {
        let width = views.calibration.embeddings.len() / views.calibration.places.len();
        let count = TUNING_VIEWS.min(views.calibration.places.len());
        let truths = &views.calibration.places[..count];
        for rate in rates {
            let fitted = fit(*rate, TUNING_SHARE);
            let embeddings = &views.calibration.embeddings[..count * width];
            let answers = fitted.model.answers(embeddings, SEED);
            tried.push((Calibration::fit(&answers, truths).nll_nats, *rate));
            eprintln!("{}, rate {rate}: {:.3} nats", method.name(), tried[tried.len() - 1].0);
        }
    }
    let best = tried.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let rate = best.map_or(RATES[0], |tried| tried.1);
    let fitted = fit(rate, 1.0);
    let (reading, nlls) = read_on(&fitted, &views.calibration);
    let mut predictions = Vec::new();
    let mut answering = 0.0;
    for test in &views.tests {
        let began = thread_seconds();
        let answers = fitted.model.answers(&test.embeddings, SEED + 1);
        let places: Vec<LatLon> = answers
            .iter()
            .map(|answer| answer.place(reading.rule, reading.calibration.shape))
            .collect();
        answering += thread_seconds() - began;
        predictions.extend(predict(&fitted, test, &answers, &places, reading));
    }
    let about = json!({
        "rate": if method.is_trained() { json!(rate) } else { Value::Null },
        "nll_by_rate": tried.iter().map(|tried| round(tried.0)).collect::<Vec<_>>(),
        "steps": fitted.steps,
        "calibration_nll": nlls,
        "shape": shape_text(reading.calibration.shape),
        "uniform_percent": round(100.0 * reading.own.unwrap_or(reading.calibration.uniform_share)),
        "density": if reading.own.is_some() { "its own" } else { "of its answers" },
        "rule": rule_text(reading.rule),
        "ms_per_view": round(1000.0 * answering / predictions.len() as f64),
    });
    (predictions, about)
}

/// Fits how a method is read, on views that no table shows.
fn read_on(fitted: &Fitted, views: &Views) -> (Reading, Value) {
    let answers = fitted.model.answers(&views.embeddings, SEED);
    let calibration = Calibration::fit(&answers, &views.places);
    let rule = Rule::fit(&answers, &views.places, calibration.shape);
    let own = fitted.model.log_densities(&views.embeddings, &views.places);
    let own = own.map(|logs| Calibration::uniform_share(&logs));
    let nlls = json!({
        "of_answers": round(calibration.nll_nats),
        "its_own": own.map(|(_, nll)| round(nll)),
    });
    let better = own.filter(|(_, nll)| *nll < calibration.nll_nats);
    (Reading { calibration, own: better.map(|(share, _)| share), rule }, nlls)
}

fn predict(
    fitted: &Fitted,
    views: &Views,
    answers: &[Box<dyn Answer>],
    places: &[LatLon],
    reading: Reading,
) -> Vec<Prediction> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let own = reading.own.and_then(|share| {
        let logs = fitted.model.log_densities(&views.embeddings, &views.places)?;
        Some(logs.into_iter().map(|log| log_with_uniform(log, share)).collect::<Vec<f64>>())
    });
    let rows = answers.iter().zip(&views.places).enumerate();
    rows.map(|(k, (answer, truth))| {
        let calibration = &reading.calibration;
        let (log_density, level) = match &own {
            Some(logs) => (logs[k], f64::NAN),
            None => (
                calibration.log_density(answer.as_ref(), *truth),
                answer.level(*truth, calibration, &mut rng),
            ),
        };
        Prediction { place: places[k], nll_nats: -log_density, level }
    })
    .collect()
}

fn shape_text(shape: Shape) -> String {
    match shape {
        Shape::Power(power) => format!("power {power}"),
        Shape::Kernel { width_km, tail, weight_power } if tail.is_finite() => {
            format!("kernel of {width_km} km, tail {tail}, weights to the {weight_power}")
        }
        Shape::Kernel { width_km, weight_power, .. } => {
            format!("von Mises-Fisher kernel of {width_km} km, weights to the {weight_power}")
        }
    }
}

fn rule_text(rule: Rule) -> String {
    match rule {
        Rule::Mean => "mean".to_owned(),
        Rule::Mode { spread_km } if spread_km > 0.0 => format!("mode, spread by {spread_km} km"),
        Rule::Mode { .. } => "mode".to_owned(),
    }
}
