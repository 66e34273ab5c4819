//! Stopped, killed, cut off at any byte: in the end the directory is the same, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use locdiff::encoders::{Embedder, EncoderRecord};
use locdiff::photo::Preprocessing;
use locdiff_train::{EmbedError, EmbedEvent, EmbedOptions, Share, embed};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tempfile::tempdir;

use crate::rows::files_in;
use crate::studio::{Means, jpeg_at, options, png, run, write, write_folder, write_tar};

/// Good and bad pictures with and without places, in no regular order.
fn write_inputs(root: &Path) -> [PathBuf; 3] {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut manifest = String::from("path,latitude,longitude\n");
    let mut members = Vec::new();
    for number in 0..73 {
        let (name, bytes) = match rng.random_range(0..5) {
            0 => (format!("{number:03}.txt"), b"no picture".to_vec()),
            1 => (format!("{number:03}.jpg"), jpeg_at(number, 12.0, f64::from(number))),
            2 => (format!("{number:03}.png"), png(number)[..60].to_vec()),
            _ => (format!("{number:03}.png"), png(number)),
        };
        let place = if rng.random_bool(0.7) { "50.5,8.25" } else { "," };
        manifest += &format!("in/{name},{place}\n");
        write(&root.join("in").join(&name), &bytes);
        members.push((name, bytes));
    }
    write(&root.join("list.csv"), manifest);
    let halves = members.split_at(31);
    for (name, half) in [("tars/0.tar", halves.0), ("tars/1.tar", halves.1)] {
        let half: Vec<_> =
            half.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
        write_tar(&root.join(name), &half);
    }
    [root.join("in"), root.join("list.csv"), root.join("tars")]
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    for (name, bytes) in files_in(from) {
        write(&to.join(name), bytes);
    }
}

#[test]
fn stopped_after_every_batch_it_ends_the_same() {
    let scratch = tempdir().unwrap();
    let shares = [Share::ALL, Share::new(2, 3).unwrap()];
    for (case, input) in
        write_inputs(scratch.path()).iter().flat_map(|input| [(0, input), (1, input)])
    {
        let name = format!("{}-{case}", input.file_name().unwrap().display());
        let [whole, parts] =
            ["whole", "parts"].map(|kind| scratch.path().join(name.clone() + kind));
        let options_of = |out: &Path| EmbedOptions { share: shares[case], ..options(out) };
        let (expected, all_skipped) = run(input, &options_of(&whole));
        let mut skipped = Vec::new();
        let mut calls = 0;
        let summary = loop {
            calls += 1;
            let options = options_of(&parts);
            let stop = options.stop.clone();
            let summary = embed(input, &Means::new("means"), &options, &mut |event| match event {
                EmbedEvent::Advanced { .. } => stop.store(true, Ordering::Relaxed),
                EmbedEvent::Skipped(image) => skipped.push(image.clone()),
                _ => {}
            });
            let summary = summary.unwrap();
            if summary.finished {
                break summary;
            }
        };
        assert!(calls > [8, 3][case], "{calls}");
        assert_eq!((summary.rows, summary.skipped), (expected.rows, expected.skipped));
        assert_eq!(skipped, all_skipped);
        assert_eq!(files_in(&whole), files_in(&parts));
        assert!(files_in(&parts).keys().all(|name| !name.contains("/.") && !name.starts_with('.')));
    }
}

/// A batch that isn't full yet is left, or those after it would be others.
#[test]
fn stopped_within_a_batch_it_ends_the_same() {
    let scratch = tempdir().unwrap();
    let [whole, parts] = ["whole", "parts"].map(|name| scratch.path().join(name));
    let folder = scratch.path().join("in");
    write_folder(&folder, 20);
    // Takes a while to decode; meanwhile, the two before it wait for their batch to be full.
    let large = image::RgbImage::from_fn(3000, 3000, |x, y| image::Rgb([x as u8, y as u8, 3]));
    large.save(folder.join("002.png")).unwrap();
    run(&folder, &options(&whole));
    let first = EmbedOptions { decode_threads: 1, ..options(&parts) };
    let stop = first.stop.clone();
    let mut stopper = None;
    embed(&folder, &Means::new("means"), &first, &mut |event| {
        if let EmbedEvent::Begun { .. } = event {
            let stop = stop.clone();
            stopper = Some(std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                stop.store(true, Ordering::Relaxed);
            }));
        }
    })
    .unwrap();
    stopper.unwrap().join().unwrap();
    run(&folder, &options(&parts));
    assert_eq!(files_in(&parts), files_in(&whole));
}

/// What is on the disk at each event is what a kill would leave there.
#[test]
fn killed_at_any_event_it_ends_the_same() {
    let scratch = tempdir().unwrap();
    let [_, input, _] = write_inputs(scratch.path());
    let [whole, killed] = ["whole", "killed"].map(|name| scratch.path().join(name));
    let mut snapshots = 0;
    embed(&input, &Means::new("means"), &options(&whole), &mut |_| {
        copy(&whole, &scratch.path().join(format!("snapshot-{snapshots}")));
        snapshots += 1;
    })
    .unwrap();
    assert!(snapshots > 20, "{snapshots}");
    let expected = files_in(&whole);
    for snapshot in 0..snapshots {
        copy(&scratch.path().join(format!("snapshot-{snapshot}")), &killed);
        run(&input, &options(&killed));
        assert!(files_in(&killed) == expected, "snapshot {snapshot}");
    }
}

