//! The paper's ablation of encoders and decoders, its drift under noise, and the heat maps of its first
//! figure (4a, 4b).
//!
//! rbf and Sphere2Vec with a learned decoder of six layers (one million even points, then frozen), beside
//! SHDD of as many numbers with the continuous decoder. Is the drift the encoding's or the decoder's?
//! The nearest of a million encodings says what the encoding allows. `--quick` measures what is
//! committed.

mod encodings;
mod networks;

use std::path::Path;

use anyhow::{Context, Result};
use locdiff_experiments::baselines::FitOptions;
use locdiff_experiments::paper::{
    Answers, Task, cells, commit, config, modes, shares, step_clock, table_head,
};
use locdiff_experiments::{Dense, multiply, places_of, read_npy, round, write_npy};
use locdiff_map::{Chart, Series};
use locdiff_sphere::{ACCURACY_RADII_KM, Anchors, LatLon, PointScores, uniform_place};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use encodings::{Encoding, NUMBERS};
use networks::{LearnedDecoder, add_noise, diffuse, plane};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Places whose encodings are disturbed, and of those the ones that are compared with a million.
const PLACES: usize = 1000;
const COMPARED: usize = 300;
const POINTS: usize = 1_000_000;
/// Of the heat maps: pixels along a side, and how far from the place's encoding they reach. Noise of
/// variance 0.01 on all 576 numbers has a length of 2.4.
const SIDE: usize = 81;
const REACH: f64 = 8.0;
const SETS: [(&str, &str); 3] = [
    ("drift-even", "even over the Earth"),
    ("drift-photographs", "Im2GPS3k's"),
    ("drift-nearest", "even over the Earth"),
];

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let folder = Path::new("experiments/paper/location-encoders");
    match std::env::args().nth(1).as_deref() {
        Some("--quick") => {}
        Some("--train") => {
            let config = config(folder)?;
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            pool.install(|| measure(folder, &config))?;
        }
        _ => anyhow::bail!("--quick, or --train"),
    }
    report(folder)
}

/// Decodes clean and noisy encodings of one set of places.
struct Disturbed {
    answers: Answers,
    noise: f64,
}

impl Disturbed {
    fn new(truths: Vec<LatLon>, noise: f64) -> Disturbed {
        let about = json!({ "commit": commit(), "methods": [] });
        Disturbed { answers: Answers { truths, methods: Vec::new(), about }, noise }
    }

    fn add(&mut self, encoding: &Encoding, how: &str, decode: &dyn Fn(&[f32]) -> Vec<LatLon>) {
        let clean = encoding.of(&self.answers.truths);
        let mut noisy = clean.clone();
        add_noise(&mut noisy, self.noise, &mut ChaCha8Rng::seed_from_u64(2));
        for (state, numbers) in [("clean", clean), ("noisy", noisy)] {
            self.answers.methods.push(decode(&numbers));
            let methods = self.answers.about["methods"].as_array_mut().expect("a list");
            methods.push(json!({ "name": format!("{}; {how}; {state}", encoding.name()) }));
        }
    }
}

fn measure(folder: &Path, config: &Value) -> Result<()> {
    let task = Task::build()?;
    let number = |value: &Value| value.as_f64().context("not a number");
    let deviation = number(&config["noise_variance"])?.sqrt();
    let seconds = number(&config["decoder"]["seconds"])?;
    let points = Anchors::fibonacci(POINTS);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let even: Vec<LatLon> = (0..PLACES).map(|_| uniform_place(&mut rng)).collect();
    let photographs: Vec<LatLon> =
        task.test.places.iter().step_by(3).take(PLACES).copied().collect();
    let mut sets = [even.clone(), photographs, even[..COMPARED].to_vec()]
        .map(|truths| Disturbed::new(truths, deviation));
    let mut accuracy = Answers {
        truths: task.test.places.clone(),
        methods: Vec::new(),
        about: json!({ "commit": commit(), "methods": [] }),
    };
    let star = LatLon::new(40.4, -3.7)?;
    let mut heat: Vec<f32> = Vec::new();
    let harmonics = Encoding::harmonics();
    for set in &mut sets[..2] {
        set.add(&harmonics, "continuous", &|numbers| modes(numbers, 23));
    }
    sets[2]
        .add(&harmonics, "nearest of 1M", &|numbers| nearest(numbers, &harmonics, points.places()));
    heat.extend(slice(&harmonics, star, &|numbers| modes(numbers, 23)));
    let options = FitOptions {
        // The last question ends the training.
        seconds: number(&config["diffusion"]["steps"])? + 1.0,
        rate: number(&config["diffusion"]["rate"])?,
        seed: 1,
        clock: step_clock,
    };
    for encoding in [Encoding::Sphere2Vec, Encoding::rbf(task.training_places())] {
        for (how, noise) in [("learned", 0.0), ("learned under noise", deviation)] {
            let (decoder, decoder_steps) =
                LearnedDecoder::train(&encoding, points.places(), noise, seconds);
            eprintln!("{}, {how}: {decoder_steps} steps", encoding.name());
            for set in &mut sets[..2] {
                set.add(&encoding, how, &|numbers| decoder.places(numbers));
                set.answers.about["steps"][format!("{}; {how}", encoding.name())] =
                    json!(decoder_steps);
            }
            if noise == 0.0 {
                heat.extend(slice(&encoding, star, &|numbers| decoder.places(numbers)));
                accuracy.methods.push(diffuse(&task, &encoding, &decoder, &options)?);
                let methods = accuracy.about["methods"].as_array_mut().context("a list")?;
                methods.push(json!({ "name": format!("{}, learned decoder", encoding.name()) }));
                eprintln!("{}", cells(&accuracy.shares(accuracy.methods.len() - 1)?));
            }
        }
        sets[2].add(&encoding, "nearest of 1M", &|numbers| {
            nearest(numbers, &encoding, points.places())
        });
    }
    for ((name, _), set) in SETS.iter().zip(&sets) {
        std::fs::create_dir_all(folder.join(name))?;
        set.answers.write(&folder.join(name))?;
    }
    std::fs::create_dir_all(folder.join("accuracy"))?;
    accuracy.write(&folder.join("accuracy"))?;
    write_npy(&folder.join("heat.npy"), &[3, SIDE, SIDE], &heat)
}

