//! Results for the page, compared with direct calls of `locdiff-sphere`.

use locdiff_sphere::{
    Area, Coefficients, CubeCell, Density, DensityRecord, Kernel, LatLon, PointMasses,
};
use locdiff_wasm::{Maps, Problem, Tile};
use serde_json::{Value, json};

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).expect("a place")
}

/// Two peaks of unequal height, one of them beside the antimeridian; f32 numbers, as networks give them.
fn two_peaks() -> Coefficients {
    let (a, b) = (Coefficients::of(at(-18.0, 178.5), 11), Coefficients::of(at(48.9, 2.4), 11));
    let sums = a.as_slice().iter().zip(b.as_slice()).map(|(a, b)| 0.6 * a + 0.5 * b);
    let sums = sums.map(|sum| f64::from(sum as f32));
    Coefficients::from_vec(sums.collect()).expect("coefficients")
}

fn exponential_json(coefficients: &Coefficients) -> String {
    let degree = coefficients.max_degree();
    json!({ "kind": "exponential", "max_degree": degree, "coefficients": coefficients.as_slice() })
        .to_string()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn tiles_hold_the_density_itself() {
    let coefficients = two_peaks();
    let direct = Density::exponential(&coefficients);
    let mut maps = Maps::default();
    let number = maps.open(&exponential_json(&coefficients)).expect("opens");
    for tile in [
        Tile { zoom: 0, x: 0, y: 0, size: 64 },
        Tile { zoom: 3, x: 7, y: 4, size: 32 },
        Tile { zoom: 14, x: 8301, y: 5635, size: 16 },
    ] {
        let values = maps.tile(number, tile).expect("a tile");
        for row in 0..tile.size {
            for column in 0..tile.size {
                let place = at(tile.latitude(row), tile.longitude(column));
                let value = f64::from(values[(row * tile.size + column) as usize]);
                let difference = (value - direct.log_density(place)).abs();
                assert!(difference < 1e-5, "{tile:?} {row},{column}: {difference}");
            }
        }
    }
}

#[test]
fn tiles_lie_where_maps_expect_them() {
    let whole = Tile { zoom: 0, x: 0, y: 0, size: 256 };
    assert!((whole.latitude(0) - 85.0).abs() < 0.1);
    assert!((whole.latitude(127) + whole.latitude(128)).abs() < 1e-12);
    assert!((whole.longitude(0) + 180.0 - 360.0 / 512.0).abs() < 1e-12);
    // Paris, by the formula of the usual pyramid.
    let paris = Tile { zoom: 10, x: 518, y: 352, size: 256 };
    assert!((paris.longitude(128) - 2.3).abs() < 0.2);
    assert!((paris.latitude(128) - 48.8).abs() < 0.2);
}

#[test]
fn restrictions_renormalise_and_intersect() {
    let coefficients = two_peaks();
    let mut maps = Maps::default();
    let whole = maps.open(&exponential_json(&coefficients)).expect("opens");
    let east = r#"{"kind":"box","south":-60,"west":100,"north":60,"east":-150}"#;
    let fiji = r#"{"kind":"circle","latitude":-18,"longitude":178.5,"radius_km":300}"#;
    let in_east = maps.restrict(whole, east).expect("east");
    let in_both = maps.restrict(in_east, fiji).expect("both");

    let direct = Density::exponential(&coefficients);
    let survey = direct.survey();
    let expected = survey.probability_within(at(-18.0, 178.5), 300.0);
    let share = maps.share(in_both).expect("a share");
    assert!((share - expected).abs() < 0.01 * expected, "{share} of {expected}");
    assert!(maps.share(whole).expect("a share") == 1.0);

    let summary = parsed(&maps.summary(in_both, 50).expect("a summary"));
    let masses: f64 = summary["candidates"]
        .as_array()
        .expect("candidates")
        .iter()
        .map(|candidate| candidate["mass"].as_f64().expect("a mass"))
        .sum();
    assert!((masses - 1.0).abs() < 1e-3, "{masses}");
    assert!(summary["radius_90_km"].as_f64().expect("a radius") <= 610.0);

    // Outside there is nothing, inside the density is as much larger as the area's share says.
    let tile = Tile { zoom: 2, x: 3, y: 2, size: 32 };
    let values = maps.tile(in_both, tile).expect("a tile");
    let mut inside = 0;
    for (pixel, value) in values.iter().enumerate() {
        let (row, column) = (pixel as u32 / 32, pixel as u32 % 32);
        let place = at(tile.latitude(row), tile.longitude(column));
        if place.distance_km(at(-18.0, 178.5)) <= 300.0 {
            inside += 1;
            let expected = direct.log_density(place) - share.ln();
            assert!((f64::from(*value) - expected).abs() < 1e-4);
        } else {
            assert_eq!(*value, f32::NEG_INFINITY);
        }
    }
    assert!(inside > 0);
}

/// Many places in clusters, as a gallery has them, scored vaguely.
fn clusters(count: u32) -> String {
    let turn = |k: u32, step: f64| (f64::from(k) * step).rem_euclid(1.0);
    let cluster = |k: u32| (turn(k % 40, 0.618_034), turn(k % 40, 0.754_878));
    let off = |k: u32, step: f64| (turn(k, step) + turn(k, 1.7 * step) - 1.0) * 6.0;
    let latitudes: Vec<f64> =
        (0..count).map(|k| 80.0 * cluster(k).0 - 30.0 + off(k, 0.569_840)).collect();
    let longitudes: Vec<f64> =
        (0..count).map(|k| 340.0 * cluster(k).1 - 170.0 + off(k, 0.324_718)).collect();
    let masses: Vec<f64> =
        (0..count).map(|k| (3.0 * turn(k % 40, 0.234) + turn(k, 0.577)).exp()).collect();
    json!({ "kind": "points", "kernel_km": 25, "latitudes": latitudes, "longitudes": longitudes,
        "masses": masses })
    .to_string()
}

#[test]
fn a_first_look_is_near_what_follows() {
    let mut maps = Maps::default();
    let vague = maps.open(&clusters(20_000)).expect("opens");
    let peaks = maps.open(&exponential_json(&two_peaks())).expect("opens");
    let box_of = |south, west, north, east| json!({ "kind": "box", "south": south, "west": west, "north": north, "east": east });
    // A coast with many bays, and islands before it.
    let coast = |longitude: f64, latitude: f64, size: f64| {
        let bays = |turn: f64| 1.0 + 0.1 * (41.0 * turn).sin() + 0.07 * (173.0 * turn).cos();
        let turn = |k: u32| std::f64::consts::TAU * f64::from(k) / 2000.0;
        let point = |k: u32| {
            let (sin, cos) = turn(k).sin_cos();
            [longitude + size * bays(turn(k)) * cos, latitude + 0.5 * size * bays(turn(k)) * sin]
        };
        vec![(0..2000).map(point).collect::<Vec<_>>()]
    };
    let mut land = vec![coast(0.0, 10.0, 90.0)];
    land.extend((0..60).map(|k| coast(-170.0 + 5.0 * f64::from(k), 70.0, 1.5)));
    let land = json!({ "kind": "polygons", "coordinates": land });
    let mut coarse_ones = 0;
    for (whole, area) in [
        (vague, box_of(40, -10, 52, 12)),
        (vague, box_of(-30, -80, 10, -35)),
        (vague, box_of(-60, -170, 75, 170)),
        (peaks, box_of(-60, 100, 60, -150)),
        (vague, land.clone()),
        (peaks, land),
    ] {
        let area = area.to_string();
        let look = maps.restrict_coarsely(whole, &area).expect("a first look");
        let number = maps.restrict(whole, &area).expect("the final one");
        let read = |number| parsed(&maps.summary(number, 3).expect("a summary"));
        let (coarse, sharp) = (read(look.number), read(number));
        let numbers = |name: &str| [&coarse, &sharp].map(|s| s[name].as_f64().expect("a number"));
        let [coarse_share, share] = numbers("share");
        let [coarse_error, error] = numbers("normaliser_error");
        let off = (coarse_share / share).ln().abs();
        assert!(off <= coarse_error + error, "{area}: {off} nats, with {coarse_error} and {error}");
        if look.is_final {
            assert_eq!(coarse, sharp, "{area}");
            continue;
        }
        coarse_ones += 1;
        assert!(coarse_error < 0.2, "{area}: {coarse_error}");
        let best = |summary: &Value| {
            let degrees = |name| summary["candidates"][0][name].as_f64().expect("degrees");
            at(degrees("latitude"), degrees("longitude"))
        };
        let distance_km = best(&coarse).distance_km(best(&sharp));
        assert!(distance_km < 5.0, "{area}: {distance_km} km");
    }
    assert!(coarse_ones > 0, "all were final");
}

#[test]
fn a_first_look_in_an_empty_place_fails_as_the_final_one_does() {
    let mut maps = Maps::default();
    let south = Density::cells(vec![CubeCell::faces()[5]], &[1.0]).expect("a cell");
    let record = serde_json::to_string(&DensityRecord::of(&south)).expect("JSON");
    let number = maps.open(&record).expect("opens");
    let arctic = r#"{"kind":"circle","latitude":88,"longitude":0,"radius_km":100}"#;
    let words = maps.restrict(number, arctic).unwrap_err().to_string();
    assert_eq!(maps.restrict_coarsely(number, arctic).unwrap_err().to_string(), words);
}

#[test]
fn summaries_are_those_of_the_survey() {
    let coefficients = two_peaks();
    let direct = Density::exponential(&coefficients);
    let survey = direct.survey();
    let mut maps = Maps::default();
    let number = maps.open(&exponential_json(&coefficients)).expect("opens");
    let summary = parsed(&maps.summary(number, 2).expect("a summary"));
    let modes = survey.modes().modes;
    let first = &summary["candidates"][0];
    assert_eq!(summary["candidates"].as_array().expect("candidates").len(), 2);
    assert_eq!(first["latitude"].as_f64(), Some(modes[0].place.latitude()));
    assert_eq!(first["mass"].as_f64(), Some(modes[0].mass));
    assert_eq!(summary["radius_50_km"].as_f64(), Some(survey.radius_km(modes[0].place, 0.5)));
    assert_eq!(summary["area_90_km2"].as_f64(), Some(survey.region(0.9).area_km2()));
    assert_eq!(summary["normaliser_error"].as_f64(), Some(direct.normaliser_error()));
    assert!(direct.normaliser_error() < 1e-2);
    assert_eq!(summary["top_log_density"].as_f64(), Some(modes[0].log_density));
    let scale = parsed(&maps.scale(number).expect("a scale"));
    for key in ["top_log_density", "share", "normaliser_error"] {
        assert_eq!(scale[key], summary[key], "{key}");
    }
}

#[test]
fn regions_are_geojson_and_hold_their_level() {
    let mut maps = Maps::default();
    let coefficients = two_peaks();
    let number = maps.open(&exponential_json(&coefficients)).expect("opens");
    let regions = parsed(&maps.regions(number, &[0.9, 0.5]).expect("regions"));
    let features = regions["features"].as_array().expect("features");
    assert_eq!(features.len(), 2);
    for (feature, level) in features.iter().zip([0.9, 0.5]) {
        assert_eq!(feature["properties"]["level"], level);
        let geometry = &feature["geometry"];
        let polygons = match geometry["type"].as_str() {
            Some("Polygon") => json!([geometry["coordinates"]]),
            _ => geometry["coordinates"].clone(),
        };
        let area = json!({ "kind": "polygons", "coordinates": polygons }).to_string();
        let inside = maps.restrict(number, &area).expect("its own region");
        let share = maps.share(inside).expect("a share");
        assert!((share - level).abs() < 0.01, "{share} of {level}");
    }
    assert!(matches!(maps.regions(number, &[1.5]), Err(Problem::Level(_))));
}

#[test]
fn points_are_spread_as_the_program_spreads_them() {
    let (latitudes, longitudes, masses) =
        ([38.7, 14.7, -22.9], [-9.1, -17.5, -43.2], [0.5, 0.3, 0.2]);
    let places = latitudes.iter().zip(longitudes).map(|(a, o)| at(*a, o)).collect();
    let points = PointMasses::new(places, &masses).expect("masses");
    let direct = points.spread(Kernel::new(60.0).expect("a width"));
    let record = json!({ "kind": "points", "kernel_km": 60.0, "latitudes": latitudes,
        "longitudes": longitudes, "masses": masses });
    let mut maps = Maps::default();
    let number = maps.open(&record.to_string()).expect("opens");
    let tile = Tile { zoom: 7, x: 60, y: 49, size: 32 };
    let values = maps.tile(number, tile).expect("a tile");
    for (pixel, value) in values.iter().enumerate() {
        let (row, column) = (pixel as u32 / 32, pixel as u32 % 32);
        let place = at(tile.latitude(row), tile.longitude(column));
        if place.distance_km(at(38.7, -9.1)) < 150.0 {
            let expected = direct.log_density(place);
            assert!((f64::from(*value) - expected).abs() < 0.02, "{value} {expected}");
        }
    }
    let share = {
        let area = r#"{"kind":"box","south":-40,"west":-60,"north":0,"east":-30}"#;
        let rio = maps.restrict(number, area).expect("Brazil");
        maps.share(rio).expect("a share")
    };
    let brazil = Area::bounding_box(-40.0, -60.0, 0.0, -30.0).expect("a box");
    assert!((share - direct.survey().probability_in(&brazil)).abs() < 1e-3);
}

fn every_kind() -> Vec<Density> {
    let exponential = Density::exponential(&two_peaks());
    let linear = Density::linear(&two_peaks().smoothed(1000.0));
    let places = vec![at(38.7, -9.1), at(14.7, -17.5), at(-22.9, -43.2)];
    let points = PointMasses::new(places, &[0.5, 0.3, 0.2]).expect("masses");
    let points = points.spread(Kernel::new(600.0).expect("a width"));
    let quarters = CubeCell::faces().into_iter().flat_map(CubeCell::children);
    let cells: Vec<CubeCell> = quarters.flat_map(CubeCell::children).collect();
    let masses: Vec<f64> = (0..cells.len()).map(|k| f64::from(k as u32 * 37 % 96)).collect();
    let cells = Density::cells(cells, &masses).expect("cells");
    let mixture = vec![(0.5, linear.clone()), (0.25, points.clone()), (0.25, exponential.clone())];
    let mixture = Density::mixture(mixture).expect("a mixture");
    let product = vec![(1.0, exponential.clone()), (0.5, points.clone())];
    let product = Density::product(product).expect("a product");
    vec![exponential, linear, points, cells, mixture, product]
}

#[test]
fn every_kind_is_opened_measured_and_drawn() {
    let mut maps = Maps::default();
    for direct in every_kind() {
        let record = serde_json::to_string(&DensityRecord::of(&direct)).expect("JSON");
        let number = maps.open(&record).expect("opens");
        let survey = direct.survey();
        let summary = parsed(&maps.summary(number, 3).expect("a summary"));
        let best = survey.modes().modes[0];
        let close = |found: &Value, expected: f64, part: f64| {
            let found = found.as_f64().expect("a number");
            let off = (found - expected).abs();
            assert!(off <= part * expected.abs(), "{direct}: {found}, not {expected}");
        };
        close(&summary["candidates"][0]["mass"], best.mass, 0.01);
        close(&summary["area_50_km2"], survey.region(0.5).area_km2(), 0.01);
        close(&summary["radius_90_km"], survey.radius_km(best.place, 0.9), 0.02);
        let regions = parsed(&maps.regions(number, &[0.9, 0.5]).expect("regions"));
        assert_eq!(regions["features"].as_array().expect("features").len(), 2, "{direct}");
        // Tiles of the whole and of a part, where there is something to be seen.
        let east = r#"{"kind":"box","south":-60,"west":-80,"north":70,"east":30}"#;
        let part = maps.restrict(number, east).expect("a part");
        let share = maps.share(part).expect("a share");
        let area = Area::bounding_box(-60.0, -80.0, 70.0, 30.0).expect("a box");
        let tile = Tile { zoom: 0, x: 0, y: 0, size: 64 };
        for (number, restricted) in [(number, false), (part, true)] {
            let values = maps.tile(number, tile).expect("a tile");
            for (pixel, value) in values.iter().enumerate() {
                let (row, column) = (pixel as u32 / 64, pixel as u32 % 64);
                let place = at(tile.latitude(row), tile.longitude(column));
                let mut expected = direct.log_density(place);
                if restricted {
                    let inside = area.contains(place);
                    expected = if inside { expected - share.ln() } else { f64::NEG_INFINITY };
                }
                let off = f64::from(*value) - expected;
                // Far below the top, interpolation between the points of wide cells is coarse.
                let visible = expected > best.log_density - 5.0;

                assert!(!visible || off.abs() < 0.1, "{direct}: {off} at {place}");
            }
        }
    }
}

#[test]
fn problems_have_words() {
    let mut maps = Maps::default();
    let words = |problem: Problem| problem.to_string();
    assert!(words(maps.open("{").unwrap_err()).starts_with("the record is not valid JSON"));
    let wrong = r#"{"kind":"exponential","max_degree":3,"coefficients":[0,0,0,0]}"#;
    assert!(words(maps.open(wrong).unwrap_err()).contains("max_degree 3"));
    let huge = r#"{"kind":"exponential","max_degree":1,"coefficients":[0,1e30,0,0]}"#;
    assert!(words(maps.open(huge).unwrap_err()).contains("between -1e4 and 1e4"));
    assert!(words(maps.open(r#"{"kind":"new"}"#).unwrap_err()).contains("no kind `new`"));
    assert!(words(maps.summary(7, 1).unwrap_err()).contains("number 7"));
    let flat = r#"{"kind":"exponential","max_degree":1,"coefficients":[0,0,0,0]}"#;
    let flat = maps.open(flat).expect("opens");
    let swapped = r#"{"kind":"box","south":10,"west":0,"north":-10,"east":20}"#;
    assert!(words(maps.restrict(flat, swapped).unwrap_err()).contains("swapped"));
    maps.release(flat);
    assert!(matches!(maps.density(flat), Err(Problem::Unknown(_))));
}

#[test]
fn footprints_have_outlines_and_stay_where_their_middle_is_allowed() {
    let mut maps = Maps::default();
    let corners = r#"[{"latitude":1,"longitude":179},{"latitude":1,"longitude":-179},
        {"latitude":-1,"longitude":-179},{"latitude":-1,"longitude":179}]"#;
    let outline = parsed(&maps.outline(corners).expect("an outline"));
    assert_eq!(outline["type"], "MultiPolygon");
    assert_eq!(outline["coordinates"].as_array().map(Vec::len), Some(2));
    assert!(matches!(maps.outline("[]"), Err(Problem::NoArea)));
    assert!(matches!(maps.outline(r#"[{"latitude":91,"longitude":0}]"#), Err(Problem::Place(_))));

    let whole = maps.open(&exponential_json(&two_peaks())).expect("opens");
    let north = r#"{"kind":"box","south":0,"west":-180,"north":90,"east":180}"#;
    let circle = r#"{"kind":"circle","latitude":48,"longitude":0,"radius_km":900}"#;
    let northern = maps.restrict(whole, north).expect("restricts");
    let both = maps.restrict(northern, circle).expect("restricts");
    let allowed = |number, latitude, longitude| maps.allows(number, latitude, longitude);
    assert!(allowed(whole, -50.0, 20.0).expect("a place"));
    assert!(!allowed(northern, -50.0, 20.0).expect("a place"));
    assert!(allowed(northern, 50.0, 120.0).expect("a place"));
    assert!(!allowed(both, 50.0, 120.0).expect("a place"));
    assert!(allowed(both, 49.0, 2.0).expect("a place"));
    assert!(matches!(allowed(99, 0.0, 0.0), Err(Problem::Unknown(99))));
}
