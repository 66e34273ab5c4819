//! Draws charts and sheets, to be looked at:
//! `cargo run --package locdiff-map --example charts -- DIRECTORY`

use locdiff_map::{Chart, ColourBar, LabelSide, Map, Panels, Picture, Projection, Series, Theme};
use locdiff_sphere::{InvalidPlace, LatLon};
use std::path::PathBuf;

/// Numbers in [−1, 1] that look random and are always the same.
fn noise(index: u32) -> f64 {
    let mixed = (index ^ 0x9e37_79b9).wrapping_mul(0x85eb_ca6b);
    let mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
    f64::from(mixed ^ (mixed >> 16)) / f64::from(u32::MAX) * 2.0 - 1.0
}

fn training() -> Chart {
    let loss = |step: u32| 1.4 + 7.0 / (1.0 + f64::from(step) / 300.0).powf(0.6);
    let train = (1..=20_000).map(move |step| (f64::from(step), loss(step) + 0.12 * noise(step)));
    let validation = (1..=40).map(move |index| {
        let step = index * 500;
        (f64::from(step), loss(step) + 0.25 + 0.2 * (f64::from(step) / 2e4).powi(2))
    });
    Chart::new("step", "loss, nats")
        .line("train", train)
        .series(Series::line("validation", validation).joined())
        .horizontal("GeoCLIP", 2.2)
        .title("Training of the L = 23 model")
        .caption("Each point of the training loss is one batch of 512 images; the validation loss is over 5000 images that were never trained on.")
}

fn reliability() -> Chart {
    let points: Vec<(f64, f64)> =
        (1..10).map(|index| f64::from(index) / 10.0).map(|p| (p, p.powf(1.25))).collect();
    let bars = points.clone().into_iter().map(|(_, y)| (y - 0.04, y + 0.03));
    let other = points.clone().into_iter().map(|(x, y)| (x, 1.0 - (1.0 - y).powf(1.6)));
    Chart::new("stated probability", "share of images inside the region")
        .series(Series::points("diffusion", points).joined().error_bars(bars))
        .series(Series::points("retrieval", other).joined())
        .diagonal("calibrated")
        .x_range(0.0..=1.0)
        .y_range(0.0..=1.0)
        .width_px(640)
        .height_px(560)
        .title("Are credible regions credible?")
}

fn recall() -> Chart {
    let curve = |scale: f64| {
        (0..60)
            .map(move |index| 10f64.powf(f64::from(index) / 14.0))
            .map(move |km| (km, 1.0 - 1.0 / (1.0 + (km / scale).powf(0.7))))
    };
    let names = ["GeoCLIP", "PIGEON", "ours, one pass", "ours, 20 steps", "retrieval", "chance"];
    let scales = [300.0, 200.0, 140.0, 110.0, 520.0, 9000.0];
    names.iter().zip(scales).fold(
        Chart::new("distance, km", "share of images within it").log_x().title("How near?"),
        |chart, (name, scale)| chart.line(*name, curve(scale)),
    )
}

fn many() -> Chart {
    (0..11).fold(
        Chart::new("degree L", "error, km").log_x().log_y().title("Eleven series and a list"),
        |chart, index| {
            let points = (0..9).map(move |k| 2f64.powi(k)).map(move |l| {
                (
                    l,
                    20_000.0 / l.powf(1.0 + 0.12 * f64::from(index))
                        * (1.0 + 0.1 * f64::from(index)),
                )
            });
            let series = Series::points(format!("method number {index}"), points);
            chart.series(if index % 2 == 0 { series.joined() } else { series })
        },
    )
}

fn scatter() -> Chart {
    let points = (0..4000).map(|i| (100.0 * noise(2 * i), 1e7 * noise(2 * i + 1).powi(3)));
    Chart::new("x", "y").points("a cloud of 4000 points", points).title("Scatter")
}

