//! Tables of the committed answers, as they stand in `docs/paper.md`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use locdiff_experiments::paper::{shares, table_head};
use locdiff_experiments::{places_of, read_npy, round};
use locdiff_map::{Chart, Panels, Series};
use locdiff_sphere::{ACCURACY_RADII_KM, LatLon};
use serde_json::{Value, json};

use crate::rows::{How, Rows, SEEDS};
use crate::runs::Run;
use crate::task::EVERY;

/// Steps of the paper's trainings.
const STEPS_OF_THE_PAPER: f64 = 750_000.0;
const DOCS: &str = "docs/paper.md";
/// What the paper reports for photographs of Im2GPS3k: quoted.
const LOCDIFF: &str = "10.9 | 34.0 | 53.3 | 72.5 | 85.2";
const LOCDIFF_H: &str = "15.3 | 36.5 | 56.4 | 75.2 | 87.4";

pub struct Report<'a> {
    rows: &'a Rows,
    truths: Vec<LatLon>,
    figures: Value,
    /// Of the rows that need three, the smallest number of seeds.
    fewest: u64,
    shown: usize,
}

/// What several seeds of a row answered.
struct Scored {
    runs: Vec<Run>,
    /// Percent by radius, seed by seed.
    shares: Vec<[f64; 5]>,
    n: usize,
}

impl Scored {
    fn mean(&self, radius: usize) -> f64 {
        self.shares.iter().map(|of| of[radius]).sum::<f64>() / self.shares.len() as f64
    }

    /// The mean, and in brackets the lowest and the highest seed.
    fn cells(&self) -> String {
        let cell = |radius: usize| {
            let mean = self.mean(radius);
            if self.shares.len() < 2 {
                return format!("{mean:.1}");
            }
            let (low, high) = self
                .shares
                .iter()
                .fold((f64::MAX, f64::MIN), |(a, b), of| (a.min(of[radius]), b.max(of[radius])));
            format!("{mean:.1} ({low:.1}–{high:.1})")
        };
        (0..5).map(cell).collect::<Vec<_>>().join(" | ")
    }
}

