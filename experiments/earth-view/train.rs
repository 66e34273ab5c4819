//! Trains encoder and head end to end by likelihood, on views that are rendered on the way.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use burn::module::Module;
use burn::optim::{GradientsAccumulator, GradientsParams};
use burn::tensor::Device;
use locdiff::diffusion::{Loss, Objective, Quadrature, coefficients_of};
use locdiff::models::earth_view::{ViewNetwork, ViewNetworkConfig};
use locdiff_earth::{Renderer, Style, View};
use locdiff_sphere::{Decoder, LatLon, UNIFORM_NLL_NATS};
use locdiff_train::{Adam, AdamConfig, moved_towards};
use locdiff_train::{Checkpoint, Checkpoints, Log, Record, Validation};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::json;

use crate::sets::{pixels, place};
use locdiff_experiments::earth_sources::Folders;

/// Views that are never trained on.
const HELD_OUT_SEED: u64 = 1_000_003;
const HELD_OUT: usize = 512;
const LOG_STEPS: u64 = 50;
/// Of the integrals: 139 km apart, enough for peaks of 80 km.
const RINGS: usize = 144;
/// Weather comes up over so many views: geography is learned faster under a clear sky.
const CLEAR_VIEWS: f64 = 400_000.0;

/// How to train; all but the number of steps and the decay must stay when a run is resumed.
pub struct Recipe {
    pub batch: usize,
    pub steps: u64,
    /// The last steps, over which the rate falls to zero.
    pub decay_steps: u64,
    pub rate: f64,
    pub warm_up: u64,
    pub ema_decay: f64,
    pub seed: u64,
}

impl Recipe {
    fn rate_at(&self, step: u64) -> f64 {
        let rise = ((step + 1) as f64 / self.warm_up as f64).min(1.0);
        let fall = ((self.steps - step) as f64 / self.decay_steps.max(1) as f64).min(1.0);
        self.rate * rise * fall
    }

    fn optimizer() -> AdamConfig {
        AdamConfig {
            beta_2: 0.98,
            weight_decay: 0.02,
            clip_norm: Some(30.0),
            ..AdamConfig::default()
        }
    }
}

/// Goes on with a run, or begins it, until its steps are done, the time is over, or a file named
/// `stop` appears in its directory.
pub fn train(recipe: &Recipe, directory: &Path, at_most: Option<Duration>) -> Result<()> {
    fs::create_dir_all(directory)?;
    let _ = fs::remove_file(directory.join("stop"));
    let config_path = directory.join("config.json");
    let config = match fs::read(&config_path) {
        Ok(text) => serde_json::from_slice(&text).context("config.json of the run")?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => ViewNetworkConfig::default(),
        Err(error) => return Err(error).context("config.json of the run"),
    };
    fs::write(&config_path, serde_json::to_string_pretty(&config)? + "\n")?;
    let device = Device::flex().autodiff();
    device.seed(recipe.seed);
    let mut model = config.init(&device);
    let mut averaged = model.valid();
    let mut optimizer = Adam::new(Recipe::optimizer());
    let checkpoints = Checkpoints::new(directory, 2);
    let mut step = 0;
    if let Some((checkpoint, _)) = checkpoints.newest::<ViewNetwork, ()>(&model)? {
        step = checkpoint.step;
        (model, averaged) = (checkpoint.network, checkpoint.averaged);
        optimizer =
            Adam::restored(Recipe::optimizer(), checkpoint.optimizer, &device.clone().inner());
    }
    let mut log = Log::open(&directory.join("log.jsonl"), step)?;
    let folders = Folders::from_environment()?;
    let mask = folders.mask()?;
    let open = |name: &str| folders.open(name, &mask);
    let day = vec![open("blue-marble")?, open("bmng")?, open("may")?];
    let mut renderer = Renderer::new(mask.clone(), day, vec![open("black-marble")?]);
    // So that it learns to say "at sea".
    renderer.framing.open_sea_share = 0.05;
    let mut unseen = Renderer::new(mask.clone(), vec![open("three-globe")?], Vec::new());
    unseen.framing.width_km[0] = 630.0;
    let side = config.encoder.side;
    let unseen = unseen.render_batch(HELD_OUT_SEED, HELD_OUT, side);
    let loss =
        Loss::new(Objective::Likelihood, Quadrature::Transform(RINGS), config.max_degree, &device);
    let workers = Workers::new(recipe, side, device.clone())?;
    let began = Instant::now();
    let (mut since, mut total, mut logged) = (Instant::now(), 0.0, step);
    let mut saved = Instant::now();
    while step < recipe.steps {
        let seen = step as f64 * recipe.batch as f64;
        renderer.style = style(0.4 + 0.6 * (seen / CLEAR_VIEWS).min(1.0));
        let (nats, gradients) = workers.gradients(&model, &loss, &renderer, step);
        anyhow::ensure!(nats.is_finite(), "the loss is {nats} at step {step}");
        let rate = recipe.rate_at(step);
        let old = std::mem::replace(&mut model, averaged.clone());
        let (new, gradient_norm) = optimizer.step(rate, old, gradients);
        model = new;
        step += 1;
        total += nats;
        let decay = recipe.ema_decay.min(step as f64 / (10.0 + step as f64));
        averaged = moved_towards(averaged, &model.valid(), 1.0 - decay);
        let last = step == recipe.steps;
        let stopping = last
            || at_most.is_some_and(|most| began.elapsed() > most)
            || directory.join("stop").exists();
        if step.is_multiple_of(LOG_STEPS) || stopping {
            let steps = step - logged;
            let validated = step.is_multiple_of(20 * LOG_STEPS) || stopping;
            let validation = validated.then(|| validate(&averaged, &config, &unseen)).flatten();
            let record = Record {
                step,
                loss: total / steps as f64,
                gradient_norm,
                rate,
                rows_per_s: (steps * recipe.batch as u64) as f64 / since.elapsed().as_secs_f64(),
                validation,
            };
            log.write(&record)?;
            eprintln!("{}", serde_json::to_string(&record)?);
            if validated {
                // Under the weather that is being trained.
                let known = renderer.render_batch(HELD_OUT_SEED, HELD_OUT, side);
                let on_known = validate(&averaged, &config, &known);
                eprintln!("{}", json!({ "step": step, "views like those trained on": on_known }));
            }
            (since, total, logged) = (Instant::now(), 0.0, step);
        }
        if stopping || saved.elapsed() > Duration::from_secs(300) {
            checkpoints.save(&Checkpoint {
                step,
                position: (),
                network: model.clone(),
                averaged: averaged.clone(),
                optimizer: optimizer.state(),
            })?;
            saved = Instant::now();
        }
        if stopping {
            break;
        }
    }
    // What comes after it must not take a part for the whole.
    anyhow::ensure!(step == recipe.steps, "stopped after {step} of {} steps", recipe.steps);
    Ok(())
}

