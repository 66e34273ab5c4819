//! Tells the program what it was built from, for `locdiff --version`.

use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    // A packaged crate has no repository; then the version alone has to do.
    let commit = git(&["rev-parse", "--short=10", "HEAD"]);
    let commit = commit.map(|commit| format!("{commit}, "));
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (target, profile) = (variable("TARGET"), variable("PROFILE"));
    let build = format!("{}{target}, {profile}", commit.unwrap_or_default());
    println!("cargo::rustc-env=LOCDIFF_BUILD={build}");
    println!("cargo::rerun-if-changed=build.rs");
}
