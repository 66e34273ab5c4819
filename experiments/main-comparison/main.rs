//! The paper's main table, with its hybrid, on made-up images of Im2GPS3k's places.
//!
//! Retrieval chooses among MP16's 100k places; LocDiff as published and ours are the models of
//! `experiments/degree`. The hybrid (LocDiff-H) takes several places from the model and lets retrieval
//! choose among the gallery around them. Samples as in the paper, but by 10 steps of DDIM instead of 200
//! of DDPM (config.json). `--quick` scores the committed answers. Published
//! numbers of peers are quoted from the paper.

use std::path::Path;

use anyhow::{Context, Result};
use burn::tensor::{Device, Tensor, TensorData};
use locdiff::diffusion::Method;
use locdiff_experiments::paper::{
    Answers, STEPS, Task, Variant, cells, coarse_modes, commit, config, table_head, whole_numbers,
};
use locdiff_experiments::round;
use locdiff_map::{Chart, Series};
use locdiff_sphere::{ACCURACY_RADII_KM, Decoder, EARTH_RADIUS_KM, LatLon, UnitVector, mean_place};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How the names begin of what is drawn: more than six lines nobody can tell apart.
const DRAWN: [&str; 6] = [
    "retrieval",
    "LocDiff as published, L = 23, one pass",
    "LocDiff-H",
    "ours, L = 23",
    "ours, L = 63",
    "ours-H, L = 47: retrieval around the mode",
];
/// The paper's rows for photographs of Im2GPS3k: quoted, with their sources there.
const PAPER: [(&str, &str); 10] = [
    ("[L]kNN, σ = 4 (Vo et al. 2017)", "7.2 | 19.4 | 26.9 | 38.9 | 55.9"),
    ("PlaNet (Weyand et al. 2016)", "8.5 | 24.8 | 34.3 | 48.4 | 64.6"),
    ("CPlaNet (Seo et al. 2018)", "10.2 | 26.5 | 34.6 | 48.6 | 64.6"),
    ("ISNs (Müller-Budack et al. 2018)", "10.5 | 28.0 | 36.6 | 49.7 | 66.0"),
    ("Translocator (Pramanick et al. 2022)", "11.8 | 31.1 | 46.7 | 58.9 | 80.1"),
    ("GeoDecoder (Clark et al. 2023)", "12.8 | 33.5 | 45.9 | 61.0 | 76.1"),
    ("GeoCLIP (Vivanco Cepeda et al. 2023)", "14.1 | 34.5 | 50.7 | 69.7 | 83.8"),
    ("PIGEON (Haas et al. 2024)", "11.3 | 36.7 | 53.8 | 72.4 | 85.3"),
    ("LocDiff, L = 47", "10.9 | 34.0 | 53.3 | 72.5 | 85.2"),
    ("LocDiff-H, L = 23", "15.3 | 36.5 | 56.4 | 75.2 | 87.4"),
];

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let folder = Path::new("experiments/main-comparison");
    match std::env::args().nth(1).as_deref() {
        Some("--quick") => {}
        Some("--answer") => answer(folder)?,
        _ => anyhow::bail!("--quick, or --answer"),
    }
    report(folder)
}

fn answer(folder: &Path) -> Result<()> {
    let config = config(folder)?;
    let whole = |group: &str, key: &str| {
        config[group][key].as_u64().with_context(|| format!("config.json: {group}.{key}"))
    };
    let sampled_degree = whole("sampler", "degree")? as usize;
    let steps = whole("sampler", "steps")? as usize;
    let peak_count = whole("hybrid", "peaks")? as usize;
    let near_km = config["hybrid"]["neighbourhood_km"].as_f64().context("no neighbourhood_km")?;
    let task = Task::build()?;
    let width = task.simulation.width;
    let mut answers = Answers {
        truths: task.test.places.clone(),
        methods: Vec::new(),
        about: json!({ "commit": commit(), "methods": [] }),
    };
    let mut add = |name: &str, places: Vec<LatLon>| -> Result<()> {
        answers.methods.push(places);
        let methods = answers.about["methods"].as_array_mut().expect("it was made as a list");
        methods.push(json!({ "name": name }));
        eprintln!("{name}: {}", cells(&answers.shares(answers.methods.len() - 1)?));
        answers.write(folder)
    };
    let gallery = Gallery::new(&task, near_km);
    let anywhere = gallery.best(&task, None);
    add("retrieval over MP16's 100k", places_of(&anywhere, &task))?;
    for degree in whole_numbers(&config["one_pass"]["published"])? {
        let places = Variant::published(degree, width).answers(&task)?.0;
        add(&format!("LocDiff as published, L = {degree}, one pass"), places)?;
    }
    for degree in whole_numbers(&config["one_pass"]["ours"])? {
        let places = Variant::ours(degree, width).answers(&task)?.0;
        add(&format!("ours, L = {degree}, one pass"), places)?;
    }
    let model = Variant::published(sampled_degree, width).trained(&task)?.0;
    let count = whole("sampler", "draws")?;
    let draws: Vec<Vec<LatLon>> = (0..count)
        .map(|seed| coarse_modes(&task.sampled(&model, Method::Ddim(steps), seed), sampled_degree))
        .collect();
    let of = |k: usize| -> Vec<LatLon> { draws.iter().map(|draw| draw[k]).collect() };
    let rows = 0..task.test.places.len();
    let means = rows.clone().map(|k| mean_place(&of(k)).unwrap_or(draws[0][k])).collect();
    add(&format!("LocDiff as published, L = {sampled_degree}, mean of {count} samples"), means)?;
    let candidates: Vec<Vec<LatLon>> = rows.map(of).collect();
    let hybrid = gallery.best(&task, Some(&candidates));
    let name = format!("LocDiff-H, L = {sampled_degree}: retrieval around the {count} samples");
    add(&name, places_of(&hybrid, &task))?;
    for degree in whole_numbers(&config["hybrid"]["degrees"])? {
        let model = Variant::ours(degree, width).trained(&task)?.0;
        let outputs = task.one_pass(&model);
        let peaks = Decoder::new(degree).modes_of_batch(&outputs, peak_count);
        let candidates: Vec<Vec<LatLon>> =
            peaks.iter().map(|peaks| peaks.iter().map(|peak| peak.place).collect()).collect();
        let best: Vec<Vec<LatLon>> = candidates.iter().map(|places| places[..1].to_vec()).collect();
        for (name, around) in
            [("the mode".to_owned(), &best), (format!("{peak_count} peaks"), &candidates)]
        {
            let hybrid = places_of(&gallery.best(&task, Some(around)), &task);
            add(&format!("ours-H, L = {degree}: retrieval around {name}"), hybrid)?;
        }
    }
    Ok(())
}

