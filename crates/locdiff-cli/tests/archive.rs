//! A photo archive as a person meets it: scan, scan again, review, tag, undo, export. The model is GeoCLIP's architecture with
//! small made-up weights.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

mod made_up;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use locdiff_archive::tags::{PlaceTag, Replace, with_place};
use locdiff_sphere::LatLon;
use serde_json::{Value, json};

const LISBON: [f64; 2] = [38.7223, -9.1393];

/// A home with a model, a folder of pictures and a library.
struct Workshop(tempfile::TempDir);

impl Workshop {
    fn new() -> Workshop {
        let workshop = Workshop(tempfile::tempdir().unwrap());
        made_up::install_geoclip(&workshop.at("home"));
        fs::create_dir(workshop.at("photos")).unwrap();
        workshop
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.at("photos").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locdiff"));
        command.args(arguments.split(' ')).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("LOCDIFF_HOME", self.at("home")).env("HF_HOME", self.at("hub"));
        command
    }

    /// Stdout and stderr of a command that ends with this code.
    fn run(&self, arguments: &str, code: i32) -> (String, String) {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments}: {stderr}");
        (stdout, stderr)
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.run(&format!("{arguments} --json"), 0).0).unwrap()
    }

    fn scan(&self) -> Value {
        self.json("scan photos --library library.sqlite --model geoclip")
    }

    /// All files of the folder with their bytes.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn find(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => find(&path, files),
                    false => drop(files.insert(path.clone(), fs::read(&path).unwrap())),
                }
            }
        }
        let mut files = BTreeMap::new();
        find(&self.at("photos"), &mut files);
        files
    }
}

/// A JPEG that no other seed gives: noise, so that it passes for a photo.
fn jpeg(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let picture = image::RgbImage::from_fn(48, 32, |_, _| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let [.., a, b, c] = state.to_be_bytes();
        image::Rgb([a.max(60), b.max(60), c.max(60)])
    });
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Jpeg).unwrap();
    bytes.into_inner()
}

/// The same with a camera and a time in Exif data.
fn taken(seed: u64, time: &str) -> Vec<u8> {
    let mut tiff = b"II*\0\x08\0\0\0".to_vec();
    let entry = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
        [&tag.to_le_bytes()[..], &kind.to_le_bytes(), &count.to_le_bytes(), &value].concat()
    };
    let (inner, text) = (8 + 2 + 2 * 12 + 4, 8 + 2 + 2 * 12 + 4 + 2 + 12 + 4);
    tiff.extend(2_u16.to_le_bytes());
    tiff.extend(entry(0x010f, 2, 4, *b"Box\0"));
    tiff.extend(entry(0x8769, 4, 1, (inner as u32).to_le_bytes()));
    tiff.extend([0; 4]);
    tiff.extend(1_u16.to_le_bytes());
    tiff.extend(entry(0x9003, 2, 20, (text as u32).to_le_bytes()));
    tiff.extend([0; 4]);
    tiff.extend(time.as_bytes());
    tiff.push(0);
    let length = ((2 + 6 + tiff.len()) as u16).to_be_bytes();
    let plain = jpeg(seed);
    [&plain[..2], &[0xff, 0xe1], &length, b"Exif\0\0", &tiff, &plain[2..]].concat()
}

fn placed(bytes: &[u8], [latitude, longitude]: [f64; 2]) -> Vec<u8> {
    let place = LatLon::new(latitude, longitude).unwrap();
    let tag = PlaceTag { place, error_km: 0.01, method: "GPS".to_owned() };
    with_place(bytes, &tag, Replace::Nothing).unwrap()
}

/// A walk through Lisbon of which the first and last picture have GPS, and what else lies around in folders.
fn archive() -> Workshop {
    let workshop = Workshop::new();
    for number in 0..6_u64 {
        let picture = taken(number, &format!("2024:05:01 12:{number}0:00"));
        let ends = number == 0 || number == 5;
        let picture = if ends { placed(&picture, LISBON) } else { picture };
        workshop.write(&format!("walk/{number}.jpg"), &picture);
    }
    let copy = fs::read(workshop.at("photos/walk/1.jpg")).unwrap();
    workshop.write("copies/1 again.jpg", &copy);
    workshop.write("plain.jpg", &jpeg(100));
    workshop.write("broken.jpg", b"not a picture");
    workshop.write("notes.txt", b"no picture at all");
    workshop.write("@eaDir/plain.jpg", &jpeg(101));
    workshop.write(".hidden.jpg", &jpeg(102));
    let screen = image::RgbImage::from_fn(200, 120, |x, y| {
        image::Rgb(if x / 40 == 2 && y > 50 { [30, 60, 200] } else { [250, 250, 250] })
    });
    screen.save(workshop.at("photos/screen.png")).unwrap();
    workshop
}

