//! Parquet, here because the archive's own crate does without Arrow.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use locdiff_archive::export::Pin;
use parquet::arrow::ArrowWriter;

/// One row for each picture: the columns of the CSV, times as timestamps in UTC.
pub(super) fn parquet(pins: &[Pin]) -> anyhow::Result<Vec<u8>> {
    let text = |of: fn(&Pin) -> Option<&str>| -> ArrayRef {
        Arc::new(pins.iter().map(of).collect::<StringArray>())
    };
    let number = |of: fn(&Pin) -> Option<f64>| -> ArrayRef {
        Arc::new(pins.iter().map(of).collect::<Float64Array>())
    };
    let times = pins.iter().map(|pin| pin.time.map(|time| (1e3 * time.unix_s()).round() as i64));
    let times = times.collect::<TimestampMillisecondArray>().with_timezone("UTC");
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("path", text(|pin| Some(pin.path.as_str())), false),
        ("latitude", number(|pin| Some(pin.place.latitude())), false),
        ("longitude", number(|pin| Some(pin.place.longitude())), false),
        ("source", text(|pin| Some(pin.source.name())), false),
        ("time", Arc::new(times) as ArrayRef, true),
        ("radius_68_km", number(|pin| pin.radius_68_km), true),
        ("confidence", number(|pin| pin.confidence), true),
        ("model", text(|pin| pin.model.as_deref()), true),
    ])?;
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None)?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}
