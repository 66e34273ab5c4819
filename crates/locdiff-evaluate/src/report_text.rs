//! An evaluation for a terminal, and as Markdown.

use locdiff_sphere::shown;

use super::report_tables::{Table, heading, images, intervals, sentence, tables};
use super::scoring::Evaluation;

/// The report as text for a terminal.
pub fn report_text(evaluation: &Evaluation) -> String {
    let mut text = format!("{}: {}\n", heading(evaluation), images(evaluation));
    let mut remark = |line: &str| text.push_str(&format!("  {line}\n"));
    remark(&evaluation.rules.described());
    remark(&intervals(evaluation));
    for note in &evaluation.notes {
        remark(&shown(note));
    }
    for table in tables(evaluation) {
        text.push_str(&format!("\n{}\n", table.title));
        text.push_str(&columns(&table));
        if table.rows.len() > table.shown_first {
            let more = table.rows.len() - table.shown_first;
            text.push_str(&format!("  and {more} more: --json and --html have them all\n"));
        }
    }
    text
}

/// Columns under each other; the names to the left, numbers to the right.
fn columns(table: &Table) -> String {
    // Names of rows come from files.
    let shown_row = |row: &Vec<String>| row.iter().map(|cell| shown(cell)).collect::<Vec<_>>();
    let rows: Vec<_> = table.rows.iter().take(table.shown_first).map(shown_row).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).chain(table.headings.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..table.headings.len()).map(width).collect();
    let mut text = String::new();
    for row in std::iter::once(&table.headings).chain(&rows) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            line.push_str(&match column {
                0 => format!("  {cell}{pad}"),
                _ => format!("  {pad}{cell}"),
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// As Markdown, for a README or a pull request.
pub fn report_markdown(evaluation: &Evaluation) -> String {
    let mut text = format!("# {}\n\n{}.\n\n", heading(evaluation), images(evaluation));
    let (rules, intervals) = (evaluation.rules.described(), intervals(evaluation));
    text.push_str(&format!("{}. {}.\n", sentence(&rules), sentence(&intervals)));
    for note in &evaluation.notes {
        text.push_str(&format!("\n> {note}\n"));
    }
    for table in tables(evaluation) {
        text.push_str(&format!("\n## {}\n\n", table.title));
        if !table.note.is_empty() {
            text.push_str(&format!("{}\n\n", table.note));
        }
        let cells = |row: &[String]| {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        text.push_str(&cells(&table.headings));
        let rule = |column: usize| if column == 0 { "---" } else { "---:" };
        let rules: Vec<&str> = (0..table.headings.len()).map(rule).collect();
        text.push_str(&format!("|{}|\n", rules.join("|")));
        for row in &table.rows {
            text.push_str(&cells(row));
        }
    }
    text
}
