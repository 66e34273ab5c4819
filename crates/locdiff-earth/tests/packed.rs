//! Packed imagery is the imagery that was packed, and damage is an error.

use image::{Rgb, RgbImage};
use locdiff_earth::{Imagery, LandMask, Light};

/// Land around both poles and across the antimeridian, and coasts in between.
fn is_land(latitude: f64, longitude: f64) -> bool {
    let (lat, lon) = (latitude.to_radians(), longitude.to_radians());
    latitude.abs() > 80.0 || (3.0 * lon).cos() * lat.cos() + 0.4 * (5.0 * lat).sin() < -0.3
}

fn color(latitude: f64, longitude: f64) -> [f64; 3] {
    let (lat, lon) = (latitude.to_radians(), longitude.to_radians());
    let vector = [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()];
    vector.map(|value| 128.0 + 90.0 * value)
}

fn imagery(height: u32, light: Light) -> Imagery {
    let step = 180.0 / f64::from(height);
    let picture = RgbImage::from_fn(2 * height, height, |x, y| {
        let (down, round) = (f64::from(y) + 0.5, f64::from(x) + 0.5);
        Rgb(color(90.0 - down * step, round * step - 180.0).map(|value| value.round() as u8))
    });
    Imagery::from_picture(&picture, light, &LandMask::from_fn(1440, 2880, is_land))
}

/// Places of equal area, and places at the poles and on the antimeridian.
fn places() -> impl Iterator<Item = (f64, f64)> {
    const COUNT: u32 = 60_000;
    let spread = (0..COUNT).map(|index| {
        let sine = 1.0 - 2.0 * (f64::from(index) + 0.5) / f64::from(COUNT);
        (sine.asin().to_degrees(), (f64::from(index) * 0.618_034).fract() * 360.0 - 180.0)
    });
    let edges = (0..=720).flat_map(|index| {
        let part = f64::from(index) / 720.0;
        let (latitude, longitude) = (90.0 - 180.0 * part, 360.0 * part - 180.0);
        [(latitude, 180.0), (latitude, -179.9), (89.9, longitude), (-89.9, longitude)]
    });
    spread.chain(edges)
}

#[test]
fn colors_and_land_come_back() {
    let whole = imagery(480, Light::Day);
    // All rows; a level of the pyramid; resampled, with a last band of 4 rows.
    for rows in [480, 240, 180] {
        let unpacked = Imagery::unpack(&whole.pack(rows, 80)).unwrap();
        let km = unpacked.texel_km();
        assert!((km * rows as f64 / (whole.texel_km() * 480.0) - 1.0).abs() < 1e-9);
        assert_eq!(unpacked.light(), Light::Day);
        let (mut coast, mut coasts) = (0.0, 0.0);
        for (latitude, longitude) in places() {
            let (_, land) = whole.colour(latitude, longitude, km);
            let (found, land_found) = unpacked.colour(latitude, longitude, km);
            if land > 0.5 {
                let wanted = color(latitude, longitude);
                for channel in 0..3 {
                    let error = f64::from(found[channel]) * 255.0 - wanted[channel];
                    assert!(error.abs() < 8.0, "{rows} rows, {latitude}, {longitude}: {error}");
                }
            }
            if land == 0.0 || land == 1.0 {
                // A resampled row can reach a neighbor that the original does not.
                let bound = if rows == 180 { 0.6 } else { 0.04 };
                assert!((land - land_found).abs() < bound, "{rows}, {latitude}, {longitude}");
            }
            if land > 0.0 && land < 1.0 {
                coast += f64::from(land - land_found).abs();
                coasts += 1.0;
            }
        }
        let bound = if rows == 180 { 0.04 } else { 0.01 };
        assert!(coasts > 300.0 && coast / coasts < bound, "{rows} rows: {}", coast / coasts);
    }
}

#[test]
fn lights_at_night_come_back_from_the_sea_too() {
    let unpacked = Imagery::unpack(&imagery(96, Light::Night).pack(96, 90)).unwrap();
    assert_eq!(unpacked.light(), Light::Night);
    for (latitude, longitude) in places().filter(|(latitude, _)| latitude.abs() < 85.0) {
        let (found, _) = unpacked.colour(latitude, longitude, unpacked.texel_km());
        let wanted = color(latitude, longitude);
        for channel in 0..3 {
            let error = f64::from(found[channel]) * 255.0 - wanted[channel];
            assert!(error.abs() < 8.0, "{latitude}, {longitude}: {error}");
        }
    }
}

#[test]
fn packing_again_is_the_same_and_sea_costs_nothing() {
    let sea = LandMask::from_fn(18, 36, |_, _| false);
    let sea = Imagery::from_picture(&RgbImage::new(1000, 500), Light::Day, &sea).pack(500, 75);
    assert!(sea.len() < 100, "{} bytes", sea.len());
    assert_eq!(Imagery::unpack(&sea).unwrap().colour(10.0, 10.0, 50.0), ([0.0; 3], 0.0));
    // More rows than there are, and the fewest.
    let small = imagery(48, Light::Day);
    assert_eq!(small.pack(48, 75), small.pack(100_000, 75));
    assert!(Imagery::unpack(&small.pack(1, 75)).is_ok());
}

#[test]
fn damaged_bytes_are_an_error() {
    let bytes = imagery(64, Light::Day).pack(64, 75);
    for length in 0..bytes.len() {
        assert!(Imagery::unpack(&bytes[..length]).is_err(), "{length} bytes");
    }
    assert!(Imagery::unpack(&[&bytes[..], &[0]].concat()).is_err());
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            assert!(Imagery::unpack(&damaged).is_err(), "byte {at}");
        }
    }
}

/// What a checksum cannot detect because it was made anew.
#[test]
fn wrong_bytes_with_the_right_checksum_never_panic() {
    let bytes = imagery(64, Light::Day).pack(64, 75);
    let with_checksum = |mut bytes: Vec<u8>| {
        let checksum = crc32fast::hash(&bytes[12..]);
        bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
        bytes
    };
    assert!(Imagery::unpack(&with_checksum(bytes.clone())).is_ok());
    for at in 12..bytes.len() {
        for flip in [1, 0x10, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            let _ = Imagery::unpack(&with_checksum(damaged));
        }
    }
    for length in 12..bytes.len() {
        assert!(Imagery::unpack(&with_checksum(bytes[..length].to_vec())).is_err());
    }
}
