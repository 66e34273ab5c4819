//! A model and a gallery as one model: the laws of both rules, and what is rejected.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use locdiff::diffusion::{
    DenoiserConfig, Diffusion, DiffusionConfig, Objective, Quadrature, ScheduleConfig, ScheduleKind,
};
use locdiff::encoders::EncoderRecord;
use locdiff::locate::InvalidInference;
use locdiff::models::{
    DiffusionAbout, EncoderSource, HybridConfig, HybridModel, HybridRule, ModelDirectory,
    ModelKind, create_hybrid,
};
use locdiff::{
    CannotOpen, Constraint, Geolocator, Inference, Located, LocationModel, ModelHome,
    ModelIdentity, NotItsKind, OpenOptions, Photo,
};
use locdiff_gallery::{Gallery, GalleryWriter, Likelihood};
use locdiff_sphere::{
    Anchors, Density, EARTH_RADIUS_KM, Kernel, LatLon, PlaceIndex, PointMasses, UnitVector,
};
use serde_json::json;

/// An encoder of places: embeddings are directions, so that near places are similar.
const ENCODER: &str = "compass";

/// Answers every row with the same density.
struct Stub {
    identity: ModelIdentity,
    record: EncoderRecord,
    density: Density,
}

impl LocationModel for Stub {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn check(&self, _inference: &Inference) -> Result<Vec<String>, InvalidInference> {
        Ok(Vec::new())
    }

    fn locate(&self, photos: &[Photo], _inference: &Inference) -> Vec<Result<Located, NotItsKind>> {
        photos.iter().map(|_| Ok(self.density.clone().into())).collect()
    }

    /// All photographs were taken in Tokyo.
    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        photos.iter().map(|_| embedding(tokyo())).collect()
    }

    fn locate_embeddings(
        &self,
        embeddings: &[f32],
        views: usize,
        _inference: &Inference,
    ) -> Option<Vec<Located>> {
        Some(vec![self.density.clone().into(); embeddings.len() / (3 * views)])
    }

    fn takes_embeddings_of(&self) -> Option<(&EncoderRecord, usize)> {
        Some((&self.record, 3))
    }
}

fn stub(density: Density) -> Geolocator {
    let identity = ModelIdentity {
        name: "stub".to_owned(),
        version: "1".to_owned(),
        description: "a test".to_owned(),
        calibrated: false,
        prior: Some("everywhere".to_owned()),
    };
    let record = EncoderRecord::of_identity(ENCODER);
    Geolocator::from_model(Stub { identity, record, density }).unwrap()
}

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).unwrap()
}

fn paris() -> LatLon {
    at(48.86, 2.35)
}

fn tokyo() -> LatLon {
    at(35.68, 139.65)
}

fn embedding(place: LatLon) -> Vec<f32> {
    UnitVector::from(place).to_array().map(|part| part as f32).to_vec()
}

fn spread(places: &[LatLon], width_km: f64) -> Density {
    let masses = vec![1.0; places.len()];
    PointMasses::new(places.to_vec(), &masses).unwrap().spread(Kernel::new(width_km).unwrap())
}

fn write_gallery(directory: &Path, encoder: &str, dimension: usize, places: &[LatLon]) -> PathBuf {
    let encoder = EncoderRecord::of_identity(encoder).for_gallery(dimension);
    let mut writer = GalleryWriter::create(directory, &encoder).unwrap();
    for (row, place) in places.iter().enumerate() {
        let mut numbers = embedding(*place);
        numbers.resize(dimension, 0.0);
        writer.push(&numbers, *place, &format!("{row}.jpg")).unwrap();
    }
    writer.finish(|_| ()).unwrap();
    directory.to_owned()
}

/// As `locdiff gallery fit` stores it.
fn write_likelihood(gallery: &Path, highest_share: f64) {
    let likelihood = json!({
        "format": "locdiff-gallery-likelihood", "version": 1,
        "sharpness": 2000.0, "width_km": 100.0, "share_offset": 3.0, "share_slope": 0.0,
        "highest_share": highest_share, "held_out": "none", "held_out_rows": 100, "left_out_rows": 0,
        "gallery_rows": 0, "nll_nats": 0.0,
    });
    fs::write(gallery.join("likelihood.json"), likelihood.to_string()).unwrap();
}