fn check(found: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&found[name], value, "{name} in {found}");
    }
}

#[test]
fn from_a_folder_to_tags_and_back() {
    let workshop = archive();
    let before = workshop.files();
    let known = json!({
        "files": 10, "pictures": 9, "with_gps": 2, "graphics": 1, "damaged": 1, "located": 5, "missing": 0,
        "model": "geoclip",
    });
    let first = workshop.scan();
    check(&first, &known);
    check(&first, &json!({ "read": 10, "added": 10, "predicted": 5, "answered": 5, "fused": 4 }));
    let nothing = json!({ "read": 0, "added": 0, "moved": 0, "predicted": 0, "fused": 0 });
    let again = workshop.scan();
    check(&again, &known);
    check(&again, &nothing);
    // A file that was moved is the same picture.
    fs::rename(workshop.at("photos/walk/3.jpg"), workshop.at("photos/third.jpg")).unwrap();
    let moved = workshop.scan();
    check(&moved, &known);
    check(&moved, &json!({ "read": 1, "added": 0, "moved": 1, "predicted": 0, "fused": 0 }));
    fs::rename(workshop.at("photos/third.jpg"), workshop.at("photos/walk/3.jpg")).unwrap();
    workshop.scan();
    assert!(before == workshop.files(), "a scan only reads");

    let review = Review::start(&workshop);
    let shown = review.pictures();
    assert_eq!(shown.len(), 9);
    let walked = |name: &str| shown.iter().find(|picture| picture["name"] == name).unwrap();
    let between = walked("2.jpg");
    assert_eq!(
        (&between["fused"], &between["time"]),
        (&json!(true), &json!("2024-05-01T12:20:00Z"))
    );
    let influences = between["influences"].as_array().unwrap();
    assert!(influences.iter().any(|line| line.as_str().unwrap().contains("earlier")), "{between}");
    let place = |value: &Value| {
        LatLon::new(value[0].as_f64().unwrap(), value[1].as_f64().unwrap()).unwrap()
    };
    let lisbon = LatLon::new(LISBON[0], LISBON[1]).unwrap();
    assert!(place(&between["place"]).distance_km(lisbon) < 50.0, "{between}");
    assert!(between["place_name"].as_str().unwrap().contains("Portugal"), "{between}");
    assert_eq!(walked("screen.png")["kind"], "graphic");
    assert!(walked("broken.jpg")["error"].is_string());
    let id = |name: &str| walked(name)["id"].as_str().unwrap().to_owned();
    let decisions = json!({ "decisions": [
        {
            "id": id("2.jpg"), "decision": "accepted",
            "latitude": between["place"][0], "longitude": between["place"][1],
        },
        { "id": id("3.jpg"), "decision": "rejected" },
        { "id": id("plain.jpg"), "decision": "moved", "latitude": -33.8688, "longitude": 151.2093 },
    ]});
    // What the library has no longer isn't accepted.
    let outdated = json!({ "decisions": [
        { "id": id("2.jpg"), "decision": "accepted", "latitude": 1.0, "longitude": 2.0 },
    ]});
    let refused = review.post(&outdated);
    assert_eq!(refused.json(), json!({ "stored": 0, "changed": [id("2.jpg")] }));
    let stored = review.post(&decisions);
    assert_eq!(stored.json(), json!({ "stored": 3, "changed": [] }));
    drop(review);

    let listed = workshop.json("tag library.sqlite --dry-run");
    check(&listed, &json!({ "dry_run": true, "already": 0, "with_place": 0 }));
    let names: Vec<&str> =
        listed["files"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap()).collect();
    assert!(names.len() == 2 && names[0].ends_with("plain.jpg.xmp"), "{names:?}");
    assert!(before == workshop.files(), "a dry run writes nothing");
    workshop.run("tag library.sqlite", 0);
    let sidecar = fs::read_to_string(workshop.at("photos/plain.jpg.xmp")).unwrap();
    assert!(sidecar.contains("GPSLatitude=\"33,52.1280000S\""), "{sidecar}");
    assert!(sidecar.contains("placed by hand"), "{sidecar}");
    // What was written is not what a camera measured.
    check(&workshop.scan(), &json!({ "with_gps": 2, "read": 2, "predicted": 0 }));
    check(&workshop.json("tag library.sqlite"), &json!({ "files": [], "already": 2 }));
    workshop.run("tag library.sqlite --undo", 0);
    assert!(before == workshop.files(), "sidecars are gone");

    let written = workshop.json("tag library.sqlite --in-place --precision 20");
    assert_eq!(written["files"].as_array().unwrap().len(), 2);
    assert!(workshop.at("photos/plain.jpg_original").is_file());
    check(&workshop.scan(), &json!({ "with_gps": 2, "predicted": 0, "pictures": 9 }));
    workshop.run("tag library.sqlite --undo", 0);
    assert!(before == workshop.files(), "pictures are as they were");
    // Everything above a score: the copy of a picture has a sidecar too, and GPS stays.
    let (_, stderr) = workshop.run("tag library.sqlite --confidence 0 --dry-run", 0);
    assert!(stderr.contains("not calibrated") && stderr.contains("5 files would be"), "{stderr}");
    exported(&workshop);
}

