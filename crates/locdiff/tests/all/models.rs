//! Models on disk: what is written answers, wherever it is; what does not fit is named.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use locdiff::diffusion::{
    DenoiserConfig, Diffusion, DiffusionConfig, Objective, Quadrature, ScheduleConfig,
    ScheduleKind, Standardization,
};
use locdiff::encoders::{Embedder, EncoderRecord, ImageEncoder};
use locdiff::locate::{Decode, InvalidInference, Sampler};
use locdiff::models::{
    DiffusionAbout, DiffusionModel, EncoderSource, ModelDirectory, ModelKind, TrainingFacts,
};
use locdiff::{
    CannotOpen, Geolocator, Inference, InferenceOptions, LocationModel, ModelHome, OpenOptions,
    Photo,
};
use locdiff_sphere::{Density, LatLon, uniform_place};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const WIDTH: usize = 6;

fn config(objective: Objective, max_degree: usize, condition_size: usize) -> DiffusionConfig {
    DiffusionConfig {
        denoiser: DenoiserConfig {
            dropout: 0.0,
            time_size: 16,
            ..DenoiserConfig::new(max_degree, condition_size)
        },
        schedule: ScheduleConfig { kind: ScheduleKind::Shifted, steps: 40 },
        objective,
        quadrature: Quadrature::default(),
    }
}

fn facts(share_at_full_noise: f64, condition_dropout: f64) -> Option<TrainingFacts> {
    Some(TrainingFacts { steps: 1, batch: 1, rows: 1, share_at_full_noise, condition_dropout })
}

fn model(objective: Objective, training: Option<TrainingFacts>) -> DiffusionModel {
    let device = Device::flex();
    device.seed(4);
    let diffusion = Diffusion::init(config(objective, 5, WIDTH), &device).unwrap();
    let about = DiffusionAbout { training, ..DiffusionAbout::of_embeddings("test") };
    DiffusionModel::new(diffusion, about, None, "test".to_owned(), "1".to_owned())
}

fn embeddings(rows: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..rows * WIDTH).map(|_| rng.random_range(-30.0..30.0)).collect()
}

fn places() -> Vec<LatLon> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    (0..30).map(|_| uniform_place(&mut rng)).collect()
}

fn largest_difference(a: &Density, b: &Density) -> f64 {
    let difference = |place: &LatLon| (a.log_density(*place) - b.log_density(*place)).abs();
    places().iter().map(difference).fold(0.0, f64::max)
}

#[test]
fn several_views_are_a_mixture_of_the_single_ones() {
    let model = model(Objective::Likelihood, None);
    let views = embeddings(3);
    let once = Inference::default();
    let together = Inference { views: 3, ..once };
    let mixture = model.locate_embeddings(&views, 3, &together).unwrap().remove(0).density;
    let Density::Mixture(mixture_parts) = &mixture else { panic!("{mixture}") };
    assert_eq!(mixture_parts.parts().count(), 3);
    // The first view's noise is that of the first draw.
    let alone = model.locate_embeddings(&views[..WIDTH], 1, &once).unwrap().remove(0).density;
    let (_, first) = mixture_parts.parts().next().unwrap();
    assert!(largest_difference(&alone, first) < 1e-4);
    for place in places() {
        let mean =
            mixture_parts.parts().map(|(w, part)| w * part.log_density(place).exp()).sum::<f64>();
        assert!((mixture.log_density(place).exp() / mean - 1.0).abs() < 1e-9);
    }
}

/// What is drawn for an image does not depend on its company, and repeats with its seed.
#[test]
fn an_answer_does_not_depend_on_the_images_beside_it() {
    let rows = embeddings(5);
    for sampler in [Sampler::OnePass, Sampler::Ddim, Sampler::Ddpm] {
        let model = model(Objective::Likelihood, None);
        let inference = Inference { sampler, samples: 4, ..Inference::default() };
        let together = model.locate_embeddings(&rows, 1, &inference).unwrap();
        for (row, expected) in rows.chunks_exact(WIDTH).zip(&together) {
            let alone = model.locate_embeddings(row, 1, &inference).unwrap().remove(0);
            assert!(largest_difference(&alone.density, &expected.density) < 1e-3, "{sampler}");
        }
        let other = Inference { seed: 1, ..inference };
        let other = model.locate_embeddings(&rows, 1, &other).unwrap();
        if sampler != Sampler::OnePass {
            assert!(
                largest_difference(&other[0].density, &together[0].density) > 1e-3,
                "{sampler}"
            );
        }
    }
}

