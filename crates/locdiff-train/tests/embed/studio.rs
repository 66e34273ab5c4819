//! Pictures, tars, and an encoder small enough to reckon by hand.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageFormat, Rgb, RgbImage};
use locdiff::encoders::{Embedder, EncoderRecord};
use locdiff::photo::{Crops, Preprocessing};
use locdiff_train::{EmbedEvent, EmbedOptions, EmbedSummary, SkippedImage, embed};

pub(crate) const WIDTH: usize = 5;
const SIDE: u32 = 8;

/// Means of the channels, and differences of halves. The last number depends on the batch, as
/// rounding errors do: whoever makes other batches makes other rows.
pub(crate) struct Means {
    record: EncoderRecord,
    preprocessing: Preprocessing,
}

impl Means {
    pub(crate) fn new(identity: &str) -> Means {
        let preprocessing = Preprocessing::plain(SIDE, SIDE, [0.0; 3], [1.0; 3]);
        Means { record: EncoderRecord::of_identity(identity), preprocessing }
    }
}

impl Embedder for Means {
    fn record(&self) -> &EncoderRecord {
        &self.record
    }

    fn width(&self) -> usize {
        WIDTH
    }

    fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
        let pictures = pixels.chunks_exact(self.preprocessing.len());
        let count = pictures.len();
        let mut numbers = Vec::new();
        for (index, picture) in pictures.enumerate() {
            let mean = |numbers: &[f32]| numbers.iter().sum::<f32>() / numbers.len() as f32;
            let channels: Vec<&[f32]> = picture.chunks_exact(picture.len() / 3).collect();
            numbers.extend(channels.iter().map(|channel| mean(channel)));
            let (top, bottom) = channels[0].split_at(channels[0].len() / 2);
            numbers.push(mean(top) - mean(bottom));
            numbers.push((1000 * count + index) as f32 / 1024.0);
        }
        numbers
    }
}

/// A picture whose colours tell its number.
pub(crate) fn picture(number: u32) -> RgbImage {
    RgbImage::from_fn(12, 10, |_, y| {
        Rgb([(7 * number % 200 + 5 * y) as u8, (number % 256) as u8, (number / 256) as u8])
    })
}

pub(crate) fn encoded(number: u32, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture(number).write_to(&mut bytes, format).expect("a picture is encoded");
    bytes.into_inner()
}

pub(crate) fn png(number: u32) -> Vec<u8> {
    encoded(number, ImageFormat::Png)
}

/// A JPEG with GPS coordinates.
pub(crate) fn jpeg_at(number: u32, latitude: f64, longitude: f64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 95);
    encoder.set_exif_metadata(exif(latitude, longitude)).expect("JPEG has Exif");
    let picture = picture(number);
    let (width, height) = picture.dimensions();
    encoder
        .write_image(&picture, width, height, ExtendedColorType::Rgb8)
        .expect("a picture is encoded");
    bytes
}

/// The least TIFF with a GPS directory.
fn exif(latitude: f64, longitude: f64) -> Vec<u8> {
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    let field = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
        let mut field = [tag.to_le_bytes(), kind.to_le_bytes()].concat();
        field.extend(count.to_le_bytes());
        field.extend(value);
        field
    };
    bytes.extend(1_u16.to_le_bytes());
    bytes.extend(field(0x8825, 4, 1, 26_u32.to_le_bytes()));
    bytes.extend([0; 4]);
    bytes.extend(4_u16.to_le_bytes());
    let letter = |is_negative: bool, letters: [u8; 2]| [letters[usize::from(is_negative)], 0, 0, 0];
    bytes.extend(field(1, 2, 2, letter(latitude < 0.0, *b"NS")));
    bytes.extend(field(2, 5, 3, 80_u32.to_le_bytes()));
    bytes.extend(field(3, 2, 2, letter(longitude < 0.0, *b"EW")));
    bytes.extend(field(4, 5, 3, 104_u32.to_le_bytes()));
    bytes.extend([0; 4]);
    for angle in [latitude, longitude] {
        let degrees = (angle.abs() * 1e6).round() as u32;
        for number in [degrees, 1_000_000, 0, 1, 0, 1] {
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes
}

pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
    fs::write(path, bytes).expect("a file is written");
}

/// A folder of PNGs `000.png` …, every seventh of them in a deeper folder.
pub(crate) fn write_folder(folder: &Path, count: u32) {
    for number in 0..count {
        let name = match number % 7 {
            0 => format!("deep/er/{number:03}.png"),
            _ => format!("{number:03}.png"),
        };
        write(&folder.join(name), png(number));
    }
}

pub(crate) fn write_tar(path: &Path, members: &[(&str, Vec<u8>)]) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
    let mut builder = tar::Builder::new(fs::File::create(path).expect("a tar is made"));
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &bytes[..]).expect("a member is written");
    }
    builder.finish().expect("the tar is finished");
}

/// Small batches and parts, so that there are several.
pub(crate) fn options(out: &Path) -> EmbedOptions {
    EmbedOptions {
        batch: 4,
        rows_per_shard: Some(10),
        decode_threads: 3,
        views: Crops::Single,
        ..EmbedOptions::new(out)
    }
}

/// Embeds all of it, and lists what was skipped.
pub(crate) fn run(input: &Path, options: &EmbedOptions) -> (EmbedSummary, Vec<SkippedImage>) {
    let mut skipped = Vec::new();
    let summary = embed(input, &Means::new("means"), options, &mut |event| {
        if let EmbedEvent::Skipped(image) = event {
            skipped.push(image.clone());
        }
    });
    (summary.expect("it is embedded"), skipped)
}
