//! The architecture that the folders show: files don't import each other in circles, and the contract
//! imports none of the models that fulfil it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path from the crate's root; the root's is empty.
type Module = Vec<String>;

#[derive(Default)]
struct Source {
    /// Names that it passes on, and where they come from.
    passed_on: BTreeMap<String, Vec<String>>,
    /// Paths that it imports for itself.
    imports: Vec<Vec<String>>,
}

fn read(folder: &Path, module: &Module, sources: &mut BTreeMap<Module, Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut inner = module.clone();
        if path.is_dir() {
            inner.push(stem);
            read(&path, &inner, sources);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            if stem != "mod" && stem != "lib" {
                inner.push(stem);
            }
            sources.insert(inner.clone(), parse(&fs::read_to_string(&path).unwrap(), &inner));
        }
    }
}

fn parse(text: &str, module: &Module) -> Source {
    // Tests may look at everything.
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let mut source = Source::default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    let code: String = lines.collect::<Vec<_>>().join(" ");
    // Paths that are written out where they are used.
    for rest in code.split("crate::").skip(1) {
        let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let path: String = rest.chars().take_while(|c| is_path(*c)).collect();
        let path: Vec<String> =
            path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let is_passed_on = code.contains(&format!("pub use crate::{}", path.join("::")));
        if !path.is_empty() && !is_passed_on {
            source.imports.push(path);
        }
    }
    for statement in code.split(';') {
        let Some((before, tree)) = statement.rsplit_once("use ") else { continue };
        let is_passed_on = before.trim_end().ends_with("pub") || before.trim_end().ends_with(')');
        for (path, name) in leaves(tree) {
            let Some(path) = absolute(path, module) else { continue };
            if is_passed_on {
                source.passed_on.insert(name, path);
            } else {
                source.imports.push(path);
            }
        }
    }
    source
}

/// `a::{b, c as d}` as (a::b, b) and (a::c, d).
fn leaves(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    if let Some((before, inner)) = tree.split_once('{') {
        let inner = inner.trim_end().trim_end_matches('}');
        let (mut depth, mut parts) = (0, vec![String::new()]);
        for character in inner.chars() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => parts.push(String::new()),
                _ => {}
            }
            if character != ',' || depth > 0 {
                parts.last_mut().unwrap().push(character);
            }
        }
        let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
        return parts.flat_map(|part| leaves(&format!("{before}{}", part.trim()))).collect();
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree));
    let path: Vec<String> = path.split("::").map(|part| part.trim().to_owned()).collect();
    let path: Vec<String> = path.into_iter().filter(|part| part != "self").collect();
    let name = name.rsplit("::").next().unwrap_or_default().trim().to_owned();
    vec![(path, name)]
}

/// From the crate's root; `None` for other crates. A path that begins with neither `crate` nor `super` may be
/// that of a child.
fn absolute(path: Vec<String>, module: &Module) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "super" => {
            let above = path.iter().take_while(|part| *part == "super").count();
            let mut full = module[..module.len() - above].to_vec();
            full.extend_from_slice(&path[above..]);
            Some(full)
        }
        _ => Some([module.clone(), path].concat()),
    }
}

/// The file that defines what a path names.
fn definition(path: &[String], sources: &BTreeMap<Module, Source>) -> Option<Module> {
    let length = (0..=path.len()).rev().find(|length| sources.contains_key(&path[..*length]))?;
    let module = path[..length].to_vec();
    let Some(name) = path.get(length) else { return Some(module) };
    match sources[&module].passed_on.get(name) {
        Some(further) if further != path => definition(further, sources),
        _ => Some(module),
    }
}

fn imports() -> BTreeMap<Module, BTreeSet<Module>> {
    let mut sources = BTreeMap::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    read(&folder, &Vec::new(), &mut sources);
    let of = |(module, source): (&Module, &Source)| {
        let found = source.imports.iter().filter_map(|path| definition(path, &sources));
        // What belongs to another crate ends where it began.
        (module.clone(), found.filter(|found| found != module && !found.is_empty()).collect())
    };
    sources.iter().map(of).collect()
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let imports = imports();
    assert!(imports.len() > 50, "{} files", imports.len());
    let edges: usize = imports.values().map(BTreeSet::len).sum();
    assert!(edges > 100, "{edges} imports are too few to be all");
    // Files that import nothing but what is done with are done with.
    let mut done: BTreeSet<Module> = BTreeSet::new();
    loop {
        let ready: Vec<Module> = imports
            .iter()
            .filter(|(module, needs)| !done.contains(*module) && needs.is_subset(&done))
            .map(|(module, _)| module.clone())
            .collect();
        if ready.is_empty() {
            break;
        }
        done.extend(ready);
    }
    let circular: Vec<String> = imports
        .iter()
        .filter(|(module, _)| !done.contains(*module))
        .map(|(module, needs)| {
            let needs = needs.difference(&done).map(|need| need.join("::"));
            format!("{} imports {}", module.join("::"), needs.collect::<Vec<_>>().join(", "))
        })
        .collect();
    assert!(circular.is_empty(), "in or behind a circle:\n{}", circular.join("\n"));
}

#[test]
fn the_contract_imports_no_model() {
    for (module, needs) in
        imports().iter().filter(|(module, _)| module[..].starts_with(&["locate".to_owned()]))
    {
        let models: Vec<&Module> = needs.iter().filter(|need| need[0] == "models").collect();
        assert!(models.is_empty(), "{module:?} imports {models:?}");
    }
}
