//! A file or object that is read in pieces.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use locdiff_train::{Store, StoreError};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::BatchError;

/// What is read at once of something that is read from its beginning to its end.
const LARGE_BLOCK: u64 = 8 << 20;
/// What is read at once of a Parquet file, which is asked for in small pieces, column by column.
const BLOCK: u64 = 1 << 20;
/// Blocks that are kept: about one for each column.
const KEPT: usize = 6;

/// A file or object that is read in pieces.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    place: Place,
    length: u64,
    /// The store's error, which other errors can't carry.
    fault: Arc<Mutex<Option<StoreError>>>,
    /// Pieces of a Parquet file that were read last, with their positions.
    kept: Arc<Mutex<VecDeque<(u64, Bytes)>>>,
}

#[derive(Debug, Clone)]
enum Place {
    File(PathBuf),
    Object(Store, String),
}

/// Store and name of an address such as `s3://bucket/a/b.tar`.
pub(crate) fn split_address(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let bucket = rest.find('/')?;
    let (store, name) = address.split_at(scheme.len() + 3 + bucket);
    Some((store, name.trim_start_matches('/')))
}

impl Blob {
    fn new(place: Place, length: u64) -> Blob {
        Blob { place, length, fault: Arc::default(), kept: Arc::default() }
    }

    /// Opens a path or an address.
    pub(crate) fn open(location: &str) -> Result<Blob, BatchError> {
        match split_address(location) {
            Some((store, name)) => Blob::object(&Store::at(store)?, name),
            None => {
                let path = PathBuf::from(location);
                let metadata = path.metadata();
                let length = metadata.map_err(|error| BatchError::wrong(location, error))?.len();
                Ok(Blob::new(Place::File(path), length))
            }
        }
    }

    pub(crate) fn object(store: &Store, name: &str) -> Result<Blob, BatchError> {
        let missing = || BatchError::wrong(store.location_of(name), "the file is missing");
        let length = store.size(name)?.ok_or_else(missing)?;
        Ok(Blob::new(Place::Object(store.clone(), name.to_owned()), length))
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The store's trouble, if reading has met any: then what was read is not to be believed.
    pub(crate) fn fault(&self) -> Option<StoreError> {
        self.fault.lock().unwrap_or_else(|poison| poison.into_inner()).take()
    }

    fn range(&self, range: Range<u64>) -> io::Result<Bytes> {
        if range.end > self.length {
            let (end, length) = (range.end, self.length);
            let reason = format!("it ends at byte {length}, not at {end}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
        }
        match &self.place {
            Place::File(path) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(range.start))?;
                file.read_exact(&mut bytes)?;
                Ok(bytes.into())
            }
            Place::Object(store, name) => store.read_range(name, range).map_err(|error| {
                let said = io::Error::other(error.to_string());
                *self.fault.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(error);
                said
            }),
        }
    }

    /// A piece, out of a block if it is small.
    fn piece(&self, range: Range<u64>) -> io::Result<Bytes> {
        let inside = |at: u64, bytes: &Bytes| {
            let from = range.start.checked_sub(at)? as usize;
            let to = (range.end - at) as usize;
            (to <= bytes.len()).then(|| bytes.slice(from..to))
        };
        let lock = || self.kept.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(piece) = lock().iter().find_map(|(at, bytes)| inside(*at, bytes)) {
            return Ok(piece);
        }
        let wanted = range.end.saturating_sub(range.start);
        if wanted >= BLOCK || range.end > self.length {
            return self.range(range);
        }
        let block = self.range(range.start..(range.start + BLOCK).min(self.length))?;
        let mut kept = lock();
        kept.truncate(KEPT - 1);
        kept.push_front((range.start, block.clone()));
        Ok(block.slice(..wanted as usize))
    }

    /// Reads the object from its first byte on.
    pub(crate) fn reader(&self) -> BlobReader {
        BlobReader { blob: self.clone(), at: 0, block_at: 0, block: Bytes::new() }
    }
}

impl Length for Blob {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Blob {
    type T = PieceReader;

    fn get_read(&self, start: u64) -> Result<PieceReader, ParquetError> {
        Ok(PieceReader { blob: self.clone(), at: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let range = start..start.saturating_add(length as u64);
        self.piece(range).map_err(|error| ParquetError::General(error.to_string()))
    }
}

/// Reads headers of pages, which are small.
#[derive(Debug)]
pub(crate) struct PieceReader {
    blob: Blob,
    at: u64,
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = self.at.saturating_add(buffer.len() as u64).min(self.blob.length);
        let piece = self.blob.piece(self.at.min(end)..end)?;
        buffer[..piece.len()].copy_from_slice(&piece);
        self.at += piece.len() as u64;
        Ok(piece.len())
    }
}

/// Reads a block at a time.
#[derive(Debug)]
pub(crate) struct BlobReader {
    blob: Blob,
    at: u64,
    block_at: u64,
    block: Bytes,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let has = |reader: &BlobReader| {
            (reader.block_at..reader.block_at + reader.block.len() as u64).contains(&reader.at)
        };
        if self.at >= self.blob.length {
            return Ok(0);
        }
        if !has(self) {
            let end = self.at.saturating_add(LARGE_BLOCK).min(self.blob.length);
            self.block = self.blob.range(self.at..end)?;
            self.block_at = self.at;
        }
        let rest = &self.block[(self.at - self.block_at) as usize..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for BlobReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.blob.length.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::other("a position before the beginning"))?;
        Ok(self.at)
    }
}

/// The last part of a path or address.
pub(crate) fn file_name(location: &str) -> String {
    let name = Path::new(location).file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| location.to_owned())
}
