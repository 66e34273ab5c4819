//! Densities as JSON, as answers contain them and `/v1/density` takes them.

use locdiff_sphere::{Budget, Cost, DensityRecord, LatLon, RecordLimits};

use crate::{Target, repository};

/// Densities that cost more are not surveyed, so that many of them are in a second.
const MOST_CELLS: f64 = 3_000.0;

pub(super) const TARGET: Target = Target {
    name: "density_record",
    reads: "densities in JSON",
    longest: 8 << 10,
    most_bytes: 256 << 20,
    run,
    seeds,
};

fn run(input: &[u8]) {
    let Ok(record) = serde_json::from_slice::<DensityRecord>(input) else { return };
    let written = serde_json::to_string(&record).expect("a record is JSON");
    let again: DensityRecord = serde_json::from_str(&written).expect("what was written is read");
    assert_eq!(again, record);
    let mut limits = RecordLimits::default();
    (limits.max_degree, limits.max_depth) = (23, 3);
    let cost = record.expected_cost(&[]);
    assert!(!cost.cells().is_nan());
    if record.check(&limits).is_err() {
        assert!(record.density_within(&limits).is_err());
        return;
    }
    if cost.cells() > MOST_CELLS {
        return;
    }
    let budget = Budget::of(Cost::of_cells(4.0 * MOST_CELLS));
    let _ = budget.run(|| {
        let Ok(density) = record.density_within(&limits) else { return };
        let place = LatLon::new(12.5, -45.25).expect("a place");
        assert!(!density.log_density(place).is_nan(), "a log-density that is no number");
        let copy = DensityRecord::of(&density);
        copy.check(&RecordLimits::unlimited()).expect("what was made is valid");
        let survey = density.survey();
        let region = survey.region(0.9);
        assert!(region.area_km2() >= 0.0 && region.probability() > 0.0);
        assert!(!survey.entropy_nats().is_nan());
        let _ = survey.modes();
    });
}

/// The documented records, one by one, as far as they are short.
fn seeds() -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(repository("parity/density-record/records.json"));
    let all: serde_json::Value =
        text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let mut seeds = Vec::new();
    records(&all, &mut seeds);
    let made = [
        r#"{"kind":"exponential","max_degree":1,"coefficients":[0,1.5,-2,3]}"#,
        r#"{"kind":"linear","max_degree":1,"coefficients":[0.28,0.1,-0.2,0.3]}"#,
        r#"{"kind":"points","kernel_km":50,"latitudes":[48.85,-33.8],"longitudes":[2.35,151.2],"masses":[0.25,0.75]}"#,
        r#"{"kind":"mixture","parts":[{"weight":0.5,"density":{"kind":"exponential","max_degree":0,"coefficients":[0]}}]}"#,
        r#"{"kind":"product","factors":[{"exponent":0.5,"density":{"kind":"points","kernel_km":500,"latitudes":[0],"longitudes":[180],"masses":[1]}}]}"#,
        r#"{"kind":"cells","cells":["00","5123"],"masses":[0.5,0.5]}"#,
    ];
    seeds.extend(made.map(|text| text.as_bytes().to_vec()));
    seeds
}

fn records(value: &serde_json::Value, seeds: &mut Vec<Vec<u8>>) {
    if let Ok(record) = serde_json::from_value::<DensityRecord>(value.clone()) {
        seeds.push(serde_json::to_vec(&record).expect("a record is JSON"));
        return;
    }
    match value {
        serde_json::Value::Array(items) => items.iter().for_each(|item| records(item, seeds)),
        serde_json::Value::Object(items) => items.values().for_each(|item| records(item, seeds)),
        _ => {}
    }
}