fn places_of(found: &[Found], task: &Task) -> Vec<LatLon> {
    let place = |found: &Found| match found {
        Found::InGallery(k) => task.simulation.gallery[*k],
        Found::Nothing(place) => *place,
    };
    found.iter().map(place).collect()
}

enum Found {
    InGallery(usize),
    /// No place of the gallery is near: the model's first place stands.
    Nothing(LatLon),
}

/// MP16's places with GeoCLIP's embeddings.
struct Gallery {
    vectors: Vec<[f32; 3]>,
    embeddings: Tensor<2>,
    near_km: f64,
}

impl Gallery {
    fn new(task: &Task, near_km: f64) -> Gallery {
        let places = &task.simulation.gallery;
        let values = task.simulation.embed(places);
        let data = TensorData::new(values, [places.len(), task.simulation.width]);
        Gallery {
            vectors: places.iter().map(|place| vector(*place)).collect(),
            embeddings: Tensor::from_data(data, &Device::flex()),
            near_km,
        }
    }

    /// The nearest embedding for each test image, among all places or those around candidates.
    fn best(&self, task: &Task, around: Option<&[Vec<LatLon>]>) -> Vec<Found> {
        const BATCH: usize = 250;
        let width = task.simulation.width;
        let cosine = (self.near_km / EARTH_RADIUS_KM).cos() as f32;
        let mut found = Vec::new();
        for (number, images) in task.test.conditions.chunks(BATCH * width).enumerate() {
            let rows = images.len() / width;
            let data = TensorData::new(images.to_vec(), [rows, width]);
            let images = Tensor::<2>::from_data(data, &Device::flex());
            let products = images.matmul(self.embeddings.clone().transpose());
            let products: Vec<f32> = products.into_data().try_to_vec().unwrap();
            for (row, products) in products.chunks_exact(self.vectors.len()).enumerate() {
                let candidates = around.map(|around| &around[number * BATCH + row]);
                let near: Option<Vec<[f32; 3]>> =
                    candidates.map(|places| places.iter().map(|place| vector(*place)).collect());
                let allowed = |k: &usize| {
                    near.as_ref().is_none_or(|near| {
                        near.iter().any(|place| dot(*place, self.vectors[*k]) >= cosine)
                    })
                };
                let best = (0..products.len())
                    .filter(allowed)
                    .max_by(|a, b| products[*a].total_cmp(&products[*b]));
                found.push(match (best, candidates) {
                    (Some(best), _) => Found::InGallery(best),
                    (None, Some(candidates)) => Found::Nothing(candidates[0]),
                    (None, None) => unreachable!("the gallery isn't empty"),
                });
            }
        }
        found
    }
}

fn vector(place: LatLon) -> [f32; 3] {
    UnitVector::from(place).to_array().map(|part| part as f32)
}

fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn report(folder: &Path) -> Result<()> {
    let answers = Answers::read(folder)?;
    println!("# Main comparison, on made-up images\n");
    println!(
        "A simulation: Im2GPS3k's places (n = {}); an image is GeoCLIP's embedding of the place with noise, so retrieval by GeoCLIP's embeddings is given the exact \
         place encoder, and the models must learn it from {STEPS} batches of 256. Made from commit {}. Photographs can't be had here.\n",
        answers.truths.len(),
        answers.about["commit"].as_str().unwrap_or_default(),
    );
    println!("{}", table_head("method", "median km"));
    let mut figures = json!({ "n": answers.truths.len() });
    let mut chart = Chart::new("radius, km", "test places, %")
        .log_x()
        .y_range(0.0..=100.0)
        .height_px(560)
        .title("Im2GPS3k's places, made-up images")
        .caption("A simulation: it compares methods, and says nothing about photographs.");
    for k in 0..answers.methods.len() {
        let (name, shares) = (answers.name(k), answers.shares(k)?);
        println!("| {name} | {} | {:.0} |", cells(&shares), answers.median_km(k)?);
        let key = name.to_lowercase().replace([',', ':', '\'', '='], "");
        let key = key.split_whitespace().collect::<Vec<_>>().join("_");
        figures[format!("{key}_within_200")] = json!(round(shares[2]));
        let points = ACCURACY_RADII_KM.into_iter().zip(shares);
        if DRAWN.iter().any(|drawn| name.starts_with(drawn)) {
            chart = chart.series(Series::points(name, points).joined());
        }
    }
    std::fs::write(folder.join("main-comparison.png"), chart.draw().png())?;
    println!("\n![accuracy by radius](main-comparison.png)\n");
    println!("What the paper reports for photographs of Im2GPS3k (quoted):\n");
    println!("{}", table_head("method", ""));
    for (name, row) in PAPER {
        println!("| {name} | {row} |");
    }
    println!("\n{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    println!("\n{figures}");
    Ok(())
}
