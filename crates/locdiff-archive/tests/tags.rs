//! Tags are written beside everything else, and every write can be undone.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use exif::{In, Reader, Tag, Value};
use locdiff_archive::library::{ContentHash, Facts, Library, Scanned};
use locdiff_archive::tags::{
    PlaceTag, Recovered, Replace, TagError, has_place, place_in_sidecar, recover, sidecar_of, undo,
    with_place, write_in_place, write_sidecar,
};
use locdiff_sphere::LatLon;

fn tag(latitude: f64, longitude: f64) -> PlaceTag {
    PlaceTag::estimated(
        LatLon::new(latitude, longitude).expect("a place"),
        12.34,
        "earth-view",
        "2",
    )
}

/// A TIFF structure with a description, a camera, a date in a sub-directory and a maker's note with offsets of its own.
fn structure(little: bool, with_gps: bool) -> Vec<u8> {
    let n16 = |n: u16| if little { n.to_le_bytes() } else { n.to_be_bytes() };
    let n32 = |n: u32| if little { n.to_le_bytes() } else { n.to_be_bytes() };
    let entry = |tag, kind, count, value| {
        [n16(tag).as_slice(), &n16(kind), &n32(count), &n32(value)].concat()
    };
    let mut bytes = if little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
    bytes.extend(n32(8));
    let entries = if with_gps { 3 } else { 2 };
    let after = 8 + 2 + 12 * entries + 4;
    bytes.extend(n16(entries as u16));
    bytes.extend(entry(0x010e, 2, 6, after));
    bytes.extend(entry(0x8769, 4, 1, after + 6));
    let exif_end = after + 6 + 2 + 12 * 2 + 4 + 20 + 7;
    if with_gps {
        bytes.extend(entry(0x8825, 4, 1, exif_end + 1));
    }
    bytes.extend(n32(0));
    bytes.extend(b"hello\0");
    bytes.extend(n16(2));
    bytes.extend(entry(0x9003, 2, 20, after + 6 + 30));
    bytes.extend(entry(0x927c, 7, 7, after + 6 + 50));
    bytes.extend(n32(0));
    bytes.extend(b"2024:05:01 12:00:00\0");
    bytes.extend(b"maker\x01\x02");
    if with_gps {
        bytes.push(0);
        // Only an altitude.
        bytes.extend(n16(1));
        bytes.extend(entry(0x06, 5, 1, exif_end + 1 + 2 + 12 + 4));
        bytes.extend(n32(0));
        bytes.extend([n32(123), n32(1)].concat());
    }
    bytes
}

fn jpeg(exif: Option<&[u8]>) -> Vec<u8> {
    let segment = |marker: u8, body: &[u8]| {
        let length = (body.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker], length.as_slice(), body].concat()
    };
    let mut bytes = vec![0xff, 0xd8];
    bytes.extend(segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"));
    if let Some(exif) = exif {
        bytes.extend(segment(0xe1, &[b"Exif\0\0", exif].concat()));
    }
    bytes.extend(segment(0xe1, b"http://ns.adobe.com/xap/1.0/\0<x/>"));
    bytes.extend(segment(0xdb, &[7; 65]));
    bytes.extend(segment(0xda, &[1, 1, 0, 0, 63, 0]));
    bytes.extend([0x12, 0x34, 0xff, 0x00, 0x56, 0xff, 0xd9]);
    bytes.extend(b"what some cameras append");
    bytes
}

fn png(exif: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 4, 4);
    encoder.set_color(png::ColorType::Rgb);
    encoder.add_text_chunk("Title".to_owned(), "kept".to_owned()).expect("a text");
    let mut writer = encoder.write_header().expect("a header");
    if let Some(exif) = exif {
        writer.write_chunk(png::chunk::ChunkType(*b"eXIf"), exif).expect("a chunk");
    }
    writer.write_image_data(&[9; 48]).expect("pixels");
    writer.finish().expect("an image");
    bytes
}

