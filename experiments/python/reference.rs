//! What `torch_parity.py` compares PyTorch with: the shipped network, objective and densities on given inputs.
//!
//! ```text
//! python-reference objective DIRECTORY                 models with random weights, inputs, outputs, loss and gradients
//! python-reference density MODEL QUESTIONS ANSWERS     log-densities of embeddings at places
//! python-reference ranks DIRECTORY                     as objective, on a batch from shards that ranks can share
//! ```

use std::collections::BTreeMap;
use std::f64::consts::{PI, TAU};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use burn::module::Param;
use burn::tensor::{Device, Gradients, Tensor};
use locdiff::LocationModel;
use locdiff::diffusion::{
    DenoiserConfig, Diffusion, DiffusionConfig, Loss, Objective, Quadrature, SampleOptions,
    ScheduleConfig, ScheduleKind, Standardization, encodings,
};
use locdiff::encoders::EncoderRecord;
use locdiff::models::{DiffusionAbout, DiffusionModel, EncoderSource, ModelDirectory, OpenOptions};
use locdiff::tensors::{NamedVisitor, visit_named};
use locdiff_experiments::standard_normal;
use locdiff_sphere::{Anchors, Basis, LatLon};
use locdiff_train::{Batch, Dataset, Layout, Numbers, OnBadShard, ShardWriter, StreamOptions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize_to_file};

/// Grids that take turns in training; the objective draws one of them, then an angle.
const GRIDS: usize = 3;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["objective", directory] => objective(Path::new(directory)),
        ["density", model, questions, answers] => {
            density(Path::new(model), Path::new(questions), Path::new(answers))
        }
        ["ranks", directory] => ranks(Path::new(directory)),
        _ => bail!("python-reference objective|ranks DIRECTORY | density MODEL QUESTIONS ANSWERS"),
    }
}

/// Numbers and shapes by name.
type Arrays = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Models with random weights; beside each, what its network and the gradient of its objective are.
fn objective(directory: &Path) -> Result<()> {
    let small = DenoiserConfig { time_size: 32, ..DenoiserConfig::new(11, 20) };
    let narrow =
        DenoiserConfig { bottleneck: Some(24), head_rank: Some(16), ..DenoiserConfig::new(15, 48) };
    let deep = DenoiserConfig { depth: 3, frequency: 30.0, ..DenoiserConfig::new(9, 30) };
    let cases = [
        ("small", small, ScheduleKind::Shifted, 0, 32),
        ("narrow", narrow, ScheduleKind::Cosine, 0, 32),
        ("deep", deep, ScheduleKind::Linear, 40, 32),
        // The network of configs/likelihood-l23.toml on embeddings of CLIP ViT-L/14.
        ("full", DenoiserConfig::new(23, 768), ScheduleKind::Shifted, 0, 64),
    ];
    for (seed, (name, denoiser, kind, rings, batch)) in (1..).zip(cases) {
        let config = DiffusionConfig {
            denoiser,
            schedule: ScheduleConfig { kind, steps: 200 },
            objective: Objective::Likelihood,
            quadrature: Quadrature::Transform(rings),
        };
        let arrays = case(config, seed, batch, None, &directory.join(name))?;
        write(&directory.join(name).join("case.safetensors"), &arrays)?;
    }
    Ok(())
}

/// Shards, and the gradient of the first batch that the loader makes of them: see `experiments/replicas/ranks.py`.
fn ranks(directory: &Path) -> Result<()> {
    const WIDTH: usize = 48;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let encoder = EncoderRecord::of_identity("random numbers");
    let layout = Layout { encoder, width: WIDTH, views: 1, numbers: Numbers::F32 };
    let shards = directory.join("data");
    let mut writer = ShardWriter::create(&shards, layout, Default::default())?;
    for (row, place) in Anchors::uniform(1000, &mut rng).places().iter().enumerate() {
        let embedding = [0; WIDTH].map(|_| standard_normal(&mut rng) as f32);
        writer.write(&row.to_string(), *place, &embedding)?;
    }
    writer.finish()?;
    let data = Dataset::open(shards.to_str().context("a path")?, OnBadShard::Fail)?;
    let options = StreamOptions { batch: 128, ..StreamOptions::default() };
    let rows = data.stream(options)?.next().context("a batch")??;
    let config = DiffusionConfig {
        denoiser: DenoiserConfig::new(15, WIDTH),
        schedule: ScheduleConfig { kind: ScheduleKind::Shifted, steps: 200 },
        objective: Objective::Likelihood,
        quadrature: Quadrature::Transform(0),
    };
    let model = directory.join("model");
    let arrays = case(config, 1, rows.places.len(), Some(rows), &model)?;
    write(&model.join("case.safetensors"), &arrays)
}

