//! Training: it learns, it resumes exactly, and its errors have a reason.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::Duration;

use burn::tensor::Device;
use locdiff::encoders::EncoderRecord;
use locdiff_sphere::{LatLon, UnitVector, uniform_place};
use locdiff_train::{
    Checkpoints, Dataset, Event, Layout, Numbers, OnBadShard, Outcome, Plan, Replicas, RunConfig,
    RunOptions, ShardWriter, Start, TrainingConfig, TrainingError, Validation, train,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Embeddings that contain the place: its unit vector, some products and a little noise.
fn write_data(directory: &Path, rows: usize) -> Dataset {
    let layout = Layout {
        encoder: EncoderRecord::of_identity("test"),
        width: 8,
        views: 1,
        numbers: Numbers::F32,
    };
    let mut writer = ShardWriter::create(directory, layout, Default::default()).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for number in 0..rows {
        let place: LatLon = uniform_place(&mut rng);
        let [x, y, z] = UnitVector::from(place).to_array();
        let mut embedding = [x, y, z, x * y, y * z, x * z, x * x - y * y, 3.0 * z * z - 1.0];
        embedding.iter_mut().for_each(|value| *value += 0.05 * rng.random_range(-1.0..1.0));
        writer.write(&format!("row {number}"), place, &embedding.map(|v| v as f32)).unwrap();
    }
    writer.finish().unwrap();
    Dataset::open(directory.to_str().unwrap(), OnBadShard::Fail).unwrap()
}

fn config(steps: u64, dropout: f64) -> TrainingConfig {
    toml::from_str(&format!(
        r#"
        [network]
        max_degree = 4
        time_size = 16
        dropout = {dropout}
        [objective]
        kind = "likelihood"
        [optimizer]
        kind = "adamw"
        rate = 3e-3
        warmup_steps = 5
        decay = "cosine"
        clip_norm = 5.0
        [run]
        steps = {steps}
        batch = 64
        seed = 7
        ema_decay = 0.9
        [validation]
        share = 0.1
        every_steps = 0
        rows = 50
        [checkpoint]
        every_steps = 10
        keep = 2
        "#
    ))
    .unwrap()
}

fn options(directory: &Path, start: Start) -> RunOptions {
    let (directory, device) = (directory.into(), Device::flex());
    RunOptions { directory, start, at_most: None, device, replicas: None }
}

fn run_all(config: &TrainingConfig, data: &Dataset, directory: &Path) -> Vec<Validation> {
    let mut scores = Vec::new();
    let outcome = train(config, data, &options(directory, Start::New), &|| false, &mut |event| {
        if let Event::Validated(_, validation) = event {
            scores.push(*validation);
        }
    });
    assert_eq!(outcome.unwrap(), Outcome::Finished(directory.join("model")));
    scores
}

#[test]
fn it_learns_and_leaves_a_model_and_a_picture() {
    let scratch = tempfile::tempdir().unwrap();
    let data = write_data(&scratch.path().join("data"), 2000);
    let mut config = config(400, 0.0);
    config.validation.every_steps = 200;
    config.validation.rows = 200;
    let run = scratch.path().join("run");
    let scores = run_all(&config, &data, &run);
    assert_eq!(scores.len(), 2);
    // Knowing nothing is 2.53 nats, and 2500 km around a random guess hold 4 %.
    assert!(scores[1].nll.unwrap() < 0.5, "{:?}", scores[1]);
    assert!(scores[1].within_2500 > 80.0, "{:?}", scores[1]);
    assert!(fs::read(run.join("training.png")).unwrap().starts_with(b"\x89PNG"));
    let model = locdiff::diffusion::Diffusion::open(&run.join("model"), &Device::flex()).unwrap();
    assert_eq!(model.config().denoiser.condition_size, 8);
    let log = fs::read_to_string(run.join("log.jsonl")).unwrap();
    assert!(log.lines().count() >= 8, "{log}");
}

#[test]
fn a_run_that_was_stopped_goes_on_as_if_nothing_had_happened() {
    let scratch = tempfile::tempdir().unwrap();
    let data = write_data(&scratch.path().join("data"), 500);
    // With dropout, whose random numbers are the backend's own.
    let config = config(40, 0.2);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let whole = scratch.path().join("whole");
        run_all(&config, &data, &whole);
        let parts = scratch.path().join("parts");
        for stop_at in [1, 9, 10, 11, 39] {
            let seen = Cell::new(0);
            let outcome = train(
                &config,
                &data,
                &options(&parts, Start::Resume),
                &|| seen.get() >= stop_at,
                &mut |event| {
                    if let Event::Step(report) = event {
                        seen.set(report.step);
                    }
                },
            );
            assert_eq!(outcome.unwrap(), Outcome::Stopped(stop_at));
        }
        let resume = options(&parts, Start::Resume);
        let outcome = train(&config, &data, &resume, &|| false, &mut |_| ()).unwrap();
        assert_eq!(outcome, Outcome::Finished(parts.join("model")));
        let weights = |run: &Path, file: &str| fs::read(run.join(file)).unwrap();
        for file in ["model/model.safetensors", "checkpoints/000000040/model.safetensors"] {
            assert!(weights(&whole, file) == weights(&parts, file), "{file} differs");
        }
    });
}

