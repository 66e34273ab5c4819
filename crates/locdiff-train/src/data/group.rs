//! A row group from bytes to numbers.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use half::f16;
use half::slice::HalfFloatSliceExt;
use locdiff_sphere::LatLon;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use super::dataset::{OnBadShard, Shard, Shared, Skipped};
use super::error::{DataError, Fault};
use super::layout::{COLUMNS, EMBEDDING, ID, LATITUDE, LONGITUDE, Numbers};
use super::plain_pages::read_plain_lists;
use super::source::Pieces;
use super::split::Part;
use super::stream::Ids;

/// How many times larger than in the file a row group may be in memory. Embeddings are hardly compressed.
const MOST_EXPANSION: u64 = 1000;
/// What a row group may take in memory however small it is in the file.
const ALWAYS_BYTES: u64 = 16 << 20;
/// What a row takes besides its embedding: id and place.
const ROW_BYTES: usize = 64;

/// A decoded row group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Rows that are valid and of the wanted part.
    pub(crate) kept: Vec<u32>,
    /// Of all rows, if they are wanted.
    pub(crate) ids: Vec<String>,
    /// Of all rows; a pole where invalid.
    pub(crate) places: Vec<LatLon>,
    /// `[rows, views, width]`
    pub(crate) embeddings: Values,
    /// Valid rows of the other part.
    pub(crate) held_out: u64,
    /// What had to be left out.
    pub(crate) skipped: Option<Skipped>,
}

/// Numbers as they are stored: half of the memory for half precision.
#[derive(Debug)]
pub(crate) enum Values {
    F16(Vec<f16>),
    F32(Vec<f32>),
}

impl Default for Values {
    fn default() -> Values {
        Values::F32(Vec::new())
    }
}

impl Values {
    fn zeros(numbers: Numbers, count: usize) -> Values {
        match numbers {
            Numbers::F16 => Values::F16(vec![f16::ZERO; count]),
            Numbers::F32 => Values::F32(vec![0.0; count]),
        }
    }

    fn as_bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Values::F16(values) => bytemuck::cast_slice_mut(values),
            Values::F32(values) => bytemuck::cast_slice_mut(values),
        }
    }

    /// Single-precision copy of some of the numbers.
    pub(crate) fn copy_into(&self, range: Range<usize>, target: &mut [f32]) {
        match self {
            Values::F16(values) => values[range].convert_to_f32_slice(target),
            Values::F32(values) => target.copy_from_slice(&values[range]),
        }
    }

    fn are_finite(&self, range: Range<usize>) -> bool {
        // The largest magnitude as an integer: no branch, so that it is vectorised.
        match self {
            Values::F16(values) => {
                let bits: &[i16] = bytemuck::cast_slice(&values[range]);
                bits.iter().fold(0, |most, bits| most.max(bits & i16::MAX)) < 0x7c00
            }
            Values::F32(values) => {
                let bits: &[i32] = bytemuck::cast_slice(&values[range]);
                bits.iter().fold(0, |most, bits| most.max(bits & i32::MAX)) < 0x7f80_0000
            }
        }
    }
}

/// Reads and decodes a row group; what is bad is left out or an error, as the policy says.
pub(crate) fn read_group(
    set: &Shared,
    number: usize,
    part: &Part,
    ids: Ids,
) -> Result<Group, DataError> {
    let (shard, group) = set.groups[number];
    let shard = &set.shards[shard];
    let bad = |reason, rows: usize| {
        let (shard, group) = (set.source.path_of(&shard.file.name), Some(group));
        match set.on_bad_shard {
            OnBadShard::Fail => Err(DataError::BadShard { shard, group, reason }),
            OnBadShard::Skip => Ok(Skipped { shard, group, rows: Some(rows as u64), reason }),
        }
    };
    // Damaged bytes without checksums may hit an assertion of the general reader.
    let decoded = catch_unwind(AssertUnwindSafe(|| decode(set, shard, group)))
        .unwrap_or_else(|_| Err(Fault::Bad("the Parquet reader panicked on it".to_owned())));
    let mut columns = match decoded {
        Ok(columns) => columns,
        Err(Fault::Fatal(error)) => return Err(error),
        Err(Fault::Bad(reason)) => {
            return Ok(Group {
                skipped: Some(bad(reason, shard.rows(group))?),
                ..Group::default()
            });
        }
    };
    let stride = set.layout.stride();
    let (mut result, mut first, mut invalid) = (Group::default(), String::new(), 0);
    for row in 0..columns.rows {
        match columns.place_of(row, stride) {
            Ok(place) => {
                result.places.push(place);
                match part.has(columns.ids[row].as_deref().unwrap_or_default()) {
                    true => result.kept.push(row as u32),
                    false => result.held_out += 1,
                }
            }
            Err(reason) => {
                result.places.push(LatLon::NORTH_POLE);
                if invalid == 0 {
                    first = format!("row {row}: {reason}");
                }
                invalid += 1;
            }
        }
    }
    if invalid > 0 {
        let reason = match invalid {
            1 => first,
            _ => format!("{invalid} rows are not valid, the first is {first}"),
        };
        result.skipped = Some(bad(reason, invalid)?);
    }
    if ids == Ids::Include {
        result.ids = columns.ids.into_iter().map(Option::unwrap_or_default).collect();
    }
    result.embeddings = std::mem::take(&mut columns.embeddings);
    Ok(result)
}

