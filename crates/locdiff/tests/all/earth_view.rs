//! The model inside the program.

use burn::tensor::Device;
use locdiff::models::earth_view::EarthView;
use locdiff::models::{SelfTest, test_earth_view};
use locdiff::{Geolocator, LocationModel, Photo};

fn example(name: &str) -> Photo {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    Photo::open(format!("{folder}/{name}.jpg")).unwrap()
}

#[test]
fn it_is_what_it_was_when_it_was_made() {
    let model = EarthView::built_in(&Device::flex());
    assert!(matches!(test_earth_view(&model).unwrap(), SelfTest::Agrees { .. }));
    // On real pictures its regions do not contain what they should.
    assert!(!model.identity().calibrated);
}

#[test]
fn pictures_do_not_disturb_each_other() {
    let model = EarthView::built_in(&Device::flex());
    let photos = ["sinai", "madagascar", "sinai"].map(example);
    for (photo, together) in photos.iter().zip(model.read(&photos)) {
        let alone = model.read(std::slice::from_ref(photo)).remove(0);
        let numbers = alone.coefficients.as_slice().iter().zip(together.coefficients.as_slice());
        for (a, b) in numbers {
            assert!((a - b).abs() < 1e-3 * (1.0 + a.abs()), "{a} and {b}");
        }
    }
    assert!(model.read(&[]).is_empty());
}

/// Sums over the coarse grid say what the survey says.
#[test]
fn how_much_is_said_is_the_entropy() {
    let model = EarthView::built_in(&Device::flex());
    for reading in model.read(&["sinai", "madagascar"].map(example)) {
        let density = locdiff_sphere::Density::exponential(&reading.coefficients);
        let exact = locdiff_sphere::UNIFORM_NLL_NATS - density.survey().entropy_nats();
        let said = reading.said_nats;
        assert!((said - exact).abs() < 0.05, "{said}, not {exact} nats");
    }
}

/// The Earth has no up: a picture that is turned shows the same place.
#[test]
fn turning_a_picture_changes_nothing() {
    let model = EarthView::built_in(&Device::flex());
    let photo = example("sinai");
    let side = photo.width() as usize;
    let turned: Vec<u8> = (0..side * side)
        .flat_map(|at| {
            let (row, column) = (at / side, at % side);
            let from = 3 * (column * side + side - 1 - row);
            photo.rgb()[from..from + 3].to_vec()
        })
        .collect();
    let turned = Photo::from_rgb(side as u32, side as u32, turned).unwrap();
    let readings = model.read(&[photo, turned]);
    let [a, b] = [0, 1].map(|k| model.density(&readings[k]));
    let difference = a.survey().divergence_from(&b);
    // Resizing rounds to bytes.
    assert!(difference < 0.05, "{difference} nats");
}

#[test]
fn pictures_of_nothing_get_no_answer() {
    let model = Geolocator::open("earth-view").unwrap();
    for (width, height, colour) in
        [(300, 200, [128, 128, 128]), (1, 1, [255, 0, 0]), (64, 64, [0, 0, 0]), (5, 900, [255; 3])]
    {
        let pixels = colour.repeat((width * height) as usize);
        let photo = Photo::from_rgb(width, height, pixels).unwrap();
        let refused = model.locate(&photo).err().map(|refused| refused.to_string());
        assert_eq!(
            refused.as_deref(),
            Some("not a picture for this model: it is all of one colour")
        );
    }
}
