//! Candidates, regions and footprints as GeoJSON features, with the names and digits of the [`Answer`].

use locdiff_sphere::{MultiPolygon, Survey};
use serde_json::{Value, json};

use super::answer::{Answer, CandidateFacts, ExifPlace, FootprintFacts, PlaceFacts};
use super::estimate::Estimate;
use super::footprint::Footprint;

impl Answer {
    /// Regions, candidates, the answer's place, then the footprint and the camera's own place if there are any, each with what
    /// is needed to know where it comes from. The estimate is the one that the answer was made of.
    pub fn features(&self, estimate: &Estimate, levels: &[f64]) -> Vec<Value> {
        let mut features = features(&estimate.survey(), levels, &self.candidates);
        let mut properties = serde_json::to_value(&self.place).unwrap_or_default();
        properties["kind"] = "place".into();
        properties["decode"] = json!(self.inference.decode);
        properties["prediction"] = true.into();
        features.push(feature(point(&self.place), properties));
        features.extend(estimate.footprint().and_then(footprint_feature));
        for feature in &mut features {
            let properties = &mut feature["properties"];
            properties["image"] = self.image.name.clone().into();
            properties["model"] = self.model.name.clone().into();
            properties["calibrated"] = self.model.calibrated.into();
            properties["within"] = json!(self.within);
        }
        let name = self.image.name.as_deref();
        features.extend(self.exif.as_ref().map(|exif| recorded_feature(exif, name)));
        features
    }
}

