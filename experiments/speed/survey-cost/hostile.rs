//! What others may send to take all of a machine's time.

use std::f64::consts::TAU;

use locdiff_sphere::{
    Area, Coefficients, Density, DensityRecord, Kernel, LatLon, MultiPolygon, PointMasses,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{answer, thread_ms, time_ms};

pub struct Figures {
    pub ms: f64,
    pub peak_mb: f64,
    pub answer_kb: f64,
}

/// The body of 91 bytes: two points of 1 km at the poles, answered as GeoJSON.
pub fn request() -> anyhow::Result<Figures> {
    let body =
        r#"{"kind":"points","kernel_km":1,"latitudes":[90,-90],"longitudes":[0,0],"masses":[1,1]}"#;
    // Names of places are read once, whatever is asked.
    answer(&Density::uniform());
    let before = peak_mb();
    let mut bytes = 0;
    let ms = time_ms(200.0, || {
        let record: DensityRecord = serde_json::from_str(body).unwrap();
        bytes = answer(&record.density().unwrap()).len();
    });
    Ok(Figures { ms, peak_mb: peak_mb() - before, answer_kb: bytes as f64 / 1024.0 })
}

/// The most memory that the program has had so far (Linux).
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Seconds of the slowest of some constraints: made, and two densities restricted to it; or rejected.
pub fn constraints() -> anyhow::Result<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut slowest: f64 = 0.0;
    let middle = LatLon::new(10.0, 20.0)?;
    let places: Vec<LatLon> = (0..1000)
        .map(|_| middle.destination(rng.random_range(0.0..360.0), rng.random_range(0.0..1800.0)))
        .collect();
    let densities = [
        Density::exponential(&Coefficients::of(middle, 23)),
        PointMasses::new(places, &[1.0; 1000])?.spread(Kernel::default()),
    ];
    for (name, polygons) in shapes(&mut rng) {
        let began = thread_ms();
        let outcome = match MultiPolygon::new(polygons) {
            Err(error) => format!("rejected: {error}"),
            Ok(polygons) => {
                let area = Area::polygons(polygons);
                let parts =
                    densities.iter().map(|density| match density.restricted_to(area.clone()) {
                        Ok(part) => format!("{} cells", part.survey().cells()),
                        Err(error) => error.to_string(),
                    });
                parts.collect::<Vec<_>>().join(", ")
            }
        };
        let seconds = (thread_ms() - began) / 1e3;
        eprintln!("constraint {name}: {seconds:.3} s; {outcome}");
        slowest = slowest.max(seconds);
    }
    Ok(slowest)
}

type Polygons = Vec<Vec<Vec<[f64; 2]>>>;

fn shapes(rng: &mut ChaCha8Rng) -> Vec<(&'static str, Polygons)> {
    let wobbly = |count: usize| -> Polygons {
        let corner = |k: usize| {
            let turn = TAU * k as f64 / count as f64;
            let wave =
                |n: i32| 0.2 * 0.6_f64.powi(n) * (2_f64.powi(n) * 5.0 * turn + f64::from(n)).sin();
            let radius = 18.0 * (1.0 + (0..16).map(wave).sum::<f64>());
            [20.0 + radius * turn.cos(), 10.0 + radius * turn.sin()]
        };
        vec![vec![(0..count).map(corner).collect()]]
    };
    let comb = |count: usize| -> Polygons {
        let mut ring: Vec<[f64; 2]> = (0..count)
            .map(|k| [30.0 * k as f64 / count as f64, if k % 2 == 0 { 0.0 } else { 20.0 }])
            .collect();
        ring.extend([[30.0, -1.0], [0.0, -1.0]]);
        vec![vec![ring]]
    };
    let mut star = |count: usize| -> Polygons {
        vec![vec![
            (0..count)
                .map(|_| [rng.random_range(10.0..30.0), rng.random_range(0.0..20.0)])
                .collect(),
        ]]
    };
    let stars = [("a star of 5,000 crossing edges", star(5_000)), ("of 100,000", star(100_000))];
    let squares: Polygons = (0..90_000)
        .map(|k| {
            let (x, y) = (f64::from(k % 600) * 0.6 - 180.0, f64::from(k / 600) * 0.9 - 65.0);
            vec![vec![[x, y], [x + 0.3, y], [x + 0.3, y + 0.3], [x, y + 0.3]]]
        })
        .collect();
    let triangles: Polygons = (0..90_000)
        .map(|_| {
            let (x, y) = (rng.random_range(-170.0..170.0), rng.random_range(-60.0..60.0));
            vec![vec![
                [x, y],
                [x + rng.random_range(0.1..0.5), y],
                [x, y + rng.random_range(0.1..0.5)],
            ]]
        })
        .collect();
    let mut all =
        vec![("a million vertices", wobbly(1_000_000)), ("a comb of a million", comb(1_000_000))];
    all.extend(stars);
    all.extend([("90,000 squares", squares), ("90,000 triangles that overlap", triangles)]);
    all
}
