//! A library finds what is new, keeps what is known, and survives being killed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use locdiff_archive::Moment;
use locdiff_archive::library::{
    Candidate, ContentHash, Decision, Facts, Kind, Known, Library, LibraryError, Prediction,
    ScanSummary, Scanned, UsedModel,
};
use locdiff_sphere::{Coefficients, Density, DensityRecord, Kernel, LatLon, PointMasses};

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).expect("a place")
}

fn open(folder: &Path) -> Library {
    Library::open(&folder.join("library.sqlite")).expect("a library")
}

fn scanned(path: &str, content: &str) -> Scanned {
    Scanned { facts: Facts::of_bytes(path, 7, content.as_bytes()), error: None }
}

fn predicted(hash: ContentHash, fused: bool) -> Prediction {
    Prediction {
        hash,
        model: "m".to_owned(),
        version: "1".to_owned(),
        fused,
        calibrated: true,
        place: Some(at(1.5, -2.5)),
        confidence: 0.75,
        radius_68_km: 10.0,
        radius_90_km: 20.0,
        candidates: vec![Candidate { latitude: 1.5, longitude: -2.5, mass: 0.75, radius_km: 5.0 }],
        influences: vec!["picture before: 1.2 nats, 300 km".to_owned()],
        density: Some(DensityRecord::of(&Density::exponential(&Coefficients::of(
            at(1.5, -2.5),
            7,
        )))),
        error: None,
    }
}

fn used() -> UsedModel {
    UsedModel { name: "m".to_owned(), version: "1".to_owned(), calibrated: true }
}

/// Scans a folder of made-up files: paths with contents.
fn scan(library: &mut Library, files: &[(&str, &str)]) -> (usize, ScanSummary) {
    let scan = library.begin_scan("photos").expect("a scan");
    let mut read = 0;
    for (path, content) in files {
        // As the size of these files stands for their time.
        let known = library.known(scan, path, content.len() as u64, 7).expect("known");
        if !matches!(known, Known::Unchanged(_)) {
            read += 1;
            library.record(scan, &[scanned(path, content)]).expect("recorded");
        }
    }
    (read, library.finish_scan(scan).expect("finished"))
}

#[test]
fn only_new_and_changed_files_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut library = open(folder.path());
    let first = [("photos/a", "one"), ("photos/b", "two"), ("photos/c", "three")];
    assert_eq!(scan(&mut library, &first).0, 3);
    assert_eq!(scan(&mut library, &first), (0, ScanSummary { present: 3, ..Default::default() }));
    library.use_model(&used()).expect("a model");
    // b changed, c moved, d is a copy of a.
    let hash = ContentHash::of(b"three");
    library.predict(&[predicted(hash, false)]).expect("predicted");
    library.decide(hash, Some(Decision::Accepted)).expect("decided");
    let second =
        [("photos/a", "one"), ("photos/b", "two!"), ("photos/x/c", "three"), ("photos/d", "one")];
    let (read, summary) = scan(&mut library, &second);
    assert_eq!(read, 3);
    assert_eq!(summary, ScanSummary { present: 4, moved: 1, added: 1, missing: 0 });
    // The moved file keeps its prediction and decision; copies and changed files are asked for once each.
    let paths: Vec<String> =
        library.unpredicted("m", "1", 9).expect("a list").into_iter().map(|u| u.path).collect();
    assert_eq!(paths, ["photos/a", "photos/b"]);
    let entries = library.entries("m", "1").expect("entries");
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[2].path, "photos/x/c");
    assert_eq!(entries[2].decision, Some(Decision::Accepted));
    assert_eq!(entries[2].place(), Some(at(1.5, -2.5)));
    // Deleted files are missing, and come back with all that was known.
    let (_, summary) = scan(&mut library, &[("photos/a", "one")]);
    assert_eq!(summary.missing, 2);
    assert_eq!(library.entries("m", "1").expect("entries").len(), 1);
    scan(&mut library, &second);
    assert_eq!(library.entries("m", "1").expect("entries")[2].decision, Some(Decision::Accepted));
    assert_eq!(library.check().expect("checked"), Vec::<String>::new());
}

