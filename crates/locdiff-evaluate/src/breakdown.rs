//! Parts of a test set: by continent, by country, by distance to the nearest place of training.

use std::collections::BTreeMap;

use locdiff::geography::{Continent, PlaceName, place_name};
use locdiff_sphere::{ACCURACY_RADII_KM, PlaceIndex, PointScores};

use super::answers::Answered;
use super::scoring::{EvaluationOptions, ScoreLine, point_lines, with_intervals};

const NOWHERE: &str = "at sea";

/// Scores of the parts of a test set.
#[derive(Debug, Clone, PartialEq)]
pub struct Breakdown {
    /// By what: `continent`, `country` or `distance to training`.
    pub by: &'static str,
    /// Scores by continent, by country, or by distance to training.
    pub groups: Vec<Group>,
}

/// A part of a test set.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What its images have in common.
    pub name: String,
    /// Images in this part.
    pub images: usize,
    /// Their scores, the same as those of the whole.
    pub lines: Vec<ScoreLine>,
}

/// By continent and country of the true place; by training where its places are known.
pub(super) fn all(
    answered: &Answered,
    distances_km: &[f64],
    options: &EvaluationOptions,
) -> Vec<Breakdown> {
    let names: Vec<PlaceName> = answered.truth.iter().map(|place| place_name(*place)).collect();
    let continent = |name: &PlaceName| {
        let continent = name.country_code.as_deref().and_then(Continent::of_country);
        continent.map_or(NOWHERE.to_owned(), |continent| continent.to_string())
    };
    let country = |name: &PlaceName| {
        let country = name.country.clone().or_else(|| name.country_code.clone());
        country.unwrap_or_else(|| NOWHERE.to_owned())
    };
    let by_size = |by, keys: Vec<String>| {
        let mut groups = grouped(&keys, distances_km, options);
        groups.sort_by(|a, b| b.images.cmp(&a.images).then_with(|| a.name.cmp(&b.name)));
        Breakdown { by, groups }
    };
    let mut breakdowns = vec![
        by_size("continent", names.iter().map(continent).collect()),
        by_size("country", names.iter().map(country).collect()),
    ];
    if let Some(training) = &options.training {
        let index = PlaceIndex::new(training);
        let nearest_km = answered.truth.iter().map(|place| {
            index.nearest(*place).map_or(f64::INFINITY, |(_, distance_km)| distance_km)
        });
        // Numbered, so that the bands stay in order.
        let keys: Vec<String> = nearest_km
            .map(|km| {
                let band = ACCURACY_RADII_KM.iter().position(|radius_km| km <= *radius_km);
                band.unwrap_or(ACCURACY_RADII_KM.len()).to_string()
            })
            .collect();
        let mut groups = grouped(&keys, distances_km, options);
        for group in &mut groups {
            group.name = band_name(group.name.parse().unwrap_or_default());
        }
        breakdowns.push(Breakdown { by: "distance to training", groups });
    }
    breakdowns
}

fn band_name(band: usize) -> String {
    match (band.checked_sub(1).map(|below| ACCURACY_RADII_KM[below]), ACCURACY_RADII_KM.get(band)) {
        (None, Some(to)) => format!("up to {to} km"),
        (Some(from), Some(to)) => format!("{from} to {to} km"),
        (Some(from), None) => format!("more than {from} km"),
        (None, None) => String::new(),
    }
}

/// The scores of all images with the same key, by key.
fn grouped(keys: &[String], distances_km: &[f64], options: &EvaluationOptions) -> Vec<Group> {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (key, distance_km) in keys.iter().zip(distances_km) {
        groups.entry(key).or_default().push(*distance_km);
    }
    groups
        .into_iter()
        .filter_map(|(name, distances_km)| {
            let images = distances_km.len();
            // The distances were scored before, so they are valid.
            let scores = PointScores::of_distances(distances_km).ok()?;
            let scores =
                scores.with_rule(options.rules.radius).with_geoscore(options.rules.geoscore);
            let lines = with_intervals(point_lines(&scores), options);
            Some(Group { name: name.to_owned(), images, lines })
        })
        .collect()
}
