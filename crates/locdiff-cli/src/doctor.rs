//! `locdiff doctor`: what is installed, what is missing, how to get it, and whether it works.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use burn::tensor::Device;
use clap::Args;
use locdiff::encoders::{Embedder, ImageEncoder, Reading};
use locdiff::models::earth_view::EarthLocator;
use locdiff::models::geoclip::{GeoClip, GeoClipLocator};
use locdiff::models::{
    ModelDirectory, ModelKind, SelfTest, SelfTestFailed, model_directories, model_directory,
    test_earth_view, test_encoder, test_geoclip,
};
use locdiff::{CannotOpen, Geolocator, InferenceOptions, ModelHome, Photo};
use serde_json::json;

use crate::model::{SELF_TEST, self_test_record};
use crate::with_causes;

#[derive(Args)]
pub(crate) struct Arguments {
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Only check the files, do not run the models
    #[arg(long)]
    no_tests: bool,
    /// Also check this model: a name or a directory
    #[arg(short, long, value_name = "NAME")]
    model: Vec<String>,
}

/// Encoders by short name, as far as this program can find any by name.
#[cfg(feature = "hub")]
fn known_encoders() -> Vec<String> {
    locdiff::encoders::hub::Encoder::known()
        .iter()
        .map(|encoder| encoder.name().to_owned())
        .collect()
}

#[cfg(not(feature = "hub"))]
fn known_encoders() -> Vec<String> {
    vec!["clip-vit-l-14".to_owned()]
}

/// Encoders that were imported under names of their own.
fn imported_encoders(home: &ModelHome) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(home.models()) else { return Vec::new() };
    let models: Vec<String> = model_directories(home).into_iter().map(|(name, _)| name).collect();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !models.contains(name) && !known_encoders().contains(name))
        .filter(|name| home.model(name).join("config.json").is_file())
        .collect();
    names.sort();
    names
}

/// SHA-256 of files of weights that their authors publish. None yet: the program was written where the hub can't be reached, and
/// a checksum from hearsay would be worse than none.
const PUBLISHED_WEIGHTS: &[&str] = &[];

fn is_known(sha256: &str) -> bool {
    PUBLISHED_WEIGHTS.contains(&sha256)
}

struct Finding {
    name: String,
    state: State,
    /// Where it is, or what is missing.
    detail: String,
    /// What to do, if anything.
    remedy: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Works,
    /// It runs, but the checksum of its weights is not among the known ones.
    Unknown,
    /// There, not tried.
    Installed,
    Missing,
    Broken,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Works => "works",
            State::Unknown => "runs, unknown weights",
            State::Installed => "installed",
            State::Missing => "not installed",
            State::Broken => "BROKEN",
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let home = ModelHome::from_env()?;
    let mut findings = vec![earth_view(&arguments), geoclip(&home, &arguments)];
    let encoders = known_encoders().into_iter().chain(imported_encoders(&home));
    findings.extend(encoders.map(|name| encoder(&name, &home, &arguments)));
    let installed = model_directories(&home).into_iter().map(|(name, _)| name);
    let others = installed.filter(|name| name != "geoclip").chain(arguments.model.iter().cloned());
    findings.extend(others.map(|name| model(&name, &home, &arguments)));
    let broken = findings.iter().any(|finding| finding.state == State::Broken);
    if arguments.json {
        let models: Vec<_> = findings
            .iter()
            .map(|Finding { name, state, detail, remedy }| {
                json!({ "name": name, "state": state.word(), "detail": detail, "remedy": remedy })
            })
            .collect();
        let report = json!({
            "version": crate::VERSION,
            "home": home.directory().display().to_string(),
            "threads": rayon::current_num_threads(),
            "features": features(),
            "models": models,
        });
        writeln!(crate::text::json_stdout(), "{report}")?;
    } else {
        print(&home, &findings)?;
    }
    Ok(ExitCode::from(u8::from(broken)))
}

