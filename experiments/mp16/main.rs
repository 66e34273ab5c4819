//! A small data set with made-up embeddings, so that the chain of `run` can be tried without photographs:
//! `synthetic DIRECTORY ROWS SEED`.

use std::path::Path;

use anyhow::Result;
use locdiff::encoders::EncoderRecord;
use locdiff_experiments::standard_normal;
use locdiff_sphere::{Basis, uniform_place};
use locdiff_train::{Layout, Numbers, ShardWriter};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "synthetic DIRECTORY ROWS SEED";
/// Of the made-up embeddings: harmonics of a place to degree 7, and noise.
const SYNTHETIC_DEGREE: usize = 7;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["synthetic", directory, rows, seed] => {
            synthetic(Path::new(directory), rows.parse()?, seed.parse()?)
        }
        _ => anyhow::bail!(USAGE),
    }
}

fn synthetic(directory: &Path, count: usize, seed: u64) -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let basis = Basis::new(SYNTHETIC_DEGREE);
    let layout = Layout {
        encoder: EncoderRecord::of_identity("made up: harmonics with noise"),
        width: basis.len(),
        views: 1,
        numbers: Numbers::F16,
    };
    let mut writer =
        ShardWriter::create(&directory.join("embeddings"), layout, Default::default())?;
    for number in 0..count {
        let place = uniform_place(&mut rng);
        let encoding = basis.encode(place);
        let numbers: Vec<f32> = encoding
            .as_slice()
            .iter()
            .map(|number| (4.0 * number + 0.3 * standard_normal(&mut rng)) as f32)
            .collect();
        writer.write(&format!("{number:06}.jpg"), place, &numbers)?;
    }
    writer.finish()?;
    Ok(())
}
