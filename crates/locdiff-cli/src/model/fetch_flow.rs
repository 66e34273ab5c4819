//! `locdiff model fetch plonk-…`: a published flow and its encoder become a model directory.

use std::fs;
use std::io::Write;

use anyhow::{Context, bail};
use locdiff::encoders::hub::{Encoder, FetchedModel, Hub, Repository};
use locdiff::models::flow::{FlowAbout, FlowConfig, FlowSource, PublishedFlow};
use locdiff::models::{ModelDirectory, ModelHome, open_encoder};
use locdiff::tensors::device_by_name;
use serde_json::{Value, json};

use super::fetch::{fetch_encoder, fetched_files, with_bar};
use super::licence;
use crate::text::stderr;

/// The file of weights in a repository and in a model directory.
const WEIGHTS: &str = "model.safetensors";

pub(super) fn fetch_flow(published: &PublishedFlow, accept: bool) -> anyhow::Result<Value> {
    let home = ModelHome::from_env()?;
    let encoder: Encoder = published.encoder.parse()?;
    let PublishedFlow { name, repository, licence, .. } = *published;
    licence::require(&home, name, repository, licence, accept)?;
    // Both before anything is fetched: the network is of no use without its encoder.
    if let Some(licence) = encoder.licence() {
        licence::require(&home, encoder.name(), encoder.repository(), licence, accept)?;
    }
    let hub = Hub::from_env()?;
    let fetched =
        with_bar(|progress| hub.fetch_repository(&Repository::network(repository), progress))?;
    expect_unchanged(&home, published, &fetched)?;
    let encoder_facts = match home.encoder(published.encoder) {
        Some(directory) => {
            writeln!(stderr(), "{encoder} is in {} already", directory.display())?;
            json!({ "encoder": encoder.to_string(), "directory": directory.display().to_string() })
        }
        None => fetch_encoder(published.encoder, accept)?,
    };
    let opened = open_encoder(published.encoder, &home, &device_by_name("cpu")?)?;
    let opened = opened.context("the encoder was fetched, but cannot be found")?;
    let path = fetched.directory.join("config.json");
    let config = fs::read_to_string(&path)?;
    let network: FlowConfig = serde_json::from_str(&config)
        .with_context(|| format!("{} is not the configuration of a flow", path.display()))?;
    if network.cond_dim != opened.width() {
        bail!(
            "{repository} needs embeddings of {} numbers, {encoder} returns {}",
            network.cond_dim,
            opened.width()
        );
    }
    let mut about = FlowAbout::new(network, opened.record().clone());
    about.source = Some(FlowSource {
        repository: repository.to_owned(),
        revision: fetched.revision.clone(),
        licence: licence.to_owned(),
        trained_on: published.trained_on.to_owned(),
    });
    let directory = home.model(name);
    about.install(&directory, &fetched.directory.join(WEIGHTS))?;
    writeln!(stderr(), "{name} is in {}", directory.display())?;
    Ok(json!({
        "model": name,
        "directory": directory.display().to_string(),
        "revision": fetched.revision,
        "files": fetched_files(&fetched),
        "encoder": encoder_facts,
    }))
}

/// The weights of a revision must be those that were installed of the same revision, also where the hub's cache is another one.
fn expect_unchanged(
    home: &ModelHome,
    published: &PublishedFlow,
    fetched: &FetchedModel,
) -> anyhow::Result<()> {
    let Ok(installed) = ModelDirectory::read(&home.model(published.name)) else { return Ok(()) };
    if installed.config()["source"]["revision"] != fetched.revision.as_str() {
        return Ok(());
    }
    let files = installed.files();
    let now = fetched.files.iter().find(|file| file.name == WEIGHTS).map(|file| &file.sha256);
    match (files.get(WEIGHTS), now) {
        (Some(before), Some(now)) if before != now => bail!(
            "{WEIGHTS} of {} at {} has SHA-256 {now}, the installed one of the same revision has {before}: a revision does not \
             change. The installed model is kept; to replace it, remove it first: `locdiff model remove {}`",
            published.repository,
            fetched.revision,
            published.name
        ),
        _ => Ok(()),
    }
}
