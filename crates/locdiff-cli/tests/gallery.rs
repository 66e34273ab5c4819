//! `locdiff gallery`, along the path that docs/gallery.md describes: own photographs, a gallery, a new photograph.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

mod made_up;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use image::{Rgb, RgbImage};
use serde_json::Value;

/// A folder to work in, with a home of models in which an encoder called `small` and a GeoCLIP are installed.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Bench {
        let bench = Bench(tempfile::tempdir().unwrap());
        let home = bench.path("home");
        made_up::install_geoclip(Path::new(&home));
        fs::rename(Path::new(&home).join("models/clip-vit-l-14"), bench.path("clip")).unwrap();
        for name in ["small", "clip-vit-l-14"] {
            bench.success(&["model", "import", "encoder", name, "clip"]);
        }
        bench
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_locdiff"))
            .args(arguments)
            .env("LOCDIFF_HOME", self.path("home"))
            // Nothing of this machine's may be found.
            .env("HF_HOME", self.path("hub"))
            .env_remove("HF_HUB_CACHE")
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    /// Stdout and stderr.
    fn success(&self, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        (stdout, stderr)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.success(arguments).0).unwrap()
    }

    /// Stderr of a failure that prints no data.
    fn failure(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        text(&output.stderr)
    }

    /// A folder of photographs with a manifest: `count` of them, `first` is the first one's number. A photograph with the
    /// same number shows almost the same place, up to noise.
    fn photographs(&self, folder: &str, first: u32, count: u32, noise: u32) {
        fs::create_dir(self.path(folder)).unwrap();
        let mut manifest = "path,latitude,longitude\n".to_owned();
        for number in first..first + count {
            let picture = picture(number, noise);
            picture.save(self.path(&format!("{folder}/{folder}-{number}.png"))).unwrap();
            let (latitude, longitude) = place(number);
            // Some hundred meters from one photograph of a place to the next.
            let latitude = latitude + 0.003 * f64::from(noise % 3);
            manifest.push_str(&format!("{folder}-{number}.png,{latitude},{longitude}\n"));
        }
        fs::write(self.path(&format!("{folder}/manifest.csv")), manifest).unwrap();
    }

    /// Names that begin with a dot: work that wasn't cleared away.
    fn left_over(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with('.')).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn place(number: u32) -> (f64, f64) {
    let number = f64::from(number);
    (-50.0 + (number * 17.3) % 100.0, -170.0 + (number * 61.7) % 340.0)
}

/// Stripes of a color and a direction of its own.
fn picture(number: u32, noise: u32) -> RgbImage {
    let angle = number as f32 * 2.4;
    let (sin, cos) = angle.sin_cos();
    let waves = 0.15 + 0.37 * ((number * 29 % 17) as f32 / 17.0);
    RgbImage::from_fn(48, 40, |x, y| {
        let phase = waves * (x as f32 * cos + y as f32 * sin);
        let grain = (x * 7 + y * 13 + noise * 31) * 2_654_435 % 97 * noise.min(1) / 12;
        let shade = |shift: f32| (120.0 + 100.0 * (phase + shift * angle).sin()) as u8;
        Rgb([shade(0.0), shade(0.7), shade(1.3)].map(|value| value.saturating_add(grain as u8)))
    })
}

const BUILD: [&str; 8] =
    ["gallery", "build", "--data", "trips", "--encoder", "small", "--out", "gallery"];