/// All columns of a row group. `None` stands for null.
struct Columns {
    rows: usize,
    ids: Vec<Option<String>>,
    latitudes: Vec<Option<f64>>,
    longitudes: Vec<Option<f64>>,
    embeddings: Values,
    /// Rows whose list is null, contains a null or has another length.
    broken: Vec<usize>,
}

impl Columns {
    /// The place of a row, or why the row is of no use.
    fn place_of(&self, row: usize, stride: usize) -> Result<LatLon, String> {
        if self.ids[row].is_none() {
            return Err("its id is null".to_owned());
        }
        let (Some(latitude), Some(longitude)) = (self.latitudes[row], self.longitudes[row]) else {
            return Err("its place is null".to_owned());
        };
        let place = LatLon::new(latitude, longitude).map_err(|error| error.to_string())?;
        if self.broken.binary_search(&row).is_ok() {
            return Err(format!("its embedding is null or not of {stride} numbers"));
        }
        if !self.embeddings.are_finite(row * stride..(row + 1) * stride) {
            return Err("its embedding has numbers that are not finite".to_owned());
        }
        Ok(place)
    }
}

fn decode(set: &Shared, shard: &Shard, group: usize) -> Result<Columns, Fault> {
    let metadata = shard.footer.metadata().row_group(group);
    let mut ranges = Vec::new();
    for name in COLUMNS {
        let (start, length) = column(metadata, name)?.byte_range();
        ranges.push(start..start.saturating_add(length));
    }
    ranges.sort_by_key(|range| range.start);
    if let Some(range) = ranges.iter().find(|range| range.end > shard.file.bytes) {
        let size = shard.file.bytes;
        return Err(Fault::Bad(format!("it ends at byte {}, the file at {size}", range.end)));
    }
    let pieces = Pieces::read(&set.source, &shard.file.name, shard.file.bytes, &ranges)?;
    if let Some(checksums) = &shard.checksums {
        let (expected, found) = (checksums[group], pieces.checksum());
        if expected != found {
            return Err(Fault::Bad(format!(
                "its bytes have the checksum {found:08x}, expected {expected:08x}"
            )));
        }
    }
    let rows = shard.rows(group);
    let (stride, numbers) = (set.layout.stride(), set.layout.numbers);
    // A few bytes can stand for any number of equal rows, and these need memory.
    let row_bytes = (stride * numbers.bytes() + ROW_BYTES) as u64;
    let stored: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let most = stored.saturating_mul(MOST_EXPANSION).saturating_add(ALWAYS_BYTES);
    if (rows as u64).saturating_mul(row_bytes) > most {
        return Err(Fault::Bad(format!("its footer has {rows} rows, its columns {stored} bytes")));
    }
    let small = read_columns(shard, group, &pieces, &[ID, LATITUDE, LONGITUDE])?;
    let (mut ids, mut latitudes, mut longitudes) = (Vec::new(), Vec::new(), Vec::new());
    for batch in &small {
        ids.extend(texts(named(batch, ID)?)?);
        latitudes.extend(floats(named(batch, LATITUDE)?)?);
        longitudes.extend(floats(named(batch, LONGITUDE)?)?);
    }
    if ids.len() != rows {
        return Err(Fault::Bad(format!("it has {} rows, its footer has {rows}", ids.len())));
    }
    let mut embeddings = Values::zeros(numbers, rows * stride);
    let mut broken = Vec::new();
    let chunk = column(metadata, EMBEDDING)?;
    let target = embeddings.as_bytes_mut();
    if !read_plain_lists(&pieces, chunk, rows, stride, numbers.bytes(), target)? {
        let batches = read_columns(shard, group, &pieces, &[EMBEDDING])?;
        match &mut embeddings {
            Values::F16(target) => fill::<Float16Type>(&batches, stride, target, &mut broken)?,
            Values::F32(target) => fill::<Float32Type>(&batches, stride, target, &mut broken)?,
        }
    }
    Ok(Columns { rows, ids, latitudes, longitudes, embeddings, broken })
}

