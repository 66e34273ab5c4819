//! The simulation as data sets of the product: MP16's places with several made-up images each to learn from, Im2GPS3k's
//! with one to be asked about.

use std::path::Path;

use anyhow::Result;
use burn::tensor::Device;
use locdiff::encoders::EncoderRecord;
use locdiff_experiments::paper::{KEPT, WHEEL, im2gps3k};
use locdiff_experiments::simulation::{Simulation, Split};
use locdiff_train::{Dataset, Layout, Numbers, OnBadShard, ShardWriter};

/// So many that few are seen twice in the longest training.
const IMAGES_PER_PLACE: usize = 4;
const IMAGE_SEED: u64 = 6;
/// What the answers' keys say of the data.
pub const DATA: &str = "simulation 1: seed 5, 4 images per place, half precision";
/// Sampled rows take every sixth place: 500.
pub const EVERY: usize = 6;

pub struct Task {
    pub simulation: Simulation,
    pub test: Split,
    pub train: Dataset,
}

impl Task {
    /// Needs GeoCLIP's wheel and the folder that `LOCDIFF_DATA` names.
    pub fn build() -> Result<Task> {
        let kept = Path::new(KEPT);
        let mut simulation = Simulation::cached(Path::new(WHEEL), kept, &Device::flex())?;
        simulation.add_images(IMAGES_PER_PLACE, kept)?;
        let folder = kept.join("embeddings");
        if !folder.join("shard-00000.parquet").exists() {
            let layout = Layout {
                encoder: EncoderRecord::of_identity("geoclip location embedding with noise"),
                width: simulation.width,
                views: 1,
                numbers: Numbers::F16,
            };
            let mut writer = ShardWriter::create(&folder, layout, Default::default())?;
            let Split { places, conditions } = &simulation.train;
            for (k, (place, row)) in
                places.iter().zip(conditions.chunks_exact(simulation.width)).enumerate()
            {
                writer.write(&k.to_string(), *place, row)?;
            }
            writer.finish()?;
        }
        let train = Dataset::open(&folder.display().to_string(), OnBadShard::Fail)?;
        let test = simulation.images_of(&im2gps3k()?, IMAGE_SEED);
        Ok(Task { simulation, test, train })
    }
}
