//! XMP sidecars: a place in the properties of Exif, as Adobe's specification writes them (part 2, "Exif schema").
//!
//! An existing sidecar is edited as text: attributes are inserted into its first `rdf:Description`, and only what is
//! replaced is cut out. Everything else, comments and padding included, stays byte for byte.

use std::ops::Range;

use locdiff_sphere::LatLon;
use roxmltree::{Document, Node};

use super::{PlaceTag, Replace, TagError};
use crate::Moment;

const EXIF: &str = "http://ns.adobe.com/exif/1.0/";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
/// The properties that are written.
const WRITTEN: [&str; 6] = [
    "GPSVersionID",
    "GPSLatitude",
    "GPSLongitude",
    "GPSMapDatum",
    "GPSHPositioningError",
    "GPSProcessingMethod",
];

/// A sidecar with nothing but a place.
pub fn new_sidecar(tag: &PlaceTag) -> String {
    format!(
        "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n\
         <x:xmpmeta xmlns:x=\"adobe:ns:meta/\" x:xmptk=\"locdiff\">\n \
         <rdf:RDF xmlns:rdf=\"{RDF}\">\n  \
         <rdf:Description xmlns:exif=\"{EXIF}\"{} rdf:about=\"\"/>\n \
         </rdf:RDF>\n\
         </x:xmpmeta>\n\
         <?xpacket end=\"w\"?>\n",
        attributes("exif", tag)
    )
}

/// An existing sidecar with a place. One that it has already and that may not be replaced is an error, also if its numbers are
/// not valid.
pub fn edited_sidecar(text: &str, tag: &PlaceTag, replace: Replace) -> Result<String, TagError> {
    let document = parse(text)?;
    let descriptions: Vec<Node<'_, '_>> = descriptions(&document).collect();
    let Some(first) = descriptions.first() else {
        return Err(TagError::Damaged("the sidecar has no rdf:Description"));
    };
    if replace == Replace::Nothing && has_coordinates(&document) {
        return Err(TagError::HasPlace);
    }
    let is_replaced = |namespace: Option<&str>, name: &str| {
        let measured = replace == Replace::Everything && name.starts_with("GPS");
        namespace == Some(EXIF) && (measured || WRITTEN.contains(&name))
    };
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for description in &descriptions {
        for attribute in description.attributes() {
            if is_replaced(attribute.namespace(), attribute.name()) {
                edits.push((with_space_before(text, attribute.range()), String::new()));
            }
        }
        for element in description.children().filter(|child| child.is_element()) {
            let name = element.tag_name();
            if is_replaced(name.namespace(), name.name()) {
                edits.push((with_space_before(text, element.range()), String::new()));
            }
        }
    }
    // Behind the element's own name, which may have any prefix.
    let start = first.range().start;
    let name = text[start..].find(|c: char| c.is_whitespace() || c == '>' || c == '/');
    let at = start + name.ok_or(TagError::Damaged("the sidecar ends in a tag"))?;
    let inserted = match prefix_in_scope(first) {
        Some(prefix) => attributes(prefix, tag),
        None => {
            let free = |prefix: &&str| first.lookup_namespace_uri(Some(prefix)).is_none();
            let prefix = ["exif", "exifGps", "locdiffExif"].into_iter().find(free);
            let prefix =
                prefix.ok_or(TagError::Damaged("the sidecar uses all prefixes for Exif"))?;
            format!(" xmlns:{prefix}=\"{EXIF}\"{}", attributes(prefix, tag))
        }
    };
    edits.push((at..at, inserted));
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut edited = text.to_owned();
    for (range, replacement) in edits {
        edited.replace_range(range, &replacement);
    }
    // What was written must be readable: a program that edits other people's files checks its work.
    match place_of(&parse(&edited)?) {
        Some(place) if place.distance_km(tag.place) < 0.001 => Ok(edited),
        _ => Err(TagError::Damaged("the sidecar has a structure that can't be edited safely")),
    }
}

/// The place in a sidecar, if it has one that is valid.
pub fn place_in_sidecar(text: &str) -> Result<Option<LatLon>, TagError> {
    Ok(place_of(&parse(text)?))
}

/// What is read from a sidecar, or from the XMP inside of a picture.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct XmpFacts {
    /// The place, if it has one that is valid.
    pub place: Option<LatLon>,
    /// Whether it has coordinates, valid or not: then no others may be written.
    pub has_coordinates: bool,
    /// How that place was found.
    pub method: Option<String>,
    /// When the picture was taken, if the file states it.
    pub time: Option<Moment>,
}

