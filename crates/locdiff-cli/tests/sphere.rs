//! The program as a user meets it: stdout, stderr and exit code.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn locdiff(arguments: &[&str], input: &str) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_locdiff"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that stops reading early is not a failure of the test.
    let _ = process.stdin.take().expect("stdin is piped").write_all(input.as_bytes());
    process.wait_with_output().expect("the program ends")
}

fn stdout(arguments: &[&str], input: &str) -> String {
    let output = locdiff(arguments, input);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} failed: {errors}");
    assert_eq!(errors, "", "{arguments:?}: a quiet success");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What goes to stderr, with exit code `code` and nothing on stdout.
fn failure(arguments: &[&str], input: &str, code: i32) -> String {
    let output = locdiff(arguments, input);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

fn temporary(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"))
}

const PLACES: &str = "48.8566,2.3522\n-33.8568,151.2153\n90,0\n0.5,-180\n";
const DECODED: &str = "48.8566000,2.3522000\n-33.8568000,151.2153000\n90.0000000,";

#[test]
fn version_says_what_was_built() {
    let version = stdout(&["--version"], "");
    assert!(version.starts_with(concat!("locdiff ", env!("CARGO_PKG_VERSION"), " (")), "{version}");
    assert!(version.contains(std::env::consts::ARCH), "{version}");
}

#[test]
fn places_survive_the_round_trip_in_every_format() {
    for format in ["text", "json", "npy"] {
        let file = temporary(&format!("round-trip.{format}"));
        stdout(&["sphere", "encode", "--format", format, "-o", &file], PLACES);
        let decoded = stdout(&["sphere", "decode", "-i", &file], "");
        assert!(decoded.starts_with(DECODED), "{format}: {decoded}");
        assert_eq!(decoded.lines().count(), 4);
        // The pole's longitude is arbitrary, the antimeridian's sign is not.
        assert!(decoded.ends_with("0.5000000,-180.0000000\n"), "{format}: {decoded}");
    }
}

#[test]
fn what_decode_writes_encode_reads() {
    for format in ["text", "npy", "json"] {
        let (first, second) =
            (temporary(&format!("a.{format}")), temporary(&format!("b.{format}")));
        let encode = ["sphere", "encode", "-L", "5", "--format", format];
        stdout(&[&encode[..], &["-o", &first, "12.5,-7.25"]].concat(), "");
        stdout(&["sphere", "decode", "--format", format, "-i", &first, "-o", &second], "");
        stdout(&[&encode[..], &["-i", &second, "-o", &first]].concat(), "");
        assert_eq!(stdout(&["sphere", "decode", "-i", &first], ""), "12.5000000,-7.2500000\n");
    }
}

#[test]
fn the_first_coefficients_are_the_textbooks() {
    // Y_00 = 1/√4π; Y_1,-1, Y_10, Y_11 = √(3/4π)·(y, z, x): here (y, z, x) = (0, 0, 1).
    let text = stdout(&["sphere", "encode", "-L", "1", "0,0"], "");
    let numbers: Vec<f64> = text.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    let expected = [0.282_094_791_773_878_14, 0.0, 0.0, 0.488_602_511_902_919_9];
    for (number, expected) in numbers.iter().zip(expected) {
        assert!((number - expected).abs() < 1e-15, "{text}");
    }
    assert_eq!(numbers.len(), 4);
}

#[test]
fn json_names_its_numbers() {
    let line = stdout(&["sphere", "encode", "-L", "2", "--json", "-9.5,10"], "");
    let encoded: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(encoded["latitude"], -9.5);
    assert_eq!(encoded["max_degree"], 2);
    assert_eq!(encoded["coefficients"].as_array().map(Vec::len), Some(9));
    let line = stdout(&["sphere", "decode", "--json", "--modes", "2"], &line);
    let decoded: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(decoded["row"], 0);
    let modes = decoded["modes"].as_array().expect("modes");
    assert!(modes.len() == 2 && modes[0]["value"].as_f64() > modes[1]["value"].as_f64());
    assert!((modes[0]["latitude"].as_f64().expect("a number") + 9.5).abs() < 1e-9);
}

#[test]
fn input_may_be_json_or_have_a_heading() {
    let expected = stdout(&["sphere", "encode", "-L", "3", "1,2", "3,4"], "");
    for input in [
        "latitude,longitude\n1,2\n\n# a comment\n3 4\n",
        "[[1, 2], [3, 4]]",
        "\n [1, 2]\n[3, 4]",
        "\u{feff}1,2\n3,4\n",
        r#"[{"latitude": 1, "longitude": 2}, {"latitude": 3, "longitude": 4}]"#,
    ] {
        assert_eq!(stdout(&["sphere", "encode", "-L", "3"], input), expected, "{input}");
    }
}

#[test]
fn modes_are_a_table() {
    // At even degrees the antipode has a low peak of its own.
    let encoded = stdout(&["sphere", "encode", "-L", "8", "10,20", "-0.5 -60.25"], "");
    let table = stdout(&["sphere", "decode", "--modes", "3"], &encoded);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "row,rank,latitude,longitude,value");
    assert!(lines[1].starts_with("0,1,10.0000000,20.0000000,6.4457"), "{table}");
    assert!(lines[2].starts_with("0,2,-10.0000000,-160.0000000,0.716"), "{table}");
    assert!(lines[3].starts_with("1,1,-0.5000000,-60.2500000,6.4457"), "{table}");
}

