//! Laws of the renderer, on a made-up Earth: no file of the real one is needed.

use image::{Rgb, RgbImage};
use locdiff_earth::{
    Camera, EARTH_RADIUS_KM, Imagery, LandMask, Light, Pose, Random, Renderer, Shows, Style,
};

/// Land in blobs of some hundred kilometres, on every side of the antimeridian and at the poles.
fn is_blob(latitude: f64, longitude: f64) -> bool {
    let (lat, lon) = (latitude.to_radians(), longitude.to_radians());
    (7.0 * lat).sin() + (6.0 * lon).cos() * lat.cos() + (11.0 * lon + 5.0 * lat).sin() * lat.cos()
        > 0.0
}

fn picture_of(height: u32, colour: impl Fn(f64, f64) -> [u8; 3]) -> RgbImage {
    RgbImage::from_fn(2 * height, height, |x, y| {
        let step = 180.0 / f64::from(height);
        Rgb(colour(90.0 - (f64::from(y) + 0.5) * step, (f64::from(x) + 0.5) * step - 180.0))
    })
}

fn unit_vector(latitude: f64, longitude: f64) -> [f64; 3] {
    let (lat, lon) = (latitude.to_radians(), longitude.to_radians());
    [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
}

fn vector_colour(latitude: f64, longitude: f64) -> [u8; 3] {
    unit_vector(latitude, longitude).map(|value| (127.5 * (value + 1.0)).round() as u8)
}

fn blob_renderer(sea: [u8; 3]) -> Renderer {
    let mask = LandMask::from_fn(1440, 2880, is_blob);
    let picture =
        picture_of(
            1440,
            |lat, lon| {
                if is_blob(lat, lon) { [90, (120.0 + lat) as u8, 60] } else { sea }
            },
        );
    let imagery = Imagery::from_picture(&picture, Light::Day, &mask);
    let lights =
        picture_of(360, |lat, lon| if is_blob(lat, lon) { [200, 180, 90] } else { [3, 5, 20] });
    let lights = Imagery::from_picture(&lights, Light::Night, &mask);
    Renderer::new(mask, vec![imagery], vec![lights])
}

fn random_pose(random: &mut Random) -> Pose {
    Pose {
        latitude: random.between(-89.9, 89.9),
        longitude: random.between(-180.0, 180.0),
        altitude_km: random.between(300.0, 450.0),
        tilt_degrees: random.between(0.0, 50.0),
        heading_degrees: random.between(0.0, 360.0),
        roll_degrees: random.between(0.0, 360.0),
        width_km: random.log_between(100.0, 800.0),
    }
}

#[test]
fn the_middle_of_the_picture_shows_the_label() {
    let mut random = Random::new(1);
    for _ in 0..1000 {
        let pose = random_pose(&mut random);
        let (latitude, longitude) = Camera::new(pose).place_at(0.0, 0.0).unwrap();
        let (found, wanted) =
            (unit_vector(latitude, longitude), unit_vector(pose.latitude, pose.longitude));
        let apart = (0..3).map(|i| (found[i] - wanted[i]).powi(2)).sum::<f64>().sqrt();
        assert!(apart * EARTH_RADIUS_KM < 1e-3, "{pose:?} shows {latitude}, {longitude}");
    }
}

#[test]
fn straight_down_with_north_up_has_known_corners() {
    let (latitude, longitude, altitude_km, width_km) = (40.0f64, 179.0f64, 400.0, 500.0);
    let camera = Camera::new(Pose {
        latitude,
        longitude,
        altitude_km,
        tilt_degrees: 0.0,
        heading_degrees: 0.0,
        roll_degrees: 0.0,
        width_km,
    });
    // The triangle of camera, corner and Earth's centre, then the textbook's formula for the place
    // at a distance and bearing.
    let at_camera = (width_km / 2.0 * 2f64.sqrt() / altitude_km).atan();
    let arc =
        ((EARTH_RADIUS_KM + altitude_km) / EARTH_RADIUS_KM * at_camera.sin()).asin() - at_camera;
    for (x, y, bearing) in
        [(1.0, 1.0, 45.0f64), (1.0, -1.0, 135.0), (-1.0, -1.0, 225.0), (-1.0, 1.0, 315.0)]
    {
        let (phi, theta) = (latitude.to_radians(), bearing.to_radians());
        let phi_2 = (phi.sin() * arc.cos() + phi.cos() * arc.sin() * theta.cos()).asin();
        let turn = (theta.sin() * arc.sin() * phi.cos()).atan2(arc.cos() - phi.sin() * phi_2.sin());
        let wanted_longitude = (longitude + turn.to_degrees() + 180.0).rem_euclid(360.0) - 180.0;
        let (found_latitude, found_longitude) = camera.place_at(x, y).unwrap();
        assert!((found_latitude - phi_2.to_degrees()).abs() < 1e-9, "latitude of corner {x}, {y}");
        assert!((found_longitude - wanted_longitude).abs() < 1e-9, "longitude of corner {x}, {y}");
    }
    // And the edges' middles on the ground are a little more than half the width away: the Earth
    // curves away from the camera.
    let (_, east) = camera.place_at(1.0, 0.0).unwrap();
    let east_km = ((east - longitude).rem_euclid(360.0)).to_radians()
        * EARTH_RADIUS_KM
        * latitude.to_radians().cos();
    assert!((250.0..262.0).contains(&east_km), "{east_km} km");
}

fn assert_shows_unit_vectors(imagery: &Imagery, farthest: f64) {
    let mut random = Random::new(2);
    for index in 0..4000 {
        let latitude = random.between(-farthest, farthest);
        // A quarter close to the antimeridian.
        let longitude = if index % 4 == 0 {
            (180.0 + random.between(-0.3, 0.3) + 180.0).rem_euclid(360.0) - 180.0
        } else {
            random.between(-180.0, 180.0)
        };
        let (colour, land) =
            imagery.colour(latitude, longitude, imagery.texel_km() * random.between(0.5, 2.0));
        let wanted = unit_vector(latitude, longitude).map(|value| (value + 1.0) / 2.0);
        assert_eq!(land, 1.0);
        for channel in 0..3 {
            let off = (f64::from(colour[channel]) - wanted[channel]).abs();
            assert!(off < 3.0 / 255.0, "{colour:?} for {wanted:?} at {latitude}, {longitude}");
        }
    }
}

#[test]
fn a_plain_picture_is_read_where_it_was_painted() {
    let mask = LandMask::from_fn(180, 360, |_, _| true);
    for light in [Light::Day, Light::Night] {
        let imagery = Imagery::from_picture(&picture_of(1024, vector_colour), light, &mask);
        assert_shows_unit_vectors(&imagery, 89.99);
    }
}

#[cfg(feature = "tiles")]
#[test]
fn mercator_tiles_are_read_where_they_were_painted_and_from_the_cache_too() {
    const ZOOM: u32 = 3;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiles.mbtiles");
    let database = rusqlite::Connection::open(&path).unwrap();
    let schema = "CREATE TABLE tiles (zoom_level, tile_column, tile_row, tile_data BLOB)";
    database.execute(schema, ()).unwrap();
    let count = 1u32 << ZOOM;
    for column in 0..count {
        for row in 0..count {
            let tile = RgbImage::from_fn(256, 256, |x, y| {
                let part = |tile: u32, pixel: u32| {
                    (f64::from(tile * 256 + pixel) + 0.5) / f64::from(count * 256)
                };
                let longitude = part(column, x) * 360.0 - 180.0;
                let up = std::f64::consts::PI * (1.0 - 2.0 * part(row, y));
                Rgb(vector_colour(up.sinh().atan().to_degrees(), longitude))
            });
            let mut png = std::io::Cursor::new(Vec::new());
            tile.write_to(&mut png, image::ImageFormat::Png).unwrap();
            let insert = "INSERT INTO tiles VALUES (?, ?, ?, ?)";
            database.execute(insert, (ZOOM, column, count - 1 - row, png.into_inner())).unwrap();
        }
    }
    drop(database);
    let mask = LandMask::from_fn(180, 360, |_, _| true);
    let source = locdiff_earth::Source::Mbtiles(path.clone());
    let open = |most| Imagery::open(&source, Light::Day, &mask, folder.path(), most).unwrap();
    let first = open(None);
    assert_shows_unit_vectors(&first, 84.5);
    // Beyond the projection's end, the same colours as at it.
    let (colour, _) = first.colour(-89.0, 30.0, 20.0);
    assert!(colour[2] < 0.02, "the south pole is not dark in blue: {colour:?}");
    // The tiles are gone: what comes now comes from the cache.
    let bytes = std::fs::metadata(&path).unwrap().len();
    std::fs::write(&path, vec![0; bytes as usize]).unwrap();
    let again = open(None);
    assert_eq!(again.bytes(), first.bytes());
    assert_shows_unit_vectors(&again, 84.5);
    let coarse = open(Some(512));
    assert!(coarse.bytes() < first.bytes() / 3);
    assert_shows_unit_vectors(&coarse, 84.5);
}

#[test]
fn coarse_footprints_are_averages() {
    let mask = LandMask::from_fn(180, 360, |_, _| true);
    let checks = picture_of(1024, |lat, lon| {
        let step = 180.0 / 1024.0;
        if ((lat / step).floor() + (lon / step).floor()).rem_euclid(2.0) == 0.0 {
            [255; 3]
        } else {
            [0; 3]
        }
    });
    let imagery = Imagery::from_picture(&checks, Light::Day, &mask);
    let mut random = Random::new(3);
    for _ in 0..500 {
        let (latitude, longitude) = (random.between(-80.0, 80.0), random.between(-180.0, 180.0));
        let (colour, _) = imagery.colour(latitude, longitude, 200.0);
        assert!((colour[0] - 0.5).abs() < 0.03, "{} at {latitude}, {longitude}", colour[0]);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let renderer = blob_renderer([10, 20, 90]);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| renderer.render_batch(5, 40, 32))
    };
    let views = on(1);
    assert_eq!(views, on(3));
    assert_eq!(views[17..20], renderer.render_range(5, 17..20, 32));
    assert_ne!(views, renderer.render_batch(6, 40, 32));
    assert!(
        views.iter().any(|view| view.label.night) && views.iter().any(|view| !view.label.night)
    );
}