/// The chunk of a column, by the first part of its path: lists have more parts.
fn column<'a>(
    metadata: &'a RowGroupMetaData,
    name: &str,
) -> Result<&'a ColumnChunkMetaData, Fault> {
    let is_it = |column: &&ColumnChunkMetaData| {
        column.column_path().parts().first().is_some_and(|part| part == name)
    };
    let column = metadata.columns().iter().find(is_it);
    column.ok_or_else(|| Fault::Bad(format!("it has no column `{name}`")))
}

/// The general reader, for columns small or unusual.
fn read_columns(
    shard: &Shard,
    group: usize,
    pieces: &Pieces,
    names: &[&str],
) -> Result<Vec<RecordBatch>, Fault> {
    let builder =
        ParquetRecordBatchReaderBuilder::new_with_metadata(pieces.clone(), shard.footer.clone());
    let mask = ProjectionMask::columns(builder.parquet_schema(), names.iter().copied());
    let reader = builder
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(shard.rows(group).clamp(1, 8192))
        .build()?;
    let (mut batches, mut rows) = (Vec::new(), 0);
    for batch in reader {
        let batch = batch?;
        rows += batch.num_rows();
        // Pages may have more rows than the footer, without end.
        if rows > shard.rows(group) {
            let expected = shard.rows(group);
            return Err(Fault::Bad(format!("its footer has {expected} rows, its pages more")));
        }
        batches.push(batch);
    }
    Ok(batches)
}

fn named<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, Fault> {
    batch.column_by_name(name).ok_or_else(|| Fault::Bad(format!("it has no column `{name}`")))
}

fn texts(array: &ArrayRef) -> Result<Vec<Option<String>>, Fault> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(owned).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(owned).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(owned).collect(),
        other => return Err(Fault::Bad(format!("ids are {other}"))),
    })
}

fn floats(array: &ArrayRef) -> Result<Vec<Option<f64>>, Fault> {
    Ok(match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().collect(),
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().iter().map(|value| value.map(f64::from)).collect()
        }
        other => return Err(Fault::Bad(format!("coordinates are {other}"))),
    })
}

/// Copies lists of any kind into rows of `stride` numbers; those that don't fit are `broken`.
fn fill<T: ArrowPrimitiveType>(
    batches: &[RecordBatch],
    stride: usize,
    target: &mut [T::Native],
    broken: &mut Vec<usize>,
) -> Result<(), Fault> {
    let mut rows = target.chunks_exact_mut(stride).enumerate();
    for batch in batches {
        let lists = named(batch, EMBEDDING)?;
        for index in 0..lists.len() {
            let Some((row, target)) = rows.next() else {
                return Err(Fault::Bad("it has more embeddings than rows".to_owned()));
            };
            let list = match lists.data_type() {
                _ if lists.is_null(index) => None,
                DataType::FixedSizeList(..) => Some(lists.as_fixed_size_list().value(index)),
                DataType::List(_) => Some(lists.as_list::<i32>().value(index)),
                DataType::LargeList(_) => Some(lists.as_list::<i64>().value(index)),
                other => return Err(Fault::Bad(format!("embeddings are {other}"))),
            };
            let list = list.filter(|list| list.len() == stride && list.null_count() == 0);
            match list.as_ref().and_then(|list| list.as_primitive_opt::<T>()) {
                Some(list) => target.copy_from_slice(list.values()),
                None => broken.push(row),
            }
        }
    }
    match rows.next() {
        Some(_) => Err(Fault::Bad("it has fewer embeddings than rows".to_owned())),
        None => Ok(()),
    }
}
