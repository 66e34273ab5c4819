//! GeoCLIP as a whole: CLIP's image tower, GeoCLIP's head, and places to choose among.
//!
//! The softmax over places is what GeoCLIP's own code calls a probability. Nobody has calibrated it, and over its gallery it
//! inherits where the gallery's photographs were taken; so the answer says both. Point masses have no
//! regions or modes: they are spread by a kernel, as wide as the gallery's "city level" or as the even
//! grid's spacing asks for, and the answer says that too.

use std::path::Path;

use burn::tensor::{Tensor, TensorData};
use locdiff_sphere::{Anchors, Kernel, LatLon, PointMasses};

use super::embedded_places::EmbeddedPlaces;
use super::image_head::ImageHead;
use super::parts::GeoClip;
use crate::encoders::{Embedder, ImageEncoder};
use crate::locate::{
    Inference, InvalidInference, Located, LocationModel, ModelIdentity, NotItsKind,
};
use crate::models::{CannotOpen, EncoderSource, MissingPart, ModelHome, OpenOptions};
use crate::photo::{Crops, Photo};

/// The image encoder that GeoCLIP stands on, by its name here.
const BACKBONE: &str = "clip-vit-l-14";
/// Views that stand for ten crops.
const TEN: usize = 10;
/// Places of the even grid: 71 km from one to the next.
const EVEN_PLACES: usize = 100_000;
/// A little less than that, so that no holes show between the places.
const EVEN_KERNEL_KM: f64 = 50.0;

/// GeoCLIP with everything that it needs to locate photographs.
#[derive(Debug)]
pub struct GeoClipLocator {
    encoder: ImageEncoder,
    head: ImageHead,
    logit_scale: f32,
    places: Vec<LatLon>,
    embedded: EmbeddedPlaces,
    kernel: Kernel,
    identity: ModelIdentity,
}

impl GeoClipLocator {
    /// The model in the home of models. The places are encoded if that wasn't done before, which takes up to a
    /// minute, and kept in the home's cache; `progress` hears how many of how many are done.
    pub fn open(
        directory: &Path,
        even: bool,
        options: &OpenOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<GeoClipLocator, CannotOpen> {
        let (geoclip, encoder) = open_parts(directory, options)?;
        let (places, kernel, prior) = if even {
            let kernel = Kernel::new(EVEN_KERNEL_KM).expect("a width");
            (
                Anchors::fibonacci(EVEN_PLACES).places().to_vec(),
                kernel,
                "every square kilometer is as likely as any other, sea included",
            )
        } else {
            (
                geoclip.gallery.clone(),
                Kernel::default(),
                "photographs are taken where those of its gallery (MP16) were",
            )
        };
        let digest = digest_of(&geoclip, &places);
        let cache = options.home()?.cache().join(format!("geoclip-places-{digest}.bin"));
        let embedded = match EmbeddedPlaces::read(&cache, &digest, places.len()) {
            Some(embedded) => embedded,
            None => {
                let mut progress = |done| progress(done, places.len());
                let embedded =
                    EmbeddedPlaces::encode(&geoclip.location_encoder, &places, &mut progress);
                // A cache that can't be written costs time, not the answer.
                let _ = embedded.write(&cache, &digest);
                embedded
            }
        };
        let over = if even { "an even grid of" } else { "its gallery of" };
        let identity = ModelIdentity {
            name: if even { "geoclip-even" } else { "geoclip" }.to_owned(),
            version: format!("{digest}; {}", encoder.record().identity),
            description: format!("GeoCLIP over {over} {} places", thousands(places.len())),
            calibrated: false,
            prior: Some(prior.to_owned()),
        };
        let logit_scale = geoclip.logit_scale();
        Ok(GeoClipLocator {
            encoder,
            head: geoclip.image_head,
            logit_scale,
            places,
            embedded,
            kernel,
            identity,
        })
    }

    /// The first part that isn't on this machine.
    pub fn missing(directory: &Path, home: &ModelHome) -> Option<MissingPart> {
        GeoClipLocator::missing_with(directory, home, &EncoderSource::Installed)
    }

    fn missing_with(
        directory: &Path,
        home: &ModelHome,
        encoder: &EncoderSource,
    ) -> Option<MissingPart> {
        if !directory.join("config.json").is_file() {
            return Some(MissingPart {
                part: "GeoCLIP's head, location encoder and gallery".to_owned(),
                looked_in: directory.to_owned(),
                remedy: "Get it with `locdiff model fetch geoclip`, or, if you have the wheel, \
                    `locdiff model import geoclip geoclip-1.3.0-py3-none-any.whl`"
                    .to_owned(),
            });
        }
        if !matches!(encoder, EncoderSource::Path(_)) && home.encoder(BACKBONE).is_none() {
            return Some(MissingPart {
                part: "the image encoder CLIP ViT-L/14".to_owned(),
                looked_in: home.model(BACKBONE),
                remedy: format!(
                    "Get it with `locdiff model fetch {BACKBONE}`, or, if you have its files, \
                     `locdiff model import encoder {BACKBONE} DIRECTORY`"
                ),
            });
        }
        None
    }

    /// The places that it chooses among.
    pub fn places(&self) -> &[LatLon] {
        &self.places
    }

    /// GeoCLIP's logit of every place, for each photograph in some crops of it.
    pub fn logits(&self, photos: &[Photo], crops: &Crops) -> Vec<Vec<f32>> {
        let scaled = |mut mean: Vec<f32>| {
            mean.iter_mut().for_each(|number| *number *= self.logit_scale);
            self.embedded.products(&mean)
        };
        self.embeddings(photos, crops).into_iter().map(scaled).collect()
    }

    /// For each photograph, the mean of its crops' embeddings beside the places'.
    fn embeddings(&self, photos: &[Photo], crops: &Crops) -> Vec<Vec<f32>> {
        if photos.is_empty() {
            return Vec::new();
        }
        let features = self.encoder.embed_photos(photos, crops);
        let rows = photos.len() * crops.count();
        let features = TensorData::new(features, [rows, self.encoder.width()]);
        let device = self.encoder.network().device();
        let embeddings = self.head.embed(Tensor::from_data(features, &device));
        let embeddings: Vec<f32> = embeddings.into_data_as::<f32>().try_into_vec().expect("f32");
        let (count, width) = (crops.count(), self.head.width());
        embeddings
            .chunks_exact(count * width)
            .map(|crops_of_one| {
                // The mean of logits is the logit of the mean embedding.
                let mut mean = vec![0.0; width];
                for crop in crops_of_one.chunks_exact(width) {
                    mean.iter_mut().zip(crop).for_each(|(sum, number)| *sum += number);
                }
                let factor = 1.0 / count as f32;
                mean.iter_mut().for_each(|number| *number *= factor);
                mean
            })
            .collect()
    }
}

impl LocationModel for GeoClipLocator {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn check(&self, inference: &Inference) -> Result<Vec<String>, InvalidInference> {
        inference.expect_one_pass(&self.identity.name, &[1, TEN])?;
        Ok(Vec::new())
    }

