//! Tables of the committed answers, as they stand in `docs/paper.md`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use locdiff_experiments::paper::{modes, shares, table_head};
use locdiff_experiments::{places_of, read_npy, round, standard_normal};
use locdiff_sphere::{ACCURACY_RADII_KM, Basis, LatLon, uniform_place};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::lists::LISTS;
use crate::plots;
use crate::quoted::quoted;
use crate::rows::{EVERY, How, Rows, SEEDS};
use crate::runs::{Run, is_retrieval_current};

/// Steps of the paper's trainings: 500 epochs (its table 11) of 1,500 iterations (its table 6).
const STEPS_OF_THE_PAPER: f64 = 750_000.0;
const DOCS: &str = "docs/paper.md";
const RESULT: &str = "experiments/paper/result.md";
/// Of the noise in the paper's test of the encoding.
const VARIANCE: f64 = 0.01;
/// Tables whose rows need three seeds.
const REQUIRED: [&str; 4] = ["table 1", "table 9", "figure 5a", "section 5.3"];
const DEGREES: [usize; 4] = [7, 15, 23, 31];
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
    fn mean(&self) -> [f64; 5] {
        let count = self.shares.len() as f64;
        [0, 1, 2, 3, 4].map(|radius| self.shares.iter().map(|of| of[radius]).sum::<f64>() / count)
    }

    /// The mean, and in brackets the lowest and the highest seed.
    fn cells(&self) -> String {
        let cell = |(radius, mean): (usize, f64)| {
            if self.shares.len() < 2 {
                return format!("{mean:.1}");
            }
            let (low, high) = self
                .shares
                .iter()
                .fold((f64::MAX, f64::MIN), |(a, b), of| (a.min(of[radius]), b.max(of[radius])));
            format!("{mean:.1} ({low:.1}–{high:.1})")
        };
        self.mean().into_iter().enumerate().map(cell).collect::<Vec<_>>().join(" | ")
    }

    /// Rows that were seen in training.
    fn samples(&self) -> f64 {
        (self.runs[0].steps * self.runs[0].batch as u64) as f64
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
        for seed in 1..=row.seeds {
            let Some(run) = Run::read(row, seed)? else { continue };
            let places = places_of(&read_npy(&Run::path(name, seed, how))?)?;
            n = places.len();
            shares.push(self.score(&places)?);
            runs.push(run);
        }
        Ok((!runs.is_empty()).then_some(Scored { runs, shares, n }))
    }

    /// A line of a table, also for what was not run.
    fn line(&mut self, name: &str, how: How, is_required: bool) -> Result<String> {
        let row = self.rows.find(name)?;
        let Some(scored) = self.scored(name, how)? else {
            if is_required {
                self.fewest = 0;
            }
            return Ok(format!(
                "| {}; {} | – | – | not run | | | | | |\n",
                row.title,
                row.how(how)
            ));
        };
        if is_required {
            self.fewest = self.fewest.min(scored.runs.len() as u64);
        }
        self.shown += 1;
        let Run { steps, batch, .. } = scored.runs[0];
        let share = 100.0 * steps as f64 / STEPS_OF_THE_PAPER;
        // The flow is not the paper's and has no share of its steps.
        let share =
            row.flow_steps.map_or_else(|| format!(" ({share:.2} %)"), |_| String::default());
        Ok(format!(
            "| {}; {} | {} | {} | {steps} × {batch}{share} | {} |\n",
            row.title,
            row.how(how),
            scored.n,
            scored.runs.len(),
            scored.cells()
        ))
    }

    /// A table of rows, and what the paper has.
    fn table(&mut self, block: &str, rows: &[(&str, How)]) -> Result<String> {
        let columns = "row | n | seeds | steps × batch (share of the paper's steps)";
        let mut table = table_head(columns, "") + "\n";
        for (name, how) in rows {
            table += &self.line(name, *how, REQUIRED.contains(&block))?;
        }
        Ok(table + &quoted(block, " | | | "))
    }

    /// The blocks of `docs/paper.md`, by name.
    fn blocks(&mut self) -> Result<Vec<(&'static str, String)>> {
        ensure!(is_retrieval_current(), "the answers by retrieval are of other data: `paper work`");
        let everywhere = places_of(&read_npy(&Run::folder().join("retrieval.npy"))?)?;
        let few: Vec<LatLon> = everywhere.iter().step_by(EVERY).copied().collect();
        let mut retrieval = String::new();
        // The same places as the sampled rows, too.
        for places in [everywhere, few] {
            let cells = self.score(&places)?.map(|share| format!("{share:.1}")).join(" | ");
            let n = places.len();
            retrieval +=
                &format!("| retrieval over MP16's 100k places | {n} | – | – | {cells} |\n");
        }
        let mut table_1 = self.table(
            "table 1",
            &[
                ("published-l23", How::OnePass),
                ("published-l23", How::Sampled),
                ("published-l23", How::HybridSampled),
                ("ours-l23", How::OnePass),
                ("ours-l23", How::HybridOnePass),
            ],
        )?;
        table_1 =
            table_1.replacen("|\n| as published", &format!("|\n{retrieval}| as published"), 1);
        let one_pass = |names: &[&'static str]| -> Vec<(&'static str, How)> {
            names.iter().map(|name| (*name, How::OnePass)).collect()
        };
        let table_9 = self.table(
            "table 9",
            &one_pass(&["loss-reverse-kl", "loss-likelihood", "loss-cosine", "loss-l1", "loss-l2"]),
        )?;
        let names = self.degrees()?;
        let names: Vec<(&str, How)> =
            names.iter().map(|(_, name)| (name.as_str(), How::OnePass)).collect();
        let figure_5a = self.table("figure 5a", &names)?;
        let mut seen = one_pass(&["seen-published-150", "seen-published-500", "published-l23"]);
        seen.push(("published-l23", How::Sampled));
        seen.extend(one_pass(&[
            "seen-ours-150",
            "seen-ours-500",
            "ours-l23",
            "seen-flow-300",
            "seen-flow-1000",
            "seen-flow-3000",
        ]));
        let section_5_3 = self.table("section 5.3", &seen)?;
        let table_10 = self.table(
            "table 10",
            &one_pass(&[
                "bottleneck-published-32",
                "bottleneck-published-128",
                "published-l31",
                "bottleneck-ours-32",
                "bottleneck-ours-128",
                "ours-l31",
            ]),
        )?;
        Ok(vec![
            ("table 1", table_1),
            ("table 3", self.table_3()?),
            ("table 9", table_9),
            ("table 10", table_10),
            ("figure 5a", figure_5a),
            ("section 5.3", section_5_3),
        ])
    }

    /// The rows of accuracy by degree whose seeds are all there.
    fn degrees(&self) -> Result<Vec<(usize, String)>> {
        let mut found = Vec::new();
        for which in ["published", "ours"] {
            for degree in DEGREES {
                let name = format!("{which}-l{degree}");
                let scored = self.scored(&name, How::OnePass)?;
                if scored.is_some_and(|scored| scored.runs.len() as u64 == SEEDS) {
                    found.push((degree, name));
                }
            }
        }
        Ok(found)
    }

    /// Accuracy by the list that is chosen from.
    fn table_3(&mut self) -> Result<String> {
        let mut table = table_head("model; list | n | seeds", "") + "\n";
        let mut curves = Vec::new();
        for (key, title, name) in [
            ("retrieval", "retrieval by GeoCLIP's embeddings", None),
            ("locdiff", "as published, L = 23, one pass", Some("anchors-published")),
            ("ours", "ours, L = 23, one pass", Some("anchors-ours")),
        ] {
            let path = match name {
                Some(name) if Run::read(self.rows.find(name)?, 1)?.is_none() => None,
                Some(name) => Some(Run::path(name, 1, How::Lists)),
                None => Some(Run::folder().join("retrieval-lists.npy")),
            };
            let Some(path) = path.filter(|path| path.exists()) else {
                table += &format!("| {title} | – | not run | | | | | |\n");
                for list in LISTS {
                    self.figures[key_of_list(key, list)] = Value::Null;
                }
                continue;
            };
            let places = places_of(&read_npy(&path)?)?;
            let seeds = if name.is_some() { "1" } else { "–" };
            let mut curve = Vec::new();
            for (list, places) in LISTS.iter().zip(places.chunks_exact(self.truths.len())) {
                let of = self.score(places)?;
                let cells = of.map(|share| format!("{share:.1}")).join(" | ");
                table += &format!("| {title}; {list} | {} | {seeds} | {cells} |\n", places.len());
                self.figures[key_of_list(key, list)] = json!(round(of[2]));
                curve.push(of);
            }
            self.shown += LISTS.len();
            curves.push((title, curve));
        }
        plots::lists(&curves)?;
        Ok(table + &quoted("table 3", " | | "))
    }

    /// Prints all tables, and one line of JSON; `docs/paper.md` gets the tables, or must have them.
    pub fn print(mut self, write: bool) -> Result<()> {
        let mut docs = std::fs::read_to_string(DOCS)?;
        let result = std::fs::read_to_string(RESULT)?;
        let head = result.find("## table 1").with_context(|| format!("{RESULT} has no table 1"))?;
        let mut text = String::new();
        for (name, block) in self.blocks()? {
            text += &format!("## {name}\n\n{block}\n");
            let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
            let from = docs.find(&begin).with_context(|| format!("{DOCS} has no {name}"))?;
            let to = docs.find(&end).with_context(|| format!("{DOCS} has no end of {name}"))?;
            let from = from + begin.len();
            let is_same = docs[from..to] == block;
            ensure!(is_same || write, "{DOCS} has another {name}: `paper docs` writes it anew");
            docs.replace_range(from..to, &block);
        }
        if write {
            std::fs::write(DOCS, docs)?;
        }
        print!("{text}");
        for (key, name, how, radius) in [
            ("published_one_pass_within_750", "published-l23", How::OnePass, 3),
            ("published_sampled_within_750", "published-l23", How::Sampled, 3),
            ("published_hybrid_within_750", "published-l23", How::HybridSampled, 3),
            ("ours_within_750", "ours-l23", How::OnePass, 3),
            ("ours_hybrid_within_25", "ours-l23", How::HybridOnePass, 1),
            ("locdiff_none_continuous_within_200", "published-l23", How::OnePass, 2),
            ("ours_none_continuous_within_200", "ours-l23", How::OnePass, 2),
            ("cosine_within_200", "loss-cosine", How::OnePass, 2),
            ("l1_within_200", "loss-l1", How::OnePass, 2),
            ("l2_within_200", "loss-l2", How::OnePass, 2),
            ("likelihood_transform_within_200", "loss-likelihood", How::OnePass, 2),
            ("likelihood_anchors_within_200", "objective-likelihood-anchors", How::OnePass, 2),
            ("reverse_kl_anchors_within_200", "loss-reverse-kl", How::OnePass, 2),
            ("reverse_kl_transform_within_200", "objective-reverse-kl-transform", How::OnePass, 2),
            ("as_published_w__32_within_200", "bottleneck-published-32", How::OnePass, 2),
            ("as_published_w__128_within_200", "bottleneck-published-128", How::OnePass, 2),
            ("as_published_full_width_within_200", "published-l31", How::OnePass, 2),
            ("ours_w__32_within_200", "bottleneck-ours-32", How::OnePass, 2),
            ("ours_w__128_within_200", "bottleneck-ours-128", How::OnePass, 2),
            ("ours_full_width_within_200", "ours-l31", How::OnePass, 2),
        ] {
            let scored = self.scored(name, how)?;
            self.figures[key] = json!(scored.as_ref().map(|scored| round(scored.mean()[radius])));
            if how == How::Sampled {
                self.figures["sampled_n"] = json!(scored.map(|scored| scored.n));
            }
        }
        for degree in [15, 23, 31, 47, 63, 95] {
            let error_km = error_under_noise(degree);
            println!(
                "Mean error of decoding under noise of variance {VARIANCE} on each coefficient, L = {degree}: {error_km:.2} km"
            );
            self.figures[format!("noisy_error_l{degree}_km")] = json!(round(error_km));
        }
        self.by_degree()?;
        self.by_samples()?;
        self.figures["rows"] = json!(self.shown);
        self.figures["seeds"] = json!(self.fewest);
        println!("{}", self.figures);
        text += &format!("{}\n", self.figures);
        let is_same = result[head..] == text;
        ensure!(is_same || write, "{RESULT} has other tables: `paper docs` writes it anew");
        if write {
            std::fs::write(RESULT, format!("{}{text}", &result[..head]))?;
        }
        Ok(())
    }

    fn by_degree(&mut self) -> Result<()> {
        let mut curves = Vec::new();
        for (title, which) in [("as published", "published"), ("ours", "ours")] {
            let mut curve = Vec::new();
            for (degree, name) in self.degrees()?.iter().filter(|row| row.1.starts_with(which)) {
                let Some(scored) = self.scored(name, How::OnePass)? else { continue };
                let mean = scored.mean();
                self.figures[format!("{which}_l{degree}_within_200")] = json!(round(mean[2]));
                curve.push((*degree as f64, mean));
            }
            curves.push((title, curve));
        }
        plots::degrees(&curves)
    }

    /// How much sooner than the flow's longest training its accuracy is reached.
    fn by_samples(&mut self) -> Result<()> {
        let mut curves = Vec::new();
        for (key, title, how, names) in [
            (
                "published_one_pass",
                "as published, one pass",
                How::OnePass,
                &["seen-published-150", "seen-published-500", "published-l23"][..],
            ),
            ("locdiff", "as published, 16 samples", How::Sampled, &["published-l23"]),
            ("ours", "ours", How::OnePass, &["seen-ours-150", "seen-ours-500", "ours-l23"]),
            (
                "flow",
                "Riemannian flow matching",
                How::OnePass,
                &["seen-flow-300", "seen-flow-1000", "seen-flow-3000"],
            ),
        ] {
            let mut curve = Vec::new();
            for name in names {
                let scored = self.scored(name, how)?;
                curve.extend(scored.map(|scored| (scored.samples(), scored.mean())));
            }
            curves.push((key, title, curve));
        }
        let (_, _, flow) = curves.last().context("no curves")?;
        let (samples, reached) = flow.last().copied().unwrap_or((f64::NAN, [f64::NAN; 5]));
        for (radius, km) in ACCURACY_RADII_KM.into_iter().enumerate().skip(2) {
            for (key, _, curve) in &curves[..curves.len() - 1] {
                let needed = samples_for(curve, radius, reached[radius]);
                let sooner = needed.map(|needed| round(samples / needed));
                self.figures[format!("{key}_sooner_within_{km}")] = json!(sooner);
            }
        }
        plots::samples(
            &curves.into_iter().map(|(_, title, curve)| (title, curve)).collect::<Vec<_>>(),
        )
    }
}

