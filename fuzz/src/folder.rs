//! Inputs that are several files: a line `##### NAME` before each of them.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

const MARK: &[u8] = b"##### ";
/// More files are ignored.
const MOST_FILES: usize = 24;

/// A new folder with the files of an input. Names that lead elsewhere are ignored.
pub(crate) fn unpacked(input: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for (name, content) in parts(input).into_iter().take(MOST_FILES) {
        write(folder.path(), name, content);
    }
    folder
}

/// A file in a folder of its own.
pub(crate) fn with_file(name: &str, content: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    write(folder.path(), name, content);
    folder
}

fn write(folder: &Path, name: &str, content: &[u8]) {
    let is_plain = |part: &str| {
        !part.is_empty()
            && part.len() < 64
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    if name.split('/').count() > 3 || !name.split('/').all(is_plain) {
        return;
    }
    let path = folder.join(name);
    let _ = path.parent().map(fs::create_dir_all);
    // A name may be a file and a folder.
    let _ = fs::write(path, content);
}

fn parts(input: &[u8]) -> Vec<(&str, &[u8])> {
    let mut found = Vec::new();
    let mut rest = input.strip_prefix(MARK);
    while let Some(part) = rest {
        let Some(end) = part.iter().position(|byte| *byte == b'\n') else { break };
        let (name, content) = (&part[..end], &part[end + 1..]);
        let next =
            content.windows(MARK.len() + 1).position(|at| at[0] == b'\n' && &at[1..] == MARK);
        rest = next.map(|next| &content[next + 1 + MARK.len()..]);
        if let Ok(name) = std::str::from_utf8(name) {
            found.push((name, &content[..next.unwrap_or(content.len())]));
        }
    }
    found
}

/// The input that a folder is unpacked from.
pub(crate) fn packed(folder: &Path) -> Vec<u8> {
    let mut input = Vec::new();
    pack(folder, "", &mut input);
    input.truncate(input.len().saturating_sub(1));
    input
}

fn pack(folder: &Path, prefix: &str, input: &mut Vec<u8>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if path.is_dir() {
            pack(&path, &format!("{prefix}{name}/"), input);
        } else if let Ok(content) = fs::read(&path) {
            input.extend(MARK);
            input.extend(format!("{prefix}{name}\n").as_bytes());
            input.extend(content);
            input.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_packed_and_unpacked() {
        let input = b"##### a.json\n{}\n##### deep/b.bin\n\n\0##### \n\n##### ../c\nx";
        let folder = unpacked(input);
        assert_eq!(fs::read(folder.path().join("a.json")).ok(), Some(b"{}".to_vec()));
        assert_eq!(fs::read(folder.path().join("deep/b.bin")).ok(), Some(b"\n\0##### \n".to_vec()));
        assert!(!folder.path().join("../c").exists());
        assert_eq!(parts(&packed(folder.path())), parts(&input[..input.len() - 13]));
    }
}