fn exported(workshop: &Workshop) {
    // Two with GPS, one by hand, three estimates; one was rejected.
    let geojson: Value =
        serde_json::from_str(&workshop.run("export library.sqlite --format geojson", 0).0).unwrap();
    assert_eq!(geojson["features"].as_array().unwrap().len(), 6);
    let (csv, _) = workshop.run("export library.sqlite --format csv", 0);
    assert_eq!(csv.lines().count(), 7);
    assert!(csv.contains("accepted estimate") && csv.contains(",hand,"), "{csv}");
    for format in ["kml", "gpx"] {
        let (xml, _) = workshop.run(&format!("export library.sqlite --format {format}"), 0);
        assert!(xml.starts_with("<?xml") && xml.contains("plain.jpg"), "{xml}");
    }
    workshop.run("export library.sqlite --format parquet -o places.parquet", 0);
    let file = fs::File::open(workshop.at("places.parquet")).unwrap();
    let builder =
        parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let rows: usize = builder.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 6);
}

/// Killed at any moment, a scan loses nothing and does nothing twice.
#[test]
fn killed_scans_go_on() {
    let workshop = Workshop::new();
    let count = 240;
    for number in 0..count {
        workshop.write(&format!("{}/{number}.jpg", number % 7), &jpeg(number));
    }
    let number = |sql: &str| {
        let path = workshop.at("library.sqlite");
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
        // There may be no file and no tables yet.
        let Ok(library) = rusqlite::Connection::open_with_flags(path, flags) else { return 0 };
        library.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap_or(0)
    };
    let (files, predictions) =
        ("SELECT count(*) FROM files", "SELECT count(*) FROM predictions WHERE fused = 0");
    // Once while files are read, then while pictures are predicted.
    for (what, least) in [(files, 1), (predictions, 1), (predictions, 60), (predictions, 120)] {
        let mut scan = workshop
            .command("scan photos --library library.sqlite --model geoclip")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It may end by itself.
        while scan.try_wait().unwrap().is_none() && number(what) < least {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = scan.kill();
        scan.wait().unwrap();
    }
    let before = number(predictions);
    let summary = workshop.scan();
    check(&summary, &json!({ "files": count, "pictures": count, "located": count, "missing": 0 }));
    check(&summary, &json!({ "read": 0, "predicted": count - before }));
    assert_eq!((number(predictions), number(files)), (count, count));
    check(&workshop.scan(), &json!({ "read": 0, "predicted": 0 }));
}

#[test]
fn other_sites_and_unknown_pictures_are_rejected() {
    let workshop = archive();
    workshop.run("scan photos --library library.sqlite --no-predict", 0);
    let review = Review::start(&workshop);
    let shown = review.pictures();
    let id = shown[0]["id"].as_str().unwrap();
    let own = format!("Host: {}\r\n", review.address);
    for foreign in [
        "Host: evil.example\r\n".to_owned(),
        format!("{own}Origin: http://evil.example\r\n"),
        format!("{own}Origin: null\r\n"),
        format!("{own}Sec-Fetch-Site: cross-site\r\n"),
    ] {
        assert_eq!(review.ask("GET", "/v1/archive", &foreign, b"").status, 403, "{foreign}");
        let body = json!({ "decisions": [{ "id": id, "decision": "accepted" }] }).to_string();
        let answer = review.ask("POST", "/v1/archive/decisions", &foreign, body.as_bytes());
        assert_eq!(answer.status, 403, "{foreign}");
    }
    let unknown = "0".repeat(64);
    let accepted = |id: &str| json!({ "id": id, "decision": "accepted" });
    let both = review.post(&json!({ "decisions": [accepted(id), accepted(&unknown)] }));
    assert_eq!((both.status, &both.json()["title"]), (404, &json!("Not Found")));
    for wrong in [
        json!({ "decisions": [{ "id": id }] }),
        json!({ "decisions": [{ "id": id, "decision": "moved", "latitude": 1.0 }] }),
        json!({ "decisions": [{ "id": id, "decision": "moved", "latitude": 91.0, "longitude": 0.0 }] }),
        json!({ "decisions": [{ "id": id, "decision": "perhaps" }] }),
        json!([]),
    ] {
        assert_eq!(review.post(&wrong).status, 400, "{wrong}");
    }
    assert!(review.pictures().iter().all(|picture| picture["decision"].is_null()));
    review.post(&json!({ "decisions": [accepted(id)] }));
    assert_eq!(review.pictures()[0]["decision"], "accepted");
    review.post(&json!({ "decisions": [{ "id": id, "decision": null }] }));
    assert!(review.pictures()[0]["decision"].is_null());
    let screen = shown.iter().find(|picture| picture["name"] == "screen.png").unwrap();
    let address = |id: &str, size: u32| format!("/v1/archive/thumbnail/{id}?size={size}");
    let small = review.get(&address(screen["id"].as_str().unwrap(), 100));
    let small = image::load_from_memory(&small.body).unwrap();
    assert_eq!((small.width(), small.height()), (100, 60));
    assert_eq!(review.get(&address(&unknown, 100)).status, 404);
    assert_eq!(review.get(&address(id, 5)).status, 400);
    assert!([200, 404].contains(&review.get("/review").status));
    assert_eq!(review.get("/").status, 200);
}

#[test]
fn mistakes_are_named() {
    let workshop = Workshop::new();
    let (_, stderr) = workshop.run("tag nowhere.sqlite", 1);
    assert!(
        stderr.contains("`locdiff scan FOLDER --library nowhere.sqlite` makes one"),
        "{stderr}"
    );
    workshop.run("scan missing --library l.sqlite --no-predict", 1);
    workshop.run("scan photos --library l.sqlite --model nonsense", 2);
    workshop.run("scan photos --library l.sqlite --zone noon", 2);
    workshop.run("tag l.sqlite --confidence 7", 2);
    fs::write(workshop.at("t.gpx"), "<kml/>").unwrap();
    let (_, stderr) =
        workshop.run("scan photos --library l.sqlite --model geoclip --track t.gpx", 1);
    assert!(stderr.contains("t.gpx") && stderr.contains("<gpx>"), "{stderr}");
    fs::write(workshop.at("text.sqlite"), "not a database, but long enough to look at twice")
        .unwrap();
    let (_, stderr) = workshop.run("scan photos --library text.sqlite --no-predict", 1);
    assert!(stderr.contains("text.sqlite"), "{stderr}");
}

/// A review server.
struct Review {
    process: Child,
    address: String,
}

struct Answer {
    status: u16,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Review {
    fn start(workshop: &Workshop) -> Review {
        let mut command = workshop.command("review library.sqlite --port 0");
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().to_owned();
        Review { process, address }
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        Answer { status, body: answer[end + 4..].to_vec() }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &format!("Host: {}\r\n", self.address), b"")
    }

    fn post(&self, decisions: &Value) -> Answer {
        let own = format!("Host: {0}\r\nOrigin: http://{0}\r\n", self.address);
        self.ask("POST", "/v1/archive/decisions", &own, decisions.to_string().as_bytes())
    }

    fn pictures(&self) -> Vec<Value> {
        self.get("/v1/archive").json()["pictures"].as_array().unwrap().clone()
    }
}

impl Drop for Review {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let began = Instant::now();
        let _ = self.process.wait();
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