/// The smallest regions that hold so much, then candidates.
pub fn features(survey: &Survey<'_>, levels: &[f64], candidates: &[CandidateFacts]) -> Vec<Value> {
    let mut features = Vec::new();
    for level in levels {
        let region = survey.region(*level);
        if let Some(outline) = region.outline() {
            let area_km2 = region.area_km2().round();
            let properties = json!({
                "kind": "region", "level": level, "area_km2": area_km2, "prediction": true,
            });
            features.push(feature(geometry(&outline), properties));
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

/// The camera's own place of an image.
pub fn recorded_feature(exif: &ExifPlace, image: Option<&str>) -> Value {
    let mut properties = serde_json::to_value(exif).unwrap_or_default();
    properties["kind"] = "recorded".into();
    properties["prediction"] = false.into();
    properties["image"] = image.into();
    feature(point(&exif.place), properties)
}

/// The quadrilateral; `None` if it has no area.
fn footprint_feature(footprint: &Footprint) -> Option<Value> {
    let outline = footprint.outline()?;
    let FootprintFacts { middle, heading_degrees, width_km, likeness, .. } =
        FootprintFacts::new(footprint);
    let properties = json!({
        "kind": "footprint", "latitude": middle.latitude, "longitude": middle.longitude,
        "heading_degrees": heading_degrees, "width_km": width_km, "likeness": likeness,
        "prediction": true,
    });
    Some(feature(geometry(&outline), properties))
}

fn geometry(polygons: &MultiPolygon) -> Value {
    serde_json::from_str(&polygons.to_geojson()).unwrap_or_default()
}

fn point(place: &PlaceFacts) -> Value {
    json!({ "type": "Point", "coordinates": [place.longitude, place.latitude] })
}

fn feature(geometry: Value, properties: Value) -> Value {
    json!({ "type": "Feature", "geometry": geometry, "properties": properties })
}

#[cfg(test)]
mod tests {
    use locdiff_sphere::{Kernel, LatLon, PointMasses};

    use super::*;
    use crate::locate::{
        AnswerOptions, ChosenBecause, Geolocator, ImageFacts, Inference, InvalidInference, Located,
        LocationModel, ModelIdentity, NotItsKind,
    };
    use crate::photo::Photo;

    /// Answers with one place; with a footprint around it for pictures that are wider than high.
    struct Registering {
        identity: ModelIdentity,
        middle: LatLon,
    }

    fn footprint(middle: LatLon) -> Footprint {
        let corners = [-45.0, 45.0, 135.0, 225.0].map(|to| middle.destination(37.0 + to, 300.0));
        Footprint { corners, middle, heading_degrees: 359.97, width_km: 424.26407, likeness: 0.75 }
    }

    impl LocationModel for Registering {
        fn identity(&self) -> &ModelIdentity {
            &self.identity
        }

        fn check(&self, _inference: &Inference) -> Result<Vec<String>, InvalidInference> {
            Ok(Vec::new())
        }

        fn locate(
            &self,
            photos: &[Photo],
            _inference: &Inference,
        ) -> Vec<Result<Located, NotItsKind>> {
            let masses = PointMasses::new(vec![self.middle], &[1.0]).unwrap();
            let density = masses.spread(Kernel::new(50.0).unwrap());
            let located = |photo: &Photo| match photo.width() > photo.height() {
                true => Located {
                    footprint: Some(footprint(self.middle)),
                    ..Located::from(density.clone())
                },
                false => Located::from(density.clone()),
            };
            photos.iter().map(|photo| Ok(located(photo))).collect()
        }

        fn embed(&self, _photos: &[Photo]) -> Vec<Vec<f32>> {
            Vec::new()
        }
    }

    fn estimate(middle: LatLon, width: u32) -> Estimate {
        let text = |text: &str| text.to_owned();
        let identity = ModelIdentity {
            name: text("registering"),
            version: text("1"),
            description: text("a test"),
            calibrated: true,
            prior: None,
        };
        let photo = Photo::from_rgb(width, 2, vec![0; 6 * width as usize]).unwrap();
        let model = Geolocator::from_model(Registering { identity, middle }).unwrap();
        model.locate(&photo).unwrap()
    }

    fn answer(estimate: &Estimate) -> Answer {
        let options = AnswerOptions::default();
        Answer::new(ImageFacts::named("a.jpg"), estimate, ChosenBecause::Named, None, &options)
    }

    fn at(latitude: f64, longitude: f64) -> LatLon {
        LatLon::new(latitude, longitude).unwrap()
    }

    #[test]
    fn a_footprint_comes_with_the_answer_and_its_features() {
        let estimate = estimate(at(48.0, 2.0), 3);
        assert_eq!(estimate.footprint(), Some(&footprint(at(48.0, 2.0))));
        let answer = answer(&estimate);
        let record = serde_json::to_value(&answer).unwrap();
        let shown = &record["footprint"];
        assert_eq!(shown["corners"].as_array().unwrap().len(), 4);
        assert_eq!(shown["middle"], json!({ "latitude": 48.0, "longitude": 2.0 }));
        // 359.97 is 0 when it is rounded, not 360.
        assert_eq!(shown["heading_degrees"], 0.0);
        assert_eq!(shown["width_km"], 424.264);
        let features = answer.features(&estimate, &[0.5]);
        let kinds: Vec<_> = features.iter().map(|feature| &feature["properties"]["kind"]).collect();
        assert_eq!(kinds, ["region", "candidate", "place", "footprint"]);
        assert_eq!(features[3]["properties"]["image"], "a.jpg");
        assert_eq!(features[3]["properties"]["latitude"], 48.0);
        assert_eq!(features[3]["geometry"]["type"], "Polygon");
    }

    #[test]
    fn without_a_footprint_nothing_is_said_of_one() {
        let estimate = estimate(at(48.0, 2.0), 2);
        assert_eq!(estimate.footprint(), None);
        let answer = answer(&estimate);
        assert_eq!(serde_json::to_value(&answer).unwrap().get("footprint"), None);
        let features = answer.features(&estimate, &[]);
        assert!(features.iter().all(|feature| feature["properties"]["kind"] != "footprint"));
    }

    #[test]
    fn polygons_of_footprints_are_valid_at_the_antimeridian_and_at_poles() {
        for (latitude, longitude, pieces) in
            [(10.0, 20.0, 1), (-17.0, 179.5, 2), (62.0, -179.9, 2), (89.5, 12.0, 1)]
        {
            let estimate = estimate(at(latitude, longitude), 3);
            let feature = answer(&estimate).features(&estimate, &[]).pop().unwrap();
            let geometry = &feature["geometry"];
            let coordinates = match geometry["type"].as_str() {
                Some("Polygon") => json!([geometry["coordinates"]]),
                _ => geometry["coordinates"].clone(),
            };
            let polygons: Vec<Vec<Vec<[f64; 2]>>> = serde_json::from_value(coordinates).unwrap();
            assert_eq!(polygons.len(), pieces, "{latitude},{longitude}");
            for ring in polygons.iter().flatten() {
                assert_eq!(ring.first(), ring.last());
                let within = |[x, y]: &[f64; 2]| x.abs() <= 180.0 && y.abs() <= 90.0;
                assert!(ring.iter().all(within), "{latitude},{longitude}");
                let shoelace = ring.windows(2).map(|ends| {
                    let ([x1, y1], [x2, y2]) = (ends[0], ends[1]);
                    (x2 - x1) * (y1 + y2)
                });
                assert!(shoelace.sum::<f64>() < 0.0, "{latitude},{longitude}: clockwise");
            }
        }
    }

    #[test]
    fn a_footprint_stays_within_an_area_that_holds_its_middle() {
        let estimate = estimate(at(48.0, 2.0), 3);
        let inside = estimate.restricted_to(&"France".parse().unwrap()).unwrap();
        assert_eq!(inside.footprint(), estimate.footprint());
        // The density reaches there, the middle does not lie there.
        let beside = estimate.restricted_to(&"48.5,-10,50,10".parse().unwrap()).unwrap();
        assert_eq!(beside.footprint(), None);
        assert!(answer(&beside).footprint.is_none());
        let again = beside.restricted_to(&"France".parse().unwrap()).unwrap();
        assert_eq!(again.footprint(), None);
    }
}
