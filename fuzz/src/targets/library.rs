//! Densities in the library of a photo archive: bytes in SQLite.

use std::cell::RefCell;

use locdiff_archive::library::{ContentHash, Library};
use locdiff_sphere::LatLon;
use rusqlite::{Connection, params};
use tempfile::TempDir;

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "library",
    reads: "densities in libraries of photo archives",
    longest: 4 << 10,
    most_bytes: 64 << 20,
    run,
    seeds,
};

/// A library, and a second connection that writes into it what the library itself would not.
struct Opened {
    library: Library,
    writer: Connection,
    _folder: TempDir,
}

thread_local! {
    static OPENED: RefCell<Option<Opened>> = const { RefCell::new(None) };
}

fn hash() -> ContentHash {
    ContentHash::of(b"picture")
}

fn open() -> Opened {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("library.db");
    let library = Library::open(&path).expect("a library");
    let writer = Connection::open(&path).expect("a database");
    writer.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF").expect("settings");
    writer
        .execute(
            "INSERT INTO predictions (hash, model, version, fused, calibrated, candidates, influences) \
             VALUES (?1, 'm', '1', 0, 0, '[]', '[]')",
            params![hash()],
        )
        .expect("a row");
    Opened { library, writer, _folder: folder }
}

fn run(input: &[u8]) {
    OPENED.with_borrow_mut(|opened| {
        let Opened { library, writer, .. } = opened.get_or_insert_with(open);
        writer.execute("UPDATE predictions SET density = ?1", params![input]).expect("a row");
        let Ok(Some(density)) = library.density(hash(), "m", "1", false) else { return };
        let place = LatLon::new(12.5, -45.25).expect("a place");
        assert!(!density.log_density(place).is_nan(), "a log-density that is no number");
    });
}

/// A byte for the kind, lists with their length before them: as `locdiff-archive` writes densities.
fn seeds() -> Vec<Vec<u8>> {
    let floats = |numbers: &[f32]| -> Vec<u8> {
        let mut bytes = (numbers.len() as u32).to_le_bytes().to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    };
    let degrees = |numbers: &[i32]| -> Vec<u8> {
        let mut bytes = (numbers.len() as u32).to_le_bytes().to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    };
    let function = [vec![1], floats(&[0.0, 1.0, -2.0, 0.5])].concat();
    let linear = [vec![2], floats(&[0.28, 0.1, -0.1, 0.05])].concat();
    let points = [
        vec![3],
        50_f64.to_le_bytes().to_vec(),
        degrees(&[488_500_000, -330_000_000]),
        degrees(&[23_500_000, 1_512_000_000]),
        floats(&[0.25, 0.75]),
    ]
    .concat();
    let cells = [
        vec![4],
        2_u32.to_le_bytes().to_vec(),
        0x100_u64.to_le_bytes().to_vec(),
        0x15123_u64.to_le_bytes().to_vec(),
        floats(&[0.5, 0.5]),
    ]
    .concat();
    let part = |kind: u8| {
        let half = 0.5_f32.to_le_bytes().to_vec();
        let two = 2_u32.to_le_bytes().to_vec();
        [vec![kind], two, half.clone(), points.clone(), half, function.clone()].concat()
    };
    let json = br#"{"kind":"exponential","max_degree":0,"coefficients":[0]}"#;
    let json = [vec![255], (json.len() as u32).to_le_bytes().to_vec(), json.to_vec()].concat();
    vec![function.clone(), linear, points.clone(), cells, part(5), part(6), json]
}
