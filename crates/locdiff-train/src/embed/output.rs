//! The directory that embeddings are written into.
//!
//! ```text
//! shard-00000.parquet …         whole parts, rows with a place: what training reads
//! without-place/shard-00000…    the same parts, rows without a place
//! skipped.csv                   images that could not be embedded
//! embed.json                    settings, and how far the whole parts reach
//! .embed.journal                the part in progress
//! ```
//!
//! A part is made whole in steps that can be taken again, so that it doesn't matter after which
//! of them the program ends: its shards are written out of the journal; `skipped.csv` is on the
//! disk; `embed.json` records that the part is whole; the journal starts again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use half::slice::HalfFloatSliceExt;

use super::error::EmbedError;
use super::journal::{Entry, Identity, Journal};
use super::record::{Progress, Record, SHARE, Settings, sync_directory};
use super::{Share, SkippedImage};
use crate::data::{Layout, Places, ShardWriter, WriteOptions};

const WITHOUT_PLACE: &str = "without-place";

#[derive(Debug)]
pub(super) struct Output {
    directory: PathBuf,
    suffix: String,
    layout: Layout,
    rows_per_part: u64,
    record: Record,
    /// Whole parts and the journal.
    now: Progress,
    journal: Journal,
    skipped: SkippedList,
}

impl Output {
    /// Begins a directory, or goes on where it was left.
    pub(super) fn open(
        directory: &Path,
        share: Share,
        layout: Layout,
        rows_per_part: u64,
        settings: Settings,
    ) -> Result<Output, EmbedError> {
        fs::create_dir_all(directory).map_err(EmbedError::file("make", directory))?;
        let suffix = share.suffix();
        let record_path = directory.join(format!("embed{suffix}.json"));
        if !record_path.exists() {
            check_neighbours(directory, &settings)?;
        }
        // Before anything is read: whoever holds the lock may be writing it.
        let list = directory.join(format!("skipped{suffix}.csv"));
        let mut skipped = SkippedList::lock(&list)?;
        let record = match Record::read(&record_path)? {
            Some(record) => {
                record.check(&record_path, &settings, None)?;
                record
            }
            None => {
                let record = Record::new(settings);
                record.write(&record_path)?;
                record
            }
        };
        skipped.cut(record.progress.skipped_csv_bytes)?;
        let mut now = record.progress.clone();
        let identity = Identity {
            // Where it begins: a part of skipped images only makes no shard, and has no number.
            part: now.items,
            settings: record.digest(),
            stride: u32::try_from(layout.stride()).expect("a row has less than 2³¹ numbers"),
        };
        let path = directory.join(format!(".embed{suffix}.journal"));
        let mut relisted = Ok(());
        let journal = Journal::open(&path, identity, &mut |entry| {
            count(&mut now, &entry);
            if let (Entry::Skipped(image), Ok(())) = (&entry, &relisted) {
                relisted = skipped.add(image);
            }
        })?;
        relisted?;
        skipped.flush()?;
        sync_directory(&path)?;
        let directory = directory.to_owned();
        Ok(Output { directory, suffix, layout, rows_per_part, record, now, journal, skipped })
    }

    /// What is in the directory.
    pub(super) fn progress(&self) -> &Progress {
        &self.now
    }

    /// Rows until the part is whole.
    pub(super) fn room(&self) -> u64 {
        self.rows_per_part.saturating_sub(self.now.rows - self.record.progress.rows)
    }

    /// Adds what a batch came to.
    pub(super) fn append(&mut self, entries: &[Entry]) -> Result<(), EmbedError> {
        if entries.is_empty() {
            return Ok(());
        }
        self.journal.append(entries)?;
        for entry in entries {
            count(&mut self.now, entry);
            if let Entry::Skipped(image) = entry {
                self.skipped.add(image)?;
            }
        }
        self.skipped.flush()
    }

    /// Makes sure that all of it survives a power failure.
    pub(super) fn sync(&mut self) -> Result<(), EmbedError> {
        self.journal.sync()
    }

    /// Turns the journal into a part. Its shards are shown to `watch`.
    pub(super) fn end_part(&mut self, watch: &mut dyn FnMut(&Path)) -> Result<(), EmbedError> {
        self.journal.sync()?;
        let rows = self.now.rows - self.record.progress.rows;
        if rows > 0 {
            let name = format!("shard{}-{:05}.parquet", self.suffix, self.now.parts);
            self.write_shards(&name, watch)?;
            self.now.parts += 1;
        }
        self.save()?;
        let stride = u32::try_from(self.layout.stride()).expect("as in Output::open");
        let (part, settings) = (self.now.items, self.record.digest());
        self.journal.begin(Identity { part, settings, stride })
    }

    /// Writes the last part and ends the output.
    pub(super) fn finish(mut self, watch: &mut dyn FnMut(&Path)) -> Result<Progress, EmbedError> {
        if self.now.items > self.record.progress.items {
            self.end_part(watch)?;
        }
        self.now.finished = true;
        self.save()?;
        self.remove_journal();
        Ok(self.now)
    }

    /// Of a directory that is finished.
    pub(super) fn remove_journal(&self) {
        // Of no use, and no harm if it stays.
        let _ = fs::remove_file(self.directory.join(format!(".embed{}.journal", self.suffix)));
    }

