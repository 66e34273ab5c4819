//! Plan → run, with interruptions → status → finish, over every kind of input.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{DataType, Field};
use image::{ImageFormat, RgbImage};
use locdiff_batch::{Batch, BatchError, PlanOptions, RunOptions, Runner, Task, plan};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

/// A picture that differs from all others.
fn picture(number: u32) -> Vec<u8> {
    let pixel = |x: u32, y: u32| {
        image::Rgb([(number % 251) as u8, (x * 16 + number / 251) as u8, (y * 16) as u8])
    };
    let mut bytes = std::io::Cursor::new(Vec::new());
    RgbImage::from_fn(12, 10, pixel).write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new() -> Scene {
        Scene { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A manifest of so many rows; some images are damaged or missing, and one row has no path.
    fn manifest(&self, rows: u32) -> String {
        fs::create_dir(self.path("pictures")).unwrap();
        let mut csv = "id,path,latitude,longitude\n".to_owned();
        for number in 0..rows {
            let name = format!("pictures/{number}.png");
            let bytes = picture(number);
            match damage(number) {
                Some("missing") => {}
                Some(_) => fs::write(self.path(&name), &bytes[..60]).unwrap(),
                None => fs::write(self.path(&name), bytes).unwrap(),
            }
            let path = if number == 8 { "" } else { &name };
            csv += &format!("image {number},{path},{},{}\n", f64::from(number) / 2.0, number);
        }
        fs::write(self.path("images.csv"), csv).unwrap();
        self.text("images.csv")
    }

    fn tar(&self, name: &str, numbers: std::ops::Range<u32>) {
        let mut tar = tar::Builder::new(File::create(self.path(name)).unwrap());
        let mut add = |name: String, bytes: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, bytes).unwrap();
        };
        for number in numbers {
            let bytes = picture(number);
            let bytes = if damage(number).is_some() { &bytes[..60] } else { &bytes };
            add(format!("{number:06}.png"), bytes);
            add(format!("{number:06}.json"), br#"{"latitude": 1.5, "longitude": -2}"#);
        }
        tar.finish().unwrap();
    }

    /// Rows of bytes in row groups of four, as a column of bytes or of structs.
    fn parquet(&self, name: &str, numbers: std::ops::Range<u32>, structs: bool) {
        let ids: Int64Array = numbers.clone().map(i64::from).collect();
        let bytes: BinaryArray = numbers
            .clone()
            .map(|number| match damage(number) {
                Some("missing") => None,
                Some(_) => Some(picture(number)[..60].to_vec()),
                None => Some(picture(number)),
            })
            .collect();
        let paths: StringArray = numbers.map(|number| Some(format!("{number}.png"))).collect();
        let image: ArrayRef = match structs {
            false => Arc::new(bytes),
            true => Arc::new(StructArray::from(vec![
                (
                    Arc::new(Field::new("bytes", DataType::Binary, true)),
                    Arc::new(bytes) as ArrayRef,
                ),
                (Arc::new(Field::new("path", DataType::Utf8, true)), Arc::new(paths)),
            ])),
        };
        let batch =
            RecordBatch::try_from_iter([("id", Arc::new(ids) as ArrayRef), ("image", image)]);
        let batch = batch.unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(4)).build();
        let file = File::create(self.path(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
}

/// What is wrong with an image, if anything.
fn damage(number: u32) -> Option<&'static str> {
    match number {
        _ if number % 11 == 5 => Some("missing"),
        _ if number % 7 == 3 => Some("damaged"),
        _ => None,
    }
}

fn check(rows_per_unit: usize) -> PlanOptions {
    PlanOptions { rows_per_unit, ..PlanOptions::new(Task::Check) }
}

fn runner(job: &str, threads: usize) -> Runner {
    Runner::new(Batch::open(job).unwrap(), RunOptions::threads(threads)).unwrap()
}

/// Does what is open; how many units that were.
fn run_open(job: &str, threads: usize) -> usize {
    let runner = runner(job, threads);
    let open = runner.batch().open_units().unwrap();
    let done = open.into_iter().map(|unit| runner.run_unit(unit).unwrap());
    done.filter(|report| !report.already).count()
}

/// The outputs' record batches, in the order of the input.
fn outputs(job: &str) -> Vec<RecordBatch> {
    let units = 0..Batch::open(job).unwrap().job().units;
    let read = |unit: u64| {
        let file = File::open(format!("{job}/out/unit-{unit:05}.parquet")).unwrap();
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(Result::unwrap)
    };
    units.flat_map(read).collect()
}

fn texts(job: &str, column: &str) -> Vec<Option<String>> {
    let batches = outputs(job);
    let of = |batch: &RecordBatch| -> Vec<Option<String>> {
        let texts = batch.column_by_name(column).unwrap().as_string::<i32>().iter();
        texts.map(|text| text.map(str::to_owned)).collect()
    };
    batches.iter().flat_map(of).collect()
}

fn files(directory: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.is_file())
        .map(|path| (PathBuf::from(path.file_name().unwrap()), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn every_row_of_a_manifest_is_there_once_whatever_happens() {
    let scene = Scene::new();
    let (manifest, job) = (scene.manifest(50), scene.text("job"));
    let planned = plan(&manifest, &job, &check(7)).unwrap();
    assert_eq!((planned.batch.job().units, planned.batch.job().rows), (8, Some(50)));
    // A unit at a time, by several processes without a common state, and some twice.
    let first = runner(&job, 1);
    assert_eq!(first.run_unit(3).unwrap().rows, 7);
    let before = fs::metadata(scene.path("job/out/unit-00003.parquet")).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| runner(&job, 2).run_unit(5).unwrap());
        }
    });
    assert!(runner(&job, 1).run_unit(3).unwrap().already);
    let after = fs::metadata(scene.path("job/out/unit-00003.parquet")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    // A machine that died while it wrote leaves this behind.
    fs::write(scene.path("job/out/unit-00004.parquet#1"), b"half").unwrap();
    let batch = Batch::open(&job).unwrap();
    assert_eq!(batch.open_units().unwrap(), [0, 1, 2, 4, 6, 7]);
    let status = batch.status().unwrap();
    assert_eq!((status.done, status.open, status.finished), (2, 6, false));
    assert!(matches!(batch.finish(false), Err(BatchError::Unfinished(_))));
    assert_eq!(run_open(&job, 2), 6);
    assert_eq!(run_open(&job, 2), 0);
    let finished = batch.finish(false).unwrap();
    assert_eq!((finished.rows, finished.repeated_ids), (50, 0));
    let status = batch.status().unwrap();
    assert_eq!((status.done, status.open, status.finished), (8, 0, true));

    let ids: Vec<_> = (0..50).map(|number| Some(format!("image {number}"))).collect();
    assert_eq!(texts(&job, "id"), ids);
    let errors = texts(&job, "error");
    for number in 0..50 {
        let is_bad = damage(number).is_some() || number == 8;
        assert_eq!(errors[number as usize].is_some(), is_bad, "{number}: {errors:?}");
    }
    assert_eq!(finished.errors, errors.iter().flatten().count() as u64);
    assert!(errors[8].as_ref().unwrap().contains("path is empty"));
    let first = &outputs(&job)[0];
    let widths = first.column_by_name("width").unwrap().as_primitive::<Int32Type>();
    let latitudes = first.column_by_name("latitude").unwrap().as_primitive::<Float64Type>();
    assert_eq!((widths.value(1), latitudes.value(1)), (12, 0.5));
    assert!(widths.is_null(3) && latitudes.is_null(3));
}

#[test]
fn the_same_plan_is_the_same_job_and_another_plan_is_refused() {
    let scene = Scene::new();
    let manifest = scene.manifest(20);
    let [one, two] = ["one", "two"].map(|name| scene.text(name));
    for job in [&one, &two, &one] {
        plan(&manifest, job, &check(6)).unwrap();
    }
    assert_eq!(files(&one), files(&two));
    assert!(plan(&manifest, &one, &check(6)).unwrap().already);
    let error = plan(&manifest, &one, &check(5)).unwrap_err();
    assert!(error.to_string().contains("rows_per_unit was 6, is now 5"), "{error}");
    fs::write(&manifest, "path\npictures/1.png\n").unwrap();
    assert!(matches!(plan(&manifest, &one, &check(6)), Err(BatchError::OtherPlan { .. })));
    assert_eq!(files(&one), files(&two));
    // One thread or several, now or later: the same bytes.
    run_open(&one, 1);
    run_open(&two, 3);
    assert_eq!(files(&format!("{one}/out")), files(&format!("{two}/out")));
}

#[test]
fn a_tar_is_a_unit() {
    let scene = Scene::new();
    fs::create_dir(scene.path("tars")).unwrap();
    scene.tar("tars/00000.tar", 0..10);
    scene.tar("tars/00001.tar", 10..22);
    let job = scene.text("job");
    let planned = plan(&scene.text("tars"), &job, &check(4)).unwrap();
    assert_eq!((planned.batch.job().units, planned.batch.job().rows), (2, None));
    run_open(&job, 2);
    let finished = planned.batch.finish(false).unwrap();
    let damaged = (0..22).filter(|number| damage(*number).is_some()).count() as u64;
    assert_eq!((finished.rows, finished.errors), (22, damaged));
    assert_eq!(texts(&job, "id")[21].as_deref(), Some("000021"));
    assert_eq!(texts(&job, "path")[0].as_deref(), Some("00000.tar/000000.png"));
    let latitudes = outputs(&job)[0].column_by_name("latitude").unwrap().clone();
    assert_eq!(latitudes.as_primitive::<Float64Type>().value(0), 1.5);

    // A tar that changed after it was planned is an error of the unit, not of its rows.
    let job = scene.text("other");
    plan(&scene.text("tars/00000.tar"), &job, &check(4)).unwrap();
    scene.tar("tars/00000.tar", 0..9);
    let error = runner(&job, 1).run_unit(0).unwrap_err();
    assert!(error.to_string().contains("it has changed"), "{error}");
    assert_eq!(Batch::open(&job).unwrap().open_units().unwrap(), [0]);
}

#[test]
fn row_groups_of_bytes_are_units() {
    for structs in [false, true] {
        let scene = Scene::new();
        fs::create_dir(scene.path("lake")).unwrap();
        scene.parquet("lake/a.parquet", 0..18, structs);
        scene.parquet("lake/b.parquet", 18..25, structs);
        let job = scene.text("job");
        let planned = plan(&scene.text("lake"), &job, &check(8)).unwrap();
        // 8 + 8 + 2 and 7 rows in row groups of four.
        assert_eq!((planned.batch.job().units, planned.batch.job().rows), (4, Some(25)));
        run_open(&job, 2);
        let finished = planned.batch.finish(false).unwrap();
        let bad = (0..25).filter(|number| damage(*number).is_some()).count();
        assert_eq!((finished.rows, finished.errors), (25, bad as u64));
        let ids: Vec<_> = (0..25).map(|number| Some(number.to_string())).collect();
        assert_eq!(texts(&job, "id"), ids);
        let path = if structs { "17.png" } else { "a.parquet#17" };
        assert_eq!(texts(&job, "path")[17].as_deref(), Some(path));
    }
}

#[test]
fn outputs_are_checked_at_the_end() {
    let scene = Scene::new();
    let (manifest, job) = (scene.manifest(20), scene.text("job"));
    plan(&manifest, &job, &check(10)).unwrap();
    run_open(&job, 1);
    let batch = Batch::open(&job).unwrap();
    let [zero, one] = [0, 1].map(|unit| scene.path(&format!("job/out/unit-0000{unit}.parquet")));
    let good = fs::read(&one).unwrap();
    let refused = |what: &str| {
        let error = batch.finish(false).unwrap_err().to_string();
        assert!(error.contains(what), "{what}: {error}");
        assert!(!batch.status().unwrap().finished);
    };
    fs::write(&one, &good[..good.len() / 2]).unwrap();
    refused("unit-00001.parquet");
    fs::copy(&zero, &one).unwrap();
    refused("it is not of this job and unit");
    fs::write(&one, good).unwrap();
    batch.finish(false).unwrap();

    // Ids that the input has twice.
    let (twice, job) = (scene.path("twice.csv"), scene.text("twice"));
    fs::write(&twice, "id,path\na,pictures/0.png\nb,pictures/1.png\na,pictures/2.png\n").unwrap();
    plan(twice.to_str().unwrap(), &job, &check(2)).unwrap();
    run_open(&job, 1);
    let batch = Batch::open(&job).unwrap();
    let error = batch.finish(false).unwrap_err().to_string();
    assert!(error.contains("2 rows have ids that occur more than once: a"), "{error}");
    assert_eq!(batch.finish(true).unwrap().repeated_ids, 2);
}

#[test]
fn located_rows_have_places_and_cells() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let scene = Scene::new();
    let list = format!(
        "path\n{}\nnone.jpg\n{}\n",
        examples.join("madagascar.jpg").display(),
        examples.join("sinai.jpg").display()
    );
    fs::write(scene.path("images.csv"), list).unwrap();
    let inference = locdiff::InferenceOptions { registration: Some(false), ..Default::default() };
    let task = Task::Locate {
        model: "earth-view".to_owned(),
        version: None,
        encoder: None,
        inference,
        within: Vec::new(),
        top: 3,
    };
    let job = scene.text("job");
    let options = PlanOptions { cells: Some("h3:3".parse().unwrap()), ..PlanOptions::new(task) };
    let planned = plan(&scene.text("images.csv"), &job, &options).unwrap();
    run_open(&job, 2);
    let finished = planned.batch.finish(false).unwrap();
    assert_eq!((finished.rows, finished.errors), (3, 1));
    assert_eq!(texts(&job, "country")[0].as_deref(), Some("Madagascar"));
    let cells = texts(&job, "cell");
    assert!(cells[0].as_ref().unwrap().starts_with("83") && cells[1].is_none());
    let answer = texts(&job, "answer")[2].clone().unwrap();
    assert!(answer.contains("sinai.jpg"), "{answer}");

    // Another version of the model would give other answers.
    let record = fs::read_to_string(scene.path("job/job.json")).unwrap();
    let mut other: serde_json::Value = serde_json::from_str(&record).unwrap();
    other["task"]["version"] = "0".into();
    fs::write(scene.path("job/job.json"), other.to_string()).unwrap();
    fs::remove_file(scene.path("job/out/unit-00000.parquet")).unwrap();
    let error = runner(&job, 1).run_unit(0).unwrap_err();
    assert!(error.to_string().contains("planned with version 0"), "{error}");
}

#[test]
fn embeddings_are_lists_of_floats() {
    let scene = Scene::new();
    let (manifest, job) = (scene.manifest(6), scene.text("job"));
    let options = PlanOptions::new(Task::embed("earth-view", 1, 0));
    let planned = plan(&manifest, &job, &options).unwrap();
    run_open(&job, 2);
    planned.batch.finish(false).unwrap();
    let output = &outputs(&job)[0];
    let DataType::List(element) =
        output.schema().field_with_name("embedding").unwrap().data_type().clone()
    else {
        panic!("not a list")
    };
    assert_eq!(element.data_type(), &DataType::Float32);
    let embeddings = output.column_by_name("embedding").unwrap().as_list::<i32>();
    assert!(embeddings.is_null(3) && embeddings.is_null(5));
    let (first, second) = (embeddings.value(0), embeddings.value(1));
    assert_eq!(first.len(), second.len());
    let first = first.as_primitive::<Float32Type>();
    assert!(first.iter().flatten().all(f32::is_finite) && !first.is_empty());
}
