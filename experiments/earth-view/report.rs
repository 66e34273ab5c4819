//! Tables of the committed predictions.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, Result};
use locdiff::geography::{Continent, continent_at};
use locdiff_earth::Shows;
use locdiff_experiments::round;
use locdiff_map::{Chart, Series};
use locdiff_sphere::{
    DensityOutcome, DensityScores, LatLon, PointScores, RECALL_AREAS_KM2, Resampling, Score,
    UNIFORM_NLL_NATS,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::pack::is_for_calibration;
use crate::pictures::{cost, other_pictures, real_photographs};
use crate::predictions::{Prediction, WITH_CIRCLE, by_set, open_model, read_predictions};
use crate::real;
use crate::sets::SETS;

/// The grid of the outcomes tells no smaller areas apart: a node stands for 7,000 km².
const LEAST_AREA_KM2: f64 = 1e5;

const WIDTHS: [[f64; 2]; 4] = [[100.0, 250.0], [250.0, 500.0], [500.0, 1000.0], [1000.0, 2000.0]];

pub fn report(folder: &Path) -> Result<()> {
    let model = open_model(Path::new("crates/locdiff/models/earth-view/model.safetensors"))?;
    let sets = by_set(read_predictions(&folder.join("predictions.npy"), &model)?);
    println!("# earth-view\n");
    let real = real::report().unwrap_or_else(|error| {
        println!("The real pictures were not at hand: {error}\n");
        Map::new()
    });
    println!("## Rendered views\n");
    println!(
        "Answers of one pass on rendered views that the model never saw, with 95 % bootstrap intervals; \
         retrieval takes the place of the nearest of 100,000 views like those of training, by the same encoder, in four directions as ours. \
         Zoom 7 is the source of training itself, flightgear's file holds the same map; three-globe is the most independent source, and only the half of its views counts that did not calibrate. \
         Rendered like training: see docs/earth-view.md.\n"
    );
    by_source(&sets)?;
    by_width(&sets)?;
    by_continent(&sets)?;
    with_circle(&sets)?;
    domain(&sets);
    open_sea(&sets)?;
    reliability(&sets, &folder.join("reliability.png"))?;
    println!("\n![Do regions hold what they say?](reliability.png)");
    let mut figures = headline(&sets)?;
    let (total_ms, map_ms) = cost(&model)?;
    figures["total_ms"] = json!(round(total_ms));
    figures["map_ms"] = json!(round(map_ms));
    for (name, figure) in real {
        figures[name] = figure;
    }
    println!(
        "\nOne decoded photograph of 1024 × 1024 pixels takes {total_ms:.1} ms until its density is known, {map_ms:.1} ms of which are the head and the density.\n"
    );
    if let Err(error) = other_pictures(&model) {
        println!(
            "Pictures of other things were not at hand ({error}): run experiments/earth-view/fetch\n"
        );
    }
    if let Err(error) = real_photographs(&model, &folder.join("photographs.jpg")) {
        println!("The real photographs were not at hand: {error}\n");
    }
    println!("{figures}");
    Ok(())
}

fn points(answers: Vec<LatLon>, truths: Vec<LatLon>) -> Result<PointScores> {
    Ok(PointScores::of(&answers, &truths)?)
}

fn modes(rows: &[&Prediction]) -> Result<PointScores> {
    points(rows.iter().map(|row| row.mode).collect(), rows.iter().map(|row| row.truth).collect())
}

fn retrieved(rows: &[&Prediction]) -> Result<PointScores> {
    points(
        rows.iter().map(|row| row.retrieved).collect(),
        rows.iter().map(|row| row.truth).collect(),
    )
}

fn densities(rows: &[&Prediction]) -> Result<DensityScores> {
    let outcomes: Vec<DensityOutcome> = rows
        .iter()
        .map(|row| DensityOutcome {
            nll_nats: row.nll_nats,
            level: row.level.clamp(0.0, 1.0),
            searched_area_km2: row.area_km2,
        })
        .collect();
    Ok(DensityScores::of(&outcomes)?)
}

fn percent(score: &Score) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let interval = score.interval(&Resampling::default(), &mut rng);
    format!(
        "{:.1} ({:.1}–{:.1})",
        100.0 * interval.estimate,
        100.0 * interval.low,
        100.0 * interval.high
    )
}