fn fields(file: &[u8]) -> exif::Exif {
    Reader::new().read_from_container(&mut Cursor::new(file)).expect("Exif data")
}

fn degrees(exif: &exif::Exif, tag: Tag) -> f64 {
    let Value::Rational(parts) = &exif.get_field(tag, In::PRIMARY).expect("an angle").value else {
        panic!("not rational")
    };
    parts[0].to_f64() + parts[1].to_f64() / 60.0 + parts[2].to_f64() / 3600.0
}

fn text(exif: &exif::Exif, tag: Tag) -> String {
    exif.get_field(tag, In::PRIMARY).expect("a field").display_value().to_string()
}

#[test]
fn exif_gets_a_place_and_keeps_the_rest() {
    for little in [false, true] {
        for with_gps in [false, true] {
            let old = structure(little, with_gps);
            for file in [jpeg(Some(&old)), png(Some(&old))] {
                assert!(!has_place(&file).expect("a picture"));
                let tagged =
                    with_place(&file, &tag(-33.857, 151.215), Replace::Nothing).expect("tagged");
                assert!(has_place(&tagged).expect("a picture"));
                let exif = fields(&tagged);
                assert!((degrees(&exif, Tag::GPSLatitude) - 33.857).abs() < 1e-7);
                assert!((degrees(&exif, Tag::GPSLongitude) - 151.215).abs() < 1e-7);
                assert_eq!(text(&exif, Tag::GPSLatitudeRef), "S");
                assert_eq!(text(&exif, Tag::GPSHPositioningError), "12340");
                assert!(text(&exif, Tag::ImageDescription).contains("hello"));
                assert_eq!(text(&exif, Tag::DateTimeOriginal), "2024-05-01 12:00:00");
                assert_eq!(exif.get_field(Tag::GPSAltitude, In::PRIMARY).is_some(), with_gps);
                let maker = &exif.get_field(Tag::MakerNote, In::PRIMARY).expect("a note").value;
                assert!(matches!(maker, Value::Undefined(bytes, _) if bytes == b"maker\x01\x02"));
                // Nothing of the old structure moved: only the 4 bytes of one pointer differ.
                let at = |haystack: &[u8], needle: &[u8]| {
                    haystack.windows(needle.len()).position(|window| window == needle)
                };
                let start = at(&tagged, &old[..4]).expect("a header");
                let differ = old.iter().zip(&tagged[start..]).filter(|(a, b)| a != b).count();
                assert!(differ <= 4, "{differ}");
                assert!(matches!(
                    with_place(&tagged, &tag(1.0, 2.0), Replace::Nothing),
                    Err(TagError::HasPlace)
                ));
                // A place of this program is updated, the rest stays. By force, nothing of the old place stays.
                for replace in [Replace::Own, Replace::Everything] {
                    let again = with_place(&tagged, &tag(1.0, -2.0), replace).expect("again");
                    let exif = fields(&again);
                    assert!((degrees(&exif, Tag::GPSLongitude) - 2.0).abs() < 1e-7);
                    let altitude = exif.get_field(Tag::GPSAltitude, In::PRIMARY).is_some();
                    assert_eq!(altitude, with_gps && replace == Replace::Own);
                }
            }
        }
    }
}

#[test]
fn pictures_without_exif_get_some() {
    let old = jpeg(None);
    let tagged = with_place(&old, &tag(10.0, 20.0), Replace::Nothing).expect("tagged");
    assert!((degrees(&fields(&tagged), Tag::GPSLatitude) - 10.0).abs() < 1e-7);
    // An insertion behind the JFIF segment, nothing else.
    let inserted = tagged.len() - old.len();
    assert_eq!(tagged[..20], old[..20]);
    assert_eq!(tagged[20 + inserted..], old[20..]);

    let old = png(None);
    let tagged = with_place(&old, &tag(10.0, 20.0), Replace::Nothing).expect("tagged");
    assert!((degrees(&fields(&tagged), Tag::GPSLongitude) - 20.0).abs() < 1e-7);
    let pixels = |bytes: &[u8]| {
        let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        reader.next_frame(&mut pixels).expect("pixels");
        (pixels, reader.info().uncompressed_latin1_text.len())
    };
    assert_eq!(pixels(&old), pixels(&tagged));
}

