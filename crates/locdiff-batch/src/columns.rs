//! Columns of Arrow tables: images in, answers out. The same for `locate_table` in Python and for batches.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use locdiff::Answer;

const NUMBERS: [&str; 7] =
    ["latitude", "longitude", "mass", "radius_50_km", "radius_90_km", "area_50_km2", "area_90_km2"];
const TEXTS: [&str; 8] =
    ["town", "district", "country", "country_code", "model", "model_version", "answer", "error"];
const CALIBRATED: &str = "calibrated";

/// Answers, column by column: an empty answer is null, and the last column, `error`, has the reason.
#[derive(Debug, Default)]
pub struct AnswerColumns {
    numbers: [Float64Builder; NUMBERS.len()],
    calibrated: BooleanBuilder,
    texts: [StringBuilder; TEXTS.len()],
}

impl AnswerColumns {
    /// Names and types of the columns.
    pub fn fields() -> impl Iterator<Item = Field> {
        let numbers = NUMBERS.iter().map(|name| Field::new(*name, DataType::Float64, true));
        let texts = TEXTS.iter().map(|name| Field::new(*name, DataType::Utf8, true));
        numbers.chain([Field::new(CALIBRATED, DataType::Boolean, true)]).chain(texts)
    }

    /// Adds an answer, or why there is none.
    pub fn push(&mut self, answer: Result<&Answer, &str>) {
        let (numbers, calibrated, texts) = match answer {
            Ok(record) => {
                let (place, name) = (&record.place, &record.place.name);
                let numbers = [
                    place.latitude,
                    place.longitude,
                    record.candidates[0].mass,
                    record.radius_50_km,
                    record.radius_90_km,
                    record.area_50_km2,
                    record.area_90_km2,
                ];
                let texts = [
                    name.town.clone(),
                    name.district.clone(),
                    name.country.clone(),
                    name.country_code.clone(),
                    Some(record.model.name.clone()),
                    Some(record.model.version.clone()),
                    serde_json::to_string(record).ok(),
                    None,
                ];
                (numbers.map(Some), Some(record.model.calibrated), texts)
            }
            Err(reason) => {
                let mut texts = [const { None }; TEXTS.len()];
                texts[TEXTS.len() - 1] = Some(reason.to_owned());
                ([None; NUMBERS.len()], None, texts)
            }
        };
        for (builder, number) in self.numbers.iter_mut().zip(numbers) {
            builder.append_option(number);
        }
        self.calibrated.append_option(calibrated);
        for (builder, text) in self.texts.iter_mut().zip(texts) {
            builder.append_option(text);
        }
    }

    /// The columns so far. It is empty afterwards.
    pub fn finish(&mut self) -> Vec<ArrayRef> {
        let numbers = self.numbers.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
        let mut arrays: Vec<ArrayRef> = numbers.collect();
        arrays.push(Arc::new(self.calibrated.finish()));
        arrays.extend(self.texts.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        arrays
    }
}

/// Whether a column of this type can contain images.
pub fn is_images(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Struct(fields) => {
            fields.iter().any(|field| field.name() == "bytes" || field.name() == "path")
        }
        kind => is_bytes(kind),
    }
}

/// Whether a column of this type contains the bytes of images.
pub(crate) fn is_bytes(kind: &DataType) -> bool {
    match kind {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => true,
        DataType::Struct(fields) => {
            fields.iter().any(|field| field.name() == "bytes" && is_bytes(field.data_type()))
        }
        _ => false,
    }
}

/// The bytes in a row, if the column has bytes and the row some.
pub fn bytes(column: &ArrayRef, row: usize) -> Option<&[u8]> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Binary => Some(column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Some(column.as_binary::<i64>().value(row)),
        DataType::BinaryView => Some(column.as_binary_view().value(row)),
        _ => None,
    }
}

/// The text in a row, if the column has texts and the row one.
pub fn text(column: &ArrayRef, row: usize) -> Option<&str> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8 => Some(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(column.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(column.as_string_view().value(row)),
        _ => None,
    }
}
