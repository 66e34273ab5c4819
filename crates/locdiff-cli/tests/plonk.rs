//! plonk's models from a hub of our own, on this machine: fetched, interrupted, resumed, rejected, and asked without a network.
//! The repositories have the names and the layout of the published ones, and small random weights.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

#[expect(dead_code, reason = "the tests of the downloader need more of it")]
#[path = "../../locdiff/tests/all/hub/server.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use locdiff::checksum::sha256;
use serde_json::Value;
use server::{Behaviour, Fault, Server};

const WEIGHTS: &str = "model.safetensors";
const FLOWS: [[&str; 2]; 3] = [
    ["nicolas-dufour/PLONK_YFCC/config.json", "nicolas-dufour/PLONK_YFCC/model.safetensors"],
    [
        "nicolas-dufour/PLONK_iNaturalist/config.json",
        "nicolas-dufour/PLONK_iNaturalist/model.safetensors",
    ],
    ["nicolas-dufour/PLONK_OSV_5M/config.json", "nicolas-dufour/PLONK_OSV_5M/model.safetensors"],
];
const ENCODERS: [(&str, [&str; 3]); 2] = [
    (
        "parity/vision/dinov2-registers",
        [
            "facebook/dinov2-with-registers-large/config.json",
            "facebook/dinov2-with-registers-large/model.safetensors",
            "facebook/dinov2-with-registers-large/preprocessor_config.json",
        ],
    ),
    (
        "parity/vision/clip-quick-gelu",
        [
            "geolocal/StreetCLIP/config.json",
            "geolocal/StreetCLIP/model.safetensors",
            "geolocal/StreetCLIP/preprocessor_config.json",
        ],
    ),
];
/// 56 pixels are whole patches of both encoders.
const PREPROCESSOR: &str = r#"{"do_resize": true, "size": {"shortest_edge": 56}, "do_center_crop": true,
    "crop_size": {"height": 56, "width": 56}, "do_rescale": true, "do_normalize": true,
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 3}"#;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// All repositories that the three models need.
fn hub() -> Behaviour {
    let mut behaviour = Behaviour::default();
    let mut add = |name: &'static str, content: Vec<u8>| {
        // Large files have a SHA-256, small ones git's own sum.
        let sum = sha256(&content);
        let etag = if name.ends_with(WEIGHTS) { sum } else { sum[..40].to_owned() };
        behaviour.files.insert(name, (content, etag));
    };
    for [config, weights] in FLOWS {
        add(config, fs::read(repository("parity/plonk/small/config.json")).unwrap());
        add(weights, fs::read(repository("parity/plonk/small/model.safetensors")).unwrap());
    }
    for (folder, [config, weights, preprocessor]) in ENCODERS {
        add(config, fs::read(repository(folder).join("config.json")).unwrap());
        add(weights, fs::read(repository(folder).join(WEIGHTS)).unwrap());
        add(preprocessor, PREPROCESSOR.as_bytes().to_vec());
    }
    behaviour
}