#[test]
fn paint_on_the_sea_never_reaches_a_view() {
    let (mut magenta, mut yellow) = (blob_renderer([255, 0, 255]), blob_renderer([255, 255, 0]));
    for style in [Style::plain(), Style { night_share: 0.0, ..Style::training() }] {
        magenta.style = style;
        yellow.style = style;
        assert_eq!(magenta.render_batch(7, 60, 48), yellow.render_batch(7, 60, 48));
    }
    // While land does: the law above is not kept by showing nothing.
    let view = &magenta.render_batch(8, 1, 48)[0];
    assert!(view.pixels.iter().any(|&byte| byte != view.pixels[0]));
}

#[test]
fn a_plain_sea_is_dark_and_blue_and_land_keeps_its_colour() {
    let mut renderer = blob_renderer([255, 0, 255]);
    renderer.style = Style::plain();
    let pose = |latitude, longitude| Pose {
        latitude,
        longitude,
        altitude_km: 400.0,
        tilt_degrees: 0.0,
        heading_degrees: 0.0,
        roll_degrees: 0.0,
        width_km: 900.0,
    };
    let camera = Camera::new(pose(-10.0, 4.0));
    let (pixels, _) = renderer.photograph(&camera, 0, 0, 64);
    let (mut seas, mut lands) = (0, 0);
    for at in 0..64 * 64usize {
        let place = |step: usize| (step as f64 + 0.5) / 32.0 - 1.0;
        let around = |off: f64| {
            let offsets = [(off, 0.0), (-off, 0.0), (0.0, off), (0.0, -off)];
            offsets.map(|(x, y)| camera.place_at(place(at % 64) + x, -place(at / 64) + y).unwrap())
        };
        let pixel = &pixels[3 * at..][..3];
        // Away from coasts, where both mix.
        let land = around(0.1).map(|(lat, lon)| is_blob(lat, lon));
        if land == [true; 4] {
            lands += 1;
            assert!(pixel[1] > pixel[0] && pixel[0] > pixel[2], "land is {pixel:?}");
            assert!((i32::from(pixel[0]) - 92).abs() < 8, "land is {pixel:?}");
        } else if land == [false; 4] {
            seas += 1;
            assert!(pixel[2] > pixel[0] && pixel[2] < 80, "sea is {pixel:?}");
        }
    }
    assert!(seas > 200 && lands > 200, "{seas} of sea, {lands} of land");
}

