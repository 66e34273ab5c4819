//! What must be true of every chart and sheet, without comparing it with a stored one.

use locdiff_map::{Chart, LabelSide, Map, Panels, Picture, Projection, Series, Theme};
use roxmltree::{Document, Node};
use std::collections::HashSet;

fn size_of_png(picture: &Picture) -> (u32, u32) {
    let file = picture.png();
    let reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().expect("a PNG header");
    (reader.info().width, reader.info().height)
}

fn all<'a, 'i>(document: &'a Document<'i>, tag: &str) -> Vec<Node<'a, 'i>> {
    let name = ("http://www.w3.org/2000/svg", tag);
    document.descendants().filter(|node| node.has_tag_name(name)).collect()
}

fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).expect("XML");
    all(&document, "text").iter().filter_map(|node| node.text()).map(str::to_owned).collect()
}

fn loss(step: u32) -> (f64, f64) {
    (f64::from(step), 1.0 + 5.0 / f64::from(step).sqrt())
}

fn everything(theme: Theme) -> Chart {
    let shares: Vec<(f64, f64)> = (1..10).map(|i| (f64::from(i) / 10.0, 0.4)).collect();
    let bars: Vec<(f64, f64)> = shares.iter().map(|(_, y)| (y - 0.1, y + 0.1)).collect();
    Chart::new("stated & <meant>", "observed")
        .series(Series::points("bars", shares.clone()).error_bars(bars))
        .series(Series::points("joined", shares.clone()).joined())
        .line("line", shares)
        .diagonal("calibrated")
        .horizontal("chance", 0.1)
        .title("A title \"here\"\u{0}")
        .caption("and a caption")
        .theme(theme)
}

#[test]
fn svg_has_all_that_was_asked_for() {
    let picture = everything(Theme::Day).width_px(700).height_px(500).draw();
    assert_eq!(size_of_png(&picture), (700, 500));
    let svg = picture.svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    let texts = texts(&svg);
    for text in [
        "stated & <meant>",
        "observed",
        "bars",
        "joined",
        "line",
        "calibrated",
        "chance",
        "A title \"here\"",
        "and a caption",
        "0.4",
    ] {
        assert!(texts.iter().any(|t| t == text), "{text} is not in {texts:?}");
    }
    let document = Document::parse(&svg).expect("XML");
    assert!(all(&document, "image").is_empty());
    let dashed = |node: &&Node<'_, '_>| node.has_attribute("stroke-dasharray");
    assert!(all(&document, "path").iter().filter(dashed).count() >= 3);
}

#[test]
fn texts_are_inside_the_picture() {
    let long = "a name that is much too long to stand beside a chart without being broken";
    for (width, height) in [(240, 160), (400, 400), (800, 200), (1600, 960)] {
        let chart =
            everything(Theme::Day).line(long, (1..9).map(loss)).width_px(width).height_px(height);
        let svg = chart.draw().svg();
        let document = Document::parse(&svg).expect("XML");
        for node in all(&document, "text") {
            let number =
                |name| -> f64 { node.attribute(name).and_then(|n| n.parse().ok()).unwrap_or(-1.0) };
            let (x, y) = (number("x"), number("y"));
            assert!(x >= 0.0 && x <= f64::from(width), "{node:?}");
            assert!(y >= 0.0 && y <= f64::from(height), "{node:?}");
        }
    }
}

#[test]
fn the_same_chart_is_the_same_picture_and_themes_differ() {
    let draw = |theme| everything(theme).draw();
    assert_eq!(draw(Theme::Day).png(), draw(Theme::Day).png());
    assert_eq!(draw(Theme::Day).svg(), draw(Theme::Day).svg());
    assert_ne!(draw(Theme::Day).svg(), draw(Theme::Dark).svg());
}

#[test]
fn odd_data_is_drawn_without_harm() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let cases: [&[(f64, f64)]; 9] = [
        &[],
        &[(1.0, 1.0)],
        &[(0.0, 0.0), (0.0, 0.0)],
        &[(nan, 1.0), (1.0, nan), (infinity, 1.0), (1.0, -infinity)],
        &[(1.0, 2.0), (2.0, nan), (3.0, 4.0)],
        &[(-1e308, 1e308), (1e308, -1e308)],
        &[(1e-320, 1e-320), (2e-320, 3e-320)],
        &[(-1e300, 1e300), (1e300, -1e300), (1.0, 1.0)],
        &[(1e15, 1.0), (1e15 + 1.0, 1.0 + 1e-15)],
    ];
    for points in cases {
        let points = points.to_vec();
        let bars = vec![(nan, 1.0), (-infinity, infinity), (0.0, 1e300)];
        let base = || {
            Chart::new("x", "y")
                .line("line", points.clone())
                .series(Series::points("both", points.clone()).joined().error_bars(bars.clone()))
                .diagonal("diagonal")
                .horizontal("nowhere", nan)
        };
        let kinds = [
            base(),
            base().log_x(),
            base().log_y(),
            base().log_x().log_y(),
            base().x_range(nan..=0.5).y_range(5.0..=-5.0),
            base().x_range(0.999..=1.001).y_range(..=2.0),
        ];
        for chart in kinds {
            for (width, height) in [(0, 0), (1, 1), (3, 400), (400, 3), (239, 150), (600, 400)] {
                let picture = chart.clone().width_px(width).height_px(height).draw();
                assert_eq!(size_of_png(&picture), (width.max(1), height.max(1)));
                let svg = picture.svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{points:?}");
                assert!(Document::parse(&svg).is_ok());
            }
        }
    }
    let largest = Chart::new("x", "y").width_px(u32::MAX).height_px(20).draw();
    assert_eq!(largest.width_px(), Chart::MAX_SIZE_PX);
}

