//! `locdiff train` as a user meets it: killed, resumed, out of room.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use locdiff::encoders::EncoderRecord;
use locdiff_sphere::{UnitVector, uniform_place};
use locdiff_train::{Checkpoints, Layout, Numbers, ShardWriter};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const STEPS: u64 = 600;

/// A directory with data and a configuration.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("train").join(name);
    let _ = fs::remove_dir_all(&path);
    let layout = Layout {
        encoder: EncoderRecord::of_identity("test"),
        width: 3,
        views: 1,
        numbers: Numbers::F16,
    };
    let data = path.join("data");
    let mut writer =
        ShardWriter::create(&data, layout, Default::default()).expect("a data set is begun");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for number in 0..400 {
        let place = uniform_place(&mut rng);
        let vector = UnitVector::from(place).to_array().map(|part| part as f32);
        writer.write(&number.to_string(), place, &vector).expect("a row is written");
    }
    writer.finish().expect("the data set is finished");
    let config = format!(
        "[network]\nmax_degree = 3\ntime_size = 8\ndropout = 0.1\n\
         [objective]\nkind = \"likelihood\"\n\
         [optimizer]\nkind = \"adamw\"\nrate = 1e-3\n\
         [run]\nsteps = {STEPS}\nbatch = 32\n\
         [validation]\nshare = 0.0\n\
         [checkpoint]\nevery_steps = 7\n"
    );
    fs::write(path.join("config.toml"), config).expect("a configuration is written");
    path
}

/// The program on one thread: then it is the same bit for bit.
fn command(scratch: &Path, out: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locdiff"));
    command
        .arg("train")
        .arg(scratch.join("config.toml"))
        .arg("--data")
        .arg(scratch.join("data"))
        .arg("--out")
        .arg(scratch.join(out))
        .args(arguments)
        .env("RAYON_NUM_THREADS", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn train(scratch: &Path, out: &str, arguments: &[&str]) -> Output {
    command(scratch, out, arguments).output().expect("the program starts")
}

fn succeeded(output: &Output) -> &Output {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn killed_ten_times_it_ends_with_the_same_weights() {
    let scratch = scratch("killed");
    let whole = train(&scratch, "whole", &["--json"]);
    let json = String::from_utf8_lossy(&succeeded(&whole).stdout).into_owned();
    assert!(json.contains("\"finished\""), "{json}");
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let steps = || Checkpoints::new(&scratch.join("parts"), 2).steps().last().copied();
    for kill in 0..10 {
        let mut child = command(&scratch, "parts", &["--resume"]).spawn().expect("it starts");
        // Every other time soon after the start; else when it has gone on by a checkpoint, so
        // that the run comes forward.
        let before = steps().unwrap_or(0);
        while kill % 2 == 0 && steps().unwrap_or(0) < before + 7 {
            assert!(child.try_wait().expect("its state").is_none(), "it ended by itself");
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_micros(rng.random_range(0..20_000)));
        child.kill().expect("it is killed");
        child.wait().expect("it is gone");
        let reached = steps().unwrap_or(0);
        assert!(reached < STEPS, "kill {kill} came after the end: make the run longer");
    }
    let rest = train(&scratch, "parts", &["--resume"]);
    let words = String::from_utf8_lossy(&succeeded(&rest).stderr).into_owned();
    assert!(words.contains("resuming after step"), "{words}");
    let weights = |out: &str| {
        fs::read(scratch.join(out).join("model/model.safetensors")).expect("a finished model")
    };
    assert!(weights("whole") == weights("parts"), "the weights differ");
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_leaves_cleanly() {
    let scratch = scratch("interrupted");
    let mut child = command(&scratch, "run", &["--json"]).spawn().expect("it starts");
    let checkpoints = Checkpoints::new(&scratch.join("run"), 2);
    while checkpoints.steps().is_empty() {
        assert!(child.try_wait().expect("its state").is_none(), "it ended by itself");
        sleep(Duration::from_millis(1));
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.expect("kill exists").success());
    let output = child.wait_with_output().expect("it ends");
    succeeded(&output);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["state"], "stopped");
    assert_eq!(checkpoints.steps().last().copied(), json["step"].as_u64());
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_last_checkpoint_readable() {
    let scratch = scratch("full");
    succeeded(&train(&scratch, "run", &["--max-minutes", "0.000001"]));
    let checkpoints = Checkpoints::new(&scratch.join("run"), 2);
    let before = checkpoints.steps();
    // Files may have four blocks of 512 bytes: the weights don't fit.
    let program = command(&scratch, "run", &["--resume", "--max-minutes", "0.001"]);
    let mut line = format!("trap '' XFSZ; ulimit -f 4; exec {:?}", program.get_program());
    program.get_args().for_each(|argument| line += &format!(" {argument:?}"));
    let output = Command::new("sh").args(["-c", &line]).output().expect("a shell");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("checkpoint"), "{words}");
    assert_eq!(checkpoints.steps(), before);
    let resumed = train(&scratch, "run", &["--resume", "--max-minutes", "0.000001"]);
    succeeded(&resumed);
}

#[test]
fn mistakes_are_named() {
    let scratch = scratch("mistakes");
    let failure = |arguments: &[&str]| {
        let output = train(&scratch, "run", arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let words = failure(&["--device", "cuda:0"]);
    assert!(words.contains("--features cuda"), "{words}");
    let words = failure(&["--max-minutes", "0"]);
    assert!(words.contains("positive"), "{words}");
    let plan = train(&scratch, "run", &["--plan", "--json"]);
    let plan: serde_json::Value =
        serde_json::from_slice(&succeeded(&plan).stdout).expect("a plan as JSON");
    assert_eq!(plan["steps"], STEPS);
    assert!(!scratch.join("run").exists(), "a plan writes nothing");
}

#[test]
fn a_model_that_was_trained_is_calibrated_and_says_so() {
    let scratch = scratch("calibrated");
    succeeded(&train(&scratch, "run", &[]));
    let (model, data) = (scratch.join("run/model"), scratch.join("data"));
    let asked = |command: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_locdiff"));
        let output = program.args(command).arg("--data").arg(&data).output();
        let output = output.expect("the program starts");
        String::from_utf8_lossy(&succeeded(&output).stdout).into_owned()
    };
    let model = model.to_str().expect("a path in UTF-8");
    let scored = || asked(&["evaluate", "--model", model, "--rows", "50", "--json"]);
    assert!(scored().contains("not calibrated"));
    let dry: serde_json::Value =
        serde_json::from_str(&asked(&["calibrate", model, "--dry-run", "--json"])).expect("JSON");
    assert!(scored().contains("not calibrated"), "a dry run writes nothing");
    let found: serde_json::Value =
        serde_json::from_str(&asked(&["calibrate", model, "--json"])).expect("JSON");
    assert_eq!(dry, found, "the same rows give the same calibration");
    assert_eq!(found["fitted_rows"], 200);
    let nll = |when: &str| found[when]["nll_nats"].as_f64().expect("a number");
    assert!(nll("after") <= nll("before") + 0.02, "{found}");
    assert!((80.0..=100.0).contains(&found["after"]["within_90"].as_f64().expect("a share")));
    assert!(!scored().contains("not calibrated"));
    // Asked in another way, its numbers are scores again.
    let guided =
        asked(&["evaluate", "--model", model, "--rows", "50", "--guidance", "2", "--json"]);
    assert!(
        guided.contains("not calibrated") && guided.contains("other inference options"),
        "{guided}"
    );
}
