//! An evaluation as tables of words, which text, Markdown and HTML only set differently.

use super::breakdown::Breakdown;
use super::comparison::Paired;
use super::scoring::{Evaluation, ScoreLine, Unit};

/// The scores that stand for a group, in its row.
const OF_GROUPS: [&str; 5] =
    ["accuracy_25_km", "accuracy_200_km", "accuracy_750_km", "median_km", "geoscore"];

/// A table; the first column holds names, the others numbers.
pub(super) struct Table {
    pub(super) title: String,
    /// What to know before reading it.
    pub(super) note: String,
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Rows beyond these may be folded away.
    pub(super) shown_first: usize,
}

impl Table {
    fn new(title: impl Into<String>, note: impl Into<String>, headings: &[&str]) -> Table {
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        let (title, note) = (title.into(), note.into());
        Table { title, note, headings, rows: Vec::new(), shown_first: usize::MAX }
    }
}

/// `GeoCLIP on im2gps3k: 2,997 images`, and what became of others.
pub(super) fn heading(evaluation: &Evaluation) -> String {
    let [model, data] =
        [&evaluation.model, &evaluation.data].map(|name| locdiff_sphere::shown(name));
    format!("{model} on {data}")
}

/// The number of images, always and exactly.
pub(super) fn images(evaluation: &Evaluation) -> String {
    let count = evaluation.images();
    let mut text = format!("{} {}", thousands(count as f64, 0), plural(count, "image"));
    let unanswered = evaluation.unanswered();
    if unanswered > 0 {
        let (km, count) = (evaluation.rules.distance.longest_km(), thousands(unanswered as f64, 0));
        let km = thousands(km, 0);
        text.push_str(&format!(
            ", of which {count} without an answer count as an error of {km} km"
        ));
    }
    match evaluation.left_out() {
        0 => text.push_str("; none was left out"),
        left_out => text.push_str(&format!(
            "; {} of {} were left out because they have no answer",
            thousands(left_out as f64, 0),
            thousands(evaluation.answered.images_in_all as f64, 0)
        )),
    }
    text
}

/// How intervals were made.
pub(super) fn intervals(evaluation: &Evaluation) -> String {
    match evaluation.resampling {
        None => "without intervals".to_owned(),
        Some(resampling) => format!(
            "{} % intervals by {} bootstrap resamples of the images, seed {}; images of one trip aren't independent, so true intervals may be wider",
            rounded(100.0 * resampling.confidence, 1).trim_end_matches(".0"),
            thousands(resampling.resamples as f64, 0),
            evaluation.seed
        ),
    }
}

pub(super) fn tables(evaluation: &Evaluation) -> Vec<Table> {
    let mut tables = vec![scores("Places", "", &evaluation.points)];
    if !evaluation.densities.is_empty() {
        let note = "Densities per steradian; regions are the smallest of their level. The calibration error is the mean of |coverage − level| over all levels.";
        let mut table = scores("Densities", note, &evaluation.densities);
        let error = evaluation.calibration_error.unwrap_or(f64::NAN);
        let mut row = vec!["calibration error".to_owned(), rounded(error, 4)];
        if table.headings.len() > 2 {
            // Chance alone takes a calibrated model as far.
            let by_chance = 0.31 / (evaluation.images() as f64).sqrt();
            row.push(format!("{} if calibrated", rounded(by_chance, 4)));
        }
        table.rows.push(row);
        tables.push(table);
    }
    if let Some(cloud) = &evaluation.manifold {
        let note = format!(
            "Compares all answers with all true places, by balls of {} neighbors on the sphere. The pairs of answers and images are not used.",
            cloud.neighbours
        );
        let mut table = Table::new("Distribution of answers", note, &["score", "value"]);
        for (name, value) in [
            ("density", cloud.density),
            ("coverage", cloud.coverage),
            ("precision", cloud.precision),
            ("recall", cloud.recall),
        ] {
            table.rows.push(vec![name.to_owned(), format!("{value:.4}")]);
        }
        tables.push(table);
    }
    tables.extend(evaluation.paired.as_ref().map(|paired| comparison(evaluation, paired)));
    tables.extend(evaluation.breakdowns.iter().map(groups));
    tables
}

fn scores(title: &str, note: impl Into<String>, lines: &[ScoreLine]) -> Table {
    let has_intervals = lines.iter().any(|line| line.interval.is_some());
    let headings: &[&str] =
        if has_intervals { &["score", "value", "interval"] } else { &["score", "value"] };
    let mut table = Table::new(title, note, headings);
    for line in lines {
        let mut row = vec![line.name.clone(), shown(line.unit, line.score.value())];
        if let Some(interval) = line.interval {
            row.push(range(line.unit, interval.low, interval.high));
        }
        table.rows.push(row);
    }
    table
}

