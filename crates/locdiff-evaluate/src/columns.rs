//! Which columns of a table hold what, by the names that people give them.

use super::table::Role;

/// Names of the column that names the image, the first found counts.
const IMAGE_NAMES: [&str; 12] = [
    "image",
    "img_file",
    "img_id",
    "image_id",
    "path",
    "image_path",
    "img_path",
    "filename",
    "file_name",
    "file",
    "photo_id",
    "id",
];
const PREDICTED: [&str; 3] = ["predicted", "pred", "prediction"];
const TRUE: [&str; 4] = ["true", "gt", "truth", "ground_truth"];

/// Which columns a table has, by their positions.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) image: Option<usize>,
    pub(super) latitude: usize,
    pub(super) longitude: usize,
    pub(super) rank: Option<usize>,
    pub(super) outcome: Option<[usize; 3]>,
    pub(super) has_truth_too: bool,
}

impl Columns {
    pub(super) fn find(names: &[String], role: Role) -> Result<Columns, String> {
        let position = |wanted: &str| names.iter().position(|name| name == wanted);
        let marked = |marks: &[&str], axis: &[&str]| {
            let with_mark = |mark: &&str| {
                let both = |axis: &&str| {
                    position(&format!("{mark}_{axis}"))
                        .or_else(|| position(&format!("{axis}_{mark}")))
                };
                axis.iter().find_map(both)
            };
            marks.iter().find_map(with_mark)
        };
        let (latitudes, longitudes) = (["latitude", "lat"], ["longitude", "lon", "long", "lng"]);
        let pair = |marks: &[&str]| Some((marked(marks, &latitudes)?, marked(marks, &longitudes)?));
        let unmarked = || {
            let find = |axis: &[&str]| axis.iter().find_map(|name| position(name));
            Some((find(&latitudes)?, find(&longitudes)?))
        };
        let (predicted, truth) = (pair(&PREDICTED), pair(&TRUE));
        let found = match role {
            Role::Answers => predicted.or_else(unmarked),
            Role::Truth => truth.or_else(unmarked),
        };
        let (latitude, longitude) = found.ok_or_else(|| {
            format!(
                "it has no columns for latitude and longitude; its columns are {}",
                names.join(", ")
            )
        })?;
        let outcome = ["nll_nats", "level", "searched_area_km2"].map(position);
        Ok(Columns {
            image: IMAGE_NAMES.iter().find_map(|name| position(name)),
            latitude,
            longitude,
            rank: position("rank"),
            outcome: match outcome {
                [Some(nll), Some(level), Some(area)] => Some([nll, level, area]),
                _ => None,
            },
            has_truth_too: predicted.is_some() && truth.is_some(),
        })
    }

    pub(super) fn described(&self, heading: &csv::StringRecord) -> String {
        let all = self.image.into_iter().chain([self.latitude, self.longitude]);
        let names: Vec<&str> = all.filter_map(|column| heading.get(column)).collect();
        names.join(", ")
    }
}

/// Two numbers, or a name and two numbers, are a row and no heading.
pub(super) fn without_heading(record: &csv::StringRecord) -> Option<Columns> {
    let is_number = |column: usize| record[column].parse::<f64>().is_ok();
    let (image, latitude) = match record.len() {
        2 => (None, 0),
        3 => (Some(0), 1),
        _ => return None,
    };
    (is_number(latitude) && is_number(latitude + 1)).then_some(Columns {
        image,
        latitude,
        longitude: latitude + 1,
        rank: None,
        outcome: None,
        has_truth_too: false,
    })
}

pub(super) fn separator(first_line: &str) -> u8 {
    let count = |separator: &char| first_line.matches(*separator).count();
    let most = [',', '\t', ';'].into_iter().max_by_key(count).filter(|most| count(most) > 0);
    most.map_or(b' ', |separator| separator as u8)
}

/// In lower case, words joined by `_`.
pub(super) fn plain_name(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-'], "_")
}