fn edge_cases() -> Panels {
    let small = |chart: Chart, title: &str| chart.width_px(400).height_px(260).title(title).draw();
    let nan = f64::NAN;
    let gaps = (0..50).map(|i| (f64::from(i), if i % 9 == 4 { nan } else { f64::from(i * i) }));
    let spiral = (0..4000).map(|i| f64::from(i) / 300.0).map(|t| (t * t.cos(), t * t.sin()));
    let chart = || Chart::new("x", "y");
    Panels::new()
        .columns(3)
        .title("Edge cases")
        .labels(LabelSide::Above)
        .panel("nothing", small(chart(), ""))
        .panel("one point", small(chart().line("one", [(3.0, 4.0)]), ""))
        .panel("all equal", small(chart().line("flat", (0..9).map(|i| (f64::from(i), 7.5))), ""))
        .panel("gaps", small(chart().line("gaps", gaps), ""))
        .panel(
            "zeros on a log axis",
            small(
                chart().log_y().line(
                    "exp",
                    (0..9).map(|i| (f64::from(i), if i == 3 { 0.0 } else { 10f64.powi(i - 12) })),
                ),
                "",
            ),
        )
        .panel("not a function", small(chart().line("spiral", spiral), ""))
        .panel(
            "a large offset",
            small(
                chart()
                    .line("offset", (0..9).map(|i| (1e9 + f64::from(i), 1e-9 * f64::from(i * i)))),
                "",
            ),
        )
        .panel(
            "a narrow log axis",
            small(
                chart().log_x().log_y().line(
                    "a series with quite a long name",
                    (2..7).map(|i| (f64::from(i), f64::from(i) + 400.0)),
                ),
                "",
            ),
        )
        .panel(
            "a window",
            small(
                chart().y_range(-0.5..=0.5).line(
                    "sine",
                    (0..400).map(|i| (f64::from(i) / 20.0, (f64::from(i) / 20.0).sin())),
                ),
                "",
            ),
        )
}

fn strip(theme: Theme) -> Result<Panels, InvalidPlace> {
    let suva = LatLon::new(-18.14, 178.44)?;
    let centre = LatLon::new(-10.0, 160.0)?;
    let map = |kappa: f64, projection| {
        Map::new(projection)
            .field(move |place: LatLon| {
                kappa * (place.angle_to(suva).cos() - 1.0) + kappa.ln() - 1.8
            })
            .top(3.0)
            .colour_bar(ColourBar::Hidden)
            .theme(theme)
            .width_px(220)
            .draw()
    };
    let steps = [(0, 0.2), (10, 1.0), (20, 4.0), (100, 30.0), (200, 300.0)];
    let globes = steps.map(|(_, kappa)| ("", map(kappa, Projection::Globe { centre })));
    let flat =
        steps.map(|(step, kappa)| (format!("step {step}"), map(kappa, Projection::EqualEarth)));
    Ok(Panels::new()
        .columns(5)
        .title("From noise to a place")
        .panels(globes)
        .panels(flat)
        .caption("A prediction, not a fact: the density while it is denoised in 200 steps."))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let write = |name: &str, picture: Picture| -> std::io::Result<()> {
        std::fs::write(directory.join(format!("charts-{name}.png")), picture.png())?;
        std::fs::write(directory.join(format!("charts-{name}.svg")), picture.svg())
    };
    for (suffix, theme) in [("day", Theme::Day), ("dark", Theme::Dark)] {
        let charts = [
            ("training", training()),
            ("training-log", training().log_x().log_y()),
            ("reliability", reliability()),
            ("recall", recall()),
            ("many", many()),
            ("scatter", scatter()),
        ];
        for (name, chart) in charts {
            write(&format!("{name}-{suffix}"), chart.theme(theme).draw())?;
        }
        write(&format!("strip-{suffix}"), strip(theme)?.draw())?;
    }
    write("edges", edge_cases().draw())?;
    Ok(())
}
