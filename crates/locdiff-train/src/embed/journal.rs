//! The part in progress, on disk, so that nothing is lost when the program ends at any moment.
//!
//! ```text
//! header   magic (8 bytes), part (u64), digest of the settings (u64), stride (u32), CRC-32
//! block    length of the payload (u32), CRC-32 of the payload, payload
//! payload  entries: 1, id, place (0, or 1 and two f64), `stride` half-precision numbers
//!                   2, id, path, kind, message
//! ```
//!
//! Numbers are little-endian; texts are preceded by their length (u32). A block holds what one
//! batch of the encoder came to, and counts only as a whole: what follows the last whole block
//! was torn, and is cut off. As a batch always begins where a block ends, a continuation makes
//! the batches that an undisturbed run would have made.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use half::f16;
use locdiff_sphere::LatLon;

use super::SkippedImage;
use super::error::EmbedError;

const MAGIC: &[u8; 8] = b"LDEMBED1";
const HEADER: u64 = 32;
/// What a power failure may cost; a killed program loses nothing that was written.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// What an image came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    Row {
        id: String,
        place: Option<LatLon>,
        /// `[views, width]`
        embedding: Vec<f16>,
    },
    Skipped(SkippedImage),
}

/// Which journal it is: one of another part or of other settings is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) part: u64,
    pub(super) settings: u64,
    /// Numbers per row.
    pub(super) stride: u32,
}

impl Identity {
    fn header(self) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        header.extend(self.part.to_le_bytes());
        header.extend(self.settings.to_le_bytes());
        header.extend(self.stride.to_le_bytes());
        header.extend(crc32fast::hash(&header).to_le_bytes());
        header
    }
}

#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    identity: Identity,
    /// Up to the end of the last whole block.
    length: u64,
    synced: Instant,
}

impl Journal {
    /// Opens a journal and shows what its whole blocks hold; begins anew if there is none, or one
    /// with another identity.
    pub(super) fn open(
        path: &Path,
        identity: Identity,
        visit: &mut dyn FnMut(Entry),
    ) -> Result<Journal, EmbedError> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(EmbedError::file("open", path))?;
        let mut journal =
            Journal { path: path.to_owned(), file, identity, length: 0, synced: Instant::now() };
        let length = journal.replay(&mut |entry| {
            visit(entry);
            Ok(())
        })?;
        if length == 0 {
            journal.begin(identity)?;
            return Ok(journal);
        }
        journal.length = length;
        journal.file.set_len(length).map_err(EmbedError::file("shorten", path))?;
        Ok(journal)
    }

    /// Begins with nothing, for another part.
    pub(super) fn begin(&mut self, identity: Identity) -> Result<(), EmbedError> {
        self.identity = identity;
        let begun = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(&identity.header()))
            .and_then(|()| self.file.sync_data());
        begun.map_err(EmbedError::file("write", &self.path))?;
        self.length = HEADER;
        Ok(())
    }

    /// Adds a block. If that fails, the journal is as it was.
    pub(super) fn append(&mut self, entries: &[Entry]) -> Result<(), EmbedError> {
        let mut block = vec![0; 8];
        entries.iter().for_each(|entry| write_entry(entry, &mut block));
        let size = u32::try_from(block.len() - 8).expect("a batch has less than 4 GB of numbers");
        let checksum = crc32fast::hash(&block[8..]);
        block[..4].copy_from_slice(&size.to_le_bytes());
        block[4..8].copy_from_slice(&checksum.to_le_bytes());
        let is_due = self.synced.elapsed() > SYNC_EVERY;
        let written = self
            .file
            .seek(SeekFrom::Start(self.length))
            .and_then(|_| self.file.write_all(&block))
            .and_then(|()| if is_due { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // If this fails too, the torn block is cut off when the journal is opened again.
            let _ = self.file.set_len(self.length);
            return Err(EmbedError::file("write", &self.path)(error));
        }
        if is_due {
            self.synced = Instant::now();
        }
        self.length += block.len() as u64;
        Ok(())
    }

    /// Makes sure that all is on the disk.
    pub(super) fn sync(&mut self) -> Result<(), EmbedError> {
        self.file.sync_data().map_err(EmbedError::file("write", &self.path))
    }

    /// That all that was written can be read again: a disk may have altered it.
    pub(super) fn check(&self, whole: u64) -> Result<(), EmbedError> {
        if whole == self.length {
            return Ok(());
        }
        let reason = format!(
            "{whole} of its {} bytes can be read: run the same command again to embed the images after them again",
            self.length
        );
        Err(EmbedError::Damaged { path: self.path.clone(), reason })
    }

    /// Shows all entries, one block at a time. Returns the length of what is whole; 0 if not even
    /// the header is, or it is that of another journal.
    pub(super) fn replay(
        &self,
        visit: &mut dyn FnMut(Entry) -> Result<(), EmbedError>,
    ) -> Result<u64, EmbedError> {
        let failed = |error| EmbedError::file("read", &self.path)(error);
        let size = self.file.metadata().map_err(failed)?.len();
        let mut file = &self.file;
        file.rewind().map_err(failed)?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let header = read_exactly(&mut reader, HEADER as usize).map_err(failed)?;
        if header.as_deref() != Some(&self.identity.header()[..]) {
            return Ok(0);
        }
        let mut length = HEADER;
        loop {
            let Some(head) = read_exactly(&mut reader, 8).map_err(failed)? else { break };
            let number = |at: usize| {
                u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
            };
            let (bytes, checksum) = (number(0), number(4));
            // After a power failure, a tail of zeros would pass for an empty block.
            if bytes == 0 || u64::from(bytes) > size.saturating_sub(length + 8) {
                break;
            }
            let Some(payload) = read_exactly(&mut reader, bytes as usize).map_err(failed)? else {
                break;
            };
            if crc32fast::hash(&payload) != checksum {
                break;
            }
            let Some(entries) = read_entries(&payload, self.identity.stride as usize) else {
                break;
            };
            entries.into_iter().try_for_each(&mut *visit)?;
            length += 8 + u64::from(bytes);
        }
        Ok(length)
    }
}