impl Report<'_> {
    pub fn new(rows: &Rows) -> Result<Report<'_>> {
        let truths = places_of(&read_npy(&Run::folder().join("truths.npy"))?)?;
        let figures = json!({ "n": truths.len() });
        Ok(Report { rows, truths, figures, fewest: SEEDS, shown: 0 })
    }

    fn score(&self, places: &[LatLon]) -> Result<[f64; 5]> {
        // Some answer every sixth place.
        let every = if places.len() == self.truths.len() { 1 } else { EVERY };
        let truths: Vec<LatLon> = self.truths.iter().step_by(every).copied().collect();
        shares(places, &truths)
    }

    /// All seeds of a row that there are, if there is one.
    fn scored(&self, name: &str, how: How) -> Result<Option<Scored>> {
        let row = self.rows.find(name)?;
        let (mut runs, mut shares, mut n) = (Vec::new(), Vec::new(), 0);
        for seed in 1..=SEEDS {
            let Some(run) = Run::read(row, seed)? else { continue };
            let places = places_of(&read_npy(&Run::path(name, seed, how))?)?;
            n = places.len();
            shares.push(self.score(&places)?);
            runs.push(run);
        }
        Ok((!runs.is_empty()).then_some(Scored { runs, shares, n }))
    }

    /// A line of a table, also for what was not run.
    fn line(&mut self, name: &str, how: How) -> Result<String> {
        let title = &self.rows.find(name)?.title;
        let Some(scored) = self.scored(name, how)? else {
            self.fewest = 0;
            return Ok(format!("| {title}; {} | – | – | not run | | | | | |\n", how.name()));
        };
        self.fewest = self.fewest.min(scored.runs.len() as u64);
        self.shown += 1;
        let Run { steps, batch, .. } = scored.runs[0];
        let share = 100.0 * steps as f64 / STEPS_OF_THE_PAPER;
        Ok(format!(
            "| {title}; {} | {} | {} | {steps} × {batch} ({share:.2} %) | {} |\n",
            how.name(),
            scored.n,
            scored.runs.len(),
            scored.cells()
        ))
    }

    /// The blocks of `docs/paper.md`, by name.
    fn blocks(&mut self) -> Result<Vec<(&'static str, String)>> {
        let columns = "row | n | seeds | steps × batch (share of the paper's steps)";
        let mut table_1 = table_head(columns, "") + "\n";
        let retrieval = places_of(&read_npy(&Run::folder().join("retrieval.npy"))?)?;
        let cells = self.score(&retrieval)?.map(|share| format!("{share:.1}")).join(" | ");
        let n = retrieval.len();
        table_1 += &format!("| retrieval over MP16's 100k places | {n} | – | – | {cells} |\n");
        for (name, how) in [
            ("published-l23", How::OnePass),
            ("published-l23", How::Sampled),
            ("published-l23", How::HybridSampled),
            ("ours-l23", How::OnePass),
            ("ours-l23", How::HybridOnePass),
        ] {
            table_1 += &self.line(name, how)?;
        }
        table_1 += &format!(
            "| *the paper, photographs, L = 47 (quoted)* | | | 750,000 × 512 | {LOCDIFF} |\n"
        );
        table_1 += &format!(
            "| *the paper, photographs, LocDiff-H, L = 23 (quoted)* | | | 750,000 × 512 | {LOCDIFF_H} |\n"
        );
        let mut table_9 = table_head(columns, "") + "\n";
        for name in ["reverse-kl", "likelihood", "cosine", "l1", "l2"] {
            table_9 += &self.line(&format!("loss-{name}"), How::OnePass)?;
        }
        let mut figure_5a = table_head(columns, "") + "\n";
        for which in ["published", "ours"] {
            for degree in [15, 23, 31] {
                figure_5a += &self.line(&format!("{which}-l{degree}"), How::OnePass)?;
            }
        }
        let mut section_5_3 = table_head(columns, "") + "\n";
        for name in [
            "seen-published-150",
            "seen-published-500",
            "published-l23",
            "seen-ours-150",
            "seen-ours-500",
            "ours-l23",
            "seen-flow-300",
            "seen-flow-1000",
            "seen-flow-3000",
        ] {
            section_5_3 += &self.line(name, How::OnePass)?;
        }
        Ok(vec![
            ("table 1", table_1),
            ("table 9", table_9),
            ("figure 5a", figure_5a),
            ("section 5.3", section_5_3),
        ])
    }

    /// Prints all tables, and one line of JSON; `docs/paper.md` gets the tables, or must have them.
    pub fn print(mut self, write: bool) -> Result<()> {
        let mut docs = std::fs::read_to_string(DOCS)?;
        for (name, block) in self.blocks()? {
            println!("## {name}\n\n{block}");
            let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
            // Not all of them are on the page yet.
            let Some(from) = docs.find(&begin) else { continue };
            let to = docs.find(&end).with_context(|| format!("{DOCS} has no end of {name}"))?;
            let from = from + begin.len();
            let is_same = docs[from..to] == block;
            ensure!(is_same || write, "{DOCS} has another {name}: `paper docs` writes it anew");
            docs.replace_range(from..to, &block);
        }
        if write {
            std::fs::write(DOCS, docs)?;
        }
        self.draw()?;
        for (key, name, how) in [
            ("published_one_pass_within_750", "published-l23", How::OnePass),
            ("published_sampled_within_750", "published-l23", How::Sampled),
            ("published_hybrid_within_750", "published-l23", How::HybridSampled),
            ("ours_within_750", "ours-l23", How::OnePass),
            ("ours_hybrid_within_25", "ours-l23", How::HybridOnePass),
        ] {
            let scored = self.scored(name, how)?;
            let radius = if key.ends_with("_25") { 1 } else { 3 };
            self.figures[key] = json!(scored.as_ref().map(|scored| round(scored.mean(radius))));
            if how == How::Sampled {
                self.figures["sampled_n"] = json!(scored.map(|scored| scored.n));
            }
        }
        self.figures["rows"] = json!(self.shown);
        self.figures["seeds"] = json!(self.fewest);
        println!("{}", self.figures);
        Ok(())
    }

    /// Accuracy by degree, once all degrees are there.
    fn draw(&self) -> Result<()> {
        for name in ["published-l15", "published-l31", "ours-l15", "ours-l31"] {
            if self.scored(name, How::OnePass)?.is_none() {
                return Ok(());
            }
        }
        let mut sheet = Panels::new().columns(2);
        for (title, which) in [("as published", "published"), ("ours", "ours")] {
            let mut chart = Chart::new("degree L", "test places, %")
                .y_range(0.0..=100.0)
                .x_range(10.0..=36.0)
                .width_px(560)
                .height_px(400);
            for (k, radius) in ACCURACY_RADII_KM.iter().enumerate() {
                let mut points = Vec::new();
                for degree in [15, 23, 31] {
                    let scored = self.scored(&format!("{which}-l{degree}"), How::OnePass)?;
                    points.extend(scored.map(|scored| (f64::from(degree), scored.mean(k))));
                }
                chart = chart.series(Series::points(format!("≤ {radius} km"), points).joined());
            }
            sheet = sheet.panel(title, chart.draw());
        }
        let sheet = sheet
            .title("Accuracy by degree, one pass, 1,500 steps")
            .caption("A simulation: it compares variants, and says nothing about photographs.");
        let path = Path::new("experiments/paper/degree.png");
        Ok(std::fs::write(path, sheet.draw().png())?)
    }
}
