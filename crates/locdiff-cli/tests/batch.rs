//! `locdiff batch` as people call it.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

use std::fs;
use std::path::Path;

use serde_json::Value;
use snapbox::cmd::Command;

fn locdiff() -> Command {
    Command::new(snapbox::cmd::cargo_bin!("locdiff")).env("LOCDIFF_HOME", "/nonexistent")
}

fn picture(number: u8) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = image::RgbImage::from_pixel(9, 7, image::Rgb([number, 2, 3]));
    picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn folder(at: &Path, count: u8) {
    fs::create_dir(at).unwrap();
    for number in 0..count {
        fs::write(at.join(format!("{number:02}.png")), picture(number)).unwrap();
    }
    fs::write(at.join("readme.txt"), "no picture").unwrap();
}

#[test]
fn plan_run_status_finish() {
    let directory = tempfile::tempdir().unwrap();
    folder(&directory.path().join("lake"), 10);
    let batch =
        |arguments: &[&str]| locdiff().current_dir(directory.path()).arg("batch").args(arguments);
    let plan =
        ["plan", "lake", "--out", "job", "--task", "check", "--rows-per-unit", "3", "--json"];
    let planned = batch(&plan).assert().success();
    let job: Value = serde_json::from_slice(&planned.get_output().stdout).unwrap();
    assert_eq!((&job["units"], &job["rows"]), (&4.into(), &11.into()));
    batch(&plan).assert().success().stderr_eq("planned already: check, 4 units, 11 rows\n");
    batch(&["plan", "lake", "--out", "job", "--task", "check"])
        .assert()
        .code(1)
        .stderr_eq("...\n  rows_per_unit was 3, is now 4096\n...\n");
    batch(&["finish", "job"])
        .assert()
        .code(1)
        .stderr_eq("locdiff: the job is not finished: 4 of 4 units are open\n");
    batch(&["run-unit", "job", "1", "--threads", "1"]).assert().success();
    batch(&["run-unit", "job", "1"]).assert().success().stderr_eq("unit 1 is done already\n");
    batch(&["run-unit", "job", "4"])
        .assert()
        .code(1)
        .stderr_eq("locdiff: there is no unit 4: the job has 4, numbered from 0\n");
    // A range may end after the last unit.
    batch(&["run-unit", "job", "3-99"]).assert().success();
    batch(&["status", "job"]).assert().success().stdout_eq("2 of 4 units are done, 2 are open\n");
    batch(&["run", "job"]).assert().success().stderr_eq("2 units: 6 rows, 0 with an error\n");
    batch(&["run", "job"]).assert().success().stderr_eq("all units are done already\n");
    batch(&["finish", "job"])
        .assert()
        .success()
        .stdout_eq("finished: 4 units, 11 rows, 1 with an error\n");
    let status = batch(&["status", "job", "--json"]).assert().success();
    let status: Value = serde_json::from_slice(&status.get_output().stdout).unwrap();
    assert_eq!(
        status,
        serde_json::json!({"units": 4, "done": 4, "open": 0, "rows": 11, "finished": true})
    );
}

#[test]
fn mistakes_are_named() {
    let directory = tempfile::tempdir().unwrap();
    folder(&directory.path().join("lake"), 1);
    let batch =
        |arguments: &[&str]| locdiff().current_dir(directory.path()).arg("batch").args(arguments);
    batch(&["run", "nowhere"]).assert().code(1);
    batch(&["run", "lake", "--engine", "ray"])
        .assert()
        .code(2)
        .stderr_eq("[..]pip install 'locdiff[ray]'[..]\n");
    batch(&["plan", "lake", "--out", "job", "--task", "embed"]).assert().code(2);
    batch(&["plan", "lake", "--out", "job", "--task", "check", "--model", "x"]).assert().code(2);
    batch(&["plan", "lake", "--out", "job", "--model", "none"]).assert().code(2);
    batch(&["plan", "lake", "--out", "job", "--task", "check", "--cells", "h3:99"])
        .assert()
        .code(2);
    batch(&["plan", "lake", "--out", "job", "--sampler", "ddpm"]).assert().code(2);
    batch(&["plan", "missing", "--out", "job", "--task", "check"])
        .assert()
        .code(1)
        .stderr_eq("[..]missing: it does not exist\n");
}