/// A power failure leaves any part of what was not yet on the disk, or zeros, or something else.
#[test]
fn a_torn_journal_is_cut_and_gone_on_with() {
    let scratch = tempdir().unwrap();
    let [input, ..] = write_inputs(scratch.path());
    let [whole, half, torn] = ["whole", "half", "torn"].map(|name| scratch.path().join(name));
    let options_of = |out: &Path| EmbedOptions { rows_per_shard: Some(25), ..options(out) };
    run(&input, &options_of(&whole));
    let first = options_of(&half);
    let stop = first.stop.clone();
    embed(&input, &Means::new("means"), &first, &mut |event| {
        if let EmbedEvent::Advanced { rows, .. } = event {
            stop.store(rows >= 41, Ordering::Relaxed);
        }
    })
    .unwrap();
    let journal = fs::read(half.join(".embed.journal")).unwrap();
    let expected = files_in(&whole);
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for round in 0..60 {
        copy(&half, &torn);
        let mut bytes = journal.clone();
        let at = rng.random_range(0..bytes.len());
        match round % 4 {
            0 => bytes.truncate(at),
            1 => bytes[at..].fill(0),
            2 => bytes[at] ^= 1 << rng.random_range(0..8),
            _ => bytes.extend((0..at).map(|_| rng.random::<u8>())),
        }
        fs::write(torn.join(".embed.journal"), bytes).unwrap();
        // The list of skipped images may lag behind or be ahead.
        let list = torn.join("skipped.csv");
        let text = fs::read(&list).unwrap();
        let record: serde_json::Value =
            serde_json::from_slice(&fs::read(torn.join("embed.json")).unwrap()).unwrap();
        let committed = record["progress"]["skipped_csv_bytes"].as_u64().unwrap() as usize;
        fs::write(&list, &text[..rng.random_range(committed..=text.len())]).unwrap();
        let (summary, _) = run(&input, &options_of(&torn));
        assert!(summary.resumed_rows >= 25 && summary.finished, "{summary:?}");
        assert!(files_in(&torn) == expected, "round {round}, byte {at}");
    }
}

/// No room, or something else in the way of a shard: an error, and later it goes on.
#[test]
fn a_shard_that_cannot_be_written_costs_nothing() {
    let scratch = tempdir().unwrap();
    let [_, input, _] = write_inputs(scratch.path());
    let [whole, out] = ["whole", "out"].map(|name| scratch.path().join(name));
    run(&input, &options(&whole));
    let obstacle = out.join("shard-00001.parquet/in the way");
    let mut is_there = false;
    let error = embed(&input, &Means::new("means"), &options(&out), &mut |_| {
        if !std::mem::replace(&mut is_there, true) {
            write(&obstacle, "");
        }
    });
    let error = error.unwrap_err();
    assert!(matches!(error, EmbedError::Shard(_)), "{error}");
    assert!(error.to_string().contains("shard-00001.parquet"), "{error}");
    fs::remove_dir_all(out.join("shard-00001.parquet")).unwrap();
    let (summary, _) = run(&input, &options(&out));
    assert_eq!(summary.resumed_rows, 20);
    assert_eq!(files_in(&out), files_in(&whole));
}

/// Takes its time, so that there is one to be killed in.
struct Slow(Means);

impl Embedder for Slow {
    fn record(&self) -> &EncoderRecord {
        self.0.record()
    }

    fn width(&self) -> usize {
        self.0.width()
    }

    fn preprocessing(&self) -> &Preprocessing {
        self.0.preprocessing()
    }

    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
        std::thread::sleep(Duration::from_millis(8));
        self.0.embed_pixels(pixels)
    }
}

/// Not a test of its own: the process that the next one kills.
#[test]
fn victim() {
    if let [Some(input), Some(out)] = ["VICTIM_INPUT", "VICTIM_OUT"].map(std::env::var_os) {
        let options = options(Path::new(&out));
        embed(Path::new(&input), &Slow(Means::new("means")), &options, &mut |_| ()).unwrap();
    }
}

#[test]
fn killed_for_real_it_ends_the_same() {
    let scratch = tempdir().unwrap();
    let inputs = write_inputs(scratch.path());
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for input in &inputs[1..] {
        let name = input.file_name().unwrap().to_string_lossy().into_owned();
        let [whole, out] = ["whole", "out"].map(|kind| scratch.path().join(name.clone() + kind));
        run(input, &options(&whole));
        let mut kills = 0;
        for _ in 0..12 {
            let mut victim = Command::new(std::env::current_exe().unwrap())
                .args(["interruptions::victim", "--exact"])
                .env("VICTIM_INPUT", input)
                .env("VICTIM_OUT", &out)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(rng.random_range(5..90)));
            let is_alive = victim.try_wait().unwrap().is_none();
            victim.kill().unwrap();
            victim.wait().unwrap();
            // Not before it began, nor after it was done.
            kills += u32::from(is_alive && out.join(".embed.journal").exists());
        }
        assert!(kills > 0);
        run(input, &options(&out));
        assert_eq!(files_in(&out), files_in(&whole));
    }
}
