//! Reading places and rows of numbers: text, JSON or .npy, from a file or stdin. The
//! format is recognised by the first byte.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read, stdin};
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, anyhow, bail, ensure};
use locdiff_sphere::LatLon;
use npyz::{NpyFile, Order};
use serde::Deserialize;
use serde_json::Value;

type Reader = Box<dyn BufRead>;

/// Bytes of a row, or of a JSON value: enough for the highest degree. A device or a damaged file may have no end.
const LONGEST_ROW: u64 = 1 << 28;
/// Numbers of an array.
const MOST_NUMBERS: u64 = 1 << 48;

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
fn text_lines(mut reader: Reader) -> impl Iterator<Item = anyhow::Result<(usize, String)>> {
    let lines = (1..).map_while(move |number| {
        let mut line = String::new();
        match reader.by_ref().take(LONGEST_ROW).read_line(&mut line) {
            Ok(0) => None,
            Ok(length) if length as u64 == LONGEST_ROW => {
                Some(Err(anyhow!("line {number} is longer than {LONGEST_ROW} bytes")))
            }
            Ok(_) => Some(Ok((number, line.trim_end().to_owned()))),
            Err(error) => Some(Err(anyhow!(error).context(format!("line {number}")))),
        }
    });
    lines.filter(|line| {
        line.as_ref().map_or(true, |(_, line)| !line.is_empty() && !line.starts_with('#'))
    })
}

/// Counts what a reader returns, up to a budget: then it fails. What holds the budget too can renew it.
struct Bounded {
    reader: Reader,
    budget: Rc<Cell<u64>>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.budget.get();
        if left == 0 {
            return Err(std::io::Error::other(format!("a value of more than {LONGEST_ROW} bytes")));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.reader.read(&mut buffer[..most])?;
        self.budget.set(left - read as u64);
        Ok(read)
    }
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
    let budget = Rc::new(Cell::new(LONGEST_ROW));
    let bounded = BufReader::new(Bounded { reader, budget: Rc::clone(&budget) });
    let values = serde_json::Deserializer::from_reader(bounded).into_iter::<Value>();
    values.inspect(move |_| budget.set(LONGEST_ROW)).flat_map(|value| match value {
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

/// The shape in the header at the start of an .npy file, as far as it can be told.
fn shape_in(start: &[u8]) -> Option<Vec<u64>> {
    let text = String::from_utf8_lossy(start);
    let (_, shape) = text.split_once("'shape': (")?;
    let (sides, _) = shape.split_once(')')?;
    let sides = sides.split(',').map(str::trim).filter(|side| !side.is_empty());
    // What is no number is for others to find.
    Some(sides.map(|side| side.parse().unwrap_or(1)).collect())
}

fn numbers_in(shape: &[u64]) -> anyhow::Result<u64> {
    let numbers = shape.iter().try_fold(1_u64, |product, side| product.checked_mul(*side));
    let numbers = numbers.filter(|numbers| *numbers < MOST_NUMBERS);
    numbers.with_context(|| format!("an array of shape {shape:?} is no file's"))
}

fn npy_rows(mut reader: Reader) -> anyhow::Result<Rows> {
    // Before npyz multiplies the sides, without a look at how large they are.
    if let Some(shape) = shape_in(reader.fill_buf()?) {
        numbers_in(&shape)?;
    }
    let file = NpyFile::new(reader).context("not a valid .npy file")?;
    ensure!(file.order() == Order::C, "the array is in Fortran order: save it in C order");
    let Some(width) = file.shape().last().copied() else { bail!("the array is a single number") };
    let count = numbers_in(file.shape())?.checked_div(width).unwrap_or(0) as usize;
    let width = width as usize;
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
