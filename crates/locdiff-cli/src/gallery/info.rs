//! `locdiff gallery info`: what a gallery contains.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use locdiff_gallery::{GalleryError, Likelihood};
use serde_json::json;

use super::encoder;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The gallery
    #[arg(value_name = "DIR")]
    gallery: PathBuf,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let gallery = encoder::open_gallery(&arguments.gallery)?;
    let info = gallery.info()?;
    let fitted = match Likelihood::read(&gallery) {
        Ok(likelihood) => Some(likelihood),
        Err(GalleryError::NotFitted { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let mut out = crate::text::stdout();
    let encoder = gallery.encoder();
    let path = arguments.gallery.display();
    if arguments.json {
        let info = json!({
            "gallery": path.to_string(),
            "references": info.rows,
            "encoder": encoder,
            "segments": info.segments,
            "bytes": info.bytes,
            "median_nearest_km": info.median_nearest_km,
            "likelihood": fitted,
        });
        writeln!(crate::text::json_stdout(), "{info}")?;
        return Ok(());
    }
    writeln!(out, "{path}")?;
    writeln!(out, "  references     {}", info.rows)?;
    writeln!(out, "  encoder        {}, {} numbers", encoder.name, encoder.dimension)?;
    writeln!(out, "  weights        {}", encoder.digest)?;
    writeln!(out, "  preprocessing  {}", encoder.preprocessing)?;
    let segments = if info.segments == 1 { "segment" } else { "segments" };
    let megabytes = info.bytes as f64 / 1e6;
    writeln!(out, "  size           {megabytes:.1} MB in {} {segments}", info.segments)?;
    if let Some(km) = info.median_nearest_km {
        writeln!(
            out,
            "  density        half of the references have another one within {km:.2} km"
        )?;
    }
    match fitted {
        Some(fitted) => writeln!(
            out,
            "  fitted         on {} photographs of {}, when it had {} references",
            fitted.held_out_rows, fitted.held_out, fitted.gallery_rows
        )?,
        None => writeln!(
            out,
            "  fitted         no: it returns similar references, and densities after `locdiff gallery fit {path} --data HELD_OUT`"
        )?,
    }
    Ok(())
}