fn hybrid(model: Geolocator, gallery: &Path, rule: HybridRule) -> Result<HybridModel, CannotOpen> {
    let gallery = Gallery::open(gallery).unwrap();
    HybridModel::new(model, gallery, HybridConfig::new("stub", "gallery", rule), "both")
}

fn largest_difference(a: &Density, b: &Density) -> f64 {
    let places = Anchors::fibonacci(500);
    let difference = |place: &LatLon| (a.log_density(*place) - b.log_density(*place)).abs();
    places.places().iter().map(difference).fold(0.0, f64::max)
}

#[test]
fn the_product_with_a_gallery_that_says_nothing_is_the_model() {
    let scratch = tempfile::tempdir().unwrap();
    let gallery = scratch.path().join("gallery");
    write_gallery(&gallery, ENCODER, 3, Anchors::fibonacci(2000).places());
    write_likelihood(&gallery, 0.0);
    let density = spread(&[paris(), at(-33.9, 151.2)], 300.0);
    let model = hybrid(stub(density.clone()), &gallery, HybridRule::Product).unwrap();
    let query = embedding(tokyo());
    let answer = model.locate_embeddings(&query, 1, &model.inference()).unwrap().remove(0).density;
    assert_eq!(largest_difference(&answer, &density), 0.0);
    // One of the two said where its prior comes from, and both are named.
    let prior = model.identity().prior.as_ref().unwrap();
    assert!(prior.starts_with("everywhere; ") && prior.contains("divided out"), "{prior}");
}

/// The paper's rule cannot: what the model excludes stays excluded.
#[test]
fn the_product_overrules_a_wrong_model_and_the_paper_does_not() {
    let scratch = tempfile::tempdir().unwrap();
    let gallery = scratch.path().join("gallery");
    let mut places = Anchors::fibonacci(20_000).places().to_vec();
    places.push(tokyo());
    write_gallery(&gallery, ENCODER, 3, &places);
    write_likelihood(&gallery, 0.95);
    // Nine tenths are wrong.
    let parts = vec![(0.9, spread(&[paris()], 100.0)), (0.1, Density::uniform())];
    let wrong = stub(Density::mixture(parts).unwrap());
    let product = hybrid(wrong, &gallery, HybridRule::Product).unwrap();
    let photo = Photo::test_picture();
    let located = product.locate(std::slice::from_ref(&photo), &product.inference()).remove(0);
    let located = located.unwrap();
    let place = located.density.survey().modes().modes[0].place;
    assert!(place.distance_km(tokyo()) < 100.0, "{place}");
    assert_eq!(located.references.len(), Likelihood::HITS);
    assert!(located.references[0].place.distance_km(tokyo()) < 1.0);
    // Embedding beforehand makes no difference.
    let query = embedding(tokyo());
    let again = product.locate_embeddings(&query, 1, &product.inference()).unwrap().remove(0);
    assert_eq!(largest_difference(&again.density, &located.density), 0.0);

    let wrong = stub(spread(&[paris()], 100.0));
    let paper = hybrid(wrong, &gallery, HybridRule::Paper).unwrap();
    let answer = paper.locate_embeddings(&query, 1, &paper.inference()).unwrap().remove(0);
    let place = answer.density.survey().modes().modes[0].place;
    assert!(place.distance_km(paris()) < 1000.0, "{place}");
}

