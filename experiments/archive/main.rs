//! Views from a simulated space station, as JPEGs with times in their Exif data: `archive-passes FOLDER COUNT SEED`.
//!
//! The station flies an ellipse of 51.64° inclination by Kepler's laws, 395 to 430 km high on average and up to 14 km higher and lower,
//! over a turning Earth whose flattening turns the orbit's plane. The fusion assumes a circle at 7.66 km/s and 420 km in a plane that
//! stays. In each pass the camera looks through one window, a few degrees aside, held by a hand. Pictures without land are not taken.
//! The mosaic is one that earth-view was not trained on. `truth.csv` has the place in the middle of each.

use std::f64::consts::TAU;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use locdiff_earth::{Camera, Pose, Renderer};
use locdiff_experiments::earth_sources::Folders;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

const SIDE: usize = 256;
const VIEWS_OF_A_PASS: usize = 12;
const SIDEREAL_DAY_S: f64 = 86_164.0;
/// Of the Earth, in km³/s².
const GRAVITY: f64 = 398_600.44;
const EQUATOR_KM: f64 = 6378.137;
/// How much the Earth's flattening disturbs an orbit.
const J2: f64 = 1.082_63e-3;
/// Half of the large axis of the orbit, less the Earth's radius.
const ALTITUDES_KM: [f64; 2] = [395.0, 430.0];
const LARGEST_ECCENTRICITY: f64 = 0.002;
/// What the mosaic is fine enough for, and earth-view wide enough.
const WIDTHS_KM: [f64; 2] = [630.0, 1500.0];
/// 2024-05-01T00:00:00Z.
const BEGIN_S: f64 = 1_714_521_600.0;
/// From the beginning of a pass to that of the next.
const BETWEEN_PASSES_S: f64 = 4.0 * 3600.0;
/// A view with less land is not taken.
const LEAST_LAND: f64 = 0.3;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, count, seed] = arguments.as_slice() else {
        bail!("usage: archive-passes FOLDER COUNT SEED");
    };
    let (folder, count, seed) = (PathBuf::from(folder), count.parse::<usize>()?, seed.parse()?);
    fs::create_dir_all(&folder)?;
    let sources = Folders::from_environment()?;
    let mask = sources.mask()?;
    let day = vec![sources.open("three-globe", &mask)?];
    let renderer = Renderer::new(mask, day, Vec::new());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut truth = fs::File::create(folder.join("truth.csv"))?;
    writeln!(truth, "name,pass,time_s,latitude,longitude,width_km")?;
    let (mut taken, mut pass) = (0, 0);
    while taken < count {
        let normal = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
        let orbit = Orbit::drawn(&mut rng);
        let window = (4.0 * normal(&mut rng), 4.0 * normal(&mut rng));
        let width_km: f64 = rng.random_range(WIDTHS_KM[0]..WIDTHS_KM[1]);
        let mut time_s = 0.0;
        let mut of_pass = 0;
        // A quarter of an hour; whatever land was below.
        while time_s < 900.0 && of_pass < VIEWS_OF_A_PASS && taken < count {
            let wait: f64 = Exp1.sample(&mut rng);
            time_s += 4.0 + 30.0 * wait;
            let (latitude, longitude, altitude_km) = orbit.at(time_s);
            let aside = (window.0 + 1.5 * normal(&mut rng), window.1 + 1.5 * normal(&mut rng));
            let pose = Pose {
                latitude,
                longitude,
                altitude_km,
                tilt_degrees: aside.0.hypot(aside.1),
                heading_degrees: aside.0.atan2(aside.1).to_degrees(),
                roll_degrees: rng.random_range(0.0..360.0),
                width_km,
            };
            // The pose is that of the middle of the picture: looking aside moves it away from the track.
            let away_km = altitude_km * pose.tilt_degrees.to_radians().tan();
            let below = locdiff_sphere::LatLon::new(latitude, longitude)?;
            let middle = below.destination(pose.heading_degrees, away_km);
            let pose = Pose { latitude: middle.latitude(), longitude: middle.longitude(), ..pose };
            let picture_seed = rng.random();
            let (pixels, land) = renderer.photograph(&Camera::new(pose), 0, picture_seed, SIDE);
            if land < LEAST_LAND || middle.latitude().abs() > 60.0 {
                continue;
            }
            let name = format!("{pass:03}-{of_pass:02}.jpg");
            let at_s = BEGIN_S + BETWEEN_PASSES_S * f64::from(pass) + time_s;
            fs::write(folder.join(&name), jpeg(&pixels, at_s)?)?;
            let (latitude, longitude) = (middle.latitude(), middle.longitude());
            writeln!(truth, "{name},{pass},{at_s:.3},{latitude:.6},{longitude:.6},{width_km:.1}")?;
            taken += 1;
            of_pass += 1;
        }
        pass += 1;
    }
    Ok(())
}

