//! `locdiff evaluate leakage`: what a test set shares with training.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use locdiff_evaluate::{
    EmbeddingTwin, LEAKAGE_COSINE, LEAKAGE_KM, NamedPlaces, PlaceTwin, embedding_leakage,
    is_embeddings, place_leakage,
};
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::text::{json_stdout, on_one_line};

/// Pairs that are named one by one; --json names all.
const SHOWN: usize = 10;

#[derive(Args)]
pub(super) struct Arguments {
    /// The test set: a table of places, a manifest, or a folder of embeddings
    #[arg(long, value_name = "PATH")]
    test: PathBuf,
    /// The training set, in the same formats. If both are folders of embeddings, embeddings are compared too
    #[arg(long, value_name = "PATH")]
    training: PathBuf,
    /// Places at most this far apart count as shared
    #[arg(long, value_name = "KM", default_value_t = LEAKAGE_KM)]
    within_km: f64,
    /// Two pictures count as almost the same if the cosine of their embeddings is at least this
    #[arg(long, value_name = "COSINE", default_value_t = LEAKAGE_COSINE)]
    cosine: f64,
    /// One JSON object with all pairs
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (test, training) =
        (NamedPlaces::read(&arguments.test)?, NamedPlaces::read(&arguments.training)?);
    let places = place_leakage(&test.places, &training.places, arguments.within_km);
    let embeddings = if is_embeddings(&arguments.test) && is_embeddings(&arguments.training) {
        let [test, training] =
            [&arguments.test, &arguments.training].map(|path| path.to_string_lossy().into_owned());
        let mut progress = Progress::new("rows", Some(0));
        let mut known = 0;
        Some(embedding_leakage(&test, &training, arguments.cosine, &mut |done, _| {
            progress.add(done - known);
            known = done;
        })?)
    } else {
        None
    };
    if arguments.json {
        let report = as_json(arguments, &test, &training, &places, embeddings.as_deref());
        writeln!(json_stdout(), "{report}")?;
    } else {
        print(arguments, &test, &training, &places, embeddings.as_deref())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(
    arguments: &Arguments,
    test: &NamedPlaces,
    training: &NamedPlaces,
    places: &[PlaceTwin],
    embeddings: Option<&[EmbeddingTwin]>,
) -> anyhow::Result<()> {
    let mut out = crate::text::stdout();
    let (images, trained) = (test.places.len(), training.places.len());
    let share = |count: usize| 100.0 * count as f64 / images as f64;
    writeln!(out, "{images} test images, {trained} training images")?;
    writeln!(
        out,
        "{} ({:.2} %) were taken within {} km of a training image",
        places.len(),
        share(places.len()),
        arguments.within_km
    )?;
    for twin in places.iter().take(SHOWN) {
        let (name, other) = (&test.names[twin.test], &training.names[twin.training]);
        let (name, other) = (on_one_line(name), on_one_line(other));
        writeln!(out, "  {name}  {:.3} km from {other}", twin.distance_km)?;
    }
    more(&mut out, places.len())?;
    if let Some(twins) = embeddings {
        writeln!(
            out,
            "{} ({:.2} %) have an embedding with a cosine of {} or more to a training image",
            twins.len(),
            share(twins.len()),
            arguments.cosine
        )?;
        for twin in twins.iter().take(SHOWN) {
            let EmbeddingTwin { test, training, cosine, distance_km } = twin;
            let (test, training) = (on_one_line(test), on_one_line(training));
            writeln!(out, "  {test}  {cosine:.4} to {training}, {distance_km:.3} km away")?;
        }
        more(&mut out, twins.len())?;
    }
    Ok(())
}

fn more(out: &mut impl Write, count: usize) -> std::io::Result<()> {
    if count > SHOWN {
        writeln!(out, "  and {} more: --json lists them all", count - SHOWN)?;
    }
    Ok(())
}

fn as_json(
    arguments: &Arguments,
    test: &NamedPlaces,
    training: &NamedPlaces,
    places: &[PlaceTwin],
    embeddings: Option<&[EmbeddingTwin]>,
) -> Value {
    let near: Vec<Value> = places
        .iter()
        .map(|twin| {
            json!({
                "test": test.names[twin.test],
                "training": training.names[twin.training],
                "distance_km": twin.distance_km,
            })
        })
        .collect();
    let alike = embeddings.map(|twins| {
        let twins = twins.iter().map(|twin| {
            let EmbeddingTwin { test, training, cosine, distance_km } = twin;
            json!({ "test": test, "training": training, "cosine": cosine, "distance_km": distance_km })
        });
        twins.collect::<Vec<Value>>()
    });
    json!({
        "images": test.places.len(),
        "training_images": training.places.len(),
        "within_km": arguments.within_km,
        "near_places": near,
        "cosine": arguments.cosine,
        "alike_embeddings": alike,
    })
}