/// As many threads as one likes: a slice is computed by one replica, and what threads share is added in a fixed order.
#[test]
fn any_number_of_replicas_gives_the_same_weights() {
    let scratch = tempfile::tempdir().unwrap();
    let data = write_data(&scratch.path().join("data"), 500);
    let config =
        TrainingConfig { run: RunConfig { batch: 62, ..config(30, 0.2).run }, ..config(30, 0.2) };
    // Until a step, or to the end.
    let run = |directory: &Path, replicas: Option<(usize, usize)>, stop_at: u64| {
        let replicas =
            replicas.map(|(count, threads)| Replicas::on_threads(count, threads).unwrap());
        let options = RunOptions { replicas, ..options(directory, Start::Resume) };
        let seen = Cell::new(0);
        let stop = || seen.get() >= stop_at;
        train(&config, &data, &options, &stop, &mut |event| {
            if let Event::Step(report) = event {
                seen.set(report.step);
            }
        })
    };
    let weights = |directory: &Path| {
        let read =
            |file: &str| fs::read(directory.join("checkpoints/000000030").join(file)).unwrap();
        ["model.safetensors", "averaged.safetensors", "optimizer.safetensors"].map(read)
    };
    let first = scratch.path().join("1");
    run(&first, Some((1, 1)), 30).unwrap();
    for (count, threads) in [(1, 2), (2, 1), (3, 1), (4, 2)] {
        let directory = scratch.path().join(format!("{count} of {threads}"));
        run(&directory, Some((count, threads)), 30).unwrap();
        assert!(weights(&first) == weights(&directory), "{count} replicas of {threads} threads");
    }
    // Begun with two, resumed with one, with four, and without any.
    let parts = scratch.path().join("parts");
    for (replicas, stop_at) in
        [(Some((2, 1)), 7), (Some((1, 2)), 13), (Some((4, 1)), 22), (None, 30)]
    {
        run(&parts, replicas, stop_at).unwrap();
    }
    assert!(weights(&first) == weights(&parts));
    // A row's draws are other ones than those of a batch in one piece, and a run does not change from one to the other.
    let whole = scratch.path().join("whole");
    run(&whole, None, 10).unwrap();
    let error = run(&whole, Some((2, 1)), 30).unwrap_err().to_string();
    assert!(error.contains("slices = 4"), "{error}");
    let error = run(&scratch.path().join("many"), Some((5, 1)), 30).unwrap_err().to_string();
    assert!(error.contains("run.slices = 4"), "{error}");
}

#[test]
fn a_damaged_checkpoint_is_passed_over_and_named() {
    let scratch = tempfile::tempdir().unwrap();
    let data = write_data(&scratch.path().join("data"), 300);
    let run = scratch.path().join("run");
    run_all(&config(30, 0.0), &data, &run);
    assert_eq!(Checkpoints::new(&run, 2).steps(), [20, 30]);
    let newest = run.join("checkpoints/000000030/optimizer.safetensors");
    let mut bytes = fs::read(&newest).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&newest, bytes).unwrap();
    // What a kill in the middle of writing leaves.
    fs::create_dir(run.join("checkpoints/partial")).unwrap();
    let mut begun = Vec::new();
    let longer = config(31, 0.0);
    let outcome = train(&longer, &data, &options(&run, Start::Resume), &|| true, &mut |event| {
        if let Event::Begun { step, damaged, .. } = event {
            begun.push((step, damaged.iter().map(ToString::to_string).collect::<String>()));
        }
    });
    assert_eq!(outcome.unwrap(), Outcome::Stopped(21));
    assert_eq!(begun.len(), 1);
    assert_eq!(begun[0].0, 20);
    assert!(begun[0].1.contains("000000030") && begun[0].1.contains("checksum"), "{begun:?}");
    assert!(!run.join("checkpoints/partial").exists());
}

