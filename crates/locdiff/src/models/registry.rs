//! Models by name or directory: which there are, and how they are opened.

use std::path::{Path, PathBuf};

use locdiff_gallery::{Fusion, Gallery};

use super::diffusion_model::DiffusionModel;
use super::directory::{InvalidModel, ModelDirectory, ModelKind};
use super::earth_view::{self, EarthLocator};
use super::flow::{FlowModel, PublishedFlow};
use super::gallery_model::GalleryModel;
use super::geoclip::GeoClipLocator;
use super::home::ModelHome;
use super::hybrid::HybridModel;
use super::hybrid_files::{HybridConfig, HybridRule};
use super::opening::{CannotOpen, OpenOptions};
use crate::locate::{Calibration, Geolocator};

/// The model inside the program.
pub const BUILT_IN: &str = earth_view::NAME;
/// Models for photographs from the ground, the one to ask first at the front: those for photographs of all kinds, then the one for
/// street views, and the one for animals and plants.
pub const FOR_THE_GROUND: [&str; 4] = ["plonk-yfcc", GEOCLIP, "plonk-osv5m", "plonk-inaturalist"];
const GEOCLIP: &str = "geoclip";
/// The same over an even grid of places.
const OVER_A_GRID: &str = "geoclip-even";

impl Geolocator {
    /// A model by name or by directory: `earth-view` (built in, for views of the Earth from above), `geoclip` (over its own
    /// gallery of places), `geoclip-even` (over an even grid), `plonk-yfcc` (and other published flows), or a path such as `runs/first/model`.
    pub fn open(name: &str) -> Result<Geolocator, CannotOpen> {
        Geolocator::open_with(name, &OpenOptions::default(), &mut |_, _| {})
    }

