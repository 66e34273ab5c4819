//! The model earth-view: training, packing and evaluation. See `run` and the model card.

mod aligned_train;
mod embeddings;
mod examples;
mod findings;
mod fit;
mod pairs;
mod prior;
mod report;
mod search;
mod sets;
mod timing;

use std::path::Path;

use anyhow::{Context, Result, bail};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "earth-view align DIRECTORY STEPS [THREADS]
earth-view pack-aligned DIRECTORY WEIGHTS
earth-view gallery WEIGHTS FILE FROM_KM TO_KM
earth-view mosaic FILE ROWS QUALITY
earth-view assemble WEIGHTS GALLERY MOSAIC SETTINGS DIRECTORY
earth-view search built-in|MODEL [astronaut | SET|other VIEWS]
earth-view examples FOLDER
earth-view fit
earth-view fit-errors
earth-view apply SETTINGS DIRECTORY
earth-view report
earth-view embed TRAINING_VIEWS TEST_VIEWS
earth-view prior-views FOLDER COUNT
earth-view prior MODEL";

fn main() -> Result<()> {
    locdiff_experiments::keep_freed_memory();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |k: usize| -> Result<&str> { Ok(arguments.get(k).context(USAGE)?) };
    let number = |k: usize| -> Result<u64> { Ok(text(k)?.parse()?) };
    match text(0)? {
        "align" => {
            let threads = number(3).unwrap_or(2) as usize;
            aligned_train::train(Path::new(text(1)?), number(2)?, threads)
        }
        "pack-aligned" => aligned_train::pack(Path::new(text(1)?), Path::new(text(2)?)),
        "gallery" => {
            let widths_km = [number(3)? as f64, number(4)? as f64];
            search::build(Path::new(text(1)?), Path::new(text(2)?), widths_km)
        }
        "mosaic" => {
            let mosaic = search::mosaic()?.pack(number(2)? as usize, number(3)? as u8);
            Ok(std::fs::write(text(1)?, mosaic)?)
        }
        "assemble" => {
            let [weights, gallery, mosaic, settings, out] =
                [1, 2, 3, 4, 5].map(|k| text(k).map(Path::new));
            search::assemble(weights?, gallery?, mosaic?, settings?, out?)
        }
        "search" => {
            let locator = search::locator(text(1)?)?;
            let views = match text(2) {
                Ok("astronaut") => search::astronaut_photos()?,
                Ok("other") => search::other_pictures(number(3)? as usize)?,
                Ok(set) => search::rendered_views(set, number(3)? as usize)?,
                Err(_) => search::real_views()?,
            };
            search::search(locator.atlas(), views)
        }
        "fit" => fit::fit(Path::new("experiments/earth-view")),
        "fit-errors" => fit::errors(Path::new("experiments/earth-view")),
        "apply" => search::apply(Path::new(text(1)?), Path::new(text(2)?)),
        "report" => report::report(Path::new("experiments/earth-view")),
        "examples" => examples::draw(Path::new(text(1)?)),
        "embed" => embeddings::embed(number(1)?, number(2)? as usize),
        "prior-views" => prior::views(Path::new(text(1)?), number(2)?),
        "prior" => prior::measure(Path::new("experiments/earth-view"), text(1)?),
        _ => bail!("{USAGE}"),
    }
}
