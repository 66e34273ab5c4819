//! Folders, manifests and tars; shares and views.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use image::ImageFormat;
use locdiff::photo::Crops;
use locdiff_train::{
    Dataset, EmbedError, EmbedEvent, EmbedOptions, OnBadShard, Share, StreamOptions, embed,
};
use parquet::arrow::ArrowWriter;
use tempfile::tempdir;

use crate::rows::{files_in, ids, rows_in, skipped_lines, unplaced_rows_in};
use crate::studio::{
    Means, WIDTH, encoded, jpeg_at, options, picture, png, run, write, write_folder, write_tar,
};

#[test]
fn a_folder_is_walked_in_the_order_of_its_paths() {
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    write(&folder.join("b.png"), png(1));
    write(&folder.join("a/z.jpg"), encoded(2, ImageFormat::Jpeg));
    write(&folder.join("a.webp"), encoded(3, ImageFormat::WebP));
    // A name that lies, one without an end, and ends that are written large.
    write(&folder.join("a/y.png"), encoded(4, ImageFormat::Bmp));
    write(&folder.join("nameless"), encoded(5, ImageFormat::Gif));
    write(&folder.join("C.TIFF"), encoded(6, ImageFormat::Tiff));
    write(&folder.join("ünï cødé, \"quoted\".png"), png(7));
    write(&folder.join("notes.txt"), "nothing to see");
    write(&folder.join(".hidden.png"), png(8));
    write(&folder.join(".thumbnails/x.png"), png(9));
    let (summary, skipped) = run(&folder, &options(&out));
    let rows = unplaced_rows_in(&out);
    let expected =
        ["C.TIFF", "a.webp", "a/y.png", "a/z.jpg", "b.png", "nameless", "ünï cødé, \"quoted\".png"];
    assert_eq!(ids(&rows), expected);
    assert_eq!((summary.rows, summary.without_place, summary.finished), (7, 7, true));
    assert_eq!(skipped.len(), 1);
    assert_eq!((skipped[0].path.as_str(), skipped[0].kind.as_str()), ("notes.txt", "not-an-image"));
    assert_eq!(summary.skipped, BTreeMap::from([("not-an-image".to_owned(), 1)]));
    // Green of the picture is its number.
    for (row, number) in rows.iter().zip([6, 3, 4, 2, 1, 5, 7]) {
        let green = f32::from(picture(number).get_pixel(0, 0)[1]) / 255.0;
        assert!((row.embedding[1] - green).abs() < 0.012, "{row:?} {green}");
    }
    assert!(rows_in(&out).is_empty());
}

