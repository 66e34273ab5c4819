//! Reading places and rows of numbers: text, JSON or .npy, from a file or stdin. The
//! format is recognised by the first byte.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, stdin};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use locdiff_sphere::LatLon;
use npyz::{NpyFile, Order};
use serde::Deserialize;
use serde_json::Value;

type Reader = Box<dyn BufRead>;

/// Rows of numbers, one at a time.
pub(crate) struct Rows {
    rows: Box<dyn Iterator<Item = anyhow::Result<Vec<f64>>>>,
    len: Option<u64>,
}

impl Rows {
    /// How many there are, if that is known beforehand.
    pub(crate) fn len(&self) -> Option<u64> {
        self.len
    }
}

impl Iterator for Rows {
    type Item = anyhow::Result<Vec<f64>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next()
    }
}

/// Rows of coefficients.
pub(crate) fn rows(path: Option<&Path>) -> anyhow::Result<Rows> {
    let (mut reader, name) = open(path)?;
    let first = first_byte(&mut reader).with_context(|| format!("cannot read {name}"))?;
    Ok(match first {
        Some(0x93) => npy_rows(reader).with_context(|| format!("cannot read {name}"))?,
        Some(b'{' | b'[') => Rows { rows: Box::new(json_values(reader).map(json_row)), len: None },
        _ => {
            let rows = text_lines(reader).map(|line| {
                let (number, line) = line?;
                text_row(&line).with_context(|| format!("line {number}"))
            });
            Rows { rows: Box::new(rows), len: None }
        }
    })
}

/// Places, all of them.
pub(crate) fn places(path: Option<&Path>) -> anyhow::Result<Vec<LatLon>> {
    let (mut reader, name) = open(path)?;
    let first = first_byte(&mut reader).with_context(|| format!("cannot read {name}"))?;
    let places: anyhow::Result<Vec<LatLon>> = match first {
        // What `decode` writes for one mode has a third column, the value.
        Some(0x93) => npy_rows(reader).and_then(|rows| {
            rows.map(|row| {
                row.and_then(|row| pair(row.get(..2).filter(|_| row.len() == 3).unwrap_or(&row)))
            })
            .collect()
        }),
        Some(b'{' | b'[') => json_values(reader).map(|value| json_place(value?)).collect(),
        _ => text_places(reader),
    };
    places.with_context(|| format!("cannot read places from {name}"))
}

fn open(path: Option<&Path>) -> anyhow::Result<(Reader, String)> {
    match path.filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let name = path.display().to_string();
            let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
            Ok((Box::new(BufReader::new(file)), name))
        }
        None => {
            ensure!(
                path.is_some() || !stdin().is_terminal(),
                "nothing to read: name a file with --input, or pipe it in (see --help)"
            );
            Ok((Box::new(BufReader::new(stdin())), "stdin".to_owned()))
        }
    }
}

/// The first byte that says something: blanks and a byte order mark are skipped.
fn first_byte(reader: &mut Reader) -> std::io::Result<Option<u8>> {
    loop {
        let buffer = reader.fill_buf()?;
        let skipped = match buffer {
            [0xEF, 0xBB, 0xBF, ..] => 3,
            [first, ..] if first.is_ascii_whitespace() => 1,
            _ => return Ok(buffer.first().copied()),
        };
        reader.consume(skipped);
    }
}

/// Lines with their numbers, without blank ones and comments.
fn text_lines(reader: Reader) -> impl Iterator<Item = anyhow::Result<(usize, String)>> {
    let numbered = reader.lines().enumerate();
    numbered.filter_map(|(index, line)| match line {
        Ok(line) if line.trim().is_empty() || line.starts_with('#') => None,
        Ok(line) => Some(Ok((index + 1, line))),
        Err(error) => Some(Err(anyhow!(error).context(format!("line {}", index + 1)))),
    })
}