fn print(home: &ModelHome, findings: &[Finding]) -> anyhow::Result<()> {
    let mut out = crate::text::stdout();
    writeln!(out, "locdiff {}", crate::VERSION)?;
    writeln!(
        out,
        "  {} threads; built with: {}",
        rayon::current_num_threads(),
        features().join(", ")
    )?;
    writeln!(out, "  models are stored in {}", home.directory().display())?;
    writeln!(out)?;
    let (missing, there): (Vec<_>, Vec<_>) = findings
        .iter()
        .partition(|finding| finding.state == State::Missing && finding.detail.is_empty());
    for Finding { name, state, detail, remedy } in there {
        writeln!(out, "{name}: {}. {detail}", state.word())?;
        if let Some(remedy) = remedy {
            writeln!(out, "  {remedy}")?;
        }
    }
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|finding| finding.name.as_str()).collect();
        writeln!(out)?;
        writeln!(out, "Encoders that are not installed (only commands that name them need them):")?;
        writeln!(out, "  {}", names.join(", "))?;
        writeln!(out, "  Get one with `locdiff model fetch NAME`.")?;
    }
    Ok(())
}

fn features() -> Vec<&'static str> {
    let all = [
        ("cpu", true),
        ("cuda", cfg!(feature = "cuda")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("metal", cfg!(feature = "metal")),
        ("heif", cfg!(feature = "heif")),
        ("hub", cfg!(feature = "hub")),
        ("s3", cfg!(feature = "s3")),
    ];
    all.into_iter().filter(|(_, built)| *built).map(|(name, _)| name).collect()
}

/// The model inside this program.
fn earth_view(arguments: &Arguments) -> Finding {
    let name = "earth-view".to_owned();
    let detail = "Built into this program".to_owned();
    if arguments.no_tests {
        return Finding { name, state: State::Installed, detail, remedy: None };
    }
    let began = Instant::now();
    let model = EarthLocator::built_in(&Device::flex());
    tested(name, detail, test_earth_view(&model), began, "Build or get the program again")
}

fn geoclip(home: &ModelHome, arguments: &Arguments) -> Finding {
    let name = "geoclip".to_owned();
    if let Some(missing) = GeoClipLocator::missing(&home.model("geoclip"), home) {
        let detail = format!("{} is not in {}", missing.part, missing.looked_in.display());
        return Finding { name, state: State::Missing, detail, remedy: Some(missing.remedy) };
    }
    let directory = home.model(&name);
    let detail = format!("Head, location encoder and gallery are in {}", directory.display());
    if arguments.no_tests {
        return Finding { name, state: State::Installed, detail, remedy: None };
    }
    let began = Instant::now();
    let remedy =
        format!("Remove {} and get it again: `locdiff model fetch geoclip`", directory.display());
    let remedy = &remedy;
    match GeoClip::open(&directory, &Device::flex()) {
        Err(error) => broken(name, &with_causes(&error), remedy),
        Ok(geoclip) => {
            tested(name, detail, test_geoclip(&geoclip, &directory.join(SELF_TEST)), began, remedy)
        }
    }
}

