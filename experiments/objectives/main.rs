//! Which objective should a network be trained for?
//!
//! Every objective, with both ways to take its integrals, gets the same seconds, network,
//! optimiser and data: a simulation with real places (see `simulation.rs`). Answers come in
//! one pass, from the mode. `--quick` scores the committed predictions; the full run needs
//! GeoCLIP's wheel and trains.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::{
    DenoiserConfig, Diffusion, DiffusionConfig, Loss, Meaning, Method, Objective, Quadrature,
    SampleOptions, ScheduleConfig, coefficients_of,
};
use locdiff::models::DiffusionAbout;
use locdiff_experiments::simulation::{Simulation, TEST_COUNT};
use locdiff_experiments::training::{BATCH, conditions, train};
use locdiff_experiments::{round, write_npy};
use locdiff_sphere::{
    ACCURACY_RADII_KM, Basis, Coefficients, Decoder, Integrator, LatLon, PointScores,
    UNIFORM_NLL_NATS, uniform_place,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

const MAX_DEGREE: usize = 23;
const RATE: f64 = 1e-3;
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
/// As many rings as a clean encoding needs: 144 at this degree.
const TRANSFORM: Quadrature = Quadrature::Transform(0);
/// What the product uses.
const DEFAULT: &str = "likelihood, transform";
/// The paper's objective and integrals; network, optimiser and noise levels are the same for all.
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
    report(&predictions, folder)
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

fn report(predictions: &Predictions, folder: &Path) -> Result<()> {
    let truths = predictions.places(0);
    println!("# Objectives, compared on a simulation\n");
    let about: Value = serde_json::from_slice(&std::fs::read(folder.join("training.json"))?)?;
    println!(
        "n = {} test places, at least 1 km from each of {} training places; L = {MAX_DEGREE}, one \
         pass, answers by the mode. Each run had {} seconds of one core. Nearest neighbour \
         among the clean embeddings of the training places: {} % within 200 km. Cosine, L1 and L2 \
         contain no integral, so anchors and transform are the same for them. Shares are good to about \
         2 points either way; one seed, one learning rate, one network for all.\n",
        truths.len(),
        about["training_places"],
        about["runs"][DEFAULT]["seconds"],
        about["retrieval_within_200"],
    );
    print!("| objective | steps | ");
    ACCURACY_RADII_KM.iter().for_each(|radius| print!("≤ {radius} km, % | "));
    println!("median km | NLL, nat |\n|---|---|---|---|---|---|---|---|---|");
    let mut within_200: Vec<(&str, f64)> = Vec::new();
    let mut by_likelihood: Vec<(&str, f64)> = Vec::new();
    for (k, run) in runs().iter().enumerate() {
        let scores = PointScores::of(&predictions.places(k + 1), &truths)?;
        let shares = ACCURACY_RADII_KM.map(|radius| 100.0 * scores.accuracy(radius).value());
        print!("| {} | {} | ", run.name, about["runs"][run.name]["steps"]);
        shares.iter().for_each(|share| print!("{share:.1} | "));
        by_likelihood.extend(predictions.nll(k + 1).map(|nll| (run.name, nll)));
        let nll = predictions.nll(k + 1).map_or("none".into(), |nll| format!("{nll:.2}"));
        println!("{:.0} | {nll} |", scores.median_km().value());
        within_200.push((run.name, shares[2]));
    }
    println!(
        "\nNLL with {UNIFORM_SHARE} of the uniform density mixed in; uniform alone: {UNIFORM_NLL_NATS:.2}."
    );
    println!("A simulation: it compares objectives, and says nothing about photographs.");
    let of = |name: &str| within_200.iter().find(|run| run.0 == name).map_or(0.0, |run| run.1);
    let likeliest = by_likelihood.iter().min_by(|a, b| a.1.total_cmp(&b.1)).context("no runs")?;
    println!(
        "\nThe default is what gives the truth the highest probability: {}. Objectives without a \
         density may come nearer with their one answer, but can't say how sure they are.",
        likeliest.0
    );
    ensure!(likeliest.0 == DEFAULT, "the default is {DEFAULT}, the table says {}", likeliest.0);
    let errors = errors_of_training_integral(&folder.join("outputs.npy"))?;
    let (typical, hidden) = (errors[errors.len() / 2], errors[errors.len() - 1]);
    println!(
        "\nDoes training see its own peaks? On {KEPT_OUTPUTS} outputs of the default the integral \
         that training took (a turned grid) is off by {typical:.3} nat in the middle and {hidden:.3} at \
         most from the exact one: some outputs are sharper than the clean encodings that it resolves."
    );
    let best = within_200.iter().max_by(|a, b| a.1.total_cmp(&b.1)).context("no runs")?;
    let figures = json!({
        "n": truths.len(),
        "default": DEFAULT,
        "training_integral_error_nat": round(hidden),
        "best": best.0,
        "within_200": round(of(DEFAULT)),
        "paper_within_200": round(of(PAPER)),
    });
    println!("\n{figures}");
    Ok(())
}

/// The errors of A(e), as training takes it, on kept outputs and three turned grids each; sorted.
fn errors_of_training_integral(path: &Path) -> Result<Vec<f64>> {
    let device = Device::flex();
    let loss = Loss::new(Objective::Likelihood, TRANSFORM, MAX_DEGREE, &device);
    let (integrator, basis) = (Integrator::new(MAX_DEGREE), Basis::new(MAX_DEGREE));
    let mut bytes = Vec::new();
    File::open(path).with_context(|| path.display().to_string())?.read_to_end(&mut bytes)?;
    let values: Vec<f32> = npyz::NpyFile::new(&bytes[..])?.into_vec()?;
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut errors = Vec::new();
    for row in values.chunks_exact(basis.len()) {
        let e = Coefficients::from_vec(row.iter().map(|value| f64::from(*value)).collect())?;
        let exact = integrator.log_integral_exp(&e).value;
        for _ in 0..3 {
            let place = uniform_place(&mut rng);
            let output = Tensor::from_data(TensorData::new(row.to_vec(), [1, row.len()]), &device);
            let value = loss.mean(output, &[place], &mut rng).into_scalar::<f32>();
            let integral = f64::from(value) + e.value_at(&basis, place);
            errors.push((integral - exact).abs());
        }
    }
    errors.sort_by(f64::total_cmp);
    Ok(errors)
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
    let trained = train_in_parallel(&simulation, seconds, models)?;
    let mut trainings = serde_json::Map::new();
    let mut values: Vec<f32> = Vec::new();
    for place in &simulation.test.places {
        values.extend([place.latitude() as f32, place.longitude() as f32, 0.0]);
    }
    for (run, (diffusion, training)) in runs().iter().zip(trained) {
        trainings.insert(run.name.into(), training);
        let keep = (run.name == DEFAULT).then(|| folder.join("outputs.npy"));
        answer(&diffusion, &simulation, keep.as_deref(), &mut values)?;
    }
    write_npy(&folder.join("predictions.npy"), &[runs().len() + 1, TEST_COUNT, 3], &values)?;
    let about = json!({
        "training_places": simulation.train.places.len(),
        "noise": round(simulation.noise),
        "retrieval_within_200": round(simulation.retrieval_within_200),
        "runs": trainings,
    });
    std::fs::write(folder.join("training.json"), format!("{about:#}\n"))?;
    Ok(Predictions { values, count: TEST_COUNT })
}

/// All runs, two at a time, one thread each.
fn train_in_parallel(
    simulation: &Simulation,
    seconds: f64,
    models: &Path,
) -> Result<Vec<(Diffusion, Value)>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let runs = runs();
            let Some(run) = runs.get(number) else { return Ok(()) };
            let trained = pool.install(|| train_one(run, simulation, seconds, models))?;
            eprintln!("{}: {}", run.name, trained.1);
            done.lock().unwrap().push((number, trained));
        }
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().try_for_each(|worker| worker.join().unwrap())
    })?;
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, trained)| trained).collect())
}

/// A run that was finished before an interruption is not done again.
fn train_one(
    run: &Run,
    simulation: &Simulation,
    seconds: f64,
    models: &Path,
) -> Result<(Diffusion, Value)> {
    let directory = models.join(run.name.replace(", ", "-").replace(' ', "-"));
    let about = directory.join("training.json");
    if about.exists() {
        let training: Value = serde_json::from_slice(&std::fs::read(&about)?)?;
        ensure!(training["seconds"] == json!(seconds), "{about:?} is of another budget");
        return Ok((Diffusion::open(&directory, &Device::flex())?, training));
    }
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
    let trained = train(config, &simulation.train, simulation.width, seconds, RATE, 1);
    let card = "A model of the experiment `objectives`: a simulation, of no use for photographs.\n";
    let model = DiffusionAbout::of_embeddings("geoclip location embedding with noise");
    trained.diffusion.save(&directory, &model, card)?;
    let training = json!({
        "seconds": seconds,
        "steps": trained.steps,
        "last_loss": round(trained.last_loss),
    });
    std::fs::write(&about, training.to_string())?;
    Ok((trained.diffusion, training))
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
        let outputs = coefficients_of(&output);
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
