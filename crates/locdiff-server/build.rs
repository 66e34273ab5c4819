//! Puts the built page (`web/dist`, made by `web/build`) into the program, if it is there. Without it the server
//! answers over HTTP all the same, and explains at `/` how to build the page.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let web =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says where")).join("../../web");
    let dist = web.join("dist");
    // A page that is built later changes the folder above. A path that is not there would make every build a new one.
    let watched = if dist.is_dir() { &dist } else { &web };
    if watched.is_dir() {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    let mut files = Vec::new();
    if dist.join("index.html").is_file() {
        find(&dist, &mut files);
    }
    files.sort();
    let mut table = String::from("pub(crate) static FILES: &[(&str, &[u8])] = &[\n");
    for file in files {
        let file = file.canonicalize().expect("it was just there");
        let root = dist.canonicalize().expect("it was just there");
        let name =
            file.strip_prefix(root).expect("found beneath it").to_string_lossy().replace('\\', "/");
        writeln!(table, "    ({name:?}, include_bytes!({file:?})),").expect("into memory");
    }
    table.push_str("];\n");
    let out = Path::new(&env::var("OUT_DIR").expect("cargo says where")).join("page.rs");
    fs::write(out, table).expect("cargo's directory is writable");
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() { find(&path, files) } else { files.push(path) }
    }
}