#[test]
fn samples_become_a_density_by_a_kernel_that_is_named() {
    for objective in [Objective::Likelihood, Objective::ReverseKl, Objective::L2] {
        let model = model(objective, None);
        let inference = Inference { sampler: Sampler::Ddim, samples: 8, ..Inference::default() };
        let density =
            model.locate_embeddings(&embeddings(1), 1, &inference).unwrap().remove(0).density;
        let Density::PointMasses(points) = &density else { panic!("{density}") };
        assert_eq!(points.points().len(), 8);
        let wide = Inference { kernel_km: Some(321.0), ..inference };
        let wide = model.locate_embeddings(&embeddings(1), 1, &wide).unwrap().remove(0).density;
        assert_eq!(wide.kernel_km(), Some(321.0));
    }
    // Without probabilities one pass is one point.
    let model = model(Objective::L2, None);
    let one = model.locate_embeddings(&embeddings(1), 1, &Inference::default()).unwrap();
    assert!(matches!(&one[0].density, Density::PointMasses(points) if points.points().len() == 1));
}

/// The lowest degrees can't tell continents apart; they answer all the same.
#[test]
fn the_lowest_degrees_answer_too() {
    let device = Device::flex();
    let diffusion = Diffusion::init(config(Objective::L2, 1, WIDTH), &device).unwrap();
    let about = DiffusionAbout::of_embeddings("test");
    let model = DiffusionModel::new(diffusion, about, None, "test".to_owned(), "1".to_owned());
    for sampler in [Sampler::OnePass, Sampler::Ddim, Sampler::Ddpm] {
        let inference = Inference { sampler, samples: 3, ..Inference::default() };
        assert_eq!(model.locate_embeddings(&embeddings(1), 1, &inference).unwrap().len(), 1);
    }
}

/// What a mixture of as many views as a server allows is sent as, it also takes.
#[test]
fn the_largest_mixture_is_a_valid_record() {
    let model = model(Objective::Likelihood, None);
    let inference = Inference { samples: 32, ..Inference::default() };
    let density = model.locate_embeddings(&embeddings(1), 1, &inference).unwrap().remove(0).density;
    let back = locdiff_sphere::DensityRecord::of(&density).density().unwrap();
    assert!(largest_difference(&density, &back) < 1e-4);
}

#[test]
fn what_training_supports_badly_is_a_warning_and_what_means_nothing_an_error() {
    let warnings =
        |objective, facts, inference: Inference| model(objective, facts).check(&inference);
    let likelihood = Objective::Likelihood;
    let default = Inference::default();
    assert_eq!(warnings(likelihood, facts(0.5, 0.1), default), Ok(Vec::new()));
    // The paper's training: one level of many is the highest.
    let few = warnings(Objective::ReverseKl, facts(0.0, 0.0), default).unwrap();
    assert!(few[0].contains("highest noise level"), "{few:?}");
    let paper = warnings(Objective::ReverseKl, facts(0.0, 0.0), Inference::PAPER).unwrap();
    assert_eq!(paper, Vec::<String>::new());
    let guided = Inference { guidance: 2.0, ..default };
    assert_eq!(warnings(likelihood, facts(0.5, 0.1), guided), Ok(Vec::new()));
    assert!(warnings(likelihood, facts(0.5, 0.01), guided).unwrap()[0].contains("1.0 %"));
    assert!(warnings(likelihood, None, guided).unwrap()[0].contains("is not known"));
    let error = warnings(likelihood, facts(0.5, 0.0), guided).unwrap_err();
    assert!(matches!(error, InvalidInference::Untrained { .. }), "{error}");
    assert!(warnings(Objective::L1, None, default).unwrap()[0].contains("no probabilities"));
    // Trained at one level only: nothing to sample with.
    let sampled = Inference { sampler: Sampler::Ddpm, samples: 2, ..default };
    let error = warnings(likelihood, facts(1.0, 0.1), sampled).unwrap_err();
    assert!(matches!(error, InvalidInference::Untrained { .. }), "{error}");
    assert!(!warnings(likelihood, facts(0.99, 0.1), sampled).unwrap().is_empty());
    assert!(warnings(likelihood, None, default).unwrap()[0].contains("is not known"));
    // A model whose own inference is none is not opened.
    let device = Device::flex();
    let diffusion = Diffusion::init(config(likelihood, 5, WIDTH), &device).unwrap();
    let inference = Inference { samples: 0, ..default };
    let about = DiffusionAbout { inference, ..DiffusionAbout::of_embeddings("test") };
    let model = DiffusionModel::new(diffusion, about, None, String::new(), String::new());
    assert!(Geolocator::from_model(model).is_err());
    let many = Inference { sampler: Sampler::Ddim, steps: Some(500), ..default };
    let error = warnings(likelihood, None, many).unwrap_err().to_string();
    assert!(error.contains("steps 500") && error.contains("noise levels"), "{error}");
    // Models without a diffusion support none of it.
    let earth_view = Geolocator::open("earth-view").unwrap();
    for options in [
        InferenceOptions { sampler: Some(Sampler::Ddpm), ..Default::default() },
        InferenceOptions { views: Some(16), ..Default::default() },
        InferenceOptions { guidance: Some(2.0), ..Default::default() },
    ] {
        let error = earth_view.with(&options).unwrap_err().to_string();
        assert!(error.starts_with("earth-view does not support"), "{error}");
    }
    let options = InferenceOptions { decode: Some(Decode::Geoscore), ..Default::default() };
    assert_eq!(earth_view.with(&options).unwrap().inference().decode, Decode::Geoscore);
}

