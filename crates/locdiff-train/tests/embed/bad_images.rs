//! Pictures that are broken, hostile, or gone.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use image::ImageFormat;
use locdiff::encoders::{Embedder, EncoderRecord};
use locdiff::photo::{Preprocessing, ReadOptions};
use locdiff_train::{EmbedError, EmbedEvent, EmbedOptions, embed};
use tempfile::tempdir;

use crate::rows::{ids, skipped_lines, unplaced_rows_in};
use crate::studio::{Means, WIDTH, encoded, options, png, run, write, write_folder};

#[test]
fn each_bad_file_is_named_once_with_its_kind() {
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    write_folder(&folder, 12);
    let jpeg = encoded(1, ImageFormat::Jpeg);
    write(&folder.join("empty.jpg"), "");
    write(&folder.join("cut.jpg"), &jpeg[..jpeg.len() / 2]);
    write(&folder.join("page.html"), "<html>");
    write(&folder.join("paper.pdf"), "%PDF-1.7");
    write(&folder.join("long.png"), vec![0; 5000]);
    // A PNG that claims to be 60000×60000.
    let mut bomb = png(1);
    bomb[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
    let checksum = crc32fast::hash(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&checksum.to_be_bytes());
    write(&folder.join("bomb.png"), bomb);
    let read = ReadOptions { max_bytes: 4000, ..Default::default() };
    let (summary, skipped) = run(&folder, &EmbedOptions { read, ..options(&out) });
    let found: Vec<_> = skipped.iter().map(|s| (s.path.as_str(), s.kind.as_str())).collect();
    assert_eq!(
        found,
        [
            ("bomb.png", "too-large"),
            ("cut.jpg", "damaged"),
            ("empty.jpg", "not-an-image"),
            ("long.png", "too-large"),
            ("page.html", "not-an-image"),
            ("paper.pdf", "unsupported"),
        ]
    );
    assert_eq!(
        (summary.rows, summary.skipped["too-large"], summary.skipped["damaged"]),
        (12, 2, 1)
    );
    let lines = skipped_lines(&out);
    assert_eq!(lines.len(), 6);
    assert!(lines[3].starts_with("long.png,long.png,too-large,"), "{lines:?}");
    assert!(lines[3].contains("5000 bytes, the limit is 4000"), "{lines:?}");
}

#[test]
fn a_file_that_disappears_is_a_bad_file() {
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    write_folder(&folder, 60);
    // The window is smaller than the folder, so that the last file isn't read yet.
    let mut skipped = Vec::new();
    let options = EmbedOptions { decode_threads: 1, ..options(&out) };
    let summary = embed(&folder, &Means::new("means"), &options, &mut |event| match event {
        EmbedEvent::Begun { .. } => fs::remove_file(folder.join("059.png")).unwrap(),
        EmbedEvent::Skipped(image) => skipped.push(image.clone()),
        _ => {}
    });
    assert_eq!(summary.unwrap().rows, 59);
    assert_eq!((skipped.len(), skipped[0].path.as_str()), (1, "059.png"));
    assert_eq!(skipped[0].kind, "unreadable");
}

/// An encoder with a fault.
struct Faulty {
    sound: Means,
    fault: Fault,
    calls: AtomicUsize,
}

#[derive(PartialEq)]
enum Fault {
    NotFinite,
    TooFew,
    Panic,
}

impl Faulty {
    fn new(fault: Fault) -> Faulty {
        Faulty { sound: Means::new("means"), fault, calls: AtomicUsize::new(0) }
    }
}

impl Embedder for Faulty {
    fn record(&self) -> &EncoderRecord {
        self.sound.record()
    }

    fn width(&self) -> usize {
        WIDTH
    }

    fn preprocessing(&self) -> &Preprocessing {
        self.sound.preprocessing()
    }

    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
        let mut numbers = self.sound.embed_pixels(pixels);
        if self.calls.fetch_add(1, Ordering::Relaxed) == 3 {
            match self.fault {
                // More than half precision has.
                Fault::NotFinite => numbers[WIDTH + 2] = 1e6,
                Fault::TooFew => drop(numbers.pop()),
                Fault::Panic => panic!("the encoder fell over"),
            }
        }
        numbers
    }
}

#[test]
fn numbers_that_cannot_be_stored_skip_the_image() {
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    write_folder(&folder, 31);
    let faulty = Faulty::new(Fault::NotFinite);
    let summary = embed(&folder, &faulty, &options(&out), &mut |_| ()).unwrap();
    assert_eq!((summary.rows, summary.skipped["not-finite"]), (30, 1));
    assert!(skipped_lines(&out)[0].contains("number 2 of its embedding is 1000000"));
    assert_eq!(unplaced_rows_in(&out).len(), 30);
}

#[test]
fn a_faulty_encoder_costs_nothing_that_was_done() {
    for fault in [Fault::TooFew, Fault::Panic] {
        let scratch = tempdir().unwrap();
        let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
        write_folder(&folder, 31);
        let panics = fault == Fault::Panic;
        let faulty = Faulty::new(fault);
        let attempt = || embed(&folder, &faulty, &options(&out), &mut |_| ());
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
        match result {
            Err(_) => assert!(panics),
            Ok(result) => {
                let error = result.unwrap_err();
                assert!(matches!(error, EmbedError::Encoder { found: 19, .. }), "{error}");
            }
        }
        let (summary, _) = run(&folder, &options(&out));
        assert_eq!((summary.rows, summary.resumed_rows), (31, 10));
        let rows = unplaced_rows_in(&out);
        assert_eq!((rows.len(), ids(&rows)[0]), (31, "001.png"));
    }
}

/// A preprocessing that no picture survives stands for a decoder that panics.
#[test]
fn a_panic_while_preparing_is_a_bad_file() {
    struct Impossible(Preprocessing, EncoderRecord);
    impl Embedder for Impossible {
        fn record(&self) -> &EncoderRecord {
            &self.1
        }
        fn width(&self) -> usize {
            WIDTH
        }
        fn preprocessing(&self) -> &Preprocessing {
            &self.0
        }
        fn embed_pixels(&self, _: Vec<f32>) -> Vec<f32> {
            unreachable!("nothing gets here")
        }
    }
    let scratch = tempdir().unwrap();
    write_folder(&scratch.path().join("in"), 3);
    let preprocessing = Preprocessing { shortest_side: 0, ..Preprocessing::CLIP };
    let impossible = Impossible(preprocessing, EncoderRecord::of_identity("impossible"));
    let options = options(&scratch.path().join("out"));
    let summary = embed(&scratch.path().join("in"), &impossible, &options, &mut |_| ()).unwrap();
    assert_eq!((summary.rows, summary.skipped["panic"], summary.finished), (0, 3, true));
}