#[test]
fn a_chart_without_data_says_so_and_has_axes() {
    let empty = Chart::new("step", "loss").line("train", []).draw().svg();
    let texts = texts(&empty);
    for text in ["no data", "step", "loss", "0.5", "1.0"] {
        assert!(texts.iter().any(|t| t == text), "{text} is not in {texts:?}");
    }
    let some = Chart::new("step", "loss").line("train", (1..9).map(loss)).draw().svg();
    assert!(!some.contains("no data"));
}

#[test]
fn a_million_points_make_a_small_file() {
    let points = || (1..1_000_000).map(|i| (f64::from(i), (f64::from(i) * 1.7).sin()));
    for chart in [
        Chart::new("x", "y").line("dense", points()),
        Chart::new("x", "y").log_x().line("dense", points()),
        Chart::new("x", "y").series(Series::points("dense", points()).joined()),
        Chart::new("x", "y").points("cloud", points().step_by(200)),
    ] {
        let length = chart.draw().svg().len();
        assert!(length < 200_000, "{length}");
    }
}

#[test]
fn zeros_on_a_log_axis_are_left_out() {
    let points = [(1.0, 10.0), (2.0, 0.0), (3.0, 1000.0), (4.0, 100.0)];
    let with_zero = Chart::new("x", "y").log_y().line("a", points).draw().svg();
    let with_gap = points.map(|(x, y)| (x, if y > 0.0 { y } else { f64::NAN }));
    assert_eq!(with_zero, Chart::new("x", "y").log_y().line("a", with_gap).draw().svg());
}

fn sheet() -> Panels {
    let map = |kappa: f64| {
        let map = Map::new(Projection::EqualEarth).width_px(250);
        map.field(move |place| kappa * place.latitude().to_radians().sin()).draw()
    };
    let chart = Chart::new("x", "y").line("line", (1..9).map(loss)).width_px(250).draw();
    Panels::new()
        .title("Several & more")
        .panel("step 0", map(1.0))
        .panel("step 100", map(50.0))
        .panel("a chart", chart)
}

#[test]
fn sheets_join_vectors_and_share_definitions() {
    for side in [LabelSide::Above, LabelSide::Below] {
        let picture = sheet().columns(2).labels(side).draw();
        assert_eq!(size_of_png(&picture), (picture.width_px(), picture.height_px()));
        let svg = picture.svg();
        let document = Document::parse(&svg).expect("XML");
        assert_eq!(all(&document, "svg").len(), 4);
        assert_eq!(all(&document, "image").len(), 2);
        let texts = texts(&svg);
        for text in ["Several & more", "step 0", "step 100", "a chart", "line"] {
            assert!(texts.iter().any(|t| t == text), "{text} is not in {texts:?}");
        }
        // Every reference has one definition; both maps use one coastline.
        let ids: Vec<&str> =
            document.descendants().filter_map(|node| node.attribute("id")).collect();
        assert_eq!(ids.len(), ids.iter().collect::<HashSet<_>>().len());
        let attributes = document.descendants().flat_map(|node| node.attributes());
        let references: Vec<&str> = attributes
            .filter_map(|attribute| match attribute.name() {
                "href" => attribute.value().strip_prefix('#'),
                _ => attribute.value().strip_prefix("url(#")?.strip_suffix(')'),
            })
            .collect();
        assert!(references.iter().all(|id| ids.contains(id)));
        assert!(references.len() >= ids.len() + 4);
    }
}

#[test]
fn a_picture_on_a_sheet_has_the_same_pixels() {
    let chart = everything(Theme::Dark).draw();
    let sheet = Panels::new().panel("", chart.clone()).draw();
    let pixels = |picture: &Picture| {
        let file = picture.png();
        let mut reader =
            png::Decoder::new(std::io::Cursor::new(file)).read_info().expect("a PNG header");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        reader.next_frame(&mut bytes).expect("PNG data");
        bytes
    };
    let (inner, outer) = (pixels(&chart), pixels(&sheet));
    let width = 3 * chart.width_px() as usize;
    let outer_width = 3 * sheet.width_px() as usize;
    let margin = (sheet.width_px() - chart.width_px()) as usize / 2;
    for (row, line) in inner.chunks_exact(width).enumerate() {
        let from = (row + margin) * outer_width + 3 * margin;
        assert_eq!(line, &outer[from..from + width], "row {row}");
    }
    // The sheet takes the theme of its first picture.
    assert_eq!(outer[..3], inner[..3]);
}

#[test]
fn sheets_of_nothing_and_of_sheets() {
    assert!(Panels::new().draw().png().starts_with(b"\x89PNG"));
    let twice = Panels::new().columns(0).panel("a", sheet().draw()).panel("b", sheet().draw());
    let svg = twice.draw().svg();
    let document = Document::parse(&svg).expect("XML");
    assert_eq!(all(&document, "svg").len(), 1 + 2 + 6);
}
