//! The paper's tables with the shipped training, sampler and decoder, on a simulation: see `rows.toml` and `run`.

mod lists;
mod objectives;
mod plots;
mod quoted;
mod report;
mod retrieval;
mod rows;
mod runs;

use anyhow::{Result, bail};
use locdiff_experiments::paper::Task;
use mimalloc::MiMalloc;
use rows::Rows;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "paper work [MINUTES]    trains and answers what is missing, one after another; several may work at once
paper config ROW        the whole configuration of a row
paper retrieve          retrieval over all lists, which is the last thing that `work` does
paper model ROW         trains its model (seed 1) if it is not there, and prints where it is
paper report            tables and figures of the committed answers; docs/paper.md must have the same
paper objectives        objectives compared by accuracy and likelihood
paper docs              the same, and docs/paper.md gets them";

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rows = Rows::read()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work"] => runs::work(&rows, &Task::build()?, f64::INFINITY),
        ["work", minutes] => runs::work(&rows, &Task::build()?, minutes.parse()?),
        ["config", name] => {
            let config = rows.find(name)?.config(1)?;
            println!("{}", toml::to_string(&config)?);
            Ok(())
        }
        ["retrieve"] => runs::retrieve(&Task::build()?),
        ["model", name] => {
            runs::trained(rows.find(name)?, 1, &Task::build()?)?;
            println!("{}", runs::directory(&rows.find(name)?.key(1)?).join("model").display());
            Ok(())
        }
        ["objectives"] => objectives::report(&rows),
        ["report"] => report::Report::new(&rows)?.print(false),
        ["docs"] => report::Report::new(&rows)?.print(true),
        _ => bail!("{USAGE}"),
    }
}

#[cfg(test)]
mod tests {
    use locdiff_train::TrainingConfig;
    use serde_json::Value;

    use super::*;

    /// The fields of one JSON that differ from those of another, as paths.
    fn differences(a: &Value, b: &Value, path: &str, found: &mut Vec<String>) {
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => {
                let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
                for name in names {
                    let of = |map: &serde_json::Map<String, Value>| {
                        map.get(name).cloned().unwrap_or(Value::Null)
                    };
                    differences(&of(a), &of(b), &format!("{path}.{name}"), found);
                }
            }
            _ if a != b => found.push(path.trim_start_matches('.').to_owned()),
            _ => {}
        }
    }

    /// What is called "as published" is `configs/paper-l23.toml`, but for a listed few.
    #[test]
    fn as_published_is_as_published() {
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
        let published = TrainingConfig::read("configs/paper-l23.toml".as_ref()).unwrap();
        let published = serde_json::to_value(published).unwrap();
        let rows = Rows::read().unwrap();
        let mut count = 0;
        for row in rows.iter().filter(|row| row.title.contains("as published")) {
            let config = row.config(1).unwrap();
            // What the title says, and nothing else.
            let said = |what: &str| {
                let (_, after) = row.title.split_once(what)?;
                after.split([',', ' ', ':']).next()?.parse::<usize>().ok()
            };
            assert_eq!(config.network.max_degree, said("L = ").unwrap_or(23), "{}", row.name);
            assert_eq!(config.network.bottleneck, said("w = "), "{}", row.name);
            let mut found = Vec::new();
            differences(&published, &serde_json::to_value(config).unwrap(), "", &mut found);
            found.retain(|path| {
                !["run.steps", "run.seed", "validation.share", "validation.every_steps"]
                    .contains(&path.as_str())
                    && !["network.max_degree", "network.bottleneck"].contains(&path.as_str())
            });
            assert!(found.is_empty(), "{}: {found:?}", row.name);
            count += 1;
        }
        assert!(count >= 5, "{count}");
    }
}
