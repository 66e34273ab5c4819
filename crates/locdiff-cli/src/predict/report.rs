//! `--html`: one page about all pictures, which needs nothing but itself.

use std::fmt::Write;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use locdiff::Photo;
use locdiff::locate::Answered;
use locdiff_map::{Map, Marker, Projection};
use locdiff_sphere::LatLon;

use super::answer::Failure;
use super::drawing::Colors;
use super::tally::Tally;
use super::text::{percent, rounded};
use crate::whole_file::write_file;

/// Pixels along the longer side of a thumbnail.
const SIDE: u32 = 256;
/// Answers whose number is written on the map.
const NUMBERED: usize = 12;

#[derive(Default)]
pub(super) struct Report {
    located: Vec<Located>,
    others: Vec<String>,
    notes: Vec<String>,
}

struct Located {
    place: LatLon,
    confidence: f64,
    row: String,
}

/// A small JPEG of a picture.
pub(super) fn thumbnail(photo: &Photo) -> Option<Vec<u8>> {
    let small = photo.shrunk_to(SIDE);
    locdiff_server::jpeg(small.rgb(), small.width() as u16, small.height() as u16)
}

impl Report {
    pub(super) fn add(&mut self, answer: &Answered, thumbnail: Option<&[u8]>) {
        let record = &answer.record;
        let best = &record.candidates[0];
        let mut row = start_of(answer.name(), thumbnail);
        let _ = write!(row, "<h2>{}</h2>", escaped(&record.place.words));
        let _ = write!(
            row,
            "<p><b>{} {}</b> · 50 % within {} km, 90 % within {} km</p>",
            record.measure(),
            percent(best.mass),
            rounded(record.radius_50_km),
            rounded(record.radius_90_km)
        );
        if record.candidates.len() > 1 {
            row.push_str("<ol>");
            for candidate in &record.candidates {
                let _ = write!(
                    row,
                    "<li>{} {}</li>",
                    percent(candidate.mass),
                    escaped(&candidate.place.words)
                );
            }
            row.push_str("</ol>");
        }
        let place = answer.place();
        let _ = write!(row, "<p class=\"small\">{place:.4} · {}", escaped(&record.model.name));
        if let Some(exif) = &record.exif {
            let _ = write!(row, " · recorded by the camera: {}", escaped(&exif.place.words));
        }
        if let Some(kept) = record.kept {
            let within = escaped(&record.within.join(" and "));
            let _ = write!(row, " · within {within}, which keeps {}", percent(kept));
        }
        row.push_str("</p>");
        for warning in &record.warnings {
            let _ = write!(row, "<p class=\"warning\">{}</p>", escaped(warning));
        }
        row.push_str("</div></article>");
        self.located.push(Located { place, confidence: best.mass, row });
        let mut note = format!("{}: {}.", record.model.name, record.model.description);
        if !record.model.calibrated {
            note.push_str(
                " Its numbers are scores, not probabilities: the model is not calibrated.",
            );
        }
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn add_failure(&mut self, failure: &Failure, thumbnail: Option<&[u8]>) {
        let mut row = start_of(&failure.name, thumbnail);
        let _ = write!(row, "<p>{}</p>", escaped(&failure.reason));
        if let Some(exif) = &failure.exif {
            let place = escaped(&exif.place.words);
            let _ = write!(row, "<p class=\"small\">recorded by the camera: {place}</p>");
        }
        row.push_str("</div></article>");
        self.others.push(row);
    }

    pub(super) fn write(
        mut self,
        path: &Path,
        tally: &Tally,
        colors: Colors,
    ) -> anyhow::Result<()> {
        self.located.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <title>Places of pictures</title><style>{STYLE}</style>\
             <body class=\"{}\"><main><h1>{}</h1>\
             <p>Predictions, not facts, with the most confident first.</p>",
            if colors == Colors::Light { "light" } else { "dark" },
            escaped(&tally.line()),
        );
        for note in &self.notes {
            let _ = write!(page, "<p class=\"small\">{}</p>", escaped(note));
        }
        if !self.located.is_empty() {
            let mut map = Map::new(Projection::EqualEarth).theme(colors.into()).width_px(1200);
            for (number, located) in self.located.iter().enumerate().rev() {
                let marker = Marker::new(located.place);
                map = map.marker(match number < NUMBERED {
                    true => marker.label((number + 1).to_string()),
                    false => marker,
                });
            }
            let _ = write!(page, "<figure>{}</figure>", map.draw().svg());
        }
        self.located.iter().for_each(|located| page.push_str(&located.row));
        if !self.others.is_empty() {
            let _ = write!(page, "<h1>{} without a place</h1>", self.others.len());
            self.others.iter().for_each(|row| page.push_str(row));
        }
        page.push_str("</main></body></html>\n");
        write_file(path, page.as_bytes())
    }
}

/// The beginning of a picture's row: its thumbnail and its name.
fn start_of(name: &str, thumbnail: Option<&[u8]>) -> String {
    let mut row = String::from("<article>");
    match thumbnail {
        Some(jpeg) => {
            let data = STANDARD.encode(jpeg);
            let _ = write!(
                row,
                "<img alt=\"\" loading=\"lazy\" src=\"data:image/jpeg;base64,{data}\">"
            );
        }
        None => row.push_str("<span class=\"none\"></span>"),
    }
    let _ = write!(row, "<div><p class=\"name\">{}</p>", escaped(name));
    row
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

const STYLE: &str = "\
body{margin:0;font:16px/1.45 system-ui,sans-serif;background:#0c0f14;color:#e8e6e1}\
body.light{background:#fff;color:#1b1b1b}\
main{max-width:60rem;margin:0 auto;padding:1rem}\
h1{font-size:1.25rem}h2{font-size:1.1rem;margin:.1rem 0}p{margin:.2rem 0}ol{margin:.2rem 0;padding-left:1.4rem}\
main{counter-reset:place}h2::before{counter-increment:place;content:counter(place) \". \"}\
figure{margin:1rem 0}figure svg{width:100%;height:auto}\
article{display:flex;gap:1rem;padding:1rem 0;border-top:1px solid #8884;overflow-wrap:anywhere}\
article>div{min-width:0}\
img,.none{width:9rem;height:9rem;object-fit:cover;border-radius:.4rem;flex:none;background:#8883}\
.name,.small{font-size:.85rem;opacity:.75}.warning{color:#e0a030}\
@media(max-width:30rem){article{flex-direction:column}img{width:100%;height:auto;max-height:16rem}.none{display:none}}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_text_and_nothing_else() {
        assert_eq!(
            escaped("<a b='c'>&\"\u{1b}[1m"),
            "&lt;a b=&#39;c&#39;&gt;&amp;&quot;\u{fffd}[1m"
        );
    }
}