/// Rows of a set that were not used to calibrate.
fn tested(sets: &HashMap<usize, Vec<Prediction>>, set: usize) -> Vec<&Prediction> {
    let rows = sets.get(&set).map(Vec::as_slice).unwrap_or_default();
    let three_globe = SETS[set].source == "three-globe";
    rows.iter().filter(|row| !three_globe || !is_for_calibration(row.truth)).collect()
}

fn by_source(sets: &HashMap<usize, Vec<Prediction>>) -> Result<()> {
    println!(
        "| source | n | ≤ 25 km, % | ≤ 200 km | ≤ 750 km | ≤ 2500 km | median km | GeoScore | NLL | 50 / 80 / 90 % regions hold | retrieval ≤ 200 | ≤ 750 | ≤ 2500 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (number, set) in SETS.iter().enumerate().filter(|(_, set)| set.shows == Shows::Land) {
        let rows = tested(sets, number);
        if rows.is_empty() {
            continue;
        }
        let (points, densities, nearest) = (modes(&rows)?, densities(&rows)?, retrieved(&rows)?);
        println!(
            "| {}, ≥ {} km | {} | {} | {} | {} | {} | {:.0} | {:.0} | {:.2} | {:.1} / {:.1} / {:.1} | {:.1} | {:.1} | {:.1} |",
            set.name,
            set.narrowest_km,
            rows.len(),
            percent(&points.accuracy(25.0)),
            percent(&points.accuracy(200.0)),
            percent(&points.accuracy(750.0)),
            percent(&points.accuracy(2500.0)),
            points.median_km().value(),
            points.mean_geoscore().value(),
            densities.mean_nll_nats().value(),
            100.0 * densities.coverage(0.5).value(),
            100.0 * densities.coverage(0.8).value(),
            100.0 * densities.coverage(0.9).value(),
            100.0 * nearest.accuracy(200.0).value(),
            100.0 * nearest.accuracy(750.0).value(),
            100.0 * nearest.accuracy(2500.0).value(),
        );
    }
    println!(
        "\nShare of truths found when the most probable places are searched first, by the area searched:\n"
    );
    let areas: Vec<f64> =
        RECALL_AREAS_KM2.into_iter().filter(|area| *area >= LEAST_AREA_KM2).collect();
    let heads: Vec<String> = areas.iter().map(|area| format!("{area:.0e} km²")).collect();
    println!("| source | {} |\n|---{}|", heads.join(" | "), "|---".repeat(heads.len()));
    for (number, set) in SETS.iter().enumerate().filter(|(_, set)| set.shows == Shows::Land) {
        let rows = tested(sets, number);
        if rows.is_empty() {
            continue;
        }
        let densities = densities(&rows)?;
        let recall = |area: &f64| format!("{:.1} %", 100.0 * densities.recall(*area).value());
        let recall: Vec<String> = areas.iter().map(recall).collect();
        println!("| {} | {} |", set.name, recall.join(" | "));
    }
    Ok(())
}