/// So many bytes, or none if the file ends before.
fn read_exactly(reader: &mut impl Read, count: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(count);
    reader.take(count as u64).read_to_end(&mut bytes)?;
    Ok((bytes.len() == count).then_some(bytes))
}

fn write_entry(entry: &Entry, block: &mut Vec<u8>) {
    let text = |text: &str, block: &mut Vec<u8>| {
        let length = u32::try_from(text.len()).expect("a text has less than 4 GB");
        block.extend(length.to_le_bytes());
        block.extend(text.as_bytes());
    };
    match entry {
        Entry::Row { id, place, embedding } => {
            block.push(1);
            text(id, block);
            block.push(u8::from(place.is_some()));
            if let Some(place) = place {
                block.extend(place.latitude().to_le_bytes());
                block.extend(place.longitude().to_le_bytes());
            }
            block.extend(embedding.iter().flat_map(|number| number.to_le_bytes()));
        }
        Entry::Skipped(SkippedImage { id, path, kind, message }) => {
            block.push(2);
            [id, path, kind, message].iter().for_each(|part| text(part, block));
        }
    }
}

fn read_entries(mut payload: &[u8], stride: usize) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !payload.is_empty() {
        entries.push(read_entry(&mut payload, stride)?);
    }
    Some(entries)
}

fn read_entry(bytes: &mut &[u8], stride: usize) -> Option<Entry> {
    match take::<1>(bytes)? {
        [1] => {
            let id = take_text(bytes)?;
            let place = match take::<1>(bytes)? {
                [0] => None,
                _ => {
                    let latitude = f64::from_le_bytes(take(bytes)?);
                    let longitude = f64::from_le_bytes(take(bytes)?);
                    Some(LatLon::new(latitude, longitude).ok()?)
                }
            };
            let (numbers, rest) = bytes.split_at_checked(2 * stride)?;
            *bytes = rest;
            let numbers = numbers.as_chunks::<2>().0.iter().map(|pair| f16::from_le_bytes(*pair));
            Some(Entry::Row { id, place, embedding: numbers.collect() })
        }
        [2] => {
            let id = take_text(bytes)?;
            let path = take_text(bytes)?;
            let kind = take_text(bytes)?;
            let message = take_text(bytes)?;
            Some(Entry::Skipped(SkippedImage { id, path, kind, message }))
        }
        _ => None,
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let length = u32::from_le_bytes(take(bytes)?) as usize;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}
