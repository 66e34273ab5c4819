//! `preprocessor_config.json`, as models on the Hugging Face hub have it.

use serde::Deserialize;
use serde_json::Value;

use super::preprocessing::Preprocessing;

/// Why a `preprocessor_config.json` can't be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPreprocessing {
    /// It isn't JSON, or a field has the wrong type.
    #[error("preprocessor_config.json cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// It asks for something that isn't done here.
    #[error("preprocessor_config.json has {field} {found}, expected {expected}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        found: String,
        /// Values that are supported.
        expected: &'static str,
    },
}

/// The fields that matter; those that are absent have the processor's defaults.
#[derive(Deserialize)]
struct Config {
    #[serde(default, alias = "feature_extractor_type")]
    image_processor_type: Option<String>,
    size: Value,
    #[serde(default)]
    crop_size: Value,
    #[serde(default)]
    resample: Option<Value>,
    #[serde(default)]
    rescale_factor: Option<f64>,
    image_mean: [f32; 3],
    image_std: [f32; 3],
    #[serde(default)]
    do_resize: Option<bool>,
    #[serde(default)]
    do_center_crop: Option<bool>,
    #[serde(default)]
    do_rescale: Option<bool>,
    #[serde(default)]
    do_normalize: Option<bool>,
}

impl Preprocessing {
    /// Reads a `preprocessor_config.json` of CLIP, DINOv2 or another model whose pictures are
    /// resized by their shortest edge (bicubic) and cropped around the centre. Anything else
    /// is an error, never another picture than the model expects.
    pub fn from_preprocessor_config(json: &str) -> Result<Preprocessing, InvalidPreprocessing> {
        let config: Config = serde_json::from_str(json)?;
        for (field, value) in [
            ("do_resize", config.do_resize),
            ("do_center_crop", config.do_center_crop),
            ("do_rescale", config.do_rescale),
            ("do_normalize", config.do_normalize),
        ] {
            ensure(value != Some(false), field, || "false".to_owned(), "true")?;
        }
        // 3 is Pillow's number for it.
        let bicubic = config.resample.as_ref().is_none_or(|resample| *resample == 3);
        ensure(bicubic, "resample", || show(&config.resample), "3 (bicubic)")?;
        let factor = config.rescale_factor.unwrap_or(1.0 / 255.0);
        let usual = (factor * 255.0 - 1.0).abs() < 1e-6;
        ensure(usual, "rescale_factor", || factor.to_string(), "1/255")?;
        let positive = config.image_std.iter().all(|&std| std.is_finite() && std > 0.0);
        ensure(positive, "image_std", || format!("{:?}", config.image_std), "positive numbers")?;
        let (shortest_side, crop) = (shortest_side(&config)?, crop(&config)?);
        Ok(Preprocessing::plain(shortest_side, crop, config.image_mean, config.image_std))
    }
}

fn ensure(
    holds: bool,
    field: &'static str,
    found: impl FnOnce() -> String,
    expected: &'static str,
) -> Result<(), InvalidPreprocessing> {
    if holds {
        return Ok(());
    }
    Err(InvalidPreprocessing::Field { field, found: found(), expected })
}

fn show(value: &Option<Value>) -> String {
    value.as_ref().map_or("nothing".to_owned(), Value::to_string)
}

/// A side in pixels that isn't absurd.
fn side(value: &Value) -> Option<u32> {
    value
        .as_u64()
        .and_then(|side| u32::try_from(side).ok())
        .filter(|side| (1..=4096).contains(side))
}

fn shortest_side(config: &Config) -> Result<u32, InvalidPreprocessing> {
    // A bare number is the shortest edge to CLIP's processor, but both edges to most others.
    let is_clip =
        config.image_processor_type.as_deref().is_some_and(|name| name.starts_with("CLIP"));
    let found = match &config.size {
        Value::Object(size) if size.len() == 1 => size.get("shortest_edge").and_then(side),
        size @ Value::Number(_) if is_clip => side(size),
        _ => None,
    };
    found.ok_or_else(|| InvalidPreprocessing::Field {
        field: "size",
        found: config.size.to_string(),
        expected: r#"{"shortest_edge": 1 to 4096}"#,
    })
}

fn crop(config: &Config) -> Result<u32, InvalidPreprocessing> {
    let found = match &config.crop_size {
        Value::Object(size) if size.get("height") == size.get("width") => {
            size.get("height").and_then(side)
        }
        size => side(size),
    };
    found.ok_or_else(|| InvalidPreprocessing::Field {
        field: "crop_size",
        found: config.crop_size.to_string(),
        expected: "a square of 1 to 4096",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `openai/clip-vit-large-patch14` and `facebook/dinov2-base` have them.
    const CLIP: &str = r#"{"crop_size": 224, "do_center_crop": true, "do_normalize": true,
        "do_resize": true, "feature_extractor_type": "CLIPFeatureExtractor",
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": 224}"#;
    const DINO: &str = r#"{"crop_size": {"height": 224, "width": 224}, "do_center_crop": true,
        "do_convert_rgb": true, "do_normalize": true, "do_rescale": true, "do_resize": true,
        "image_mean": [0.485, 0.456, 0.406], "image_processor_type": "BitImageProcessor",
        "image_std": [0.229, 0.224, 0.225], "resample": 3,
        "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256}}"#;

    #[test]
    fn known_models_are_the_constants() {
        let of = |json: &str| Preprocessing::from_preprocessor_config(json).unwrap();
        assert_eq!(of(CLIP), Preprocessing::CLIP);
        assert_eq!(of(DINO), Preprocessing::DINO_V2);
        assert_eq!(of(&CLIP.replace("224", "336")), Preprocessing::CLIP_336);
    }

    #[test]
    fn what_would_be_another_picture_is_refused() {
        for (from, to, message) in [
            (r#""resample": 3"#, r#""resample": 2"#, "resample 2"),
            (r#""do_center_crop": true"#, r#""do_center_crop": false"#, "do_center_crop false"),
            ("0.00392156862745098", "0.5", "rescale_factor 0.5"),
            (r#"{"shortest_edge": 256}"#, r#"{"height": 256, "width": 256}"#, "size {"),
            (r#"{"shortest_edge": 256}"#, "256", "size 256"),
            (r#""width": 224"#, r#""width": 225"#, "crop_size"),
            ("0.225", "0", "image_std"),
            ("256", "0", "size"),
        ] {
            let json = DINO.replace(from, to);
            assert_ne!(json, DINO);
            let error = Preprocessing::from_preprocessor_config(&json).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
        assert!(Preprocessing::from_preprocessor_config("{}").is_err());
    }
}