#[test]
fn broken_files_are_refused_without_a_panic() {
    let exif = structure(true, true);
    for file in [jpeg(Some(&exif)), png(Some(&exif))] {
        for cut in 0..file.len() {
            let _ = with_place(&file[..cut], &tag(1.0, 2.0), Replace::Everything);
        }
        for at in 0..file.len() {
            let mut file = file.clone();
            file[at] ^= 0xff;
            let _ = with_place(&file, &tag(1.0, 2.0), Replace::Everything);
        }
    }
    assert!(matches!(
        with_place(b"GIF89a", &tag(1.0, 2.0), Replace::Everything),
        Err(TagError::Format)
    ));
    // 64 KB are full.
    let full = jpeg(Some(&[structure(true, false), vec![0; 65_300]].concat()));
    assert!(matches!(with_place(&full, &tag(1.0, 2.0), Replace::Everything), Err(TagError::Full)));
}

struct Archive {
    folder: tempfile::TempDir,
    library: Library,
}

impl Archive {
    fn new(files: &[(&str, Vec<u8>)]) -> Archive {
        let folder = tempfile::tempdir().expect("a folder");
        let mut library = Library::open(&folder.path().join("library.sqlite")).expect("a library");
        let scan = library.begin_scan(&folder.path().to_string_lossy()).expect("a scan");
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("a file");
            let facts = Facts::of_bytes(&path.to_string_lossy(), 0, bytes);
            library.record(scan, &[Scanned { facts, error: None }]).expect("recorded");
        }
        Archive { folder, library }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = fs::read_dir(self.folder.path()).expect("a folder");
        let mut contents: Vec<(PathBuf, Vec<u8>)> = files
            .map(|file| file.expect("a file").path())
            .filter(|path| !path.to_string_lossy().contains("library.sqlite"))
            .map(|path| (path.clone(), fs::read(path).expect("bytes")))
            .collect();
        contents.sort();
        contents
    }
}

fn hash(path: &Path) -> ContentHash {
    ContentHash::of(&fs::read(path).expect("bytes"))
}

#[test]
fn undo_restores_every_byte() {
    let picture = jpeg(Some(&structure(false, true)));
    let sidecar = locdiff_archive::tags::new_sidecar(&tag(0.5, 0.5)).replace("GPSL", "NoL");
    let files = [
        ("a.jpg", picture.clone()),
        ("b.jpg", picture),
        ("b.jpg.xmp", sidecar.into_bytes()),
        ("c.png", png(None)),
    ];
    let mut archive = Archive::new(&files);
    let before = archive.contents();
    let place = tag(48.1, 11.5);
    for name in ["a.jpg", "b.jpg", "c.png"] {
        let path = archive.path(name);
        let content = hash(&path);
        let sidecar = write_sidecar(&mut archive.library, &path, content, &place, Replace::Nothing)
            .expect("a sidecar");
        assert_eq!(sidecar, sidecar_of(&path));
        let text = fs::read_to_string(&sidecar).expect("a text");
        assert!(place_in_sidecar(&text).expect("XMP").is_some());
        write_in_place(&mut archive.library, &path, content, &place, Replace::Nothing)
            .expect("in place");
        // And once more, over the first.
        let content = hash(&path);
        write_in_place(&mut archive.library, &path, content, &tag(1.0, 2.0), Replace::Everything)
            .expect("forced");
    }
    assert_ne!(archive.contents(), before);
    let written = archive.library.written_tags().expect("a log");
    assert_eq!(written.len(), 9);
    for tag in &written {
        undo(&mut archive.library, tag).expect("undone");
    }
    assert_eq!(archive.contents(), before);
    assert_eq!(archive.library.written_tags().expect("a log"), []);
}

