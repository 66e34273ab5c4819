//! An atlas as a model: its files, what it rejects, its answers.

use std::path::Path;

use burn::tensor::Device;
use locdiff_earth::{Imagery, Registration};
use locdiff_sphere::LatLon;
use serde_json::json;

use super::aligned_embedder::AlignedEmbedder;
use super::aligned_encoder::AlignedEncoder;
use super::atlas::{Atlas, AtlasSettings};
use super::evidence::{Finding, density};
use super::gallery::{Gallery, Precision};
use super::mosaic::Mosaic;
use super::packed_weights::PackedWeights;
use super::search::{Known, Query, VIEW};
use crate::checksum::sha256;
use crate::geography::Constraint;
use crate::locate::{
    Footprint, Inference, InvalidInference, Located, LocationModel, ModelIdentity, NotItsKind,
};
use crate::models::directory::{
    CARD, InvalidModel, ModelDirectory, ModelKind, WEIGHTS, write_config,
};
use crate::photo::Photo;
use crate::tensors::InvalidWeights;

/// The name by which it is opened.
pub const NAME: &str = "earth-view";

const GALLERY: &str = "gallery.bin";
const MOSAIC: &str = "mosaic.bin";
/// The header's entry with the settings, and the weights' name.
const SETTINGS: &str = "earth-view";
const ENCODER: &str = "aligned";
const REFERENCE: &str = "reference";
/// Rows of a mosaic that people build: 1.6 km each, as registration needs for views of 100 km.
const BUILT_ROWS: usize = 12_288;
const BUILT_QUALITY: u8 = 75;
/// A view may be this much narrower than the narrowest maps of the gallery, or wider than the widest: half a step.
const WIDTH_MARGIN: f64 = 1.15;
/// Gray levels of standard deviation; less is a blank.
const LEAST_CONTRAST: f64 = 2.0;

/// Locates views of the Earth from above.
pub struct EarthLocator {
    atlas: Atlas,
    /// The descriptors of the built-in test picture when the weights were written.
    reference: Vec<f32>,
    identity: ModelIdentity,
}

impl std::fmt::Debug for EarthLocator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "EarthLocator({:?}, {:?})", self.identity, self.atlas.settings)
    }
}

/// The three files of an atlas.
struct Files<'a> {
    weights: &'a [u8],
    gallery: &'a [u8],
    mosaic: &'a [u8],
}

const BUILT_IN: Files<'static> = Files {
    weights: include_bytes!("../../../models/earth-view/model.safetensors"),
    gallery: include_bytes!("../../../models/earth-view/gallery.bin"),
    mosaic: include_bytes!("../../../models/earth-view/mosaic.bin"),
};

/// The encoder of the model inside this program, to embed pictures for training.
pub(crate) fn built_in_embedder(device: &Device) -> AlignedEmbedder {
    let Weights { encoder, .. } =
        Weights::from_bytes(BUILT_IN.weights, device).expect("the files in the program are whole");
    AlignedEmbedder::new(encoder, NAME, sha256(BUILT_IN.weights))
}

impl EarthLocator {
    /// The model inside this program.
    pub fn built_in(device: &Device) -> EarthLocator {
        EarthLocator::from_files(&BUILT_IN, EarthLocator::built_in_mosaic(), device)
            .expect("the files in the program are whole")
    }

    /// The mosaic of the model inside this program.
    pub fn built_in_mosaic() -> Mosaic {
        Mosaic::in_program(BUILT_IN.mosaic)
    }

    /// Opens weights, gallery and mosaic of a directory.
    pub fn open(directory: &ModelDirectory, device: &Device) -> Result<EarthLocator, InvalidModel> {
        directory.expect(ModelKind::EarthView)?;
        let read = |name: &str| {
            let path = directory.path().join(name);
            std::fs::read(&path).map_err(InvalidModel::file("read", path))
        };
        let (weights, gallery, mosaic) = (read(WEIGHTS)?, read(GALLERY)?, read(MOSAIC)?);
        let files = Files { weights: &weights, gallery: &gallery, mosaic: &mosaic };
        let mosaic = Mosaic::unpack(&mosaic).map_err(|error| InvalidWeights::Format {
            path: MOSAIC.into(),
            reason: error.to_string(),
        })?;
        let mut model = EarthLocator::from_files(&files, mosaic, device)?;
        model.identity.name = directory.name();
        Ok(model)
    }

