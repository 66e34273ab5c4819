//! `locdiff model fetch`: weights from where they are published, because somebody asked for them.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use clap::Args;
use locdiff::ModelHome;
use locdiff::encoders::hub::{Encoder, FetchedFile, FetchedModel, Hub, HubError, Progress};
use locdiff::encoders::{ImageEncoder, Reading};
use locdiff::models::flow::PublishedFlow;
use locdiff::models::test_encoder;
use locdiff::tensors::device_by_name;
use locdiff_sphere::shown;
use serde_json::{Value, json};

use super::fetch_flow::fetch_flow;
use super::import::install_geoclip;
use super::{licence, self_test_record};
use crate::progress;
use crate::text::{json_stdout, stderr};

#[derive(Args)]
pub(crate) struct Arguments {
    /// geoclip, plonk-yfcc, plonk-inaturalist, plonk-osv5m, or an encoder: clip-vit-b-32, clip-vit-b-16, clip-vit-l-14,
    /// clip-vit-l-14-336, streetclip, dinov2-{s,b,l}-14, dinov2-{s,b,l}-14-reg, or any `owner/name` on the hub;
    /// `@revision` pins a commit of an encoder
    name: String,
    /// Accept a license that forbids commercial use; needed once per model
    #[arg(long)]
    accept_license: bool,
    /// Print what was fetched on stdout, as JSON
    #[arg(long)]
    json: bool,
}

/// What GeoCLIP's own part is called at the package index.
const GEOCLIP_PACKAGE: &str = "geoclip==1.3.0";
const GEOCLIP_BACKBONE: &str = "clip-vit-l-14";

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { name, accept_license, json } = arguments;
    let answer = match PublishedFlow::named(&name) {
        Some(flow) => fetch_flow(flow, accept_license)?,
        None if name == "geoclip" => fetch_geoclip()?,
        None => fetch_encoder(&name, accept_license)?,
    };
    if json {
        writeln!(json_stdout(), "{answer}")?;
    }
    Ok(())
}

fn fetch_geoclip() -> anyhow::Result<Value> {
    let home = ModelHome::from_env()?;
    let directory = home.model("geoclip");
    if directory.join("config.json").is_file() {
        writeln!(
            stderr(),
            "GeoCLIP's head, location encoder and gallery are in {} already",
            directory.display()
        )?;
    } else {
        writeln!(
            stderr(),
            "geoclip: license MIT; getting its wheel with `pip download {GEOCLIP_PACKAGE}`"
        )?;
        let folder = tempfile::tempdir()?;
        pip_download(folder.path())?;
        let wheels: Vec<_> = std::fs::read_dir(folder.path())?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "whl"))
            .collect();
        let [wheel] = &wheels[..] else {
            bail!("pip downloaded {} wheels, expected one", wheels.len())
        };
        install_geoclip(wheel, &directory, false)?;
        writeln!(
            stderr(),
            "GeoCLIP's head, location encoder and gallery are in {}",
            directory.display()
        )?;
    }
    if let Some(backbone) = home.encoder(GEOCLIP_BACKBONE) {
        writeln!(stderr(), "{GEOCLIP_BACKBONE} is in {} already", backbone.display())?;
        let (directory, backbone) =
            (directory.display().to_string(), backbone.display().to_string());
        return Ok(json!({ "model": "geoclip", "directory": directory, "encoder": backbone }));
    }
    let encoder = fetch_encoder(GEOCLIP_BACKBONE, false)?;
    let directory = directory.display().to_string();
    Ok(json!({ "model": "geoclip", "directory": directory, "encoder": encoder }))
}

/// pip is configured with the user's index, proxy and certificates; nothing of what it downloads is run.
fn pip_download(folder: &Path) -> anyhow::Result<()> {
    let arguments = ["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"];
    for python in ["python3", "python"] {
        let mut command = Command::new(python);
        command.args(arguments).arg("--disable-pip-version-check");
        command.arg("--dest").arg(folder).arg(GEOCLIP_PACKAGE);
        // Output of pip goes to stderr: it is no data.
        match command.stdout(std::io::stderr()).status() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(format!("cannot run {python}")),
            Ok(status) => {
                ensure!(
                    status.success(),
                    "`pip download {GEOCLIP_PACKAGE}` failed: see above. If you get the wheel another way, \
                     install it with `locdiff model import geoclip WHEEL`"
                );
                return Ok(());
            }
        }
    }
    bail!(
        "GeoCLIP's wheel is downloaded with pip, but no Python was found. Download geoclip-1.3.0-py3-none-any.whl \
         from the package index, then install it with `locdiff model import geoclip WHEEL`"
    )
}

/// Shows how far a download is.
pub(super) fn with_bar(
    fetch: impl FnOnce(&mut dyn FnMut(Progress<'_>)) -> Result<FetchedModel, HubError>,
) -> Result<FetchedModel, HubError> {
    let bar = progress::bytes();
    let fetched = fetch(&mut |progress| {
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.bytes);
        bar.set_message(shown(progress.file));
    });
    bar.finish_and_clear();
    fetched
}

/// Files with their checksums.
pub(super) fn fetched_files(fetched: &FetchedModel) -> Vec<Value> {
    let facts = |file: &FetchedFile| json!({ "name": file.name, "bytes": file.size_bytes, "sha256": file.sha256 });
    fetched.files.iter().map(facts).collect()
}

pub(super) fn fetch_encoder(name: &str, accept: bool) -> anyhow::Result<Value> {
    let encoder: Encoder = name.parse()?;
    let home = ModelHome::from_env()?;
    if let Some(licence) = encoder.licence() {
        licence::require(&home, &encoder.to_string(), encoder.repository(), licence, accept)?;
    }
    let hub = Hub::from_env()?;
    let fetched = with_bar(|progress| hub.fetch(&encoder, progress))?;
    // What it gives today, for `locdiff doctor` to compare with.
    let device = device_by_name("cpu")?;
    let opened = ImageEncoder::open_as(&Reading::of(name), &fetched.directory, &device)?;
    let record = self_test_record(&home, name, &fetched.directory);
    // It was checked by its sum just now, and may be a newer one.
    let _ = std::fs::remove_file(&record);
    test_encoder(&opened, &record)?;
    writeln!(stderr(), "{encoder} is in {}", fetched.directory.display())?;
    Ok(json!({
        "encoder": encoder.to_string(),
        "directory": fetched.directory.display().to_string(),
        "revision": fetched.revision,
        "files": fetched_files(&fetched),
    }))
}
