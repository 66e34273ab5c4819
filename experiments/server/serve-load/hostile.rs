//! Honest images and densities, alone and beside densities that are meant to cost much.

use std::fmt::Write;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use locdiff_sphere::{Coefficients, DensityRecord, LatLon, MixturePart, coefficient_count};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use crate::client::{Said, request};
use crate::phases::{Outcome, quantile, scheduled};
use crate::server::Server;

/// Honest densities per second.
pub(crate) const DENSITIES_PER_S: f64 = 2.0;
/// Hostile densities per second.
const HOSTILE_PER_S: f64 = 4.0;
/// Of each kind of request: more than can wait at a time.
const CLIENTS: usize = 128;

/// What became of requests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: usize,
    pub(crate) answered: usize,
    /// Refused at once.
    pub(crate) rejected: usize,
    /// Admitted, and not answered in time or not at all.
    pub(crate) timeouts: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Tally {
    fn of(outcomes: &[Outcome]) -> Tally {
        let answered = outcomes.iter().filter(|outcome| outcome.said == Said::Status(200));
        let mut times: Vec<f64> = answered.map(|outcome| outcome.ms).collect();
        let late = |said| matches!(said, Said::Status(504) | Said::Nothing | Said::NotConnected);
        let (sent, answered) = (outcomes.len(), times.len());
        let timeouts = outcomes.iter().filter(|outcome| late(outcome.said)).count();
        Tally {
            sent,
            answered,
            rejected: sent - answered - timeouts,
            timeouts,
            p50_ms: quantile(&mut times, 0.5),
            p99_ms: quantile(&mut times, 0.99),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) images: Tally,
    pub(crate) densities: Tally,
    pub(crate) hostile: Tally,
    pub(crate) memory_mb: f64,
}

/// Honest requests on a schedule, for some time, with hostile ones beside them or without.
pub(crate) fn beside(
    server: &Server,
    images: &[Vec<u8>],
    images_per_s: f64,
    hostile: &[Vec<u8>],
    time: Duration,
) -> Result<Beside> {
    let honest = honest()?;
    let run = |requests: &[Vec<u8>], rate| {
        Tally::of(&scheduled(server, requests, rate, time, CLIENTS, |_| ()).outcomes)
    };
    thread::scope(|scope| {
        let images = scope.spawn(|| run(images, images_per_s));
        let densities = scope.spawn(|| run(&honest, DENSITIES_PER_S));
        let hostile =
            if hostile.is_empty() { Tally::default() } else { run(hostile, HOSTILE_PER_S) };
        Ok(Beside {
            images: images.join().expect("no panic"),
            densities: densities.join().expect("no panic"),
            hostile,
            memory_mb: server.resident_mb(),
        })
    })
}

fn density(options: &str, record: &str) -> Vec<u8> {
    request(&format!("/v1/density?{options}"), "application/json", record.as_bytes())
}

/// Exponentials of degree 23 and points, as models answer.
fn honest() -> Result<Vec<Vec<u8>>> {
    let mut requests = Vec::new();
    for (k, options) in ["format=geojson", "format=png&width=640"].iter().enumerate() {
        let place = LatLon::new(-20.0 + 25.0 * k as f64, 46.0 + 40.0 * k as f64)?;
        let record = DensityRecord::exponential(&Coefficients::of(place, 23));
        requests.push(density(options, &serde_json::to_string(&record)?));
        let points = (0..200).map(|k| [f64::from(k % 50) - 20.0, f64::from(k % 37) + 10.0]);
        requests.push(density(options, &points_record(100.0, points)));
    }
    Ok(requests)
}

/// The most expensive that we can think of.
pub(crate) fn hostile() -> Result<Vec<Vec<u8>>> {
    let mut random = ChaCha8Rng::seed_from_u64(26);
    let mut noise = |degree: usize, size: f32| -> Vec<f32> {
        let number = |_| size * random.sample::<f32, _>(StandardNormal);
        (0..coefficient_count(degree)).map(number).collect()
    };
    let exponential = DensityRecord::Exponential { max_degree: 127, coefficients: noise(127, 1.0) };
    let linear = DensityRecord::Linear { max_degree: 127, coefficients: noise(127, 1.0) };
    let part = |_| {
        let density = DensityRecord::Exponential { max_degree: 47, coefficients: noise(47, 1.0) };
        MixturePart { weight: 1.0, density }
    };
    let mixture = DensityRecord::Mixture { parts: (0..32).map(part).collect() };
    let golden = 180.0 * (3.0 - 5.0_f64.sqrt());
    let everywhere = (0..100_000).map(|k| {
        let height = 1.0 - (f64::from(k) + 0.5) / 5e4;
        [height.asin().to_degrees(), (golden * f64::from(k)) % 360.0 - 180.0]
    });
    let poles = [[90.0, 0.0], [-90.0, 0.0]];
    Ok(vec![
        density("format=geojson", &points_record(1.0, poles.into_iter())),
        density("format=geojson", &points_record(1.0, everywhere)),
        density("format=geojson", &serde_json::to_string(&exponential)?),
        density("format=png&width=2048", &serde_json::to_string(&linear)?),
        density("format=geojson&within=land", &serde_json::to_string(&mixture)?),
    ])
}

/// A record of points of one mass, as latitude and longitude.
fn points_record(kernel_km: f64, points: impl Iterator<Item = [f64; 2]>) -> String {
    let (mut latitudes, mut longitudes, mut masses) = <(String, String, String)>::default();
    for [latitude, longitude] in points {
        let comma = if masses.is_empty() { "" } else { "," };
        let _ = write!(latitudes, "{comma}{latitude:.4}");
        let _ = write!(longitudes, "{comma}{longitude:.4}");
        let _ = write!(masses, "{comma}1");
    }
    format!(
        r#"{{"kind":"points","kernel_km":{kernel_km},"latitudes":[{latitudes}],"longitudes":[{longitudes}],"masses":[{masses}]}}"#
    )
}
