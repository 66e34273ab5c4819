//! `docs/answer.schema.json`, which every interface's output must fit.

use jsonschema::Validator;
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
