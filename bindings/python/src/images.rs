//! Images as Python has them.

use std::path::PathBuf;

use locdiff::Photo;
use locdiff::locate::{ImageFacts, ReadPicture};
use pyo3::pybacked::PyBackedBytes;

use crate::errors::Problem;

/// Images that are read and encoded together: as few as keep all threads busy, because Ctrl-C is heard in between.
pub(crate) fn together() -> usize {
    rayon::current_num_threads().clamp(2, 8)
}

/// An image: a name, then a path, the bytes of a file, or pixels (red, green, blue, row by row) with width and height.
pub(crate) type Given =
    (Option<String>, Option<PathBuf>, Option<PyBackedBytes>, Option<(u32, u32)>);

/// Reads one image of those that Python may pass: a path, bytes or pixels.
pub(crate) fn read(given: &Given) -> Result<ReadPicture, Problem> {
    let (name, path, bytes, size) = given;
    match (path, bytes, size) {
        (Some(path), _, _) => ReadPicture::open(path).map_err(|error| Problem::unreadable(&error)),
        (None, Some(bytes), None) => decode(name.clone(), bytes),
        (None, Some(pixels), Some((width, height))) => {
            let photo = Photo::from_rgb(*width, *height, pixels.to_vec())
                .ok_or_else(|| Problem::image("the pixels are not width × height × 3 bytes"))?;
            let nothing = ImageFacts {
                name: name.clone(),
                sha256: None,
                bytes: None,
                width: None,
                height: None,
            };
            Ok(ReadPicture { facts: nothing.with_size(&photo), photo, gps: None })
        }
        (None, None, _) => Err(Problem::image("there is no image")),
    }
}

/// Reads the bytes of an image's file.
pub(crate) fn decode(name: Option<String>, bytes: &[u8]) -> Result<ReadPicture, Problem> {
    ReadPicture::decode(name, bytes).map_err(|error| Problem::unreadable(&error))
}