/// What training shows, with everything but the share of nights toned down.
fn style(strength: f64) -> Style {
    let full = Style::training();
    let part = |value: f32| value * strength as f32;
    Style {
        light: part(full.light),
        haze: part(full.haze),
        clouds: part(full.clouds),
        snow: part(full.snow),
        sea: part(full.sea),
        glint: part(full.glint),
        colour: part(full.colour),
        blur: part(full.blur),
        vignette: part(full.vignette),
        noise: part(full.noise),
        jpeg_share: part(full.jpeg_share),
        night_share: full.night_share,
    }
}

/// A thread each, with everything that it does on that thread alone: a few views at a time stay
/// in its cache from rendering to gradients, and no thread waits for another within a step.
struct Workers<'a> {
    recipe: &'a Recipe,
    side: usize,
    device: Device,
    pools: Vec<ThreadPool>,
}

/// Views that a worker takes at a time.
const MICRO_BATCH: usize = 32;

impl Workers<'_> {
    fn new(recipe: &Recipe, side: usize, device: Device) -> Result<Workers<'_>> {
        let one = |_| ThreadPoolBuilder::new().num_threads(1).build();
        let pools = (0..rayon::current_num_threads()).map(one).collect::<Result<_, _>>()?;
        Ok(Workers { recipe, side, device, pools })
    }

    /// Mean loss and gradients of the views of a step.
    fn gradients(
        &self,
        model: &ViewNetwork,
        loss: &Loss,
        renderer: &Renderer,
        step: u64,
    ) -> (f64, GradientsParams) {
        let count = self.recipe.batch / MICRO_BATCH;
        let next = AtomicUsize::new(0);
        let work = || {
            // Leaves of its own: Burn's autodiff joins the graphs of threads that share leaves, and
            // two threads once waited for each other's for ever.
            let model = model.clone().fork(&self.device);
            let mut sum = GradientsAccumulator::new();
            let mut total = 0.0;
            loop {
                let k = next.fetch_add(1, Ordering::Relaxed);
                if k >= count {
                    return (total, sum.grads());
                }
                let first = step * self.recipe.batch as u64 + (k * MICRO_BATCH) as u64;
                let numbers = first..first + MICRO_BATCH as u64;
                let views = renderer.render_range(self.recipe.seed, numbers, self.side);
                let places: Vec<LatLon> = views.iter().map(place).collect();
                let mut rng = ChaCha8Rng::seed_from_u64(self.recipe.seed);
                rng.set_stream(first + 1);
                let output = model.forward(&pixels(&views));
                let value = loss.mean(output, &places, &mut rng) / count as f64;
                total += f64::from(value.clone().into_scalar::<f32>());
                sum.accumulate(&model, GradientsParams::from_grads(value.backward(), &model));
            }
        };
        let mut parts: Vec<(f64, GradientsParams)> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                self.pools.iter().map(|pool| scope.spawn(|| pool.install(work))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a worker fell over")).collect()
        });
        let mut sum = GradientsAccumulator::new();
        let nats = parts.iter().map(|(nats, _)| nats).sum();
        for (_, part) in parts.drain(..) {
            sum.accumulate(model, part);
        }
        (nats, sum.grads())
    }
}

fn validate(model: &ViewNetwork, config: &ViewNetworkConfig, views: &[View]) -> Option<Validation> {
    let decoder = Decoder::new(config.max_degree);
    let places: Vec<LatLon> = views.iter().map(place).collect();
    let (mut answers, mut nll) = (Vec::new(), 0.0);
    for part in views.chunks(128) {
        let output = model.forward(&pixels(part));
        for (e, view) in coefficients_of(&output).iter().zip(part) {
            answers.push(decoder.mode(e).place);
            let density = locdiff_sphere::Density::exponential(e);
            let density = density.log_density(place(view)).exp();
            nll -= (0.99 * density + 0.01 * (-UNIFORM_NLL_NATS).exp()).ln();
        }
    }
    Validation::of_answers(&answers, &places, Some(nll / places.len() as f64))
}
