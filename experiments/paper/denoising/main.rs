//! The paper's figure of the denoising after 0, 10, 20, 100 and 200 steps, by the example
//! model: two views from above, each from two seeds.
//!
//! What is drawn is the density that the model predicts at that step: under likelihood the output is
//! a density at every step. `--quick` draws into target/.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use locdiff::{Geolocator, InferenceOptions, Photo};
use locdiff_experiments::paper::config;
use locdiff_experiments::round;
use locdiff_map::{ColourBar, Map, Panels, Projection, Scale};
use locdiff_sphere::Density;
use serde::Deserialize;
use serde_json::json;

/// `config.json`.
#[derive(Deserialize)]
struct Config {
    model: String,
    pictures: Vec<PathBuf>,
    seeds: Vec<u64>,
    steps_shown: Vec<usize>,
    /// Of the circle that samples should end in as often as the first step says.
    near_km: f64,
    samples: u64,
}

/// More than the schedule has, so that every step is given.
const ALL: usize = 1000;

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let folder = PathBuf::from(if quick {
        "target/experiments/denoising"
    } else {
        "experiments/paper/denoising"
    });
    std::fs::create_dir_all(&folder)?;
    let Config { model, pictures, seeds, steps_shown, near_km, samples } =
        serde_json::from_value(config("experiments/paper/denoising".as_ref())?)?;
    let model = Geolocator::open(&model)?;
    let with_seed = |seed: u64| {
        model.with(&InferenceOptions { seed: Some(seed), ..InferenceOptions::default() })
    };
    println!("# Denoising, step by step\n");
    println!(
        "The density that the example model (`examples/models/earth`, trained on renderings) predicts after so many steps of DDPM (the paper's sampler, 200 levels), for two rendered views (not photographs) and two seeds. Width is the radius around the mode that holds half.\n"
    );
    println!("| picture | seed | step | mode | half within, km |\n|---|---|---|---|---|");
    let mut panels = Panels::new().columns(steps_shown.len());
    let mut figures = json!({ "n": pictures.len() * seeds.len() });
    for picture in &pictures {
        let photo = Photo::open(picture)?;
        for seed in seeds.iter().copied() {
            let mut steps = with_seed(seed)?.denoising(&photo, ALL);
            steps.dedup_by_key(|frame| frame.step);
            ensure!(!steps.is_empty(), "the model has no denoiser");
            let last = steps.len() - 1;
            figures["steps"] = json!(last + 1);
            for step in steps_shown.iter().map(|step| *step.min(&last)) {
                let density = steps[step].density.density()?;
                let survey = density.survey();
                let mode = survey.modes().modes[0].place;
                let half_km = half_within_km(|km| survey.probability_within(mode, km));
                let name = picture.file_stem().unwrap_or_default().to_string_lossy();
                println!(
                    "| {name} | {seed} | {step} | {:.1}, {:.1} | {half_km:.0} |",
                    mode.latitude(),
                    mode.longitude()
                );
                figures[format!("{name}_{seed}_step_{step}_half_km")] = json!(round(half_km));
                let map = Map::new(Projection::EqualEarth)
                    .width_px(300)
                    .field(|place| density.log_density(place))
                    .scale(Scale::log_decades(4.0))
                    .colour_bar(ColourBar::Hidden)
                    .draw();
                panels = panels.panel(format!("{name}, step {step}"), map);
            }
        }
    }
    let sheet = panels
        .title("From noise to a place: the model's density after each number of steps")
        .caption(
            "The example model on examples/madagascar.jpg and examples/sinai.jpg, two seeds each.",
        );
    std::fs::write(folder.join("denoising.png"), sheet.draw().png())?;
    println!("\n![denoising](denoising.png)\n");
    let samples = if quick { 8 } else { samples };
    println!(
        "Do samples end where the first step says? Of {samples} samples the share that ends within {near_km} km of the first sample's first mode, and the probability that the \
         first steps give that circle, in the mean:\n\n| picture | first step says, % | samples end there, % |\n|---|---|---|"
    );
    for picture in &pictures {
        let photo = Photo::open(picture)?;
        let (mut said, mut ended, mut centre) = (0.0, 0, None);
        for seed in 1..=samples {
            let ends = with_seed(seed)?.denoising(&photo, 2);
            let [first, last] = [ends[0].density.density()?, ends[1].density.density()?];
            let mode = |density: &Density| density.survey().modes().modes[0].place;
            let centre = *centre.get_or_insert_with(|| mode(&first));
            said += first.survey().probability_within(centre, near_km);
            ended += usize::from(mode(&last).distance_km(centre) <= near_km);
        }
        let percent = |share: f64| 100.0 * share / samples as f64;
        let name = picture.file_stem().unwrap_or_default().to_string_lossy();
        println!("| {name} | {:.1} | {:.1} |", percent(said), percent(ended as f64));
        figures[format!("{name}_said_percent")] = json!(round(percent(said)));
        figures[format!("{name}_ended_percent")] = json!(round(percent(ended as f64)));
        figures["samples"] = json!(samples);
    }
    println!();
    println!("{}", std::fs::read_to_string("experiments/paper/denoising/reading.md")?.trim());
    println!("\n{figures}");
    Ok(())
}

/// The radius that holds half, to one percent.
fn half_within_km(probability_within: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1.0_f64, 20_015.0_f64);
    while high / low > 1.01 {
        let middle = (low * high).sqrt();
        if probability_within(middle) < 0.5 { low = middle } else { high = middle }
    }
    high
}
