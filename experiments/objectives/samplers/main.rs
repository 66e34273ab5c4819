//! One pass or many steps? Samplers compared on the simulation.
//!
//! The model is the row `objective-likelihood` of `experiments/paper`. Several draws are one
//! answer: the draw nearest to all others, or the paper's mean of them (on the sphere), and
//! the mixture of their densities. Cost is time, against one pass. Then: do samples follow
//! the one-pass density, as they must? And the paper's picture of the denoising. `--quick`
//! scores and draws what is committed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use locdiff::diffusion::{Diffusion, Method, SampleOptions, coefficients_of};
use locdiff_experiments::draws::{FIELDS, draw_all};
use locdiff_experiments::paper::Task;
use locdiff_experiments::{read_npy, round, write_npy};
use locdiff_map::{Chart, ColourBar, Map, Panels, Projection, Scale, Series};
use locdiff_sphere::{Coefficients, Integrator, LatLon, PointScores};
use serde_json::{Value, json};

const COUNT: usize = 300;
const DRAWS: [usize; 3] = [1, 4, 16];
/// Draws per place that are compared with the density.
const COMPARED: usize = 4;
/// The paper's figure shows the denoising after so many steps.
const SHOWN_STEPS: [usize; 5] = [0, 10, 20, 100, 200];

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
    let folder = Path::new("experiments/objectives/samplers");
    match arguments.next().as_deref() {
        Some("--quick") => {}
        Some("--sample") => {
            let model = PathBuf::from(arguments.next().context("--sample MODEL")?);
            sample_all(&model, folder)?;
            keep_steps(&model, folder)?;
        }
        Some("--steps") => {
            let model = PathBuf::from(arguments.next().context("--steps MODEL")?);
            keep_steps(&model, folder)?;
        }
        _ => anyhow::bail!("--quick, --sample MODEL, or --steps MODEL"),
    }
    report(folder)?;
    draw_denoising(folder)
}

