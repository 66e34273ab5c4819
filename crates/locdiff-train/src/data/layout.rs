//! The metadata of a shard of embeddings.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use locdiff::encoders::EncoderRecord;
use parquet::file::metadata::KeyValue;

const FORMAT: &str = "locdiff-embeddings";
const VERSION: &str = "1";
const FORMAT_KEY: &str = "locdiff.format";
const VERSION_KEY: &str = "locdiff.version";
const ENCODER_KEY: &str = "locdiff.encoder";
const WIDTH_KEY: &str = "locdiff.width";
const VIEWS_KEY: &str = "locdiff.views";
/// One CRC-32 per row group, in hexadecimal, separated by commas. Optional.
pub(crate) const CHECKSUMS_KEY: &str = "locdiff.crc32";

pub(crate) const ID: &str = "id";
pub(crate) const LATITUDE: &str = "latitude";
pub(crate) const LONGITUDE: &str = "longitude";
pub(crate) const EMBEDDING: &str = "embedding";
pub(crate) const COLUMNS: [&str; 4] = [ID, LATITUDE, LONGITUDE, EMBEDDING];

/// How the numbers of embeddings are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Numbers {
    /// Half precision: half the space, and enough for embeddings of common encoders.
    F16,
    /// Single precision.
    F32,
}

impl Numbers {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Numbers::F16 => 2,
            Numbers::F32 => 4,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Numbers::F16 => DataType::Float16,
            Numbers::F32 => DataType::Float32,
        }
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Numbers::F16 => "f16",
            Numbers::F32 => "f32",
        })
    }
}

/// Numbers in an embedding, and embeddings of a row.
const MOST_NUMBERS: usize = 1 << 20;
const MOST_VIEWS: usize = 1 << 10;

/// What all shards of a data set have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// The encoder that made the embeddings.
    pub encoder: EncoderRecord,
    /// Numbers in an embedding.
    pub width: usize,
    /// Embeddings of each row, made from augmented views of its image; 1 without augmentation.
    pub views: usize,
    /// Precision of the numbers.
    pub numbers: Numbers,
}

impl Layout {
    /// Numbers in a row: `[views, width]`.
    pub(crate) fn stride(&self) -> usize {
        self.views * self.width
    }

    /// Columns of the shards that we write. None may be null, and lists have a fixed size.
    pub(crate) fn schema(&self) -> Schema {
        let number = Arc::new(Field::new("element", self.numbers.data_type(), false));
        let stride = i32::try_from(self.stride()).expect("a row has less than 2³¹ numbers");
        Schema::new(vec![
            Field::new(ID, DataType::Utf8, false),
            Field::new(LATITUDE, DataType::Float64, false),
            Field::new(LONGITUDE, DataType::Float64, false),
            Field::new(EMBEDDING, DataType::FixedSizeList(number, stride), false),
        ])
    }

    pub(crate) fn metadata(&self) -> Vec<KeyValue> {
        [
            (FORMAT_KEY, FORMAT.to_owned()),
            (VERSION_KEY, VERSION.to_owned()),
            (ENCODER_KEY, self.encoder.to_text()),
            (WIDTH_KEY, self.width.to_string()),
            (VIEWS_KEY, self.views.to_string()),
        ]
        .map(|(key, value)| KeyValue::new(key.to_owned(), value))
        .to_vec()
    }

    /// Reads metadata and checks columns, of our files and of those that others wrote; otherwise
    /// states what is wrong.
    pub(crate) fn of(schema: &Schema, metadata: &[KeyValue]) -> Result<Layout, String> {
        let value = |key: &str| {
            let entry = metadata.iter().find(|entry| entry.key == key);
            entry.and_then(|entry| entry.value.clone()).ok_or(format!("its metadata lack `{key}`"))
        };
        // So that their product, the length of a list, is below 2³¹.
        let count = |key: &str, most: usize| {
            let text = value(key)?;
            let number = text.parse().ok().filter(|number| (1..=most).contains(number));
            number.ok_or_else(|| {
                let start: String = text.chars().take(40).collect();
                format!("`{key}` is `{start}`, not a number from 1 to {most}")
            })
        };
        let (format, version) = (value(FORMAT_KEY)?, value(VERSION_KEY)?);
        if format != FORMAT || version != VERSION {
            return Err(format!(
                "it is of format {format} version {version}, this program reads {FORMAT} version {VERSION}"
            ));
        }
        let (width, views) = (count(WIDTH_KEY, MOST_NUMBERS)?, count(VIEWS_KEY, MOST_VIEWS)?);
        let numbers = numbers_of(schema, width, views)?;
        let encoder = EncoderRecord::from_text(&value(ENCODER_KEY)?);
        Ok(Layout { encoder, width, views, numbers })
    }
}

/// Checks the columns and returns the type of the embeddings' numbers.
fn numbers_of(schema: &Schema, width: usize, views: usize) -> Result<Numbers, String> {
    let data_type = |name: &str| match schema.fields().find(name) {
        Some((_, field)) => Ok(field.data_type()),
        None => Err(format!("it has no column `{name}`")),
    };
    let wrong = |name, found: &DataType, wanted| {
        Err(format!("column `{name}` is {found}, it should be {wanted}"))
    };
    match data_type(ID)? {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {}
        other => return wrong(ID, other, "text"),
    }
    for name in [LATITUDE, LONGITUDE] {
        match data_type(name)? {
            DataType::Float64 | DataType::Float32 => {}
            other => return wrong(name, other, "a 64- or 32-bit float"),
        }
    }
    let column = data_type(EMBEDDING)?;
    let number = match column {
        DataType::FixedSizeList(number, size) => {
            if usize::try_from(*size) != Ok(views * width) {
                return Err(format!(
                    "its lists have {size} numbers, `{WIDTH_KEY}` {width} times `{VIEWS_KEY}` {views} is {}",
                    views * width
                ));
            }
            number
        }
        DataType::List(number) | DataType::LargeList(number) => number,
        other => return wrong(EMBEDDING, other, "a list of 16- or 32-bit floats"),
    };
    match number.data_type() {
        DataType::Float16 => Ok(Numbers::F16),
        DataType::Float32 => Ok(Numbers::F32),
        _ => wrong(EMBEDDING, column, "a list of 16- or 32-bit floats"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_file_have_limits() {
        let encoder = EncoderRecord::of_identity("test");
        let layout = Layout { encoder, width: 4, views: 2, numbers: Numbers::F32 };
        let (schema, metadata) = (layout.schema(), layout.metadata());
        assert_eq!(Layout::of(&schema, &metadata).as_ref(), Ok(&layout));
        for key in [WIDTH_KEY, VIEWS_KEY] {
            for lie in ["4611686018427387904", "0", "-1", "18446744073709551616"] {
                let mut metadata = metadata.clone();
                let entry =
                    metadata.iter_mut().find(|entry| entry.key == key).expect("it is there");
                entry.value = Some(lie.to_owned());
                let error = Layout::of(&schema, &metadata).expect_err("a lie");
                assert!(error.contains(key) && error.contains(lie), "{error}");
            }
        }
    }
}