fn by_width(sets: &HashMap<usize, Vec<Prediction>>) -> Result<()> {
    println!("\nBy width of the view:\n");
    println!(
        "| source | width, km | n | ≤ 200 km, % | ≤ 750 km | ≤ 2500 km | median km | NLL | retrieval ≤ 200 | ≤ 750 |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for (number, set) in SETS.iter().enumerate().filter(|(_, set)| set.shows == Shows::Land) {
        for [from, to] in WIDTHS {
            let mut rows = tested(sets, number);
            rows.retain(|row| (from..to).contains(&row.width_km));
            if rows.len() < 50 {
                continue;
            }
            let (points, nearest) = (modes(&rows)?, retrieved(&rows)?);
            println!(
                "| {} | {from}–{to} | {} | {} | {} | {} | {:.0} | {:.2} | {:.1} | {:.1} |",
                set.name,
                rows.len(),
                percent(&points.accuracy(200.0)),
                percent(&points.accuracy(750.0)),
                percent(&points.accuracy(2500.0)),
                points.median_km().value(),
                densities(&rows)?.mean_nll_nats().value(),
                100.0 * nearest.accuracy(200.0).value(),
                100.0 * nearest.accuracy(750.0).value(),
            );
        }
    }
    Ok(())
}

/// By the continent of the view's middle.
fn by_continent(sets: &HashMap<usize, Vec<Prediction>>) -> Result<()> {
    println!("\nBy the continent of the view's middle (Russia counts as Europe):\n");
    println!(
        "| source | continent | n | ≤ 200 km, % | ≤ 750 km | ≤ 2500 km | median km | NLL | 90 % regions hold |\n|---|---|---|---|---|---|---|---|---|"
    );
    for (number, set) in SETS.iter().enumerate().take(2) {
        let mut parts: BTreeMap<Option<Continent>, Vec<&Prediction>> = BTreeMap::new();
        for row in tested(sets, number) {
            parts.entry(continent_at(row.truth)).or_default().push(row);
        }
        for (continent, rows) in parts {
            let (points, densities) = (modes(&rows)?, densities(&rows)?);
            println!(
                "| {} | {} | {} | {} | {} | {} | {:.0} | {:.2} | {:.1} % |",
                set.name,
                continent.map_or("at sea".to_owned(), |continent| continent.to_string()),
                rows.len(),
                percent(&points.accuracy(200.0)),
                percent(&points.accuracy(750.0)),
                percent(&points.accuracy(2500.0)),
                points.median_km().value(),
                densities.mean_nll_nats().value(),
                100.0 * densities.coverage(0.9).value(),
            );
        }
    }
    Ok(())
}

fn with_circle(sets: &HashMap<usize, Vec<Prediction>>) -> Result<()> {
    println!(
        "\nThe same views when it is known that the place lies within 2,500 km of the point below (what a crew can see), the first {WITH_CIRCLE} of each source:\n"
    );
    println!(
        "| source | width, km | n | ≤ 200 km, % | ≤ 750 km | without the circle ≤ 200 | ≤ 750 | 90 % regions hold |\n|---|---|---|---|---|---|---|---|"
    );
    for (number, set) in SETS.iter().enumerate().filter(|(_, set)| set.shows == Shows::Land) {
        for [from, to] in [[100.0, 320.0], [320.0, 500.0], [500.0, 2000.0]] {
            let mut rows = tested(sets, number);
            rows.retain(|row| (from..to).contains(&row.width_km) && row.circle.is_some());
            if rows.len() < 50 {
                continue;
            }
            let inside = points(
                rows.iter().filter_map(|row| Some(row.circle?.mode)).collect(),
                rows.iter().map(|row| row.truth).collect(),
            )?;
            let levels: Vec<f64> = rows.iter().filter_map(|row| Some(row.circle?.level)).collect();
            let held = levels.iter().filter(|level| **level <= 0.9).count() as f64;
            let anywhere = modes(&rows)?;
            println!(
                "| {} | {from}–{to} | {} | {} | {} | {:.1} | {:.1} | {:.1} % |",
                set.name,
                rows.len(),
                percent(&inside.accuracy(200.0)),
                percent(&inside.accuracy(750.0)),
                100.0 * anywhere.accuracy(200.0).value(),
                100.0 * anywhere.accuracy(750.0).value(),
                100.0 * held / levels.len() as f64,
            );
        }
    }
    Ok(())
}

