//! The paper's comparison with generative methods: accuracy, and density and coverage of the cloud of
//! answers (PRDC, k = 3), on views of the Earth.
//!
//! Measures what `experiments/earth-view/baselines` committed: ten methods on the same embeddings and processor
//! time. There is nothing to train here; `--quick` and the full run are the same.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use locdiff_experiments::baselines::Method;
use locdiff_experiments::paper::{config, shares};
use locdiff_experiments::{read_npy, round};
use locdiff_map::{Chart, Series};
use locdiff_sphere::{LatLon, MANIFOLD_NEIGHBOURS, ManifoldScores};
use serde_json::json;

/// Latitude, longitude and two numbers more.
const FIELDS: usize = 4;
/// As `experiments/earth-view/baselines` numbers them.
const SETS: [&str; 3] = ["three-globe, the unseen source", "flightgear", "like those of training"];
/// The paper's rows for photographs: quoted. City, region, country, continent; density, coverage.
const PAPER: [(&str, &str, &str); 13] = [
    ("OSV-5M", "vMF", "0.6 | 17.2 | 52.7 | – | – | –"),
    ("OSV-5M", "vMFMix", "0.3 | 11.1 | 34.2 | – | – | –"),
    ("OSV-5M", "Diff R³", "3.6 | 40.9 | 75.9 | – | 0.752 | 0.568"),
    ("OSV-5M", "FM R³", "4.2 | 40.0 | 74.9 | – | 0.799 | 0.575"),
    ("OSV-5M", "RFM S²", "5.4 | 44.2 | 76.2 | – | 0.797 | 0.590"),
    ("OSV-5M", "LocDiff, L = 47", "11.0 | 46.3 | 77.0 | 88.2 | 0.795 | 0.572"),
    ("YFCC-4k", "vMF", "4.8 | 15.0 | 30.9 | 53.4 | – | –"),
    ("YFCC-4k", "vMFMix", "0.4 | 8.8 | 20.9 | 41.0 | – | –"),
    ("YFCC-4k", "Diff R³", "11.1 | 37.7 | 54.7 | 71.9 | 0.959 | 0.837"),
    ("YFCC-4k", "FM R³", "22.1 | 35.0 | 53.2 | 73.1 | 1.037 | 0.920"),
    ("YFCC-4k", "RFM S²", "23.7 | 36.4 | 54.5 | 73.6 | 1.060 | 0.926"),
    ("YFCC-4k", "RFM S², 10M steps", "33.5 | 45.3 | 61.1 | 77.7 | – | –"),
    ("YFCC-4k", "LocDiff, L = 47", "33.3 | 46.7 | 65.2 | 79.9 | 1.072 | 0.915"),
];

fn main() -> Result<()> {
    let folder = Path::new("experiments/paper/generative-comparison");
    let config = config(folder)?;
    let from = config["predictions"].as_str().context("config.json doesn't say from where")?;
    let values = read_npy(Path::new(from))?;
    let rows = values.len() / FIELDS / (1 + Method::ALL.len());
    ensure!(rows * FIELDS * (1 + Method::ALL.len()) == values.len(), "not those of baselines");
    let place = |run: usize, row: usize| -> Result<LatLon> {
        let numbers = &values[(run * rows + row) * FIELDS..];
        Ok(LatLon::new(f64::from(numbers[0]), f64::from(numbers[1]))?)
    };
    let set_of = |row: usize| values[row * FIELDS + 2] as usize;
    println!("# Generative comparison\n");
    println!(
        "Rendered views of the Earth (not photographs), embeddings of earth-view's frozen encoder; 30 seconds of one core for each method (see [baselines](../../earth-view/baselines/result.md), whose \
         committed predictions these are). Density and coverage of the answers against the true places, great circles, k = {MANIFOLD_NEIGHBOURS}, the whole set at once.\n"
    );
    let mut figures = json!({});
    let mut chart = Chart::new("coverage", "density")
        .title("The cloud of answers on views of the unseen source")
        .caption("Density above one: answers crowd where true places are. Coverage: share of true places that have an answer among their neighbours.")
        .height_px(520);
    for (set, set_name) in SETS.iter().enumerate() {
        let numbers: Vec<usize> = (0..rows).filter(|row| set_of(*row) == set).collect();
        let truths = numbers.iter().map(|row| place(0, *row)).collect::<Result<Vec<_>>>()?;
        println!("## {set_name}: n = {}\n", truths.len());
        println!(
            "| method | ≤ 25 km, % | ≤ 200 km | ≤ 750 km | ≤ 2500 km | density | coverage | precision | recall |\n|---|---|---|---|---|---|---|---|---|"
        );
        for (k, method) in Method::ALL.iter().enumerate() {
            let places =
                numbers.iter().map(|row| place(k + 1, *row)).collect::<Result<Vec<_>>>()?;
            let within = shares(&places, &truths)?;
            let cloud = ManifoldScores::of(&places, &truths, MANIFOLD_NEIGHBOURS)?;
            println!(
                "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.3} | {:.3} | {:.3} | {:.3} |",
                method.name(),
                within[1],
                within[2],
                within[3],
                within[4],
                cloud.density,
                cloud.coverage,
                cloud.precision,
                cloud.recall,
            );
            if set == 0 {
                chart =
                    chart.series(Series::points(method.name(), [(cloud.coverage, cloud.density)]));
                let key = match method {
                    // The name that it had.
                    Method::ReverseKl => "published".to_owned(),
                    _ => format!("{method:?}").to_lowercase(),
                };
                figures["n"] = json!(truths.len());
                figures[format!("{key}_density")] = json!(round(cloud.density));
                figures[format!("{key}_coverage")] = json!(round(cloud.coverage));
            }
        }
        println!();
    }
    std::fs::write(folder.join("generative-comparison.png"), chart.draw().png())?;
    println!("![density against coverage](generative-comparison.png)\n");
    println!(
        "What the paper reports for photographs (quoted, its peers' rows as it reports them):\n"
    );
    println!(
        "| data | method | ≤ 25 km, % | ≤ 200 km | ≤ 750 km | ≤ 2500 km | density | coverage |\n|---|---|---|---|---|---|---|---|"
    );
    for (data, name, row) in PAPER {
        println!("| {data} | {name} | {row} |");
    }
    println!("\n{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    println!("\n{figures}");
    Ok(())
}