#[cfg(unix)]
#[test]
fn links_are_followed_but_not_in_circles() {
    use std::os::unix::fs::symlink;
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    write(&folder.join("a/1.png"), png(1));
    write(&scratch.path().join("elsewhere/2.png"), png(2));
    symlink(scratch.path().join("elsewhere"), folder.join("link")).unwrap();
    symlink(&folder, folder.join("a/loop")).unwrap();
    symlink("nowhere", folder.join("broken.png")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(folder.join("pipe.jpg")).status();
    assert!(pipe.unwrap().success());
    let (_, skipped) = run(&folder, &options(&out));
    assert_eq!(ids(&unplaced_rows_in(&out)), ["a/1.png", "link/2.png"]);
    let skipped: Vec<_> = skipped.iter().map(|s| (s.path.as_str(), s.kind.as_str())).collect();
    let unreadable = "unreadable";
    assert_eq!(
        skipped,
        [("a/loop", unreadable), ("broken.png", unreadable), ("pipe.jpg", unreadable)]
    );
}

#[test]
fn output_within_the_input_is_not_input() {
    let scratch = tempdir().unwrap();
    write_folder(scratch.path(), 12);
    let out = scratch.path().join("embeddings");
    let (summary, skipped) = run(scratch.path(), &options(&out));
    assert_eq!((summary.rows, skipped.len()), (12, 0));
    let (again, _) = run(scratch.path(), &options(&out));
    assert_eq!((again.rows, again.resumed_rows), (12, 12));
}

#[test]
fn manifests_in_csv_and_parquet_are_the_same() {
    let scratch = tempdir().unwrap();
    let root = scratch.path();
    write_folder(&root.join("pictures"), 6);
    let absolute = root.join("pictures/002.png");
    let csv = format!(
        "\u{feff}ID, path,note,Latitude,longitude\r\n\
         x1,pictures/001.png,\"a, quoted \"\"note\"\"\",48.5,2.25\r\n\
         ,{},,-90,17\r\n\
         x1,pictures/003.png,the same id,12,180\r\n\
         x4,pictures/004.png,,,\r\n\
         x5,pictures/gone.png,,1,2\r\n",
        absolute.display()
    );
    write(&root.join("list.csv"), csv);
    let paths = [
        Some("pictures/001.png"),
        absolute.to_str(),
        Some("pictures/003.png"),
        Some("pictures/004.png"),
        Some("pictures/gone.png"),
    ];
    let latitudes = vec![Some(48.5), Some(-90.0), Some(12.0), None, Some(1.0)];
    let longitudes = vec![Some(2.25), Some(17.0), Some(180.0), None, Some(2.0)];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("longitude", Arc::new(Float32Array::from(longitudes))),
        ("extra", Arc::new(Int64Array::from(vec![1; 5]))),
        ("path", Arc::new(StringArray::from(paths.to_vec()))),
        ("latitude", Arc::new(Float64Array::from(latitudes))),
        (
            "id",
            Arc::new(StringArray::from(vec![Some("x1"), None, Some("x1"), Some("x4"), Some("x5")])),
        ),
    ];
    write_parquet(&root.join("list.parquet"), columns);
    let (summary, skipped) = run(&root.join("list.csv"), &options(&root.join("csv")));
    let (other, others) = run(&root.join("list.parquet"), &options(&root.join("parquet")));
    assert_eq!((summary.rows, summary.without_place), (4, 1));
    assert_eq!((other.rows, other.without_place), (4, 1));
    assert_eq!(skipped, others);
    assert_eq!((skipped[0].id.as_str(), skipped[0].kind.as_str()), ("x5", "unreadable"));
    let rows = rows_in(&root.join("csv"));
    assert_eq!(rows, rows_in(&root.join("parquet")));
    // Equal ids are both kept.
    assert_eq!(ids(&rows), ["x1", absolute.to_str().unwrap(), "x1"]);
    let places: Vec<_> = rows.iter().map(|row| row.place.unwrap()).collect();
    assert_eq!(places, [(48.5, 2.25), (-90.0, 17.0), (12.0, -180.0)]);
    assert_eq!(ids(&unplaced_rows_in(&root.join("csv"))), ["x4"]);
}

fn write_parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("columns fit");
    let file = File::create(path).expect("a file is made");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a schema");
    writer.write(&batch).expect("rows are written");
    writer.close().expect("the file is finished");
}

#[test]
fn bad_rows_of_a_manifest_are_skipped_and_bad_manifests_refused() {
    let scratch = tempdir().unwrap();
    let root = scratch.path();
    write_folder(root, 4);
    let rows = "path,lat,lon\n001.png,1,2\n002.png,1\n,1,2\n003.png,91,0\n002.png,here,there\n";
    write(&root.join("list.csv"), rows);
    let (summary, skipped) = run(&root.join("list.csv"), &options(&root.join("out")));
    assert_eq!(summary.rows, 1);
    let kinds: Vec<_> = skipped.iter().map(|image| image.kind.as_str()).collect();
    assert_eq!(kinds, ["bad-row", "bad-row", "bad-place", "bad-place"]);
    assert_eq!(skipped[1].path, "row 3");
    assert!(skipped[2].message.contains("latitude 91"), "{}", skipped[2].message);
    assert_eq!(skipped_lines(&root.join("out")).len(), 4);
    for (name, text, expected) in [
        (
            "no-path.csv",
            "file,lat,lon\na,1,2\n",
            "no column `path`; its columns are file, lat, lon",
        ),
        ("half.csv", "path,lat\na,1\n", "not both"),
        ("empty.csv", "path\n", "no files"),
        ("broken.parquet", "PAR1 no", "cannot be embedded"),
        ("photo.jpg", "", "neither a folder nor"),
    ] {
        write(&root.join(name), text);
        let error = error_of(&root.join(name), &root.join("never"));
        assert!(error.to_string().contains(expected), "{name}: {error}");
    }
    assert!(!root.join("never").exists());
    assert!(matches!(error_of(&root.join("gone"), root), EmbedError::File { .. }));
}

