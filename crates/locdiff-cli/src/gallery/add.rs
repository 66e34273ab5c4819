//! `locdiff gallery add`: more references.

use std::path::PathBuf;

use clap::Args;
use locdiff_gallery::{Gallery, GalleryWriter, Likelihood};

use super::rows::Input;
use super::{encoder, note, write};
use crate::interruption;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The gallery
    #[arg(value_name = "DIR")]
    gallery: PathBuf,
    #[command(flatten)]
    input: Input,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = &arguments.gallery;
    let gallery = encoder::open_gallery(path)?;
    let stop = interruption::flag()?;
    let rows = arguments.input.open(path, Some(&gallery), &stop)?;
    let writer = GalleryWriter::append(path, rows.identity())?;
    let count = write(writer, &rows, &stop)?;
    rows.discard()?;
    let gallery = Gallery::open(path)?;
    note(&format!("{count} references added: {} in {}", gallery.len(), path.display()));
    if let Ok(fitted) = Likelihood::read(&gallery)
        && Likelihood::is_outgrown(fitted.gallery_rows, gallery.len())
    {
        note(&format!(
            "The gallery was fitted when it had {} references: fit it again with `locdiff gallery fit {} --data HELD_OUT`",
            fitted.gallery_rows,
            path.display()
        ));
    }
    Ok(())
}