/// The place among many whose encoding is nearest.
fn nearest(numbers: &[f32], encoding: &Encoding, places: &[LatLon]) -> Vec<LatLon> {
    const BLOCK: usize = 4096;
    let count = numbers.len() / NUMBERS;
    let mut best: Vec<(f32, usize)> = vec![(f32::NEG_INFINITY, 0); count];
    let mut products = vec![0.0_f32; BLOCK * count];
    let matrix = Dense { entries: numbers, row: 1, column: NUMBERS };
    for (block, of_block) in places.chunks(BLOCK).enumerate() {
        let features = encoding.of(of_block);
        multiply(&mut products, &features, matrix, [of_block.len(), count, NUMBERS]);
        let rows = products.chunks_exact(count).zip(features.chunks_exact(NUMBERS));
        for (place, (products, features)) in rows.take(of_block.len()).enumerate() {
            let half_square = 0.5 * features.iter().map(|number| number * number).sum::<f32>();
            for (best, product) in best.iter_mut().zip(products) {
                if product - half_square > best.0 {
                    *best = (product - half_square, block * BLOCK + place);
                }
            }
        }
    }
    best.into_iter().map(|(_, place)| places[place]).collect()
}

/// Distances to the star of what is decoded on a plane through its encoding, in km.
fn slice(encoding: &Encoding, star: LatLon, decode: &dyn Fn(&[f32]) -> Vec<LatLon>) -> Vec<f32> {
    let centre = encoding.of(&[star]);
    let [across, down] = plane(&mut ChaCha8Rng::seed_from_u64(4));
    let position = |k: usize| REACH * (2.0 * k as f64 / (SIDE - 1) as f64 - 1.0);
    let mut numbers = Vec::with_capacity(SIDE * SIDE * NUMBERS);
    for row in 0..SIDE {
        for column in 0..SIDE {
            let shifts = across.iter().zip(&down);
            let shifts = shifts.map(|(a, b)| position(column) * a + position(row) * b);
            numbers.extend(centre.iter().zip(shifts).map(|(number, shift)| number + shift as f32));
        }
    }
    decode(&numbers).iter().map(|place| place.distance_km(star) as f32).collect()
}