/// `[1 + methods · draws, place, field]`, the truth first.
fn report(folder: &Path) -> Result<()> {
    let values = read_npy(&folder.join("predictions.npy"))?;
    let size = FIELDS * COUNT;
    ensure!(values.len() == (METHODS.len() * DRAWS.len() + 1) * size, "not our predictions");
    let about: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("about.json"))?)?;
    let row = |k: usize| values[k * size..(k + 1) * size].chunks_exact(FIELDS);
    let places = |k: usize, first: usize| -> Vec<LatLon> {
        let place = |v: &[f32]| LatLon::new(v[first].into(), v[first + 1].into());
        row(k).map(|v| place(v).unwrap()).collect()
    };
    let truths = places(0, 0);
    println!("# Samplers, compared on a simulation\n");
    println!(
        "n = {COUNT} of Im2GPS3k's places with made-up images; the model `objective-likelihood` of experiments/paper. Several draws \
         answer with the one nearest to all others, or with their mean on the sphere as the \
         paper does. Time is processor time of the sampling, against one pass.\n"
    );
    println!(
        "| sampler | draws | ≤ 25 km, % | ≤ 200 km, % | ≤ 750 km, % | ≤ 200 km by the mean, % | median km | NLL, nat | time, × one pass |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut figures = serde_json::Map::new();
    let (mut accuracies, mut nlls) = (DRAWS.map(|_| Vec::new()), DRAWS.map(|_| Vec::new()));
    for (m, (name, _)) in METHODS.iter().enumerate() {
        for (d, draws) in DRAWS.iter().enumerate() {
            let k = 1 + m * DRAWS.len() + d;
            let scores = PointScores::of(&places(k, 0), &truths)?;
            let share = |radius| 100.0 * scores.accuracy(radius).value();
            let by_mean = PointScores::of(&places(k, 2), &truths)?;
            let by_mean = 100.0 * by_mean.accuracy(200.0).value();
            let nll = row(k).map(|v| f64::from(v[4])).sum::<f64>() / COUNT as f64;
            let time = about["times_one_pass"][m].as_f64().unwrap_or(f64::NAN) * *draws as f64;
            println!(
                "| {name} | {draws} | {:.1} | {:.1} | {:.1} | {by_mean:.1} | {:.0} | {nll:.2} | {time:.0} |",
                share(25.0),
                share(200.0),
                share(750.0),
                scores.median_km().value(),
            );
            accuracies[d].push((time, share(200.0)));
            nlls[d].push((time, nll));
            if *draws == 16 || *name == "one pass" && *draws == 1 {
                let key = name.replace(' ', "_").to_lowercase();
                figures.insert(format!("{key}_{draws}_within_200"), json!(round(share(200.0))));
            }
        }
    }
    let chart = |what: &str, series: [Vec<(f64, f64)>; 3]| {
        let mut chart = Chart::new("time, × one pass", what).log_x().height_px(360);
        for (draws, points) in DRAWS.iter().zip(series) {
            let name = if *draws == 1 { "1 draw".into() } else { format!("{draws} draws") };
            chart = chart.series(Series::line(name, points).joined());
        }
        chart
    };
    let accuracy = chart("within 200 km, %", accuracies).y_range(0.0..=100.0);
    let nll = chart("NLL, nat (lower is better)", nlls);
    let sheet = Panels::new()
        .columns(1)
        .panel("", accuracy.draw())
        .panel("", nll.draw())
        .title("One pass, DDIM 5 / 10 / 20 / 50, DDPM 200, from left to right")
        .caption("A simulation: it compares samplers, and says nothing about photographs.");
    std::fs::write(folder.join("samplers.png"), sheet.draw().png())?;
    println!("\n![accuracy against time](samplers.png)\n");
    let (n, ddim, ddpm) = (&about["ks_n"], &about["ks_ddim_50"], &about["ks_ddpm_200"]);
    println!(
        "NLL of several draws is that of the mixture of their densities with a hundredth of the \
         uniform one; of few sharp draws mostly that hundredth is left.\n\n\
         Do samples follow the density of the one pass? A place is drawn from what the last noise \
         level leaves open. The levels at which the one-pass density holds such places would then \
         be uniform. Largest distance of their distribution to the uniform one, \
         n = {n}: {ddpm} for DDPM 200, {ddim} for DDIM 50; by chance it exceeds {:.3} in one of a \
         thousand cases.",
        1.95 / n.as_f64().unwrap_or(1.0).sqrt(),
    );
    println!("A simulation: it compares samplers, and says nothing about photographs.");
    figures.insert("n".into(), json!(COUNT));
    figures.insert("ks_ddpm_200".into(), ddpm.clone());
    figures.insert("ks_ddim_50".into(), ddim.clone());
    println!("\n{}", Value::Object(figures));
    Ok(())
}

/// The densities at some steps of one denoising, on maps side by side.
fn draw_denoising(folder: &Path) -> Result<()> {
    let values = read_npy(&folder.join("steps.npy"))?;
    // The last number of each row is the step.
    let rows = values.chunks_exact(values.len() / SHOWN_STEPS.len());
    let mut panels = Panels::new().columns(3);
    for row in rows {
        let (step, e) = row.split_last().context("an empty row")?;
        let e = Coefficients::from_vec(e.iter().map(|value| f64::from(*value)).collect())?;
        let density = Integrator::new(e.max_degree()).exponential(&e);
        let picture = Map::new(Projection::EqualEarth)
            .width_px(520)
            .field(|place| density.log_density(place))
            .scale(Scale::log_decades(4.0))
            .colour_bar(ColourBar::Hidden)
            .draw();
        panels = panels.panel(format!("step {step}"), picture);
    }
    let sheet = panels
        .title("A place drawn without any image: the model's density after each number of steps of DDPM")
        .caption(
            "Step 0 is the prior: where the photographs of MP16 were taken. The last picture is where \
             nothing is left to decide. Model `objective-likelihood` of experiments/paper, a simulation.",
        );
    std::fs::write(folder.join("denoising.png"), sheet.draw().png())?;
    Ok(())
}