#[test]
fn own_photographs_become_a_gallery_that_explains_a_new_one() {
    let bench = Bench::new();
    bench.photographs("trips", 0, 70, 0);
    let (stdout, stderr) = bench.success(&BUILD);
    assert_eq!(stdout, "");
    assert!(stderr.contains("70 references of small in gallery"), "{stderr}");
    assert_eq!(bench.left_over(), [""; 0]);

    // A photograph of the gallery finds itself first.
    let search = ["gallery", "search", "gallery", "trips/trips-7.png"];
    let found = bench.json(&[&search[..], &["--json", "--count", "3"]].concat());
    let first = &found["hits"][0];
    assert_eq!(first["id"], "trips-7.png", "{found}");
    assert!(first["similarity"].as_f64().unwrap() > 0.9999, "{found}");
    let (latitude, longitude) = place(7);
    for (name, expected) in [("latitude", latitude), ("longitude", longitude)] {
        let found = first["place"][name].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-6, "{name}: {found}");
    }
    assert_eq!(found["hits"].as_array().unwrap().len(), 3);
    assert_eq!(found["near"], Value::Null);
    let (stdout, _) = bench.success(&search);
    assert!(stdout.lines().nth(1).unwrap().contains("trips-7.png"), "{stdout}");
    assert!(stdout.contains("locdiff gallery fit gallery --data HELD_OUT"), "{stdout}");

    // Only a part of the Earth, and of two parts what is in both.
    let south = [&search[..], &["--json", "--within", "-90,-180,0,180"]].concat();
    let within = bench.json(&[&south[..], &["--within", "-90,-180,90,0"]].concat());
    let hits = within["hits"].as_array().unwrap();
    assert!(!hits.is_empty() && hits.len() <= 10, "{within}");
    for hit in hits {
        let number = |name: &str| hit["place"][name].as_f64().unwrap();
        assert!(number("latitude") <= 0.0 && number("longitude") <= 0.0, "{hit}");
    }

    // More of them.
    bench.photographs("more", 100, 10, 0);
    let (_, stderr) = bench.success(&["gallery", "add", "gallery", "--data", "more"]);
    assert!(stderr.contains("10 references added: 80 in gallery"), "{stderr}");
    let info = bench.json(&["gallery", "info", "gallery", "--json"]);
    assert_eq!((&info["references"], &info["segments"]), (&80.into(), &2.into()), "{info}");
    assert_eq!(info["encoder"]["name"], "small");
    assert!(info["encoder"]["digest"].as_str().unwrap().starts_with("sha256:"), "{info}");
    let added = bench.json(&["gallery", "search", "gallery", "more/more-103.png", "--json"]);
    assert_eq!(added["hits"][0]["id"], "more-103.png");

    // Few photographs can't tell how near similar references are; those of the gallery don't count.
    bench.photographs("few", 0, 20, 1);
    let message = bench.failure(&["gallery", "fit", "gallery", "--data", "few"], 1);
    assert!(message.contains("at least 50") && message.contains("20 are left"), "{message}");
    let message = bench.failure(&["gallery", "fit", "gallery", "--data", "trips"], 1);
    assert!(message.contains("70 are in the gallery itself"), "{message}");

    bench.photographs("other", 0, 60, 1);
    let (stdout, _) = bench.success(&["gallery", "fit", "gallery", "--data", "other"]);
    assert!(stdout.contains("fitted to 60 photographs of other"), "{stdout}");
    assert!(stdout.contains("the uniform density has 2.531"), "{stdout}");
    assert!(stdout.contains("can now give densities"), "{stdout}");
    assert_eq!(bench.left_over(), [""; 0]);
    let info = bench.json(&["gallery", "info", "gallery", "--json"]);
    assert_eq!(info["likelihood"]["held_out_rows"], 60, "{info}");
    assert!(info["likelihood"]["nll_nats"].as_f64().unwrap() < 2.531, "{info}");

    // A new photograph, the references that explain it, and a map.
    bench.photographs("new", 5, 1, 2);
    let search = ["gallery", "search", "gallery", "new/new-5.png", "--plot", "map.png"];
    let (stdout, _) = bench.success(&search);
    assert!(stdout.contains("references is near:"), "{stdout}");
    assert!(fs::read(bench.path("map.png")).unwrap().starts_with(b"\x89PNG"));
    let found = bench.json(&["gallery", "search", "gallery", "new/new-5.png", "--json"]);
    assert!(found["near"]["probability"].as_f64().unwrap() > 0.0, "{found}");
    assert_eq!(found["near"]["prior_divided_out"], false, "{found}");
    let even = [&search[..], &["--even", "--json"]].concat();
    assert_eq!(bench.json(&even)["near"]["prior_divided_out"], true);
}

