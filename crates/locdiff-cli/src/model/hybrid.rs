//! `locdiff model hybrid`: a model directory of a density model, a gallery and a rule.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

use clap::Args;
use locdiff::OpenOptions;
use locdiff::models::{EncoderSource, HybridRule, create_hybrid};
use serde_json::json;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The density model: a name, or a directory such as runs/first/model
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// The gallery's directory, of the same encoder
    #[arg(long, value_name = "DIR")]
    gallery: PathBuf,
    /// `product`: the model's density times the gallery's likelihood. `paper`: the most similar reference within 200 km of
    /// samples of the model
    #[arg(long, default_value_t = HybridRule::Product)]
    rule: HybridRule,
    /// Where the model is written; must not exist
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Say on stdout, as JSON, what was written
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { model, gallery, rule, out, json } = arguments;
    // To be made, a hybrid needs not be asked.
    let options = OpenOptions { encoder: EncoderSource::NotNeeded, ..OpenOptions::default() };
    let made = create_hybrid(out, model, gallery, *rule, &options)?;
    let identity = made.identity();
    writeln!(stderr(), "{}: {}", out.display(), identity.description)?;
    if *json {
        let directory = out.display().to_string();
        let record = json!({ "model": directory, "rule": rule, "version": identity.version });
        writeln!(stdout(), "{record}")?;
    }
    Ok(())
}
