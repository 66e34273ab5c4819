//! Registration on a made-up Earth: no file of the real one is needed.

use image::{Rgb, RgbImage};
use locdiff_earth::{
    Camera, EARTH_RADIUS_KM, Guess, Imagery, LandMask, Light, Pose, Random, Registrar,
};

const ROWS: u32 = 1024;
const WIDTH_KM: f64 = 1500.0;
const SIDE: usize = 128;

/// Waves on the sphere, in all directions and of all lengths from 300 to 2,000 km.
struct Waves(Vec<([f64; 3], f64)>);

impl Waves {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let wave = |_| {
            let z = random.between(-1.0, 1.0);
            let (sin, cos) = random.between(0.0, std::f64::consts::TAU).sin_cos();
            let frequency =
                std::f64::consts::TAU * EARTH_RADIUS_KM / random.log_between(300.0, 2000.0);
            let flat = (1.0f64 - z * z).sqrt();
            let phase = random.between(0.0, std::f64::consts::TAU);
            ([flat * cos, flat * sin, z].map(|value| value * frequency), phase)
        };
        Self((0..12).map(wave).collect())
    }

    fn at(&self, latitude: f64, longitude: f64) -> f64 {
        let point = unit_vector(latitude, longitude);
        let wave = |(along, phase): &([f64; 3], f64)| {
            (along[0] * point[0] + along[1] * point[1] + along[2] * point[2] + phase).sin()
        };
        self.0.iter().map(wave).sum::<f64>() / (self.0.len() as f64).sqrt()
    }
}

fn unit_vector(latitude: f64, longitude: f64) -> [f64; 3] {
    let (lat, lon) = (latitude.to_radians(), longitude.to_radians());
    [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
}

fn apart_km(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (a, b) = (unit_vector(a.0, a.1), unit_vector(b.0, b.1));
    let chord = (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt();
    2.0 * (0.5 * chord).asin() * EARTH_RADIUS_KM
}

fn made_up_earth() -> Imagery {
    let [light, tint, height] = [1, 2, 3].map(Waves::new);
    let step = 180.0 / f64::from(ROWS);
    let picture = RgbImage::from_fn(2 * ROWS, ROWS, |x, y| {
        let (lat, lon) = (90.0 - (f64::from(y) + 0.5) * step, (f64::from(x) + 0.5) * step - 180.0);
        let (light, tint) = (light.at(lat, lon), tint.at(lat, lon));
        Rgb([0.5, 0.0, -0.5].map(|share| (110.0 + 35.0 * light + 30.0 * share * tint) as u8))
    });
    let mask = LandMask::from_fn(360, 720, |lat, lon| height.at(lat, lon) > -0.7);
    Imagery::from_picture(&picture, Light::Day, &mask)
}

/// What a camera sees of the imagery, with a sea unlike the one that registration assumes, and
/// grayer than the map.
fn picture_by(camera: &Camera, imagery: &Imagery) -> Vec<u8> {
    let footprint_km = camera.pose.width_km / SIDE as f64;
    let place = |step: usize| (step as f64 + 0.5) / SIDE as f64 * 2.0 - 1.0;
    (0..SIDE * SIDE)
        .flat_map(|at| {
            let seen = camera.place_at(place(at % SIDE), -place(at / SIDE));
            let (latitude, longitude) = seen.expect("the camera looks at the ground");
            let (color, land) = imagery.colour(latitude, longitude, footprint_km);
            let gray = color.iter().sum::<f32>() / 3.0;
            color.map(|value| {
                let ground = 0.8 * (0.5 * (value + gray)).powf(0.8) + 0.1;
                (255.0 * (0.22 + (ground - 0.22) * land)) as u8
            })
        })
        .collect()
}

fn disturbed(random: &mut Random, pose: &Pose) -> Guess {
    let mut km = || random.between(-0.06, 0.06) * pose.width_km / EARTH_RADIUS_KM;
    let latitude = pose.latitude + km().to_degrees();
    let longitude = pose.longitude + km().to_degrees() / latitude.to_radians().cos();
    Guess {
        middle: (latitude, longitude),
        heading_degrees: pose.heading_degrees + random.between(-8.0, 8.0),
        width_km: pose.width_km * random.between(-0.14, 0.14).exp(),
    }
}

#[test]
fn a_disturbed_guess_is_put_right_and_a_wrong_place_is_less_alike() {
    let imagery = made_up_earth();
    let mut random = Random::new(4);
    for (latitude, longitude, tilt_degrees) in
        [(10.0, 20.0, 0.0), (62.0, 179.5, 0.0), (-48.0, -75.0, 0.0), (30.0, 100.0, 6.0)]
    {
        // From far away, as the test's numbers are those of a picture without perspective.
        let pose = Pose {
            latitude,
            longitude,
            altitude_km: 30_000.0,
            tilt_degrees,
            heading_degrees: random.between(0.0, 360.0),
            roll_degrees: 0.0,
            width_km: WIDTH_KM,
        };
        let camera = Camera::new(pose);
        let registrar = Registrar::new(&picture_by(&camera, &imagery), SIDE);
        let guess = disturbed(&mut random, &pose);
        let made = registrar.register(&imagery, &guess);
        let found = made.found;
        let off_km = apart_km(found.middle, (latitude, longitude));
        assert!(off_km < 0.015 * WIDTH_KM, "{off_km} km off at {latitude}, {longitude}");
        let turn = (found.heading_degrees - pose.heading_degrees + 180.0).rem_euclid(360.0) - 180.0;
        assert!(turn.abs() < 1.0, "{turn}° off at {latitude}, {longitude}");
        let width = found.width_km / WIDTH_KM;
        assert!((width - 1.0).abs() < 0.015, "width off by {width} at {latitude}, {longitude}");
        let corners = [(-1.0, 1.0), (1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)];
        for (corner, (x, y)) in made.corners.into_iter().zip(corners) {
            let wanted = camera.place_at(x, y).unwrap();
            let off_km = apart_km(corner, wanted);
            assert!(off_km < 0.05 * WIDTH_KM, "corner {x}, {y} off by {off_km} km");
        }
        assert!(made.likeness > 0.5, "likeness {}", made.likeness);

        let elsewhere = Guess { middle: (guess.middle.0 - 25.0, guess.middle.1 + 40.0), ..guess };
        let wrong = registrar.coarse(&imagery, &elsewhere);
        assert!(wrong.likeness() + 0.1 < registrar.coarse(&imagery, &guess).likeness());
        let wrong = registrar.refine(&imagery, &wrong);
        assert!(wrong.likeness + 0.2 < made.likeness, "{} elsewhere", wrong.likeness);
    }
}

#[test]
fn a_picture_without_anything_on_it_is_like_nothing() {
    let picture = RgbImage::from_fn(128, 64, |x, y| Rgb([(x * y % 251) as u8; 3]));
    let mask = LandMask::from_fn(18, 36, |_, _| true);
    let imagery = Imagery::from_picture(&picture, Light::Day, &mask);
    let registrar = Registrar::new(&vec![90; 3 * 50 * 50], 50);
    let guess = Guess { middle: (0.0, 0.0), heading_degrees: 0.0, width_km: 500.0 };
    let made = registrar.register(&imagery, &guess);
    assert!(made.likeness.abs() < 0.01, "likeness {}", made.likeness);
}