#[test]
fn embeddings_give_the_same_gallery_as_images() {
    let bench = Bench::new();
    bench.photographs("trips", 0, 12, 0);
    bench.success(&BUILD);
    let embed = ["embed", "trips/manifest.csv", "--encoder", "small", "--out"];
    bench.success(&[&embed[..], &["embeddings"]].concat());
    bench.success(&[&embed[..], &["flipped", "--views", "flip"]].concat());
    let build = |data, out| ["gallery", "build", "--data", data, "--out", out];
    bench.success(&build("embeddings", "from-embeddings"));
    // Of several views the first one, which is the photograph itself.
    let (_, stderr) = bench.success(&build("flipped", "from-views"));
    assert!(stderr.contains("of 2 views of each image, only the first is used"), "{stderr}");
    let hits = |gallery: &str| {
        let found = bench.json(&["gallery", "search", gallery, "trips/trips-3.png", "--json"]);
        let hits = found["hits"].as_array().unwrap().clone();
        hits.iter().map(|hit| hit["id"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(hits("gallery"), hits("from-embeddings"));
    assert_eq!(hits("gallery"), hits("from-views"));
    let message =
        bench.failure(&[&build("embeddings", "unused")[..], &["--encoder", "small"]].concat(), 2);
    assert!(message.contains("contains embeddings"), "{message}");
}

#[test]
fn another_encoder_is_rejected_by_both_names() {
    let bench = Bench::new();
    bench.photographs("trips", 0, 5, 0);
    bench.success(&BUILD);
    let embed = ["embed", "trips/manifest.csv", "--encoder", "earth-view", "--out", "others"];
    bench.success(&embed);
    for arguments in [
        &["gallery", "add", "gallery", "--data", "others"][..],
        &["gallery", "fit", "gallery", "--data", "others"],
        &["gallery", "add", "gallery", "--data", "trips", "--encoder", "earth-view"],
        &["gallery", "search", "gallery", "trips/trips-1.png", "--encoder", "earth-view"],
    ] {
        let message = bench.failure(arguments, 1);
        assert!(message.contains("the encoder small ("), "{arguments:?}: {message}");
        assert!(message.contains("with earth-view ("), "{arguments:?}: {message}");
        assert!(message.contains("--encoder small"), "{arguments:?}: {message}");
    }
    let info = bench.json(&["gallery", "info", "gallery", "--json"]);
    assert_eq!(info["references"], 5, "nothing was added");
    // The same weights from a directory have another name, but are the same encoder.
    let search = ["gallery", "search", "gallery", "trips/trips-1.png", "--encoder", "clip"];
    bench.success(&search);
}

#[test]
fn coordinates_are_a_gallery_by_geoclips_location_encoder() {
    let bench = Bench::new();
    let list = "id,latitude,longitude\nParis,48.8566,2.3522\nLisbon,38.7223,-9.1393\nSuva,-18.1416,178.4419\n";
    fs::write(bench.path("places.csv"), list).unwrap();
    let build = ["gallery", "build", "--places", "places.csv", "--encoder", "geoclip"];
    let (_, stderr) = bench.success(&[&build[..], &["--out", "cities"]].concat());
    assert!(stderr.contains("3 references of geoclip in cities"), "{stderr}");
    // GeoCLIP's own gallery has no ids.
    let own = ["gallery", "build", "--places", "home/models/geoclip/coordinates_100K.csv"];
    bench.success(&[&own[..], &["--out", "own"]].concat());
    bench.photographs("new", 1, 1, 0);
    let found = bench.json(&["gallery", "search", "cities", "new/new-1.png", "--json"]);
    let mut ids: Vec<&str> =
        found["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["Lisbon", "Paris", "Suva"]);

    // The order is GeoCLIP's: the best place is that of `locdiff predict` before its kernel.
    let own = bench.json(&["gallery", "search", "own", "new/new-1.png", "--json"]);
    assert_eq!(own["references"], made_up::GALLERY.lines().count() - 1);
    assert_eq!(own["encoder"]["name"], "geoclip");
    assert!(own["hits"][0]["id"].as_str().unwrap().contains(','), "{own}");

    let message =
        bench.failure(&["gallery", "add", "cities", "--data", "new", "--encoder", "small"], 1);
    assert!(
        message.contains("the encoder geoclip (") && message.contains("with small ("),
        "{message}"
    );
    // Photographs by GeoCLIP's image side are in the same space.
    bench.success(&["gallery", "add", "cities", "--data", "new"]);
    let message = bench.failure(
        &["gallery", "build", "--places", "places.csv", "--encoder", "small", "--out", "unused"],
        2,
    );
    assert!(message.contains("--encoder geoclip"), "{message}");
}

#[test]
fn errors_say_what_to_do() {
    let bench = Bench::new();
    bench.photographs("trips", 0, 3, 0);
    let message = bench.failure(&["gallery", "build", "--data", "trips", "--out", "gallery"], 2);
    assert!(message.contains("--encoder NAME"), "{message}");
    assert!(!Path::new(&bench.path("gallery")).exists());
    let message = bench.failure(&["gallery", "info", "gallery"], 1);
    assert!(message.contains("locdiff gallery build --data PATH --out gallery"), "{message}");
    bench.success(&BUILD);
    let message = bench.failure(&BUILD, 1);
    assert!(message.contains("locdiff gallery add gallery"), "{message}");
    let message = bench.failure(&["gallery", "add", "gallery", "--data", "nowhere"], 1);
    assert!(message.contains("nowhere does not exist"), "{message}");
    let message = bench.failure(&["gallery", "search", "gallery", "nowhere.jpg"], 1);
    assert!(message.contains("nowhere.jpg"), "{message}");
    let message = bench
        .failure(&["gallery", "search", "gallery", "trips/trips-1.png", "--plot", "map.txt"], 2);
    assert!(message.contains(".png or .svg"), "{message}");

    // Photographs without a place.
    fs::remove_file(bench.path("trips/manifest.csv")).unwrap();
    let build = ["gallery", "build", "--data", "trips", "--encoder", "small", "--out", "other"];
    let message = bench.failure(&build, 1);
    assert!(message.contains("no image in trips has a place"), "{message}");
    assert_eq!(bench.left_over(), [""; 0]);
}
