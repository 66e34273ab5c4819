//! `locdiff gallery fit`: how near similar references are, measured on other photographs.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use locdiff_gallery::{Fit, Likelihood};
use locdiff_sphere::UNIFORM_NLL_NATS;
use serde_json::json;

use super::rows::{Images, Rows};
use super::{encoder, note};
use crate::interruption;

/// No camera's GPS is so good: a fit of this width comes from places that were copied.
const SAME_PLACE_KM: f64 = 0.012;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The gallery
    #[arg(value_name = "DIR")]
    gallery: PathBuf,
    /// Photographs that are not in the gallery, with their places: embeddings that `locdiff embed` wrote, or images (a
    /// folder, a manifest or a WebDataset). At least 50 photographs are needed, several hundred are better
    #[arg(long, value_name = "HELD_OUT")]
    data: PathBuf,
    /// Encoder of the images [default: the gallery's encoder, by its name]
    #[arg(long, value_name = "NAME")]
    encoder: Option<String>,
    /// Device to compute on: cpu, cuda:N, wgpu or metal, if this program was built with it
    #[arg(long, default_value = "cpu")]
    device: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let gallery = encoder::open_gallery(&arguments.gallery)?;
    let stop = interruption::flag()?;
    let images = Images {
        data: &arguments.data,
        encoder: arguments.encoder.as_deref(),
        device: &arguments.device,
        beside: &arguments.gallery,
        gallery: Some(&gallery),
    };
    let rows = Rows::of_data(&images, &stop)?;
    encoder::check(&gallery, rows.identity())?;
    let mut fit = Fit::new(&gallery);
    rows.visit(
        "searching",
        &stop,
        &mut |embedding, place, id| Ok(fit.push(embedding, place, id)?),
    )?;
    let fitted = fit.finish(&arguments.data.display().to_string());
    // Whether there were enough of them or not, they are embedded again next time.
    rows.discard()?;
    let fitted = fitted?;
    fitted.write(&gallery)?;
    print(&fitted, arguments)?;
    if fitted.nll_nats >= UNIFORM_NLL_NATS {
        note(
            "warning: the fit is no better than a uniform density: similar references are not near. Use another encoder, or \
             more references",
        );
    }
    if fitted.width_km < SAME_PLACE_KM {
        note(
            "warning: some held-out photographs have exactly the place of a reference, so the fitted width is only \
             meters. Hold out whole trips, or places that are not in the gallery",
        );
    }
    Ok(())
}

fn print(fitted: &Likelihood, arguments: &Arguments) -> anyhow::Result<()> {
    let mut out = crate::text::stdout();
    let path = arguments.gallery.display();
    if arguments.json {
        let fitted = json!({
            "gallery": path.to_string(),
            "likelihood": fitted,
            "uniform_nll_nats": UNIFORM_NLL_NATS,
        });
        writeln!(crate::text::json_stdout(), "{fitted}")?;
        return Ok(());
    }
    let Likelihood { held_out, held_out_rows, left_out_rows, .. } = fitted;
    write!(out, "fitted to {held_out_rows} photographs of {held_out}")?;
    if *left_out_rows > 0 {
        write!(out, "; {left_out_rows} more are in the gallery and were left out")?;
    }
    writeln!(
        out,
        "\n  width      {:.2} km: how far photographs are from references that match",
        fitted.width_km
    )?;
    writeln!(
        out,
        "  sharpness  {:.2}: weights are proportional to exp(sharpness · similarity)",
        fitted.sharpness
    )?;
    writeln!(
        out,
        "  share      log-odds {:.2} + {:.2} · best similarity, at most {:.3}: the probability that a reference is near",
        fitted.share_offset, fitted.share_slope, fitted.highest_share
    )?;
    writeln!(
        out,
        "  NLL        {:.3} nats per steradian; the uniform density has {:.3}",
        fitted.nll_nats, UNIFORM_NLL_NATS
    )?;
    writeln!(out, "The gallery in {path} can now give densities.")?;
    Ok(())
}
