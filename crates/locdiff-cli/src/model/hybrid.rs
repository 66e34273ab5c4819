//! `locdiff model hybrid`: a model directory of a density model, a gallery and a rule.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use locdiff::OpenOptions;
use locdiff::models::{EncoderSource, HeldOut, HybridRule, create_hybrid};
use locdiff_gallery::{Fusion, Gallery};
use serde_json::json;

use crate::gallery::encoder;
use crate::gallery::rows::{Images, Rows};
use crate::interruption;
use crate::text::{json_stdout, stderr};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The density model: a name, or a directory such as runs/first/model
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// The gallery's directory; the gallery must use the encoder of the model
    #[arg(long, value_name = "DIR")]
    gallery: PathBuf,
    /// `product`: the model's density times the gallery's likelihood. `paper`: the most similar reference within 200 km of
    /// samples of the model
    #[arg(long, default_value_t = HybridRule::Product)]
    rule: HybridRule,
    /// Photographs that are neither in the training set of the model nor in the gallery, with their places: embeddings that
    /// `locdiff embed` wrote, or images (a folder, a manifest or a WebDataset). The product is fitted on them. Without
    /// --data, the product assumes that both are independent and is overconfident
    #[arg(long, value_name = "HELD_OUT")]
    data: Option<PathBuf>,
    /// Encoder of held-out images [default: the gallery's encoder, by its name]
    #[arg(long, value_name = "NAME", requires = "data")]
    encoder: Option<String>,
    /// Device to compute on: cpu, cuda:N, wgpu or metal, if this program was built with it
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Where the model is written; must not exist
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Print what was written on stdout, as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { model, gallery, rule, data, out, json, device, .. } = arguments;
    anyhow::ensure!(
        data.is_none() || *rule == HybridRule::Product,
        "the rule `paper` has no numbers to fit: leave out --data"
    );
    // To be made, a hybrid needs not be asked.
    let options = OpenOptions {
        encoder: EncoderSource::NotNeeded,
        device: device.clone(),
        ..OpenOptions::default()
    };
    let held_out = data.as_ref().map(|data| held_out(data, arguments)).transpose()?;
    let made = create_hybrid(out, model, gallery, *rule, held_out.as_ref(), &options)?;
    let identity = made.identity();
    writeln!(stderr(), "{}: {}", out.display(), identity.description)?;
    let fusion = Fusion::read(out)?;
    if let Some(fusion) = &fusion {
        writeln!(
            stderr(),
            "fitted to {} photographs of {}: {:.3} nats per steradian, {model} alone {:.3}. Calibrate the hybrid with `locdiff calibrate`",
            fusion.held_out_rows,
            fusion.held_out,
            fusion.nll_nats,
            fusion.model_nll_nats,
        )?;
    }
    if *json {
        let directory = out.display().to_string();
        let version = &identity.version;
        let record =
            json!({ "model": directory, "rule": rule, "version": version, "fusion": fusion });
        writeln!(json_stdout(), "{record}")?;
    }
    Ok(())
}

fn held_out(data: &Path, arguments: &Arguments) -> anyhow::Result<HeldOut> {
    let gallery = Gallery::open(&arguments.gallery)?;
    let stop = interruption::flag()?;
    let images = Images {
        data,
        encoder: arguments.encoder.as_deref(),
        device: &arguments.device,
        beside: &arguments.gallery,
        gallery: Some(&gallery),
    };
    let read = Rows::of_data(&images, &stop)?;
    encoder::check(&gallery, read.identity())?;
    let mut rows = Vec::new();
    read.visit("reading", &stop, &mut |embedding, place, id| {
        rows.push((embedding.to_vec(), place, id.to_owned()));
        Ok(())
    })?;
    read.discard()?;
    Ok(HeldOut { name: data.display().to_string(), rows })
}
