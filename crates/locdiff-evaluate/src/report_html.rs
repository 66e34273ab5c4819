//! An evaluation as one HTML file: no script, no font and no picture from elsewhere.

use super::pictures::{BANDS, Both, accuracy_curve, error_map, recall_curve, reliability_curve};
use super::report_tables::{Table, heading, images, intervals, sentence, shown, tables, thousands};
use super::scoring::{Evaluation, Unit};

const STYLE: &str = include_str!("report.css");

/// As one HTML file, which follows the reader's choice of light or dark.
pub fn report_html(evaluation: &Evaluation) -> String {
    let title = escaped(&heading(evaluation));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    page.push_str(&format!(
        "<header>\n<h1>{title}</h1>\n<p class=\"images\">{}.</p>\n</header>\n",
        escaped(&images(evaluation))
    ));
    page.push_str(&cards(evaluation));
    for note in &evaluation.notes {
        page.push_str(&format!("<p class=\"note\">{}</p>\n", escaped(note)));
    }
    page.push_str(&maps(evaluation));
    page.push_str(&curves(evaluation));
    for table in tables(evaluation) {
        page.push_str(&section(&table));
    }
    page.push_str(&format!(
        "<footer>\n<h2>Scoring rules</h2>\n<p>{}. {}.</p>\n\
         <p>Made by <code>locdiff evaluate</code> {}. Answers are predictions, not facts.</p>\n</footer>\n",
        escaped(&sentence(&evaluation.rules.described())),
        escaped(&sentence(&intervals(evaluation))),
        env!("CARGO_PKG_VERSION")
    ));
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// The numbers that most people look for.
fn cards(evaluation: &Evaluation) -> String {
    let mut text = String::from("<dl class=\"cards\">\n");
    for key in [
        "accuracy_25_km",
        "accuracy_200_km",
        "accuracy_750_km",
        "median_km",
        "geoscore",
        "nll_nats",
    ] {
        let Some(line) = evaluation.lines().find(|line| line.key == key) else { continue };
        text.push_str(&format!(
            "<div><dt>{}</dt><dd>{}</dd></div>\n",
            escaped(&line.name),
            escaped(&shown(line.unit, line.score.value()))
        ));
    }
    if let Some(cloud) = &evaluation.manifold {
        let coverage = shown(Unit::Share, cloud.coverage);
        text.push_str(&format!("<div><dt>true places covered</dt><dd>{coverage}</dd></div>\n"));
    }
    text.push_str("</dl>\n");
    text
}

fn maps(evaluation: &Evaluation) -> String {
    let mut legend = String::from("<ul class=\"legend\">\n");
    for (colour, name) in BANDS {
        legend.push_str(&format!("<li><i style=\"background:{colour}\"></i>{name}</li>\n"));
    }
    legend.push_str("</ul>\n");
    let (truth, count) = error_map(evaluation, &evaluation.answered.truth);
    let (answers, _) = error_map(evaluation, &evaluation.answered.predicted);
    let all = evaluation.images() - evaluation.unanswered();
    let part = if count < all {
        format!(
            " {} of {} images, evenly from the list.",
            thousands(count as f64, 0),
            thousands(all as f64, 0)
        )
    } else {
        String::new()
    };
    format!(
        "<section>\n<h2>Map of errors</h2>\n<p>Dots are colored by the error of the answer, and drawn in the order of the list.{part}</p>\n{legend}\
         <div class=\"maps\">\n{}{}</div>\n</section>\n",
        figure(&truth, "Where the images were taken"),
        figure(&answers, "Where the answers are")
    )
}

fn curves(evaluation: &Evaluation) -> String {
    let mut figures = figure(&accuracy_curve(evaluation), "Accuracy by distance");
    if let Some(picture) = reliability_curve(evaluation) {
        figures.push_str(&figure(&picture, "Calibration"));
    }
    if let Some(picture) = recall_curve(evaluation) {
        figures.push_str(&figure(&picture, "Images found by searched area"));
    }
    format!("<section>\n<h2>Curves</h2>\n<div class=\"charts\">\n{figures}</div>\n</section>\n")
}

/// It takes the focus, so that a chart that is wider than a phone can be moved by keys.
fn figure(picture: &Both, caption: &str) -> String {
    format!(
        "<figure tabindex=\"0\">\n<picture>\n<source media=\"(prefers-color-scheme: dark)\" srcset=\"{}\">\n\
         <img src=\"{}\" alt=\"{}\">\n</picture>\n<figcaption>{}</figcaption>\n</figure>\n",
        data_address(&picture.dark),
        data_address(&picture.day),
        escaped(&picture.description),
        escaped(caption)
    )
}

fn section(table: &Table) -> String {
    let mut text = format!("<section>\n<h2>{}</h2>\n", escaped(&table.title));
    if !table.note.is_empty() {
        text.push_str(&format!("<p>{}</p>\n", escaped(&table.note)));
    }
    let (first, rest) = table.rows.split_at(table.rows.len().min(table.shown_first));
    text.push_str(&grid(&table.headings, first));
    if !rest.is_empty() {
        text.push_str(&format!("<details>\n<summary>{} more</summary>\n", rest.len()));
        text.push_str(&grid(&table.headings, rest));
        text.push_str("</details>\n");
    }
    text.push_str("</section>\n");
    text
}

fn grid(headings: &[String], rows: &[Vec<String>]) -> String {
    // A wide table scrolls by itself, with the keyboard too.
    let mut text = String::from("<div class=\"wide\" tabindex=\"0\">\n<table>\n<thead><tr>");
    for heading in headings {
        text.push_str(&format!("<th scope=\"col\">{}</th>", escaped(heading)));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            text.push_str(&match column {
                0 => format!("<th scope=\"row\">{}</th>", escaped(cell)),
                _ => format!("<td>{}</td>", escaped(cell)),
            });
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// An SVG as an address: letters as they are, what an attribute or an address can't hold by number.
fn data_address(svg: &str) -> String {
    let mut address = String::with_capacity(svg.len() * 5 / 4);
    address.push_str("data:image/svg+xml;charset=utf-8,");
    for c in svg.chars() {
        match c {
            '%' | '#' | '<' | '>' | '"' | '\'' | '&' | '\n' | ' ' | ',' => {
                address.push_str(&format!("%{:02X}", u32::from(c)));
            }
            c => address.push(c),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_file_s_name_becomes_markup() {
        assert_eq!(escaped("<b>&\"x\""), "&lt;b&gt;&amp;&quot;x&quot;");
        assert_eq!(
            data_address("<a b=\"#1\"/>"),
            "data:image/svg+xml;charset=utf-8,%3Ca%20b=%22%231%22/%3E"
        );
    }
}