fn case(
    config: DiffusionConfig,
    seed: u64,
    batch: usize,
    rows: Option<Batch>,
    directory: &Path,
) -> Result<Arrays> {
    let device = Device::flex().autodiff();
    device.seed(seed);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (size, width) = (config.denoiser.coefficients(), config.denoiser.condition_size);
    let (max_degree, rings) = (config.denoiser.max_degree, config.quadrature);
    let embeddings: Vec<f32> = match &rows {
        Some(rows) => rows.embeddings.clone(),
        None => {
            (0..batch * width).map(|_| (2.0 * standard_normal(&mut rng) + 0.5) as f32).collect()
        }
    };
    let standardization = Standardization::of(&embeddings, width);
    let diffusion = Diffusion::init(config, &device)?.standardized(Some(standardization));
    diffusion.save(
        directory,
        &DiffusionAbout::of_embeddings("random numbers"),
        "# Random weights\n",
    )?;

    // As a step of training does it.
    let rounded = |number: f64| f64::from(number as f32);
    let mut places: Vec<LatLon> = Anchors::uniform(batch, &mut rng)
        .places()
        .iter()
        .map(|place| LatLon::new(rounded(place.latitude()), rounded(place.longitude())))
        .collect::<Result<_, _>>()?;
    places[0] = LatLon::new(90.0, 0.0)?;
    places[1] = LatLon::new(rounded(-89.9999), -180.0)?;
    if let Some(rows) = rows {
        places = rows.places;
    }
    let levels = diffusion.trained_levels();
    let steps: Vec<usize> = (0..batch)
        .map(|k| if k % 2 == 0 { *levels.end() } else { rng.random_range(levels.clone()) })
        .collect();
    let keep: Vec<bool> = (0..batch).map(|k| k % 10 != 3).collect();
    let noise = diffusion.noise(batch, &mut rng);
    let clean = encodings(&Basis::new(max_degree), &places, &device) * (4.0 * PI).sqrt();
    let latent = diffusion.noisy(clean, noise.clone(), &steps);
    let denoiser = diffusion.denoiser();
    let condition = denoiser.without_some(diffusion.condition(embeddings.clone()), &keep);
    // Apart from the output, in which the evidence of the latent is far larger.
    let network = denoiser.forward(latent.clone(), condition.clone(), &steps);
    let output = diffusion.output(denoiser, latent.clone(), condition, &steps);
    let start = diffusion.noise(1, &mut ChaCha8Rng::seed_from_u64(0));
    let options = SampleOptions { noise_repeats_after: 1, ..SampleOptions::default() };
    let all = diffusion.condition(embeddings.clone());
    let one_pass = diffusion.sample(Some(all), batch, options, |_| ());
    let loss = Loss::new(Objective::Likelihood, rings, max_degree, &device);
    // What the objective will draw.
    let mut same = rng.clone();
    let grid = same.random_range(0..GRIDS);
    let angle: f64 = same.random_range(0.0..TAU);
    let value = loss.mean(output.clone(), &places, &mut rng);

    let mut arrays = Arrays::new();
    let mut add = |name: &str, shape: &[usize], numbers: Vec<f32>| {
        arrays.insert(name.to_owned(), (shape.to_vec(), numbers));
    };
    add("embeddings", &[batch, width], embeddings);
    let places =
        places.iter().flat_map(|place| [place.latitude() as f32, place.longitude() as f32]);
    add("places", &[batch, 2], places.collect());
    add("steps", &[batch], steps.iter().map(|step| *step as f32).collect());
    add("keep", &[batch], keep.iter().map(|keep| f32::from(*keep)).collect());
    add("grid", &[1], vec![grid as f32]);
    // Two numbers, because one of 32 bits is too coarse.
    add("angle", &[2], vec![angle as f32, (angle - f64::from(angle as f32)) as f32]);
    add("noise", &[batch, size], numbers(noise));
    add("latent", &[batch, size], numbers(latent));
    add("network", &[batch, size], numbers(network));
    add("output", &[batch, size], numbers(output));
    add("start", &[1, size], numbers(start));
    add("one_pass", &[batch, size], numbers(one_pass));
    add("loss", &[1], numbers(value.clone()));
    let gradients = Collect { gradients: value.backward(), arrays };
    Ok(visit_named(denoiser, gradients).arrays)
}

