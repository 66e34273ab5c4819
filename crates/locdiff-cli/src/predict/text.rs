//! An answer as people read it.

use std::collections::HashSet;
use std::io::Write;

use anstyle::{AnsiColor, Style};

use locdiff::locate::{Answered, CandidateFacts, Decode, ExifPlace};
use locdiff::{Footprint, Inference};
use locdiff_sphere::{shown, shown_message};

use super::answer::Failure;
use super::terminal_map;

const HEADING: Style = Style::new().bold();
/// References that are named for each candidate; `--json` has up to five.
const REFERENCES: usize = 2;
/// Of the name of a reference, so much is shown in any terminal.
const SHORTEST_ID: usize = 12;
const FAINT: Style = AnsiColor::BrightBlack.on_default();

/// Columns of a terminal, or of a file.
fn columns() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0)).clamp(40, 200)
}

/// Notes are printed when they are first true: `told` has those that were.
pub(super) fn print(
    answer: &Answered,
    map: bool,
    told: &mut HashSet<String>,
) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    let columns = columns();
    let record = &answer.record;
    let best = &record.candidates[0];
    writeln!(out, "{HEADING}{}{HEADING:#}", shown(answer.name()))?;
    if let Some(exif) = &record.exif {
        recorded(&mut out, exif)?;
        write!(out, "  estimated    ")?;
    }
    writeln!(out, "  {:.4}  {HEADING}{}{HEADING:#}", answer.place(), record.place.name)?;
    write!(out, "  ")?;
    // Another rule's place has no mass of its own.
    if record.inference.decode == Decode::Mode {
        write!(out, "{} {}; ", record.measure(), percent(best.mass))?;
    }
    writeln!(
        out,
        "50 % within {} km, 90 % within {} km",
        rounded(record.radius_50_km),
        rounded(record.radius_90_km),
    )?;
    if let Some(footprint) = answer.estimate.footprint() {
        writeln!(out, "  {}", footprint_line(footprint))?;
    }
    if map {
        writeln!(out)?;
        terminal_map::print(&mut out, answer, columns)?;
    }
    if record.candidates.len() > 1 {
        writeln!(out)?;
        for (rank, candidate) in record.candidates.iter().enumerate() {
            if candidate.is_anywhere() {
                let words = &candidate.place.words;
                writeln!(out, "      {:>6}  {words}", percent(candidate.mass))?;
                continue;
            }
            let place = format!("{:.3},{:.3}", candidate.place.latitude, candidate.place.longitude);
            let radius = format!("±{} km", rounded(candidate.radius_km));
            let before = format!(
                "  {:>2}  {:>6}  {place:<17}  {radius:<9}  ",
                rank + 1,
                percent(candidate.mass)
            );
            let room = columns.saturating_sub(before.chars().count());
            writeln!(out, "{before}{}", shortened(&candidate.place.name.to_string(), room))?;
            references(&mut out, candidate, columns)?;
        }
    } else {
        references(&mut out, best, columns)?;
    }
    writeln!(out)?;
    if let Some(kept) = record.kept {
        let note = format!(
            "within {} only, which keeps {} of the unconstrained answer, scaled to 100 %",
            record.within.join(" and "),
            percent(kept)
        );
        wrapped(&mut out, &note, columns)?;
    }
    if let Some(path) = &record.map {
        wrapped(&mut out, &format!("map: {path}"), columns)?;
    }
    if let Some(distance_km) = record.exif.as_ref().and_then(|exif| exif.distance_km) {
        let note = format!(
            "the estimate is {} km from the place that the camera recorded (GPS); the estimate does not use that place",
            rounded(distance_km)
        );
        wrapped(&mut out, &note, columns)?;
    }
    for warning in &record.warnings {
        wrapped(&mut out, &format!("warning: {warning}"), columns)?;
    }
    let model = &record.model;
    let mut notes = vec![format!("a prediction by {}: {}", model.name, model.description)];
    if let Some(because) = &model.chosen_because {
        notes[0].push_str(&format!("; {because}"));
    }
    if !model.calibrated {
        notes.push("Scores, not probabilities: the model is not calibrated".to_owned());
    }
    if let Some(prior) = &model.prior {
        notes.push(format!("It assumes that {prior}"));
    }
    if record.inference != Inference::default() {
        notes.push(asked(&record.inference));
    }
    if let Some(kernel) = record.kernel_km {
        notes.push(format!("Points are spread by {kernel} km"));
    }
    if record.candidates.len() > 1 {
        notes.push(format!(
            "± is the radius that contains half of a candidate's {}",
            record.measure()
        ));
    }
    notes.retain(|note| told.insert(format!("{}: {note}", model.name)));
    if !notes.is_empty() {
        write!(out, "{FAINT}")?;
        wrapped(&mut out, &notes.join(". "), columns)?;
        writeln!(out, "{FAINT:#}")?;
    }
    Ok(())
}

/// The camera's own place of a picture that no model answered about, if the picture has one.
pub(super) fn print_recorded(failure: &Failure) -> anyhow::Result<()> {
    let Some(exif) = &failure.exif else { return Ok(()) };
    let mut out = anstream::stdout().lock();
    writeln!(out, "{HEADING}{}{HEADING:#}", shown(&failure.name))?;
    recorded(&mut out, exif)?;
    Ok(writeln!(out)?)
}