    fn locate(&self, photos: &[Photo], inference: &Inference) -> Vec<Result<Located, NotItsKind>> {
        // Ten are the crops that its authors evaluate with.
        let crops = if inference.views == TEN { Crops::TEN_CROP } else { Crops::Single };
        let located = |logits: Vec<f32>| {
            let logits: Vec<f64> = logits.into_iter().map(f64::from).collect();
            PointMasses::from_logits(self.places.clone(), &logits)
                .map(|masses| masses.spread(self.kernel).into())
                .map_err(|error| NotItsKind::Other(format!("its logits are not numbers: {error}")))
        };
        self.logits(photos, &crops).into_iter().map(located).collect()
    }

    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        self.embeddings(photos, &Crops::Single)
    }
}

/// The trained parts, and the image encoder that they stand on.
pub(super) fn open_parts(
    directory: &Path,
    options: &OpenOptions,
) -> Result<(GeoClip, ImageEncoder), CannotOpen> {
    let home = options.home()?;
    if let Some(MissingPart { part, looked_in, remedy }) =
        GeoClipLocator::missing_with(directory, &home, &options.encoder)
    {
        let missing = format!("{part} is not in {}", looked_in.display());
        return Err(CannotOpen::Missing { model: "geoclip".to_owned(), missing, remedy });
    }
    let device = &options.device()?;
    let geoclip = GeoClip::open(directory, device)?;
    let backbone = match &options.encoder {
        EncoderSource::Path(path) => path.clone(),
        _ => home.encoder(BACKBONE).unwrap_or_else(|| home.model(BACKBONE)),
    };
    let encoder = ImageEncoder::open(&backbone, device)?;
    let (found, expected) = (encoder.width(), geoclip.image_head.feature_width());
    if found != expected {
        return Err(CannotOpen::Missing {
            model: "geoclip".to_owned(),
            missing: format!(
                "the image encoder in {} has {found} features, GeoCLIP's head needs {expected}",
                backbone.display()
            ),
            remedy: format!("Get CLIP ViT-L/14 with `locdiff model fetch {BACKBONE}`"),
        });
    }
    Ok((geoclip, encoder))
}

/// Changes with the weights and the places.
fn digest_of(geoclip: &GeoClip, places: &[LatLon]) -> String {
    let mut digest = geoclip.checksum();
    for place in places {
        digest.update(place.latitude().to_le_bytes());
        digest.update(place.longitude().to_le_bytes());
    }
    digest.finish_short()
}

fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