fn tiny_encoder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../parity/vision/clip-quick-gelu")
}

/// A model on embeddings of the tiny encoder, under a name or not.
fn write_model(directory: &Path, name: Option<&str>) -> Diffusion {
    let device = Device::flex();
    device.seed(3);
    let encoder = ImageEncoder::open(&tiny_encoder(), &device).unwrap();
    let width = encoder.width();
    let rows: Vec<f32> = (0..10 * width).map(|k| (k as f32).sin()).collect();
    let diffusion = Diffusion::init(config(Objective::Likelihood, 5, width), &device).unwrap();
    let diffusion = diffusion.standardized(Some(Standardization::of(&rows, width)));
    let mut record = encoder.record().clone();
    record.name = name.map(str::to_owned);
    let about = DiffusionAbout {
        encoder: record,
        inference: Inference { decode: Decode::Mean, ..Inference::default() },
        training: facts(0.5, 0.1),
    };
    diffusion.save(directory, &about, "# A model of a test\n").unwrap();
    diffusion
}

fn options(home: &Path, encoder: EncoderSource) -> OpenOptions {
    OpenOptions { home: Some(ModelHome::at(home)), encoder, ..OpenOptions::default() }
}

fn open(directory: &Path, options: &OpenOptions) -> Result<Geolocator, CannotOpen> {
    Geolocator::open_with(directory.to_str().unwrap(), options, &mut |_, _| {})
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn a_copied_model_answers_the_same_or_says_what_fetches_its_encoder() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    write_model(&at("run/model"), Some("tiny-clip"));
    let with_path = |directory: &Path| {
        let source = EncoderSource::Path(tiny_encoder());
        open(directory, &options(&at("empty"), source)).unwrap()
    };
    let photo = Photo::test_picture();
    let original = with_path(&at("run/model"));
    assert_eq!(original.identity().name, "run/model");
    assert_eq!(original.inference().decode, Decode::Mean);
    copy(&at("run/model"), &at("elsewhere"));
    let copied = with_path(&at("elsewhere"));
    assert_eq!(copied.identity().version, original.identity().version);
    let (a, b) = (original.locate(&photo).unwrap(), copied.locate(&photo).unwrap());
    assert_eq!(largest_difference(a.density(), b.density()), 0.0);
    // Embedding beforehand makes no difference.
    let embedding = original.embed(std::slice::from_ref(&photo)).remove(0);
    let beforehand = original.locate_embeddings(&embedding, 1).unwrap().remove(0);
    assert!(largest_difference(a.density(), beforehand.density()) < 1e-4);
    // An empty home: the exact command.
    let error =
        open(&at("elsewhere"), &options(&at("empty"), EncoderSource::Installed)).unwrap_err();
    let CannotOpen::Missing { remedy, .. } = &error else { panic!("{error}") };
    assert!(remedy.contains("`locdiff model import encoder tiny-clip DIRECTORY`"), "{remedy}");
    // The same encoder, installed under that name.
    copy(&tiny_encoder(), &at("home/models/tiny-clip"));
    let installed =
        open(&at("elsewhere"), &options(&at("home"), EncoderSource::Installed)).unwrap();
    let c = installed.locate(&photo).unwrap();
    assert_eq!(largest_difference(a.density(), c.density()), 0.0);
    // A model that lives in the home is opened by its name.
    copy(&at("elsewhere"), &at("home/models/mine"));
    let mine = Geolocator::open_with(
        "mine",
        &options(&at("home"), EncoderSource::Installed),
        &mut |_, _| {},
    );
    assert_eq!(mine.unwrap().identity().name, "mine");
}

