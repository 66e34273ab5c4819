//! Names of countries and towns on the map: as many as there is room for.

use crate::layout::{Frame, circle};
use crate::marks::{Rectangle, label_positions};
use crate::scene::{Anchor, Item, Paint, Shape, Stroke, Text};
use crate::text::{CAP_HEIGHT, is_writable, width};
use crate::theme::Palette;
use locdiff_sphere::LatLon;

const TOWN_SIZE: f64 = 11.5;
const COUNTRY_SIZE: f64 = 13.5;
const DOT_RADIUS: f64 = 2.2;
/// Free space around a name, in design pixels: names that nearly touch are hard to read.
const SPACE: [f64; 2] = [6.0, 3.0];
/// Names cover at most this share of the map, since the density matters more.
const LARGEST_SHARE: f64 = 0.05;

/// A name on the map, for orientation.
///
/// Names are placed in the order of their weights, largest first. A name that would cover a marker, a
/// label, another name or the edge of the map is left out, and so are names that would fill the map.
/// The font has Latin, Greek and Cyrillic letters; names in other letters are left out.
///
/// ```
/// use locdiff_map::Name;
/// use locdiff_sphere::LatLon;
///
/// let town = Name::town(LatLon::new(-18.14, 178.44)?, "Suva").weight(93_970.0);
/// let country = Name::country(LatLon::new(-17.8, 178.0)?, "Fiji").weight(f64::INFINITY);
/// # Ok::<(), locdiff_sphere::InvalidPlace>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    place: LatLon,
    text: String,
    weight: f64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Town,
    Country,
}

impl Name {
    /// A small dot with the name beside it, of weight 0.
    pub fn town(place: LatLon, text: impl Into<String>) -> Name {
        Name { place, text: text.into(), weight: 0.0, kind: Kind::Town }
    }

    /// The name in larger and fainter letters, with its middle at the place, of weight 0.
    pub fn country(place: LatLon, text: impl Into<String>) -> Name {
        Name { place, text: text.into(), weight: 0.0, kind: Kind::Country }
    }

    /// Names with larger weights are placed first; not-a-number comes last. For towns, the number of
    /// people who live there is a good weight.
    #[must_use]
    pub fn weight(self, weight: f64) -> Name {
        Name { weight, ..self }
    }
}

/// The names that fit between what is `taken`, of which `markers` are a part, and their dots.
pub(crate) fn items(
    names: &[Name],
    markers: &[Rectangle],
    taken: &[Rectangle],
    frame: &Frame,
    palette: &Palette,
    unit: f64,
) -> Vec<Item> {
    let mut visible: Vec<(&Name, [f64; 2])> = names
        .iter()
        .filter(|name| !name.text.is_empty())
        .filter_map(|name| Some((name, frame.pixel_of(name.place)?)))
        .filter(|(name, _)| is_writable(&name.text))
        .collect();
    let rank = |name: &Name| if name.weight.is_nan() { f64::NEG_INFINITY } else { name.weight };
    visible.sort_by(|(a, _), (b, _)| rank(b).total_cmp(&rank(a)));

    let [frame_width, frame_height] = frame.size.map(f64::from);
    let mut room = LARGEST_SHARE * frame_width * frame_height;
    let mut taken = taken.to_vec();
    let (mut dots, mut texts) = (Vec::new(), Vec::new());
    for (name, at) in visible {
        let size = unit * if name.kind == Kind::Town { TOWN_SIZE } else { COUNTRY_SIZE };
        let length = width(&name.text, size);
        let fits = |area: Rectangle| {
            let wide = area.grown([SPACE[0] * unit, SPACE[1] * unit]);
            frame.shows(wide) && taken.iter().all(|other| other.overlap(wide) == 0.0)
        };
        let dot = Rectangle::around(at, DOT_RADIUS * unit);
        // A marker in the same place serves as the dot, and the name keeps its distance from it.
        let covers_dot = |other: &Rectangle| other.overlap(dot) > 0.0;
        let is_marked = markers.iter().any(covers_dot);
        if name.kind == Kind::Town && !is_marked && taken.iter().any(covers_dot) {
            continue;
        }
        let positions = match name.kind {
            Kind::Country => vec![centred(at, length, size)],
            Kind::Town => {
                label_positions(at, length, size, unit, if is_marked { 1.3 } else { 0.5 }).to_vec()
            }
        };
        let Some((anchor, baseline, area)) = positions.into_iter().find(|&(_, _, area)| fits(area))
        else {
            continue;
        };
        if area.area() > room {
            break;
        }
        room -= area.area();
        taken.push(area);
        if name.kind == Kind::Town && !is_marked {
            taken.push(dot);
            dots.push(Item::Shape(Shape {
                lines: vec![circle(at, DOT_RADIUS * unit)],
                fill: Some(Paint::Plain(palette.text)),
                stroke: Some(Stroke { colour: palette.halo, width: 1.2 * unit, dash: None }),
            }));
        }
        texts.push(Item::Text(Text {
            at: baseline,
            anchor,
            size,
            colour: if name.kind == Kind::Town { palette.text } else { palette.country },
            halo: Some(palette.halo.with_alpha(0.8)),
            text: name.text.clone(),
        }));
    }
    dots.append(&mut texts);
    dots
}

