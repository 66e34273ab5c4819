//! Which objective should a network be trained for?
//!
//! Every objective, with both ways to take its integrals, gets the same seconds, network,
//! optimiser and data: a simulation with real places (see `simulation.rs`). Answers come in
//! one pass, from the mode. `--quick` scores the committed predictions; the full run needs
//! GeoCLIP's wheel and trains.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use locdiff::{
    DenoiserConfig, Diffusion, DiffusionConfig, Meaning, Method, Objective, Quadrature,
    SampleOptions, ScheduleConfig, rows,
};
use locdiff_experiments::simulation::{Simulation, TEST_COUNT};
use locdiff_experiments::training::{BATCH, conditions, train};
use locdiff_experiments::{round, write_npy};
use locdiff_sphere::{ACCURACY_RADII_KM, Decoder, LatLon, PointScores, UNIFORM_NLL_NATS};
use serde_json::json;

const MAX_DEGREE: usize = 23;
/// What is mixed into a density before its likelihood is taken, for a linear one is zero in
/// places and would be infinitely wrong there.
const UNIFORM_SHARE: f64 = 0.01;
/// Outputs that are kept for `density-conformance`.
const KEPT_OUTPUTS: usize = 40;

struct Run {
    name: &'static str,
    objective: Objective,
    quadrature: Quadrature,
}

const ANCHORS: Quadrature = Quadrature::Anchors(2048);
const TRANSFORM: Quadrature = Quadrature::Transform(48);
/// What the product uses.
const DEFAULT: &str = "likelihood, transform";
const PAPER: &str = "reverse KL, anchors";

fn runs() -> [Run; 7] {
    let run = |name, objective, quadrature| Run { name, objective, quadrature };
    [
        run(PAPER, Objective::ReverseKl, ANCHORS),
        run("reverse KL, transform", Objective::ReverseKl, TRANSFORM),
        run("likelihood, anchors", Objective::Likelihood, ANCHORS),
        run(DEFAULT, Objective::Likelihood, TRANSFORM),
        run("cosine", Objective::Cosine, TRANSFORM),
        run("L1", Objective::L1, TRANSFORM),
        run("L2", Objective::L2, TRANSFORM),
    ]
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = Path::new("experiments/objectives");
    let predictions = match arguments.next().as_deref() {
        Some("--quick") => read(&folder.join("predictions.npy"))?,
        Some("--train") => {
            let wheel = PathBuf::from(arguments.next().context("--train WHEEL SECONDS MODELS")?);
            let seconds: f64 = arguments.next().context("--train WHEEL SECONDS MODELS")?.parse()?;
            let models = PathBuf::from(arguments.next().context("--train WHEEL SECONDS MODELS")?);
            train_all(&wheel, seconds, &models, folder)?
        }
        _ => anyhow::bail!("--quick, or --train WHEEL SECONDS MODELS"),
    };
    report(&predictions)
}

/// `[run, place, (latitude, longitude, nll)]`; the first run is the truth.
struct Predictions {
    values: Vec<f32>,
    count: usize,
}

impl Predictions {
    fn places(&self, run: usize) -> Vec<LatLon> {
        let rows = self.values[run * 3 * self.count..][..3 * self.count].chunks_exact(3);
        rows.map(|row| LatLon::new(f64::from(row[0]), f64::from(row[1])).unwrap()).collect()
    }

    fn nll(&self, run: usize) -> Option<f64> {
        let rows = self.values[run * 3 * self.count..][..3 * self.count].chunks_exact(3);
        let sum: f64 = rows.map(|row| f64::from(row[2])).sum();
        sum.is_finite().then(|| sum / self.count as f64)
    }
}

fn report(predictions: &Predictions) -> Result<()> {
    let truths = predictions.places(0);
    println!("# Objectives, compared on a simulation\n");
    println!(
        "n = {} test places, L = {MAX_DEGREE}, one pass, answers by the mode.\n",
        truths.len()
    );
    print!("| objective | ");
    ACCURACY_RADII_KM.iter().for_each(|radius| print!("≤ {radius} km, % | "));
    println!("median km | NLL, nat |\n|---|---|---|---|---|---|---|---|");
    let mut within_200: Vec<(&str, f64)> = Vec::new();
    for (k, run) in runs().iter().enumerate() {
        let scores = PointScores::of(&predictions.places(k + 1), &truths)?;
        let shares = ACCURACY_RADII_KM.map(|radius| 100.0 * scores.accuracy(radius).value());
        print!("| {} | ", run.name);
        shares.iter().for_each(|share| print!("{share:.1} | "));
        let nll = predictions.nll(k + 1).map_or("none".into(), |nll| format!("{nll:.2}"));
        println!("{:.0} | {nll} |", scores.median_km().value());
        within_200.push((run.name, shares[2]));
    }
    println!(
        "\nNLL with {UNIFORM_SHARE} of the uniform density mixed in; uniform alone: {UNIFORM_NLL_NATS:.2}."
    );
    println!("A simulation: it compares objectives, and says nothing about photographs.");
    let of = |name: &str| within_200.iter().find(|run| run.0 == name).map_or(0.0, |run| run.1);
    let best = within_200.iter().max_by(|a, b| a.1.total_cmp(&b.1)).context("no runs")?;
    let figures = json!({
        "n": truths.len(),
        "default": DEFAULT,
        "best": best.0,
        "within_200": round(of(DEFAULT)),
        "paper_within_200": round(of(PAPER)),
    });
    println!("\n{figures}");
    Ok(())
}

