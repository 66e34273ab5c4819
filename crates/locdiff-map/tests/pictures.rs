//! What must be true of every picture, without comparing it with a stored one.

use locdiff_map::{
    ColourBar, Graticule, LineStyle, Map, Marker, Outline, Picture, Projection, Scale, Symbol,
    Theme,
};
use locdiff_sphere::LatLon;

fn at(latitude: f64, longitude: f64) -> LatLon {
    LatLon::new(latitude, longitude).expect("degrees of a place")
}

/// The three projections; the globe looks at a place near the given one.
fn projections(near: LatLon) -> [Projection; 3] {
    let centre = near.destination(130.0, 3000.0);
    [Projection::Equirectangular, Projection::EqualEarth, Projection::Globe { centre }]
}

/// Decoded RGB pixels.
struct Pixels {
    width: usize,
    rgb: Vec<[u8; 3]>,
}

impl Pixels {
    fn of(picture: &Picture) -> Pixels {
        let file = picture.png();
        let mut reader =
            png::Decoder::new(std::io::Cursor::new(file)).read_info().expect("a PNG header");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut bytes).expect("PNG data");
        assert_eq!((info.width, info.height), (picture.width_px(), picture.height_px()));
        assert_eq!(info.color_type, png::ColorType::Rgb);
        let rgb = bytes.chunks_exact(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        Pixels { width: info.width as usize, rgb }
    }

