//! Writing shards.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, Float16Array, Float32Array, Float64Array, RecordBatch,
    StringArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use half::f16;
use half::slice::HalfFloatSliceExt;
use locdiff_sphere::LatLon;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::error::DataError;
use super::layout::{CHECKSUMS_KEY, LATITUDE, LONGITUDE, Layout, Numbers};

/// How shards are cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteOptions {
    /// Rows that are read, and shuffled, together. Smaller mix better; larger need fewer requests.
    pub rows_per_group: usize,
    /// Rows after which the next file begins. A multiple of `rows_per_group` leaves no small group.
    pub rows_per_shard: usize,
}

impl Default for WriteOptions {
    /// 6 MB groups in 400 MB files for 768 half-precision numbers per row.
    fn default() -> WriteOptions {
        WriteOptions { rows_per_group: 4096, rows_per_shard: 1 << 18 }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Number of files.
    pub shards: usize,
    /// Rows in all of them.
    pub rows: u64,
}

/// Writes rows into the shards `shard-00000.parquet`, `shard-00001.parquet` … of a directory.
///
/// A shard bears its name only when it is whole and on the disk; until then it is hidden. A
/// writer that is dropped without [`ShardWriter::finish`] leaves the shards that are whole.
///
/// ```
/// use locdiff_sphere::LatLon;
/// use locdiff::encoders::EncoderRecord;
/// use locdiff_train::{Dataset, Layout, Numbers, OnBadShard, ShardWriter};
///
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// let layout = Layout { encoder: EncoderRecord::of_identity("example"), width: 3, views: 1, numbers: Numbers::F16 };
/// let mut writer = ShardWriter::create(directory, layout, Default::default())?;
/// writer.write("paris", LatLon::new(48.86, 2.35)?, &[0.25, -1.0, 3.0])?;
/// assert_eq!(writer.finish()?.rows, 1);
/// assert_eq!(Dataset::open(&directory.display().to_string(), OnBadShard::Fail)?.rows(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShardWriter {
    directory: PathBuf,
    layout: Layout,
    options: WriteOptions,
    schema: SchemaRef,
    ids: Vec<String>,
    latitudes: Vec<Option<f64>>,
    longitudes: Vec<Option<f64>>,
    embeddings: Rows,
    /// The only shard, if its path is given beforehand.
    only: Option<PathBuf>,
    shard: Option<OpenShard>,
    written: Written,
}

/// Whether the rows of a shard have places. Training reads only shards that have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Places {
    /// Every row has a place.
    Known,
    /// Latitude and longitude may be null.
    Unknown,
}

/// Embeddings of the row group that is being filled.
#[derive(Debug)]
enum Rows {
    F16(Vec<f16>),
    F32(Vec<f32>),
}

impl ShardWriter {
    /// A writer into a directory that has no shards yet; it is made if need be.
    ///
    /// # Panics
    /// If the layout has no width or no views, or the options have no rows.
    pub fn create(
        directory: &Path,
        layout: Layout,
        options: WriteOptions,
    ) -> Result<ShardWriter, DataError> {
        assert!(layout.stride() > 0, "a row has at least one number");
        assert!(options.rows_per_group > 0 && options.rows_per_shard > 0, "no rows per shard");
        fs::create_dir_all(directory).map_err(file_error("make", directory))?;
        for entry in fs::read_dir(directory).map_err(file_error("list", directory))? {
            let path = entry.map_err(file_error("list", directory))?.path();
            if path.extension().is_some_and(|extension| extension == "parquet") {
                let there =
                    io::Error::new(io::ErrorKind::AlreadyExists, "shards are already there");
                return Err(file_error("begin a data set before", &path)(there));
            }
        }
        let schema = layout.schema();
        Ok(ShardWriter::new(directory.to_owned(), None, schema, layout, options))
    }

    /// A writer of one shard with a given path, in a directory that is there. It takes the place
    /// of what is at the path, when it is whole.
    pub(crate) fn create_one(
        path: &Path,
        layout: Layout,
        rows_per_group: usize,
        places: Places,
    ) -> ShardWriter {
        let schema = match places {
            Places::Known => layout.schema(),
            Places::Unknown => without_places(&layout.schema()),
        };
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let options = WriteOptions { rows_per_group, rows_per_shard: usize::MAX };
        ShardWriter::new(directory, Some(path.to_owned()), schema, layout, options)
    }

