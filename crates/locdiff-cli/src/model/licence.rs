//! Licences that somebody must accept before weights are fetched.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

use anyhow::{Context, bail};
use locdiff::ModelHome;

use crate::text::stderr;

/// What was accepted on this machine: licences by repository, in the home of models.
const ACCEPTED: &str = "accepted-licenses.json";

/// Prints the licence of a repository. A licence that forbids commercial use must have been accepted before, or is accepted
/// now: `accept` is what the user said.
pub(super) fn require(
    home: &ModelHome,
    what: &str,
    repository: &str,
    licence: &str,
    accept: bool,
) -> anyhow::Result<()> {
    let restricted = licence.contains("-NC");
    let restriction = if restricted { ", non-commercial use only" } else { "" };
    writeln!(stderr(), "{what}: license {licence}{restriction} ({repository})")?;
    if !restricted {
        return Ok(());
    }
    let path = home.directory().join(ACCEPTED);
    let accepted = fs::read_to_string(&path).ok();
    let mut accepted: BTreeMap<String, String> =
        accepted.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    if accepted.get(repository).is_some_and(|before| before == licence) {
        return Ok(());
    }
    if !accept {
        bail!(
            "the license of {repository}, {licence}, forbids commercial use: nothing was fetched. If you accept the \
             license, add --accept-license (needed once)"
        );
    }
    accepted.insert(repository.to_owned(), licence.to_owned());
    fs::create_dir_all(home.directory())
        .and_then(|()| fs::write(&path, serde_json::to_string_pretty(&accepted)? + "\n"))
        .with_context(|| format!("cannot write {}", path.display()))
}