#[test]
fn the_papers_rule_answers_with_the_most_similar_reference_near_a_sample() {
    let scratch = tempfile::tempdir().unwrap();
    let gallery = scratch.path().join("gallery");
    // Neighbors are 100 km apart.
    let places = Anchors::fibonacci(50_000).places().to_vec();
    write_gallery(&gallery, ENCODER, 3, &places);
    let samples = [paris(), at(89.9, 20.0), at(-17.0, 179.9), at(0.0, 100.0)];
    // As many points as draws: these are the samples.
    let model = hybrid(stub(spread(&samples, 80.0)), &gallery, HybridRule::Paper).unwrap();
    let inference = Inference { samples: samples.len(), ..model.inference() };
    for truth in [tokyo(), at(50.0, 0.0), at(-20.0, -175.0), at(85.0, 0.0)] {
        let query = embedding(truth);
        let answer = model.locate_embeddings(&query, 1, &inference).unwrap().remove(0).density;
        let Density::PointMasses(spread) = &answer else { panic!("{answer}") };
        let [winner] = spread.points().places() else { panic!("one reference") };
        let is_near = |place: LatLon| samples.iter().any(|s| s.distance_km(place) <= 200.0);
        assert!(is_near(*winner), "{winner}");
        // Galleries store 16 bits of each number.
        let similarity = |place: LatLon| (place.distance_km(truth) / EARTH_RADIUS_KM).cos();
        let near = places.iter().filter(|place| is_near(**place));
        let best = near.map(|place| similarity(*place)).fold(-1.0, f64::max);
        assert!(similarity(*winner) > best - 1e-3, "{winner}: {best}");
    }
    // A model with a density is sampled: the same seed draws the same.
    let parts = vec![(0.5, spread(&[paris()], 50.0)), (0.5, spread(&[tokyo()], 50.0))];
    let density = Density::mixture(parts).unwrap();
    let sampled = hybrid(stub(density.clone()), &gallery, HybridRule::Paper).unwrap();
    let ask = || sampled.locate_embeddings(&embedding(tokyo()), 1, &sampled.inference()).unwrap();
    assert_eq!(largest_difference(&ask()[0].density, &ask()[0].density), 0.0);
    let place = ask()[0].density.survey().modes().modes[0].place;
    assert!(place.distance_km(tokyo()) < 400.0, "{place}");
    assert!(sampled.check(&sampled.inference()).unwrap()[0].contains("one reference"));
    // Within an area, only its references count.
    let france: [Constraint; 1] = ["France".parse().unwrap()];
    let photo = Photo::test_picture();
    let located = sampled.locate_within(&[photo], &sampled.inference(), &france).remove(0).unwrap();
    let references = located.references.iter();
    assert!(references.clone().count() > 0);
    assert!(references.clone().all(|found| france[0].area().contains(found.place)));
    // Nothing nearby: the model alone.
    let far = scratch.path().join("far");
    write_gallery(&far, ENCODER, 3, &[at(-80.0, 0.0)]);
    let alone = hybrid(stub(density.clone()), &far, HybridRule::Paper).unwrap();
    let answer = alone.locate_embeddings(&embedding(tokyo()), 1, &alone.inference()).unwrap();
    assert_eq!(largest_difference(&answer[0].density, &density), 0.0);
}

/// Views of other lengths count the same: one that is far longer does not decide.
#[test]
fn several_views_search_with_their_mean_direction() {
    let scratch = tempfile::tempdir().unwrap();
    let gallery = scratch.path().join("gallery");
    let middle = at(0.0, 45.0);
    write_gallery(&gallery, ENCODER, 3, &[at(0.0, 0.0), at(0.0, 90.0), middle]);
    let [a, b] = [at(0.0, 0.0), at(0.0, 90.0)].map(embedding);
    let longer: Vec<f32> = a.iter().map(|x| 100.0 * x).collect();
    let near = stub(spread(&[middle, at(0.0, 0.0)], 50.0));
    let near = hybrid(near, &gallery, HybridRule::Paper).unwrap();
    let inference = Inference { samples: 2, ..near.inference() };
    let answer = near.locate_embeddings(&[longer, b].concat(), 2, &inference).unwrap();
    let place = answer[0].density.survey().modes().modes[0].place;
    assert!(place.distance_km(middle) < 1.0, "{place}");
}

#[test]
fn another_encoder_and_a_gallery_without_a_fit_are_rejected() {
    let scratch = tempfile::tempdir().unwrap();
    let [other, unfitted] = ["other", "unfitted"].map(|name| scratch.path().join(name));
    write_gallery(&other, "sextant", 3, &[paris()]);
    write_gallery(&unfitted, ENCODER, 3, &[paris()]);
    let model = || stub(spread(&[paris()], 100.0));
    for rule in HybridRule::ALL {
        let text = hybrid(model(), &other, rule).unwrap_err().to_string();
        assert!(text.contains(ENCODER) && text.contains("sextant"), "{text}");
    }
    let text = hybrid(model(), &unfitted, HybridRule::Product).unwrap_err().to_string();
    assert!(text.contains("`locdiff gallery fit`"), "{text}");
    assert!(hybrid(model(), &unfitted, HybridRule::Paper).is_ok());
}

