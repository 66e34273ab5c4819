//! One pass or many steps? Samplers compared on the simulation of `objectives`.
//!
//! The model is the one that `objectives` trained by likelihood. Several draws are one
//! answer: the draw nearest to all others, and the mixture of their densities. Cost is the
//! number of network evaluations and the time, against one pass. Then: do samples follow the
//! one-pass density, as they must? `--quick` scores the committed predictions.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use locdiff::{Diffusion, Method, SampleOptions, rows};
use locdiff_experiments::simulation::Simulation;
use locdiff_experiments::training::conditions;
use locdiff_experiments::{round, write_npy};
use locdiff_sphere::{Decoder, LatLon, PointScores, UNIFORM_NLL_NATS};
use serde_json::{Value, json};

const COUNT: usize = 300;
const DRAWS: [usize; 3] = [1, 4, 16];
const UNIFORM_SHARE: f64 = 0.01;

const METHODS: [(&str, Method); 6] = [
    ("one pass", Method::OnePass),
    ("DDIM 5", Method::Ddim(5)),
    ("DDIM 10", Method::Ddim(10)),
    ("DDIM 20", Method::Ddim(20)),
    ("DDIM 50", Method::Ddim(50)),
    ("DDPM 200", Method::Ddpm),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = Path::new("experiments/samplers");
    match arguments.next().as_deref() {
        Some("--quick") => {}
        Some("--sample") => {
            let wheel = PathBuf::from(arguments.next().context("--sample WHEEL MODEL")?);
            let model = PathBuf::from(arguments.next().context("--sample WHEEL MODEL")?);
            sample_all(&wheel, &model, folder)?;
        }
        _ => anyhow::bail!("--quick, or --sample WHEEL MODEL"),
    }
    report(folder)
}

/// `[1 + methods · draws, place, (latitude, longitude, nll)]`, the truth first.
fn report(folder: &Path) -> Result<()> {
    let mut bytes = Vec::new();
    File::open(folder.join("predictions.npy"))?.read_to_end(&mut bytes)?;
    let values: Vec<f32> = npyz::NpyFile::new(&bytes[..])?.into_vec()?;
    let rows = METHODS.len() * DRAWS.len() + 1;
    ensure!(values.len() == rows * COUNT * 3, "{} numbers are not ours", values.len());
    let costs: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("costs.json"))?)?;
    let row = |k: usize| values[k * 3 * COUNT..(k + 1) * 3 * COUNT].chunks_exact(3);
    let places = |k: usize| -> Vec<LatLon> {
        row(k).map(|v| LatLon::new(v[0].into(), v[1].into()).unwrap()).collect()
    };
    let truths = places(0);
    println!("# Samplers, compared on a simulation\n");
    println!("n = {COUNT} test places; the model of `objectives` trained by likelihood.\n");
    println!(
        "| sampler | draws | ≤ 25 km, % | ≤ 200 km, % | ≤ 750 km, % | median km | NLL, nat | time, × one pass |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut figures = serde_json::Map::new();
    for (m, (name, _)) in METHODS.iter().enumerate() {
        for (d, draws) in DRAWS.iter().enumerate() {
            let k = 1 + m * DRAWS.len() + d;
            let scores = PointScores::of(&places(k), &truths)?;
            let share = |radius| 100.0 * scores.accuracy(radius).value();
            let nll = row(k).map(|v| f64::from(v[2])).sum::<f64>() / COUNT as f64;
            let cost = costs["times_one_pass"][m].as_f64().unwrap_or(f64::NAN) * *draws as f64;
            println!(
                "| {name} | {draws} | {:.1} | {:.1} | {:.1} | {:.0} | {nll:.2} | {cost:.0} |",
                share(25.0),
                share(200.0),
                share(750.0),
                scores.median_km().value()
            );
            if *draws == 16 || (m == 0 && *draws == 1) {
                let key = format!("{}_{draws}_within_200", name.replace(' ', "_").to_lowercase());
                figures.insert(key, json!(round(share(200.0))));
            }
        }
    }
    println!(
        "\nNLL with {UNIFORM_SHARE} of the uniform density mixed in; uniform alone: {UNIFORM_NLL_NATS:.2}."
    );
    println!(
        "Levels of DDPM samples under the one-pass density: Kolmogorov distance {:.3} from uniform, n = {} (chance: below {:.3}).",
        costs["ks_distance"].as_f64().unwrap_or(f64::NAN),
        costs["ks_n"],
        1.95 / costs["ks_n"].as_f64().unwrap_or(1.0).sqrt(),
    );
    println!("A simulation: it compares samplers, and says nothing about photographs.");
    figures.insert("n".into(), json!(COUNT));
    figures.insert("ks_distance".into(), costs["ks_distance"].clone());
    println!("\n{}", Value::Object(figures));
    Ok(())
}