#[test]
fn a_file_may_be_decoded_onto_itself_and_never_half_written() {
    let file = temporary("in-place.npy");
    stdout(&["sphere", "encode", "-L", "4", "-o", &file, "1,2", "3,4"], "");
    stdout(&["sphere", "decode", "-i", &file, "-o", &file], "");
    assert_eq!(stdout(&["sphere", "encode", "-L", "0", "-i", &file], "").lines().count(), 2);
    let file = temporary("failed.txt");
    failure(&["sphere", "decode", "-o", &file], "1 0 0 1\n1 0 x 1\n", 1);
    assert!(!std::path::Path::new(&file).exists());
    assert!(!std::path::Path::new(&format!("{file}.partial")).exists());
}

#[test]
fn the_papers_decoders_stay_near() {
    let encoded = stdout(&["sphere", "encode", "-L", "12", "10,20"], "");
    let near =
        stdout(&["sphere", "decode", "--decoder", "paper-mode", "--anchors", "5000"], &encoded);
    let (latitude, longitude) = near.trim().split_once(',').expect("a place");
    let off = |text: &str, truth: f64| (text.parse::<f64>().expect("a number") - truth).abs();
    assert!(off(latitude, 10.0) < 3.0 && off(longitude, 20.0) < 3.0, "{near}");
    let exact =
        stdout(&["sphere", "decode", "--decoder", "paper-kl", "--anchors", "50000"], &encoded);
    let (latitude, longitude) = exact.trim().split_once(',').expect("a place");
    assert!(off(latitude, 10.0) < 1e-3 && off(longitude, 20.0) < 1e-3, "{exact}");
}