fn report(folder: &Path) -> Result<()> {
    println!("# Other encodings of a place\n");
    println!(
        "All encodings have {NUMBERS} numbers. The learned decoder has six layers of 512 and saw encodings of {POINTS} even points for {} seconds of one core. Noise of \
         variance 0.01 on each number, as in the paper. Drift: mean distance between what is decoded from the clean and from the noisy encoding.\n",
        config(folder)?["decoder"]["seconds"],
    );
    println!(
        "## Drift\n\n| encoding | decoder | places | n | error, clean, km | error, noisy, km | drift, km | median drift, km |\n|---|---|---|---|---|---|---|---|"
    );
    let mut figures = json!({});
    for (set, places) in SETS {
        let answers = Answers::read(&folder.join(set))?;
        figures[format!("n_{}", set.replace('-', "_"))] = json!(answers.truths.len());
        for k in (0..answers.methods.len()).step_by(2) {
            let (clean, noisy) = (&answers.methods[k], &answers.methods[k + 1]);
            let [error_clean, error_noisy, drift] =
                [(clean, &answers.truths), (noisy, &answers.truths), (clean, noisy)].map(distances);
            let name = answers.name(k);
            let mut parts = name.split("; ");
            let (encoding, decoder) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            println!(
                "| {encoding} | {decoder} | {places} | {} | {:.1} | {:.1} | {:.1} | {:.1} |",
                answers.truths.len(),
                mean(&error_clean),
                mean(&error_noisy),
                mean(&drift),
                median(&drift),
            );
            let key = format!("{} {} {} drift_km", set, encoding, decoder).to_lowercase();
            figures[key
                .replace(['(', ')', '='], "")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join("_")
                .replace('-', "_")] = json!(round(mean(&drift)));
        }
    }
    println!(
        "\nThe paper reports a drift of 102.4 km for rbf, 89.1 km for Sphere2Vec and 5.3 km for SHDD at L = 47 (quoted; ours at L = 47: [sphere-drift](../../sphere/sphere-drift/result.md)).\n"
    );
    println!("## Diffusion over them\n");
    let accuracy = Answers::read(&folder.join("accuracy"))?;
    figures["n"] = json!(accuracy.truths.len());
    println!(
        "A simulation: Im2GPS3k's places (n = {}) with made-up images; one seed, one pass. Other encodings: {} batches of 256, the network of configs/paper-l23.toml. SHDD's rows are \
         those of [table 1](../result.md), seed 1: 1,500 batches of 512, by the product's loop. Made from commit {}.\n",
        accuracy.truths.len(),
        config(folder)?["diffusion"]["steps"],
        accuracy.about["commit"].as_str().unwrap_or_default(),
    );
    println!("{}", table_head("encoding and decoder", "median km"));
    let mut chart = Chart::new("radius, km", "test places, %")
        .log_x()
        .y_range(0.0..=100.0)
        .title("Diffusion over encodings of 576 numbers")
        .caption("A simulation: it compares encodings, and says nothing about photographs.");
    let names = (0..accuracy.methods.len()).map(|k| accuracy.name(k));
    let mut rows: Vec<(String, Vec<LatLon>)> = names.zip(accuracy.methods.clone()).collect();
    for (name, row) in [("as published", "published"), ("ours", "ours")] {
        let path = format!("experiments/paper/answers/{row}-l23-1.npy");
        let name = format!("SHDD, L = 23, continuous decoder; {name}");
        rows.push((name, places_of(&read_npy(path.as_ref())?)?));
    }
    for (shown, places) in rows {
        let shares = shares(&places, &accuracy.truths)?;
        let median_km = PointScores::of(&places, &accuracy.truths)?.median_km().value();
        println!("| {shown} | {} | {median_km:.0} |", cells(&shares));
        chart =
            chart.series(Series::points(shown, ACCURACY_RADII_KM.into_iter().zip(shares)).joined());
    }
    std::fs::write(folder.join("accuracy.png"), chart.draw().png())?;
    println!(
        "\nWhat the paper reports for photographs (quoted):\n\n{}",
        table_head("encoder and decoder", "")
    );
    println!("| rbf, learned decoder | 0.0 | 0.0 | 18.2 | 44.1 | 60.2 |");
    println!("| Sphere2Vec, learned decoder | 0.0 | 0.0 | 22.1 | 58.4 | 72.3 |");
    println!("| SHDD, L = 47 | 10.9 | 34.0 | 53.3 | 72.5 | 85.2 |");
    println!("\n![accuracy by radius](accuracy.png)\n\n## Heat maps\n");
    println!(
        "A plane through the encoding of a place (the star) in two random directions, up to {REACH} away; noise of variance 0.01 has a length of 2.4. The colour is how far \
         from the star the decoded place lies.\n\n![heat maps](heat-maps.png)\n"
    );
    let heat = read_npy(&folder.join("heat.npy"))?;
    println!(
        "| encoding | farther than 200 km, % of the plane | median, km | neighbouring pixels more than 1,000 km apart in distance, % |\n|---|---|---|---|"
    );
    for (name, pixels) in
        ["SHDD (L = 23)", "Sphere2Vec", "rbf"].iter().zip(heat.chunks_exact(SIDE * SIDE))
    {
        let far = pixels.iter().filter(|km| **km > 200.0).count() as f64 / pixels.len() as f64;
        let km: Vec<f64> = pixels.iter().map(|km| f64::from(*km)).collect();
        let jumps = (0..SIDE * (SIDE - 1)).filter(|k| {
            let (row, column) = (k / (SIDE - 1), k % (SIDE - 1));
            (pixels[row * SIDE + column] - pixels[row * SIDE + column + 1]).abs() > 1000.0
        });
        let jumps = jumps.count() as f64 / (SIDE * (SIDE - 1)) as f64;
        println!("| {name} | {:.1} | {:.0} | {:.2} |", 100.0 * far, median(&km), 100.0 * jumps);
    }
    println!("\n{}", std::fs::read_to_string(folder.join("reading.md"))?.trim());
    println!("\n{figures}");
    Ok(())
}

fn distances((a, b): (&Vec<LatLon>, &Vec<LatLon>)) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a.distance_km(*b)).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