impl XmpFacts {
    /// From the text of an XMP packet.
    pub fn of(text: &str) -> Result<XmpFacts, TagError> {
        let document = parse(text)?;
        let time = value_of(&document, "DateTimeOriginal");
        Ok(XmpFacts {
            place: place_of(&document),
            has_coordinates: has_coordinates(&document),
            method: value_of(&document, "GPSProcessingMethod"),
            time: time.and_then(|time| Moment::from_iso(time.trim())),
        })
    }
}

/// The XMP packet inside of a picture of any format, found by its outermost element.
pub fn embedded_xmp(file: &[u8]) -> Option<&str> {
    const FIRST: &[u8] = b"<x:xmpmeta";
    const LAST: &[u8] = b"</x:xmpmeta>";
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|at| at == what);
    let start = find(file, FIRST)?;
    let length = find(&file[start..], LAST)? + LAST.len();
    std::str::from_utf8(&file[start..start + length]).ok()
}

fn parse(text: &str) -> Result<Document<'_>, TagError> {
    Document::parse(text).map_err(|error| TagError::Xml(error.to_string()))
}

fn descriptions<'a, 'i>(document: &'a Document<'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    let is = |node: &Node<'_, '_>, name| node.has_tag_name((RDF, name));
    document
        .descendants()
        .filter(move |node| is(node, "Description") && node.parent().is_some_and(|p| is(&p, "RDF")))
}

/// The text of a property of Exif.
fn value_of(document: &Document<'_>, name: &str) -> Option<String> {
    descriptions(document).find_map(|description| {
        let attribute = description.attribute((EXIF, name));
        let element = description.children().find(|child| child.has_tag_name((EXIF, name)));
        attribute.or_else(|| element.and_then(|element| element.text())).map(str::to_owned)
    })
}

fn has_coordinates(document: &Document<'_>) -> bool {
    ["GPSLatitude", "GPSLongitude"].into_iter().any(|name| value_of(document, name).is_some())
}

fn place_of(document: &Document<'_>) -> Option<LatLon> {
    let latitude = degrees(&value_of(document, "GPSLatitude")?, ['N', 'S'])?;
    let longitude = degrees(&value_of(document, "GPSLongitude")?, ['E', 'W'])?;
    LatLon::new(latitude, longitude).ok()
}

/// A prefix of the Exif namespace that attributes of a node may use.
fn prefix_in_scope<'a>(node: &Node<'a, '_>) -> Option<&'a str> {
    let prefix = node.lookup_prefix(EXIF).filter(|prefix| !prefix.is_empty())?;
    // An inner declaration may hide it.
    (node.lookup_namespace_uri(Some(prefix)) == Some(EXIF)).then_some(prefix)
}

fn with_space_before(text: &str, range: Range<usize>) -> Range<usize> {
    text[..range.start].trim_end().len()..range.end
}

