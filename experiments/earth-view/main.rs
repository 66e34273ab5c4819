//! The model earth-view: training, packing and evaluation. See `run` and the model card.

mod aligned_train;
mod astronaut;
mod embeddings;
mod outcomes;
mod pack;
mod pairs;
mod pictures;
mod predictions;
mod real;
mod recogniser;
mod report;
mod retrieval;
mod search;
mod sets;
mod sheet;
mod train;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "earth-view align DIRECTORY STEPS [THREADS]
earth-view pack-aligned DIRECTORY WEIGHTS
earth-view gallery WEIGHTS FILE FROM_KM TO_KM
earth-view search WEIGHTS GALLERY RESULTS [SET VIEWS]
earth-view train DIRECTORY STEPS DECAY_STEPS [MINUTES]
earth-view sheet PICTURE
earth-view examples FOLDER
earth-view report
earth-view real
earth-view pack DIRECTORY WEIGHTS
earth-view embed WEIGHTS TRAINING_VIEWS TEST_VIEWS
earth-view denoise WEIGHTS
earth-view predict WEIGHTS PREDICTIONS VIEWS GALLERY";

const FOLDER: &str = "experiments/earth-view";

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |k: usize| -> Result<&str> { Ok(arguments.get(k).context(USAGE)?) };
    let number = |k: usize| -> Result<u64> { Ok(text(k)?.parse()?) };
    match text(0)? {
        "train" => {
            let recipe = train::Recipe {
                batch: 128,
                steps: number(2)?,
                decay_steps: number(3)?,
                rate: 1e-3,
                warm_up: 400,
                ema_decay: 0.999,
                seed: 1,
            };
            let minutes = number(4).ok().map(|minutes| Duration::from_secs(60 * minutes));
            train::train(&recipe, Path::new(text(1)?), minutes)
        }
        "align" => {
            let threads = number(3).unwrap_or(2) as usize;
            aligned_train::train(Path::new(text(1)?), number(2)?, threads)
        }
        "pack-aligned" => aligned_train::pack(Path::new(text(1)?), Path::new(text(2)?)),
        "gallery" => {
            let widths_km = [number(3)? as f64, number(4)? as f64];
            search::build(Path::new(text(1)?), Path::new(text(2)?), widths_km)
        }
        "search" => {
            let views = match text(4) {
                Ok(set) => search::rendered_views(set, number(5)? as usize)?,
                Err(_) => search::real_views()?,
            };
            search::search(Path::new(text(1)?), Path::new(text(2)?), views, number(3)? as usize)
        }
        "report" => report::report(Path::new(FOLDER)),
        "real" => {
            let figures = serde_json::Value::Object(real::report()?);
            println!("{figures}");
            Ok(())
        }
        "examples" => sheet::examples(Path::new(text(1)?)),
        "sheet" => sheet::draw(Path::new(text(1)?)),
        "pack" => pack::pack(Path::new(text(1)?), Path::new(text(2)?)),
        "embed" => embeddings::embed(Path::new(text(1)?), number(2)?, number(3)? as usize),
        "predict" => {
            let (views, gallery) = (number(3)? as usize, number(4)? as usize);
            predictions::predict(Path::new(text(1)?), Path::new(text(2)?), views, gallery)
        }
        _ => bail!("{USAGE}"),
    }
}