fn sample_all(wheel: &Path, model: &Path, folder: &Path) -> Result<()> {
    let device = Device::flex();
    let simulation = Simulation::build(wheel, &device)?;
    let diffusion =
        Diffusion::open(model, &device).context("run experiments/objectives/run first")?;
    let numbers: Vec<usize> = (0..COUNT).collect();
    let condition = conditions(&simulation.test, &numbers, simulation.width, &device);
    let truths = &simulation.test.places[..COUNT];
    let decoder = Decoder::new(diffusion.config().denoiser.max_degree);
    let mut values: Vec<f32> = Vec::new();
    for place in truths {
        values.extend([place.latitude() as f32, place.longitude() as f32, 0.0]);
    }
    let mut times = Vec::new();
    let mut last_places: Vec<Vec<LatLon>> = Vec::new();
    for (name, method) in METHODS {
        let began = Instant::now();
        let draws = DRAWS[DRAWS.len() - 1];
        // [draw][place]
        let (mut places, mut densities) = (Vec::new(), Vec::new());
        let mut network_seconds = 0.0;
        for seed in 0..draws {
            let options = SampleOptions { method, seed: seed as u64, ..SampleOptions::default() };
            let start = Instant::now();
            let output = diffusion.sample(Some(condition.clone()), COUNT, options, |_| ());
            network_seconds += start.elapsed().as_secs_f64();
            places.push(rows(&output).iter().map(|e| decoder.mode(e).place).collect::<Vec<_>>());
            let made = diffusion.densities(&output).context("no densities")?;
            densities.push(
                made.iter().zip(truths).map(|(q, p)| q.log_density(*p).exp()).collect::<Vec<f64>>(),
            );
        }
        times.push(network_seconds / draws as f64);
        for draws in DRAWS {
            for k in 0..COUNT {
                let of_place: Vec<LatLon> = places[..draws].iter().map(|row| row[k]).collect();
                let answer = nearest_to_all(&of_place);
                let density: f64 =
                    densities[..draws].iter().map(|row| row[k]).sum::<f64>() / draws as f64;
                let nll = -((1.0 - UNIFORM_SHARE) * density
                    + UNIFORM_SHARE * (-UNIFORM_NLL_NATS).exp())
                .ln();
                values.extend([answer.latitude() as f32, answer.longitude() as f32, nll as f32]);
            }
        }
        last_places = places;
        eprintln!("{name}: {:.0} s", began.elapsed().as_secs_f64());
    }
    // Do DDPM's samples follow the density of the one pass?
    let output = diffusion.sample(Some(condition), COUNT, SampleOptions::default(), |_| ());
    let densities = diffusion.densities(&output).context("no densities")?;
    let mut levels: Vec<f64> = Vec::new();
    for (k, density) in densities.iter().enumerate() {
        let survey = density.survey();
        levels.extend(last_places[..2].iter().map(|row| survey.outcome(row[k]).level));
    }
    levels.sort_by(f64::total_cmp);
    let count = levels.len() as f64;
    let gaps = levels.iter().enumerate().map(|(k, level)| {
        (level - k as f64 / count).abs().max((level - (k + 1) as f64 / count).abs())
    });
    let costs = json!({
        "times_one_pass": times.iter().map(|time| round(time / times[0])).collect::<Vec<f64>>(),
        "ks_distance": round(gaps.fold(0.0, f64::max)),
        "ks_n": levels.len(),
    });
    std::fs::write(folder.join("costs.json"), costs.to_string() + "\n")?;
    write_npy(
        &folder.join("predictions.npy"),
        &[METHODS.len() * DRAWS.len() + 1, COUNT, 3],
        &values,
    )
}

/// The place with the least total distance to the others.
fn nearest_to_all(places: &[LatLon]) -> LatLon {
    let total = |place: &LatLon| places.iter().map(|other| other.distance_km(*place)).sum::<f64>();
    *places.iter().min_by(|a, b| total(a).total_cmp(&total(b))).unwrap()
}