    fn from_files(
        files: &Files<'_>,
        mosaic: Mosaic,
        device: &Device,
    ) -> Result<EarthLocator, InvalidWeights> {
        let Weights { encoder, settings, reference } = Weights::from_bytes(files.weights, device)?;
        let gallery = Gallery::from_bytes(files.gallery)?;
        let [narrowest, widest] = gallery.widths_km().map(rounded);
        let all = [files.weights, files.gallery, files.mosaic].map(sha256).concat();
        let identity = ModelIdentity {
            name: NAME.to_owned(),
            version: sha256(all.as_bytes())[..16].to_owned(),
            description: format!(
                "search and registration for views of the Earth from above, about {narrowest} to {widest} km wide",
            ),
            calibrated: settings.calibrated,
            prior: Some("some of the picture is land".to_owned()),
        };
        let atlas = Atlas { encoder, gallery, mosaic, settings };
        Ok(EarthLocator { atlas, reference, identity })
    }

    /// Writes a directory with a gallery and a mosaic of other imagery, for views of these widths, and the encoder and
    /// settings of the model inside the program. `progress` is called with the number of maps that are done and of all.
    pub fn build(
        imagery: &Imagery,
        widths_km: [f64; 2],
        directory: &Path,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<(), InvalidModel> {
        let Weights { encoder, settings, .. } =
            Weights::from_bytes(BUILT_IN.weights, &Device::flex())?;
        let mosaic = imagery.pack(BUILT_ROWS, BUILT_QUALITY);
        let gallery = Gallery::build(&encoder, imagery, widths_km, Precision::SMALL, progress);
        let card = format!(
            "# earth-view, built on this machine\n\nMade by `locdiff earth build`: the encoder and the settings of earth-view, a gallery of {} maps for views of about {} to {} km, and a mosaic of {:.1} km per pixel. Its probabilities are not calibrated for this gallery.\n",
            gallery.maps().len(),
            rounded(widths_km[0]),
            rounded(widths_km[1]),
            imagery.texel_km().max(20_015.0 / BUILT_ROWS as f64),
        );
        EarthLocator::save(&encoder, &settings, &gallery, &mosaic, directory, &card)
    }

    /// Writes a directory.
    pub fn save(
        encoder: &AlignedEncoder,
        settings: &AtlasSettings,
        gallery: &Gallery,
        mosaic: &[u8],
        directory: &Path,
        card: &str,
    ) -> Result<(), InvalidModel> {
        let make = InvalidModel::file("make", directory.to_owned());
        std::fs::create_dir_all(directory).map_err(make)?;
        let weights = Weights::to_bytes(encoder, settings);
        let gallery = gallery.to_bytes();
        for (name, contents) in [
            (WEIGHTS, &weights[..]),
            (GALLERY, &gallery),
            (MOSAIC, mosaic),
            (CARD, card.as_bytes()),
        ] {
            let path = directory.join(name);
            std::fs::write(&path, contents).map_err(InvalidModel::file("write", path))?;
        }
        write_config(directory, ModelKind::EarthView, json!({}), &[WEIGHTS, GALLERY, MOSAIC])
    }

    /// What it looks things up in.
    pub fn atlas(&self) -> &Atlas {
        &self.atlas
    }

    /// The descriptors of the built-in test picture: when the weights were written, and now.
    pub(crate) fn test(&self) -> (&[f32], Vec<f32>) {
        (&self.reference, embedding(&self.atlas.encoder, &Photo::test_picture()))
    }

    fn answer(
        &self,
        photo: &Photo,
        inference: &Inference,
        within: &[Constraint],
    ) -> Result<Located, NotItsKind> {
        if deviation(&photo.square(VIEW as u32)) < LEAST_CONTRAST {
            return Err(NotItsKind::Other("the picture has only one color".to_owned()));
        }
        let widths_km = self.atlas.gallery.widths_km();
        let [narrowest, widest] = widths_km.map(rounded);
        let range = widths_km[0] / WIDTH_MARGIN..=widths_km[1] * WIDTH_MARGIN;
        if let Some(width) = inference.width_km.filter(|width| !range.contains(width)) {
            let mut why = format!(
                "width_km is {width:.0}, the gallery has views of about {narrowest} to {widest} km"
            );
            if width < widths_km[0] {
                why.push_str("; make a gallery of narrower views with `locdiff earth build`");
            }
            return Err(NotItsKind::Other(why));
        }
        let known = Known { within, width_km: inference.width_km };
        let search = || self.atlas.search(photo, &known);
        let findings = if inference.registration {
            let searched = self.atlas.mosaic.while_unpacking(search);
            self.atlas.registered(photo, searched, &known)
        } else {
            self.atlas.unregistered(search(), &known)
        };
        let is_inside = |finding: &&Finding| {
            within.iter().all(|constraint| constraint.area().contains(finding.middle()))
        };
        let is_probable = |finding: &&Finding| {
            let settings = &self.atlas.settings;
            let least = match finding.registration {
                Some(_) => settings.least_probability,
                None => settings.least_search_probability,
            };
            finding.probability >= least
        };
        let best = findings.iter().find(is_inside).filter(is_probable);
        let Some(best) = best else {
            if findings.first().is_some_and(|elsewhere| is_probable(&elsewhere)) {
                let names: Vec<String> = within.iter().map(Constraint::to_string).collect();
                let reason = "the picture shows a place outside of this area".to_owned();
                return Err(NotItsKind::Outside { within: names.join(" and "), reason });
            }
            let why = format!(
                "no place on Earth matches the picture; it may show clouds, the sea, less than {narrowest} km, more than {widest} km, or \
                 something else"
            );
            return Err(NotItsKind::Other(why));
        };
        let footprint = best.registration.as_ref().and_then(footprint);
        let density = density(&findings, &self.atlas.settings.errors);
        Ok(Located { footprint, ..Located::from(density) })
    }
}

/// To two digits: 93, 200 and 2,100.
fn rounded(km: f64) -> String {
    let step = 10_f64.powf(km.log10().floor() - 1.0);
    let km = (km / step).round() * step;
    if km < 1000.0 {
        format!("{km:.0}")
    } else {
        format!("{:.0},{:03.0}", (km / 1000.0).floor(), km % 1000.0)
    }
}

/// What is in a file of weights.
#[derive(Debug)]
pub struct Weights {
    /// Network that describes views.
    pub encoder: AlignedEncoder,
    /// What evidence counts.
    pub settings: AtlasSettings,
    reference: Vec<f32>,
}

impl Weights {
    /// Reads a file.
    pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<Weights, InvalidWeights> {
        let (weights, about) = PackedWeights::from_bytes(bytes)?;
        let wrong = |reason: String| InvalidWeights::Format { path: NAME.into(), reason };
        let settings = about.get(SETTINGS).ok_or_else(|| wrong("it has no settings".to_owned()))?;
        let settings: AtlasSettings =
            serde_json::from_str(settings).map_err(|error| wrong(error.to_string()))?;
        if let Some(problem) = settings.encoder.problem(weights.count()) {
            return Err(wrong(problem));
        }
        let encoder = weights.apply(ENCODER, settings.encoder.init(device))?;
        let reference = weights.numbers(REFERENCE).unwrap_or_default().to_vec();
        Ok(Weights { encoder, settings, reference })
    }

