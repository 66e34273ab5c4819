//! Answers other than a file.

use std::error::Error;

use locdiff::encoders::hub::{Hub, HubError};

use crate::hub::server::{Behaviour, Fault};
use crate::hub::{Setup, assert_whole, model};

fn gated(status: u16, code: &'static str, message: &'static str) -> HubError {
    let behaviour = Behaviour { gate: Some(("secret", status, code, message)), ..model() };
    let setup = Setup::new(behaviour);
    let error = setup.fetch().unwrap_err();
    assert_eq!(setup.server.requests().len(), 1, "asking again would not help");
    assert!(std::fs::read_dir(setup.cache.path()).unwrap().next().is_none());
    error
}

#[test]
fn a_gated_model_says_what_to_do() {
    for status in [401, 403] {
        let error = gated(status, "GatedRepo", "Access to model owner/model is restricted.");
        assert!(matches!(error, HubError::Refused { status: found, .. } if found == status));
        for words in ["owner/model", "HF_TOKEN", "accept the terms", "is restricted"] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
    assert!(matches!(gated(403, "", ""), HubError::Refused { .. }));
}

#[test]
fn a_model_that_is_not_there_says_so() {
    // As the hub answers those who are not known to it.
    let error = gated(401, "RepoNotFound", "Invalid credentials in Authorization header");
    assert!(matches!(error, HubError::NoRepository { .. }), "{error:?}");
    assert!(error.to_string().contains("Invalid credentials"), "{error}");
    assert!(matches!(gated(404, "RepoNotFound", ""), HubError::NoRepository { .. }));
    assert!(matches!(gated(404, "RevisionNotFound", ""), HubError::NoRevision { .. }));
}

#[test]
fn a_missing_file_is_named() {
    let mut behaviour = model();
    behaviour.files.remove("model.safetensors");
    let setup = Setup::new(behaviour);
    let error = setup.fetch().unwrap_err();
    assert!(matches!(&error, HubError::NoFile { .. }));
    assert!(error.to_string().contains("model.safetensors or pytorch_model.bin"), "{error}");
    // Nothing was downloaded for nothing.
    assert!(setup.server.downloads("config.json").is_empty());
}

#[test]
fn errors_of_the_server_pass() {
    let mut behaviour = model();
    behaviour.faults_of_questions = [503, 429, 500].map(Fault::Status).into();
    behaviour.faults_of_downloads = [502, 504].map(Fault::Status).into();
    assert_whole(&Setup::new(behaviour).fetch().unwrap());
}

#[test]
fn errors_that_stay_are_told() {
    let mut behaviour = model();
    behaviour.faults_of_questions = [Fault::Status(503); 9].into();
    let error = Setup::new(behaviour).fetch().unwrap_err();
    assert!(matches!(error, HubError::Unreachable { attempts: 4, .. }), "{error:?}");
    assert!(error.source().unwrap().to_string().contains("503"));
}

#[test]
fn another_kind_of_server_is_noticed() {
    let mut behaviour = model();
    behaviour.files.get_mut("config.json").unwrap().1 = "../../../escape".to_owned();
    let error = Setup::new(behaviour).fetch().unwrap_err();
    assert!(matches!(error, HubError::NotAHub { .. }), "{error:?}");

    let setup = Setup::new(model());
    let mut settings = setup.settings();
    settings.endpoint = Some("hub.example".to_owned());
    assert!(matches!(Hub::new(settings), Err(HubError::Endpoint(_))));
}

#[test]
fn the_token_is_not_printed() {
    let setup = Setup::new(model());
    let mut settings = setup.settings();
    settings.token = Some("secret".to_owned());
    assert!(!format!("{:?}", Hub::new(settings).unwrap()).contains("secret"));
}