fn recorded(out: &mut impl Write, exif: &ExifPlace) -> std::io::Result<()> {
    let place = format!("{:.4},{:.4}", exif.place.latitude, exif.place.longitude);
    writeln!(out, "  by the camera  {place}  {HEADING}{}{HEADING:#} (GPS)", exif.place.name)
}

/// Photographs of a gallery that a candidate rests on, in up to two lines.
fn references(
    out: &mut impl Write,
    candidate: &CandidateFacts,
    columns: usize,
) -> std::io::Result<()> {
    for reference in candidate.references.iter().take(REFERENCES) {
        let numbers = format!(
            "  similarity {:.3}, {} km away",
            reference.similarity,
            rounded(reference.distance_km)
        );
        let before = "              like ";
        let room = columns.saturating_sub(before.len() + numbers.len());
        let id = shortened(&shown(&reference.id), room.max(SHORTEST_ID));
        writeln!(out, "{FAINT}{before}{id}{numbers}{FAINT:#}")?;
    }
    Ok(())
}

/// How large the ground of the picture is, and how it is turned.
fn footprint_line(footprint: &Footprint) -> String {
    // Registered against a map it is known better than the answer: three digits.
    let width = match footprint.width_km {
        km if km >= 1000.0 => rounded(km),
        km if km >= 100.0 => format!("{km:.0}"),
        km => format!("{km:.1}"),
    };
    // 359.7 is 0.
    let heading = footprint.heading_degrees.round().rem_euclid(360.0);
    format!(
        "footprint {width} km wide, top of the picture points to {heading:.0}° ({})",
        footprint.compass_point()
    )
}

/// How the model was asked, in words.
fn asked(inference: &Inference) -> String {
    let mut parts = vec![format!("Inference: {}", inference.sampler)];
    if let Some(steps) = inference.steps {
        parts.push(format!("{steps} steps"));
    }
    for (count, what) in [(inference.views, "views"), (inference.samples, "samples each")] {
        if count > 1 {
            parts.push(format!("{count} {what}"));
        }
    }
    if inference.guidance != 1.0 {
        parts.push(format!("guidance {}", inference.guidance));
    }
    format!("{}; the place is the {} of the density", parts.join(", "), rule(inference.decode))
}

fn rule(decode: Decode) -> &'static str {
    match decode {
        Decode::Mean => "mean",
        Decode::Kl => "nearest encoding",
        Decode::Geoscore => "best expected GeoScore",
        Decode::Distance => "least expected distance",
        _ => "mode",
    }
}

/// Lines of words with an indent of two.
fn wrapped(out: &mut impl Write, text: &str, columns: usize) -> std::io::Result<()> {
    let mut line = String::from(" ");
    for word in shown_message(text).split(' ') {
        if line.chars().count() + 1 + word.chars().count() > columns && line.trim() != "" {
            writeln!(out, "{line}")?;
            line = String::from(" ");
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(out, "{line}")
}

pub(super) fn percent(mass: f64) -> String {
    match 100.0 * mass {
        part if part >= 9.95 => format!("{part:.0} %"),
        part if part >= 0.095 => format!("{part:.1} %"),
        _ => "<0.1 %".to_owned(),
    }
}

/// Two digits that matter, and no more.
pub(super) fn rounded(km: f64) -> String {
    match km {
        km if km >= 9950.0 => format!("{:.0},000", km / 1000.0),
        km if km >= 995.0 => {
            let hundreds = (km / 100.0).round();
            format!("{:.0},{:.0}00", (hundreds / 10.0).floor(), hundreds % 10.0)
        }
        km if km >= 99.5 => format!("{:.0}", (km / 10.0).round() * 10.0),
        km if km >= 9.95 => format!("{km:.0}"),
        km => format!("{km:.1}"),
    }
}

fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(room.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_they_deserve() {
        for (km, text) in [
            (0.04, "0.0"),
            (7.26, "7.3"),
            (42.4, "42"),
            (99.6, "100"),
            (514.0, "510"),
            (996.0, "1,000"),
            (1949.0, "1,900"),
            (1950.0, "2,000"),
            (12_345.0, "12,000"),
        ] {
            assert_eq!(rounded(km), text);
        }
        assert_eq!([percent(0.4), percent(0.0123), percent(1e-5)], ["40 %", "1.2 %", "<0.1 %"]);
        assert_eq!(shortened("Île-de-France", 6), "Île-d…");
    }

    #[test]
    fn a_footprint_is_one_line() {
        let middle = locdiff_sphere::LatLon::new(48.0, 2.0).expect("a place");
        let footprint = Footprint {
            corners: [middle; 4],
            middle,
            heading_degrees: 37.2,
            width_km: 412.3,
            likeness: 0.8,
        };
        let line = "footprint 412 km wide, top of the picture points to 37° (NE)";
        assert_eq!(footprint_line(&footprint), line);
        let small = Footprint { heading_degrees: 359.8, width_km: 35.62, ..footprint };
        let line = "footprint 35.6 km wide, top of the picture points to 0° (N)";
        assert_eq!(footprint_line(&small), line);
    }

    #[test]
    fn lines_are_no_longer_than_the_terminal_is_wide() {
        let mut out = Vec::new();
        wrapped(&mut out, "one two three four five", 12).expect("written");
        assert_eq!(String::from_utf8_lossy(&out), "  one two\n  three four\n  five\n");
    }
}
