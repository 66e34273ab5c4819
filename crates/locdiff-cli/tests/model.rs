//! `locdiff model` as a user meets it: stdout, stderr, exit code and files.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const LOCATION_ENCODER: &str = "geoclip/model/weights/location_encoder_weights.pth";

/// A new, empty directory for one test.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("model").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory for the test");
    path
}

/// The program, at home in `scratch`.
fn import(scratch: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_locdiff"))
        .args(["model", "import", "geoclip"])
        .args(arguments)
        .env("LOCDIFF_HOME", scratch.join("home"))
        .output()
        .expect("the program starts")
}

fn failure(scratch: &Path, arguments: &[&str]) -> String {
    let output = import(scratch, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    assert!(!scratch.join("home").exists(), "a failure leaves nothing behind");
    String::from_utf8(output.stderr).expect("UTF-8")
}

fn wheel(scratch: &Path, members: &[(&str, &str)]) -> String {
    let path = scratch.join("made-up.whl");
    let mut archive = ZipWriter::new(File::create(&path).expect("a file"));
    for (name, content) in members {
        archive.start_file(*name, SimpleFileOptions::default()).expect("a member");
        archive.write_all(content.as_bytes()).expect("written");
    }
    archive.finish().expect("an archive");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn what_is_no_wheel_is_refused() {
    let scratch = scratch("no-wheel");
    let missing = failure(&scratch, &["nowhere.whl"]);
    assert!(missing.starts_with("locdiff: nowhere.whl: "), "{missing}");
    let text = scratch.join("text.whl");
    fs::write(&text, "LAT,LON\n").expect("written");
    let message = failure(&scratch, &[text.to_str().expect("UTF-8")]);
    assert!(message.contains("text.whl is not a wheel"), "{message}");
    let directory = failure(&scratch, &[scratch.to_str().expect("UTF-8")]);
    assert!(directory.contains("directory"), "{directory}");
}

#[test]
fn a_wheel_of_something_else_is_refused() {
    let scratch = scratch("other-wheel");
    let message = failure(&scratch, &[&wheel(&scratch, &[("other/__init__.py", "")])]);
    assert!(message.contains(&format!("holds no {LOCATION_ENCODER}")), "{message}");
    assert!(message.contains("pip download geoclip==1.3.0 --no-deps"), "{message}");
}

#[test]
fn other_weights_are_refused() {
    let scratch = scratch("other-weights");
    let message = failure(&scratch, &[&wheel(&scratch, &[(LOCATION_ENCODER, "abc")])]);
    // SHA-256 of "abc", and of the file that should be there.
    for part in [LOCATION_ENCODER, "ba7816bf8f01cfea", "94b80ae3af89fca7"] {
        assert!(message.contains(part), "{message} does not say {part}");
    }
}

#[test]
fn the_published_wheel_is_imported() {
    let Ok(wheel) = std::env::var("LOCDIFF_GEOCLIP_WHEEL") else {
        eprintln!(
            "skipped: get the weights with `pip download geoclip==1.3.0 --no-deps` and name the \
             wheel in LOCDIFF_GEOCLIP_WHEEL"
        );
        return;
    };
    let scratch = scratch("published");
    let directory = scratch.join("home/models/geoclip");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();

    let output = import(&scratch, &[&wheel, "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), format!("GeoCLIP is in {}\n", directory.display()));
    let summary: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(summary["gallery_places"], 100_000);
    assert_eq!(summary["embedding_width"], 512);
    assert_eq!(summary["directory"], directory.display().to_string());

    let again = import(&scratch, &[&wheel]);
    assert_eq!(again.status.code(), Some(1));
    let message =
        format!("locdiff: {} exists already: replace it with --force\n", directory.display());
    assert_eq!(text(&again.stderr), message);
    let forced = import(&scratch, &[&wheel, "--force"]);
    assert!(forced.status.success(), "{}", text(&forced.stderr));
    assert_eq!(text(&forced.stdout), "");

    let elsewhere = scratch.join("elsewhere");
    let output = import(&scratch, &[&wheel, "--output", elsewhere.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for file in ["config.json", "model.safetensors", "coordinates_100K.csv", "README.md"] {
        let [a, b] = [&directory, &elsewhere].map(|path| fs::read(path.join(file)).expect(file));
        assert!(a == b, "{file} is the same every time");
    }
}