#[test]
fn files_that_others_changed_are_left_alone() {
    let mut archive = Archive::new(&[("a.jpg", jpeg(None))]);
    let path = archive.path("a.jpg");
    let content = hash(&path);
    let sidecar =
        write_sidecar(&mut archive.library, &path, content, &tag(1.0, 2.0), Replace::Nothing)
            .expect("written");
    fs::write(&sidecar, "<changed/>").expect("changed");
    let written = archive.library.written_tags().expect("a log");
    assert!(matches!(undo(&mut archive.library, &written[0]), Err(TagError::Changed(_))));
    assert_eq!(fs::read_to_string(&sidecar).expect("a text"), "<changed/>");

    fs::write(&path, jpeg(Some(&structure(true, false)))).expect("changed");
    let refused =
        write_in_place(&mut archive.library, &path, content, &tag(1.0, 2.0), Replace::Nothing);
    assert!(matches!(refused, Err(TagError::Changed(_))));
}

/// A crash between the plan, the writing and the note of it leaves nothing undecided.
#[test]
fn interrupted_writes_are_settled() {
    use locdiff_archive::library::{LoggedTag, TagTarget};
    let mut archive = Archive::new(&[("a.jpg", jpeg(None)), ("b.jpg", png(None))]);
    let plan = |archive: &mut Archive, name: &str, after: &[u8]| {
        let path = archive.path(name);
        let sidecar = sidecar_of(&path).to_string_lossy().into_owned();
        let planned =
            LoggedTag::planned(&sidecar, TagTarget::Sidecar, hash(&path), ContentHash::of(after));
        archive.library.plan_tag(&planned).expect("planned");
        sidecar
    };
    let reached = plan(&mut archive, "a.jpg", b"after");
    fs::write(&reached, "after").expect("written");
    plan(&mut archive, "b.jpg", b"never");
    let recovered = recover(&mut archive.library).expect("recovered");
    assert_eq!(recovered, Recovered { written: 1, forgotten: 1, unsettled: 0 });
    assert_eq!(recover(&mut archive.library).expect("recovered"), Recovered::default());
    let written = archive.library.written_tags().expect("a log");
    assert_eq!(written.len(), 1);
    undo(&mut archive.library, &written[0]).expect("undone");
    assert!(!Path::new(&reached).exists());
}

fn names(archive: &Archive) -> Vec<String> {
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    archive.contents().into_iter().filter_map(|(path, _)| name(path)).collect()
}

/// What a killed run leaves behind is removed; a file that can't be read stays in the log.
#[test]
fn leftovers_of_interrupted_writes_are_removed() {
    use locdiff_archive::library::{LoggedTag, TagTarget};
    let mut archive = Archive::new(&[("a.jpg", jpeg(None))]);
    let path = archive.path("a.jpg");
    let (name, content) = (path.to_string_lossy().into_owned(), hash(&path));
    let never = ContentHash::of(b"never");
    let mut planned = LoggedTag::planned(&name, TagTarget::InPlace, content, never);
    planned.hash_before = Some(content);
    planned.backup = Some(format!("{name}_original"));
    archive.library.plan_tag(&planned).expect("planned");
    fs::copy(&path, archive.path("a.jpg_original")).expect("a backup");
    for partial in ["a.jpg.locdiff-partial", "a.jpg_original.locdiff-partial"] {
        fs::write(archive.path(partial), "half").expect("a half");
    }
    let recovered = recover(&mut archive.library).expect("recovered");
    assert_eq!(recovered, Recovered { forgotten: 1, ..Recovered::default() });
    assert_eq!(names(&archive), ["a.jpg"]);
    // Nobody can read a folder as a file.
    let folder = archive.path("b.jpg.xmp");
    fs::create_dir(&folder).expect("a folder");
    let name = folder.to_string_lossy().into_owned();
    let planned = LoggedTag::planned(&name, TagTarget::Sidecar, content, never);
    archive.library.plan_tag(&planned).expect("planned");
    for _ in 0..2 {
        let recovered = recover(&mut archive.library).expect("recovered");
        assert_eq!(recovered, Recovered { unsettled: 1, ..Recovered::default() });
    }
}

