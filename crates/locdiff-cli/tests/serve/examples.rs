//! The commands of the documentation, run by a shell.

use std::process::Command;

use crate::client::{Running, repository};

/// Lines that begin with `curl` in Markdown's code blocks; a backslash continues a line.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| line.starts_with("curl "));
    lines.map(str::to_owned).collect()
}

#[test]
fn every_curl_in_the_documentation_works() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: curl is not installed (Debian: apt-get install curl)");
        return;
    }
    let server = Running::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(repository("docs/serve.md")).unwrap();
    let mut all = commands(&text);
    let docs = String::from_utf8(server.get("/docs").body).unwrap();
    let docs = docs.replace("<pre>", "\n").replace("</pre>", "\n");
    let plain = docs
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    all.extend(commands(&plain));
    assert!(all.len() >= 10, "{all:?}");
    let has_jq = Command::new("jq").arg("--version").output().is_ok();
    for command in all {
        if command.contains("| jq ") && !has_jq {
            eprintln!(
                "skipped, because jq is not installed (Debian: apt-get install jq): {command}"
            );
            continue;
        }
        // Its files are written beside, not into the repository.
        let command =
            command.replace("--output ", &format!("--output {}/", folder.path().display()));
        let output = Command::new("bash")
            .args([
                "-c",
                &format!(
                    "set -o pipefail; {}",
                    command.replace("curl ", "curl --fail-with-body --silent --show-error ")
                ),
            ])
            .env("LOCDIFF", format!("http://{}", server.address))
            .current_dir(repository(""))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}\n{said}\n{complained}");
    }
}
