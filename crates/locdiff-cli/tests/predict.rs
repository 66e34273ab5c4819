//! `locdiff predict` and `locdiff doctor` as a person meets them: stdout, stderr, exit code. The model is
//! GeoCLIP's architecture with small made-up weights and a gallery of eight places.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

mod made_up;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use snapbox::{assert_data_eq, str};

/// A home of models: empty, or with a small GeoCLIP.
struct Home(tempfile::TempDir);

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Where the program runs, so that its output names files without this machine's paths.
fn photos() -> PathBuf {
    repository("parity/photo/files")
}

impl Home {
    fn empty() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn with_geoclip() -> Home {
        let home = Home::empty();
        made_up::install_geoclip(home.0.path());
        home
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locdiff"));
        command.args(arguments).env("LOCDIFF_HOME", self.0.path()).current_dir(photos());
        // Nothing of this machine's may be found.
        command.env("HF_HOME", self.0.path().join("hub")).env_remove("HF_HUB_CACHE");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Stdout of a success that has nothing to complain about.
    fn success(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        text(&output.stdout)
    }

    /// Stderr of a failure that prints no data.
    /// What is printed about several pictures; stderr has a summary.
    fn located(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn failure(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        text(&output.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_good_picture() {
    let home = Home::with_geoclip();
    let answer = home.success(&["predict", "rgb.jpg", "-k", "3"]);
    assert_data_eq!(
        answer.clone(),
        str![[r#"
rgb.jpg
  48.8566,2.3522  Paris, Ile-de-France, France
  score 20 %; 50 % within 9,700 km, 90 % within 17,000 km

   1    20 %  48.857,2.352       ±29 km     Paris, Ile-de-France, France
   2    19 %  35.676,139.650     ±29 km     Tokyo, Japan
   3    16 %  -18.142,178.442    ±29 km     Suva, Central, Fiji

  a prediction by geoclip: GeoCLIP over its gallery of 8 places; it is the best
  installed model for photographs from the ground. Scores, not probabilities:
  the model is not calibrated. It assumes that photographs are taken where those
  of its gallery (MP16) were. Points are spread by 25 km. ± is the radius that
  contains half of a candidate's score


"#]]
    );
    // Places are encoded once; then they are read.
    assert_eq!(fs::read_dir(home.0.path().join("cache")).unwrap().count(), 1);
    assert_eq!(home.success(&["predict", "rgb.jpg", "-k", "3"]).len(), answer.len());
}

/// From a clean clone, without a network: the pictures that the README shows.
#[test]
fn the_built_in_model_knows_the_examples() {
    let home = Home::empty();
    for (name, latitude, longitude, nearer_km) in
        [("madagascar", -19.5, 46.5, 60.0), ("sinai", 28.5, 34.0, 40.0)]
    {
        let path = repository(&format!("examples/{name}.jpg"));
        let line = home.success(&["predict", path.to_str().unwrap(), "--json"]);
        let json: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(json["model"]["name"], "earth-view");
        assert_eq!(json["model"]["calibrated"], false);
        let best = &json["candidates"][0];
        let place = |best: &Value| {
            let number = |field: &str| best[field].as_f64().unwrap();
            locdiff_sphere::LatLon::new(number("latitude"), number("longitude")).unwrap()
        };
        let truth = locdiff_sphere::LatLon::new(latitude, longitude).unwrap();
        assert!(place(best).distance_km(truth) < nearer_km, "{name}: {best}");
        assert!(best["mass"].as_f64().unwrap() > 0.5, "{name}: {best}");
        // The ground that it shows, with the truth in it.
        let footprint = &json["footprint"];
        assert!(footprint["width_km"].as_f64().unwrap() > 500.0, "{name}: {footprint}");
    }
}

#[test]
fn the_place_that_the_camera_recorded_stands_beside_the_estimate() {
    let home = Home::with_geoclip();
    let answer = home.success(&["predict", "gps-paris.jpg"]);
    let recorded =
        "\n  by the camera  48.8567,2.3521  Paris, Ile-de-France, France (GPS)\n  estimated      ";
    assert!(answer.contains(recorded), "{answer}");
    assert!(answer.contains(" km from the place that the camera recorded (GPS)"), "{answer}");
    let json: Value =
        serde_json::from_str(&home.success(&["predict", "gps-paris.jpg", "--json"])).unwrap();
    let exif = &json["exif"];
    assert!((exif["latitude"].as_f64().unwrap() - 48.856_667).abs() < 1e-5, "{json}");
    assert!(exif["distance_km"].as_f64().unwrap() >= 0.0);
    assert_eq!((&exif["town"], &exif["recorded_by"]), (&"Paris".into(), &"camera".into()));
    assert_eq!(json["prediction"], true);
    let geojson: Value =
        serde_json::from_str(&home.success(&["predict", "gps-paris.jpg", "--geojson"])).unwrap();
    let last = &geojson["features"].as_array().unwrap().last().unwrap()["properties"];
    assert_eq!((&last["kind"], &last["prediction"]), (&"recorded".into(), &false.into()));
}

#[test]
fn the_place_that_the_camera_recorded_needs_no_model() {
    let home = Home::empty();
    for scene in [&[] as &[&str], &["--scene", "ground"]] {
        let run = |format: &[&str]| {
            let output = home.run(&[&["predict", "gps-paris.jpg"][..], scene, format].concat());
            assert_eq!(output.status.code(), Some(3));
            assert!(text(&output.stderr).contains("locdiff model fetch plonk-yfcc"));
            text(&output.stdout)
        };
        let words = "gps-paris.jpg\n  by the camera  48.8567,2.3521  Paris, Ile-de-France, France (GPS)\n\n";
        assert_eq!(run(&[]), words);
        let json: Value = serde_json::from_str(&run(&["--json"])).unwrap();
        assert_eq!((&json["prediction"], &json["exif"]["town"]), (&false.into(), &"Paris".into()));
        assert!(json["exif"]["distance_km"].is_null() && json["problem"]["detail"].is_string());
        let geojson: Value = serde_json::from_str(&run(&["--geojson"])).unwrap();
        assert_eq!(geojson["features"][0]["properties"]["recorded_by"], "camera");
        assert!(run(&["--csv"]).contains(",48.856667,2.352"));
    }
}

#[test]
fn a_stated_scene_decides_which_model_is_asked() {
    let home = Home::with_geoclip();
    let above = repository("examples/madagascar.jpg");
    let above = above.to_str().unwrap();
    for (scene, model) in [("ground", "geoclip"), ("orbit", "earth-view")] {
        let line = home.success(&["predict", above, "--scene", scene, "--json"]);
        let json: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(json["model"]["name"], model);
        let because = json["model"]["chosen_because"].as_str().unwrap();
        assert!(because.contains("the stated scene"), "{because}");
    }
    let message = home.failure(&["predict", "rgb.jpg", "--scene", "orbit"], 1);
    assert!(message.contains("not a picture for this model"), "{message}");
    let message = Home::empty().failure(&["predict", "rgb.jpg", "--scene", "ground"], 3);
    assert!(message.contains("none for photographs from the ground is installed"), "{message}");
    home.failure(&["predict", "rgb.jpg", "--scene", "ground", "--model", "geoclip"], 2);
}

#[test]
fn a_broken_picture_does_not_stop_the_others() {
    let home = Home::with_geoclip();
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.jpg");
    fs::write(&broken, &fs::read(photos().join("rgb.jpg")).unwrap()[..200]).unwrap();
    let broken = broken.to_str().unwrap();
    let output = home.run(&["predict", broken, "rgb.png", "missing.jpg", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr).replace(broken, "broken.jpg");
    assert_data_eq!(
        errors,
        str![[r#"
locdiff: broken.jpg: damaged JPEG: it ends early, after 200 bytes, without its end marker; fetch or export the picture again
locdiff: missing.jpg: No such file or directory (os error 2)
3 pictures: 1 located, 0 rejected, 2 failed
  1 failed: No such file or directory (os error 2)
  1 failed: damaged JPEG: it ends early, after 200 bytes, without its end marker; fetch or export the picture again

"#]]
    );
    let records: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 3, "every picture is accounted for");
    assert!(
        records[0]["problem"]["detail"].is_string() && records[2]["problem"]["detail"].is_string()
    );
    assert_eq!(records[1]["model"]["calibrated"], false);
}

#[test]
fn no_picture() {
    let home = Home::with_geoclip();
    let message = home.failure(&["predict"], 2);
    assert!(message.contains("<PICTURE>"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let message = home.failure(&["predict", path], 1);
    assert_eq!(message, format!("locdiff: there are no pictures in {path}\n"));
    let message = home.failure(&["predict", &format!("{path}/*.jpg")], 1);
    assert_eq!(message, format!("locdiff: no file matches {path}/*.jpg\n"));
}

#[test]
fn no_model() {
    let home = Home::empty();
    assert_data_eq!(
        home.failure(&["predict", "rgb.jpg"], 3),
        str![[r#"
locdiff: rgb.jpg: no suitable model: for earth-view, no place on Earth matches the picture; it may show clouds, the sea, less than 200 km, more than 2,100 km, or something else

For photographs from the ground, get one of these models:

    locdiff model fetch plonk-yfcc     # 1.4 GB, MIT and Apache-2.0
    locdiff model fetch geoclip        # 1.7 GB, MIT

`locdiff doctor` shows what is installed and what is missing.

"#]]
    );
    let message = home.failure(&["predict", "rgb.jpg", "--model", "geoclip"], 3);
    assert!(message.contains("locdiff model fetch geoclip"), "{message}");
    let message = home.failure(&["predict", "rgb.jpg", "--model", "nonsense"], 2);
    assert!(message.contains("there is no model `nonsense`"), "{message}");
}

#[test]
fn an_unknown_country() {
    let home = Home::with_geoclip();
    let message = home.failure(&["predict", "rgb.jpg", "--within", "Portugl"], 2);
    assert_data_eq!(
        message,
        str![[r#"
error: invalid value 'Portugl' for '--within <AREA>': there is no country `Portugl` (did you mean Portugal?). Other areas: `land`, SOUTH,WEST,NORTH,EAST, LATITUDE,LONGITUDE,RADIUSkm, or a GeoJSON file of polygons

For more information, try '--help'.

"#]]
    );
}

#[test]
fn every_kind_of_constraint_holds() {
    let home = Home::with_geoclip();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("iceland.geojson");
    let ring = "[[-25, 63], [-13, 63], [-13, 67], [-25, 67], [-25, 63]]";
    fs::write(&file, format!(r#"{{"type": "Polygon", "coordinates": [{ring}]}}"#)).unwrap();
    for (within, code) in [
        ("Portugal", "PT"),
        ("-40,140,-30,155", "AU"),
        ("35.7,139.7,300km", "JP"),
        (file.to_str().unwrap(), "IS"),
        ("FJ", "FJ"),
    ] {
        let line = home.success(&["predict", "rgb.jpg", "--within", within, "--json", "-k", "50"]);
        let json: Value = serde_json::from_str(&line).unwrap();
        let candidates = json["candidates"].as_array().unwrap();
        assert_eq!(candidates[0]["country_code"], code, "{within}: {json}");
        let sum: f64 = candidates.iter().map(|found| found["mass"].as_f64().unwrap()).sum();
        assert!(sum > 0.99, "renormalised: {json}");
        assert_eq!(json["within"].as_array().unwrap().len(), 1, "and it says so: {json}");
    }
    let answer = home.success(&["predict", "rgb.jpg", "--within", "land"]);
    assert!(answer.contains("within land only"), "{answer}");
    // Both at once leave nothing.
    let arguments = ["predict", "rgb.jpg", "--within", "Portugal", "--within", "Japan"];
    assert!(home.failure(&arguments, 1).contains("within Japan: nothing is left"));
}

#[test]
fn other_formats_and_pictures() {
    let home = Home::with_geoclip();
    let csv = home.success(&["predict", "rgb.jpg", "--csv", "-k", "2"]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(reader.headers().unwrap().len(), 24);
    assert_eq!(reader.records().filter(|row| row.is_ok()).count(), 2);

    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [("rgb.jpg", "a.jpg"), ("rgb.png", "deep/b.PNG")] {
        fs::create_dir_all(folder.path().join("deep")).unwrap();
        fs::copy(photos().join(from), folder.path().join(to)).unwrap();
    }
    fs::write(folder.path().join("notes.txt"), "no picture").unwrap();
    let path = folder.path().to_str().unwrap();
    let geojson: Value =
        serde_json::from_str(&home.located(&["predict", path, "--geojson", "-k", "1"])).unwrap();
    let features = geojson["features"].as_array().unwrap();
    // Two regions, a candidate and the place for each of two pictures.
    assert_eq!(features.len(), 8, "{geojson}");
    assert!(features.iter().all(|feature| feature["properties"]["prediction"] == true));

    // From stdin, and two models at once.
    let mut process = home
        .command(&[
            "predict",
            "-",
            "--json",
            "-m",
            "geoclip",
            "-m",
            "geoclip-even",
            "-m",
            "geoclip",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(&fs::read(photos().join("rgb.jpg")).unwrap()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout).lines().count(), 2);

    let map = folder.path().join("map.svg");
    home.success(&["predict", "rgb.jpg", "--plot", map.to_str().unwrap()]);
    assert!(fs::read_to_string(map).unwrap().contains("A prediction by geoclip"));
    let own = folder.path().join("own.png");
    fs::copy(photos().join("rgb.png"), &own).unwrap();
    let own = own.to_str().unwrap();
    let message = home.failure(&["predict", own, "--plot", own, "--overwrite"], 2);
    assert!(message.contains("it is not overwritten"), "{message}");
    fs::remove_file(own).unwrap();
    let message = home.failure(&["predict", path, "--plot", "map.png"], 2);
    assert!(message.contains("name a folder"), "{message}");
}

/// A folder as people have them: in folders, with and without endings, with hidden files and broken ones.
fn album() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [
        ("rgb.jpg", "2019/a.jpg"),
        ("rgb.png", "2019/deep/b.PNG"),
        ("rgb.jpg", "2020/a.jpg"),
        ("rgb.jpg", "without ending"),
        ("rgb.jpg", ".hidden/c.jpg"),
    ] {
        let to = folder.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(photos().join(from), to).unwrap();
    }
    fs::write(folder.path().join("notes.txt"), "no picture").unwrap();
    folder
}

#[test]
fn maps_are_ordered_as_pictures_are_and_nothing_is_overwritten() {
    let (home, album, out) = (Home::with_geoclip(), album(), tempfile::tempdir().unwrap());
    let maps = format!("{}/", out.path().join("maps").display());
    let album = album.path().to_str().unwrap();
    let arguments = ["predict", album, "--model", "geoclip", "--plot", &maps, "--json"];
    let output = home.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let names: Vec<String> = text(&output.stdout)
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["map"].as_str().unwrap().to_owned()
        })
        .collect();
    let expected =
        ["2019/a.jpg.png", "2019/deep/b.PNG.png", "2020/a.jpg.png", "without ending.png"];
    assert_eq!(names, expected.map(|name| format!("{maps}{name}")));
    assert!(names.iter().all(|name| fs::read(name).unwrap().starts_with(b"\x89PNG")));
    let summary = "4 pictures: 4 located, 0 rejected, 0 failed; 1 file is not a picture";
    assert!(text(&output.stderr).contains(summary), "{}", text(&output.stderr));
    // Again: not before it is allowed.
    let message = home.failure(&arguments, 2);
    assert!(message.contains("and 3 more files") && message.contains("--overwrite"), "{message}");
    home.located(&[&arguments[..], &["--overwrite"]].concat());
    // The path stands in the text and in the table too.
    let one = out.path().join("one.svg");
    let one = one.to_str().unwrap();
    let answer = home.success(&["predict", "rgb.jpg", "--plot", one, "--theme", "light"]);
    assert!(
        answer.replace(['\n', ' '], "").contains(&format!("map:{}", one.replace(' ', ""))),
        "{answer}"
    );
    let table = home.success(&["predict", "rgb.jpg", "--csv", "--plot", one, "--overwrite"]);
    assert!(table.lines().nth(1).unwrap().contains(one), "{table}");
}

#[test]
fn notes_are_printed_once() {
    let (home, album) = (Home::with_geoclip(), album());
    let album = album.path().to_str().unwrap();
    let answers = home.located(&["predict", album, "--model", "geoclip", "-k", "2"]);
    let flat = answers.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["a prediction by geoclip", "Scores, not probabilities", "± is the radius"] {
        assert_eq!(flat.matches(words).count(), 1, "{words}: {answers}");
    }
    assert_eq!(flat.matches("50 % within").count(), 4, "{answers}");
}

#[test]
fn hidden_files_are_left_out_unless_asked_for() {
    let (home, album) = (Home::with_geoclip(), album());
    let path = album.path().to_str().unwrap();
    let arguments = ["predict", path, "--model", "geoclip", "--json"];
    assert_eq!(home.located(&arguments).lines().count(), 4);
    assert_eq!(home.located(&[&arguments[..], &["--hidden"]].concat()).lines().count(), 5);
}

#[cfg(unix)]
#[test]
fn what_can_t_be_read_stops_nothing() {
    use std::os::unix::ffi::OsStrExt;
    let (home, album) = (Home::with_geoclip(), album());
    let strange = std::ffi::OsStr::from_bytes(b"caf\xe9.jpg");
    fs::copy(photos().join("rgb.jpg"), album.path().join(strange)).unwrap();
    // A folder that contains itself can't be listed.
    std::os::unix::fs::symlink(album.path(), album.path().join("2020/again")).unwrap();
    fs::write(album.path().join("damaged.jpg"), "no picture").unwrap();
    let path = album.path().to_str().unwrap();
    let output = home.run(&["predict", path, "--model", "geoclip", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let located = lines.iter().filter(|line| line["prediction"] == true).count();
    assert_eq!((lines.len(), located), (6, 5));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("cannot read") && stderr.contains("again"), "{stderr}");
    assert!(stderr.contains("6 pictures: 5 located, 0 rejected, 1 failed"), "{stderr}");
    // Named itself, such a file works too.
    let mut command = home.command(&["predict", "--model", "geoclip", "--json"]);
    let output = command.arg(album.path().join(strange)).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_report_needs_no_other_file() {
    let (home, album, out) = (Home::with_geoclip(), album(), tempfile::tempdir().unwrap());
    fs::write(album.path().join("<b>.jpg"), "no picture").unwrap();
    let report = out.path().join("report.html");
    let (folder, file) = (album.path().to_str().unwrap(), report.to_str().unwrap());
    let arguments = ["predict", folder, "--model", "geoclip", "--html", file];
    assert_eq!(home.run(&arguments).status.code(), Some(1));
    let html = fs::read_to_string(&report).unwrap();
    assert_eq!(html.matches("<img ").count(), 4);
    assert_eq!(html.matches("<article>").count(), 5);
    assert!(html.contains("<svg") && html.contains("Paris, Ile-de-France, France"));
    assert!(html.contains("&lt;b&gt;.jpg") && !html.contains("<b>.jpg"));
    // Nothing is loaded from elsewhere.
    let loads = |html: &str| {
        ["src=\"http", "href=\"http", "url(http", "<script", "<link"]
            .iter()
            .any(|words| html.contains(words))
    };
    assert!(!loads(&html));
    assert!(home.failure(&arguments, 2).contains("--overwrite"));
}

#[test]
fn an_area_that_keeps_little_is_told() {
    let home = Home::with_geoclip();
    let answer = |within: &str| -> Value {
        let line = home.success(&["predict", "rgb.jpg", "--within", within, "--json"]);
        serde_json::from_str(&line).unwrap()
    };
    let france = answer("France");
    let kept = france["kept"].as_f64().unwrap();
    let whole: Value =
        serde_json::from_str(&home.success(&["predict", "rgb.jpg", "--json"])).unwrap();
    // Paris is the only place in France.
    let paris = whole["candidates"][0]["mass"].as_f64().unwrap();
    assert!((kept / paris - 1.0).abs() < 0.05 && whole["kept"].is_null(), "{kept} {paris}");
    assert!(france["warnings"].as_array().unwrap().is_empty());
    let warnings = answer("Bolivia")["warnings"].to_string();
    assert!(warnings.contains("Bolivia keeps less than"), "{warnings}");
    let text = home.success(&["predict", "rgb.jpg", "--within", "France"]);
    assert!(text.contains("within France only, which keeps"), "{text}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let home = Home::with_geoclip();
    let arguments = ["predict", "rgb.jpg", "rgb.jpg", "rgb.jpg", "--json"];
    let mut process =
        home.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(process.stdout.take());
    let mut errors = String::new();
    process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((process.wait().unwrap().code(), errors.as_str()), (Some(0), ""));
}

#[test]
fn the_doctor_says_what_is_missing_and_what_is_broken() {
    let empty = Home::empty();
    let report = empty.success(&["doctor"]);
    assert!(report.contains("geoclip: not installed"), "{report}");
    assert!(report.contains("`locdiff model fetch geoclip`"), "{report}");

    let home = Home::with_geoclip();
    let first = home.success(&["doctor"]);
    assert!(first.contains("geoclip: works") && first.contains("output was stored"), "{first}");
    let second: Value = serde_json::from_str(&home.success(&["doctor", "--json"])).unwrap();
    let models = second["models"].as_array().unwrap();
    let state = |name: &str| models.iter().find(|m| m["name"] == name).unwrap()["state"].clone();
    let unknown = "runs, unknown weights";
    assert_eq!((state("geoclip"), state("clip-vit-l-14")), ("works".into(), unknown.into()));

    // A weight of the encoder changes on the disk.
    let path = home.0.path().join("models/clip-vit-l-14/model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 400].fill(0x3f);
    fs::write(&path, bytes).unwrap();
    let output = home.run(&["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    let report = text(&output.stdout);
    assert!(report.contains("clip-vit-l-14: BROKEN"), "{report}");
    // A place of the gallery moves: no number that is compared shows it, the file's sum does.
    let path = home.0.path().join("models/geoclip/coordinates_100K.csv");
    fs::write(&path, made_up::GALLERY.replace("64.1466", "65.1466")).unwrap();
    let report = text(&home.run(&["doctor"]).stdout);
    assert!(report.contains("geoclip: BROKEN"), "{report}");
}

#[test]
fn an_encoder_is_imported_under_a_name() {
    let home = Home::empty();
    let from = repository("parity/vision/clip-quick-gelu").canonicalize().unwrap();
    let from = from.to_str().unwrap();
    let output = home.run(&["model", "import", "encoder", "tiny", from, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["embedding_width"], 16);
    assert!(home.0.path().join("models/tiny/self-test.json").is_file());
    let message = home.failure(&["model", "import", "encoder", "tiny", from], 1);
    assert!(message.contains("exists already: replace it with --force"), "{message}");
    let again = home.run(&["model", "import", "encoder", "tiny", from, "--force"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    for name in ["../up", "geoclip"] {
        assert!(home.failure(&["model", "import", "encoder", name, from], 1).contains("can't be"));
    }
}

/// Whoever names a file may have meant the name for the terminal.
#[test]
#[cfg(unix)]
fn terminals_obey_nothing_of_a_name() {
    let home = Home::empty();
    let folder = tempfile::tempdir().unwrap();
    let hostile = "a\u{1b}]0;title\u{7}\u{9b}2J\r\u{202e}.jpg";
    fs::copy(repository("examples/madagascar.jpg"), folder.path().join(hostile)).unwrap();
    let junk = folder.path().join(format!("junk{hostile}"));
    fs::write(&junk, [b"\xff\xd8".as_slice(), &[7; 500]].concat()).unwrap();
    let output = home.run(&["predict", "--no-registration", folder.path().to_str().unwrap()]);
    let missing = home.run(&["predict", &format!("no such {hostile}")]);
    let listed = home.run(&["model", "show", hostile]);
    for (name, bytes) in [
        ("answers", &output.stdout),
        ("failures", &output.stderr),
        ("missing", &missing.stderr),
        ("model", &listed.stderr),
    ] {
        let text = text(bytes);
        assert!(text.contains(r"a\u{1b}]0;title\u{7}\u{9b}2J"), "{name}: {text}");
        let obeyed = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(obeyed, None, "{name}: {text}");
    }
}