/// A write that fails leaves no backup, and is not in the log.
#[test]
fn failed_writes_leave_nothing() {
    let mut archive = Archive::new(&[("a.jpg", jpeg(None))]);
    let path = archive.path("a.jpg");
    // The picture can't be written: its temporary name is taken by a folder.
    let blocked = archive.path("a.jpg.locdiff-partial");
    fs::create_dir(&blocked).expect("a folder");
    let content = hash(&path);
    let failed =
        write_in_place(&mut archive.library, &path, content, &tag(1.0, 2.0), Replace::Nothing);
    assert!(matches!(failed, Err(TagError::File { .. })), "{failed:?}");
    fs::remove_dir(&blocked).expect("removed");
    assert_eq!(names(&archive), ["a.jpg"]);
    assert_eq!(archive.library.interrupted_tags().expect("a log"), []);
    assert_eq!(archive.library.written_tags().expect("a log"), []);
}

/// Another program's backup with the same bytes is neither used nor removed.
#[test]
fn backups_of_others_stay() {
    let mut archive = Archive::new(&[("a.jpg", jpeg(None))]);
    let path = archive.path("a.jpg");
    fs::copy(&path, archive.path("a.jpg_original")).expect("exiftool's backup");
    let before = archive.contents();
    let content = hash(&path);
    let backup =
        write_in_place(&mut archive.library, &path, content, &tag(1.0, 2.0), Replace::Nothing)
            .expect("written");
    assert_eq!(backup, archive.path("a.jpg_original2"));
    let written = archive.library.written_tags().expect("a log");
    undo(&mut archive.library, &written[0]).expect("undone");
    assert_eq!(archive.contents(), before);
}

#[test]
fn one_process_at_a_time_writes_tags() {
    let archive = Archive::new(&[]);
    let other = Library::open(&archive.path("library.sqlite")).expect("the same library");
    let lock = archive.library.lock_for_tags().expect("a lock");
    let refused = other.lock_for_tags().expect_err("locked").to_string();
    assert!(refused.contains("another process"), "{refused}");
    drop(lock);
    other.lock_for_tags().expect("free again");
}

/// A picture that was replaced, made read-only or is a link is left alone.
#[test]
fn pictures_that_must_not_be_written_are_refused() {
    let mut archive = Archive::new(&[("a.jpg", jpeg(None)), ("b.jpg", png(None))]);
    let (path, place) = (archive.path("a.jpg"), tag(1.0, 2.0));
    let other = hash(&archive.path("b.jpg"));
    let changed = write_sidecar(&mut archive.library, &path, other, &place, Replace::Everything);
    assert!(matches!(changed, Err(TagError::Changed(_))), "{changed:?}");
    let gone = archive.path("gone.jpg");
    let gone = write_sidecar(&mut archive.library, &gone, other, &place, Replace::Nothing);
    assert!(matches!(gone, Err(TagError::File { .. })), "{gone:?}");

    let content = hash(&path);
    let mut permissions = fs::metadata(&path).expect("metadata").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).expect("read-only");
    let refused = write_in_place(&mut archive.library, &path, content, &place, Replace::Everything);
    assert!(matches!(refused, Err(TagError::ReadOnly(_))), "{refused:?}");
    assert_eq!(names(&archive), ["a.jpg", "b.jpg"]);
    let sidecar = write_sidecar(&mut archive.library, &path, content, &place, Replace::Nothing);
    assert!(sidecar.is_ok(), "{sidecar:?}");
}

