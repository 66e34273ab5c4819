//! GeoCLIP as a whole: CLIP's image tower, GeoCLIP's head, and places to choose among.
//!
//! The softmax over places is what GeoCLIP's own code calls a probability. Nobody has calibrated it, and over its gallery it
//! inherits where the gallery's photographs were taken; so the answer says both. Point masses have no
//! regions or modes: they are spread by a kernel, as wide as the gallery's "city level" or as the even
//! grid's spacing asks for, and the answer says that too.

use burn::tensor::{Device, Tensor, TensorData};
use locdiff_sphere::{Anchors, Density, Kernel, LatLon, PointMasses};

use super::embedded_places::EmbeddedPlaces;
use super::image_head::ImageHead;
use super::parts::GeoClip;
use crate::checksum::Checksum;
use crate::encoders::ImageEncoder;
use crate::locate::{LocationModel, ModelIdentity, NotItsKind};
use crate::models::{CannotOpen, MissingPart, ModelHome};
use crate::photo::{Photo, Views};

/// The image encoder that GeoCLIP stands on, by its name here.
const BACKBONE: &str = "clip-vit-l-14";
/// Places of the even grid: 71 km from one to the next.
const EVEN_PLACES: usize = 100_000;
/// A little less than that, so that no holes show between the places.
const EVEN_KERNEL_KM: f64 = 50.0;

/// How GeoCLIP is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GeoClipOptions {
    /// Over an even grid of the Earth instead of the gallery.
    pub even: bool,
    /// The mean of ten views of each photograph, as its authors evaluate it.
    pub ten_crop: bool,
}

/// GeoCLIP with everything that it needs to locate photographs.
#[derive(Debug)]
pub struct GeoClipLocator {
    encoder: ImageEncoder,
    head: ImageHead,
    logit_scale: f32,
    places: Vec<LatLon>,
    embedded: EmbeddedPlaces,
    kernel: Kernel,
    views: Views,
    identity: ModelIdentity,
}

impl GeoClipLocator {
    /// The model in the home of models. The places are encoded if that wasn't done before, which takes up to a
    /// minute, and kept in the home's cache; `progress` hears how many of how many are done.
    pub fn open(
        home: &ModelHome,
        options: GeoClipOptions,
        device: &Device,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<GeoClipLocator, CannotOpen> {
        if let Some(MissingPart { part, looked_in, remedy }) = GeoClipLocator::missing(home) {
            let missing = format!("{part} is not in {}", looked_in.display());
            return Err(CannotOpen::Missing { model: "geoclip".to_owned(), missing, remedy });
        }
        let geoclip = GeoClip::open(&home.model("geoclip"), device)?;
        let backbone = home.encoder(BACKBONE).unwrap_or_else(|| home.model(BACKBONE));
        let encoder = ImageEncoder::open(&backbone, device)?;
        let (found, expected) = (encoder.width(), geoclip.image_head.feature_width());
        if found != expected {
            return Err(CannotOpen::Missing {
                model: "geoclip".to_owned(),
                missing: format!(
                    "the image encoder in {} gives {found} features, GeoCLIP's head takes {expected}",
                    backbone.display()
                ),
                remedy: format!("Get CLIP ViT-L/14 with `locdiff model fetch {BACKBONE}`"),
            });
        }
        let (places, kernel, prior) = if options.even {
            let kernel = Kernel::new(EVEN_KERNEL_KM).expect("a width");
            (
                Anchors::fibonacci(EVEN_PLACES).places().to_vec(),
                kernel,
                "every square kilometre is as likely as any other, sea included",
            )
        } else {
            (
                geoclip.gallery.clone(),
                Kernel::default(),
                "photographs are taken where those of its gallery (MP16) were",
            )
        };
        let digest = digest_of(&geoclip, &places);
        let cache = home.cache().join(format!("geoclip-places-{digest}.bin"));
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
        let over = if options.even { "an even grid of" } else { "its gallery of" };
        let views = if options.ten_crop { Views::TEN_CROP } else { Views::Single };
        let identity = ModelIdentity {
            name: if options.even { "geoclip-even" } else { "geoclip" }.to_owned(),
            version: format!(
                "{digest}; {}; {}",
                encoder.identity(),
                if options.ten_crop { "ten crops" } else { "one view" }
            ),
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
            views,
            identity,
        })
    }