fn text_places(reader: Reader) -> anyhow::Result<Vec<LatLon>> {
    let mut places = Vec::new();
    for (position, line) in text_lines(reader).enumerate() {
        let (number, line) = line?;
        // A heading such as latitude,longitude may stand above the places.
        if position == 0 && line.to_ascii_lowercase().starts_with("lat") {
            continue;
        }
        places.push(line.parse().with_context(|| format!("line {number}"))?);
    }
    Ok(places)
}

/// Numbers separated by commas, or else by blanks.
fn text_row(line: &str) -> anyhow::Result<Vec<f64>> {
    let parse = |part: &str| part.parse().map_err(|_| anyhow!("`{part}` is not a number"));
    match line.contains(',') {
        true => line.split(',').map(str::trim).map(parse).collect(),
        false => line.split_whitespace().map(parse).collect(),
    }
}

/// JSON values one after the other; one array of arrays or objects counts as its elements.
fn json_values(reader: Reader) -> impl Iterator<Item = anyhow::Result<Value>> {
    let values = serde_json::Deserializer::from_reader(reader).into_iter::<Value>();
    values.flat_map(|value| match value {
        Ok(Value::Array(elements)) if elements.iter().all(|e| e.is_array() || e.is_object()) => {
            elements.into_iter().map(Ok).collect()
        }
        Ok(value) => vec![Ok(value)],
        Err(error) => vec![Err(anyhow!(error).context("not valid JSON"))],
    })
}

fn json_row(value: anyhow::Result<Value>) -> anyhow::Result<Vec<f64>> {
    let value = match value? {
        Value::Object(mut object) => object.remove("coefficients").context(
            "the JSON object has no `coefficients`; `locdiff sphere encode --json` writes them",
        )?,
        other => other,
    };
    Vec::deserialize(value).context("coefficients must be an array of numbers")
}

fn json_place(value: Value) -> anyhow::Result<LatLon> {
    let read = |value: &Value, name: &str| {
        value
            .get(name)
            .and_then(Value::as_f64)
            .with_context(|| format!("no number `{name}` in {value}"))
    };
    match &value {
        // What `decode` writes: the best mode is the place.
        Value::Object(object) if object.contains_key("modes") => {
            json_place(value["modes"][0].clone())
        }
        Value::Object(_) => Ok(LatLon::new(read(&value, "latitude")?, read(&value, "longitude")?)?),
        _ => pair(&Vec::deserialize(&value).with_context(|| format!("{value} is not a place"))?),
    }
}

fn pair(row: &[f64]) -> anyhow::Result<LatLon> {
    match row {
        [latitude, longitude] => Ok(LatLon::new(*latitude, *longitude)?),
        _ => bail!("a place has two numbers, latitude and longitude; this row has {}", row.len()),
    }
}

fn npy_rows(reader: Reader) -> anyhow::Result<Rows> {
    let file = NpyFile::new(reader).context("not a valid .npy file")?;
    ensure!(file.order() == Order::C, "the array is in Fortran order: save it in C order");
    let shape: Vec<usize> = file.shape().iter().map(|&side| side as usize).collect();
    ensure!(!shape.is_empty(), "the array is a single number");
    let width = shape[shape.len() - 1];
    let count = (file.len() as usize).checked_div(width).unwrap_or(0);
    let file = match file.try_data::<f64>() {
        Ok(data) => return Ok(chunked(data.map(|value| Ok(value?)), width, count)),
        Err(file) => file,
    };
    let dtype = file.dtype();
    match file.try_data::<f32>() {
        Ok(data) => Ok(chunked(data.map(|value| Ok(f64::from(value?))), width, count)),
        Err(_) => bail!("the array's type is {}, not float64 or float32", dtype.descr()),
    }
}

fn chunked(
    mut numbers: impl Iterator<Item = anyhow::Result<f64>> + 'static,
    width: usize,
    count: usize,
) -> Rows {
    let rows = (0..count).map(move |_| numbers.by_ref().take(width).collect());
    Rows { rows: Box::new(rows), len: Some(count as u64) }
}
