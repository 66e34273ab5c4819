//! Fetching against a hub of our own, on this machine: nothing here uses the network.

mod fetching;
mod interruptions;
mod refusals;
mod server;

use std::path::Path;
use std::time::Duration;

use locdiff::checksum::sha256;
use locdiff::encoders::hub::{Encoder, FetchedModel, Hub, HubError, HubSettings};
use tempfile::TempDir;

use server::{Behaviour, Server};

const WEIGHTS: &str = "model.safetensors";

/// More than the client reads at once, and of no period that a wrong offset could hide in.
fn weights() -> Vec<u8> {
    let mut state = 1u32;
    (0..400_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

/// A proper model on a proper hub.
fn model() -> Behaviour {
    let weights = weights();
    let sum = sha256(&weights);
    let files = [
        ("config.json", (b"{\"model_type\": \"clip\"}".to_vec(), "a".repeat(40))),
        ("preprocessor_config.json", (b"{\"size\": 224}".to_vec(), "b".repeat(40))),
        (WEIGHTS, (weights, sum)),
    ];
    Behaviour { files: files.into(), ..Behaviour::default() }
}

/// A hub, a cache, and how the one is reached from the other.
struct Setup {
    server: Server,
    cache: TempDir,
}

impl Setup {
    fn new(behaviour: Behaviour) -> Setup {
        Setup { server: Server::start(behaviour), cache: tempfile::tempdir().unwrap() }
    }

    fn settings(&self) -> HubSettings {
        settings(self.cache.path(), self.server.endpoint())
    }

    fn fetch(&self) -> Result<FetchedModel, HubError> {
        self.fetch_with(self.settings())
    }

    fn fetch_with(&self, settings: HubSettings) -> Result<FetchedModel, HubError> {
        Hub::new(settings).unwrap().fetch(&encoder(), &mut |_| {})
    }

    fn cached(&self) -> Option<FetchedModel> {
        Hub::new(self.settings()).unwrap().cached(&encoder())
    }

    fn blob(&self, etag: &str) -> std::path::PathBuf {
        self.cache.path().join("models--owner--model").join("blobs").join(etag)
    }

    fn part(&self) -> std::path::PathBuf {
        self.blob(&format!("{}.incomplete", sha256(&weights())))
    }
}

fn settings(cache: &Path, endpoint: String) -> HubSettings {
    HubSettings {
        endpoint: Some(endpoint),
        pause: Duration::from_millis(1),
        silence: Duration::from_secs(10),
        ..HubSettings::new(cache.to_owned())
    }
}

fn encoder() -> Encoder {
    "owner/model".parse().unwrap()
}

fn assert_whole(model: &FetchedModel) {
    assert_eq!(std::fs::read(model.directory.join(WEIGHTS)).unwrap(), weights());
}
