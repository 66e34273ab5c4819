//! Views per second on one thread, and what opening costs.
//! `cargo run --release --example speed [views] [size]`
#![expect(clippy::print_stdout, reason = "a program")]

mod shared;

use std::time::Instant;

use locdiff_earth::{Renderer, Style};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().map_or(Ok(3000), |word| word.parse())?;
    let size: usize = arguments.next().map_or(Ok(64), |word| word.parse())?;
    let folders = shared::Folders::from_environment();
    let mask = folders.mask()?;
    let open = |name: &str| {
        let start = Instant::now();
        let imagery = folders.open(name, &mask)?;
        let gigabytes = imagery.bytes() as f64 / 1e9;
        println!("{name}: {gigabytes:.2} GB in {:.1} s", start.elapsed().as_secs_f64());
        Ok::<_, Box<dyn std::error::Error>>(imagery)
    };
    let day =
        ["blue-marble", "bmng", "may"].iter().map(|name| open(name)).collect::<Result<_, _>>()?;
    let night = vec![open("black-marble")?];
    let mut renderer = Renderer::new(mask, day, night);
    let training = Style::training();
    for (name, style) in [
        ("plain", Style::plain()),
        ("training", training),
        ("training by day", Style { night_share: 0.0, ..training }),
        ("training by day, no JPEG", Style { night_share: 0.0, jpeg_share: 0.0, ..training }),
        ("training by night", Style { night_share: 1.0, ..training }),
    ] {
        renderer.style = style;
        renderer.render(0, 0, size);
        let start = processor_seconds()?;
        for number in 0..count {
            std::hint::black_box(renderer.render(1, number, size));
        }
        let seconds = processor_seconds()? - start;
        println!("{name}: {:.0} views of {size} px per second of one core", count as f64 / seconds);
    }
    Ok(())
}

/// Time that this thread has run: on a machine shared with builds, the clock on the wall says less.
fn processor_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = statistics.split(' ').next().unwrap_or_default().parse::<f64>()?;
    Ok(nanoseconds * 1e-9)
}
