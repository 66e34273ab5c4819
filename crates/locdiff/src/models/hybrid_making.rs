//! New hybrids: their files are written, and their product is fitted.

use std::fs;
use std::path::{Component, Path, PathBuf};

use locdiff_sphere::LatLon;

use super::directory::{CARD, InvalidModel, ModelDirectory, ModelKind, write_config};
use super::hybrid_files::{HybridConfig, HybridRule};
use super::opening::{CannotOpen, OpenOptions};
use super::registry::open_hybrid;
use crate::locate::Geolocator;

/// Photographs that neither the model nor the gallery has seen.
#[derive(Debug)]
pub struct HeldOut {
    /// Name of the data.
    pub name: String,
    /// Embeddings, places and ids.
    pub rows: Vec<(Vec<f32>, LatLon, String)>,
}

/// Writes a new model directory of a model, by name or directory, and a gallery, and opens it, so that only what fits
/// together stays. With held-out photographs, the product is fitted on them. A directory that exists is never overwritten.
/// Paths are stored relative to it.
pub fn create_hybrid(
    directory: &Path,
    model: &str,
    gallery: &Path,
    rule: HybridRule,
    held_out: Option<&HeldOut>,
    options: &OpenOptions,
) -> Result<Geolocator, CannotOpen> {
    if directory.symlink_metadata().is_ok() {
        let reason = "exists: delete it, or choose another directory".to_owned();
        return Err(InvalidModel::Contents { path: directory.to_owned(), reason }.into());
    }
    let make = InvalidModel::file("make", directory.to_owned());
    fs::create_dir_all(directory).map_err(make)?;
    let open = |()| Geolocator::open_with(&directory.to_string_lossy(), options, &mut |_, _| {});
    let fit = |()| match held_out {
        Some(held_out) => fit_product(directory, held_out, options),
        None => Ok(()),
    };
    let made = write(directory, model, gallery, rule).map_err(CannotOpen::from);
    let made = made.and_then(fit).and_then(open);
    if made.is_err() {
        // Nobody else's: it did not exist before.
        let _ = fs::remove_dir_all(directory);
    }
    made
}

fn fit_product(
    directory: &Path,
    held_out: &HeldOut,
    options: &OpenOptions,
) -> Result<(), CannotOpen> {
    // The paper's rule needs no fit.
    let opened = ModelDirectory::read(directory)?;
    let unfitted = open_hybrid(&opened, Some(HybridRule::Paper), None, options, &mut |_, _| {})?;
    Ok(unfitted.fit(&held_out.rows, &held_out.name)?.write(directory)?)
}

fn write(
    directory: &Path,
    model: &str,
    gallery: &Path,
    rule: HybridRule,
) -> Result<(), InvalidModel> {
    let model = match Path::new(model).is_dir() {
        true => relative(directory, Path::new(model))?,
        false => model.to_owned(),
    };
    let config = HybridConfig::new(&model, &relative(directory, gallery)?, rule);
    let name = directory.file_name().map_or("Hybrid".into(), |name| name.to_string_lossy());
    let card = format!(
        "# {name}\n\nA LocDiff model of kind `hybrid`: the density model `{}`, the gallery `{}`, and the rule `{}`.\n\n\
         - `product`: the model's density times the gallery's likelihood, normalized, with the numbers of `fusion.json` if both were fitted together. The prior of the gallery is divided out.\n\
         - `paper`: samples of the model, references within {radius_km} km of them; the most similar reference is the answer.\n\n\
         Limits are those of the model and of the gallery. Answers list the references that support them.\n",
        config.model,
        config.gallery,
        rule,
        radius_km = config.radius_km,
    );
    let path = directory.join(CARD);
    fs::write(&path, card).map_err(InvalidModel::file("write", path))?;
    let value = serde_json::to_value(&config).expect("a configuration is JSON");
    write_config(directory, ModelKind::Hybrid, value, &[])
}

/// The way from one directory to another, so that both can be moved together.
fn relative(from: &Path, to: &Path) -> Result<String, InvalidModel> {
    let full =
        |path: &Path| path.canonicalize().map_err(InvalidModel::file("find", path.to_owned()));
    let (from, to) = (full(from)?, full(to)?);
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(to.components().skip(common)).collect();
    Ok(way.to_string_lossy().into_owned())
}
