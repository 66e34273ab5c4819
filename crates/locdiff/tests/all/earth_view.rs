//! The model inside the program.

use burn::tensor::Device;
use locdiff::models::earth_view::EarthLocator;
use locdiff::models::{SelfTest, open_encoder, test_earth_view};
use locdiff::photo::Crops;
use locdiff::{Constraint, Geolocator, InferenceOptions, LocationModel, ModelHome, Photo};
use locdiff_sphere::LatLon;

fn example(name: &str) -> Photo {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    Photo::open(format!("{folder}/{name}.jpg")).unwrap()
}

#[test]
fn it_is_what_it_was_when_it_was_made() {
    let model = EarthLocator::built_in(&Device::flex());
    assert!(matches!(test_earth_view(&model).unwrap(), SelfTest::Agrees { .. }));
    assert_eq!(model.embed(&[Photo::test_picture()])[0].len(), 64 * 32);
}

/// Its encoder makes the same numbers for training that it searches with.
#[test]
fn its_encoder_can_be_trained_on() {
    let folder = tempfile::tempdir().unwrap();
    let home = ModelHome::at(folder.path());
    let encoder = open_encoder("earth-view", &home, &Device::flex()).unwrap().unwrap();
    let square = example("sinai").square(128);
    let photo = Photo::from_rgb(128, 128, square).unwrap();
    let embedding = encoder.embed_photos(std::slice::from_ref(&photo), &Crops::Single);
    assert_eq!(embedding.len(), encoder.width());
    let searched = EarthLocator::built_in(&Device::flex()).embed(&[photo]).remove(0);
    let largest = embedding.iter().zip(&searched).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(largest < 1e-3, "{largest}");
}

/// A photograph by a person on the space station (ISS062-E-24032; NASA's catalog has 31.0, 87.0, by a 50 mm lens).
#[test]
fn a_photograph_from_the_station_is_found_if_its_width_is_known() {
    let model = Geolocator::open("earth-view").unwrap();
    let photo = example("tibet");
    let catalog = LatLon::new(31.0, 87.0).unwrap();
    let with = |width_km| InferenceOptions { width_km: Some(width_km), ..Default::default() };
    let known = model.with(&with(215.0)).unwrap();
    let estimate = known.locate(&photo).unwrap();
    assert!(estimate.place().distance_km(catalog) < 50.0, "{}", estimate.place());
    let footprint = estimate.footprint().unwrap();
    assert!((footprint.width_km / 215.0).ln().abs() < 0.2, "{footprint:?}");
    // The point below the station; and one on another continent.
    let near: Constraint = "32.1,85.8,500km".parse().unwrap();
    let there = known.within(&[near]).locate(&photo).unwrap();
    assert!(there.place().distance_km(estimate.place()) < 5.0);
    let elsewhere: Constraint = "-25,135,1500km".parse().unwrap();
    assert!(known.within(&[elsewhere]).locate(&photo).is_err());
    // Wider than anything in the gallery.
    let error = model.with(&with(6000.0)).unwrap().locate(&photo).unwrap_err().to_string();
    assert!(error.contains("width_km is 6000"), "{error}");
}

/// The Earth has no up: a picture that is turned shows the same ground, and its heading turns along.
#[test]
fn a_turned_picture_has_a_turned_footprint() {
    let model = Geolocator::open("earth-view").unwrap();
    let photo = example("sinai");
    let side = photo.width() as usize;
    let turned: Vec<u8> = (0..side * side)
        .flat_map(|at| {
            let (row, column) = (at / side, at % side);
            // To the left: what was up points to the left.
            let from = 3 * (column * side + side - 1 - row);
            photo.rgb()[from..from + 3].to_vec()
        })
        .collect();
    let turned = Photo::from_rgb(side as u32, side as u32, turned).unwrap();
    let footprints = [photo, turned].map(|photo| {
        let estimate = model.locate(&photo).unwrap();
        *estimate.footprint().expect("a view that is found has a footprint")
    });
    let [before, after] = footprints;
    let truth = LatLon::new(28.5, 34.0).unwrap();
    for footprint in footprints {
        assert!(footprint.middle.distance_km(truth) < 30.0, "{footprint:?}");
    }
    let turn = (after.heading_degrees - before.heading_degrees).rem_euclid(360.0);
    assert!((turn - 90.0).abs() < 3.0, "{turn}");
    assert!((after.width_km / before.width_km - 1.0).abs() < 0.3);
}

#[test]
fn pictures_of_nothing_get_no_answer() {
    let model = Geolocator::open("earth-view").unwrap();
    for (width, height, color) in
        [(300, 200, [128, 128, 128]), (1, 1, [255, 0, 0]), (64, 64, [0, 0, 0]), (5, 900, [255; 3])]
    {
        let pixels = color.repeat((width * height) as usize);
        let photo = Photo::from_rgb(width, height, pixels).unwrap();
        let refused = model.locate(&photo).err().map(|refused| refused.to_string());
        assert_eq!(
            refused.as_deref(),
            Some("not a picture for this model: the picture has only one color")
        );
    }
}