fn attributes(prefix: &str, tag: &PlaceTag) -> String {
    let values = [
        "2.3.0.0".to_owned(),
        coordinate(tag.place.latitude(), ['N', 'S']),
        coordinate(tag.place.longitude(), ['E', 'W']),
        "WGS-84".to_owned(),
        format!("{}/100", (100.0 * tag.error_m()).round()),
        escaped(&tag.checked_method()),
    ];
    let pairs = WRITTEN.iter().zip(values);
    pairs.map(|(name, value)| format!("\n   {prefix}:{name}=\"{value}\"")).collect()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// `47,3.0000000N`: degrees and minutes, to a fifth of a millimeter.
fn coordinate(degrees: f64, [positive, negative]: [char; 2]) -> String {
    let units = (degrees.abs() * 60.0 * 1e7).round() as u64;
    let (whole, rest) = (units / 600_000_000, units % 600_000_000);
    let letter = if degrees < 0.0 { negative } else { positive };
    format!("{whole},{}.{:07}{letter}", rest / 10_000_000, rest % 10_000_000)
}

/// From `47,3.5N`, `47,3,30N` or, as some write, plain degrees.
fn degrees(text: &str, [positive, negative]: [char; 2]) -> Option<f64> {
    let text = text.trim();
    let last = text.chars().last()?.to_ascii_uppercase();
    let (numbers, sign) = match last {
        last if last == positive => (&text[..text.len() - 1], 1.0),
        last if last == negative => (&text[..text.len() - 1], -1.0),
        last if last.is_ascii_digit() => (text, 1.0),
        _ => return None,
    };
    let parts: Option<Vec<f64>> = numbers.split(',').map(|part| part.trim().parse().ok()).collect();
    let parts = parts.filter(|parts| parts.len() <= 3 && parts.iter().all(|p| p.is_finite()))?;
    let (&first, smaller) = parts.split_first()?;
    let valid = smaller.iter().all(|part| (0.0..60.0).contains(part));
    let smaller: f64 = smaller.iter().zip([60.0, 3600.0]).map(|(part, unit)| part / unit).sum();
    valid.then(|| sign * (first + if first < 0.0 { -smaller } else { smaller }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(latitude: f64, longitude: f64) -> PlaceTag {
        let place = LatLon::new(latitude, longitude).unwrap();
        PlaceTag::estimated(place, 12.5, "a \"model\" & <co>", "1")
    }

    const DARKTABLE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"
   xmp:Rating="4">
   <!-- kept -->
   <dc:subject><rdf:Bag><rdf:li>Köln &amp; more</rdf:li></rdf:Bag></dc:subject>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
"#;

    proptest! {
        #[test]
        fn places_survive_writing(latitude in -90.0..=90.0_f64, longitude in -180.0..180.0_f64) {
            let tag = tag(latitude, longitude);
            let text = new_sidecar(&tag);
            let place = place_in_sidecar(&text).unwrap().unwrap();
            prop_assert!(place.distance_km(tag.place) < 1e-6);
            let edited = edited_sidecar(DARKTABLE, &tag, Replace::Nothing).unwrap();
            let place = place_in_sidecar(&edited).unwrap().unwrap();
            prop_assert!(place.distance_km(tag.place) < 1e-6);
        }
    }

    #[test]
    fn everything_else_in_a_sidecar_stays() {
        let edited = edited_sidecar(DARKTABLE, &tag(1.0, 2.0), Replace::Nothing).unwrap();
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let added = ["exif", "<rdf:Description"];
        let kept: Vec<String> = lines(&edited)
            .into_iter()
            .filter(|line| !added.iter().any(|part| line.contains(part)))
            .collect();
        for line in lines(DARKTABLE).iter().filter(|line| !line.contains("<rdf:Description")) {
            assert!(kept.contains(line), "{line} is lost:\n{edited}");
        }
    }

    #[test]
    fn a_place_is_replaced_only_by_force() {
        let once = edited_sidecar(DARKTABLE, &tag(1.0, 2.0), Replace::Nothing).unwrap();
        assert!(matches!(
            edited_sidecar(&once, &tag(3.0, 4.0), Replace::Nothing),
            Err(TagError::HasPlace)
        ));
        let twice = edited_sidecar(&once, &tag(3.0, 4.0), Replace::Own).unwrap();
        assert_eq!(twice.matches("GPSLatitude").count(), 1, "{twice}");
        let place = place_in_sidecar(&twice).unwrap().unwrap();
        assert!(place.distance_km(LatLon::new(3.0, 4.0).unwrap()) < 1e-6);
    }

    /// exiftool writes elements, under a prefix of its own choice, in several descriptions.
    #[test]
    fn elements_and_other_prefixes_are_understood() {
        let text = r#"<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<r:Description r:about="" xmlns:exif="urn:other" exif:note="x"/>
<r:Description r:about="" xmlns:e="http://ns.adobe.com/exif/1.0/">
  <e:GPSLatitude>10,30,36S</e:GPSLatitude> <e:GPSLongitude>20,15.5W</e:GPSLongitude><e:GPSAltitude>5/1</e:GPSAltitude>
</r:Description></r:RDF>"#;
        let place = place_in_sidecar(text).unwrap().unwrap();
        assert!(place.distance_km(LatLon::new(-10.51, -20.258_333_33).unwrap()) < 1e-3);
        let updated = edited_sidecar(text, &tag(7.0, 8.0), Replace::Own).unwrap();
        assert!(updated.contains("5/1"), "{updated}");
        // The altitude was that of the other place.
        let forced = edited_sidecar(text, &tag(7.0, 8.0), Replace::Everything).unwrap();
        assert!(forced.contains("exif:note=\"x\"") && !forced.contains("5/1"), "{forced}");
        assert_eq!(forced.matches("GPSLatitude").count(), 1, "{forced}");
        assert!(forced.contains("exifGps:GPSLatitude"), "{forced}");
    }

    #[test]
    fn coordinates_that_make_no_place_are_not_replaced_either() {
        let once = edited_sidecar(DARKTABLE, &tag(1.0, 2.0), Replace::Nothing).unwrap();
        let damaged = once.replace("1,0.0000000N", "north of the lake");
        assert_eq!(place_in_sidecar(&damaged).unwrap(), None);
        assert!(XmpFacts::of(&damaged).unwrap().has_coordinates);
        let refused = edited_sidecar(&damaged, &tag(3.0, 4.0), Replace::Nothing);
        assert!(matches!(refused, Err(TagError::HasPlace)));
    }

    #[test]
    fn damaged_sidecars_are_refused() {
        for text in ["", "<x", "<a/>", "not xml"] {
            assert!(edited_sidecar(text, &tag(1.0, 2.0), Replace::Everything).is_err(), "{text}");
        }
    }
}