    fn new(
        directory: PathBuf,
        only: Option<PathBuf>,
        schema: Schema,
        layout: Layout,
        options: WriteOptions,
    ) -> ShardWriter {
        ShardWriter {
            directory,
            schema: Arc::new(schema),
            embeddings: Rows::new(layout.numbers),
            layout,
            options,
            ids: Vec::new(),
            latitudes: Vec::new(),
            longitudes: Vec::new(),
            only,
            shard: None,
            written: Written { shards: 0, rows: 0 },
        }
    }

    /// Adds a row. `embedding` holds the views one after another.
    ///
    /// Numbers must be finite as they are stored: half precision ends at 65504.
    pub fn write(&mut self, id: &str, place: LatLon, embedding: &[f32]) -> Result<(), DataError> {
        self.write_row(id, Some(place), embedding)
    }

    /// As [`ShardWriter::write`]; without a place only if the shard was begun so.
    pub(crate) fn write_row(
        &mut self,
        id: &str,
        place: Option<LatLon>,
        embedding: &[f32],
    ) -> Result<(), DataError> {
        let wrong = |reason| Err(DataError::Row { id: id.to_owned(), reason });
        let (width, views) = (self.layout.width, self.layout.views);
        if embedding.len() != self.layout.stride() {
            let found = embedding.len();
            return wrong(format!("it has {found} numbers, the data set {views} views of {width}"));
        }
        let start = self.ids.len() * embedding.len();
        let finite = match &mut self.embeddings {
            Rows::F16(rows) => {
                rows.resize(start + embedding.len(), f16::ZERO);
                rows[start..].convert_from_f32_slice(embedding);
                rows[start..].iter().position(|number| !number.is_finite())
            }
            Rows::F32(rows) => {
                rows.extend_from_slice(embedding);
                rows[start..].iter().position(|number| !number.is_finite())
            }
        };
        if let Some(at) = finite {
            match &mut self.embeddings {
                Rows::F16(rows) => rows.truncate(start),
                Rows::F32(rows) => rows.truncate(start),
            }
            let (number, numbers) = (embedding[at], self.layout.numbers);
            return wrong(format!("number {at} is {number}, which is not finite as {numbers}"));
        }
        self.ids.push(id.to_owned());
        self.latitudes.push(place.map(|place| place.latitude()));
        self.longitudes.push(place.map(|place| place.longitude()));
        let in_shard = self.shard.as_ref().map_or(0, |shard| shard.rows) + self.ids.len();
        if in_shard == self.options.rows_per_shard {
            self.end_shard()
        } else if self.ids.len() == self.options.rows_per_group {
            self.end_group()
        } else {
            Ok(())
        }
    }

    /// Writes what is left and closes the last shard.
    pub fn finish(mut self) -> Result<Written, DataError> {
        self.end_shard()?;
        Ok(self.written)
    }

    fn end_group(&mut self) -> Result<(), DataError> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let ids = std::mem::take(&mut self.ids);
        let rows = ids.len();
        let numbers = std::mem::replace(&mut self.embeddings, Rows::new(self.layout.numbers));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(ids)),
            Arc::new(Float64Array::from(std::mem::take(&mut self.latitudes))),
            Arc::new(Float64Array::from(std::mem::take(&mut self.longitudes))),
            Arc::new(lists(&self.schema, numbers.into_array())),
        ];
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .expect("columns are of the schema that the layout gives");
        let shard = match &mut self.shard {
            Some(shard) => shard,
            empty => {
                let number = self.written.shards;
                let numbered = || self.directory.join(format!("shard-{number:05}.parquet"));
                let path = self.only.clone().unwrap_or_else(numbered);
                empty.insert(OpenShard::create(path, &self.layout, &self.schema)?)
            }
        };
        shard.write_group(&batch)?;
        shard.rows += rows;
        self.written.rows += rows as u64;
        Ok(())
    }

    fn end_shard(&mut self) -> Result<(), DataError> {
        self.end_group()?;
        if let Some(shard) = self.shard.take() {
            shard.finish()?;
            self.written.shards += 1;
        }
        Ok(())
    }
}

