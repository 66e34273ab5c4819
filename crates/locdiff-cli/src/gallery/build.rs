//! `locdiff gallery build`: a new gallery.

use std::path::PathBuf;

use clap::Args;
use locdiff_gallery::GalleryWriter;

use super::rows::Input;
use super::{note, write};
use crate::interruption;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    input: Input,
    /// The gallery to make: a directory that does not exist
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let out = &arguments.out;
    // Before hours of embedding; the writer checks again.
    anyhow::ensure!(
        out.symlink_metadata().is_err(),
        "{0} exists: add to it with `locdiff gallery add {0}`, delete it, or choose another directory",
        out.display()
    );
    let stop = interruption::flag()?;
    let rows = arguments.input.open(out, None, &stop)?;
    let writer = GalleryWriter::create(out, rows.identity())?;
    let count = write(writer, &rows, &stop)?;
    let name = rows.identity().name.clone();
    rows.discard()?;
    note(&format!("{count} references of {name} in {}", out.display()));
    note(&format!("Search it: locdiff gallery search {} PHOTO", out.display()));
    Ok(())
}