fn error_of(input: &Path, out: &Path) -> EmbedError {
    embed(input, &Means::new("means"), &options(out), &mut |_| ())
        .expect_err("such an input is refused")
}

#[test]
fn tars_are_read_as_webdataset_does() {
    let scratch = tempdir().unwrap();
    let (folder, out) = (scratch.path().join("in"), scratch.path().join("out"));
    let json = |text: &str| text.as_bytes().to_vec();
    write_tar(
        &folder.join("00000.tar"),
        &[
            ("./a/0001.json", json(r#"{"latitude": -89.5, "longitude": 180.0}"#)),
            ("./a/0001.PNG", png(1)),
            ("./a/0001.cls", json("7")),
            ("./a/0002.jpg", jpeg_at(2, 51.5, -0.125)),
            ("./a/0002.txt", json("a caption")),
            ("./a/0003.left.png", png(3)),
            ("./a/0003.right.png", png(4)),
            ("./a/0004.txt", json("no picture")),
            ("./a/0005.png", png(5)),
            ("./a/0005.json", json("{broken")),
            ("./.hidden.png", png(6)),
            ("README", json("about")),
        ],
    );
    write_tar(&folder.join("00001.tar"), &[("a/0001.png", png(7)), ("a/0001.json", json("{}"))]);
    // What img2dataset leaves behind.
    write(&folder.join("00000_stats.json"), "{}");
    let mut totals = Vec::new();
    embed(&folder, &Means::new("means"), &options(&out), &mut |event| {
        if let EmbedEvent::Begun { total, .. } = event {
            totals.push(total);
        }
    })
    .unwrap();
    assert_eq!(totals, [None]);
    let rows = rows_in(&out);
    assert_eq!(ids(&rows), ["a/0001", "a/0002"]);
    assert_eq!(rows[0].place, Some((-89.5, -180.0)));
    assert_eq!(rows[1].place, Some((51.5, -0.125)));
    assert_eq!(ids(&unplaced_rows_in(&out)), ["a/0003", "a/0001"]);
    let lines = skipped_lines(&out);
    let begin = |line: &String| line.split(',').take(3).collect::<Vec<_>>().join(",");
    assert_eq!(
        lines.iter().map(begin).collect::<Vec<_>>(),
        [
            "a/0003.right.png,00000.tar/a/0003.right.png,second-picture",
            "a/0004,00000.tar/a/0004,no-picture",
            "a/0005,00000.tar/a/0005.png,bad-place",
            "README,00000.tar/README,no-picture",
        ]
    );
    // One of them alone.
    let (summary, _) = run(&folder.join("00001.tar"), &options(&scratch.path().join("one")));
    assert_eq!(summary.rows, 1);
}

#[test]
fn broken_tars_cost_only_themselves() {
    let scratch = tempdir().unwrap();
    let folder = scratch.path().join("in");
    let members: Vec<(String, Vec<u8>)> =
        (0..6).map(|number| (format!("{number:04}.png"), png(number))).collect();
    let members: Vec<(&str, Vec<u8>)> =
        members.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    for name in ["1.tar", "2.tar", "3.tar"] {
        write_tar(&folder.join(name), &members);
    }
    let whole = fs::read(folder.join("1.tar")).unwrap();
    // In the middle of the fourth picture, and a header that was overwritten.
    let member = whole.len() / 6 / 512 * 512;
    fs::write(folder.join("1.tar"), &whole[..3 * member.max(1024) + 512 + 40]).unwrap();
    let mut scratched = whole.clone();
    scratched[1024..1200].fill(b'x');
    fs::write(folder.join("2.tar"), &scratched).unwrap();
    let (summary, skipped) = run(&folder, &options(&scratch.path().join("out")));
    assert!(skipped.iter().all(|image| image.kind == "damaged"), "{skipped:?}");
    assert_eq!(skipped.len(), 2, "{skipped:?}");
    assert_eq!(summary.rows, 3 + 1 + 6);
    // The shares of several machines agree about it.
    let mut rows = 0;
    for number in 1..=3 {
        let share = Share::new(number, 3).unwrap();
        let shared = scratch.path().join("shared");
        let (summary, _) = run(&folder, &EmbedOptions { share, ..options(&shared) });
        rows += summary.rows;
    }
    assert_eq!(rows, 10);
}

#[test]
fn shares_make_the_whole() {
    let scratch = tempdir().unwrap();
    let root = scratch.path();
    write_folder(&root.join("in"), 43);
    write(&root.join("in/bad.png"), "not a picture");
    let tar: Vec<(String, Vec<u8>)> = (0..20).map(|n| (format!("{n:03}.png"), png(n))).collect();
    let tar: Vec<_> = tar.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    write_tar(&root.join("in.tar"), &tar);
    for input in ["in", "in.tar"] {
        let out = |name: &str| root.join(format!("{input}-{name}"));
        run(&root.join(input), &options(&out("whole")));
        let (mut totals, mut skipped) = (0, 0);
        for number in 1..=5 {
            let share = Share::new(number, 5).unwrap();
            let options = EmbedOptions { share, ..options(&out("shares")) };
            let done = embed(&root.join(input), &Means::new("means"), &options, &mut |event| {
                if let EmbedEvent::Begun { total: Some(total), .. } = event {
                    totals += total;
                }
            });
            let done = done.unwrap();
            assert!(done.finished);
            skipped += done.skipped.values().sum::<u64>();
        }
        let sorted = |name: &str| {
            let mut rows = unplaced_rows_in(&out(name));
            // The last number tells the batch.
            rows.iter_mut().for_each(|row| row.embedding.truncate(WIDTH - 1));
            rows.sort_by(|a, b| a.id.cmp(&b.id));
            rows
        };
        assert_eq!(sorted("whole"), sorted("shares"));
        assert_eq!(skipped, if input == "in" { 1 } else { 0 });
        if input == "in" {
            assert_eq!(totals, 44);
            let names: Vec<String> = files_in(&out("shares")).into_keys().collect();
            assert!(names.contains(&"embed-3of5.json".to_owned()), "{names:?}");
            assert!(names.contains(&"skipped-5of5.csv".to_owned()), "{names:?}");
            assert!(names.contains(&"without-place/shard-1of5-00000.parquet".to_owned()));
        }
    }
}

#[test]
fn views_lie_side_by_side() {
    let scratch = tempdir().unwrap();
    let root = scratch.path();
    for number in 0..9 {
        let place = f64::from(number);
        write(&root.join(format!("in/{number}.jpg")), jpeg_at(number, place + 1.0, -place));
    }
    let single = options(&root.join("single"));
    run(&root.join("in"), &single);
    // Also more views than fit into a batch.
    let views = Crops::Random { count: 6, seed: 3 };
    for (name, views) in [("flip", Crops::Flip), ("random", views)] {
        let options = EmbedOptions { views, ..options(&root.join(name)) };
        run(&root.join("in"), &options);
        let set = Dataset::open(&root.join(name).display().to_string(), OnBadShard::Fail).unwrap();
        assert_eq!((set.layout().views, set.layout().width), (views.count(), WIDTH));
        assert_eq!((set.layout().encoder.identity.as_str(), set.rows()), ("means", 9));
        let stream = set.stream(StreamOptions { batch: 3, epochs: Some(1), ..Default::default() });
        assert_eq!(stream.unwrap().map(|batch| batch.unwrap().places.len()).sum::<usize>(), 9);
    }
    let (singles, flips) = (rows_in(&root.join("single")), rows_in(&root.join("flip")));
    for (single, flip) in singles.iter().zip(&flips) {
        assert_eq!(single.embedding[..4], flip.embedding[..4]);
        // Means don't change in a mirror.
        for number in 0..4 {
            let difference = flip.embedding[number] - flip.embedding[WIDTH + number];
            assert!(difference.abs() < 1e-3, "{flip:?}");
        }
    }
}
