//! Where pictures were taken: by the manifest, else by the camera, else unknown.

use locdiff_train::{Dataset, Ids, OnBadShard, StreamOptions};
use tempfile::tempdir;

use crate::rows::{ids, rows_in, unplaced_rows_in};
use crate::studio::{jpeg_at, options, png, run, write};

#[test]
fn the_manifest_comes_before_the_camera() {
    let scratch = tempdir().unwrap();
    let root = scratch.path();
    write(&root.join("camera.jpg"), jpeg_at(1, -33.875, 151.25));
    write(&root.join("plain.png"), png(2));
    write(
        &root.join("list.csv"),
        "id,path,latitude,longitude\n\
         both,camera.jpg,10.5,20.5\n\
         camera,camera.jpg,,\n\
         manifest,plain.png,-1.5,-179.75\n\
         none,plain.png,,\n\
         wrong,camera.jpg,95,0\n",
    );
    let (summary, skipped) = run(&root.join("list.csv"), &options(&root.join("out")));
    let rows = rows_in(&root.join("out"));
    assert_eq!(ids(&rows), ["both", "camera", "manifest"]);
    let places: Vec<_> = rows.iter().map(|row| row.place.unwrap()).collect();
    assert_eq!(places, [(10.5, 20.5), (-33.875, 151.25), (-1.5, -179.75)]);
    assert_eq!(ids(&unplaced_rows_in(&root.join("out"))), ["none"]);
    assert_eq!(summary.without_place, 1);
    // What is stated wrongly is not replaced in silence.
    assert_eq!((skipped.len(), skipped[0].id.as_str()), (1, "wrong"));
}

#[test]
fn poles_and_the_antimeridian_survive() {
    let scratch = tempdir().unwrap();
    let folder = scratch.path().join("in");
    let places =
        [(90.0, 0.0), (-90.0, 30.0), (0.5, 180.0), (0.5, -180.0), (-0.25, 179.999_999), (0.0, 0.5)];
    for (number, (latitude, longitude)) in places.iter().enumerate() {
        let picture = jpeg_at(number as u32, *latitude, *longitude);
        write(&folder.join(format!("{number}.jpg")), picture);
    }
    let out = scratch.path().join("out");
    run(&folder, &options(&out));
    let found: Vec<_> = rows_in(&out).iter().map(|row| row.place.unwrap()).collect();
    let expected = [
        (90.0, 0.0),
        (-90.0, 30.0),
        (0.5, -180.0),
        (0.5, -180.0),
        (-0.25, 179.999_999),
        (0.0, 0.5),
    ];
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found.0 - expected.0).abs() < 1e-9 && (found.1 - expected.1).abs() < 1e-9);
    }
}

/// A folder of which only some pictures have places is ready for training, without a word.
#[test]
fn training_sees_the_rows_that_have_places() {
    let scratch = tempdir().unwrap();
    let folder = scratch.path().join("in");
    for number in 0..30 {
        let name = folder.join(format!("{number:02}"));
        match number % 3 {
            0 => write(&name, png(number)),
            _ => write(&name, jpeg_at(number, 10.0, f64::from(number))),
        }
    }
    let out = scratch.path().join("out");
    let (summary, _) = run(&folder, &options(&out));
    assert_eq!((summary.rows, summary.without_place), (30, 10));
    let set = Dataset::open(&out.display().to_string(), OnBadShard::Fail).unwrap();
    assert_eq!(set.rows(), 20);
    let options =
        StreamOptions { batch: 4, epochs: Some(1), ids: Ids::Include, ..Default::default() };
    let mut ids: Vec<String> =
        set.stream(options).unwrap().flat_map(|batch| batch.unwrap().ids).collect();
    ids.sort();
    let expected: Vec<String> = (0..30).filter(|n| n % 3 != 0).map(|n| format!("{n:02}")).collect();
    assert_eq!(ids, expected);
    assert_eq!(unplaced_rows_in(&out).len(), 10);
}