    /// The first part that isn't on this machine.
    pub fn missing(home: &ModelHome) -> Option<MissingPart> {
        let directory = home.model("geoclip");
        if !directory.join("config.json").is_file() {
            return Some(MissingPart {
                part: "GeoCLIP's head, location encoder and gallery".to_owned(),
                looked_in: directory,
                remedy: "Get it with `locdiff model fetch geoclip`, or, if you have the wheel, \
                    `locdiff model import geoclip geoclip-1.3.0-py3-none-any.whl`"
                    .to_owned(),
            });
        }
        if home.encoder(BACKBONE).is_none() {
            return Some(MissingPart {
                part: "CLIP ViT-L/14, which looks at the pictures,".to_owned(),
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

    /// GeoCLIP's logit of every place, for each photograph.
    pub fn logits(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        self.logits_of_features(self.features(photos))
    }

    /// What the image encoder makes of each view of each photograph.
    fn features(&self, photos: &[Photo]) -> Vec<f32> {
        let each = self.encoder.preprocessing().len() * self.views.count();
        let mut pixels = vec![0.0; photos.len() * each];
        for (photo, pixels) in photos.iter().zip(pixels.chunks_exact_mut(each)) {
            self.views.prepare_into(photo, self.encoder.preprocessing(), pixels);
        }
        self.encoder.embed(pixels)
    }

    /// The same from the image encoder's features, one view after the other.
    fn logits_of_features(&self, features: Vec<f32>) -> Vec<Vec<f32>> {
        let scaled = |mut mean: Vec<f32>| {
            mean.iter_mut().for_each(|number| *number *= self.logit_scale);
            self.embedded.products(&mean)
        };
        self.embeddings_of_features(features).into_iter().map(scaled).collect()
    }

    /// For each photograph, the mean of its views' embeddings beside the places'.
    fn embeddings_of_features(&self, features: Vec<f32>) -> Vec<Vec<f32>> {
        let rows = features.len() / self.encoder.width();
        if rows == 0 {
            return Vec::new();
        }
        let features = TensorData::new(features, [rows, self.encoder.width()]);
        let device = self.encoder.network().device();
        let embeddings = self.head.embed(Tensor::from_data(features, &device));
        let embeddings: Vec<f32> = embeddings.into_data_as::<f32>().try_into_vec().expect("f32");
        let (views, width) = (self.views.count(), self.head.width());
        embeddings
            .chunks_exact(views * width)
            .map(|views_of_one| {
                // The mean of logits is the logit of the mean embedding.
                let mut mean = vec![0.0; width];
                for view in views_of_one.chunks_exact(width) {
                    mean.iter_mut().zip(view).for_each(|(sum, number)| *sum += number);
                }
                let factor = 1.0 / views as f32;
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

    fn locate(&self, photos: &[Photo]) -> Vec<Result<Density, NotItsKind>> {
        let density = |logits: Vec<f32>| {
            let logits: Vec<f64> = logits.into_iter().map(f64::from).collect();
            PointMasses::from_logits(self.places.clone(), &logits)
                .map(|masses| masses.spread(self.kernel))
                .map_err(|error| NotItsKind::Other(format!("its logits are no numbers: {error}")))
        };
        self.logits(photos).into_iter().map(density).collect()
    }

    fn embed(&self, photos: &[Photo]) -> Vec<Vec<f32>> {
        self.embeddings_of_features(self.features(photos))
    }
}

/// Changes with the weights and the places.
fn digest_of(geoclip: &GeoClip, places: &[LatLon]) -> String {
    let mut digest = Checksum::default();
    for (name, tensor) in geoclip.to_tensors().iter() {
        digest.update(name);
        digest.update(bytemuck::cast_slice::<f32, u8>(&tensor.values));
    }
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
