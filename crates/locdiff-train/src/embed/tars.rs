//! Tars in the manner of WebDataset.
//!
//! A sample is a run of members with the same key, which is their name up to the first dot:
//! `000123.jpg`, `000123.json`. Its picture is the member whose extension is that of a picture,
//! its place is in the JSON, if anywhere; all else (`.cls`, `.txt` …) is ignored. A sample
//! without a picture, and a second picture in a sample, are reported as skipped. Headers are
//! read one after another; what isn't needed is passed over.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tar::{Archive, Entry, EntryType};

use super::folder::with_slashes;
use super::item::{Bad, Content, Item, Stated};

const PICTURES: [&str; 16] = [
    "jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "tif", "tiff", "bmp", "heic", "heif",
    "avif", "jxl", "jp2", "dng",
];
/// Descriptions are short; what is longer is something else.
const MAX_JSON_BYTES: u64 = 1 << 20;

/// Shows the wanted items of some tars, until `visit` returns false.
pub(super) fn visit(
    root: &Path,
    tars: &[PathBuf],
    is_wanted: &dyn Fn(u64) -> bool,
    max_bytes: u64,
    visit: &mut dyn FnMut(Item) -> bool,
) {
    let mut index = 0;
    for tar in tars {
        let (name, path) = (with_slashes(tar), root.join(tar));
        let next = visit_wanted(&name, File::open(&path), index, is_wanted, max_bytes, visit);
        match next {
            Some(next) => index = next,
            None => return,
        }
    }
}

/// Shows all items of one tar, until `visit` returns false. A tar that can't be read, or not to its end, is an item too, a bad
/// one, so that nothing is lost in silence. Members that are larger than `max_bytes` aren't read.
pub fn visit_tar<R: Read + Seek>(
    name: &str,
    tar: io::Result<R>,
    max_bytes: u64,
    visit: &mut dyn FnMut(Item) -> bool,
) {
    visit_wanted(name, tar, 0, &|_| true, max_bytes, visit);
}

/// The index after the last item, or nothing if `visit` returned false.
fn visit_wanted<R: Read + Seek>(
    name: &str,
    tar: io::Result<R>,
    index: u64,
    is_wanted: &dyn Fn(u64) -> bool,
    max_bytes: u64,
    visit: &mut dyn FnMut(Item) -> bool,
) -> Option<u64> {
    let mut walk =
        Walk { tar: name, is_wanted, max_bytes, visit, index, sample: None, stopped: false };
    // The bytes of a tar are as untrusted as those of a picture.
    let walked = catch_unwind(AssertUnwindSafe(|| walk.walk(tar?)));
    let bad = match walked {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Bad::new(Bad::DAMAGED, format!("the tar: {error}"))),
        Err(_) => Some(Bad::new(Bad::PANIC, "reading the tar ended in a panic")),
    };
    walk.end_sample();
    if let Some(bad) = bad {
        walk.emit(|| Item::bad(name.to_owned(), name.to_owned(), bad));
    }
    (!walk.stopped).then_some(walk.index)
}

struct Walk<'a> {
    tar: &'a str,
    is_wanted: &'a dyn Fn(u64) -> bool,
    max_bytes: u64,
    visit: &'a mut dyn FnMut(Item) -> bool,
    /// Of the next item that is shown.
    index: u64,
    sample: Option<Sample>,
    stopped: bool,
}

struct Sample {
    key: String,
    /// Member and content. Unread if it is not needed.
    picture: Option<(String, Content)>,
    place: Stated,
    /// Members that are pictures too.
    more: Vec<String>,
}

impl Walk<'_> {
    fn walk(&mut self, tar: impl Read + Seek) -> io::Result<()> {
        let mut archive = Archive::new(tar);
        for entry in archive.entries_with_seek()? {
            if self.stopped {
                return Ok(());
            }
            let mut entry = entry?;
            if entry.header().entry_type() == EntryType::Directory {
                continue;
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let name = name.strip_prefix("./").unwrap_or(&name);
            let file_at = name.rfind('/').map_or(0, |slash| slash + 1);
            if name[file_at..].starts_with('.') {
                continue;
            }
            let (key, extension) = match name[file_at..].split_once('.') {
                Some((stem, extension)) => (&name[..file_at + stem.len()], extension),
                None => (name, ""),
            };
            if self.sample.as_ref().is_none_or(|sample| sample.key != key) {
                self.end_sample();
                let (key, more) = (key.to_owned(), Vec::new());
                self.sample = Some(Sample { key, picture: None, place: Stated::Nothing, more });
            }
            self.add_member(name, extension, &mut entry);
        }
        Ok(())
    }

    fn add_member(&mut self, name: &str, extension: &str, entry: &mut Entry<'_, impl Read>) {
        let Some(sample) = &mut self.sample else { return };
        let wanted = (self.is_wanted)(self.index);
        let kind = extension.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        if PICTURES.contains(&kind.as_str()) {
            if sample.picture.is_some() {
                sample.more.push(name.to_owned());
                return;
            }
            let content = match wanted {
                true => read(entry, self.max_bytes).map_or_else(Content::Bad, Content::Bytes),
                false => Content::Bytes(Vec::new()),
            };
            sample.picture = Some((name.to_owned(), content));
        } else if extension.eq_ignore_ascii_case("json") && wanted {
            sample.place = match read(entry, MAX_JSON_BYTES) {
                Ok(bytes) => Stated::of_json(&bytes),
                Err(bad) => Stated::Wrong(format!("its JSON cannot be read: {}", bad.message)),
            };
        }
    }

    /// Shows what the sample came to.
    fn end_sample(&mut self) {
        let Some(Sample { key, picture, place, more }) = self.sample.take() else { return };
        let tar = self.tar;
        let path = |member: &str| format!("{tar}/{member}");
        let first = picture.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
        self.emit(|| match picture {
            Some((name, content)) => Item { id: key.clone(), path: path(&name), place, content },
            None => {
                let bad = Bad::new(Bad::NO_PICTURE, "none of the sample's members is a picture");
                Item::bad(key.clone(), path(&key), bad)
            }
        });
        for name in more {
            let reason = format!("{first} is the picture of this sample");
            let bad = Bad::new(Bad::SECOND_PICTURE, reason);
            self.emit(|| Item::bad(name.clone(), path(&name), bad));
        }
    }

    /// Counts an item, and shows it if it is wanted.
    fn emit(&mut self, item: impl FnOnce() -> Item) {
        if !self.stopped && (self.is_wanted)(self.index) {
            self.stopped = !(self.visit)(item());
        }
        self.index += 1;
    }
}

fn read(entry: &mut Entry<'_, impl Read>, max_bytes: u64) -> Result<Vec<u8>, Bad> {
    match entry.header().entry_type() {
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {}
        _ => return Err(Bad::new(Bad::UNREADABLE, "links within tars are not followed")),
    }
    let size = entry.size();
    if size > max_bytes {
        return Err(Bad::new(
            Bad::TOO_LARGE,
            format!("too large: {size} bytes, the limit is {max_bytes}"),
        ));
    }
    let mut bytes = Vec::new();
    match entry.take(max_bytes).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 == size => Ok(bytes),
        Ok(read) => {
            let reason = format!("the tar ends after {read} of the member's {size} bytes");
            Err(Bad::new(Bad::DAMAGED, reason))
        }
        Err(error) => Err(Bad::new(Bad::UNREADABLE, error)),
    }
}
