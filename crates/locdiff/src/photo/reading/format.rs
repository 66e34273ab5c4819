//! Which kind of picture some bytes are, by their content: names of files lie.

use std::fmt;

/// The kinds of pictures that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PhotoFormat {
    /// JPEG, baseline or progressive.
    Jpeg,
    /// PNG; of an animation, the still picture.
    Png,
    /// WebP; of an animation, the first frame.
    WebP,
    /// GIF; of an animation, the first frame.
    Gif,
    /// TIFF, the first page.
    Tiff,
    /// Windows bitmap.
    Bmp,
    /// HEIC, and HEIF with whatever codec: with the feature `heif`.
    Heic,
    /// AVIF: with the feature `heif`.
    Avif,
}

/// Why bytes are none of those kinds.
#[derive(Debug)]
pub(in crate::photo) enum UnknownFormat {
    /// A kind that has a name, and isn't read.
    NotRead(&'static str),
    /// None of the known kinds.
    NotAnImage { beginning: String },
}

impl fmt::Display for PhotoFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            PhotoFormat::Jpeg => "JPEG",
            PhotoFormat::Png => "PNG",
            PhotoFormat::WebP => "WebP",
            PhotoFormat::Gif => "GIF",
            PhotoFormat::Tiff => "TIFF",
            PhotoFormat::Bmp => "BMP",
            PhotoFormat::Heic => "HEIC",
            PhotoFormat::Avif => "AVIF",
        })
    }
}

impl PhotoFormat {
    /// Whether these are the first bytes of a picture; some hundred are enough.
    pub fn begins(bytes: &[u8]) -> bool {
        // Two letters are too few to tell a bitmap from a text: its size stands behind them, and zeros.
        let is_text = bytes.starts_with(b"BM") && bytes.get(6..10) != Some(&[0; 4]);
        !is_text && PhotoFormat::of(bytes).is_ok()
    }

    /// The kind of picture that some bytes begin.
    pub(in crate::photo) fn of(bytes: &[u8]) -> Result<PhotoFormat, UnknownFormat> {
        const MAGIC: [(&[u8], PhotoFormat); 9] = [
            (b"\xff\xd8\xff", PhotoFormat::Jpeg),
            (b"\x89PNG\r\n\x1a\n", PhotoFormat::Png),
            (b"GIF87a", PhotoFormat::Gif),
            (b"GIF89a", PhotoFormat::Gif),
            (b"II*\0", PhotoFormat::Tiff),
            (b"MM\0*", PhotoFormat::Tiff),
            // BigTIFF.
            (b"II+\0", PhotoFormat::Tiff),
            (b"MM\0+", PhotoFormat::Tiff),
            (b"BM", PhotoFormat::Bmp),
        ];
        if let Some((_, format)) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
            return Ok(*format);
        }
        if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            return Ok(PhotoFormat::WebP);
        }
        if let Some(format) = of_brands(bytes) {
            return Ok(format);
        }
        Err(match known_but_unread(bytes) {
            Some(format) => UnknownFormat::NotRead(format),
            None => UnknownFormat::NotAnImage { beginning: beginning_of(bytes) },
        })
    }
}

/// HEIC and AVIF are the same container, told apart by the brands in its first box.
fn of_brands(bytes: &[u8]) -> Option<PhotoFormat> {
    if bytes.get(4..8)? != b"ftyp" {
        return None;
    }
    let length = u32::from_be_bytes(bytes[..4].try_into().ok()?) as usize;
    let brands = bytes.get(8..length.min(bytes.len()))?;
    // Between the major brand and the compatible ones stands a version.
    let brands = || brands.chunks_exact(4).enumerate().filter(|(i, _)| *i != 1).map(|(_, b)| b);
    if brands().any(|brand| matches!(brand, b"avif" | b"avis")) {
        return Some(PhotoFormat::Avif);
    }
    let heif = |brand: &[u8]| {
        matches!(
            brand,
            b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" | b"mif1" | b"msf1"
        )
    };
    brands().any(heif).then_some(PhotoFormat::Heic)
}

fn known_but_unread(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 8] = [
        (b"\xff\x0a", "JPEG XL"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
        (b"\xff\x4f\xff\x51", "JPEG 2000"),
        (b"8BPS", "Photoshop (PSD)"),
        (b"%PDF-", "PDF"),
        (b"FUJIFILMCCD-RAW", "camera raw (RAF)"),
        (b"IIU\0", "camera raw (RW2)"),
    ];
    if bytes.get(4..12) == Some(b"ftypcrx ") {
        return Some("camera raw (CR3)");
    }
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| *name)
}

fn beginning_of(bytes: &[u8]) -> String {
    match &bytes[..bytes.len().min(12)] {
        [] => "nothing (0 bytes)".to_owned(),
        first => format!("`{}`", first.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::PhotoError;
    use super::*;

    #[test]
    fn content_decides() {
        let of = |bytes: &[u8]| PhotoFormat::of(bytes).map_err(PhotoError::from);
        assert_eq!(of(b"\xff\xd8\xff\xe0").unwrap(), PhotoFormat::Jpeg);
        assert_eq!(of(b"RIFF\0\0\0\0WEBPVP8 ").unwrap(), PhotoFormat::WebP);
        assert_eq!(of(b"\0\0\0\x14ftypheic\0\0\0\0mif1").unwrap(), PhotoFormat::Heic);
        assert_eq!(of(b"\0\0\0\x18ftypmif1\0\0\0\0miafavif").unwrap(), PhotoFormat::Avif);
        // The version isn't a brand, and neither is what follows the box.
        assert_eq!(of(b"\0\0\0\x10ftypisomheicheic").unwrap_err().kind(), "not-an-image");
        assert_eq!(of(b"\0\0\0\x18ftypcrx \0\0\0\x01crx ").unwrap_err().kind(), "unsupported");
        assert_eq!(of(b"\xff\x0a\xfa\x7f").unwrap_err().kind(), "unsupported");
        assert!(of(b"<html>").unwrap_err().to_string().contains("`<html>`"));
        assert!(of(b"").unwrap_err().to_string().contains("0 bytes"));
        assert_eq!(of(b"\0\0\0\x14ftyp").unwrap_err().kind(), "not-an-image");
    }
}
