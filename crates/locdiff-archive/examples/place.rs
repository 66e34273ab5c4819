//! Writes a place beside a picture or into it: `place sidecar|in-place FILE LATITUDE LONGITUDE`. For
//! `parity/tags/check.py`, which asks exiftool what was written.

use std::path::{Path, PathBuf};

use locdiff_archive::tags::{
    PlaceTag, Replace, edited_sidecar, new_sidecar, sidecar_of, with_place,
};
use locdiff_sphere::LatLon;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, file, latitude, longitude] = arguments.as_slice() else {
        return Err("usage: place sidecar|in-place FILE LATITUDE LONGITUDE".into());
    };
    let place = LatLon::new(latitude.parse()?, longitude.parse()?)?;
    let tag = PlaceTag::estimated(place, 12.34, "earth-view", "2");
    let path = Path::new(file);
    if how == "in-place" {
        let bytes = with_place(&std::fs::read(path)?, &tag, Replace::Own)?;
        return Ok(std::fs::write(path, bytes)?);
    }
    let sidecar: PathBuf = sidecar_of(path);
    let text = match std::fs::read_to_string(&sidecar) {
        Ok(old) => edited_sidecar(&old, &tag, Replace::Own)?,
        Err(_) => new_sidecar(&tag),
    };
    Ok(std::fs::write(&sidecar, text)?)
}
