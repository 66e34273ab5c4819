//! Pictures: what a header promises holds, limits are kept, and decoding takes no more memory than foretold.

use locdiff::photo::{Photo, ReadOptions};

use crate::{Target, allocation, contents};

const LONGEST: usize = 16 << 10;
/// Small, so that many pictures are decoded in a second.
const MOST_PIXELS: u64 = 1 << 17;
/// What errors and the measuring itself may allocate.
const SLACK: usize = 64 << 10;

pub(super) const TARGET: Target = Target {
    name: "image",
    reads: "JPEG, PNG, WebP, GIF, TIFF and BMP files",
    longest: LONGEST,
    most_bytes: 64 << 20,
    run,
    seeds: || contents("parity/photo/files", LONGEST, |_| true),
};

fn run(input: &[u8]) {
    let exact = ReadOptions { max_pixels: MOST_PIXELS, max_time: None, ..ReadOptions::default() };
    check(input, &exact);
    if input.starts_with(b"\xff\xd8") {
        check(input, &ReadOptions { fast_decode: Some(8), ..exact });
    }
}

fn check(input: &[u8], options: &ReadOptions) {
    let header = Photo::examine(input, options);
    let (photo, peak) = allocation::peak_of(|| Photo::decode(input, options));
    let Ok(header) = header else {
        assert!(photo.is_err(), "a picture was decoded whose header was rejected");
        return;
    };
    let (width, height) = (u64::from(header.width), u64::from(header.height));
    assert!(width * height <= options.max_pixels, "{header:?}");
    // The decoder of WebP reserves as much as a part of the data claims, in three bytes. It does not use what is not there.
    let reserved = if input.starts_with(b"RIFF") { 1 << 24 } else { 0 };
    let most = header.memory_bytes as usize + SLACK + reserved;
    assert!(peak <= most, "decoding took {peak} bytes, at most {most} were foretold");
    let Ok(photo) = photo else { return };
    let (w, h) = (photo.width() as usize, photo.height() as usize);
    assert_eq!(photo.rgb().len(), 3 * w * h);
    if options.fast_decode.is_none() {
        let size = (photo.width(), photo.height());
        let turned = (header.height, header.width);
        assert!(size == (header.width, header.height) || size == turned, "{size:?} {header:?}");
    }
}