fn comparison(evaluation: &Evaluation, paired: &Paired) -> Table {
    let note = "Paired, image by image: the difference is the first minus the second, p by a permutation test that swaps the two models' answers (two-sided).";
    let headings =
        ["score", &evaluation.model, &paired.other, "difference", "interval", "p", "p ≤ 0.05"];
    let mut table = Table::new(format!("Against {}", paired.other), note, &headings);
    for line in &paired.differences {
        let [ours, theirs] = line.values.map(|value| shown(line.unit, value));
        let mut row = vec![line.name.clone(), ours, theirs];
        match &line.comparison {
            None => row.extend(["".into(), "".into(), "".into(), "not finite".into()]),
            Some(comparison) => {
                let difference = &comparison.difference;
                let better = match (difference.estimate > 0.0) == line.more_is_better {
                    _ if comparison.p_value > 0.05 => "",
                    true => "better",
                    false => "worse",
                };
                row.extend([
                    difference_of(line.unit, difference.estimate),
                    format!(
                        "{} to {}",
                        signed(line.unit, difference.low),
                        difference_of(line.unit, difference.high)
                    ),
                    format!("{:.4}", comparison.p_value),
                    better.to_owned(),
                ]);
            }
        }
        table.rows.push(row);
    }
    table
}

fn groups(breakdown: &Breakdown) -> Table {
    let mut headings = vec![breakdown.by.to_owned(), "images".to_owned()];
    let named = |group: &super::breakdown::Group, key: &str| {
        group.lines.iter().find(|line| line.key == key).cloned()
    };
    if let Some(first) = breakdown.groups.first() {
        headings.extend(OF_GROUPS.iter().filter_map(|key| Some(named(first, key)?.name)));
    }
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let note = match breakdown.by {
        "distance to training" => {
            "By the distance of the true place to the nearest training place."
        }
        "continent" => {
            "Of the true place; GeoNames' convention: Russia is in Europe, Turkey in Asia."
        }
        _ => "Of the true place.",
    };
    let mut table = Table::new(format!("By {}", breakdown.by), note, &headings);
    for group in &breakdown.groups {
        let mut row = vec![group.name.clone(), thousands(group.images as f64, 0)];
        row.extend(OF_GROUPS.iter().filter_map(|key| {
            let line = named(group, key)?;
            Some(shown(line.unit, line.score.value()))
        }));
        table.rows.push(row);
    }
    table.shown_first = 12;
    table
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// A value with the digits that mean something, and its unit.
pub(super) fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format!("{} %", number(unit, value)),
        Unit::Km => format!("{} km", number(unit, value)),
        Unit::Km2 => format!("{} km²", number(unit, value)),
        Unit::Points | Unit::Nats => number(unit, value),
    }
}

fn number(unit: Unit, value: f64) -> String {
    match unit {
        _ if !value.is_finite() => if value > 0.0 { "∞" } else { "−∞" }.to_owned(),
        Unit::Share => rounded(100.0 * value, 2),
        Unit::Km if value.abs() < 10.0 => rounded(value, 3),
        Unit::Km | Unit::Points => thousands(value, 1),
        Unit::Nats => rounded(value, 3),
        Unit::Km2 => thousands(value, 0),
    }
}

/// The unit stands behind the second number.
fn range(unit: Unit, low: f64, high: f64) -> String {
    format!("{} to {}", number(unit, low), shown(unit, high))
}

fn signed(unit: Unit, value: f64) -> String {
    format!("{}{}", if value > 0.0 { "+" } else { "" }, number(unit, value))
}

/// With its sign; between shares, in percentage points.
fn difference_of(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format!("{} pp", signed(unit, value)),
        unit if value > 0.0 => format!("+{}", shown(unit, value)),
        unit => shown(unit, value),
    }
}

/// The text with a capital letter at its beginning.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Formats a number, with U+2212 as its minus.
fn rounded(value: f64, digits: usize) -> String {
    format!("{value:.digits$}").replace('-', "−")
}

/// `12,345.6`
pub(super) fn thousands(value: f64, digits: usize) -> String {
    let text = rounded(value.abs(), digits);
    let (whole, fraction) = text.split_once('.').map_or((&text[..], ""), |(w, f)| (w, f));
    let mut grouped = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "−" } else { "" };
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_the_digits_that_mean_something() {
        for (unit, value, text) in [
            (Unit::Share, 0.14114, "14.11 %"),
            (Unit::Km, 0.0123, "0.012 km"),
            (Unit::Km, 12_345.67, "12,345.7 km"),
            (Unit::Points, 987.65, "987.6"),
            (Unit::Nats, -2.71649, "−2.716"),
            (Unit::Nats, f64::INFINITY, "∞"),
            (Unit::Km2, 1_234_567.8, "1,234,568 km²"),
        ] {
            assert_eq!(shown(unit, value), text);
        }
        assert_eq!(thousands(-1000.0, 0), "−1,000");
        assert_eq!(thousands(100.0, 0), "100");
    }
}