fn domain(sets: &HashMap<usize, Vec<Prediction>>) {
    println!(
        "\nTurned away as none of its kind (for land, a false alarm):\n\n| source | n | turned away, % |\n|---|---|---|"
    );
    for (number, set) in SETS.iter().enumerate() {
        let rows = tested(sets, number);
        if !rows.is_empty() {
            let away = rows.iter().filter(|row| row.turned_away).count() as f64;
            println!("| {} | {} | {:.1} |", set.name, rows.len(), 100.0 * away / rows.len() as f64);
        }
    }
}

/// Regions of what is said of open sea, though it is held back.
fn open_sea(sets: &HashMap<usize, Vec<Prediction>>) -> Result<()> {
    for (number, _) in SETS.iter().enumerate().filter(|(_, set)| set.shows == Shows::OpenSea) {
        let rows = tested(sets, number);
        if !rows.is_empty() {
            let densities = densities(&rows)?;
            let held = |level: f64| 100.0 * densities.coverage(level).value();
            println!(
                "\nOpen sea (n {}), also where the answer is held back: the 50 / 80 / 90 % regions hold {:.1} / {:.1} / {:.1} %, NLL {:.2} (anywhere on Earth: {UNIFORM_NLL_NATS:.2}).",
                rows.len(),
                held(0.5),
                held(0.8),
                held(0.9),
                densities.mean_nll_nats().value(),
            );
        }
    }
    Ok(())
}

fn reliability(sets: &HashMap<usize, Vec<Prediction>>, out: &Path) -> Result<()> {
    let mut chart = Chart::new("probability of the region", "share of truths inside")
        .series(Series::line("ideal", [(0.0, 0.0), (1.0, 1.0)]))
        .title("Do regions hold what they say?");
    for number in [0, 1, 2, 4] {
        let rows = tested(sets, number);
        let curve: Vec<(f64, f64)> = (0..=20)
            .map(|k| {
                let level = f64::from(k) / 20.0;
                let held = rows.iter().filter(|row| row.level <= level).count();
                (level, held as f64 / rows.len().max(1) as f64)
            })
            .collect();
        chart = chart.line(SETS[number].name, curve);
    }
    std::fs::write(out, chart.draw().png()).context("reliability.png")
}

/// Flightgear by day, at least 500 km wide, one pass, no circle; coverage over all of its views.
fn headline(sets: &HashMap<usize, Vec<Prediction>>) -> Result<Value> {
    let all = tested(sets, 0);
    let wide: Vec<&Prediction> = all.iter().copied().filter(|row| row.width_km >= 500.0).collect();
    let (ours, nearest, densities) = (modes(&wide)?, retrieved(&wide)?, densities(&all)?);
    let unseen = tested(sets, 1);
    let (of_unseen, unseen_densities) = (modes(&unseen)?, self::densities(&unseen)?);
    let share = |score: Score| round(100.0 * score.value());
    Ok(json!({
        "n": wide.len(),
        "within_200": share(ours.accuracy(200.0)),
        "within_750": share(ours.accuracy(750.0)),
        "within_2500": share(ours.accuracy(2500.0)),
        "retrieval_within_200": share(nearest.accuracy(200.0)),
        "retrieval_within_750": share(nearest.accuracy(750.0)),
        "retrieval_within_2500": share(nearest.accuracy(2500.0)),
        "coverage_50": share(densities.coverage(0.5)),
        "coverage_80": share(densities.coverage(0.8)),
        "coverage_90": share(densities.coverage(0.9)),
        "unseen_n": unseen.len(),
        "unseen_within_200": share(of_unseen.accuracy(200.0)),
        "unseen_within_750": share(of_unseen.accuracy(750.0)),
        "unseen_within_2500": share(of_unseen.accuracy(2500.0)),
        "unseen_coverage_50": share(unseen_densities.coverage(0.5)),
        "unseen_coverage_80": share(unseen_densities.coverage(0.8)),
        "unseen_coverage_90": share(unseen_densities.coverage(0.9)),
    }))
}
