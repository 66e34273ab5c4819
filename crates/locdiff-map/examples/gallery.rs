//! Draws a few densities in every projection and theme, to be looked at:
//! `cargo run --package locdiff-map --example gallery -- DIRECTORY`

use locdiff_map::{
    ColourBar, LineStyle, Map, Marker, Name, Outline, Projection, Scale, Symbol, Theme,
};
use locdiff_sphere::{EARTH_RADIUS_KM, InvalidPlace, LatLon};
use std::f64::consts::PI;
use std::path::{Path, PathBuf};

/// A von Mises-Fisher density of about this many kilometres, as a log-density per steradian.
fn von_mises_fisher(place: LatLon, centre: LatLon, spread_km: f64) -> f64 {
    let kappa = (EARTH_RADIUS_KM / spread_km).powi(2);
    let sine = (place.angle_to(centre) / 2.0).sin();
    kappa.ln() - (2.0 * PI).ln() - (-(-2.0 * kappa).exp()).ln_1p() - 2.0 * kappa * sine * sine
}

fn mixture(place: LatLon, parts: &[(f64, LatLon, f64)]) -> f64 {
    let terms = parts
        .iter()
        .map(|&(mass, centre, spread_km)| mass.ln() + von_mises_fisher(place, centre, spread_km));
    let terms: Vec<f64> = terms.collect();
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
}

fn ring(centre: LatLon, radius_km: f64) -> Vec<LatLon> {
    (0..72).map(|step| centre.destination(f64::from(step) * 5.0, radius_km)).collect()
}

/// Radius that holds this share of a von Mises-Fisher density.
fn radius_km(share: f64, spread_km: f64) -> f64 {
    spread_km * (-2.0 * (1.0 - share).ln()).sqrt()
}

fn fiji<'a>(projection: Projection) -> Result<Map<'a>, InvalidPlace> {
    let centre = LatLon::new(-17.6, 179.4)?;
    let outline = |share| Outline::new([ring(centre, radius_km(share, 700.0))]);
    Ok(Map::new(projection)
        .field(move |place| von_mises_fisher(place, centre, 700.0))
        .outline(outline(0.5))
        .outline(outline(0.9).style(LineStyle::Dashed))
        .marker(Marker::new(LatLon::new(-18.14, 178.44)?).label("Suva").symbol(Symbol::Cross))
        .title("One peak across the antimeridian")
        .caption("A prediction, not a fact. Solid: the smallest region that holds 50 % of the probability; dashed: 90 %. Cross: where it was taken."))
}

/// A close-up with the built-in coastlines, for which `locdiff` has finer ones.
fn fiji_closeup<'a>(radius_km: f64) -> Result<Map<'a>, InvalidPlace> {
    let centre = LatLon::new(-17.6, 179.4)?;
    let mut map = fiji(Projection::Around { centre, radius_km })?
        .name(Name::country(LatLon::new(-17.8, 178.0)?, "Fiji").weight(1e6));
    for (name, latitude, longitude, people) in [
        ("Suva", -18.14, 178.44, 93_970.0),
        ("Lautoka", -17.62, 177.45, 71_573.0),
        ("Labasa", -16.42, 179.38, 27_949.0),
    ] {
        map = map.name(Name::town(LatLon::new(latitude, longitude)?, name).weight(people));
    }
    Ok(map)
}

fn two<'a>(projection: Projection) -> Result<Map<'a>, InvalidPlace> {
    let (lisbon, rio) = (LatLon::new(38.72, -9.14)?, LatLon::new(-22.91, -43.17)?);
    let dakar = LatLon::new(14.72, -17.47)?;
    let parts = [(0.55, lisbon, 420.0), (0.35, rio, 600.0), (0.1, dakar, 900.0)];
    Ok(Map::new(projection)
        .field(move |place| mixture(place, &parts))
        .marker(Marker::new(lisbon).label("Lisbon 55 %"))
        .marker(Marker::new(rio).label("Rio de Janeiro 35 %"))
        .marker(Marker::new(dakar).label("Dakar 10 %"))
        .title("Where on Earth was this taken?")
        .caption("A prediction, not a fact."))
}

fn pole<'a>(projection: Projection) -> Result<Map<'a>, InvalidPlace> {
    let centre = LatLon::new(86.0, -120.0)?;
    let alert = LatLon::new(82.5, -62.35)?;
    Ok(Map::new(projection)
        .field(move |place| von_mises_fisher(place, centre, 900.0))
        .scale(Scale::Linear)
        .colour_bar(ColourBar::PerMillionSquareKm)
        .outline(Outline::new([ring(centre, radius_km(0.9, 900.0))]))
        .marker(Marker::new(alert).label("Alert").symbol(Symbol::Ring))
        .title("A peak over the north pole, linear scale")
        .caption("A prediction, not a fact. Line: 90 % of the probability."))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let globe = |latitude, longitude| -> Result<Projection, InvalidPlace> {
        Ok(Projection::Globe { centre: LatLon::new(latitude, longitude)? })
    };
    let flat =
        [("equirectangular", Projection::Equirectangular), ("equal-earth", Projection::EqualEarth)];
    for (suffix, theme) in [("day", Theme::Day), ("dark", Theme::Dark)] {
        let write = |name: &str, map: Map<'_>| {
            write(&directory, &format!("{name}-{suffix}"), map.theme(theme))
        };
        for (projection_name, projection) in flat {
            write(&format!("fiji-{projection_name}"), fiji(projection)?)?;
            write(&format!("two-{projection_name}"), two(projection)?)?;
            write(&format!("pole-{projection_name}"), pole(projection)?)?;
        }
        write("fiji-globe", fiji(globe(-8.0, -172.0)?)?)?;
        for radius_km in [20.0, 300.0, 3000.0] {
            write(&format!("fiji-{radius_km}-km"), fiji_closeup(radius_km)?)?;
        }
        let closeup =
            || Ok::<_, InvalidPlace>(fiji_closeup(300.0)?.title("300 km around the peak"));
        write("fiji-globe-inset", fiji(globe(-8.0, -172.0)?)?.inset(closeup()?))?;
        write("fiji-equal-earth-inset", fiji(Projection::EqualEarth)?.inset(closeup()?))?;
        write("two-globe", two(globe(14.0, -24.0)?)?)?;
        write("pole-globe", pole(globe(62.0, -60.0)?)?)?;
    }
    Ok(())
}

fn write(directory: &Path, name: &str, map: Map<'_>) -> std::io::Result<()> {
    let picture = map.draw();
    std::fs::write(directory.join(format!("{name}.png")), picture.png())?;
    std::fs::write(directory.join(format!("{name}.svg")), picture.svg())
}