    fn save(&mut self) -> Result<(), EmbedError> {
        self.now.skipped_csv_bytes = self.skipped.sync()?;
        self.record.progress = self.now.clone();
        self.record.write(&self.directory.join(format!("embed{}.json", self.suffix)))
    }

    fn write_shards(&self, name: &str, watch: &mut dyn FnMut(&Path)) -> Result<(), EmbedError> {
        let rows_per_group = WriteOptions::default().rows_per_group;
        let placed = self.directory.join(name);
        let unplaced = self.directory.join(WITHOUT_PLACE).join(name);
        let writer = |path: &Path, places| {
            ShardWriter::create_one(path, self.layout.clone(), rows_per_group, places)
        };
        let mut known = writer(&placed, Places::Known);
        let mut unknown = writer(&unplaced, Places::Unknown);
        if self.now.without_place > self.record.progress.without_place {
            let directory = self.directory.join(WITHOUT_PLACE);
            fs::create_dir_all(&directory).map_err(EmbedError::file("make", &directory))?;
            sync_directory(&directory)?;
        }
        let mut numbers = vec![0.0; self.layout.stride()];
        let whole = self.journal.replay(&mut |entry| {
            if let Entry::Row { id, place, embedding } = entry {
                embedding.convert_to_f32_slice(&mut numbers);
                let writer = if place.is_some() { &mut known } else { &mut unknown };
                writer.write_row(&id, place, &numbers)?;
            }
            Ok(())
        })?;
        self.journal.check(whole)?;
        for (writer, path) in [(known, placed), (unknown, unplaced)] {
            if writer.finish()?.shards > 0 {
                sync_directory(&path)?;
                watch(&path);
            }
        }
        Ok(())
    }
}

fn count(progress: &mut Progress, entry: &Entry) {
    progress.items += 1;
    match entry {
        Entry::Row { place, .. } => {
            progress.rows += 1;
            progress.without_place += u64::from(place.is_none());
        }
        Entry::Skipped(image) => *progress.skipped.entry(image.kind.clone()).or_default() += 1,
    }
}

/// A directory that is not ours yet may be that of other machines with the same settings, which
/// embed other shares, or hold no shards.
fn check_neighbours(directory: &Path, settings: &Settings) -> Result<(), EmbedError> {
    let mut shard = None;
    let mut is_shared = false;
    let listed = fs::read_dir(directory).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>()
    });
    for name in listed.map_err(EmbedError::file("list", directory))? {
        let (path, name) = (directory.join(&name), name.to_string_lossy());
        if name.starts_with("embed") && name.ends_with(".json") {
            if let Some(neighbour) = Record::read(&path)? {
                // Those who share in the work agree in how many they are, by `of`.
                neighbour.check(&path, settings, Some(SHARE))?;
                is_shared = true;
            }
        } else if name.ends_with(".parquet") && !name.starts_with('.') {
            shard = Some(path);
        }
    }
    match shard {
        Some(shard) if !is_shared => Err(EmbedError::NotOurs(shard)),
        _ => Ok(()),
    }
}

/// `skipped.csv`, and the lock on the directory: two processes would spoil each other's journal.
#[derive(Debug)]
struct SkippedList {
    path: PathBuf,
    writer: csv::Writer<File>,
}

impl SkippedList {
    fn lock(path: &Path) -> Result<SkippedList, EmbedError> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(EmbedError::file("open", path))?;
        // Some network file systems have no locks; there, the user must take care.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(EmbedError::Busy(path.parent().unwrap_or(path).to_owned()));
        }
        let writer = csv::Writer::from_writer(file);
        Ok(SkippedList { path: path.to_owned(), writer })
    }

    /// Leaves what whole parts wrote.
    fn cut(&mut self, length: u64) -> Result<(), EmbedError> {
        let mut file = self.writer.get_ref();
        let found = file.metadata().map_err(EmbedError::file("read", &self.path))?.len();
        if found < length {
            let reason = format!("it has {found} bytes, embed.json has {length}");
            return Err(EmbedError::Damaged { path: self.path.clone(), reason });
        }
        let cut = file.set_len(length).and_then(|()| file.seek(SeekFrom::End(0)));
        cut.map_err(EmbedError::file("shorten", &self.path))?;
        match length {
            0 => self.write(["id", "path", "kind", "message"]),
            _ => Ok(()),
        }
    }

    fn add(&mut self, image: &SkippedImage) -> Result<(), EmbedError> {
        self.write([&image.id, &image.path, &image.kind, &image.message])
    }

    fn write<T: AsRef<[u8]>>(&mut self, fields: [T; 4]) -> Result<(), EmbedError> {
        let written = self.writer.write_record(fields).map_err(io::Error::other);
        written.map_err(EmbedError::file("write", &self.path))
    }

    fn flush(&mut self) -> Result<(), EmbedError> {
        self.writer.flush().map_err(EmbedError::file("write", &self.path))
    }

    /// The length that is on the disk.
    fn sync(&mut self) -> Result<u64, EmbedError> {
        self.flush()?;
        let file = self.writer.get_ref();
        let length = file.sync_data().and_then(|()| file.metadata());
        Ok(length.map_err(EmbedError::file("write", &self.path))?.len())
    }
}