#[cfg(unix)]
#[test]
fn links_are_not_replaced() {
    let mut archive = Archive::new(&[("a.jpg", jpeg(None))]);
    let (path, link) = (archive.path("a.jpg"), archive.path("b.jpg"));
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let content = hash(&path);
    for write in [write_in_place, write_sidecar] {
        let refused =
            write(&mut archive.library, &link, content, &tag(1.0, 2.0), Replace::Everything);
        assert!(matches!(refused, Err(TagError::Link(_))), "{refused:?}");
    }
    fs::write(archive.path("c.xmp"), "<x/>").expect("a file");
    std::os::unix::fs::symlink(archive.path("c.xmp"), sidecar_of(&path)).expect("a link");
    let refused =
        write_sidecar(&mut archive.library, &path, content, &tag(1.0, 2.0), Replace::Everything);
    assert!(matches!(refused, Err(TagError::Link(_))), "{refused:?}");
}

/// Undo reports a sidecar that was moved together with its picture.
#[test]
fn a_moved_sidecar_is_not_found() {
    let mut archive = Archive::new(&[("a.jpg", jpeg(None))]);
    let path = archive.path("a.jpg");
    let content = hash(&path);
    let sidecar =
        write_sidecar(&mut archive.library, &path, content, &tag(1.0, 2.0), Replace::Nothing)
            .expect("written");
    let written = archive.library.written_tags().expect("a log");
    fs::rename(&sidecar, archive.path("b.jpg.xmp")).expect("moved");
    fs::rename(&path, archive.path("b.jpg")).expect("moved");
    let missing = undo(&mut archive.library, &written[0]);
    assert!(matches!(missing, Err(TagError::Missing(_))), "{missing:?}");
    assert_eq!(archive.library.written_tags().expect("a log"), written);
    // The user deleted the sidecar alone: there is nothing left to undo.
    fs::rename(archive.path("b.jpg"), &path).expect("moved");
    undo(&mut archive.library, &written[0]).expect("undone");
}

/// Decisions follow a picture that is written in place, and come back with it.
#[test]
fn the_newest_decision_survives_tagging_and_undoing() {
    use locdiff_archive::library::Decision;
    let mut archive = Archive::new(&[("a.jpg", jpeg(None))]);
    let path = archive.path("a.jpg");
    let decided = |archive: &Archive| {
        archive.library.entries("m", "1").expect("entries").into_iter().map(|e| e.decision).next()
    };
    let [first, second] =
        [1.0, 2.0].map(|n| Some(Decision::Moved(LatLon::new(n, n).expect("a place"))));
    for (early, late) in [(first, second), (second, None), (None, first)] {
        let content = hash(&path);
        archive.library.decide(content, early).expect("decided");
        write_in_place(&mut archive.library, &path, content, &tag(1.0, 2.0), Replace::Nothing)
            .expect("written");
        assert_eq!(decided(&archive), Some(early));
        archive.library.decide(hash(&path), late).expect("decided");
        let written = archive.library.written_tags().expect("a log");
        undo(&mut archive.library, &written[0]).expect("undone");
        assert_eq!(decided(&archive), Some(late));
    }
}

/// Raw files keep Adobe's sidecar, and those whose tags can't be read are left alone.
#[test]
fn raw_files_have_their_own_rules() {
    let adobe = locdiff_archive::tags::new_sidecar(&tag(0.5, 0.5)).replace("GPSL", "NoL");
    let files = [
        ("a.nef", structure(true, false)),
        ("a.xmp", adobe.into_bytes()),
        ("b.cr3", b"\0\0\0\x18ftypcrx ".to_vec()),
    ];
    let mut archive = Archive::new(&files);
    let nef = archive.path("a.nef");
    let content = hash(&nef);
    let place = tag(1.0, 2.0);
    let sidecar = write_sidecar(&mut archive.library, &nef, content, &place, Replace::Nothing)
        .expect("written");
    assert_eq!(sidecar, archive.path("a.xmp"));
    let cr3 = archive.path("b.cr3");
    let content = hash(&cr3);
    let refused = write_sidecar(&mut archive.library, &cr3, content, &place, Replace::Nothing);
    assert!(matches!(refused, Err(TagError::UnreadTags)), "{refused:?}");
    let forced = write_sidecar(&mut archive.library, &cr3, content, &place, Replace::Everything);
    assert_eq!(forced.expect("forced"), archive.path("b.cr3.xmp"));
}
