//! `locdiff model` as a user meets it: stdout, stderr, exit code and files.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use locdiff::models::earth_view::EarthLocator;
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
    assert!(message.contains(&format!("contains no {LOCATION_ENCODER}")), "{message}");
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

/// Web Mercator tiles of this zoom, drawn from the mosaic in the program: what people have as MBTiles, but small.
fn tiles(path: &Path, zoom: u32) {
    let locator = EarthLocator::built_in(&burn::tensor::Device::flex());
    let database = rusqlite::Connection::open(path).expect("a database");
    let table = "CREATE TABLE tiles (zoom_level INTEGER, tile_column INTEGER, tile_row INTEGER, tile_data BLOB)";
    database.execute(table, ()).expect("a table");
    let pixels = f64::from(256 << zoom);
    for row in 0..1 << zoom {
        for column in 0..1 << zoom {
            let tile = image::RgbImage::from_fn(256, 256, |x, y| {
                let across = (f64::from(256 * column + x) + 0.5) / pixels;
                let down = (f64::from(256 * row + y) + 0.5) / pixels;
                let latitude = (std::f64::consts::PI * (1.0 - 2.0 * down)).sinh().atan();
                let latitude = latitude.to_degrees();
                let mosaic = locator.atlas().mosaic.imagery();
                let (color, land) = mosaic.colour(latitude, 360.0 * across - 180.0, 10.0);
                let mixed =
                    |k: usize| 255.0 * color[k] * land + [12.0, 28.0, 62.0][k] * (1.0 - land);
                image::Rgb([0, 1, 2].map(|k| mixed(k) as u8))
            });
            let mut bytes = std::io::Cursor::new(Vec::new());
            tile.write_to(&mut bytes, image::ImageFormat::Jpeg).expect("a JPEG");
            // Rows count from the south.
            let from_south = (1 << zoom) - 1 - row;
            database
                .execute(
                    "INSERT INTO tiles VALUES (?, ?, ?, ?)",
                    (zoom, column, from_south, bytes.into_inner()),
                )
                .expect("a tile");
        }
    }
}

/// From tiles to an answer: a model is built of them, and finds the island that they show.
#[test]
fn a_model_is_built_from_tiles_and_answers() {
    let scratch = scratch("earth");
    tiles(&scratch.join("tiles.mbtiles"), 3);
    let run = |arguments: &[&str]| -> Output {
        let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/madagascar.jpg");
        fs::copy(picture, scratch.join("island.jpg")).expect("an example");
        Command::new(env!("CARGO_BIN_EXE_locdiff"))
            .args(arguments)
            .env("LOCDIFF_HOME", scratch.join("home"))
            .current_dir(&scratch)
            .output()
            .expect("the program starts")
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let build = ["earth", "build", "tiles.mbtiles", "--out", "atlas", "--narrowest-km"];
    let nonsense = run(&[&build[..], &["3"]].concat());
    assert_eq!(nonsense.status.code(), Some(2), "{}", text(&nonsense.stderr));
    let built = run(&[&build[..], &["1300", "--widest-km", "1700"]].concat());
    assert!(built.status.success(), "{}", text(&built.stderr));
    assert_eq!(text(&built.stdout), "");
    assert!(text(&built.stderr).contains("locdiff predict PICTURE --model atlas"));
    let again = run(&[&build[..], &["1300"]].concat());
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("atlas is not empty"), "{}", text(&again.stderr));

    let verified = run(&["model", "verify", "atlas"]);
    assert!(verified.status.success(), "{}", text(&verified.stderr));
    let answered = run(&["predict", "island.jpg", "--model", "atlas", "--json"]);
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&answered.stdout).expect("JSON");
    let found = |name: &str| answer["place"][name].as_f64().expect("a number");
    assert!((found("latitude") + 19.5).abs() < 1.5, "{answer}");
    assert!((found("longitude") - 46.5).abs() < 1.5, "{answer}");
    assert!(answer["footprint"]["width_km"].as_f64().is_some_and(|width| width > 1200.0));

    // What is known narrows the search; what can't be is told.
    let narrow = run(&["predict", "island.jpg", "--model", "atlas", "--width-km", "300"]);
    assert_eq!(narrow.status.code(), Some(1));
    assert!(text(&narrow.stderr).contains("locdiff earth build"), "{}", text(&narrow.stderr));
    let within = ["--within", "-19,47,900km", "--width-km", "1450", "--json"];
    let known = run(&[&["predict", "island.jpg", "--model", "atlas"], &within[..]].concat());
    assert!(known.status.success(), "{}", text(&known.stderr));
    let known: serde_json::Value = serde_json::from_slice(&known.stdout).expect("JSON");
    let mass = |answer: &serde_json::Value| answer["candidates"][0]["mass"].as_f64().unwrap_or(0.0);
    assert!(mass(&known) >= mass(&answer), "{known}");
    let searched =
        run(&["predict", "island.jpg", "--model", "atlas", "--no-registration", "--json"]);
    let searched: serde_json::Value = serde_json::from_slice(&searched.stdout).expect("JSON");
    assert!(searched["footprint"].is_null(), "{searched}");
    assert_eq!(searched["inference"]["registration"], false);
}
