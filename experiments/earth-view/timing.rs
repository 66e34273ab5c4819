//! How long the program takes for one picture, from its file to the answer.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use image::imageops::FilterType;
use locdiff_experiments::round;
use serde_json::{Map, Value, json};

const SIDE: u32 = 1024;
const REPEATS: usize = 3;
/// Built by `run`.
const PROGRAM: &str = "target/release/locdiff";

/// Adds the medians of some runs of the program.
pub fn measure(figures: &mut Map<String, Value>) -> Result<()> {
    let folder = Path::new("target/experiments/earth");
    std::fs::create_dir_all(folder)?;
    let picture = folder.join("timing.jpg");
    image::open("examples/madagascar.jpg")?
        .resize_exact(SIDE, SIDE, FilterType::Triangle)
        .save(&picture)?;
    let picture = picture.to_str().context("a name")?;
    for (name, options) in [("predict", vec![]), ("predict_search", vec!["--no-registration"])] {
        let (one, cpu) = median_of(&[&["predict", picture, "--json"], &options[..]].concat())?;
        figures.insert(format!("{name}_s"), json!(round(one)));
        figures.insert(format!("{name}_cpu_s"), json!(round(cpu)));
    }
    Ok(())
}

/// Median seconds of wall and of processor.
fn median_of(arguments: &[&str]) -> Result<(f64, f64)> {
    let mut runs = Vec::new();
    for _ in 0..REPEATS {
        let (before, began) = (processor_seconds_of_children()?, Instant::now());
        let status = Command::new(PROGRAM)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context(PROGRAM)?;
        // 1 and 3 are rejections: the work was done.
        ensure!(status.code().is_some(), "{PROGRAM} was killed");
        runs.push((began.elapsed().as_secs_f64(), processor_seconds_of_children()? - before));
    }
    let middle = |mut numbers: Vec<f64>| {
        numbers.sort_by(f64::total_cmp);
        numbers[numbers.len() / 2]
    };
    Ok((
        middle(runs.iter().map(|run| run.0).collect()),
        middle(runs.iter().map(|run| run.1).collect()),
    ))
}

fn processor_seconds_of_children() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = status.rsplit(") ").next().context("fields")?.split(' ').collect();
    // cutime and cstime are the fields 16 and 17, of which two are before the parenthesis; in hundredths.
    Ok((fields[13].parse::<f64>()? + fields[14].parse::<f64>()?) / 100.0)
}
