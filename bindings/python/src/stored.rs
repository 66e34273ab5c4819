//! Answers and densities as pickles contain them, for other processes.

use locdiff::Estimate;
use locdiff::locate::{
    AnswerOptions, Answered, ChosenBecause, Footprint, ImageFacts, Located, ModelIdentity,
    Reference,
};
use locdiff_sphere::{Density, DensityRecord, InvalidPlace, LatLon};
use pyo3::PyResult;
use serde_json::Value;

use crate::errors::wrong_option;
use crate::model::area;

/// The record of a density before it was restricted: areas are not part of records, and are stored beside.
pub(crate) fn density_record(density: &Density) -> PyResult<String> {
    let mut whole = density;
    while let Density::Restriction(restriction) = whole {
        whole = restriction.whole();
    }
    if has_restriction(whole) {
        return Err(wrong_option(
            "a mixture or product of restricted densities cannot be pickled: areas are not part of density records",
        ));
    }
    serde_json::to_string(&DensityRecord::of(whole)).map_err(wrong_option)
}

fn has_restriction(density: &Density) -> bool {
    match density {
        Density::Restriction(_) => true,
        Density::Mixture(mixture) => mixture.parts().any(|(_, part)| has_restriction(part)),
        Density::Product(product) => product.factors().any(|(_, factor)| has_restriction(factor)),
        _ => false,
    }
}

/// An answer again, from its record, the record of its density and the areas that it was restricted to.
pub(crate) fn answered(
    record: &str,
    density: &str,
    within: &[String],
    top: usize,
) -> PyResult<Answered> {
    let record: Value = serde_json::from_str(record).map_err(wrong_option)?;
    let density: DensityRecord = serde_json::from_str(density).map_err(wrong_option)?;
    let located = Located {
        density: density.density().map_err(wrong_option)?,
        footprint: footprint(&record["footprint"]).map_err(wrong_option)?,
        references: references(&record["candidates"]).map_err(wrong_option)?,
        // They are in the record.
        warnings: Vec::new(),
    };
    let model = &record["model"];
    let identity = ModelIdentity {
        name: text(&model["name"]).unwrap_or_default(),
        version: text(&model["version"]).unwrap_or_default(),
        description: text(&model["description"]).unwrap_or_default(),
        calibrated: model["calibrated"].as_bool().unwrap_or_default(),
        prior: text(&model["prior"]),
    };
    let inference = serde_json::from_value(record["inference"].clone()).map_err(wrong_option)?;
    let warnings = rows(&record["warnings"]).filter_map(text).collect();
    let mut estimate = Estimate::new(located, identity, inference, warnings);
    for words in within {
        estimate = estimate.restricted_to(&area(words)?).map_err(wrong_option)?;
    }
    let image = &record["image"];
    let size = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let facts = ImageFacts {
        name: text(&image["name"]),
        sha256: text(&image["sha256"]),
        bytes: image["bytes"].as_u64().and_then(|number| usize::try_from(number).ok()),
        width: size(&image["width"]),
        height: size(&image["height"]),
    };
    let exif = &record["exif"];
    let gps = (!exif.is_null()).then(|| place(exif)).transpose().map_err(wrong_option)?;
    let options = AnswerOptions { top, ..AnswerOptions::default() };
    Ok(Answered::new(estimate, ChosenBecause::Named, facts, gps, &options))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn place(value: &Value) -> Result<LatLon, InvalidPlace> {
    LatLon::new(number(&value["latitude"]), number(&value["longitude"]))
}

fn footprint(value: &Value) -> Result<Option<Footprint>, InvalidPlace> {
    if value.is_null() {
        return Ok(None);
    }
    let corner = |index: usize| place(&value["corners"][index]);
    Ok(Some(Footprint {
        corners: [corner(0)?, corner(1)?, corner(2)?, corner(3)?],
        middle: place(&value["middle"])?,
        heading_degrees: number(&value["heading_degrees"]),
        width_km: number(&value["width_km"]),
        likeness: number(&value["likeness"]),
    }))
}

/// Those that the record lists: a reference may be near several candidates.
fn references(candidates: &Value) -> Result<Vec<Reference>, InvalidPlace> {
    let mut references: Vec<Reference> = Vec::new();
    for found in rows(candidates).flat_map(|candidate| rows(&candidate["references"])) {
        let id = text(&found["id"]).unwrap_or_default();
        let similarity = number(&found["similarity"]);
        let reference = Reference { id, place: place(found)?, similarity };
        if !references.contains(&reference) {
            references.push(reference);
        }
    }
    references.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
    Ok(references)
}
