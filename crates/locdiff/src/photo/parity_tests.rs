//! Against Pillow, transformers and torchvision: `parity/photo`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::resize::Area;
use super::{Crops, Photo, PhotoError, Preprocessing, ReadOptions, gps_of};

pub(super) fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../parity/photo"))
}

pub(super) fn file(name: &str) -> Vec<u8> {
    fs::read(folder().join("files").join(name)).unwrap()
}

fn cases() -> Value {
    serde_json::from_slice(&fs::read(folder().join("cases.json")).unwrap()).unwrap()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

fn number(value: &Value, field: &str) -> u32 {
    value[field].as_u64().unwrap() as u32
}

fn decode(bytes: &[u8]) -> Result<Photo, PhotoError> {
    Photo::decode(bytes, &ReadOptions::default())
}

fn is_heif(name: &str) -> bool {
    name.ends_with(".heic") || name.ends_with(".avif")
}

/// The largest difference, in grey levels.
fn deviation(found: &[u8], expected: &[u8]) -> u8 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn files_are_read_as_pillow_reads_them() {
    let expected = fs::read(folder().join("expected.bin")).unwrap();
    let mut wrong = Vec::new();
    for case in list(&cases()["files"]) {
        let name = case["file"].as_str().unwrap();
        if is_heif(name) && cfg!(not(feature = "heif")) {
            continue;
        }
        let photo = match decode(&file(name)) {
            Ok(photo) => photo,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let size = (number(case, "width"), number(case, "height"));
        if (photo.width(), photo.height()) != size {
            wrong.push(format!("{name}: {photo:?}, expected {size:?}"));
            continue;
        }
        let expected = &expected[number(case, "offset") as usize..][..photo.rgb().len()];
        let deviation = deviation(photo.rgb(), expected);
        if deviation > number(case, "tolerance") as u8 {
            wrong.push(format!("{name}: off by {deviation}, {} allowed", case["tolerance"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_file_that_ends_early_is_damaged() {
    for case in list(&cases()["files"]) {
        let name = case["file"].as_str().unwrap();
        // What is left of an animation is its first frame, and of two pictures the first.
        if name.starts_with("animated") || name.starts_with("two-") || is_heif(name) {
            continue;
        }
        let bytes = file(name);
        for share in [0.3, 0.5, 0.8, 0.95] {
            let cut = (bytes.len() as f64 * share) as usize;
            match decode(&bytes[..cut]) {
                Err(PhotoError::Damaged { .. }) => {}
                // A TIFF's table of contents may stand at its end.
                Err(_) if name.ends_with(".tif") => {}
                other => panic!("{name} cut to {cut} of {} bytes: {other:?}", bytes.len()),
            }
        }
    }
}

#[test]
fn a_jpeg_whose_data_stops_before_its_end_marker_is_damaged() {
    for name in ["420.jpg", "444.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg", "rgb.jpg"] {
        let bytes = file(name);
        assert!(bytes.ends_with(b"\xff\xd9"));
        let data = bytes.windows(2).rposition(|marker| marker == b"\xff\xda").unwrap();
        let mut cut = bytes[..data + (bytes.len() - data) / 2].to_vec();
        // Not within a stuffed byte.
        while cut.last() == Some(&0xff) {
            cut.pop();
        }
        cut.extend(b"\xff\xd9");
        let error = decode(&cut).unwrap_err();
        assert_eq!(error.kind(), "damaged", "{name}: {error}");
    }
    // Without its end marker, a picture may or may not be whole.
    let bytes = file("420.jpg");
    let error = decode(&bytes[..bytes.len() - 2]).unwrap_err();
    assert!(error.to_string().contains("without its end marker"), "{error}");
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let all = cases();
    // A linear congruential generator is random enough to break files.
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    for case in list(&all["files"]) {
        let name = case["file"].as_str().unwrap();
        let bytes = file(name);
        for _ in 0..40 {
            let mut broken = bytes.clone();
            for _ in 0..1 + random(4) {
                let place = random(broken.len());
                broken[place] = random(256) as u8;
            }
            if let Err(error) = decode(&broken) {
                assert!(!error.to_string().contains("internal error"), "{name}: {error}");
            }
        }
    }
}

#[test]
fn heif_is_recognised() {
    for name in ["rgb.heic", "rgb.avif"] {
        let result = decode(&file(name));
        if cfg!(feature = "heif") {
            assert!(result.is_ok(), "{name}: {result:?}");
            continue;
        }
        let error = result.unwrap_err();
        let PhotoError::Unsupported { format, .. } = &error else { panic!("{error}") };
        assert!(name.ends_with(&format.to_lowercase()), "{error}");
        assert!(error.to_string().contains("feature `heif`"), "{error}");
    }
}

#[test]
fn positions_are_read() {
    for case in list(&cases()["gps"]) {
        let name = case["file"].as_str().unwrap();
        let found = gps_of(&file(name));
        match case["position"].as_array() {
            None => assert_eq!(found, None, "{name}"),
            Some(expected) => {
                let (latitude, longitude) = found.unwrap();
                assert!((latitude - expected[0].as_f64().unwrap()).abs() < 1e-9, "{name}");
                assert!((longitude - expected[1].as_f64().unwrap()).abs() < 1e-9, "{name}");
            }
        }
    }
    assert_eq!(gps_of(b"no picture"), None);
}

/// Where other programs do not look either, and where a place is not written.
#[test]
fn exif_behind_the_first_scan_is_not_read() {
    let photo = file("gps-paris.jpg");
    let start = photo.windows(6).position(|part| part == b"Exif\0\0").unwrap() - 4;
    let length = u16::from_be_bytes([photo[start + 2], photo[start + 3]]);
    let (behind, end) = (start + 2 + usize::from(length), photo.len() - 2);
    assert_eq!(photo[end..], [0xff, 0xd9]);
    let parts = [&photo[..start], &photo[behind..end], &photo[start..behind], &photo[end..]];
    assert!(gps_of(&photo).is_some());
    assert_eq!(gps_of(&parts.concat()), None);
}

/// The same picture as in `generate.py`.
fn pattern(width: u32, height: u32) -> Photo {
    let value = |x: u32, y: u32, c: u32| {
        let checks = 40 * (((x >> 4) ^ (y >> 4)) & 1);
        ((x * (3 + c) + y * (5 - c) + ((x * y) >> 4) + checks) & 255) as u8
    };
    let rgb = (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| value(x, y, c))))
        .collect();
    Photo::from_rgb(width, height, rgb).unwrap()
}

fn processor(name: &str) -> Preprocessing {
    match name {
        "clip" => Preprocessing::CLIP,
        "clip-336" => Preprocessing::CLIP_336,
        "clip-200" => Preprocessing { shortest_side: 200, ..Preprocessing::CLIP },
        "clip-199" => Preprocessing { shortest_side: 199, ..Preprocessing::CLIP },
        "dino" => Preprocessing::DINO_V2,
        _ => panic!("{name}"),
    }
}

#[test]
fn pictures_are_prepared_as_transformers_prepare_them() {
    let all = cases();
    let stride = number(&all, "stride") as usize;
    let prepared = fs::read(folder().join("prepared.bin")).unwrap();
    for case in list(&all["preprocessing"]) {
        let preprocessing = processor(case["processor"].as_str().unwrap());
        let bytes = prepared[number(case, "offset") as usize..].as_chunks::<4>().0;
        let expected = bytes.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let (exact, count) = same_numbers(&preprocessing, case, stride, expected);
        assert!(exact as f64 > 0.999 * count as f64, "{case}: {exact} of {count} the same");
    }
}

/// How many numbers of a picture are those that are expected, and how many there are. None is off by more than a grey level.
fn same_numbers(
    preprocessing: &Preprocessing,
    case: &Value,
    stride: usize,
    expected: impl Iterator<Item = f32>,
) -> (usize, usize) {
    let (width, height) = (number(case, "width"), number(case, "height"));
    let found = preprocessing.apply(&pattern(width, height));
    let plane = found.len() / 3;
    let places = (0..found.len()).step_by(stride);
    let (mut exact, count) = (0, places.len());
    for (place, expected) in places.zip(expected) {
        // One grey level is this much after normalising.
        let level = 1.0 / (255.0 * preprocessing.std[place / plane]);
        let levels = (found[place] - expected).abs() / level;
        let at = format!("{width}×{height}, at {place}");
        assert!(levels < 1.001, "{at}: {} for {expected}", found[place]);
        exact += usize::from(levels < 1e-4);
    }
    (exact, count)
}

/// The square first, then its size.
#[test]
fn pictures_are_prepared_as_plonk_prepares_them() {
    let path = folder().join("../plonk/pictures.json");
    let cases: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for case in list(&cases) {
        let expected: Vec<f32> = serde_json::from_value(case["numbers"].clone()).unwrap();
        let stride = number(case, "stride") as usize;
        let (exact, count) =
            same_numbers(&Preprocessing::PLONK, case, stride, expected.iter().copied());
        assert_eq!(count, expected.len());
        assert!(exact as f64 > 0.99 * count as f64, "{exact} of {count} the same");
    }
}

#[test]
fn views_are_cut_as_torchvision_cuts_them() {
    let all = cases();
    let stride = number(&all, "stride") as usize;
    let prepared = fs::read(folder().join("prepared.bin")).unwrap();
    // Grey levels come out as they are.
    let plain = Preprocessing::plain(224, 224, [0.0; 3], [1.0 / 255.0; 3]);
    for case in list(&all["views"]) {
        let found: Vec<u8> = if case["kind"] == "ten-crop" {
            let photo = pattern(number(case, "width"), number(case, "height"));
            let numbers = Crops::TEN_CROP.prepare(&photo, &plain);
            // [view, channel, pixel] to [view, pixel, channel]
            let views = numbers.chunks(3 * 224 * 224);
            let level = |view: &[f32], i: usize| view[i % 3 * 224 * 224 + i / 3].round() as u8;
            views.flat_map(|view| (0..view.len()).map(move |i| level(view, i))).collect()
        } else {
            let area: Vec<u32> = serde_json::from_value(case["area"].clone()).unwrap();
            let area =
                Area { left: area[0].into(), top: area[1].into(), width: area[2], height: area[3] };
            pattern(300, 200).cut_and_resized(area, 224)
        };
        let found: Vec<u8> = found.into_iter().step_by(stride).collect();
        let expected = &prepared[number(case, "offset") as usize..][..found.len()];
        assert!(deviation(&found, expected) <= 1, "{case}");
    }
}
