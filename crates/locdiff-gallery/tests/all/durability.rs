//! What is on disk after builds, appends, merges, crashes and damage.

use std::fs::{self, OpenOptions};
use std::path::Path;

use locdiff_gallery::{EncoderIdentity, Gallery, GalleryError, GalleryWriter};
use locdiff_sphere::{Area, LatLon};

use crate::made::{append, build, clustered, encoder, push, queries};

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Ids and similarities of the best rows.
fn best(gallery: &Gallery, query: &[f32]) -> Vec<(String, f32)> {
    let hits = gallery.search(query, 20).unwrap();
    hits.iter().map(|hit| (gallery.id(hit.row).to_owned(), hit.similarity)).collect()
}

#[test]
fn appends_find_what_one_build_finds() {
    let directory = tempfile::tempdir().unwrap();
    let rows = clustered(10, 1500, 48);
    let whole = build(&directory.path().join("whole"), &rows);
    let path = directory.path().join("parts");
    let mut parts = build(&path, &rows[..100]);
    for chunk in rows[100..].chunks(100) {
        parts = append(&path, chunk);
        assert!(parts.info().unwrap().segments <= 8);
    }
    assert_eq!(parts.len(), whole.len());
    for query in queries(&rows, 20) {
        assert_eq!(best(&parts, &query), best(&whole, &query));
    }
    // Merged segments and the files beside them, and nothing else.
    let segments = parts.info().unwrap().segments;
    assert_eq!(names(&path).len(), segments + 2, "{:?}", names(&path));
}

/// Merging rewrites rows without a loss: 9 segments of which 5 become one are byte for byte the same as a
/// segment of those rows that was built at once.
#[test]
fn merged_segments_are_those_of_one_build() {
    let directory = tempfile::tempdir().unwrap();
    let rows = clustered(11, 900, 33);
    let path = directory.path().join("parts");
    // The first four are the largest and stay.
    build(&path, &rows[..150]);
    for chunk in rows[150..600].chunks(150) {
        append(&path, chunk);
    }
    for chunk in rows[600..].chunks(60) {
        append(&path, chunk);
    }
    let whole = directory.path().join("whole");
    build(&whole, &rows[600..]);
    let merged = path.join("segment-000010");
    let built = whole.join("segment-000001");
    assert_eq!(names(&merged), names(&built));
    for name in names(&built) {
        assert_eq!(fs::read(merged.join(&name)).unwrap(), fs::read(built.join(&name)).unwrap());
    }
}

#[test]
fn an_open_gallery_survives_a_merge() {
    let directory = tempfile::tempdir().unwrap();
    let rows = clustered(12, 500, 16);
    let path = directory.path().join("gallery");
    let open = build(&path, &rows[..50]);
    let query = &rows[3].0;
    let before = best(&open, query);
    for chunk in rows[50..].chunks(50) {
        append(&path, chunk);
    }
    assert_eq!(best(&open, query), before);
    assert_eq!(open.len(), 50);
}

#[test]
fn builds_never_overwrite() {
    let directory = tempfile::tempdir().unwrap();
    let rows = clustered(13, 20, 16);
    let path = directory.path().join("gallery");
    build(&path, &rows);
    let error = GalleryWriter::create(&path, &encoder(16)).unwrap_err();
    assert!(matches!(error, GalleryError::Exists { .. }), "{error}");
    assert!(error.to_string().contains("append to it"));
    // What appears while a gallery is built is not overwritten either.
    let other = directory.path().join("other");
    let mut writer = GalleryWriter::create(&other, &encoder(16)).unwrap();
    push(&mut writer, &rows);
    fs::create_dir(&other).unwrap();
    fs::write(other.join("letter.txt"), "dear reader").unwrap();
    assert!(writer.finish(|_| ()).is_err());
    assert_eq!(names(&other), ["letter.txt"]);
    assert_eq!(names(directory.path()), ["gallery", "other"]);
}

#[test]
fn other_encoders_are_rejected_with_both_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gallery");
    let gallery = build(&path, &clustered(14, 20, 16));
    let other = EncoderIdentity {
        name: "other-encoder".to_owned(),
        digest: "sha256:4567".to_owned(),
        ..encoder(16)
    };
    for error in [
        GalleryWriter::append(&path, &other).unwrap_err(),
        gallery.check_encoder(&other).unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains("test-encoder (sha256:0123"), "{text}");
        assert!(text.contains("other-encoder (sha256:4567"), "{text}");
    }
    let renamed = EncoderIdentity { name: "alias".to_owned(), ..encoder(16) };
    assert!(gallery.check_encoder(&renamed).is_ok());
}

#[test]
fn galleries_without_rows_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gallery");
    let writer = GalleryWriter::create(&path, &encoder(16)).unwrap();
    let error = writer.finish(|_| ()).unwrap_err();
    assert!(matches!(error, GalleryError::Empty { .. }), "{error}");
    assert!(names(directory.path()).is_empty());
}

#[test]
fn rows_of_no_use_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = GalleryWriter::create(&directory.path().join("gallery"), &encoder(2)).unwrap();
    let place = locdiff_sphere::LatLon::NORTH_POLE;
    writer.push(&[1.0, 2.0], place, "a.jpg").unwrap();
    let error = writer.push(&[0.0, 0.0], place, "b.jpg").unwrap_err().to_string();
    assert_eq!(error, "the embedding of row 1 (b.jpg) is zero everywhere and has no direction");
}

