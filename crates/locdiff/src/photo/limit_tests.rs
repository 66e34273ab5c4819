//! Files that are made to cost much: an error, quickly, and without the memory they ask for.

use std::io::Cursor;
use std::time::{Duration, Instant};

use image::{GrayImage, ImageFormat};

use super::parity_tests::file;
use super::{Photo, PhotoError, ReadOptions};

/// The kind of error that a file is, found within a second.
fn refused(bytes: &[u8], options: &ReadOptions) -> &'static str {
    let started = Instant::now();
    let error = Photo::decode(bytes, options).expect_err("that must not be read");
    assert!(started.elapsed() < Duration::from_secs(1), "{error}");
    error.kind()
}

/// A file with some bytes replaced.
fn patched(name: &str, changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = file(name);
    for (place, new) in changes {
        bytes[*place..place + new.len()].copy_from_slice(new);
    }
    bytes
}

#[test]
fn sizes_are_checked_before_memory_is_asked_for() {
    let defaults = ReadOptions::default();
    let wide = 50_000_u32;
    let png = {
        let mut header = b"IHDR".to_vec();
        header.extend([wide.to_be_bytes(), wide.to_be_bytes()].concat());
        header.extend([8, 2, 0, 0, 0]);
        let checksum = crc_of(&header);
        let mut png = patched("rgb.png", &[(12, &header)]);
        png[29..33].copy_from_slice(&checksum.to_be_bytes());
        png
    };
    assert_eq!(refused(&png, &defaults), "too-large");

    let size = 60_000_u16.to_le_bytes();
    assert_eq!(
        refused(&patched("animated.gif", &[(6, &size), (8, &size)]), &defaults),
        "too-large"
    );

    let size = wide.to_le_bytes();
    assert_eq!(refused(&patched("rgb.bmp", &[(18, &size), (22, &size)]), &defaults), "too-large");

    let jpeg = file("420.jpg");
    let frame = jpeg.windows(2).position(|marker| marker == b"\xff\xc0").unwrap();
    let jpeg = patched("420.jpg", &[(frame + 5, &[0xff, 0xdc, 0xff, 0xdc])]);
    assert_eq!(refused(&jpeg, &defaults), "too-large");

    // Entries of a table: tag, type, count and value in 12 bytes. Width, height, and the rows
    // of a strip, as one strip with all of them.
    let mut tiff = file("rgb.tif");
    let table = u32::from_le_bytes(tiff[4..8].try_into().unwrap()) as usize + 2;
    for entry in tiff[table..].chunks_exact_mut(12).take(10) {
        if matches!(u16::from_le_bytes([entry[0], entry[1]]), 256 | 257 | 278) {
            entry[2] = 4;
            entry[8..].copy_from_slice(&size);
        }
    }
    assert_eq!(refused(&tiff, &defaults), "too-large");

    // 14 bits each for width and height less one, after the signature byte.
    let webp = file("rgb.webp");
    let start = webp.windows(4).position(|name| name == b"VP8L").unwrap() + 9;
    assert_eq!(
        refused(&patched("rgb.webp", &[(start, &[0xfe, 0xbf, 0xff, 0x0f])]), &defaults),
        "too-large"
    );
}

/// A JPEG inside of a TIFF may have any size, whatever the TIFF's own header states.
#[test]
fn jpegs_in_a_tiff_are_rejected() {
    let mut tiff = file("rgb.tif");
    let entry = tiff.windows(8).position(|entry| entry == [3, 1, 3, 0, 1, 0, 0, 0]).unwrap();
    assert!(Photo::decode(&tiff, &ReadOptions::default()).is_ok());
    for method in [6, 7] {
        tiff[entry + 8] = method;
        let error = Photo::decode(&tiff, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("TIFF with JPEG compression"), "{error}");
        assert!(Photo::examine(&tiff, &ReadOptions::default()).is_err());
    }
}

/// 8 million values in a file of 5 kB: the decoder would reserve 256 MB for them.
#[test]
fn tags_of_a_tiff_have_no_more_values_than_the_file() {
    let tiff = file("rgb.tif");
    // How many samples a pixel has: three, once.
    let entry = tiff.windows(8).position(|entry| entry == [0x15, 1, 3, 0, 1, 0, 0, 0]).unwrap();
    for count in [0x007d_0001_u32, 1 << 18, u32::MAX] {
        let mut changed = tiff.clone();
        changed[entry + 4..entry + 8].copy_from_slice(&count.to_le_bytes());
        let error = Photo::decode(&changed, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("tag 277"), "{error}");
        // Also where the file is long enough.
        changed.resize(1 << 20, 0);
        assert!(Photo::examine(&changed, &ReadOptions::default()).is_err());
    }
}