impl Rows {
    fn new(numbers: Numbers) -> Rows {
        match numbers {
            Numbers::F16 => Rows::F16(Vec::new()),
            Numbers::F32 => Rows::F32(Vec::new()),
        }
    }

    fn into_array(self) -> ArrayRef {
        match self {
            Rows::F16(rows) => Arc::new(Float16Array::from(rows)),
            Rows::F32(rows) => Arc::new(Float32Array::from(rows)),
        }
    }
}

/// The same columns, where latitude and longitude may be null.
fn without_places(schema: &Schema) -> Schema {
    let nullable = |field: &Arc<Field>| {
        let is_place = [LATITUDE, LONGITUDE].contains(&field.name().as_str());
        field.as_ref().clone().with_nullable(is_place)
    };
    Schema::new(schema.fields().iter().map(nullable).collect::<Vec<Field>>())
}

fn lists(schema: &Schema, numbers: ArrayRef) -> FixedSizeListArray {
    match schema.fields()[3].data_type() {
        DataType::FixedSizeList(number, size) => {
            FixedSizeListArray::new(number.clone(), *size, numbers, None)
        }
        other => unreachable!("embeddings are lists of a fixed size, not {other}"),
    }
}

/// A shard under its hidden name.
#[derive(Debug)]
struct OpenShard {
    path: PathBuf,
    hidden: PathBuf,
    writer: ArrowWriter<Checksummed>,
    rows: usize,
    checksums: Vec<String>,
}

impl OpenShard {
    fn create(path: PathBuf, layout: &Layout, schema: &SchemaRef) -> Result<OpenShard, DataError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hidden = path.with_file_name(format!(".{name}.partial"));
        let file = File::create(&hidden).map_err(file_error("create", &hidden))?;
        // Embeddings don't compress and have no repeated values; their pages are copied as they are.
        let properties = WriterProperties::builder()
            .set_created_by(concat!("locdiff ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::UNCOMPRESSED)
            .set_encoding(Encoding::PLAIN)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_max_row_group_row_count(None)
            .set_key_value_metadata(Some(layout.metadata()))
            .build();
        let target = Checksummed { file, hasher: crc32fast::Hasher::new() };
        let mut writer = ArrowWriter::try_new(target, schema.clone(), Some(properties))
            .map_err(|error| file_error("write", &hidden)(io::Error::other(error)))?;
        // What precedes the first row group belongs to none.
        writer.sync().map_err(file_error("write", &hidden))?;
        writer.inner_mut().take_checksum();
        Ok(OpenShard { path, hidden, writer, rows: 0, checksums: Vec::new() })
    }

    fn write_group(&mut self, batch: &RecordBatch) -> Result<(), DataError> {
        let result = self.writer.write(batch).and_then(|()| self.writer.flush());
        result.map_err(|error| file_error("write", &self.hidden)(io::Error::other(error)))?;
        self.writer.sync().map_err(file_error("write", &self.hidden))?;
        self.checksums.push(format!("{:08x}", self.writer.inner_mut().take_checksum()));
        Ok(())
    }

    fn finish(mut self) -> Result<(), DataError> {
        let checksums = KeyValue::new(CHECKSUMS_KEY.to_owned(), self.checksums.join(","));
        self.writer.append_key_value_metadata(checksums);
        let end = self.writer.finish().map_err(io::Error::other);
        end.and_then(|_| self.writer.inner().file.sync_all())
            .map_err(file_error("write", &self.hidden))?;
        fs::rename(&self.hidden, &self.path).map_err(file_error("name", &self.path))
    }
}

impl Drop for OpenShard {
    fn drop(&mut self) {
        // Not there any more if the shard is finished.
        let _ = fs::remove_file(&self.hidden);
    }
}

/// A file with the checksum of what was written since the last one was taken.
#[derive(Debug)]
struct Checksummed {
    file: File,
    hasher: crc32fast::Hasher,
}

impl Checksummed {
    fn take_checksum(&mut self) -> u32 {
        std::mem::take(&mut self.hasher).finalize()
    }
}

impl Write for Checksummed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn file_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataError {
    let path = path.display().to_string();
    move |source| DataError::File { what, path, source }
}