#[test]
fn errors_say_what_was_wrong_and_where() {
    for (arguments, input, message) in [
        (
            &["encode", "91,0"][..],
            "",
            "cannot read the places: latitude 91 is not between -90 and 90 degrees",
        ),
        (
            &["encode", "-91,0"],
            "",
            "cannot read the places: latitude -91 is not between -90 and 90 degrees",
        ),
        (
            &["encode", "Paris"],
            "",
            "cannot read the places: `Paris` is not a place: write it as LATITUDE,LONGITUDE in degrees, for example 48.86,2.35",
        ),
        (
            &["encode"],
            "1,2\n\n95,3\n",
            "cannot read places from stdin: line 3: latitude 95 is not between -90 and 90 degrees",
        ),
        (
            &["encode"],
            "[1, 2, 3, 4]",
            "cannot read places from stdin: a place has two numbers, latitude and longitude; this row has 4",
        ),
        (&["encode", "-L", "5000", "1,2"], "", "--max-degree 5000 is too high: use at most 3000"),
        (
            &["decode"],
            "1 2 3\n",
            "row 0: 3 coefficients are not (max_degree + 1)² for any max_degree: the nearest lengths are 1 and 4",
        ),
        (&["decode"], "1 0 0 nan\n", "row 0: coefficient 3 is NaN, not a finite number"),
        (
            &["decode"],
            "1\n",
            "row 0: a single coefficient is a constant function without a maximum",
        ),
        (&["decode"], "1 2 x 4\n", "row 0: line 1: `x` is not a number"),
        (&["decode"], "1 2 3,,4\n", "row 0: line 1: `1 2 3` is not a number"),
        (
            &["encode"],
            "48.86,,7\n",
            "cannot read places from stdin: line 1: `48.86,,7` is not a place: write it as LATITUDE,LONGITUDE in degrees, for example 48.86,2.35",
        ),
        (
            &["decode", "--anchors", "9"],
            "",
            "--anchors is for the paper's decoders: choose one with --decoder",
        ),
        (
            &["decode"],
            "{\"a\": 1}",
            "row 0: the JSON object has no `coefficients`; `locdiff sphere encode --json` writes them",
        ),
        (
            &["decode", "-i", "no such file"],
            "",
            "cannot open no such file: No such file or directory (os error 2)",
        ),
        (
            &["decode", "--modes", "2", "--decoder", "paper-kl"],
            "",
            "the paper's decoders give one place per row: leave out --modes or --decoder",
        ),
    ] {
        let error = failure(&[&["sphere"], arguments].concat(), input, 1);
        assert_eq!(error, format!("locdiff: {message}\n"));
    }
    assert!(failure(&["sphere", "encode", "--nonsense"], "", 2).contains("--nonsense"));
}

#[test]
fn plot_draws_a_picture() {
    for (view, ending) in [("globe", "png"), ("equal-earth", "svg"), ("equirectangular", "png")] {
        let file = temporary(&format!("plot-{view}.{ending}"));
        let arguments =
            ["sphere", "plot", "-L", "8", "--width", "300", "--projection", view, "-o", &file];
        stdout(&[&arguments[..], &["-17.7,178.0", "48.86,2.35"]].concat(), "");
        let bytes = std::fs::read(&file).expect("the picture");
        let start: &[u8] = if ending == "png" { b"\x89PNG" } else { b"<" };
        assert!(bytes.starts_with(start) && bytes.len() > 5000, "{view}");
    }
    let error = failure(&["sphere", "plot", "1,2", "-o", "map.gif"], "", 1);
    assert_eq!(error, "locdiff: --output map.gif must end in .png or .svg\n");
    let file = temporary("none.png");
    assert!(
        failure(&["sphere", "plot", "-i", "-", "--row", "3", "-o", &file], "1 0 0 0\n", 1)
            .contains("no row 3")
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_locdiff"))
        .args(["sphere", "encode", "-L", "300", "1,2", "3,4", "5,6"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(process.stdout.take());
    let output = process.wait_with_output().expect("the program ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Counts that would size memory or loops, files without an end, and headers that lie.
#[test]
fn sizes_from_outside_have_limits() {
    let anchors =
        ["sphere", "decode", "--decoder", "paper-kl", "--anchors", "18446744073709551615"];
    assert!(failure(&anchors, "", 2).contains("use a whole number from 1 to 10000000"));
    #[cfg(unix)]
    {
        let error = failure(&["sphere", "decode", "-i", "/dev/zero"], "", 1);
        assert_eq!(error, "locdiff: row 0: line 1 is longer than 268435456 bytes\n");
    }
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808, 2), }\n";
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend((header.len() as u16).to_le_bytes());
    array.extend(header.as_bytes());
    let file = temporary("lie.npy");
    std::fs::write(&file, array).expect("a file is written");
    for command in ["encode", "decode"] {
        let error = failure(&["sphere", command, "-i", &file], "", 1);
        assert!(error.contains("shape [9223372036854775808, 2] is no file's"), "{error}");
    }
    #[cfg(feature = "models")]
    for option in ["--resamples", "--permutations"] {
        let many =
            ["evaluate", "--predictions", "p.csv", "--truth", "t.csv", option, "1000000000000"];
        assert!(failure(&many, "", 2).contains("use a whole number from 0 to"));
    }
}
