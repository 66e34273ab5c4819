//! Answers on stdout, one after the other: for people, as JSON lines, GeoJSON or CSV.

use std::io::{Write, stdout};

use locdiff::Candidate;
use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::{Arguments, When, text};

enum Format {
    Text { map: bool },
    Json,
    GeoJson { features: usize },
    Csv { writer: Box<csv::Writer<Vec<u8>>> },
}

pub(super) struct Records {
    format: Format,
}

const COLUMNS: [&str; 19] = [
    "image",
    "model",
    "calibrated",
    "within",
    "rank",
    "latitude",
    "longitude",
    "mass",
    "radius_km",
    "town",
    "district",
    "country",
    "country_code",
    "radius_50_km",
    "radius_90_km",
    "exif_latitude",
    "exif_longitude",
    "exif_distance_km",
    "error",
];

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
                Format::Text { map }
            }
        };
        Records { format }
    }

    pub(super) fn answer(&mut self, answer: &Answer<'_>) -> anyhow::Result<()> {
        match &mut self.format {
            Format::Text { map } => text::print(answer, *map)?,
            Format::Json => writeln!(stdout(), "{}", json_of(answer))?,
            Format::GeoJson { features } => {
                for feature in features_of(answer) {
                    write_feature(features, &feature)?;
                }
            }
            Format::Csv { writer } => {
                for (rank, candidate) in answer.summary.candidates.iter().enumerate() {
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
                let record = json!({ "image": failure.name, "error": failure.reason });
                writeln!(stdout(), "{record}")?;
            }
            Format::Csv { writer } => {
                let mut row = vec![String::new(); COLUMNS.len()];
                row[0].clone_from(&failure.name);
                row[COLUMNS.len() - 1].clone_from(&failure.reason);
                writer.write_record(row)?;
                print_csv(writer)?;
            }
            Format::Text { .. } | Format::GeoJson { .. } => {}
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
    Ok(stdout().write_all(&bytes)?)
}

fn write_feature(features: &mut usize, feature: &Value) -> anyhow::Result<()> {
    let before =
        if *features == 0 { "{\"type\":\"FeatureCollection\",\"features\":[\n" } else { ",\n" };
    write!(stdout(), "{before}{feature}")?;
    *features += 1;
    Ok(())
}

/// Digits that mean something: a millionth of a degree is 11 cm.
fn degrees(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn candidate(candidate: &Candidate) -> Value {
    let name = &candidate.name;
    json!({
        "latitude": degrees(candidate.place.latitude()),
        "longitude": degrees(candidate.place.longitude()),
        "mass": (candidate.mass * 1e9).round() / 1e9,
        "radius_km": rounded(candidate.radius_km),
        "town": name.town,
        "district": name.district,
        "country": name.country,
        "country_code": name.country_code,
    })
}

pub(super) fn json_of(answer: &Answer<'_>) -> Value {
    let (summary, model) = (&answer.summary, answer.estimate.model());
    let candidates: Vec<Value> = summary.candidates.iter().map(candidate).collect();
    let rows: Vec<Value> = answer
        .rows
        .iter()
        .map(|row| {
            let (latitude, longitude) = (row.place.latitude(), row.place.longitude());
            json!({ "latitude": latitude, "longitude": longitude, "score": row.score, "times": row.times })
        })
        .collect();
    json!({
        "image": answer.name,
        "prediction": true,
        "model": {
            "name": model.name,
            "version": model.version,
            "description": model.description,
            "chosen_because": answer.because,
            "prior": model.prior,
        },
        "calibrated": model.calibrated,
        "within": answer.estimate.within(),
        "candidates": candidates,
        "radius_50_km": rounded(summary.radius_50_km),
        "radius_90_km": rounded(summary.radius_90_km),
        "area_50_km2": summary.area_50_km2.round(),
        "area_90_km2": summary.area_90_km2.round(),
        "kernel_km": summary.kernel_km,
        "rows": rows,
        "exif": answer.gps.map(|gps| json!({
            "latitude": gps.latitude(),
            "longitude": gps.longitude(),
            "distance_km": answer.distance_km().map(rounded),
        })),
    })
}

fn features_of(answer: &Answer<'_>) -> Vec<Value> {
    let survey = answer.estimate.survey();
    let model = answer.estimate.model();
    let about = |mut properties: Value| {
        properties["image"] = answer.name.into();
        properties["model"] = model.name.clone().into();
        properties["calibrated"] = model.calibrated.into();
        properties["prediction"] = true.into();
        properties["within"] = json!(answer.estimate.within());
        properties
    };
    let mut features = Vec::new();
    for level in [0.9, 0.5] {
        let region = survey.region(level);
        if let Some(outline) = region.outline() {
            let geometry: Value = serde_json::from_str(&outline.to_geojson()).unwrap_or_default();
            let properties = json!({
                "kind": "region",
                "level": level,
                "area_km2": region.area_km2().round(),
            });
            features.push(
                json!({ "type": "Feature", "geometry": geometry, "properties": about(properties) }),
            );
        }
    }
    for (rank, found) in answer.summary.candidates.iter().enumerate() {
        let mut properties = candidate(found);
        properties["kind"] = "candidate".into();
        properties["rank"] = (rank + 1).into();
        let position = [degrees(found.place.longitude()), degrees(found.place.latitude())];
        let geometry = json!({ "type": "Point", "coordinates": position });
        features.push(
            json!({ "type": "Feature", "geometry": geometry, "properties": about(properties) }),
        );
    }
    features
}

fn csv_row(answer: &Answer<'_>, rank: usize, found: &Candidate) -> Vec<String> {
    let (summary, model) = (&answer.summary, answer.estimate.model());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let number = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
    vec![
        answer.name.to_owned(),
        model.name.clone(),
        model.calibrated.to_string(),
        answer.estimate.within().join("; "),
        rank.to_string(),
        degrees(found.place.latitude()).to_string(),
        degrees(found.place.longitude()).to_string(),
        format!("{:.6}", found.mass),
        rounded(found.radius_km).to_string(),
        text(&found.name.town),
        text(&found.name.district),
        text(&found.name.country),
        text(&found.name.country_code),
        rounded(summary.radius_50_km).to_string(),
        rounded(summary.radius_90_km).to_string(),
        number(answer.gps.map(|gps| gps.latitude())),
        number(answer.gps.map(|gps| gps.longitude())),
        number(answer.distance_km().map(rounded)),
        String::new(),
    ]
}
