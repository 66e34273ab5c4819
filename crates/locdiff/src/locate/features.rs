//! Candidates and regions as GeoJSON features, with the names and digits of the [`Answer`].

use locdiff_sphere::Survey;
use serde_json::{Value, json};

use super::answer::{Answer, CandidateFacts, PlaceFacts};

impl Answer {
    /// Regions, candidates, then the answer's place, each with what is needed to know where it comes from.
    pub fn features(&self, survey: &Survey<'_>, levels: &[f64]) -> Vec<Value> {
        let mut features = features(survey, levels, &self.candidates);
        let mut properties = serde_json::to_value(&self.place).unwrap_or_default();
        properties["kind"] = "place".into();
        properties["decode"] = json!(self.inference.decode);
        properties["prediction"] = true.into();
        features.push(feature(point(&self.place), properties));
        for feature in &mut features {
            let properties = &mut feature["properties"];
            properties["image"] = self.image.name.clone().into();
            properties["model"] = self.model.name.clone().into();
            properties["calibrated"] = self.model.calibrated.into();
            properties["within"] = json!(self.within);
        }
        features
    }
}

/// The smallest regions that hold so much, then candidates.
pub fn features(survey: &Survey<'_>, levels: &[f64], candidates: &[CandidateFacts]) -> Vec<Value> {
    let mut features = Vec::new();
    for level in levels {
        let region = survey.region(*level);
        if let Some(outline) = region.outline() {
            let geometry: Value = serde_json::from_str(&outline.to_geojson()).unwrap_or_default();
            let area_km2 = region.area_km2().round();
            let properties = json!({
                "kind": "region", "level": level, "area_km2": area_km2, "prediction": true,
            });
            features.push(feature(geometry, properties));
        }
    }
    for (index, candidate) in candidates.iter().enumerate() {
        let mut properties = serde_json::to_value(candidate).unwrap_or_default();
        properties["kind"] = "candidate".into();
        properties["rank"] = (index + 1).into();
        properties["prediction"] = true.into();
        features.push(feature(point(&candidate.place), properties));
    }
    features
}

fn point(place: &PlaceFacts) -> Value {
    json!({ "type": "Point", "coordinates": [place.longitude, place.latitude] })
}

fn feature(geometry: Value, properties: Value) -> Value {
    json!({ "type": "Feature", "geometry": geometry, "properties": properties })
}
