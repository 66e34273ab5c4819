//! Which objective should a network be trained for? Every objective, with both ways to take its integrals, has the same steps,
//! network, optimizer and data; answers come in one pass, from the mode. Densities are judged by what they give the truth.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::{Loss, Objective, Quadrature};
use locdiff_experiments::paper::{cells, shares, table_head};
use locdiff_experiments::{places_of, read_npy, round};
use locdiff_sphere::{
    Basis, Coefficients, Integrator, PointScores, UNIFORM_NLL_NATS, uniform_place,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::rows::{How, Rows};
use crate::runs::{KEPT_OUTPUTS, Run, UNIFORM_SHARE};

const MAX_DEGREE: usize = 23;
/// What the product uses.
const DEFAULT: &str = "objective-likelihood";
/// The paper's objective and integrals; network, optimizer and noise levels are the same for all.
const PAPER: &str = "objective-reverse-kl";
const ROWS: [&str; 7] = [
    PAPER,
    "objective-reverse-kl-transform",
    "objective-likelihood-anchors",
    DEFAULT,
    "loss-cosine",
    "loss-l1",
    "loss-l2",
];

pub fn report(rows: &Rows) -> Result<()> {
    let truths = places_of(&read_npy(&Run::folder().join("truths.npy"))?)?;
    println!("# Objectives, compared on a simulation\n");
    println!(
        "Im2GPS3k's places (n = {}) with made-up images; L = {MAX_DEGREE}, one pass, answers by the mode. Trained by `locdiff train`'s loop \
         (rows of experiments/paper/rows.toml), one seed. Cosine, L1 and L2 contain no integral, so anchors and transform are the same for \
         them, and they give no density.\n",
        truths.len(),
    );
    println!("{}", table_head("objective | steps × batch | CPU s", "median km | NLL, nat"));
    let mut within_200: Vec<(&str, f64)> = Vec::new();
    let mut by_likelihood: Vec<(&str, f64)> = Vec::new();
    for name in ROWS {
        let row = rows.find(name)?;
        let run = Run::read(row, 1)?.with_context(|| format!("{name} was not run"))?;
        let places = places_of(&read_npy(&Run::path(name, 1, How::OnePass))?)?;
        let of_row = shares(&places, &truths)?;
        let median_km = PointScores::of(&places, &truths)?.median_km().value();
        let mut nll = "none".to_owned();
        if row.answers.contains(&How::Nll) {
            let nlls = read_npy(&Run::path(name, 1, How::Nll))?;
            let mean = nlls.iter().map(|nll| f64::from(*nll)).sum::<f64>() / nlls.len() as f64;
            by_likelihood.push((name, mean));
            nll = format!("{mean:.2}");
        }
        println!(
            "| {} | {} × {} | {:.0} | {} | {median_km:.0} | {nll} |",
            row.title,
            run.steps,
            run.batch,
            run.training_s,
            cells(&of_row)
        );
        within_200.push((name, of_row[2]));
    }
    println!(
        "\nNLL with {UNIFORM_SHARE} of the uniform density mixed in; uniform alone: {UNIFORM_NLL_NATS:.2}."
    );
    println!("A simulation: it compares objectives, and says nothing about photographs.");
    let of = |name: &str| within_200.iter().find(|run| run.0 == name).map_or(0.0, |run| run.1);
    let title = |name: &str| rows.find(name).map(|row| row.title.clone());
    let likeliest = by_likelihood.iter().min_by(|a, b| a.1.total_cmp(&b.1)).context("no rows")?.0;
    println!(
        "\nThe default is what gives the truth the highest probability: {}.",
        title(likeliest)?
    );
    ensure!(likeliest == DEFAULT, "the default is {DEFAULT}, the table says {likeliest}");
    let errors = errors_of_training_integral(&Run::path(DEFAULT, 1, How::Outputs))?;
    let (typical, hidden) = (errors[errors.len() / 2], errors[errors.len() - 1]);
    println!(
        "\nDoes training see its own peaks? On {KEPT_OUTPUTS} outputs of the default the integral \
         that training took (a turned grid) is off by {typical:.3} nat in the middle and {hidden:.3} at \
         most from the exact one."
    );
    let best = within_200.iter().max_by(|a, b| a.1.total_cmp(&b.1)).context("no rows")?;
    let figures = json!({
        "n": truths.len(),
        "default": title(DEFAULT)?,
        "training_integral_error_nat": round(hidden),
        "best": title(best.0)?,
        "within_200": round(of(DEFAULT)),
        "paper_within_200": round(of(PAPER)),
    });
    println!("\n{figures}");
    Ok(())
}

/// The errors of A(e), as training takes it, on kept outputs and three turned grids each; sorted.
fn errors_of_training_integral(path: &Path) -> Result<Vec<f64>> {
    let device = Device::flex();
    let loss = Loss::new(Objective::Likelihood, Quadrature::default(), MAX_DEGREE, &device);
    let (integrator, basis) = (Integrator::new(MAX_DEGREE), Basis::new(MAX_DEGREE));
    let values = read_npy(path)?;
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