fn key_of_list(model: &str, list: &str) -> String {
    format!("{model}_{}_within_200", list.to_lowercase().replace(',', "").replace(' ', "_"))
}

/// Samples at which a curve first reaches a share, between points by their logarithms.
fn samples_for(points: &[(f64, [f64; 5])], radius: usize, share: f64) -> Option<f64> {
    let first = points.iter().position(|point| point.1[radius] >= share)?;
    let (samples, reached) = (points[first].0, points[first].1[radius]);
    if first == 0 {
        return Some(samples);
    }
    let (before, low) = (points[first - 1].0, points[first - 1].1[radius]);
    Some(before * (samples / before).powf((share - low) / (reached - low)))
}

/// What the encoding itself allows, without any model: mean distance of what is decoded from a noisy encoding to the truth.
fn error_under_noise(max_degree: usize) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(47);
    let places: Vec<LatLon> = (0..200).map(|_| uniform_place(&mut rng)).collect();
    let basis = Basis::new(max_degree);
    let mut encodings = vec![0.0_f32; places.len() * basis.len()];
    basis.encode_into(&places, &mut encodings);
    for value in &mut encodings {
        *value += (VARIANCE.sqrt() * standard_normal(&mut rng)) as f32;
    }
    let decoded = modes(&encodings, max_degree);
    let distances = decoded.iter().zip(&places).map(|(found, place)| found.distance_km(*place));
    distances.sum::<f64>() / places.len() as f64
}

/// Beside the answers.
pub fn picture(name: &str) -> std::path::PathBuf {
    Path::new("experiments/paper").join(name)
}
