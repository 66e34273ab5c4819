//! The real thing, for whoever has the photographs: from embeddings and a trained model to answers
//! that `locdiff evaluate` scores. See `run` and docs/paper.md.
//!
//! `answer MODEL EMBEDDINGS ANSWERS.csv one-pass` takes the mode of one pass over one view of each
//! picture. With `paper`, as many views as are stored are drawn with replacement (of 16 about 10.3 are
//! distinct), each is sampled with 200 steps of DDPM, and the places are averaged on the sphere; the
//! paper averages latitudes and longitudes. `synthetic DIRECTORY ROWS SEED` writes a small data set with
//! made-up embeddings, so that the whole chain can be tried without photographs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::{Tensor, TensorData};
use locdiff::diffusion::{Diffusion, Method, SampleOptions, coefficients_of};
use locdiff::encoders::EncoderRecord;
use locdiff::tensors::device_by_name;
use locdiff_experiments::standard_normal;
use locdiff_sphere::{Basis, Decoder, LatLon, mean_place, uniform_place};
use locdiff_train::{Dataset, Ids, Layout, Numbers, OnBadShard, ShardWriter, StreamOptions};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str =
    "answer MODEL EMBEDDINGS ANSWERS.csv one-pass|paper [DEVICE], or synthetic DIRECTORY ROWS SEED";
/// Of the made-up embeddings: harmonics of a place to degree 7, and noise.
const SYNTHETIC_DEGREE: usize = 7;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["answer", model, embeddings, answers, how] => {
            answer(model, embeddings, answers, how, "cpu")
        }
        ["answer", model, embeddings, answers, how, device] => {
            answer(model, embeddings, answers, how, device)
        }
        ["synthetic", directory, rows, seed] => {
            synthetic(Path::new(directory), rows.parse()?, seed.parse()?)
        }
        _ => anyhow::bail!(USAGE),
    }
}

fn answer(model: &str, embeddings: &str, answers: &str, how: &str, device: &str) -> Result<()> {
    let device = device_by_name(device)?;
    let model = Diffusion::open(Path::new(model), &device)?;
    let data = Dataset::open(embeddings, OnBadShard::Fail)?;
    let (wanted, stored) = (model.config().denoiser.condition_size, data.layout().width);
    ensure!(wanted == stored, "the model takes {wanted} numbers, the embeddings have {stored}");
    let (method, views) = match how {
        "one-pass" => (Method::OnePass, 1),
        "paper" => (Method::Ddpm, data.layout().views as u64),
        _ => anyhow::bail!(USAGE),
    };
    let decoder = Decoder::new(model.config().denoiser.max_degree);
    // A pass over the data gives one view of each picture.
    let options = StreamOptions { ids: Ids::Include, epochs: Some(views), ..Default::default() };
    let mut places: BTreeMap<String, Vec<LatLon>> = BTreeMap::new();
    for (number, batch) in data.stream(options)?.enumerate() {
        let batch = batch?;
        let count = batch.ids.len();
        let condition = TensorData::new(batch.embeddings, [count, stored]);
        let condition = Tensor::<2>::from_data(condition, &device);
        let options = SampleOptions { method, seed: number as u64, ..SampleOptions::default() };
        let output = model.sample(Some(condition), count, options, |_| ());
        for (id, e) in batch.ids.into_iter().zip(coefficients_of(&output)) {
            places.entry(id).or_default().push(decoder.mode(&e).place);
        }
    }
    let mut table = "image,latitude,longitude\n".to_owned();
    for (id, places) in &places {
        let place = mean_place(places).unwrap_or(places[0]);
        writeln!(table, "\"{id}\",{:.6},{:.6}", place.latitude(), place.longitude())?;
    }
    std::fs::write(answers, table).with_context(|| answers.to_owned())?;
    eprintln!("{} pictures, {views} views of each", places.len());
    Ok(())
}

fn synthetic(directory: &Path, count: usize, seed: u64) -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let basis = Basis::new(SYNTHETIC_DEGREE);
    let layout = Layout {
        encoder: EncoderRecord::of_identity("made up: harmonics with noise"),
        width: basis.len(),
        views: 1,
        numbers: Numbers::F16,
    };
    let mut writer =
        ShardWriter::create(&directory.join("embeddings"), layout, Default::default())?;
    let mut table = "image,latitude,longitude\n".to_owned();
    for number in 0..count {
        let place = uniform_place(&mut rng);
        let encoding = basis.encode(place);
        let numbers: Vec<f32> = encoding
            .as_slice()
            .iter()
            .map(|number| (4.0 * number + 0.3 * standard_normal(&mut rng)) as f32)
            .collect();
        let id = format!("{number:06}.jpg");
        writer.write(&id, place, &numbers)?;
        writeln!(table, "{id},{:.6},{:.6}", place.latitude(), place.longitude())?;
    }
    writer.finish()?;
    Ok(std::fs::write(directory.join("truth.csv"), table)?)
}