#[test]
fn another_encoder_is_rejected_naming_both_and_an_unknown_one_is_for_embeddings_only() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    write_model(&at("model"), None);
    let other = tiny_encoder().with_file_name("clip-gelu");
    assert!(other.is_dir(), "{}", other.display());
    let error = open(&at("model"), &options(&at("home"), EncoderSource::Path(other))).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, CannotOpen::OtherEncoder { .. }) && text.contains(", expected "),
        "{text}"
    );
    // Nobody can fetch what has no name.
    let error = open(&at("model"), &options(&at("home"), EncoderSource::Installed)).unwrap_err();
    assert!(error.to_string().contains("--encoder PATH"), "{error}");
    // A line of text is no encoder.
    let device = Device::flex();
    let diffusion = Diffusion::init(config(Objective::Likelihood, 5, WIDTH), &device).unwrap();
    diffusion.save(&at("unknown"), &DiffusionAbout::of_embeddings("somebody's"), "").unwrap();
    let error = open(&at("unknown"), &options(&at("home"), EncoderSource::Installed)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("somebody's") && text.contains("evaluated on embeddings"), "{text}");
    let model = open(&at("unknown"), &options(&at("home"), EncoderSource::NotNeeded)).unwrap();
    assert_eq!(model.locate_embeddings(&embeddings(2), 1).unwrap().len(), 2);
    assert!(model.locate(&Photo::test_picture()).is_err());
}

#[test]
fn damage_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    write_model(&at("model"), None);
    let verify = || ModelDirectory::read(&at("model")).unwrap().verify();
    assert_eq!(verify().len(), 2);
    assert!(verify().iter().all(|file| file.problem.is_none()));
    let weights = at("model/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&weights, bytes).unwrap();
    fs::remove_file(at("model/condition.safetensors")).unwrap();
    let damaged: Vec<String> =
        verify().into_iter().filter(|file| file.problem.is_some()).map(|file| file.name).collect();
    assert_eq!(damaged, ["condition.safetensors", "model.safetensors"]);
    let error = Diffusion::open(&at("model"), &Device::flex()).unwrap_err().to_string();
    assert!(error.contains("condition.safetensors"), "{error}");
    // Both sides of a mismatch.
    write_model(&at("model"), None);
    let file = at("model/config.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"max_degree\": 5", "\"max_degree\": 4")).unwrap();
    let error = Diffusion::open(&at("model"), &Device::flex()).unwrap_err().to_string();
    assert!(error.contains("36") && error.contains("25"), "{error}");
    fs::write(&file, text.replace("\"version\": 2", "\"version\": 9")).unwrap();
    let error = Diffusion::open(&at("model"), &Device::flex()).unwrap_err().to_string();
    assert!(error.contains("version 9") && error.contains("version 2"), "{error}");
}

#[test]
fn directories_of_version_1_still_open() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("model");
    let device = Device::flex();
    device.seed(3);
    let diffusion = Diffusion::init(config(Objective::ReverseKl, 5, WIDTH), &device).unwrap();
    diffusion.save(&directory, &DiffusionAbout::of_embeddings("x"), "# Card\n").unwrap();
    // As the last version wrote it.
    let mut old = serde_json::to_value(diffusion.config()).unwrap();
    old["format"] = "locdiff-diffusion".into();
    old["version"] = 1.into();
    old["written_by"] = "locdiff 0.1.0".into();
    old["encoder"] = "clip 32×2/8 id:0123456789abcdef resize 224 crop 224".into();
    fs::write(directory.join("config.json"), old.to_string()).unwrap();
    let read = ModelDirectory::read(&directory).unwrap();
    assert_eq!((read.kind(), read.verify().len()), (ModelKind::Diffusion, 0));
    let options = options(scratch.path(), EncoderSource::NotNeeded);
    let model = open(&directory, &options).unwrap();
    let (encoder, width) = model.takes_embeddings_of().unwrap();
    assert_eq!((encoder.identity.starts_with("clip 32"), width), (true, WIDTH));
    assert_eq!(model.inference(), &Inference::default());
    let there = model.locate_embeddings(&embeddings(1), 1).unwrap().remove(0);
    assert!(matches!(there.density(), Density::Linear(_)));
}