/// A model that somebody trained: whether its files are whole, and its encoder is here and embeds the test picture as it did
/// when the model was made.
fn model(name: &str, home: &ModelHome, arguments: &Arguments) -> Finding {
    let name = name.to_owned();
    let directory = model_directory(&name, Some(home)).map(|path| ModelDirectory::read(&path));
    let remedy = format!("Find the damaged file with `locdiff model verify {name}`");
    let detail = match &directory {
        Some(Ok(directory)) => format!("In {}", directory.path().display()),
        Some(Err(error)) => return broken(name, &with_causes(error), &remedy),
        None => {
            let detail = CannotOpen::Unknown(name.clone()).to_string();
            return Finding { name, state: State::Missing, detail, remedy: None };
        }
    };
    if arguments.no_tests {
        return Finding { name, state: State::Installed, detail, remedy: None };
    }
    match Geolocator::open(&name) {
        Ok(model) => {
            let detail = format!("{detail}; {}", model.identity().description);
            // Weights of a user's own training are what the directory says; published ones should be those that their authors made.
            let state = match &directory {
                Some(Ok(directory)) if directory.kind() == ModelKind::Flow => {
                    if let Err(reason) = test_flow(directory, &model) {
                        return broken(name, &reason, &remedy);
                    }
                    match directory.files().values().all(|sum| is_known(sum)) {
                        true => State::Works,
                        false => State::Unknown,
                    }
                }
                _ => State::Works,
            };
            Finding { name, state, detail, remedy: None }
        }
        Err(CannotOpen::Missing { missing, remedy, .. }) => {
            Finding { name, state: State::Missing, detail: missing, remedy: Some(remedy) }
        }
        Err(error) => broken(name, &with_causes(&error), &remedy),
    }
}

/// Whether the files are those that were fetched, and a picture gets an answer.
fn test_flow(directory: &ModelDirectory, model: &Geolocator) -> Result<(), String> {
    for file in directory.verify() {
        if let Some(problem) = file.problem {
            return Err(format!("{} {problem}", file.name));
        }
    }
    // A few samples: the path is the same.
    let few = InferenceOptions { samples: Some(4), steps: Some(4), ..InferenceOptions::default() };
    let model = model.with(&few).map_err(|error| error.to_string())?;
    model.locate(&Photo::test_picture()).map_err(|error| error.to_string())?;
    Ok(())
}

fn encoder(name: &str, home: &ModelHome, arguments: &Arguments) -> Finding {
    let name = name.to_owned();
    let Some(directory) = home.encoder(&name) else {
        let remedy = Some(format!("`locdiff model fetch {name}`"));
        return Finding { name, state: State::Missing, detail: String::new(), remedy };
    };
    let detail = format!("In {}", directory.display());
    if arguments.no_tests {
        return Finding { name, state: State::Installed, detail, remedy: None };
    }
    let began = Instant::now();
    // The hub's files are checked and replaced when they are fetched; ours come first, and stay.
    let remedy = if directory == home.model(&name) {
        format!("Import it again: `locdiff model import encoder {name} DIRECTORY --force`")
    } else {
        format!("Get it again: `locdiff model fetch {name}`")
    };
    match ImageEncoder::open_as(&Reading::of(&name), &directory, &Device::flex()) {
        Err(error) => broken(name, &with_causes(&error), &remedy),
        Ok(encoder) => {
            let record = self_test_record(home, &name, &directory);
            let outcome = test_encoder(&encoder, &record);
            let known = encoder.record().sha256.as_deref().is_some_and(is_known);
            match tested(name, detail, outcome, began, &remedy) {
                // Its reference was made by these very weights.
                finding if finding.state == State::Works && !known => {
                    Finding { state: State::Unknown, ..finding }
                }
                finding => finding,
            }
        }
    }
}

fn tested(
    name: String,
    detail: String,
    outcome: Result<SelfTest, SelfTestFailed>,
    began: Instant,
    remedy: &str,
) -> Finding {
    let seconds = began.elapsed().as_secs_f64();
    match outcome {
        Ok(SelfTest::Agrees { difference }) => {
            let detail = format!(
                "{detail}; self-test: differs from its reference by {difference:.0e}, {seconds:.1} s"
            );
            Finding { name, state: State::Works, detail, remedy: None }
        }
        Ok(_) => {
            let detail = format!(
                "{detail}; self-test: there was no reference, so the current output was stored"
            );
            Finding { name, state: State::Works, detail, remedy: None }
        }
        Err(error) => broken(name, &error.to_string(), remedy),
    }
}

fn broken(name: String, error: &str, remedy: &str) -> Finding {
    let (detail, remedy) = (error.to_owned(), Some(remedy.to_owned()));
    Finding { name, state: State::Broken, detail, remedy }
}