/// A pass's orbit.
struct Orbit {
    axis_km: f64,
    eccentricity: f64,
    /// Angle from the ascending node to the lowest point.
    lowest: f64,
    /// Of the ascending node, at the beginning of the pass.
    node: f64,
    /// Mean anomaly at the beginning of the pass.
    phase: f64,
}

impl Orbit {
    fn drawn(rng: &mut ChaCha8Rng) -> Orbit {
        Orbit {
            axis_km: locdiff_sphere::EARTH_RADIUS_KM
                + rng.random_range(ALTITUDES_KM[0]..ALTITUDES_KM[1]),
            eccentricity: rng.random_range(0.0..LARGEST_ECCENTRICITY),
            lowest: rng.random_range(0.0..TAU),
            node: rng.random_range(0.0..TAU),
            phase: rng.random_range(0.0..TAU),
        }
    }

    /// Latitude and longitude of the point below the station, and its height.
    fn at(&self, time_s: f64) -> (f64, f64, f64) {
        let Orbit { axis_km, eccentricity, .. } = *self;
        let inclination = 51.64_f64.to_radians();
        let mean_motion = (GRAVITY / axis_km.powi(3)).sqrt();
        let anomaly = self.phase + mean_motion * time_s;
        // To the second order of the eccentricity: 1e-8.
        let center = 2.0 * eccentricity * anomaly.sin()
            + 1.25 * eccentricity * eccentricity * (2.0 * anomaly).sin();
        let (sin, cos) = (self.lowest + anomaly + center).sin_cos();
        let drift = -1.5 * J2 * (EQUATOR_KM / axis_km).powi(2) * mean_motion * inclination.cos();
        let latitude = (inclination.sin() * sin).asin().to_degrees();
        let longitude = (inclination.cos() * sin).atan2(cos) + self.node + drift * time_s
            - TAU * time_s / SIDEREAL_DAY_S;
        let height_km = axis_km * (1.0 - eccentricity * anomaly.cos());
        let longitude = (longitude.to_degrees() + 540.0).rem_euclid(360.0) - 180.0;
        (latitude, longitude, height_km - locdiff_sphere::EARTH_RADIUS_KM)
    }
}

/// A JPEG with camera, time and the time's fraction in Exif data.
fn jpeg(rgb: &[u8], time_s: f64) -> Result<Vec<u8>> {
    let picture = image::RgbImage::from_raw(SIDE as u32, SIDE as u32, rgb.to_vec());
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, 92);
    encoder.encode_image(&picture.context("a square picture")?)?;
    let plain = bytes.into_inner();
    let entry = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
        [&tag.to_le_bytes()[..], &kind.to_le_bytes(), &count.to_le_bytes(), &value].concat()
    };
    // Header, two entries; two entries; the text.
    let (inner, text) = (8 + 2 + 24 + 4, 8 + 2 + 24 + 4 + 2 + 24 + 4);
    let thousandths = format!("{:03}\0", ((time_s.fract()) * 1000.0) as u32);
    let mut tiff = b"II*\0\x08\0\0\0".to_vec();
    tiff.extend(2_u16.to_le_bytes());
    tiff.extend(entry(0x010f, 2, 4, *b"Sim\0"));
    tiff.extend(entry(0x8769, 4, 1, u32::to_le_bytes(inner)));
    tiff.extend([0; 4]);
    tiff.extend(2_u16.to_le_bytes());
    tiff.extend(entry(0x9003, 2, 20, u32::to_le_bytes(text)));
    tiff.extend(entry(0x9291, 2, 4, thousandths.as_bytes().try_into()?));
    tiff.extend([0; 4]);
    let moment = locdiff_archive::Moment::from_unix_s(time_s.floor()).to_string();
    let exif_time = moment.trim_end_matches('Z').replace('-', ":").replace('T', " ");
    tiff.extend(exif_time.as_bytes());
    tiff.push(0);
    let length = ((2 + 6 + tiff.len()) as u16).to_be_bytes();
    Ok([&plain[..2], &[0xff, 0xe1], &length, b"Exif\0\0", &tiff, &plain[2..]].concat())
}
