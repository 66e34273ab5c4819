//! That decoding takes no more memory than [`Photo::examine`] foretells, measured by counting what is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Cursor;

use image::codecs::gif::GifEncoder;
use image::{DynamicImage, ImageFormat};

use super::parity_tests::{file, folder};
use super::{Photo, ReadOptions};

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Counts bytes, for each thread by itself.
struct Counting;

fn count(bytes: i64) {
    let now = NOW.get() + bytes;
    NOW.set(now);
    PEAK.set(PEAK.get().max(now));
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator that counts can only be written so")]
// SAFETY: everything is left to the system's allocator; the counters neither allocate nor have destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promises are those that the system's allocator wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as above, and the memory came from there.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
}

/// Bytes that some work has allocated at a time, at most.
fn peak_of(work: impl FnOnce()) -> u64 {
    let before = NOW.get();
    PEAK.set(before);
    work();
    (PEAK.get() - before) as u64
}

fn written(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// The first segment of metadata of one JPEG, put into another.
fn with_metadata_of(jpeg: &[u8], other: &[u8]) -> Vec<u8> {
    let start = other.windows(2).position(|marker| marker == b"\xff\xe1").unwrap();
    let length = usize::from(u16::from_be_bytes([other[start + 2], other[start + 3]]));
    [&jpeg[..2], &other[start..start + 2 + length], &jpeg[2..]].concat()
}

#[test]
fn decoding_takes_no_more_than_was_foretold() {
    let (width, height) = (2200, 1500);
    let deep = image::ImageBuffer::from_fn(width, height, |x, y| {
        image::Rgba([(x * 29) as u16, (y * 43) as u16, (x ^ y) as u16, (x * y) as u16])
    });
    let deep = DynamicImage::ImageRgba16(deep);
    let (rgb, grey) =
        (DynamicImage::ImageRgb8(deep.to_rgb8()), DynamicImage::ImageLuma8(deep.to_luma8()));
    let rgba = DynamicImage::ImageRgba8(deep.to_rgba8());
    let mut gif = Vec::new();
    GifEncoder::new_with_speed(&mut gif, 30)
        .encode_frame(image::Frame::new(deep.to_rgba8()))
        .unwrap();
    let jpeg = written(&rgb, ImageFormat::Jpeg);
    let progressive = {
        let mut bytes = Vec::new();
        let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, 80);
        encoder.set_progressive(true);
        encoder
            .encode(rgb.as_bytes(), width as u16, height as u16, jpeg_encoder::ColorType::Rgb)
            .unwrap();
        bytes
    };
    let turned = file("orientation-6.jpg");
    let mut cases = vec![
        ("deep.png", written(&deep, ImageFormat::Png)),
        ("deep.tif", written(&deep, ImageFormat::Tiff)),
        ("deep-rgb.png", written(&deep.to_rgb16().into(), ImageFormat::Png)),
        ("deep-grey.png", written(&deep.to_luma_alpha16().into(), ImageFormat::Png)),
        ("float.tif", written(&deep.to_rgb32f().into(), ImageFormat::Tiff)),
        ("rgba.png", written(&rgba, ImageFormat::Png)),
        ("rgba.webp", written(&rgba, ImageFormat::WebP)),
        ("rgb.png", written(&rgb, ImageFormat::Png)),
        ("rgb.tif", written(&rgb, ImageFormat::Tiff)),
        ("rgb.bmp", written(&rgb, ImageFormat::Bmp)),
        ("rgb.webp", written(&rgb, ImageFormat::WebP)),
        ("grey.png", written(&grey, ImageFormat::Png)),
        ("grey.jpg", written(&grey, ImageFormat::Jpeg)),
        ("turned-grey.jpg", with_metadata_of(&written(&grey, ImageFormat::Jpeg), &turned)),
        ("turned.jpg", with_metadata_of(&jpeg, &turned)),
        ("turned-progressive.jpg", with_metadata_of(&progressive, &turned)),
        ("progressive.jpg", progressive),
        ("one.jpg", jpeg),
        ("one.gif", gif),
        ("one-row.png", written(&rgb.crop_imm(0, 0, width, 1), ImageFormat::Png)),
    ];
    cases.extend(std::fs::read_dir(folder().join("files")).unwrap().map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        ("a file of the parity tests", file(&name))
    }));
    let options = ReadOptions::default();
    for (name, bytes) in cases {
        let mut header = None;
        let examined = peak_of(|| header = Photo::examine(&bytes, &options).ok());
        let Some(header) = header else { continue };
        let decoded = peak_of(|| {
            // A file of the parity tests may be damaged; what it took counts all the same.
            if let Ok(photo) = Photo::decode(&bytes, &options) {
                drop((photo.square(336), photo.shrunk_to(300)));
            }
        });
        let foretold = header.memory_bytes;
        assert!(decoded <= foretold && examined <= foretold, "{name}: {decoded} of {foretold}");
        // And not much less: what is foretold is kept from others.
        let pixels = u64::from(header.width) * u64::from(header.height);
        assert!(foretold <= 3 * decoded + (10 << 20), "{name}: {decoded} of {foretold}");
        // Numbers of 32 bits take the most.
        assert!(foretold < 64 * pixels + (10 << 20), "{name}: {foretold}");
    }
}

#[test]
fn the_picture_of_the_attack_is_foretold() {
    // 7000×7000 with 16 bits and alpha: eight bytes for each pixel, and nothing beside them.
    let mut png = file("deep.png");
    let mut header = b"IHDR".to_vec();
    header.extend([7000_u32.to_be_bytes(), 7000_u32.to_be_bytes()].concat());
    header.extend([16, 6, 0, 0, 0]);
    png[12..29].copy_from_slice(&header);
    png[29..33].copy_from_slice(&super::limit_tests::crc_of(&header).to_be_bytes());
    let found = Photo::examine(&png, &ReadOptions::default()).unwrap();
    assert_eq!((found.width, found.height), (7000, 7000));
    let megabytes = found.memory_bytes >> 20;
    assert!((373..385).contains(&megabytes), "{megabytes} MB");
}
