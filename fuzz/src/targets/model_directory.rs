//! Directories of models: their configuration, weights, calibration and fits.

use std::path::Path;

use locdiff::diffusion::{
    DenoiserConfig, Diffusion, DiffusionConfig, Objective, Quadrature, ScheduleConfig,
    ScheduleKind, Standardization,
};
use locdiff::encoders::EncoderRecord;
use locdiff::models::{DiffusionAbout, EncoderSource, ModelDirectory};
use locdiff::photo::Preprocessing;
use locdiff::tensors::device_by_name;
use locdiff::{Geolocator, ModelHome, OpenOptions};

use crate::{Target, folder};

pub(super) const TARGET: Target = Target {
    name: "model_directory",
    reads: "model directories: config.json, weights, calibration, fusion",
    longest: 64 << 10,
    // A survey of a density as sharp as it can be takes some hundred MB.
    most_bytes: 512 << 20,
    run,
    seeds,
};

fn run(input: &[u8]) {
    let _ = std::str::from_utf8(input).map(Preprocessing::from_preprocessor_config);
    let folder = folder::unpacked(input);
    let path = folder.path();
    if let Ok(directory) = ModelDirectory::read(path) {
        let checked = directory.verify();
        assert!(checked.len() >= directory.files().len());
    }
    let options = OpenOptions {
        home: Some(ModelHome::at(path)),
        encoder: EncoderSource::NotNeeded,
        ..OpenOptions::default()
    };
    let name = path.to_string_lossy();
    let Ok(model) = Geolocator::open_with(&name, &options, &mut |_, _| {}) else { return };
    let Some((_, width)) = model.takes_embeddings_of() else { return };
    // Numbers of a file may have any size; answers are asked for where they are quick.
    if model.evaluations() <= 2 && width <= 64 {
        let embedding = vec![0.25; width];
        for estimate in model.locate_embeddings(&embedding, 1).into_iter().flatten() {
            let nats = estimate.density().nll_nats(estimate.place());
            assert!(!nats.is_nan(), "a density that is no number");
        }
    }
}

/// A diffusion with a small network, in a directory.
pub(super) fn write_diffusion(directory: &Path, encoder: EncoderRecord, width: usize) {
    let device = device_by_name("cpu").expect("the CPU");
    let config = DiffusionConfig {
        denoiser: DenoiserConfig { dropout: 0.0, time_size: 4, ..DenoiserConfig::new(3, width) },
        schedule: ScheduleConfig { kind: ScheduleKind::Shifted, steps: 40 },
        objective: Objective::Likelihood,
        quadrature: Quadrature::default(),
    };
    device.seed(7);
    let about = DiffusionAbout { encoder, ..DiffusionAbout::of_embeddings("") };
    let embeddings: Vec<f32> = (0..8 * width).map(|k| (k as f32).cos()).collect();
    Diffusion::init(config, &device)
        .expect("a schedule")
        .standardized(Some(Standardization::of(&embeddings, width)))
        .save(directory, &about, "")
        .expect("the folder can be written");
}

fn seeds() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path();
    write_diffusion(path, EncoderRecord::of_identity("nobody's"), 2);
    let _ = std::fs::remove_file(path.join("README.md"));
    let diffusion = folder::packed(path);
    let inference = r#""inference":{"sampler":"one-pass","steps":1,"samples":1,"guidance":1.0,"views":1,"seed":0,"decode":"mode"}"#;
    let coverage = r#"{"within_50":49.0,"within_90":91.0,"nll_nats":1.5}"#;
    let calibration = format!(
        "##### calibration.json\n{{\"sharpness\":0.8,\"background\":0.01,\"model_version\":\"x\",{inference},\"data\":\"d\",\
         \"places_sha256\":\"0\",\"fitted_rows\":1,\"checked_rows\":1,\"before\":{coverage},\"after\":{coverage}}}\n"
    );
    let flow = format!(
        "##### config.json\n{{\"format\":\"locdiff-model\",\"version\":2,\"kind\":\"flow\",\"network\":{{\"dim\":8,\"depth\":1}},\
         \"encoder\":{{\"identity\":\"x\"}},{inference}}}\n##### model.safetensors\n"
    );
    let hybrid = "##### config.json\n{\"format\":\"locdiff-model\",\"version\":2,\"kind\":\"hybrid\",\"model\":\"part\",\
                  \"gallery\":\"gallery\",\"rule\":\"product\"}\n##### fusion.json\n{}\n##### part/config.json\n{}\n##### gallery/gallery.json\n{}";
    let geoclip = "##### config.json\n{\"model_type\":\"geoclip-geolocation\",\"format_version\":1,\"gallery_file\":\"g.csv\",\
                   \"sigma\":[1,16,256]}\n##### g.csv\nLAT,LON\n48.8,2.3\n##### model.safetensors\n";
    let preprocessor = r#"{"do_resize":true,"size":{"shortest_edge":224},"resample":3,"do_center_crop":true,"crop_size":{"height":224,"width":224},"do_rescale":true,"rescale_factor":0.00392156862745098,"do_normalize":true,"image_mean":[0.48,0.45,0.40],"image_std":[0.26,0.26,0.27]}"#;
    vec![
        [calibration.into_bytes(), diffusion.clone()].concat(),
        diffusion,
        flow.into(),
        hybrid.into(),
        geoclip.into(),
        preprocessor.into(),
    ]
}
