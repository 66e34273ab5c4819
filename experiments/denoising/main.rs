//! The paper's figure of the denoising after 0, 10, 20, 100 and 200 steps, by the model inside the
//! program: two views from above, each from two seeds.
//!
//! What is drawn is the density that the model believes in at that step: under likelihood the output is
//! a density at every step. `--quick` draws into target/.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use burn::tensor::Device;
use locdiff::{EarthView, Geolocator, Photo};
use locdiff_experiments::round;
use locdiff_map::{ColourBar, Map, Panels, Projection, Scale};
use locdiff_sphere::{Decoder, Integrator};
use serde_json::json;

const PICTURES: [&str; 2] = ["examples/madagascar.jpg", "examples/sinai.jpg"];
const SEEDS: [u64; 2] = [1, 2];
const SHOWN: [usize; 5] = [0, 10, 20, 100, 200];
/// More than the schedule has, so that every step is given.
const ALL: usize = 1000;

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let folder =
        PathBuf::from(if quick { "target/experiments/denoising" } else { "experiments/denoising" });
    std::fs::create_dir_all(&folder)?;
    let model = Geolocator::from_model(EarthView::built_in(&Device::flex()));
    println!("# Denoising, step by step\n");
    println!(
        "What earth-view's denoiser believes after so many steps of DDPM (the paper's sampler, 200 levels), for two views and two seeds. Width is the radius around the mode that holds half.\n"
    );
    println!("| picture | seed | step | mode | half within, km |\n|---|---|---|---|---|");
    let mut panels = Panels::new().columns(SHOWN.len());
    let mut figures = json!({ "n": PICTURES.len() * SEEDS.len() });
    for picture in PICTURES {
        let photo = Photo::open(Path::new(picture))?;
        for seed in SEEDS {
            let mut steps = model.denoising(&photo, ALL, seed);
            steps.dedup_by_key(|step| step.0);
            ensure!(!steps.is_empty(), "the model inside the program has no denoiser");
            let last = steps.len() - 1;
            figures["steps"] = json!(last + 1);
            for step in SHOWN.map(|step| step.min(last)) {
                let e = &steps[step].1;
                let density = Integrator::new(e.max_degree()).exponential(e);
                let mode = Decoder::new(e.max_degree()).mode(e).place;
                let survey = density.survey();
                let half_km = half_within_km(|km| survey.probability_within(mode, km));
                let name = Path::new(picture).file_stem().unwrap_or_default().to_string_lossy();
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
        .title("From noise to a place: what the model believes after so many steps")
        .caption("The model inside the program on examples/madagascar.jpg and examples/sinai.jpg, two seeds each.");
    std::fs::write(folder.join("denoising.png"), sheet.draw().png())?;
    println!("\n![denoising](denoising.png)\n");
    println!("{}", std::fs::read_to_string("experiments/denoising/reading.md")?.trim());
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
