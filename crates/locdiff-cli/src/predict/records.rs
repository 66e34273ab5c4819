//! Answers on stdout, one after the other: for people, as JSON lines, GeoJSON or CSV.

use std::collections::HashSet;
use std::io::{Write, stdout};

use locdiff::locate::{Answered, CandidateFacts, recorded_feature};
use serde_json::{Value, json};

use super::answer::Failure;
use super::{Arguments, When, text};
use crate::text::{data_stdout, json_stdout};

enum Format {
    Text { map: bool, told: HashSet<String> },
    Json,
    GeoJson { features: usize },
    Csv { writer: Box<csv::Writer<Vec<u8>>> },
}

pub(super) struct Records {
    format: Format,
}

const COLUMNS: [&str; 24] = [
    "image",
    "model",
    "calibrated",
    "within",
    "kept",
    "rank",
    "latitude",
    "longitude",
    "mass",
    "radius_km",
    "town",
    "district",
    "country",
    "country_code",
    "place",
    "predicted_latitude",
    "predicted_longitude",
    "radius_50_km",
    "radius_90_km",
    "exif_latitude",
    "exif_longitude",
    "exif_distance_km",
    "map",
    "error",
];

/// Where the columns of the camera's own place begin.
const EXIF: usize = 19;

impl Records {
    pub(super) fn new(arguments: &Arguments, terminal: bool) -> Records {
        let format = match arguments {
            Arguments { json: true, .. } => Format::Json,
            Arguments { geojson: true, .. } => Format::GeoJson { features: 0 },
            Arguments { csv: true, .. } => {
                let mut writer = csv::Writer::from_writer(Vec::new());
                // Into memory: it can't fail.
                let _ = writer.write_record(COLUMNS);
                Format::Csv { writer: Box::new(writer) }
            }
            _ => {
                let map = match arguments.map {
                    When::Auto => terminal,
                    When::Always => true,
                    When::Never => false,
                };
                Format::Text { map, told: HashSet::new() }
            }
        };
        Records { format }
    }

    pub(super) fn answer(&mut self, answer: &Answered) -> anyhow::Result<()> {
        match &mut self.format {
            Format::Text { map, told } => text::print(answer, *map, told)?,
            Format::Json => {
                writeln!(json_stdout(), "{}", serde_json::to_string(&answer.record)?)?;
            }
            Format::GeoJson { features } => {
                for feature in answer.record.features(&answer.estimate, &[0.9, 0.5]) {
                    write_feature(features, &feature)?;
                }
            }
            Format::Csv { writer } => {
                for (rank, candidate) in answer.record.candidates.iter().enumerate() {
                    writer.write_record(csv_row(answer, rank + 1, candidate))?;
                }
                print_csv(writer)?;
            }
        }
        Ok(())
    }

    pub(super) fn failure(&mut self, failure: &Failure) -> anyhow::Result<()> {
        match &mut self.format {
            // Everybody who reads those formats line by line must be able to account for every picture.
            Format::Json => {
                // The titles of the server's problems.
                let title = match failure.facts.width {
                    None => "Unsupported Media Type",
                    Some(_) => "Unprocessable Content",
                };
                let record = json!({
                    "image": failure.facts,
                    "prediction": false,
                    "exif": failure.exif,
                    "problem": { "title": title, "detail": failure.reason },
                });
                writeln!(json_stdout(), "{record}")?;
            }
            Format::Csv { writer } => {
                let mut row = vec![String::new(); COLUMNS.len()];
                row[0].clone_from(&failure.name);
                if let Some(exif) = &failure.exif {
                    row[EXIF] = exif.place.latitude.to_string();
                    row[EXIF + 1] = exif.place.longitude.to_string();
                }
                row[COLUMNS.len() - 1].clone_from(&failure.reason);
                writer.write_record(row)?;
                print_csv(writer)?;
            }
            Format::Text { .. } => text::print_recorded(failure)?,
            Format::GeoJson { features } => {
                if let Some(exif) = &failure.exif {
                    write_feature(features, &recorded_feature(exif, Some(&failure.name)))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        match &mut self.format {
            Format::GeoJson { features: 0 } => {
                writeln!(stdout(), r#"{{"type":"FeatureCollection","features":[]}}"#)?;
            }
            Format::GeoJson { .. } => writeln!(stdout(), "\n]}}")?,
            Format::Csv { writer } => print_csv(writer)?,
            Format::Text { .. } | Format::Json => {}
        }
        Ok(stdout().flush()?)
    }
}

fn print_csv(writer: &mut csv::Writer<Vec<u8>>) -> anyhow::Result<()> {
    writer.flush()?;
    let bytes = std::mem::replace(writer, csv::Writer::from_writer(Vec::new()));
    let bytes = bytes.into_inner().map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(data_stdout().write_all(&bytes)?)
}

fn write_feature(features: &mut usize, feature: &Value) -> anyhow::Result<()> {
    let before =
        if *features == 0 { "{\"type\":\"FeatureCollection\",\"features\":[\n" } else { ",\n" };
    write!(json_stdout(), "{before}{feature}")?;
    *features += 1;
    Ok(())
}

fn csv_row(answer: &Answered, rank: usize, found: &CandidateFacts) -> Vec<String> {
    let record = &answer.record;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let number = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
    let exif = record.exif.as_ref();
    vec![
        answer.name().to_owned(),
        record.model.name.clone(),
        record.model.calibrated.to_string(),
        record.within.join("; "),
        number(record.kept),
        rank.to_string(),
        found.place.latitude.to_string(),
        found.place.longitude.to_string(),
        format!("{:.6}", found.mass),
        found.radius_km.to_string(),
        text(&found.place.name.town),
        text(&found.place.name.district),
        text(&found.place.name.country),
        text(&found.place.name.country_code),
        found.place.words.clone(),
        record.place.latitude.to_string(),
        record.place.longitude.to_string(),
        record.radius_50_km.to_string(),
        record.radius_90_km.to_string(),
        number(exif.map(|exif| exif.place.latitude)),
        number(exif.map(|exif| exif.place.longitude)),
        number(exif.and_then(|exif| exif.distance_km)),
        text(&record.map),
        String::new(),
    ]
}