/// Later predictions, of this model or another, don't move what was accepted.
#[test]
fn what_was_accepted_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut library = open(folder.path());
    scan(&mut library, &[("photos/a", "one"), ("photos/b", "two")]);
    let [seen, unseen] = ["one", "two"].map(|text| ContentHash::of(text.as_bytes()));
    library.use_model(&used()).expect("a model");
    let first = predicted(seen, false);
    library.predict(std::slice::from_ref(&first)).expect("predicted");
    // There is nothing to accept of the second picture yet.
    for hash in [seen, unseen] {
        library.decide(hash, Some(Decision::Accepted)).expect("decided");
    }
    let accepted = Prediction { density: None, ..first };
    let elsewhere = |hash: ContentHash, version: &str| Prediction {
        version: version.to_owned(),
        place: Some(at(60.0, 10.0)),
        ..predicted(hash, true)
    };
    let later = [elsewhere(seen, "1"), elsewhere(unseen, "1"), elsewhere(seen, "2")];
    library.predict(&later).expect("predicted");
    for version in ["1", "2"] {
        let entries = library.entries("m", version).expect("entries");
        assert_eq!(entries[0].decision, Some(Decision::Accepted));
        assert_eq!(entries[0].prediction, Some(accepted.clone()));
        assert_eq!(entries[0].place(), Some(at(1.5, -2.5)));
    }
    let entries = library.entries("m", "1").expect("entries");
    assert_eq!((entries[1].decision, entries[1].place()), (None, Some(at(60.0, 10.0))));
    // Accepted again, it is the new place; taken back, it is undecided.
    library.decide(seen, Some(Decision::Accepted)).expect("decided");
    assert_eq!(library.entries("m", "1").expect("entries")[0].place(), Some(at(60.0, 10.0)));
    library.decide(seen, None).expect("taken back");
    assert_eq!(library.entries("m", "1").expect("entries")[0].decision, None);
}

/// Of two copies only one has a sidecar with a place and a time.
#[test]
fn a_copy_without_a_place_does_not_hide_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut library = open(folder.path());
    let plain = |path: &str| scanned(path, "same");
    let mut placed = plain("photos/a");
    placed.facts.gps = Some(at(1.0, 2.0));
    placed.facts.time = Moment::from_iso("2024-05-01T12:00:00Z");
    let known = |library: &Library| {
        let entry = library.entries("m", "1").expect("entries").remove(0);
        (entry.gps, entry.time)
    };
    let scan = library.begin_scan("photos").expect("a scan");
    library.record(scan, &[placed.clone(), plain("photos/b")]).expect("recorded");
    assert_eq!(known(&library), (placed.facts.gps, placed.facts.time));
    // The copy with the sidecar is gone, or its sidecar is.
    let scan = library.begin_scan("photos").expect("a scan");
    library.record(scan, &[plain("photos/b")]).expect("recorded");
    library.finish_scan(scan).expect("finished");
    assert_eq!(known(&library), (None, None));
    library.record(scan, &[placed]).expect("recorded");
    assert!(known(&library).0.is_some());
    library.record(scan, &[plain("photos/a")]).expect("recorded");
    assert_eq!(known(&library), (None, None));
}

#[test]
fn what_was_stated_is_kept_for_each_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut library = open(folder.path());
    for (folder, words) in [("/p", "travel"), ("/p/peru", "Chile"), ("/p/peru", "Peru")] {
        library.state(folder, words).expect("stated");
    }
    let stated = open(folder.path()).stated().expect("a list");
    let stated: Vec<_> = stated.iter().map(|(f, w)| (f.as_str(), w.as_str())).collect();
    assert_eq!(stated, [("/p/peru", "Peru"), ("/p", "travel")]);
}

