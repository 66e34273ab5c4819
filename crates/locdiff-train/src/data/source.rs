//! Where shards are: a local directory or an object store.
//!
//! Reading is synchronous, by the threads that decode; a directory's files are read without the detour over a [`Store`].

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::error::{DataError, Fault};
use crate::store::{Store, StoreError, Stored};

const EXTENSION: &str = ".parquet";

/// A directory or prefix with shards.
#[derive(Debug)]
pub(crate) enum Source {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A prefix in an object store.
    Store(Store),
}

/// A shard's name and size.
#[derive(Debug, Clone)]
pub(crate) struct ShardFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

impl Source {
    pub(crate) fn at(location: &str) -> Result<Source, DataError> {
        match location.split_once("://") {
            None => Ok(Source::Directory(PathBuf::from(location))),
            Some(("file", path)) => Ok(Source::Directory(PathBuf::from(path))),
            Some(_) => Ok(Source::Store(Store::at(location)?)),
        }
    }

    /// All shards, by name.
    pub(crate) fn list(&self) -> Result<Vec<ShardFile>, DataError> {
        let mut files = match self {
            Source::Directory(directory) => list_directory(directory).map_err(|source| {
                DataError::File { what: "list", path: directory.display().to_string(), source }
            })?,
            Source::Store(store) => {
                let file = |Stored { name, bytes }| ShardFile { name, bytes };
                store.list_here()?.into_iter().map(file).collect()
            }
        };
        files.retain(|file| file.name.ends_with(EXTENSION) && !file.name.starts_with('.'));
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Where a shard is, for messages.
    pub(crate) fn path_of(&self, shard: &str) -> String {
        match self {
            Source::Directory(directory) => directory.join(shard).display().to_string(),
            Source::Store(store) => store.location_of(shard),
        }
    }

    /// Some bytes of a shard.
    pub(crate) fn read(&self, shard: &str, range: Range<u64>) -> Result<Bytes, Fault> {
        match self {
            // A disk that can't read a file is as good as a damaged file.
            Source::Directory(directory) => read_file(&directory.join(shard), range)
                .map_err(|error| Fault::Bad(error.to_string())),
            Source::Store(store) => store.read_range(shard, range).map_err(|error| match error {
                StoreError::Store { error: object_store::Error::NotFound { .. }, .. } => {
                    Fault::Bad(error.to_string())
                }
                // The store is in trouble, not the shard.
                _ => Fault::Fatal(error.into()),
            }),
        }
    }
}

fn list_directory(directory: &PathBuf) -> io::Result<Vec<ShardFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Follows links, unlike the entry's own metadata.
        let metadata = fs::metadata(entry.path())?;
        if metadata.is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            files.push(ShardFile { name, bytes: metadata.len() });
        }
    }
    Ok(files)
}

fn read_file(path: &PathBuf, range: Range<u64>) -> io::Result<Bytes> {
    let wanted = range.end - range.start;
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(range.start))?;
    let mut bytes = Vec::with_capacity(wanted as usize);
    file.take(wanted).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < wanted {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!(
                "the file ends at byte {}, not at {}",
                range.start + bytes.len() as u64,
                range.end
            ),
        ));
    }
    Ok(bytes.into())
}

/// The end of a shard, for its footer: each piece is fetched when it is asked for.
pub(crate) struct Footer<'a> {
    source: &'a Source,
    file: &'a ShardFile,
    /// The store's error, which `ParquetError` can't carry.
    fatal: std::sync::Mutex<Option<DataError>>,
}

impl<'a> Footer<'a> {
    pub(crate) fn new(source: &'a Source, file: &'a ShardFile) -> Footer<'a> {
        Footer { source, file, fatal: std::sync::Mutex::new(None) }
    }

    /// Why reading failed, given the parser's error.
    pub(crate) fn fault(self, error: ParquetError) -> Fault {
        let fatal = self.fatal.into_inner().unwrap_or_else(|poison| poison.into_inner());
        fatal.map_or_else(|| Fault::Bad(error.to_string()), Fault::Fatal)
    }
}

impl Length for Footer<'_> {
    fn len(&self) -> u64 {
        self.file.bytes
    }
}

impl ChunkReader for Footer<'_> {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let rest = self.file.bytes.saturating_sub(start);
        Ok(self.get_bytes(start, rest as usize)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let range = start..start.saturating_add(length as u64);
        self.source.read(&self.file.name, range).map_err(|fault| match fault {
            Fault::Bad(reason) => ParquetError::General(reason),
            Fault::Fatal(error) => {
                let message = error.to_string();
                *self.fatal.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(error);
                ParquetError::General(message)
            }
        })
    }
}

/// Pieces of a shard in memory, at the offsets that they have in the file.
#[derive(Debug, Clone)]
pub(crate) struct Pieces {
    pub(crate) file_bytes: u64,
    /// Start and bytes of each, ascending.
    pub(crate) pieces: Arc<[(u64, Bytes)]>,
}

impl Pieces {
    /// Reads ranges that are ascending; those that touch are read at once.
    pub(crate) fn read(
        source: &Source,
        shard: &str,
        file_bytes: u64,
        ranges: &[Range<u64>],
    ) -> Result<Pieces, Fault> {
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => joined.push(range.clone()),
            }
        }
        let read = |range: Range<u64>| Ok((range.start, source.read(shard, range)?));
        let pieces: Result<Vec<_>, Fault> = joined.into_iter().map(read).collect();
        Ok(Pieces { file_bytes, pieces: pieces?.into() })
    }

    /// CRC-32 of all pieces one after another.
    pub(crate) fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.pieces.iter().for_each(|(_, bytes)| hasher.update(bytes));
        hasher.finalize()
    }
}

impl Length for Pieces {
    fn len(&self) -> u64 {
        self.file_bytes
    }
}

impl ChunkReader for Pieces {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let (offset, bytes) = self.piece_at(start)?;
        Ok(bytes.slice(offset..).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let (offset, bytes) = self.piece_at(start)?;
        match offset.checked_add(length) {
            Some(end) if end <= bytes.len() => Ok(bytes.slice(offset..end)),
            _ => Err(ParquetError::EOF(format!(
                "{length} bytes at {start} reach beyond their column"
            ))),
        }
    }
}

impl Pieces {
    fn piece_at(&self, start: u64) -> Result<(usize, &Bytes), ParquetError> {
        let has =
            |piece: &&(u64, Bytes)| (piece.0..=piece.0 + piece.1.len() as u64).contains(&start);
        let piece = self.pieces.iter().rev().find(has);
        let (begin, bytes) =
            piece.ok_or_else(|| ParquetError::EOF(format!("byte {start} is in no column")))?;
        Ok(((start - begin) as usize, bytes))
    }
}