fn centred([x, y]: [f64; 2], length: f64, size: f64) -> (Anchor, [f64; 2], Rectangle) {
    let baseline = y + CAP_HEIGHT * size / 2.0;
    let area = Rectangle {
        left: x - length / 2.0,
        top: baseline - 0.8 * size,
        right: x + length / 2.0,
        bottom: baseline + 0.24 * size,
    };
    (Anchor::Middle, [x, baseline], area)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Contents, Layout};
    use crate::marks::{self, Marker};
    use crate::{Projection, Theme};

    fn area(text: &Text) -> Rectangle {
        let length = width(&text.text, text.size);
        let left = match text.anchor {
            Anchor::Start => text.at[0],
            Anchor::Middle => text.at[0] - length / 2.0,
            Anchor::End => text.at[0] - length,
        };
        let top = text.at[1] - CAP_HEIGHT * text.size;
        Rectangle { left, top, right: left + length, bottom: text.at[1] }
    }

    #[test]
    fn names_cover_nothing_and_the_heaviest_come_first() {
        let centre = LatLon::new(-17.0, 179.9).unwrap();
        let places =
            (0..400).map(|k| centre.destination(f64::from(k) * 137.5, f64::from(k % 97) * 4.0));
        let mut names: Vec<Name> = places
            .enumerate()
            .map(|(k, place)| match k % 5 {
                0 => Name::country(place, format!("Country {k}")),
                _ => Name::town(place, format!("Town {k}")),
            })
            .enumerate()
            .map(|(k, name)| name.weight((k * 7919 % 400) as f64))
            .collect();
        names.push(Name::town(centre.destination(10.0, 150.0), "Unweighable").weight(f64::NAN));
        names.push(Name::town(centre.destination(0.0, 2000.0), "Out of the map").weight(1e9));
        names.push(Name::town(centre.destination(90.0, 60.0), "Capital").weight(1e6));
        names.push(Name::town(centre.destination(270.0, 60.0), "漢字").weight(1e7));
        names.push(Name::town(centre, "Marked").weight(1e5));
        let markers = [Marker::new(centre).label("1 · 62 %")];
        let palette = Theme::Dark.palette();
        for projection in [
            Projection::Around { centre, radius_km: 300.0 },
            Projection::Globe { centre },
            Projection::EqualEarth,
        ] {
            let layout = Layout::new(&Contents::bare(projection, 600));
            let mut taken = Vec::new();
            let labels = marks::items(&markers, &mut taken, &layout.frame, &palette, layout.unit);
            let marked = marks::areas(&markers, &layout.frame, layout.unit);
            let drawn = items(&names, &marked, &taken, &layout.frame, &palette, layout.unit);
            let texts = |items: &[Item]| -> Vec<Text> {
                let text = |item: &Item| match item {
                    Item::Text(text) => Some(text.clone()),
                    _ => None,
                };
                items.iter().filter_map(text).collect()
            };
            let shown = texts(&drawn);
            assert!(shown.iter().all(|text| layout.frame.shows(area(text))), "{projection:?}");
            let mut areas: Vec<Rectangle> = shown.iter().map(area).collect();
            areas.extend(texts(&labels).iter().map(area));
            areas.extend(&taken);
            for (index, one) in areas.iter().enumerate().take(shown.len()) {
                assert!(areas[index + 1..].iter().all(|other| other.overlap(*one) == 0.0));
            }
            if let Projection::Around { .. } = projection {
                assert!(shown.iter().all(|text| text.text != "Out of the map"));
                assert_eq!(shown[0].text, "Capital");
                assert_eq!(shown[1].text, "Marked");
                let covered: f64 = shown.iter().map(|text| area(text).area()).sum();
                let share = covered / layout.frame.size.map(f64::from).iter().product::<f64>();
                assert!((0.02..LARGEST_SHARE).contains(&share), "{share}");
                // The marker is the dot of its town.
                let towns = shown.iter().filter(|text| !text.text.starts_with("Country")).count();
                assert_eq!(drawn.len() - shown.len(), towns - 1);
            }
        }
    }
}