    fn position(&self, index: usize) -> [f64; 2] {
        [(index % self.width) as f64 + 0.5, (index / self.width) as f64 + 0.5]
    }
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

fn ring(centre: LatLon, radius_km: f64, points: usize) -> Vec<LatLon> {
    let bearing = |index| 360.0 * index as f64 / points as f64;
    (0..points).map(|index| centre.destination(bearing(index), radius_km)).collect()
}

#[test]
fn the_brightest_pixel_is_at_the_peak() {
    // In the open sea, where no coast is drawn over the field.
    for peak in [at(-35.0, -179.95), at(20.0, -40.0), at(-55.0, 100.0), at(88.0, 30.0)] {
        for projection in projections(peak) {
            for scale in [Scale::Linear, Scale::default(), Scale::Log { nats: 2.0 }] {
                let picture = Map::new(projection)
                    .theme(Theme::Dark)
                    .scale(scale)
                    .colour_bar(ColourBar::Hidden)
                    .graticule(Graticule::Hidden)
                    .field(|place| 400.0 * (place.angle_to(peak).cos() - 1.0))
                    .width_px(600)
                    .draw();
                let pixels = Pixels::of(&picture);
                let brightness = |rgb: [u8; 3]| rgb.iter().map(|&c| u32::from(c)).sum::<u32>();
                let largest = pixels.rgb.iter().map(|&rgb| brightness(rgb)).max();
                assert!(largest > Some(500));
                let near = (0..pixels.rgb.len())
                    .filter(|&index| Some(brightness(pixels.rgb[index])) == largest)
                    .map(|index| {
                        let place = picture.position_px(peak).expect("visible");
                        distance(pixels.position(index), place)
                    })
                    .fold(f64::INFINITY, f64::min);
                assert!(near < 2.5, "{projection:?} {scale:?} {peak}: {near} pixels");
            }
        }
    }
}

#[test]
fn outlines_are_where_they_belong_and_nowhere_else() {
    let cases = [
        (at(-17.6, 179.4), 1500.0), // across the antimeridian
        (at(86.0, -120.0), 1500.0), // around a pole
        (at(-80.0, 170.0), 1200.0), // around the other, and across
        (at(10.0, 20.0), 9000.0),   // nearly half of the Earth: leaves every globe
    ];
    for (centre, radius_km) in cases {
        for projection in projections(centre) {
            let map = || Map::new(projection).width_px(500);
            let without = Pixels::of(&map().draw());
            let drawn = map().outline(Outline::new([ring(centre, radius_km, 90)])).draw();
            let with = Pixels::of(&drawn);
            let expected: Vec<[f64; 2]> = ring(centre, radius_km, 20_000)
                .into_iter()
                .filter_map(|place| drawn.position_px(place))
                .collect();
            let changed: Vec<[f64; 2]> = (0..with.rgb.len())
                .filter(|&index| with.rgb[index] != without.rgb[index])
                .map(|index| with.position(index))
                .collect();
            assert!(changed.len() > 50);
            for &pixel in &changed {
                let near = expected.iter().map(|&p| distance(p, pixel)).fold(f64::MAX, f64::min);
                assert!(
                    near < 4.0,
                    "{projection:?} {centre}: a stroke {near} pixels off at {pixel:?}"
                );
            }
            for &point in expected.iter().step_by(50) {
                let near = changed.iter().map(|&p| distance(p, point)).fold(f64::MAX, f64::min);
                assert!(near < 2.0, "{projection:?} {centre}: nothing drawn at {point:?}");
            }
        }
    }
}

fn everything<'a>(projection: Projection, theme: Theme) -> Map<'a> {
    let peak = at(-17.6, 179.4);
    Map::new(projection)
        .theme(theme)
        .width_px(480)
        .field(move |place| 100.0 * (place.angle_to(peak).cos() - 1.0) + 2.77)
        .title("Where <was> it & \"when\"?\u{0}\u{1b}")
        .caption("A prediction,\nnot a fact ‒ 漢字")
        .outline(Outline::new([ring(peak, 800.0, 40)]))
        .outline(Outline::new([ring(peak, 1500.0, 40)]).style(LineStyle::Dashed))
        .marker(Marker::new(peak).label("peak & <tag>"))
        .marker(Marker::new(at(-18.14, 178.44)).label("Suva").symbol(Symbol::Cross))
        .marker(Marker::new(LatLon::NORTH_POLE).symbol(Symbol::Ring))
}

#[test]
fn svg_is_xml_with_vectors_text_and_one_image() {
    for projection in projections(at(-17.6, 179.4)) {
        let picture = everything(projection, Theme::Day).draw();
        let svg = picture.svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        let document = roxmltree::Document::parse(&svg).expect("XML");
        let root = document.root_element();
        assert_eq!(root.attribute("width"), Some("480"));
        assert_eq!(root.attribute("height"), Some(picture.height_px().to_string().as_str()));
        let all = |tag: &str| -> Vec<roxmltree::Node<'_, '_>> {
            document.descendants().filter(|node| node.has_tag_name(tag_name(tag))).collect()
        };
        assert_eq!(all("image").len(), 1);
        assert!(all("path").len() > 8);
        let texts: Vec<_> = all("text").iter().filter_map(|node| node.text()).collect();
        for text in [
            "Where <was> it & \"when\"?",
            "A prediction,",
            "not a fact ‒ 漢字",
            "peak & <tag>",
            "Suva",
        ] {
            assert!(texts.contains(&text), "{text} is not in {texts:?}");
        }
        // Every reference has its definition, once.
        let attributes = document.descendants().flat_map(|node| node.attributes());
        let references = attributes.filter_map(|attribute| match attribute.name() {
            "href" => attribute.value().strip_prefix('#'),
            _ => attribute.value().strip_prefix("url(#")?.strip_suffix(')'),
        });
        let mut count = 0;
        for id in references {
            let defined = document.descendants().filter(|node| node.attribute("id") == Some(id));
            assert_eq!(defined.count(), 1, "{id}");
            count += 1;
        }
        // The clip, the gradient of the bar, the land and twice the coast.
        assert!(count >= 5, "{count}");
    }
}

fn tag_name(tag: &str) -> (&'static str, &str) {
    ("http://www.w3.org/2000/svg", tag)
}

#[test]
fn the_same_map_is_the_same_picture_and_themes_differ() {
    for projection in projections(at(-17.6, 179.4)) {
        let draw = |theme| everything(projection, theme).draw();
        let (first, second, dark) = (draw(Theme::Day), draw(Theme::Day), draw(Theme::Dark));
        assert_eq!(first.png(), second.png());
        assert_eq!(first.svg(), second.svg());
        let (day, dark) = (Pixels::of(&first), Pixels::of(&dark));
        let different = day.rgb.iter().zip(&dark.rgb).filter(|(a, b)| a != b).count();
        assert!(different > day.rgb.len() * 9 / 10);
        assert!(day.rgb[0].iter().all(|&c| c > 240) && dark.rgb[0].iter().all(|&c| c < 30));
    }
}

#[test]
fn odd_input_is_drawn_without_harm() {
    let fields: [fn(LatLon) -> f64; 6] = [
        |_| f64::NAN,
        |_| f64::NEG_INFINITY,
        |_| f64::INFINITY,
        |_| 1e308,
        |_| 0.0,
        |place| if place.latitude() > 0.0 { place.longitude().ln() } else { f64::INFINITY },
    ];
    for projection in projections(LatLon::NORTH_POLE) {
        for field in fields {
            for scale in [Scale::Linear, Scale::Log { nats: 0.0 }, Scale::Log { nats: f64::NAN }] {
                let map = Map::new(projection)
                    .field(field)
                    .scale(scale)
                    .outline(Outline::default())
                    .outline(Outline::new([Vec::new(), vec![at(1.0, 1.0)]]))
                    .graticule(Graticule::Every { degrees: f64::NAN })
                    .top(f64::NAN)
                    .width_px(241);
                let svg = map.draw().svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf"));
                Pixels::of(&map.draw());
            }
        }
        for width in [0, 1, 2, 3, 17, 239, 240] {
            let map = everything(projection, Theme::Dark).width_px(width);
            let picture = map.draw();
            assert_eq!(picture.width_px(), width.max(1));
            Pixels::of(&picture);
            assert!(roxmltree::Document::parse(&picture.svg()).is_ok());
        }
    }
    assert_eq!(
        Map::new(Projection::EqualEarth).width_px(u32::MAX).draw().width_px(),
        Map::MAX_WIDTH_PX
    );
}

#[test]
fn nothing_probable_lets_land_and_sea_show_through() {
    for projection in projections(at(0.0, 0.0)) {
        let map = || Map::new(projection).colour_bar(ColourBar::Hidden).width_px(300);
        let bare = map().draw().png();
        assert_eq!(bare, map().field(|_| f64::NEG_INFINITY).draw().png());
        assert_ne!(bare, map().field(|_| 0.0).draw().png());
        // Far below the top that the caller fixed.
        assert_eq!(bare, map().field(|_| 0.0).top(100.0).draw().png());
    }
}

#[test]
fn colours_mean_the_same_from_wherever_one_looks() {
    // The peak is on the far side; what is seen of the density must not pretend to be it.
    let peak = at(0.0, 0.0);
    let map = |centre| {
        Map::new(Projection::Globe { centre })
            .field(move |place| 30.0 * (place.angle_to(peak).cos() - 1.0))
            .colour_bar(ColourBar::Hidden)
            .width_px(300)
    };
    let far = at(0.0, 180.0);
    let bare = Map::new(Projection::Globe { centre: far }).width_px(300).draw().png();
    assert_eq!(map(far).draw().png(), bare);
    assert_ne!(map(peak).draw().png(), bare);
}