/// The checksum of a PNG's chunk.
pub(super) fn crc_of(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn limits_are_the_callers() {
    let bytes = file("rgb.png");
    let pixels = 40 * 29;
    let at = |max_pixels| ReadOptions { max_pixels, ..ReadOptions::default() };
    assert!(Photo::decode(&bytes, &at(pixels)).is_ok());
    assert_eq!(refused(&bytes, &at(pixels - 1)), "too-large");
    let at = |max_bytes| ReadOptions { max_bytes, ..ReadOptions::default() };
    assert!(Photo::decode(&bytes, &at(bytes.len() as u64)).is_ok());
    assert_eq!(refused(&bytes, &at(bytes.len() as u64 - 1)), "too-large");
    let path = super::parity_tests::folder().join("files/rgb.png");
    assert_eq!(Photo::open_with(&path, &at(100)).unwrap_err().kind(), "too-large");
    assert_eq!(Photo::open(&path).unwrap().width(), 40);
    let error = Photo::open(path.with_file_name("nothing.png")).unwrap_err();
    assert!(matches!(&error, PhotoError::Unreadable { .. }));
    assert!(error.to_string().contains("nothing.png"));
}

#[test]
fn thousands_of_scans_are_refused() {
    let jpeg = file("progressive.jpg");
    let scan = jpeg.windows(2).rposition(|marker| marker == b"\xff\xda").unwrap();
    let end = jpeg.len() - 2;
    let mut bomb = jpeg[..end].to_vec();
    (0..5000).for_each(|_| bomb.extend(&jpeg[scan..end]));
    bomb.extend(b"\xff\xd9");
    assert_eq!(refused(&bomb, &ReadOptions::default()), "too-large");
}

#[test]
fn time_runs_out_in_every_format() {
    let options = ReadOptions { max_time: Some(Duration::ZERO), ..ReadOptions::default() };
    for name in
        ["420.jpg", "progressive.jpg", "rgb.png", "rgb.webp", "animated.gif", "rgb.tif", "rgb.bmp"]
    {
        assert_eq!(refused(&file(name), &options), "too-slow", "{name}");
    }
    let fast = ReadOptions { fast_decode: Some(8), ..options };
    assert_eq!(refused(&file("420.jpg"), &fast), "too-slow");
}

#[test]
fn decoding_stops_when_time_is_over() {
    let image = GrayImage::from_fn(6000, 4000, |x, y| image::Luma([(x ^ y) as u8]));
    let options =
        ReadOptions { max_time: Some(Duration::from_millis(3)), ..ReadOptions::default() };
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Tiff] {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        let bytes = bytes.into_inner();
        let started = Instant::now();
        Photo::decode(&bytes, &ReadOptions::default()).unwrap();
        let whole = started.elapsed();
        let started = Instant::now();
        let error = Photo::decode(&bytes, &options).unwrap_err();
        assert_eq!(error.kind(), "too-slow", "{format:?}: {error}");
        // An uncompressed TIFF is read faster than the clock is looked at.
        assert!(format == ImageFormat::Tiff || started.elapsed() < whole, "{format:?}");
    }
}

#[test]
fn fast_decoding_keeps_the_picture() {
    let large = image::RgbImage::from_fn(1003, 805, |x, y| {
        image::Rgb([(x / 4) as u8, (y / 4) as u8, ((x + y) / 8) as u8])
    });
    let mut bytes = Cursor::new(Vec::new());
    large.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
    let bytes = bytes.into_inner();
    for (side, size) in [(806, (1003, 805)), (403, (502, 403)), (200, (251, 202)), (1, (126, 101))]
    {
        let options = ReadOptions { fast_decode: Some(side), ..ReadOptions::default() };
        let photo = Photo::decode(&bytes, &options).unwrap();
        assert_eq!((photo.width(), photo.height()), size);
        let shrink = 1003.0 / f64::from(size.0);
        let (x, y) = (size.0 / 2, size.1 / 3);
        let found = &photo.rgb()[3 * (y * size.0 + x) as usize..][..3];
        let there = |place: u32| ((f64::from(place) + 0.5) * shrink) as u32;
        let expected = large.get_pixel(there(x), there(y)).0;
        assert!(
            found.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 6),
            "{found:?} {expected:?}"
        );
    }
}