struct Machine {
    server: Server,
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        Machine { server: Server::start(hub()), folder: tempfile::tempdir().unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locdiff"));
        command.args(arguments).current_dir(repository("examples"));
        command.env("LOCDIFF_HOME", self.home()).env("HF_HOME", self.folder.path().join("hf"));
        command.env("HF_ENDPOINT", self.server.endpoint()).env_remove("HF_HUB_CACHE");
        command.env_remove("HF_TOKEN").env_remove("HF_HUB_OFFLINE");
        command
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn success(&self, arguments: &[&str]) -> String {
        finished(&self.command(arguments).output().unwrap())
    }

    fn failure(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Without any network.
    fn offline(&self, arguments: &[&str]) -> Value {
        self.server.forget_requests();
        let output = self.command(arguments).env("HF_HUB_OFFLINE", "1").output().unwrap();
        let text = finished(&output);
        assert!(self.server.requests().is_empty());
        serde_json::from_str(&text).unwrap()
    }
}

fn finished(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_flow_is_fetched_interrupted_resumed_and_asked() {
    let machine = Machine::new();
    let unknown = ["predict", "madagascar.jpg", "--model", "plonk-yfcc"];
    let unknown = machine.command(&unknown).output().unwrap();
    let message = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(message.contains("locdiff model fetch plonk-yfcc"), "{message}");

    // The program is killed while the server is silent after a third of the weights.
    machine.server.change(|hub| hub.faults_of_downloads = [Fault::Stall(50_000)].into());
    let mut process = machine.command(&["model", "fetch", "plonk-yfcc"]).spawn().unwrap();
    let sum = sha256(&fs::read(repository("parity/plonk/small/model.safetensors")).unwrap());
    let part = machine
        .folder
        .path()
        .join("hf/hub/models--nicolas-dufour--PLONK_YFCC/blobs")
        .join(format!("{sum}.incomplete"));
    let began = Instant::now();
    while fs::metadata(&part).map_or(0, |part| part.len()) < 50_000 {
        assert!(began.elapsed() < Duration::from_secs(60), "the download never began");
        thread::sleep(Duration::from_millis(20));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!machine.home().join("models/plonk-yfcc").exists());

    let facts = machine.success(&["model", "fetch", "plonk-yfcc", "--json"]);
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let ranges = machine.server.downloads("PLONK_YFCC/model.safetensors");
    assert_eq!(ranges, ["bytes=0-", "bytes=50000-"]);
    assert_eq!(facts["files"][1]["sha256"], sum.as_str());
    assert_eq!(facts["encoder"]["encoder"], "dinov2-l-14-reg-336");

    // The checksum is recorded, and known to be nobody's.
    let shown: Value =
        serde_json::from_str(&machine.success(&["model", "show", "plonk-yfcc", "--json"])).unwrap();
    assert_eq!(shown["source"]["repository"], "nicolas-dufour/PLONK_YFCC");
    assert_eq!(shown["source"]["revision"], server::COMMIT);
    machine.success(&["model", "verify", "plonk-yfcc"]);
    let doctor = machine.success(&["doctor"]);
    assert!(doctor.contains("plonk-yfcc: runs, unknown weights"), "{doctor}");
    assert!(doctor.contains("dinov2-l-14-reg-336: runs, unknown weights"), "{doctor}");

    let predict = ["predict", "madagascar.jpg", "--model", "plonk-yfcc", "--json"];
    let answer = machine.offline(&[&predict[..], &["--samples", "64"]].concat());
    assert_eq!(answer["model"]["name"], "plonk-yfcc");
    assert_eq!(answer["model"]["calibrated"], false);
    assert_eq!(answer["inference"]["sampler"], "flow");
    assert_eq!(answer["inference"]["steps"], 32);
    assert!(answer["kernel_km"].as_f64().unwrap() >= 10.0);
    let again = machine.offline(&[&predict[..], &["--samples", "64"]].concat());
    assert_eq!(answer, again);

    let exact = machine.offline(&[&predict[..], &["--exact", "--steps", "8"]].concat());
    assert_eq!(exact["inference"]["sampler"], "exact");
    assert!(exact["kernel_km"].is_null());
    assert!(exact["warnings"][0].as_str().unwrap().contains("its error is at least"));
    let guided = machine.offline(&[&predict[..], &["--samples", "8", "--guidance", "2"]].concat());
    assert!(guided["warnings"][0].as_str().unwrap().contains("guidance 2"));
    // Without a name it is the one for the ground.
    let ground = repository("parity/photo/files/rgb.jpg");
    let ground = ["predict", ground.to_str().unwrap(), "--json"];
    let answer = machine.offline(&ground);
    assert_eq!(answer["model"]["name"], "plonk-yfcc");
    let because = answer["model"]["chosen_because"].as_str().unwrap();
    assert!(because.contains("best installed model for photographs from the ground"), "{because}");
    // It shares its encoder with the other, which is for animals and plants only.
    machine.server.forget_requests();
    machine.success(&["model", "fetch", "plonk-inaturalist"]);
    assert!(machine.server.requests().iter().all(|r| !r.path.contains("facebook")));
    assert_eq!(machine.offline(&ground), answer);
    let names = ["-m", "plonk-inaturalist", "-m", "plonk-yfcc"];
    let both = machine.success(&[&ground[..], &names].concat());
    let both: Vec<Value> = both.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(both.len(), 2);
    assert_eq!(both[0]["candidates"], both[1]["candidates"], "the same weights and embeddings");
    assert_eq!(both[1]["candidates"], answer["candidates"]);
}

/// Whatever takes a model takes a flow.
#[test]
fn a_flow_is_evaluated_calibrated_and_combined_with_a_gallery() {
    let machine = Machine::new();
    machine.success(&["model", "fetch", "plonk-yfcc"]);
    let folder = machine.folder.path().join("pictures");
    fs::create_dir(&folder).unwrap();
    let mut manifest = "image,latitude,longitude\n".to_owned();
    // Calibration needs a hundred.
    for number in 0..100 {
        let name = format!("{number}.jpg");
        fs::copy(repository("parity/photo/files/rgb.jpg"), folder.join(&name)).unwrap();
        manifest += &format!("{name},{},{}\n", number % 80, number);
    }
    fs::write(folder.join("manifest.csv"), manifest).unwrap();
    let path = |name: &str| machine.folder.path().join(name).to_str().unwrap().to_owned();
    let (data, gallery, hybrid) = (path("pictures"), path("gallery"), path("hybrid"));
    let asked = ["--model", "plonk-yfcc", "--data", &data, "--samples", "16", "--json"];
    let scored = machine.offline(&[&["evaluate"], &asked[..]].concat());
    assert_eq!(scored["images"], 100, "{scored}");
    let calibrate = ["calibrate", "plonk-yfcc", "--data", &data, "--samples", "16", "--json"];
    let calibrated = machine.offline(&calibrate);
    assert!(calibrated["after"]["nll_nats"].is_number(), "{calibrated}");
    let encoder = "dinov2-l-14-reg-336";
    let build = ["gallery", "build", "--data", &data, "--encoder", encoder, "--out", &gallery];
    machine.success(&build);
    let combine = ["model", "hybrid", "--model", "plonk-yfcc", "--gallery", &gallery];
    machine.success(&[&combine[..], &["--rule", "paper", "--out", &hybrid]].concat());
    let answer = machine.offline(&["predict", "sinai.jpg", "--model", &hybrid, "--json"]);
    assert_eq!(answer["prediction"], true, "{answer}");
}

#[test]
fn a_licence_without_commercial_use_is_accepted_once() {
    let machine = Machine::new();
    let message = machine.failure(&["model", "fetch", "plonk-osv5m", "--json"]);
    assert!(message.contains("plonk-osv5m: license MIT"), "{message}");
    assert!(message.contains("license CC-BY-NC-4.0, non-commercial use only"), "{message}");
    assert!(message.contains("--accept-license"), "{message}");
    assert!(machine.server.requests().is_empty() && !machine.home().exists());
    machine.success(&["model", "fetch", "plonk-osv5m", "--accept-license"]);
    // Once is enough, for the encoder by itself too.
    machine.success(&["model", "fetch", "plonk-osv5m"]);
    machine.success(&["model", "fetch", "streetclip"]);
    let arguments = ["predict", "madagascar.jpg", "--model", "plonk-osv5m", "--samples", "16"];
    let answer = machine.offline(&[&arguments[..], &["--json"]].concat());
    assert!(answer["model"]["description"].as_str().unwrap().contains("streetclip-token"));
}

#[test]
fn weights_that_change_at_the_same_revision_are_rejected() {
    let machine = Machine::new();
    machine.success(&["model", "fetch", "plonk-inaturalist"]);
    let installed = machine.home().join("models/plonk-inaturalist").join(WEIGHTS);
    let before = fs::read(&installed).unwrap();
    let mut other = before.clone();
    *other.last_mut().unwrap() ^= 1;
    machine.server.change(|hub| {
        let etag = sha256(&other);
        hub.files.insert("nicolas-dufour/PLONK_iNaturalist/model.safetensors", (other, etag));
    });
    let message = machine.failure(&["model", "fetch", "plonk-inaturalist"]);
    assert!(message.contains("The earlier download is kept"), "{message}");
    // Another cache has no record of it, the model directory has.
    fs::remove_dir_all(machine.folder.path().join("hf")).unwrap();
    let message = machine.failure(&["model", "fetch", "plonk-inaturalist"]);
    assert!(message.contains("a revision does not change"), "{message}");
    assert_eq!(fs::read(&installed).unwrap(), before);
}
