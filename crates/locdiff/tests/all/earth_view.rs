//! The model inside the program.

use burn::tensor::Device;
use locdiff::models::earth_view::EarthLocator;
use locdiff::models::{SelfTest, test_earth_view};
use locdiff::{Geolocator, LocationModel, Photo};
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
            Some("not a picture for this model: it is all of one color")
        );
    }
}