/// A process that was killed leaves what it had written so far.
#[test]
fn unfinished_builds_and_appends_leave_the_old_gallery() {
    let directory = tempfile::tempdir().unwrap();
    let rows = clustered(15, 200, 16);
    let path = directory.path().join("gallery");
    let mut writer = GalleryWriter::create(&path, &encoder(16)).unwrap();
    push(&mut writer, &rows[..50]);
    assert!(matches!(
        GalleryWriter::create(&path, &encoder(16)).unwrap_err(),
        GalleryError::Busy { .. }
    ));
    assert!(Gallery::open(&path).is_err());
    drop(writer);
    // As a killed process leaves it: a directory without a lock.
    let leftover = directory.path().join(".gallery.unfinished");
    fs::create_dir_all(leftover.join(".unfinished")).unwrap();
    fs::write(leftover.join(".unfinished/halves.f16"), "half a row").unwrap();
    let gallery = build(&path, &rows[..100]);
    assert_eq!(names(directory.path()), ["gallery"]);

    let query = &rows[0].0;
    let before = best(&gallery, query);
    let mut writer = GalleryWriter::append(&path, &encoder(16)).unwrap();
    push(&mut writer, &rows[100..150]);
    assert!(matches!(
        GalleryWriter::append(&path, &encoder(16)).unwrap_err(),
        GalleryError::Busy { .. }
    ));
    assert_eq!(best(&Gallery::open(&path).unwrap(), query), before);
    drop(writer);
    // Killed between the renaming of a segment and the replacement of gallery.json.
    fs::create_dir(path.join(".unfinished")).unwrap();
    fs::create_dir(path.join("segment-000002")).unwrap();
    fs::write(path.join("segment-000002/keys.u64"), "").unwrap();
    fs::write(path.join("gallery.json.new"), "{").unwrap();
    fs::write(path.join("notes.txt"), "of the user").unwrap();
    assert_eq!(best(&Gallery::open(&path).unwrap(), query), before);
    let gallery = append(&path, &rows[100..]);
    assert_eq!(gallery.len(), 200);
    assert_eq!(
        names(&path),
        ["gallery.json", "lock", "notes.txt", "segment-000001", "segment-000002"]
    );
}

/// Opening reads no row, so damage inside of files is found when a row is read.
#[test]
fn damaged_rows_are_errors_of_whatever_reads_them() {
    let directory = tempfile::tempdir().unwrap();
    let rows = clustered(17, 50, 16);
    let circle = Area::circle(LatLon::NORTH_POLE, 19_000.0).unwrap();
    for (name, expected) in [
        ("places.f64", "places.f64 is damaged: row"),
        ("id_ends.u64", "has no id"),
        ("halves.f16", "is not an embedding"),
    ] {
        let path = directory.path().join(name);
        build(&path, &rows);
        let file = path.join("segment-000001").join(name);
        fs::write(&file, vec![0xff; fs::metadata(&file).unwrap().len() as usize]).unwrap();
        let gallery = Gallery::open(&path).unwrap();
        let query = &rows[3].0;
        let found = gallery.search(query, 5);
        let within = gallery.search_within(query, std::slice::from_ref(&circle), 5);
        for error in [found.unwrap_err(), within.unwrap_err()] {
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert_eq!(gallery.info().is_err(), name == "places.f64");
    }
}

/// Whoever opens a pipe waits until somebody writes.
#[cfg(unix)]
#[test]
fn pipes_are_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gallery");
    build(&path, &clustered(18, 50, 16));
    for name in ["gallery.json", "segment-000001/places.f64"] {
        let file = path.join(name);
        let whole = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        let error = Gallery::open(&path).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("pipe"), "{error}");
        fs::remove_file(&file).unwrap();
        fs::write(&file, whole).unwrap();
    }
    assert!(Gallery::open(&path).is_ok());
}

#[test]
fn damage_is_found_when_a_gallery_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gallery");
    build(&path, &clustered(16, 50, 16));
    let segment = path.join("segment-000001");
    for name in names(&segment) {
        let file = segment.join(&name);
        let whole = fs::read(&file).unwrap();
        let options = OpenOptions::new().write(true).open(&file).unwrap();
        options.set_len(whole.len() as u64 - 3).unwrap();
        let error = Gallery::open(&path).unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains("gallery.json implies"), "{error}");
        fs::remove_file(&file).unwrap();
        let error = Gallery::open(&path).unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains("cannot open"), "{error}");
        fs::write(&file, whole).unwrap();
    }
    let manifest = path.join("gallery.json");
    let text = fs::read_to_string(&manifest).unwrap();
    for (from, to, expected) in [
        (
            "\"version\": 1",
            "\"version\": 7",
            "version 7, this program reads locdiff-gallery version 1",
        ),
        ("locdiff-gallery", "locdiff-model", "of format \"locdiff-model\" version 1"),
        ("segment-000001", "../elsewhere", "is not in the directory"),
        ("\"rows\": 50", "\"rows\": 0", "it has 0 rows"),
        ("\"rows\": 50", "\"rows\": 51", "gallery.json implies"),
        ("\"dimension\": 16", "\"dimension\": 32", "gallery.json implies"),
        ("\"dimension\": 16", "\"dimension\": 9223372036854775807", "from 1 to 1048576"),
        ("{", "[", "is damaged"),
    ] {
        fs::write(&manifest, text.replacen(from, to, 1)).unwrap();
        let error = Gallery::open(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let missing = Gallery::open(&directory.path().join("missing")).unwrap_err().to_string();
    assert!(missing.contains("cannot read") && missing.contains("missing"), "{missing}");
}
