//! The whole path of somebody who trains a model: embed, train, export, evaluate, predict, serve. With a tiny encoder and a
//! tiny model, and each interface's output held against the one schema.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::client::{Running, program, repository};
use crate::schema::{assert_fits, fits};

/// Below it everything is made.
pub(crate) struct Workshop(tempfile::TempDir);

const CONFIG: &str = r#"
    [network]
    max_degree = 5
    time_size = 16
    standardize = true
    [objective]
    kind = "likelihood"
    [optimizer]
    kind = "adamw"
    rate = 3e-3
    [run]
    steps = 20
    batch = 16
    ema_decay = 0.0
    [validation]
    share = 0.2
    rows = 8
    [checkpoint]
    every_steps = 10
"#;

impl Workshop {
    /// With forty pictures, their places, and the tiny encoder under a name.
    pub(crate) fn new() -> Workshop {
        let workshop = Workshop(tempfile::tempdir().unwrap());
        let encoder = workshop.at("home/models/tiny-clip");
        fs::create_dir_all(&encoder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            let from = repository("parity/vision/clip-quick-gelu").join(file);
            fs::copy(from, encoder.join(file)).unwrap();
        }
        fs::create_dir(workshop.at("pictures")).unwrap();
        let mut manifest = "image,latitude,longitude\n".to_owned();
        for number in 0..40_u32 {
            let picture = image::RgbImage::from_fn(48, 40, |x, y| {
                image::Rgb([(6 * number) as u8, (5 * x) as u8, ((x * y) ^ number) as u8])
            });
            let name = format!("{number:02}.png");
            picture.save(workshop.at("pictures").join(&name)).unwrap();
            let latitude = f64::from(number) - 20.0;
            manifest.push_str(&format!("{name},{latitude},{}\n", 4 * number));
        }
        fs::write(workshop.at("pictures/manifest.csv"), manifest).unwrap();
        fs::write(workshop.at("tiny.toml"), CONFIG).unwrap();
        workshop
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// The program, in the workshop.
    fn command(&self, arguments: &str) -> Command {
        let mut command = program(&self.at("home"));
        command.args(arguments.split(' ')).current_dir(self.0.path());
        command
    }

    fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn success(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &str) -> Value {
        let text = self.success(arguments);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments}: {error}: {text}"))
    }

    pub(crate) fn failure(&self, arguments: &str) -> (i32, String) {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), stderr)
    }
}