#[test]
fn a_scan_of_one_folder_says_nothing_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut library = open(folder.path());
    for (root, path) in [("photos", "photos/a"), ("photos2", "photos2/a"), ("ph%", "ph%/a")] {
        let scan = library.begin_scan(root).expect("a scan");
        library.record(scan, &[scanned(path, path)]).expect("recorded");
        library.finish_scan(scan).expect("finished");
    }
    let scan = library.begin_scan("photos/").expect("a scan");
    assert_eq!(library.finish_scan(scan).expect("finished").missing, 1);
    assert_eq!(library.entries("m", "1").expect("entries").len(), 2);
}

#[test]
fn pictures_with_a_place_graphics_and_unreadable_files_are_not_predicted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut library = open(folder.path());
    let scan = library.begin_scan("photos").expect("a scan");
    let mut files: Vec<Scanned> =
        ["gps", "graphic", "broken", "plain"].map(|name| scanned(name, name)).into();
    files[0].facts.gps = Some(at(-89.0, 180.0));
    files[0].facts.time = Moment::from_iso("2024-05-01T12:00:00Z");
    files[0].facts.camera = Some("Maker Model".to_owned());
    files[1].facts.kind = Kind::Graphic;
    files[2].error = Some("not an image".to_owned());
    library.record(scan, &files).expect("recorded");
    let wanted = library.unpredicted("m", "1", 9).expect("a list");
    assert_eq!(wanted.len(), 1);
    assert_eq!(wanted[0].path, "plain");
    let entries = library.entries("m", "1").expect("entries");
    let gps = entries.iter().find(|entry| entry.path == "gps").expect("an entry");
    assert_eq!(
        (gps.gps, gps.time, &gps.camera),
        (files[0].facts.gps, files[0].facts.time, &files[0].facts.camera)
    );
}

#[test]
fn predictions_and_decisions_are_what_was_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut library = open(folder.path());
    scan(&mut library, &[("photos/a", "one")]);
    let hash = ContentHash::of(b"one");
    let (single, fused) = (predicted(hash, false), predicted(hash, true));
    library.predict(std::slice::from_ref(&single)).expect("predicted");
    let stored = library.entries("m", "1").expect("entries").remove(0).prediction;
    assert_eq!(stored, Some(Prediction { density: None, ..single }));
    library.predict(std::slice::from_ref(&fused)).expect("predicted");
    library.predict(&[fused]).expect("predicted again");
    assert!(
        library.entries("m", "1").expect("entries")[0].prediction.as_ref().is_some_and(|p| p.fused)
    );
    let density = library.density(hash, "m", "1", true).expect("read").expect("a density");
    let original = Density::exponential(&Coefficients::of(at(1.5, -2.5), 7));
    assert!((density.log_density(at(3.0, 4.0)) - original.log_density(at(3.0, 4.0))).abs() < 1e-4);
    assert!(library.density(hash, "other", "1", true).expect("read").is_none());
    for decision in [Some(Decision::Moved(at(5.0, 6.0))), Some(Decision::Rejected), None] {
        library.decide(hash, decision).expect("decided");
        assert_eq!(library.entries("m", "1").expect("entries")[0].decision, decision);
    }
    let unknown = ContentHash::of(b"never scanned");
    assert!(matches!(library.predict(&[predicted(unknown, false)]), Err(LibraryError::Unknown(_))));
    assert!(matches!(
        library.decide(unknown, Some(Decision::Accepted)),
        Err(LibraryError::Unknown(_))
    ));
}

/// Records of others are limited in what they may cost. What a model predicted must be readable, whatever it cost.
#[test]
fn any_density_that_is_stored_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut library = open(folder.path());
    scan(&mut library, &[("photos/a", "one")]);
    let part = |k: u32| {
        let place = PointMasses::new(vec![at(0.1 * f64::from(k), 20.0)], &[1.0]).expect("a place");
        (1.0, place.spread(Kernel::new(30.0).expect("a width")))
    };
    let many = Density::mixture((0..400).map(part).collect()).expect("a density");
    let record = DensityRecord::of(&many);
    assert!(record.density().is_err(), "beyond the limits for records of others");
    let hash = ContentHash::of(b"one");
    let prediction = Prediction { density: Some(record), ..predicted(hash, false) };
    library.predict(std::slice::from_ref(&prediction)).expect("stored");
    let stored = library.density(hash, "m", "1", false).expect("read").expect("a density");
    let place = at(13.0, 20.1);
    assert!((stored.log_density(place) - many.log_density(place)).abs() < 1e-3);
}

