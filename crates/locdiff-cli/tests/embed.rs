//! `locdiff embed`, as a person runs it.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn embed(arguments: &[&str]) -> Output {
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../parity/vision/clip-quick-gelu");
    Command::new(env!("CARGO_BIN_EXE_locdiff"))
        .arg("embed")
        .args(arguments)
        .arg("--encoder")
        .arg(encoder)
        .output()
        .unwrap()
}

/// A BMP of one colour: a format that needs no encoder.
fn bmp(red: u8) -> Vec<u8> {
    let (width, height) = (40_u32, 30_u32);
    let mut bytes = b"BM".to_vec();
    bytes.extend((54 + 3 * width * height).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(54_u32.to_le_bytes());
    bytes.extend(40_u32.to_le_bytes());
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    bytes.extend([10, 20, red].repeat((width * height) as usize));
    bytes
}

#[test]
fn a_folder_becomes_rows_and_everything_is_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let photos = folder.path().join("photos");
    fs::create_dir(&photos).unwrap();
    for red in [0, 100, 200] {
        fs::write(photos.join(format!("{red}.bmp")), bmp(red)).unwrap();
    }
    fs::write(photos.join("notes.txt"), "not a picture").unwrap();
    let out = folder.path().join("embeddings");
    let (photos, out) = (photos.to_str().unwrap(), out.to_str().unwrap());

    let first = embed(&[photos, "--out", out, "--json"]);
    let stderr = String::from_utf8_lossy(&first.stderr);
    assert!(first.status.success(), "{stderr}");
    let summary: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!((&summary["rows"], &summary["finished"]), (&3.into(), &true.into()), "{summary}");
    assert_eq!(summary["skipped"]["not-an-image"], 1, "{summary}");
    assert!(stderr.contains("notes.txt"), "{stderr}");

    // Once more: nothing is left to do.
    let second = embed(&[photos, "--out", out, "--json"]);
    let summary: serde_json::Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!((&summary["rows"], &summary["resumed_rows"]), (&3.into(), &3.into()), "{summary}");

    // Other settings, a folder that is its own output, and one that isn't there.
    for (arguments, message) in [
        (vec![photos, "--out", out, "--views", "flip"], "views"),
        (vec![photos, "--out", photos], "it is the output directory"),
        (vec!["no/such/folder", "--out", out], "no/such/folder"),
    ] {
        let failed = embed(&arguments);
        let stderr = String::from_utf8_lossy(&failed.stderr);
        assert_eq!(failed.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
        assert!(failed.stdout.is_empty());
    }
    assert_eq!(embed(&[photos]).status.code(), Some(2), "--out is missing");
}

#[test]
fn an_encoder_that_is_not_here_says_how_to_get_it() {
    let failed = Command::new(env!("CARGO_BIN_EXE_locdiff"))
        .args(["embed", ".", "--out", "unused", "--encoder", "dinov2-b-14"])
        .env("HF_HOME", tempfile::tempdir().unwrap().path())
        .env_remove("HF_HUB_CACHE")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("locdiff model fetch dinov2-b-14"), "{stderr}");
}