/// Largest difference of two lists of numbers.
fn difference(a: &Value, b: &Value) -> f64 {
    let numbers = |value: &Value| -> Vec<f64> {
        value["coefficients"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect()
    };
    let (a, b) = (numbers(a), numbers(b));
    assert_eq!(a.len(), b.len());
    a.iter().zip(&b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

#[test]
fn what_is_trained_answers() {
    let workshop = Workshop::new();
    workshop.success("embed pictures/manifest.csv --encoder tiny-clip --out embeddings");
    let trained = workshop.json("train tiny.toml --data embeddings --out runs/first --json");
    assert_eq!((&trained["state"], &trained["step"]), (&json!("finished"), &json!(20)));
    let model = "runs/first/model";

    // It names its encoder, and is whole.
    let shown = workshop.json(&format!("model show {model} --json"));
    assert_eq!(shown["encoder"]["name"], "tiny-clip");
    assert_eq!(
        (&shown["kind"], &shown["inference"]["sampler"]),
        (&json!("diffusion"), &json!("one-pass"))
    );
    assert_eq!(workshop.json(&format!("model verify {model} --json"))["ok"], true);

    // A checkpoint before the last is a model too.
    let exported = workshop.json("model export runs/first --step 10 --out earlier --json");
    assert_eq!(exported["step"], 10);
    assert_eq!(workshop.json("model show earlier --json")["training"]["steps"], 10);
    let (code, complaint) = workshop.failure("model export runs/first --step 7 --out other");
    assert!(code == 1 && complaint.contains("use one of 10, 20"), "{complaint}");

    // Scores, likelihood and coverage in one command, on embeddings and on pictures.
    let scores =
        workshop.json(&format!("evaluate --model {model} --data embeddings --json --resamples 0"));
    assert_eq!(scores["images"], 40);
    let on_pictures = workshop.json(&format!(
        "evaluate --model {model} --data pictures/manifest.csv --json --resamples 0"
    ));
    for key in ["nll_nats", "coverage_50", "coverage_90"] {
        let (a, b) =
            (&scores["density_scores"][key]["value"], &on_pictures["density_scores"][key]["value"]);
        // Embeddings at rest have half precision.
        assert!((a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 0.03, "{key}: {a} and {b}");
    }
    let sampled = workshop.json(&format!(
        "evaluate --model {model} --data embeddings --rows 6 --sampler ddim --steps 4 --samples 5 --decode mean --json --resamples 0"
    ));
    assert_eq!(sampled["images"], 6);
    assert!(sampled["notes"].to_string().contains("ddim"), "{}", sampled["notes"]);

    // One answer by program and by server, with its whole density.
    let by_program = workshop.json(&format!(
        "predict pictures/07.png --model {model} --json --density --frames 3 --draws 2"
    ));
    assert_fits(&by_program);
    assert_eq!(by_program["model"]["name"], "first/model");
    assert_eq!(by_program["frames"].as_array().unwrap().len(), 3);
    let path = workshop.at(model);
    let server = Running::start_in(
        &workshop.at("home"),
        &["--model", path.to_str().unwrap(), "--device", "cpu"],
    );
    let picture = fs::read(workshop.at("pictures/07.png")).unwrap();
    let answer = server.post("/v1/locate?density=true&frames=3&draws=2", &picture).json();
    fits("LocateAnswer", &answer);
    let by_server = &answer["results"][0];
    assert!(difference(&by_program["density"], &by_server["density"]) < 1e-6);
    for key in ["place", "candidates", "inference", "warnings", "radius_50_km", "draws", "frames"] {
        assert_eq!(by_program[key], by_server[key], "{key}");
    }
    let offered = server.get("/v1/models").json();
    assert_eq!(
        (&offered["models"][0]["frames"], &offered["models"][0]["inference"]["sampler"]),
        (&json!(true), &json!("one-pass"))
    );

    // GeoJSON has the same names and digits.
    let collection = workshop.json(&format!("predict pictures/07.png --model {model} --geojson"));
    let features = collection["features"].as_array().unwrap();
    assert!(features.iter().any(|feature| feature["properties"]["kind"] == "candidate"));
    for feature in features {
        fits("FeatureProperties", &feature["properties"]);
    }
    let first = features.iter().find(|feature| feature["properties"]["rank"] == 1).unwrap();
    for key in ["latitude", "longitude", "mass", "radius_km", "country_code"] {
        assert_eq!(first["properties"][key], by_program["candidates"][0][key], "{key}");
    }
    let density = serde_json::to_vec(&by_program["density"]).unwrap();
    let kind = "Content-Type: application/json\r\n";
    let drawn = server.ask("POST", "/v1/density?format=geojson", kind, &density).json();
    for feature in drawn["features"].as_array().unwrap() {
        fits("FeatureProperties", &feature["properties"]);
    }
    // What has no answer is accounted for, in the same form.
    let nothing = workshop.run("predict pictures/none.png --model earth-view --json");
    assert_fits(&serde_json::from_slice(&nothing.stdout).unwrap());

    // The samplers, and what they are refused for.
    for sampler in ["one-pass", "ddim", "ddpm"] {
        let arguments = format!(
            "predict pictures/07.png --model {model} --json --density --sampler {sampler} --samples 3 --seed 5 --decode geoscore"
        );
        let answer = workshop.json(&arguments);
        assert_fits(&answer);
        assert_eq!(answer["inference"]["sampler"], sampler);
        let query =
            format!("/v1/locate?density=true&sampler={sampler}&samples=3&seed=5&decode=geoscore");
        let served = server.post(&query, &picture).json();
        assert_eq!(served["results"][0]["place"], answer["place"], "{sampler}");
        assert_eq!(served["results"][0]["kernel_km"], answer["kernel_km"], "{sampler}");
    }
    let (code, complaint) =
        workshop.failure(&format!("predict pictures/07.png --model {model} --sampler euler"));
    assert!(code == 2 && complaint.contains("one-pass"), "{complaint}");
    let (code, complaint) =
        workshop.failure("predict pictures/07.png --model earth-view --sampler ddpm");
    assert!(
        code == 2 && complaint.contains("earth-view does not support sampler ddpm"),
        "{complaint}"
    );
    let refused = server.post("/v1/locate?sampler=ddim&samples=32&views=2", &picture);
    assert_eq!(refused.status, 400);
    assert!(refused.json()["detail"].as_str().unwrap().contains("at most 32"));
    let refused = server.post("/v1/locate?sampler=ddim&steps=5000", &picture);
    assert_eq!(refused.status, 400);
    assert!(refused.json()["detail"].as_str().unwrap().contains("noise levels"));
}

#[test]
fn a_model_elsewhere_says_what_it_needs_and_damage_is_named() {
    let workshop = Workshop::new();
    workshop.success("embed pictures/manifest.csv --encoder tiny-clip --out embeddings");
    workshop.success("train tiny.toml --data embeddings --out runs/first");
    let ask = |home: &Path, arguments: &[&str]| {
        let mut command = program(home);
        command.args(["predict", "pictures/03.png", "--json", "--model", "runs/first/model"]);
        command.args(arguments).current_dir(workshop.0.path()).output().unwrap()
    };
    let answer = |output: &Output| -> Value {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let here = answer(&ask(&workshop.at("home"), &[]));
    // An empty home: the command that fetches the encoder.
    let nothing = ask(&workshop.at("empty"), &[]);
    let complaint = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert_eq!(nothing.status.code(), Some(3), "{complaint}");
    assert!(
        complaint.contains("`locdiff model import encoder tiny-clip DIRECTORY`"),
        "{complaint}"
    );
    // The encoder by its path gives the same answer.
    let encoder = repository("parity/vision/clip-quick-gelu");
    let by_path = answer(&ask(&workshop.at("empty"), &["--encoder", encoder.to_str().unwrap()]));
    assert_eq!(here["place"], by_path["place"]);
    // Another one is rejected, naming both.
    let other = repository("parity/vision/clip-gelu");
    let rejected = ask(&workshop.at("empty"), &["--encoder", other.to_str().unwrap()]);
    let complaint = String::from_utf8_lossy(&rejected.stderr).into_owned();
    assert!(rejected.status.code() == Some(1) && complaint.contains(", expected "), "{complaint}");

    let weights = workshop.at("runs/first/model/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&weights, bytes).unwrap();
    let output = workshop.run("model verify runs/first/model --json");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let damaged: Vec<&Value> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|file| !file["problem"].is_null())
        .collect();
    assert_eq!((report["ok"].clone(), damaged.len()), (json!(false), 1));
    assert_eq!(damaged[0]["name"], "model.safetensors");
}

#[test]
fn installed_models_are_listed_and_removed() {
    let workshop = Workshop::new();
    workshop.success("embed pictures/manifest.csv --encoder tiny-clip --out embeddings");
    workshop.success("train tiny.toml --data embeddings --out runs/first");
    workshop.success("model export runs/first --out home/models/mine");
    let list = workshop.success("model list --json");
    let names: Vec<Value> = list
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone())
        .collect();
    // The encoder is no model.
    assert_eq!(names, [json!("earth-view"), json!("mine")]);
    let named = workshop.json("predict pictures/05.png --model mine --json");
    assert_eq!(named["model"]["name"], "mine");
    let doctor = workshop.success("doctor --no-tests --json");
    assert!(doctor.contains(r#""name":"mine""#), "{doctor}");
    let (code, complaint) = workshop.failure("model remove mine");
    assert!(code == 1 && complaint.contains("--yes"), "{complaint}");
    workshop.success("model remove mine --yes");
    assert!(!workshop.at("home/models/mine").exists());
    let (code, complaint) = workshop.failure("predict pictures/05.png --model mine");
    assert!(code == 2 && complaint.contains("no model `mine`"), "{complaint}");
    assert_eq!(workshop.failure("model remove earth-view --yes").0, 1);
}
