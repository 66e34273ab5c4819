//! From photographs to embeddings: preprocessing and network together.

use std::fs::File;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use burn::tensor::{Device, Tensor, TensorData};

use super::embedder::Embedder;
use super::reading::Reading;
use super::record::EncoderRecord;
use super::vision_transformer::{Family, InvalidEncoder, VisionTransformer, weights_in};
use crate::checksum::Checksum;
use crate::photo::{Crops, Photo, Preprocessing};

/// Pictures that a thread encodes together: products of several are a little more efficient, and
/// their tokens still stay in its core's cache.
const PICTURES_AT_ONCE: usize = 4;

/// A frozen encoder of images.
///
/// ```no_run
/// use locdiff::Photo;
/// use locdiff::encoders::ImageEncoder;
/// let encoder = ImageEncoder::open("dinov2-small".as_ref(), &Default::default())?;
/// let embedding = encoder.embed_photo(&Photo::open("photo.jpg")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ImageEncoder {
    network: VisionTransformer,
    preprocessing: Preprocessing,
    record: EncoderRecord,
}

impl ImageEncoder {
    /// From a directory in Hugging Face layout (`model.safetensors` or `pytorch_model.bin`,
    /// `config.json`, `preprocessor_config.json`), or a file of weights alone, whose pictures
    /// are then prepared as its authors do.
    pub fn open(path: &Path, device: &Device) -> Result<ImageEncoder, InvalidEncoder> {
        ImageEncoder::open_as(&Reading::Published, path, device)
    }

    /// The same in another way than in the files.
    pub fn open_as(
        reading: &Reading,
        path: &Path,
        device: &Device,
    ) -> Result<ImageEncoder, InvalidEncoder> {
        let said = path.join("preprocessor_config.json");
        let said = match std::fs::read_to_string(&said) {
            Ok(text) => Some(
                Preprocessing::from_preprocessor_config(&text)
                    .map_err(|error| InvalidEncoder::file(&said, error.to_string()))?,
            ),
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => None,
            Err(error) => return Err(InvalidEncoder::file(&said, error.to_string())),
        };
        let said = reading.preprocessing().or(said);
        let size = said.as_ref().map(|said| said.crop as usize);
        let mut network = VisionTransformer::open(path, size, device)?;
        let preprocessing = match (said, network.config().family) {
            (Some(said), _) => said,
            (None, Family::Clip) => {
                let size = network.config().image_size as u32;
                Preprocessing { shortest_side: size, crop: size, ..Preprocessing::CLIP }
            }
            (None, Family::Dinov2) => {
                let usual = Preprocessing::DINO_V2;
                // Trained on larger pictures than it is used for.
                network = VisionTransformer::open(path, Some(usual.crop as usize), device)?;
                usual
            }
        };
        if *reading == Reading::ClassToken {
            network = network.without_head();
        }
        let record = record_of(&weights_in(path)?, &network, &preprocessing)?;
        let mut encoder = ImageEncoder { network, preprocessing, record };
        let pixels = encoder.preprocessing.apply(&Photo::test_picture());
        encoder.record.test_embedding = encoder.embed_pixels(pixels);
        Ok(encoder)
    }

    /// The same encoder under the name by which it is fetched, and the commit on the hub.
    pub fn named(mut self, name: &str, revision: Option<&str>) -> ImageEncoder {
        self.record.name = Some(name.to_owned());
        self.record.revision = revision.map(str::to_owned);
        self
    }

    /// The Vision Transformer behind the preprocessing.
    pub fn network(&self) -> &VisionTransformer {
        &self.network
    }

    /// The embedding of one photograph.
    pub fn embed_photo(&self, photo: &Photo) -> Vec<f32> {
        self.embed_photos(std::slice::from_ref(photo), &Crops::Single)
    }

    fn forward(&self, pixels: Vec<f32>) -> Vec<f32> {
        let size = self.preprocessing.crop as usize;
        let shape = [pixels.len() / self.preprocessing.len(), 3, size, size];
        let pixels = Tensor::<4>::from_data(TensorData::new(pixels, shape), &self.network.device());
        let embeddings = self.network.forward(pixels).into_data_as::<f32>();
        embeddings.try_into_vec().expect("just made of f32")
    }
}

impl Embedder for ImageEncoder {
    fn record(&self) -> &EncoderRecord {
        &self.record
    }

    fn width(&self) -> usize {
        self.network.config().embedding
    }

    fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    fn embed_pixels(&self, pixels: Vec<f32>) -> Vec<f32> {
        let each = self.preprocessing.len();
        assert!(pixels.len().is_multiple_of(each), "pixels of whole pictures");
        // On the CPU each thread takes pictures of its own: nothing to wait for, and a
        // picture's tokens stay in its core's cache. A single picture is shared by all.
        let on_cpu = crate::tensors::fused::is_cpu(&self.network.device());
        if !on_cpu || pixels.len() == each {
            return self.forward(pixels);
        }
        // One job for each thread, not one for each picture: a thread that waits for another
        // pool takes further jobs meanwhile, and would hold them.
        let count = pixels.len() / each;
        let at_once = count.div_ceil(rayon::current_num_threads()).clamp(1, PICTURES_AT_ONCE);
        let parts: Vec<&[f32]> = pixels.chunks(at_once * each).collect();
        let (next, embeddings) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); parts.len()]));
        rayon::broadcast(|_| {
            alone(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    let Some(part) = parts.get(k) else { return };
                    let embedding = self.forward(part.to_vec());
                    embeddings.lock().unwrap_or_else(PoisonError::into_inner)[k] = embedding;
                }
            });
        });
        embeddings.into_inner().unwrap_or_else(PoisonError::into_inner).concat()
    }
}

/// Runs something on one thread, whatever it would share among the threads of rayon.
fn alone<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread_local! {
        static ALONE: Option<rayon::ThreadPool> =
            rayon::ThreadPoolBuilder::new().num_threads(1).build().ok();
    }
    ALONE.with(|pool| match pool {
        Some(pool) => pool.install(work),
        None => work(),
    })
}

/// What is known of an encoder without asking it. Any change of weights, network or preprocessing shows.
fn record_of(
    weights: &Path,
    network: &VisionTransformer,
    preprocessing: &Preprocessing,
) -> Result<EncoderRecord, InvalidEncoder> {
    let failed = |error: std::io::Error| InvalidEncoder::file(weights, error.to_string());
    let mut digest = Checksum::default();
    let mut file = File::open(weights).map_err(failed)?;
    std::io::copy(&mut file, &mut digest).map_err(failed)?;
    let sum = digest.clone().finish();
    let config = network.config();
    let Preprocessing { shortest_side, crop, mean, std, square_first } = preprocessing;
    // Written out: models store the checksum of this line, so it must not change.
    digest.update(format!(
        "{config:?} Preprocessing {{ shortest_side: {shortest_side:?}, crop: {crop:?}, mean: {mean:?}, std: {std:?} }}"
    ));
    if *square_first {
        digest.update("square first");
    }
    let family = match config.family {
        Family::Clip => "clip",
        Family::Dinov2 => "dinov2",
    };
    let identity = format!(
        "{family} {}×{}/{} id:{} resize {shortest_side} crop {crop}",
        config.token_width,
        config.layers,
        config.patch_size,
        digest.finish_short(),
    );
    Ok(EncoderRecord {
        sha256: Some(sum),
        preprocessing: Some(preprocessing.clone()),
        ..EncoderRecord::of_identity(identity)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tiny_clip() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../parity/vision/clip-quick-gelu")
    }

    #[test]
    fn pictures_are_embedded_as_one_by_one() {
        let encoder = ImageEncoder::open(&tiny_clip(), &Device::flex()).expect("it is there");
        let each = encoder.preprocessing().len();
        let pixels: Vec<f32> = (0..11 * each).map(|k| (k as f32 * 0.37).sin()).collect();
        let alone: Vec<f32> = pixels
            .chunks(each)
            .flat_map(|picture| encoder.embed_pixels(picture.to_vec()))
            .collect();
        assert_eq!(alone.len(), 11 * encoder.width());
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let together = pool.expect("threads").install(|| encoder.embed_pixels(pixels.clone()));
            let largest =
                together.iter().zip(&alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(largest < 1e-5 && together.len() == alone.len(), "{threads}: {largest:e}");
        }
        assert_eq!(encoder.embed_pixels(Vec::new()), Vec::<f32>::new());
    }

    #[test]
    fn the_identity_shows_any_change() {
        let folder = tempfile::tempdir().expect("a directory");
        for file in ["config.json", "model.safetensors"] {
            fs::copy(tiny_clip().join(file), folder.path().join(file)).expect("a copy");
        }
        let identity = || {
            let encoder = ImageEncoder::open(folder.path(), &Device::flex()).expect("it is there");
            encoder.record().identity.clone()
        };
        let before = identity();
        assert_eq!(before, identity());
        let config = fs::read_to_string(folder.path().join("config.json")).expect("text");
        let other = config.replace("quick_gelu", "gelu");
        fs::write(folder.path().join("config.json"), other).expect("written");
        assert_ne!(before, identity());
        // Pictures of another size, prepared with other means.
        let said = r#"{"do_resize": true, "size": {"shortest_edge": 32}, "do_center_crop": true,
            "crop_size": {"height": 32, "width": 32}, "do_rescale": true, "do_normalize": true,
            "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 3}"#;
        fs::write(folder.path().join("config.json"), config).expect("written");
        fs::write(folder.path().join("preprocessor_config.json"), said).expect("written");
        assert_ne!(before, identity());
        fs::write(folder.path().join("preprocessor_config.json"), "{").expect("written");
        let error = ImageEncoder::open(folder.path(), &Device::flex()).expect_err("no JSON");
        assert!(error.to_string().contains("preprocessor_config.json"), "{error}");
    }
}