#[test]
fn a_directory_of_earth_views_kind_replaces_the_one_inside() {
    let inside = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/earth-view");
    let read = ModelDirectory::read(&inside).unwrap();
    assert_eq!(read.kind(), ModelKind::EarthView);
    assert!(read.verify().iter().all(|file| file.problem.is_none()), "{:?}", read.verify());
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir(scratch.path().join("mine")).unwrap();
    for entry in fs::read_dir(&inside).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), scratch.path().join("mine").join(entry.file_name())).unwrap();
    }
    let options = options(scratch.path(), EncoderSource::Installed);
    let mine = open(&scratch.path().join("mine"), &options).unwrap();
    let built_in = Geolocator::open("earth-view").unwrap();
    assert_eq!(mine.identity().version, built_in.identity().version);
    assert_eq!(mine.identity().name, "mine");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sinai.jpg");
    let photo = Photo::open(example).unwrap();
    let (a, b) = (mine.locate(&photo).unwrap(), built_in.locate(&photo).unwrap());
    assert_eq!(largest_difference(a.density(), b.density()), 0.0);
    // What is neither a name nor a directory.
    let error = Geolocator::open("earth-vew").unwrap_err();
    assert!(matches!(&error, CannotOpen::Unknown(name) if name == "earth-vew"), "{error}");
    fs::create_dir(scratch.path().join("nothing")).unwrap();
    let error = open(&scratch.path().join("nothing"), &options).unwrap_err().to_string();
    assert!(error.contains("nothing/config.json"), "{error}");
}

#[test]
fn a_record_names_an_encoder_completely() {
    let encoder = ImageEncoder::open(&tiny_encoder(), &Device::flex()).unwrap();
    let record = encoder.record();
    assert!(record.sha256.as_ref().is_some_and(|sum| sum.len() == 64));
    assert_eq!(record.test_embedding, encoder.embed_photo(&Photo::test_picture()));
    assert_eq!(record.preprocessing.as_ref(), Some(encoder.preprocessing()));
    assert_eq!(EncoderRecord::from_text(&record.to_text()), *record);
}

/// A `config.json` of a few bytes must not ask for all memory, nor stop the program.
#[test]
fn networks_that_are_not_in_the_file_of_weights_are_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let device = Device::flex();
    let diffusion = Diffusion::init(config(Objective::Likelihood, 5, WIDTH), &device).unwrap();
    diffusion.save(folder.path(), &DiffusionAbout::of_embeddings("test"), "").unwrap();
    let file = folder.path().join("config.json");
    let text = std::fs::read_to_string(&file).unwrap();
    for (from, to, expected) in [
        ("\"max_degree\": 5", "\"max_degree\": 200", "config.json needs"),
        ("\"max_degree\": 5", "\"max_degree\": 4294967296", "max_degree is 4294967296"),
        ("\"depth\": 2", "\"depth\": 64", "cannot be halved 64 times"),
        ("\"time_size\": 16", "\"time_size\": 15", "time_size is 15"),
        ("\"steps\": 40", "\"steps\": 10000000000000", "use at most 100000"),
    ] {
        assert!(text.contains(from), "{from} is not in\n{text}");
        std::fs::write(&file, text.replace(from, to)).unwrap();
        let error = Diffusion::open(folder.path(), &device).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
    std::fs::write(&file, &text).unwrap();
    Diffusion::open(folder.path(), &device).unwrap();
    // The network of such weights panicked at the first answer.
    let file = folder.path().join("model.safetensors");
    let mut weights = std::fs::read(&file).unwrap();
    let end = weights.len() - 4;
    weights[end..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&file, weights).unwrap();
    let error = Diffusion::open(folder.path(), &device).unwrap_err().to_string();
    assert!(error.contains("not finite"), "{error}");
}