    /// A model with options. What is computed once and then kept (the embeddings of GeoCLIP's places) may
    /// take a minute: `progress` hears how much of how much is done.
    pub fn open_with(
        name: &str,
        options: &OpenOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Geolocator, CannotOpen> {
        if name == BUILT_IN {
            options.expect_no_encoder(name)?;
            let model = Geolocator::from_model(EarthLocator::built_in(&options.device()?))?;
            let directory = calibration_directory(name, options.home().ok().as_ref());
            return directory
                .map_or(Ok(model.clone()), |directory| with_calibration(&model, &directory));
        }
        if name == GEOCLIP || name == OVER_A_GRID {
            let home = options.home()?;
            let (directory, even) = (home.model(GEOCLIP), name == OVER_A_GRID);
            let model = GeoClipLocator::open(&directory, even, options, progress)?;
            // Over another list of places it is another model.
            return with_calibration(&Geolocator::from_model(model)?, &home.model(name));
        }
        let path = model_directory(name, options.home().ok().as_ref())
            .ok_or_else(|| not_installed(name))?;
        let directory = ModelDirectory::read(&path)?;
        let model = match directory.kind() {
            ModelKind::Diffusion => {
                Geolocator::from_model(DiffusionModel::open(&directory, options)?)
            }
            ModelKind::EarthView => {
                options.expect_no_encoder(name)?;
                Geolocator::from_model(EarthLocator::open(&directory, &options.device()?)?)
            }
            ModelKind::Geoclip => {
                let model = GeoClipLocator::open(&path, false, options, progress)?;
                Geolocator::from_model(model)
            }
            ModelKind::Flow => Geolocator::from_model(FlowModel::open(&directory, options)?),
            ModelKind::Gallery => Geolocator::from_model(GalleryModel::open(&directory, options)?),
            ModelKind::Hybrid => {
                let fusion = Fusion::read(&path)?;
                Geolocator::from_model(open_hybrid(&directory, None, fusion, options, progress)?)
            }
        }?;
        with_calibration(&model, &path)
    }
}

/// A model that can be fetched is missing, others are unknown.
fn not_installed(name: &str) -> CannotOpen {
    if PublishedFlow::named(name).is_none() {
        return CannotOpen::Unknown(name.to_owned());
    }
    CannotOpen::Missing {
        model: name.to_owned(),
        missing: "it is not on this machine".to_owned(),
        remedy: format!("Get it with `locdiff model fetch {name}`"),
    }
}

/// A model with the calibration of its directory, if there is one.
fn with_calibration(model: &Geolocator, directory: &Path) -> Result<Geolocator, CannotOpen> {
    Ok(match Calibration::read(directory)? {
        Some(calibration) => model.with_calibration(calibration)?,
        None => model.clone(),
    })
}

/// Where the calibration of a model is: in its directory; of those without a directory of their own, under its name in the
/// home of models.
pub fn calibration_directory(name: &str, home: Option<&ModelHome>) -> Option<PathBuf> {
    match name {
        BUILT_IN | OVER_A_GRID => home.map(|home| home.model(name)),
        _ => model_directory(name, home),
    }
}

/// A hybrid with the model and the gallery that its directory names; perhaps with another rule.
pub(super) fn open_hybrid(
    directory: &ModelDirectory,
    rule: Option<HybridRule>,
    fusion: Option<Fusion>,
    options: &OpenOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<HybridModel, CannotOpen> {
    let mut config = HybridConfig::read(directory)?;
    config.rule = rule.unwrap_or(config.rule);
    let beside = |name: &str| {
        let path = directory.path().join(name);
        if path.is_dir() { path.to_string_lossy().into_owned() } else { name.to_owned() }
    };
    let model = open_part(&beside(&config.model), options, progress)?;
    let gallery = Gallery::open(Path::new(&beside(&config.gallery)))?;
    HybridModel::open(model, gallery, config, &directory.name(), fusion, options)
}

/// The density model of a hybrid.
fn open_part(
    name: &str,
    options: &OpenOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Geolocator, CannotOpen> {
    // A hybrid of itself would open itself without end, and a gallery would count its hits twice.
    let path = model_directory(name, options.home().ok().as_ref());
    if let Some(directory) = path.map(|path| ModelDirectory::read(&path)) {
        let directory = directory?;
        let kind = directory.kind();
        if matches!(kind, ModelKind::Hybrid | ModelKind::Gallery) {
            let path = directory.path().to_owned();
            let reason = format!(
                "is of kind {}, the model of a hybrid must be one that answers without a gallery",
                kind.name()
            );
            return Err(InvalidModel::Contents { path, reason }.into());
        }
    }
    Geolocator::open_with(name, options, progress)
}

/// The directory that a text names: a path, or a name in the home of models.
pub fn model_directory(name: &str, home: Option<&ModelHome>) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.is_dir() {
        return Some(path.to_owned());
    }
    // A name must not lead out of the directory of models.
    let is_name = path.components().count() == 1 && !name.starts_with('.');
    let name = if name == OVER_A_GRID { GEOCLIP } else { name };
    home.map(|home| home.model(name)).filter(|directory| is_name && directory.is_dir())
}

/// Models that are complete on this machine, the one to ask first at the front.
pub fn installed_models(home: &ModelHome) -> Vec<String> {
    let mut names = vec![BUILT_IN.to_owned()];
    if GeoClipLocator::missing(&home.model(GEOCLIP), home).is_none() {
        names.extend([GEOCLIP, OVER_A_GRID].map(str::to_owned));
    }
    let is_complete = |flow: &&PublishedFlow| {
        let directory = ModelDirectory::read(&home.model(flow.name));
        directory.is_ok_and(|directory| directory.kind() == ModelKind::Flow)
            && home.encoder(flow.encoder).is_some()
    };
    names.extend(PublishedFlow::all().iter().filter(is_complete).map(|flow| flow.name.to_owned()));
    names
}

/// The best of these models for photographs from the ground.
pub fn ground_model<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    let names: Vec<&str> = names.into_iter().collect();
    FOR_THE_GROUND.into_iter().find(|name| names.contains(name))
}

/// Directories in the home of models that hold a model, by name, or what is wrong with them. Encoders are not
/// among them.
pub fn model_directories(home: &ModelHome) -> Vec<(String, Result<ModelDirectory, InvalidModel>)> {
    let Ok(entries) = std::fs::read_dir(home.models()) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: Vec<_> = names
        .filter_map(|name| {
            let directory = ModelDirectory::read(&home.model(&name));
            // An encoder in Hugging Face's layout has a `config.json` of its own.
            let is_other =
                matches!(directory, Err(InvalidModel::Version { .. } | InvalidModel::File { .. }));
            (!is_other).then_some((name, directory))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}