/// Gradients by the names of their parameters.
struct Collect {
    gradients: Gradients,
    arrays: Arrays,
}

impl NamedVisitor for Collect {
    fn visit<const D: usize>(&mut self, name: &str, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad(&self.gradients).expect("every weight has a gradient");
        let entry = (gradient.dims().to_vec(), numbers(gradient));
        self.arrays.insert(format!("gradient.{name}"), entry);
    }
}

/// Log-densities `[rows, places]` of a model's default inference.
fn density(model: &Path, questions: &Path, answers: &Path) -> Result<()> {
    let options = OpenOptions { encoder: EncoderSource::NotNeeded, ..OpenOptions::default() };
    let model = DiffusionModel::open(&ModelDirectory::read(model)?, &options)?;
    let file = fs::read(questions)?;
    let questions = SafeTensors::deserialize(&file)?;
    let read = |name: &str| -> Result<Vec<f64>> {
        let view = questions.tensor(name)?;
        let bytes = view.data();
        Ok(match view.dtype() {
            Dtype::F32 => {
                bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect()
            }
            Dtype::F64 => bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
            other => bail!("{name} is {other:?}"),
        })
    };
    let embeddings: Vec<f32> =
        read("embeddings")?.into_iter().map(|number| number as f32).collect();
    let places: Vec<LatLon> = read("places")?
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[latitude, longitude]| LatLon::new(*latitude, *longitude))
        .collect::<Result<_, _>>()?;
    let located = model
        .locate_embeddings(&embeddings, 1, &model.inference())
        .context("the model takes embeddings")?;
    let logs: Vec<u8> = located
        .par_iter()
        .flat_map_iter(|located| places.iter().map(|place| located.density.log_density(*place)))
        .flat_map_iter(f64::to_le_bytes)
        .collect();
    let shape = vec![located.len(), places.len()];
    let options = SampleOptions { noise_repeats_after: 1, ..SampleOptions::default() };
    let diffusion = model.diffusion();
    let condition = diffusion.condition(embeddings);
    let output = diffusion.sample(Some(condition), located.len(), options, |_| ());
    let size = output.dims();
    let output: Vec<u8> = numbers(output).into_iter().flat_map(f32::to_le_bytes).collect();
    let views = [
        ("log_density", TensorView::new(Dtype::F64, shape, &logs)?),
        ("coefficients", TensorView::new(Dtype::F32, size.to_vec(), &output)?),
    ];
    Ok(serialize_to_file(views, None, answers)?)
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("numbers of the CPU are f32")
}

fn write(path: &Path, arrays: &Arrays) -> Result<()> {
    let bytes: BTreeMap<&str, Vec<u8>> = arrays
        .iter()
        .map(|(name, (_, numbers))| {
            (name.as_str(), numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
        })
        .collect();
    let views: Vec<(&str, TensorView<'_>)> = bytes
        .iter()
        .map(|(name, bytes)| {
            let view = TensorView::new(Dtype::F32, arrays[*name].0.clone(), bytes);
            (*name, view.expect("the bytes are those of the shape"))
        })
        .collect();
    Ok(serialize_to_file(views, None, path)?)
}