fn train_all(wheel: &Path, seconds: f64, models: &Path, folder: &Path) -> Result<Predictions> {
    let device = Device::flex();
    let simulation = Simulation::build(wheel, &device)?;
    eprintln!(
        "{} training places, noise {:.2}, nearest neighbour within 200 km: {:.1} %",
        simulation.train.places.len(),
        simulation.noise,
        simulation.retrieval_within_200
    );
    let mut values: Vec<f32> = Vec::new();
    for place in &simulation.test.places {
        values.extend([place.latitude() as f32, place.longitude() as f32, 0.0]);
    }
    for run in runs() {
        let config = DiffusionConfig {
            denoiser: DenoiserConfig {
                bottleneck: Some(128),
                dropout: 0.0,
                ..DenoiserConfig::new(MAX_DEGREE, simulation.width)
            },
            schedule: ScheduleConfig::default(),
            objective: run.objective,
            quadrature: run.quadrature,
        };
        let trained = train(config, &simulation.train, simulation.width, seconds, 1e-3, 1);
        eprintln!("{}: {} steps, loss {:.4}", run.name, trained.steps, trained.last_loss);
        let directory = models.join(run.name.replace(", ", "-").replace(' ', "-"));
        let card =
            "A model of the experiment `objectives`: a simulation, of no use for photographs.\n";
        trained.diffusion.save(&directory, "geoclip location embedding with noise", card)?;
        let keep = (run.name == DEFAULT).then(|| folder.join("outputs.npy"));
        answer(&trained.diffusion, &simulation, keep.as_deref(), &mut values)?;
    }
    write_npy(&folder.join("predictions.npy"), &[runs().len() + 1, TEST_COUNT, 3], &values)?;
    Ok(Predictions { values, count: TEST_COUNT })
}

/// One pass over the test places: latitude, longitude and NLL of each.
fn answer(
    diffusion: &Diffusion,
    simulation: &Simulation,
    keep: Option<&Path>,
    values: &mut Vec<f32>,
) -> Result<()> {
    let decoder = Decoder::new(MAX_DEGREE);
    let numbers: Vec<usize> = (0..simulation.test.places.len()).collect();
    for rows_of_batch in numbers.chunks(BATCH) {
        let device = diffusion.device();
        let condition = conditions(&simulation.test, rows_of_batch, simulation.width, device);
        let options = SampleOptions { method: Method::OnePass, ..SampleOptions::default() };
        let output = diffusion.sample(Some(condition), rows_of_batch.len(), options, |_| ());
        let outputs = rows(&output);
        if let Some(path) = keep.filter(|_| rows_of_batch[0] == 0) {
            let kept: Vec<f32> = outputs[..KEPT_OUTPUTS]
                .iter()
                .flat_map(|e| e.as_slice().iter().map(|value| *value as f32))
                .collect();
            write_npy(path, &[KEPT_OUTPUTS, outputs[0].as_slice().len()], &kept)?;
        }
        let densities = match diffusion.config().objective.meaning() {
            Meaning::ModeOnly => None,
            _ => diffusion.densities(&output),
        };
        for (k, e) in outputs.iter().enumerate() {
            let place = decoder.mode(e).place;
            let truth = simulation.test.places[rows_of_batch[k]];
            let nll = densities.as_ref().map_or(f64::NAN, |densities| {
                let density = densities[k].log_density(truth).exp();
                -((1.0 - UNIFORM_SHARE) * density + UNIFORM_SHARE * (-UNIFORM_NLL_NATS).exp()).ln()
            });
            values.extend([place.latitude() as f32, place.longitude() as f32, nll as f32]);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Predictions> {
    let mut bytes = Vec::new();
    File::open(path).with_context(|| path.display().to_string())?.read_to_end(&mut bytes)?;
    let file = npyz::NpyFile::new(&bytes[..])?;
    let shape = file.shape().to_vec();
    ensure!(shape.len() == 3 && shape[0] as usize == runs().len() + 1, "{shape:?} is not ours");
    Ok(Predictions { values: file.into_vec()?, count: shape[1] as usize })
}