#[test]
fn land_fraction_is_what_counting_gives() {
    let mut renderer = blob_renderer([0, 0, 90]);
    renderer.style = Style::plain();
    let mut random = Random::new(9);
    for seed in 0..20 {
        let camera = Camera::new(Pose { width_km: 900.0, ..random_pose(&mut random) });
        let (_, found) = renderer.photograph(&camera, 0, seed, 64);
        let steps = 128;
        let land = (0..steps * steps).filter(|at| {
            let place = |step: usize| (step as f64 + 0.5) / steps as f64 * 2.0 - 1.0;
            let seen = camera.place_at(place(at % steps), place(at / steps));
            seen.is_some_and(|(lat, lon)| is_blob(lat, lon))
        });
        let counted = land.count() as f64 / (steps * steps) as f64;
        assert!(
            (found - counted).abs() < 0.015,
            "{found} found, {counted} counted, {:?}",
            camera.pose
        );
    }
}

#[test]
fn views_show_as_much_land_as_asked_for() {
    let mut renderer = blob_renderer([0, 0, 90]);
    assert!(renderer.render_batch(3, 50, 32).iter().all(|view| view.label.land_fraction >= 0.1));
    renderer.framing.shows = Shows::OpenSea;
    renderer.framing.width_km = [600.0, 620.0];
    renderer.style.night_share = 0.0;
    assert!(renderer.render_batch(3, 20, 32).iter().all(|view| view.label.land_fraction <= 0.001));
}

#[test]
fn a_packed_mask_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("land-mask.runs");
    // Two rows of eight columns: land from column 2 to 5 in the north, from 6 on in the south.
    let mut bytes = b"LANDRUN1".to_vec();
    bytes.extend([2u32, 8].iter().flat_map(|value| value.to_le_bytes()));
    bytes.extend([2u16, 2, 5, 1, 6].iter().flat_map(|value| value.to_le_bytes()));
    std::fs::write(&path, &bytes).unwrap();
    let mask = LandMask::open(&path).unwrap();
    let row = |latitude: f64| {
        (0..8)
            .filter(|&column| mask.is_land(latitude, f64::from(column) * 45.0 - 157.5))
            .collect::<Vec<_>>()
    };
    assert_eq!(row(45.0), [2, 3, 4]);
    assert_eq!(row(-45.0), [6, 7]);
    let north_cap = mask.land_fraction(90.0, 0.0, 3000.0);
    assert!((north_cap - 3.0 / 8.0).abs() < 0.04, "{north_cap}");
    std::fs::write(&path, &bytes[..bytes.len() - 2]).unwrap();
    assert!(LandMask::open(&path).is_err());
}
