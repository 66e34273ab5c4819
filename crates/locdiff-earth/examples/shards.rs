//! Writes views of one source to a shard, for tests and calibration.
//! `cargo run --release --example shards SOURCE SEED COUNT SIZE OUT [plain|training] [land|sea]`
#![expect(clippy::print_stdout, reason = "a program")]

mod shared;

use std::path::Path;

use locdiff_earth::{Light, Renderer, Shows, Style, read_shard, write_shard};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [source, seed, count, size, out, options @ ..] = &words[..] else {
        return Err("usage: shards SOURCE SEED COUNT SIZE OUT [plain|training] [land|sea]".into());
    };
    let folders = shared::Folders::from_environment();
    let mask = folders.mask()?;
    let imagery = folders.open(source, &mask)?;
    let night = imagery.light() == Light::Night;
    // Night views need a day for the moon to shine on.
    let mut renderer = if night {
        let day = folders.open("may", &mask)?;
        Renderer::new(mask, vec![day], vec![imagery])
    } else {
        Renderer::new(mask, vec![imagery], vec![])
    };
    let style =
        if options.iter().any(|word| word == "plain") { Style::plain() } else { Style::training() };
    renderer.style = Style { night_share: if night { 1.0 } else { 0.0 }, ..style };
    if options.iter().any(|word| word == "sea") {
        renderer.framing.shows = Shows::OpenSea;
    }
    let views = renderer.render_batch(seed.parse()?, count.parse()?, size.parse()?);
    write_shard(Path::new(out), &views)?;
    println!("{out}: {} views of {source}", read_shard(Path::new(out))?.len());
    Ok(())
}
