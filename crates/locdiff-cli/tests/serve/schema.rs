//! `docs/answer.schema.json`, which every interface's output must fit.

use jsonschema::Validator;
use locdiff::locate::{AnswerOptions, ChosenBecause, ExifPlace, ImageFacts};
use locdiff::{Answer, Estimate, Footprint, Inference, Located, ModelIdentity, Reference};
use locdiff_sphere::{Kernel, LatLon, PointMasses};
use serde_json::{Value, json};

use crate::client::repository;

fn validator(definition: Option<&str>) -> Validator {
    let text = std::fs::read_to_string(repository("docs/answer.schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    if let Some(name) = definition {
        let reference = format!("#/$defs/{name}");
        let definitions = schema["$defs"].take();
        assert!(definitions[name].is_object(), "there is no definition {name}");
        schema = json!({ "$schema": schema["$schema"], "$ref": reference, "$defs": definitions });
    }
    jsonschema::validator_for(&schema).unwrap()
}

fn check(validator: &Validator, value: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .take(5)
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n").chars().take(3000).collect::<String>());
}

/// One line of `locdiff predict --json`.
pub(crate) fn assert_fits(answer: &Value) {
    check(&validator(None), answer);
}

/// Something that a definition describes.
pub(crate) fn fits(definition: &str, value: &Value) {
    check(&validator(Some(definition)), value);
}

#[test]
fn the_schema_rejects_what_it_should() {
    let answers = validator(None);
    for wrong in [
        json!({}),
        json!({ "image": { "name": "a" }, "error": "no" }),
        json!({ "image": { "name": "a", "sha256": null, "bytes": null, "width": null, "height": null }, "problem": { "title": "x" } }),
    ] {
        assert!(!answers.is_valid(&wrong), "{wrong}");
    }
    let densities = validator(Some("Density"));
    assert!(
        densities.is_valid(&json!({ "kind": "linear", "max_degree": 0, "coefficients": [1.5] }))
    );
    assert!(
        !densities.is_valid(
            &json!({ "kind": "linear", "max_degree": 0, "coefficients": [1.5], "more": 1 })
        )
    );
    assert!(
        !densities.is_valid(&json!({ "kind": "square", "max_degree": 0, "coefficients": [1.5] }))
    );
}

/// Whether a model finds a footprint or references depends on the picture, so these answers are made by hand.
#[test]
fn answers_with_a_footprint_references_and_a_recorded_place_fit() {
    for (latitude, longitude) in [(48.0, 2.0), (-17.0, 179.5), (89.5, 12.0)] {
        let middle = LatLon::new(latitude, longitude).unwrap();
        let corners = [-45.0, 45.0, 135.0, 225.0].map(|to| middle.destination(37.0 + to, 300.0));
        let footprint =
            Footprint { corners, middle, heading_degrees: 37.0, width_km: 424.3, likeness: 0.75 };
        let masses = PointMasses::new(vec![middle], &[1.0]).unwrap();
        let density = masses.spread(Kernel::new(50.0).unwrap());
        let identity = ModelIdentity {
            name: "registering".to_owned(),
            version: "1".to_owned(),
            description: "a test".to_owned(),
            calibrated: false,
            prior: None,
        };
        let references = vec![Reference {
            id: "photos/1.jpg".to_owned(),
            place: middle.destination(90.0, 30.0),
            similarity: 0.875,
        }];
        let located = Located { footprint: Some(footprint), references, ..Located::from(density) };
        let estimate = Estimate::new(located, identity, Inference::default(), Vec::new());
        let (image, options) = (ImageFacts::named("a.jpg"), AnswerOptions::default());
        let gps = Some(middle.destination(0.0, 12.0));
        let answer = Answer::new(image, &estimate, ChosenBecause::Named, gps, &options);
        let record = serde_json::to_value(&answer).unwrap();
        assert_fits(&record);
        fits("Footprint", &record["footprint"]);
        fits("Exif", &record["exif"]);
        assert_eq!(record["exif"]["distance_km"], 12.0);
        // Without an answer the camera's place is all there is.
        assert_fits(&json!({
            "image": answer.image, "prediction": false, "exif": ExifPlace::new(middle, None),
            "problem": { "title": "Unprocessable Content", "detail": "no suitable model" },
        }));
        let reference = &record["candidates"][0]["references"][0];
        assert_eq!(
            (&reference["similarity"], &reference["distance_km"]),
            (&json!(0.875), &json!(30.0))
        );
        let features = answer.features(&estimate, &[0.5]);
        assert_eq!(features[3]["properties"]["kind"], "footprint");
        assert_eq!(features[4]["properties"]["prediction"], false);
        for feature in &features {
            fits("FeatureProperties", &feature["properties"]);
        }
    }
}