fn sample_all(model: &Path, folder: &Path) -> Result<()> {
    let Task { test, simulation, .. } = Task::build()?;
    let diffusion = Diffusion::open(model, &Device::flex())?;
    // Every tenth place.
    let rows = test.conditions.chunks_exact(simulation.width).step_by(10).take(COUNT);
    let condition = diffusion.condition(rows.flatten().copied().collect());
    let truths: Vec<LatLon> = test.places.iter().step_by(10).take(COUNT).copied().collect();
    let mut values: Vec<f32> = Vec::new();
    for place in &truths {
        values.extend([place.latitude() as f32, place.longitude() as f32, 0.0, 0.0, 0.0]);
    }
    let one_pass =
        diffusion.sample(Some(condition.clone()), COUNT, SampleOptions::default(), |_| ());
    let one_pass = diffusion.densities(&one_pass).context("no densities")?;
    let surveys: Vec<_> = one_pass.iter().map(|density| density.survey()).collect();
    let mut times = Vec::new();
    let mut distances = serde_json::Map::new();
    for (name, method) in METHODS {
        let sampled = draw_all(&diffusion, method, &condition, &truths, [DRAWS[2], COMPARED])?;
        times.push(sampled.seconds_per_draw);
        for draws in DRAWS {
            for k in 0..COUNT {
                values.extend(sampled.answer(k, draws).map(|value| value as f32));
            }
        }
        if let Method::Ddim(50) | Method::Ddpm = method {
            let levels = sampled.drawn.iter().flat_map(|row| {
                row.iter().zip(&surveys).map(|(place, survey)| survey.outcome(*place).level)
            });
            let key = format!("ks_{}", name.replace(' ', "_").to_lowercase());
            distances.insert(key, json!(round(distance_to_uniform(levels.collect()))));
        }
        eprintln!("{name}: {:.1} s per draw", sampled.seconds_per_draw);
    }
    distances.insert("ks_n".into(), json!(COMPARED * COUNT));
    let relative: Vec<f64> = times.iter().map(|time| round(time / times[0])).collect();
    distances.insert("times_one_pass".into(), json!(relative));
    let about = format!("{:#}\n", Value::Object(distances));
    std::fs::write(folder.join("about.json"), about)?;
    let shape = [METHODS.len() * DRAWS.len() + 1, COUNT, FIELDS];
    write_npy(&folder.join("predictions.npy"), &shape, &values)
}

/// The outputs that the paper's figure shows, for one place drawn without a condition; the
/// last number of each row is the step. Levels are left out where nothing is left to decide.
fn keep_steps(model: &Path, folder: &Path) -> Result<()> {
    let device = Device::flex();
    let diffusion = Diffusion::open(model, &device)?;
    let options = SampleOptions { method: Method::Ddpm, seed: 1, ..SampleOptions::default() };
    let mut outputs = Vec::new();
    diffusion.sample(None, 1, options, |step| outputs.extend(coefficients_of(step.output)));
    let mut kept: Vec<f32> = Vec::new();
    for step in SHOWN_STEPS {
        let step = step.min(outputs.len() - 1);
        kept.extend(outputs[step].as_slice().iter().map(|value| *value as f32));
        kept.push(step as f32);
    }
    let shape = [SHOWN_STEPS.len(), kept.len() / SHOWN_STEPS.len()];
    write_npy(&folder.join("steps.npy"), &shape, &kept)
}

/// The largest distance between the distribution of numbers and the uniform one on [0, 1].
fn distance_to_uniform(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let count = numbers.len() as f64;
    let gap = |(k, number): (usize, &f64)| {
        (number - k as f64 / count).abs().max((number - (k + 1) as f64 / count).abs())
    };
    numbers.iter().enumerate().map(gap).fold(0.0, f64::max)
}
