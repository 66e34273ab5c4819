//! Writing rows as text, JSON lines or .npy, to stdout or a file.

use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::Args;
use npyz::WriterBuilder;
use serde::Serialize;

use super::Format;
use crate::whole_file::Unfinished;

#[derive(Args)]
pub(crate) struct OutputArguments {
    /// Write to this file instead of stdout; .npy and .json choose the format
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to write
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

pub(crate) struct Output {
    format: Format,
    writer: Box<dyn Write>,
    /// A file is written under another name and renamed at the end: whoever finds it finds
    /// it complete, and it may have been the input.
    unfinished: Option<Unfinished>,
}

impl Output {
    /// The format is what was asked for, or follows from the file's ending, or is text.
    pub(crate) fn open(arguments: &OutputArguments) -> anyhow::Result<Output> {
        let path = arguments.output.as_deref();
        let ending = path.and_then(Path::extension).and_then(|ending| ending.to_str());
        let implied = match ending {
            _ if arguments.json => Format::Json,
            Some("npy") => Format::Npy,
            Some("json" | "jsonl") => Format::Json,
            _ => Format::Text,
        };
        let format = arguments.format.unwrap_or(implied);
        let (writer, unfinished): (Box<dyn Write>, _) =
            match path.filter(|path| *path != Path::new("-")) {
                Some(path) => {
                    let (file, unfinished) = Unfinished::create(path)?;
                    (Box::new(file), Some(unfinished))
                }
                None => {
                    ensure!(
                        format != Format::Npy || !stdout().is_terminal(),
                        "a .npy array is not for the terminal: name a file with --output"
                    );
                    (Box::new(stdout().lock()), None)
                }
            };
        Ok(Output { format, writer: Box::new(BufWriter::new(writer)), unfinished })
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Announces an array's shape; only .npy stores it in the file.
    pub(crate) fn start_array(&mut self, shape: &[usize]) -> anyhow::Result<()> {
        if self.format == Format::Npy {
            let shape: Vec<u64> = shape.iter().map(|&side| side as u64).collect();
            let dtype = npyz::DType::Plain("<f8".parse()?);
            npyz::WriteOptions::new_header_only()
                .dtype(dtype)
                .shape(&shape)
                .writer(&mut self.writer)
                .write_header_only()?;
        }
        Ok(())
    }

    /// Numbers with all their digits, separated by blanks.
    pub(crate) fn text_row(&mut self, row: &[f64]) -> anyhow::Result<()> {
        for (index, value) in row.iter().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            write!(self.writer, "{blank}{value}")?;
        }
        Ok(writeln!(self.writer)?)
    }

    pub(crate) fn npy_row(&mut self, row: &[f64]) -> anyhow::Result<()> {
        for value in row {
            self.writer.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        serde_json::to_writer(&mut self.writer, value).map_err(std::io::Error::from)?;
        Ok(writeln!(self.writer)?)
    }

    pub(crate) fn line(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.writer, "{line}")?)
    }

    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.writer.flush()?;
        self.unfinished.as_ref().map_or(Ok(()), Unfinished::finish)
    }
}
