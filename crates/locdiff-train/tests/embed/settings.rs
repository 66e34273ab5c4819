//! Directories remember with what they were begun.

use std::fs;
use std::sync::atomic::Ordering;

use locdiff::photo::{Crops, ReadOptions};
use locdiff_train::{EmbedError, EmbedEvent, EmbedOptions, Share, embed};
use tempfile::tempdir;

use crate::rows::{files_in, unplaced_rows_in};
use crate::studio::{Means, options, png, run, write, write_folder};

#[test]
fn other_settings_are_refused_with_both_values() {
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    write_folder(&folder, 25);
    let first = options(&out);
    let stop = first.stop.clone();
    let summary = embed(&folder, &Means::new("means"), &first, &mut |event| {
        if let EmbedEvent::Advanced { .. } = event {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert!(!summary.unwrap().finished);
    let before = files_in(&out);
    let refuse = |encoder: &str, options: &EmbedOptions, expected: &str| {
        let error = embed(&folder, &Means::new(encoder), options, &mut |_| ()).unwrap_err();
        assert!(matches!(error, EmbedError::OtherSettings { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(files_in(&out), before);
    };
    refuse("other", &options(&out), r#"encoder was "means", is now "other""#);
    let with = EmbedOptions { views: Crops::Flip, ..options(&out) };
    refuse("means", &with, r#"views was "single", is now "flip""#);
    let with = EmbedOptions { rows_per_shard: Some(11), ..options(&out) };
    refuse("means", &with, "rows_per_shard was 10, is now 11");
    let read = ReadOptions { fast_decode: Some(224), ..Default::default() };
    let with = EmbedOptions { read, ..options(&out) };
    refuse("means", &with, "fast_decode was null, is now 224");
    // A share of the same images into the same directory would double the rows.
    let with = EmbedOptions { share: Share::new(1, 2).unwrap(), ..options(&out) };
    refuse("means", &with, "shares was 1, is now 2");
    write(&folder.join("one-more.png"), png(99));
    refuse("means", &options(&out), r#""count":25"#);
    fs::remove_file(folder.join("one-more.png")).unwrap();
    // The batch and the threads may change, and the input may have moved.
    let moved = scratch.path().join("moved");
    fs::rename(&folder, &moved).unwrap();
    let with = EmbedOptions { batch: 7, decode_threads: 1, ..options(&out) };
    let (summary, _) = run(&moved, &with);
    assert_eq!((summary.rows, summary.resumed_rows), (25, 4));
}

#[test]
fn shards_of_others_are_left_alone() {
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    write_folder(&folder, 3);
    write(&out.join("shard-00000.parquet"), "somebody's");
    let error = embed(&folder, &Means::new("means"), &options(&out), &mut |_| ()).unwrap_err();
    assert!(matches!(error, EmbedError::NotOurs(_)), "{error}");
    assert_eq!(files_in(&out).len(), 1);
}

#[test]
fn two_at_once_are_refused() {
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    write_folder(&folder, 3);
    let means = Means::new("means");
    let mut errors = Vec::new();
    embed(&folder, &means, &options(&out), &mut |event| {
        if let EmbedEvent::Begun { .. } = event {
            errors.push(embed(&folder, &means, &options(&out), &mut |_| ()).unwrap_err());
        }
    })
    .unwrap();
    assert!(matches!(errors[0], EmbedError::Busy(_)), "{}", errors[0]);
    assert_eq!(unplaced_rows_in(&out).len(), 3);
}

#[test]
fn a_damaged_record_is_named() {
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    write_folder(&folder, 3);
    run(&folder, &options(&out));
    let error_of =
        || embed(&folder, &Means::new("means"), &options(&out), &mut |_| ()).unwrap_err();
    let record = fs::read_to_string(out.join("embed.json")).unwrap();
    fs::write(out.join("embed.json"), &record[..record.len() / 2]).unwrap();
    assert!(error_of().to_string().contains("embed.json is damaged"), "{}", error_of());
    fs::write(out.join("embed.json"), record.replace("\"version\": 1", "\"version\": 9")).unwrap();
    assert!(error_of().to_string().contains("version 9, this program writes"), "{}", error_of());
    fs::write(out.join("embed.json"), &record).unwrap();
    fs::write(out.join("skipped.csv"), "id").unwrap();
    assert!(error_of().to_string().contains("it has 2 bytes, embed.json has 21"), "{}", error_of());
}