    /// The content of `model.safetensors`.
    pub fn to_bytes(encoder: &AlignedEncoder, settings: &AtlasSettings) -> Vec<u8> {
        let mut weights = PackedWeights::default();
        weights.add(ENCODER, encoder);
        let text = serde_json::to_string(settings).expect("plain numbers");
        let bytes = weights.to_bytes(&[(SETTINGS, &text)]);
        // What the rounded weights give.
        let rounded = Weights::from_bytes(&bytes, &Device::flex()).expect("what was just written");
        let reference = embedding(&rounded.encoder, &Photo::test_picture());
        weights.add_numbers(REFERENCE, vec![reference.len()], reference);
        weights.to_bytes(&[(SETTINGS, &text)])
    }
}

fn embedding(encoder: &AlignedEncoder, photo: &Photo) -> Vec<f32> {
    Query::new(encoder, &photo.square(VIEW as u32)).upright()
}

fn footprint(registration: &Registration) -> Option<Footprint> {
    let place = |(latitude, longitude): (f64, f64)| LatLon::new(latitude, longitude).ok();
    let [a, b, c, d] = registration.corners.map(place);
    Some(Footprint {
        corners: [a?, b?, c?, d?],
        middle: place(registration.found.middle)?,
        heading_degrees: registration.found.heading_degrees,
        width_km: registration.found.width_km,
        likeness: registration.likeness,
    })
}

/// Of the brightness.
fn deviation(pixels: &[u8]) -> f64 {
    let values = || {
        pixels.chunks_exact(3).map(|pixel| pixel.iter().map(|x| f64::from(*x)).sum::<f64>() / 3.0)
    };
    let count = (pixels.len() / 3) as f64;
    let mean = values().sum::<f64>() / count;
    (values().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

impl LocationModel for EarthLocator {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn rejects_pictures(&self) -> bool {
        true
    }

    fn check(&self, inference: &Inference) -> Result<Vec<String>, InvalidInference> {
        inference.expect_one_pass(&self.identity.name, &[1])?;
        Ok(Vec::new())
    }

    fn locate(&self, photos: &[Photo], inference: &Inference) -> Vec<Result<Located, NotItsKind>> {
        self.locate_within(photos, inference, &[])
    }

    fn locate_within(
        &self,
        photos: &[Photo],
        inference: &Inference,
        within: &[Constraint],
    ) -> Vec<Result<Located, NotItsKind>> {
        photos.iter().map(|photo| self.answer(photo, inference, within)).collect()
    }

    fn compares_with_maps(&self) -> bool {
        true
    }

    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        photos.iter().map(|photo| embedding(&self.atlas.encoder, photo)).collect()
    }
}