#[test]
fn runs_are_not_overwritten_or_mixed_up() {
    let scratch = tempfile::tempdir().unwrap();
    let data = write_data(&scratch.path().join("data"), 300);
    let run = scratch.path().join("run");
    run_all(&config(20, 0.0), &data, &run);
    let again = train(&config(20, 0.0), &data, &options(&run, Start::New), &|| false, &mut |_| ());
    assert!(matches!(again, Err(TrainingError::Exists(_))));
    let mut other = config(20, 0.0);
    other.optimizer.rate = 1e-4;
    let resumed = train(&other, &data, &options(&run, Start::Resume), &|| false, &mut |_| ());
    let error = resumed.unwrap_err().to_string();
    assert!(error.contains("0.003") && error.contains("0.0001"), "{error}");
    let other_data = write_data(&scratch.path().join("other"), 200);
    let longer = config(25, 0.0);
    let resumed =
        train(&longer, &other_data, &options(&run, Start::Resume), &|| false, &mut |_| ());
    assert!(matches!(resumed, Err(TrainingError::Data(_))), "{resumed:?}");
}

#[test]
fn time_runs_out_with_a_checkpoint() {
    let scratch = tempfile::tempdir().unwrap();
    let data = write_data(&scratch.path().join("data"), 300);
    let run = scratch.path().join("run");
    let limited = RunOptions { at_most: Some(Duration::ZERO), ..options(&run, Start::New) };
    let outcome = train(&config(1000, 0.0), &data, &limited, &|| false, &mut |_| ()).unwrap();
    assert_eq!(outcome, Outcome::Stopped(1));
    assert_eq!(Checkpoints::new(&run, 2).steps(), [1]);
}

#[test]
fn a_plan_counts_what_the_configuration_says() {
    let config = config(1000, 0.0);
    let plan = Plan::measure(&config, 8, Some(640), &Device::flex(), None).unwrap();
    assert_eq!((plan.steps, plan.rows), (1000, 64_000));
    assert_eq!(plan.epochs, Some(100.0));
    assert!((plan.hours - 1000.0 * plan.step_ms / 3.6e6).abs() < 1e-12);
    // Weights, their average and two means.
    assert!((plan.checkpoint_mb - plan.parameters as f64 * 16.0 / 1e6).abs() < 1e-9);
}

#[test]
fn shipped_configurations_are_valid_and_mistakes_are_named() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut count = 0;
    for file in fs::read_dir(folder).unwrap() {
        let config = TrainingConfig::read(&file.unwrap().path()).unwrap();
        // The rate rises, then doesn't.
        assert!(config.rate(0) <= config.optimizer.rate);
        let last = config.rate(config.run.steps - 1);
        assert!(last <= config.rate(config.optimizer.warmup_steps));
        count += 1;
    }
    assert!(count >= 4);
    let text = toml::to_string(&config(10, 0.0)).unwrap();
    let parse = |text: &str| toml::from_str::<TrainingConfig>(text);
    let error = parse(&text.replace("clip_norm", "clip_nrom")).unwrap_err().to_string();
    assert!(error.contains("clip_nrom"), "{error}");
    for (from, to, named) in [
        ("rate = 0.003", "rate = -1.0", "optimizer.rate"),
        ("ema_decay = 0.9", "ema_decay = 1.0", "run.ema_decay"),
        ("time_size = 16", "time_size = 15", "network.time_size"),
        ("warmup_steps = 5", "warmup_steps = 11", "optimizer.warmup_steps"),
        ("keep = 2", "keep = 0", "checkpoint.keep"),
        ("batch = 64", "batch = 64\nslices = 65", "run.slices"),
        ("steps = 200", "steps = 0", "schedule"),
        ("steps = 200", "steps = 1000000000000", "schedule"),
        ("max_degree = 4", "max_degree = 4611686018427387904", "network"),
        ("depth = 2", "depth = 64", "network"),
    ] {
        assert!(text.contains(from), "{from} is not in\n{text}");
        let error = parse(&text.replace(from, to)).unwrap().check().unwrap_err().to_string();
        assert!(error.contains(named), "{to}: {error}");
    }
}
