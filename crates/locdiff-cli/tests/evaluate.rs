//! `locdiff evaluate` as a person meets it: stdout, stderr, exit code.

#![expect(clippy::unwrap_used, reason = "a test that unwraps fails, as it should")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use snapbox::{assert_data_eq, str};

const TRUTH: &str = "image,latitude,longitude\n\
    paris.jpg,48.8566,2.3522\nsydney.jpg,-33.8688,151.2093\nsuva.jpg,-18.1416,178.4419\n\
    quito.jpg,-0.1807,-78.4678\npole.jpg,-90,0\n";
const ANSWERS: &str = "IMG_FILE,LAT,LON\n\
    x/suva.jpg,-17.0,-179.5\nx/paris.jpg,48.8588,2.3469\nx/sydney.jpg,-37.8,144.96\n\
    x/quito.jpg,4.6,-74.1\nx/pole.jpg,-89.9,120\n";
const OTHERS: &str = "image,latitude,longitude\n\
    paris.jpg,51.5,-0.12\nsydney.jpg,-33.87,151.2\nsuva.jpg,-36.8,174.7\nquito.jpg,40.4,-3.7\npole.jpg,90,0\n";

/// A folder with those files, in which the program runs, so that its output names no path of this machine.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        for (name, text) in [("truth.csv", TRUTH), ("ours.csv", ANSWERS), ("theirs.csv", OTHERS)] {
            desk.write(name, text);
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locdiff"));
        command.arg("evaluate").args(arguments).current_dir(self.0.path());
        command.env("LOCDIFF_HOME", self.0.path()).stdin(Stdio::null()).output().unwrap()
    }

    /// Stdout of a success that has nothing to complain about.
    fn success(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        text(&output.stdout)
    }

    /// Stderr of a failure that prints no data.
    fn failure(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        text(&output.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn answers_of_anybody() {
    let desk = Desk::new();
    let report =
        desk.success(&["--predictions", "ours.csv", "--truth", "truth.csv", "--resamples", "200"]);
    assert_data_eq!(
        report,
        str![[r#"
ours on truth: 5 images; none was left out
  distances along great circles, radius 6371.0088 km; within a radius: ≤; GeoScore 5000·exp(−d/1492.7 km), not rounded
  95 % intervals by 200 bootstrap resamples of the images, seed 1; images of one trip aren't independent, so true intervals may be wider
  answers were matched with images by file name, folders left aside

Places
  score               value            interval
  within 1 km       20.00 %     0.00 to 60.00 %
  within 25 km      40.00 %     0.00 to 80.50 %
  within 200 km     40.00 %     0.00 to 80.50 %
  within 750 km    100.00 %  100.00 to 100.00 %
  within 2500 km   100.00 %  100.00 to 100.00 %
  median distance  252.4 km   0.458 to 719.7 km
  mean distance    339.3 km    51.9 to 623.5 km
  GeoScore          4,074.5  3,319.9 to 4,839.4

Distribution of answers
  score       value
  density    1.1333
  coverage   1.0000
  precision  1.0000
  recall     1.0000

By continent
  continent      images  within 25 km  within 200 km  within 750 km  median distance  GeoScore
  Oceania             2        0.00 %         0.00 %       100.00 %         482.6 km   3,661.9
  Antarctica          1      100.00 %       100.00 %       100.00 %          11.1 km   4,962.9
  Europe              1      100.00 %       100.00 %       100.00 %         0.458 km   4,998.5
  South America       1        0.00 %         0.00 %       100.00 %         719.7 km   3,087.3

By country
  country     images  within 25 km  within 200 km  within 750 km  median distance  GeoScore
  Antarctica       1      100.00 %       100.00 %       100.00 %          11.1 km   4,962.9
  Australia        1        0.00 %         0.00 %       100.00 %         712.8 km   3,101.7
  Ecuador          1        0.00 %         0.00 %       100.00 %         719.7 km   3,087.3
  Fiji             1        0.00 %         0.00 %       100.00 %         252.4 km   4,222.1
  France           1      100.00 %       100.00 %       100.00 %         0.458 km   4,998.5

"#]]
    );
}

#[test]
fn two_models_on_the_same_images() {
    let desk = Desk::new();
    let arguments =
        ["--predictions", "ours.csv", "--truth", "truth.csv", "--against", "theirs.csv"];
    let report = desk.success(&[&arguments[..], &["--name", "GeoX", "--markdown"]].concat());
    assert_data_eq!(
        report,
        str![[r#"
# GeoX on truth

5 images; none was left out.

Distances along great circles, radius 6371.0088 km; within a radius: ≤; GeoScore 5000·exp(−d/1492.7 km), not rounded. 95 % intervals by 2,000 bootstrap resamples of the images, seed 1; images of one trip aren't independent, so true intervals may be wider.

> answers were matched with images by file name, folders left aside

## Places

| score | value | interval |
|---|---:|---:|
| within 1 km | 20.00 % | 0.00 to 60.00 % |
| within 25 km | 40.00 % | 0.00 to 80.00 % |
| within 200 km | 40.00 % | 0.00 to 80.00 % |
| within 750 km | 100.00 % | 100.00 to 100.00 % |
| within 2500 km | 100.00 % | 100.00 to 100.00 % |
| median distance | 252.4 km | 0.458 to 719.7 km |
| mean distance | 339.3 km | 55.1 to 623.5 km |
| GeoScore | 4,074.5 | 3,320.0 to 4,829.0 |

## Distribution of answers

Compares all answers with all true places, by balls of 3 neighbors on the sphere. The pairs of answers and images are not used.

| score | value |
|---|---:|
| density | 1.1333 |
| coverage | 1.0000 |
| precision | 1.0000 |
| recall | 1.0000 |

## Against theirs

Paired, image by image: the difference is the first minus the second, p by a permutation test that swaps the two models' answers (two-sided).

| score | GeoX | theirs | difference | interval | p | p ≤ 0.05 |
|---|---:|---:|---:|---:|---:|---:|
| within 1 km | 20.00 % | 20.00 % | 0.00 pp | −60.00 to +60.00 pp | 1.0000 |  |
| within 25 km | 40.00 % | 20.00 % | +20.00 pp | −40.00 to +80.00 pp | 1.0000 |  |
| within 200 km | 40.00 % | 20.00 % | +20.00 pp | −40.00 to +80.00 pp | 1.0000 |  |
| within 750 km | 100.00 % | 40.00 % | +60.00 pp | +20.00 to +100.00 pp | 0.2538 |  |
| within 2500 km | 100.00 % | 60.00 % | +40.00 pp | 0.00 to +80.00 pp | 0.5082 |  |
| median distance | 252.4 km | 2,106.8 km | −1,854.4 km | −20,004.0 to +711.9 km | 0.1907 |  |
| mean distance | 339.3 km | 6,240.6 km | −5,901.3 km | −13,463.6 to −314.6 km | 0.1907 |  |
| GeoScore | 4,074.5 | 2,041.0 | +2,033.5 | +60.1 to +3,814.9 | 0.1907 |  |

## By continent

Of the true place; GeoNames' convention: Russia is in Europe, Turkey in Asia.

| continent | images | within 25 km | within 200 km | within 750 km | median distance | GeoScore |
|---|---:|---:|---:|---:|---:|---:|
| Oceania | 2 | 0.00 % | 0.00 % | 100.00 % | 482.6 km | 3,661.9 |
| Antarctica | 1 | 100.00 % | 100.00 % | 100.00 % | 11.1 km | 4,962.9 |
| Europe | 1 | 100.00 % | 100.00 % | 100.00 % | 0.458 km | 4,998.5 |
| South America | 1 | 0.00 % | 0.00 % | 100.00 % | 719.7 km | 3,087.3 |

## By country

Of the true place.

| country | images | within 25 km | within 200 km | within 750 km | median distance | GeoScore |
|---|---:|---:|---:|---:|---:|---:|
| Antarctica | 1 | 100.00 % | 100.00 % | 100.00 % | 11.1 km | 4,962.9 |
| Australia | 1 | 0.00 % | 0.00 % | 100.00 % | 712.8 km | 3,101.7 |
| Ecuador | 1 | 0.00 % | 0.00 % | 100.00 % | 719.7 km | 3,087.3 |
| Fiji | 1 | 0.00 % | 0.00 % | 100.00 % | 252.4 km | 4,222.1 |
| France | 1 | 100.00 % | 100.00 % | 100.00 % | 0.458 km | 4,998.5 |

"#]]
    );
}

#[test]
fn every_number_for_programs() {
    let desk = Desk::new();
    let json = |rules: &str| -> Value {
        let arguments =
            ["--predictions", "ours.csv", "--truth", "truth.csv", "--json", "--rules", rules];
        serde_json::from_str(&desk.success(&arguments)).unwrap()
    };
    let (ours, geoclip) = (json("locdiff"), json("geoclip"));
    assert_eq!((&ours["images"], &ours["left_out"]), (&5.into(), &0.into()));
    assert_eq!(ours["scores"]["accuracy_1_km"]["value"], 0.2);
    assert_eq!(ours["scores"]["accuracy_25_km"]["value"], 0.4);
    let km = |report: &Value| report["scores"]["mean_km"]["value"].as_f64().unwrap();
    assert!(
        (km(&ours) - km(&geoclip)).abs() > 0.1 && (km(&ours) / km(&geoclip) - 1.0).abs() < 0.006
    );
    assert_eq!(geoclip["rules"]["distance"], "geodesic");
}

#[test]
fn images_without_an_answer_need_a_word() {
    let desk = Desk::new();
    desk.write("ours.csv", "image,latitude,longitude\nparis.jpg,48.9,2.3\nsuva.jpg,,\n");
    let arguments = ["--predictions", "ours.csv", "--truth", "truth.csv", "--resamples", "0"];
    assert_data_eq!(
        desk.failure(&arguments, 1),
        str![[r#"
locdiff: 4 of 5 images have no answer, `sydney.jpg` for example: count them as wrong (--missing worst) or leave them out (--missing skip)

"#]]
    );
    let images = |missing: &str| {
        let report = desk.success(&[&arguments[..], &["--missing", missing]].concat());
        report.lines().next().unwrap().to_owned()
    };
    assert_data_eq!(
        images("skip"),
        str!["ours on truth: 1 image; 4 of 5 were left out because they have no answer"]
    );
    assert_data_eq!(
        images("worst"),
        str![
            "ours on truth: 5 images, of which 4 without an answer count as an error of 20,015 km; none was left out"
        ]
    );
}

#[test]
fn a_page_and_the_answers_as_a_table() {
    let desk = Desk::new();
    let arguments = ["--predictions", "ours.csv", "--truth", "truth.csv", "--html", "report.html"];
    desk.success(&[&arguments[..], &["--write-predictions", "again.csv"]].concat());
    let page = fs::read_to_string(desk.path("report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<title>ours on truth</title>"));
    let report = |file: &str| {
        let arguments = ["--predictions", file, "--truth", "truth.csv", "--json"];
        let report: Value = serde_json::from_str(&desk.success(&arguments)).unwrap();
        report["scores"].clone()
    };
    assert_eq!(report("ours.csv"), report("again.csv"));
}

#[test]
fn our_model_on_a_manifest() {
    let desk = Desk::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for picture in ["madagascar.jpg", "sinai.jpg"] {
        fs::create_dir_all(desk.path("views")).unwrap();
        fs::copy(examples.join(picture), desk.path("views").join(picture)).unwrap();
    }
    desk.write(
        "views/manifest.csv",
        "image,latitude,longitude\nmadagascar.jpg,-19.5,46.5\nsinai.jpg,28.5,34.0\n",
    );
    let arguments = ["--model", "earth-view", "--data", "views"];
    let json =
        desk.success(&[&arguments[..], &["--json", "--write-predictions", "answers.csv"]].concat());
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&report["model"], &report["data"]), (&"earth-view".into(), &"views".into()));
    assert_eq!(report["images"], 2);
    assert!(report["density_scores"]["nll_nats"]["value"].as_f64().unwrap() < 0.0);
    assert_eq!(report["density_scores"]["recall_1e8_km2"]["value"], 1.0);
    // The table of answers is complete.
    let again = ["--predictions", "answers.csv", "--truth", "views", "--json"];
    let again: Value = serde_json::from_str(&desk.success(&again)).unwrap();
    assert_eq!(again["scores"], report["scores"]);
    assert_eq!(again["density_scores"], report["density_scores"]);
    // A file that isn't there ends it before anything is scored, unless it may be missing.
    desk.write("views/manifest.csv", "image,latitude,longitude\ngone.jpg,0,0\nsinai.jpg,28.5,34\n");
    let error = desk.failure(&arguments, 1);
    assert!(error.starts_with("locdiff: no answer for gone.jpg: "), "{error}");
    let output = desk.run(&[&arguments[..], &["--missing", "skip"]].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("1 image; 1 of 2 were left out"));
}

#[test]
fn mistakes() {
    let desk = Desk::new();
    assert_data_eq!(
        desk.failure(&[], 2),
        str![[r#"
locdiff: give --predictions with --truth, or --model with --data; see --help

"#]]
    );
    assert_data_eq!(
        desk.failure(&["--predictions", "ours.csv"], 1),
        str![[r#"
locdiff: ours.csv has no columns of true places (such as gt_lat and gt_lon): give --truth FILE

"#]]
    );
    assert_data_eq!(
        desk.failure(&["--model", "resnet", "--data", "truth.csv"], 2),
        str![[r#"
locdiff: there is no model `resnet`: use earth-view, geoclip, geoclip-even, plonk-yfcc, plonk-inaturalist, plonk-osv5m, or the directory of a model such as runs/first/model

"#]]
    );
    desk.write("ours.csv", "image,latitude,longitude\na,1,2\n");
    let arguments = ["--predictions", "ours.csv", "--truth", "truth.csv"];
    assert_data_eq!(
        desk.failure(&arguments, 1),
        str![[r#"
locdiff: no answer matches an image: answers name images such as `a`, the true places name images such as `paris.jpg`

"#]]
    );
    desk.write("ours.csv", "image,latitude,longitude\nparis.jpg,95,2\n");
    assert_data_eq!(
        desk.failure(&arguments, 1),
        str![[r#"
locdiff: ours.csv: line 2: latitude 95 is not between -90 and 90 degrees

"#]]
    );
}

#[test]
fn public_test_sets() {
    let desk = Desk::new();
    assert_data_eq!(
        desk.success(&["data", "im2gps3k"]),
        str![[r#"
Im2GPS3k: Test set of Vo, Jacobs and Hays (ICCV 2017): Flickr photographs, the most reported benchmark.

images   2997
get it   Images: im2gps3ktest.zip by way of github.com/lugiavn/revisiting-im2gps. Places: im2gps3k_places365.csv in the folder meta of github.com/TIBHannover/GeoEstimation, branch original_tf. The archive has about 3,000 images, of which 2,997 have a published place.
places   im2gps3k_places365.csv: IMG_ID,AUTHOR,LAT,LON and scene labels; IMG_ID is the file name
license  The photographs belong to their owners on Flickr, each under its own license; places are published with the GeoEstimation code (GPL-3.0). Research use is customary; don't redistribute the photographs.

Make the manifest, then check it:

    locdiff evaluate data im2gps3k --places FILE --images DIR
    locdiff evaluate data im2gps3k --check DIR

"#]]
    );
    assert_eq!(desk.success(&["data"]).lines().count(), 9);
    desk.write("osv/test/00/12.jpg", "a picture");
    desk.write("test.csv", "id,latitude,longitude,country\n12,1.5,-2.5,GH\n13,2,3,NG\n");
    let output = desk.run(&["data", "osv5m", "--places", "test.csv", "--images", "osv"]);
    assert_eq!(text(&output.stdout), "osv/manifest.csv: 1 images\n");
    assert_eq!(text(&output.stderr), "1 rows were left out: no place, or no file of that name\n");
    let manifest = fs::read_to_string(desk.path("osv/manifest.csv")).unwrap();
    assert_eq!(manifest, "image,latitude,longitude\ntest/00/12.jpg,1.5,-2.5\n");
    let output = desk.run(&["data", "osv5m", "--check", "osv"]);
    assert_eq!(output.status.code(), Some(1));
    assert_data_eq!(
        text(&output.stdout),
        str![[r#"
osv/manifest.csv: 1 images, but OSV-5M has 210122
no file is missing
digest of names and places: 80c474e6488ba0e00a94377478ef1b44afdcfc56d98e3eff16a43c6c61348358

"#]]
    );
    assert_data_eq!(
        desk.failure(&["data", "imagenet"], 2),
        str![[r#"
locdiff: there is no test set `imagenet`: use im2gps, im2gps3k, yfcc4k, yfcc26k, gws15k, osv5m, mp16

"#]]
    );
}

#[test]
fn leakage_of_places() {
    let desk = Desk::new();
    desk.write("train.csv", "LAT,LON\n48.8567,2.3523\n-18.1,-178\n0,0\n");
    let report = desk.success(&["leakage", "--test", "truth.csv", "--training", "train.csv"]);
    assert_data_eq!(
        report,
        str![[r#"
5 test images, 3 training images
1 (20.00 %) were taken within 0.1 km of a training image
  paris.jpg  0.013 km from row 1

"#]]
    );
    let arguments =
        ["leakage", "--test", "truth.csv", "--training", "train.csv", "--within-km", "500"];
    let report = desk.success(&[&arguments[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["near_places"].as_array().unwrap().len(), 2);
    assert_eq!(report["near_places"][1]["test"], "suva.jpg");
    assert!(report["alike_embeddings"].is_null());
    // The same places of training break scores down.
    let arguments =
        ["--predictions", "ours.csv", "--truth", "truth.csv", "--training", "train.csv"];
    let report = desk.success(&[&arguments[..], &["--resamples", "0"]].concat());
    let part = &report[report.find("By distance to training").unwrap()..];
    assert_data_eq!(
        part,
        str![[r#"
By distance to training
  distance to training  images  within 25 km  within 200 km  within 750 km  median distance  GeoScore
  up to 1 km                 1      100.00 %       100.00 %       100.00 %         0.458 km   4,998.5
  200 to 750 km              1        0.00 %         0.00 %       100.00 %         252.4 km   4,222.1
  more than 2500 km          3       33.33 %        33.33 %       100.00 %         712.8 km   3,717.3

"#]]
    );
}