#[test]
fn foreign_and_newer_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other.sqlite");
    let other = rusqlite::Connection::open(&path).expect("a database");
    other.execute_batch("CREATE TABLE t (x)").expect("a table");
    assert!(matches!(Library::open(&path), Err(LibraryError::Foreign(_))));
    drop(open(folder.path()));
    let newer =
        rusqlite::Connection::open(folder.path().join("library.sqlite")).expect("a database");
    newer.pragma_update(None, "user_version", 99).expect("a version");
    let error = Library::open(&folder.path().join("library.sqlite")).expect_err("too new");
    assert!(error.to_string().contains("schema 99"), "{error}");
}

/// How many files the worker scans, and how many it records at once.
const FILES: usize = 600;
const AT_ONCE: usize = 4;

/// What a process does that is killed: it scans, predicts and decides.
fn work(folder: &Path) {
    let mut library = open(folder);
    let scan = library.begin_scan("photos").expect("a scan");
    let paths: Vec<String> = (0..FILES).map(|k| format!("photos/{k}")).collect();
    for paths in paths.chunks(AT_ONCE) {
        let files: Vec<(&str, u64, i64)> =
            paths.iter().map(|path| (path.as_str(), path.len() as u64, 7)).collect();
        let known = library.known_all(scan, &files).expect("known");
        let new = paths.iter().zip(known).filter(|(_, known)| *known == Known::New);
        let new: Vec<Scanned> = new.map(|(path, _)| scanned(path, path)).collect();
        // The outside world counts what was read: each file once, but for those in flight at a kill.
        library.record(scan, &new).expect("recorded");
        let wanted = library.unpredicted("m", "1", AT_ONCE).expect("a list");
        let predictions: Vec<Prediction> =
            wanted.iter().map(|w| predicted(w.hash, false)).collect();
        library.predict(&predictions).expect("predicted");
    }
    library.finish_scan(scan).expect("finished");
}

/// Not a test of its own: the process that [`kills_lose_nothing`] starts and kills.
#[test]
#[ignore = "run by kills_lose_nothing as a process of its own"]
fn worker() {
    if let Ok(folder) = std::env::var("LOCDIFF_ARCHIVE_TEST_FOLDER") {
        work(Path::new(&folder));
    }
}

#[test]
fn kills_lose_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let path = folder.path().join("library.sqlite");
    let count = |sql: &str| -> usize {
        let Ok(connection) = rusqlite::Connection::open(&path) else { return 0 };
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_or(0, |n| n as usize)
    };
    // Killed when it has got a sixth further each time.
    for kill in 1..=5 {
        let mut child = Command::new(&program)
            .args(["--exact", "worker", "--ignored"])
            .env("LOCDIFF_ARCHIVE_TEST_FOLDER", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("a process");
        let deadline = Instant::now() + Duration::from_secs(60);
        while count("SELECT count(*) FROM files") < kill * FILES / 6 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("killed");
        child.wait().expect("gone");
        let library = open(folder.path());
        assert_eq!(library.check().expect("checked"), Vec::<String>::new());
        // Every file that is there is there with its content.
        let orphans = "SELECT count(*) FROM files f LEFT JOIN contents c ON c.hash = f.hash WHERE c.hash IS NULL";
        assert_eq!(count(orphans), 0);
    }
    work(folder.path());
    let library = open(folder.path());
    let entries = library.entries("m", "1").expect("entries");
    assert_eq!(entries.len(), FILES);
    assert!(entries.iter().all(|entry| entry.prediction.is_some()));
    assert_eq!(count("SELECT count(*) FROM predictions"), FILES);
    assert_eq!(library.unpredicted("m", "1", 9).expect("a list"), []);
}