/// A model on embeddings of three numbers.
fn write_model(directory: &Path) {
    let denoiser = DenoiserConfig { dropout: 0.0, time_size: 16, ..DenoiserConfig::new(5, 3) };
    let config = DiffusionConfig {
        denoiser,
        schedule: ScheduleConfig { kind: ScheduleKind::Shifted, steps: 40 },
        objective: Objective::Likelihood,
        quadrature: Quadrature::default(),
    };
    let diffusion = Diffusion::init(config, &Device::flex()).unwrap();
    diffusion.save(directory, &DiffusionAbout::of_embeddings(ENCODER), "").unwrap();
}

#[test]
fn a_hybrid_on_disk_opens_by_its_directory_and_moves_with_its_parts() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let options = OpenOptions {
        encoder: EncoderSource::NotNeeded,
        home: Some(ModelHome::at(at("home"))),
        ..OpenOptions::default()
    };
    write_model(&at("a/model"));
    write_gallery(&at("a/gallery"), ENCODER, 3, Anchors::fibonacci(500).places());
    let create = |rule| {
        let model = at("a/model");
        create_hybrid(
            &at("a/both"),
            model.to_str().unwrap(),
            &at("a/gallery"),
            rule,
            None,
            &options,
        )
    };
    let text = create(HybridRule::Product).unwrap_err().to_string();
    assert!(text.contains("`locdiff gallery fit`") && !at("a/both").exists(), "{text}");
    write_likelihood(&at("a/gallery"), 0.9);
    let made = create(HybridRule::Product).unwrap();
    // Never overwritten.
    assert!(create(HybridRule::Paper).unwrap_err().to_string().contains("exists"));
    let config = ModelDirectory::read(&at("a/both")).unwrap();
    assert_eq!((config.kind(), &config.config()["model"]), (ModelKind::Hybrid, &json!("../model")));
    assert!(at("a/both/README.md").is_file());

    fs::rename(at("a"), at("b")).unwrap();
    let open =
        |path: &str| Geolocator::open_with(at(path).to_str().unwrap(), &options, &mut |_, _| {});
    let opened = open("b/both").unwrap();
    // Its model has another name now, and is the same.
    assert_eq!(opened.identity().version, made.identity().version);
    let query = embedding(tokyo());
    // Whatever the untrained model says, the most similar reference makes its place more probable.
    let anchors = Anchors::fibonacci(500);
    let nearest = PlaceIndex::new(anchors.places()).nearest(tokyo()).unwrap().0;
    let log_density = |model: &Geolocator| {
        let estimate = model.locate_embeddings(&query, 1).unwrap().remove(0);
        estimate.density().log_density(anchors.places()[nearest])
    };
    assert!(log_density(&opened) > log_density(&open("b/model").unwrap()) + 1.0);
    // The gallery is a model too, and not one that a hybrid takes.
    let alone = open("b/gallery").unwrap();
    let estimate = alone.locate_embeddings(&query, 1).unwrap().remove(0);
    let place = estimate.density().survey().modes().modes[0].place;
    assert!(place.distance_km(tokyo()) < 1500.0, "{place}");
    for part in ["b/both", "b/gallery"] {
        let (part, out) = (at(part), at("b/more"));
        let part = part.to_str().unwrap();
        let made = create_hybrid(&out, part, &at("b/gallery"), HybridRule::Product, None, &options);
        let text = made.unwrap_err().to_string();
        assert!(text.contains("is of kind") && !out.exists(), "{text}");
    }
    // A growing gallery is another version.
    let before = opened.identity().version.clone();
    let encoder = EncoderRecord::of_identity(ENCODER).for_gallery(3);
    let mut writer = GalleryWriter::append(&at("b/gallery"), &encoder).unwrap();
    writer.push(&query, tokyo(), "new.jpg").unwrap();
    writer.finish(|_| ()).unwrap();
    assert_ne!(open("b/both").unwrap().identity().version, before);
}
