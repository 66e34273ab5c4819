//! What is fetched, where it goes, and what is done without the network.

use std::fs;
use std::sync::Barrier;

use locdiff::encoders::hub::{Encoder, Hub, HubError, Repository};

use crate::hub::server::{COMMIT, Fault, Request};
use crate::hub::{Setup, WEIGHTS, assert_whole, encoder, model, sha256, weights};

#[test]
fn a_model_is_fetched_into_the_layout_of_the_hub() {
    let setup = Setup::new(model());
    let mut reports: Vec<(String, u64, u64)> = Vec::new();
    let hub = Hub::new(setup.settings()).unwrap();
    let fetched = hub
        .fetch(&encoder(), &mut |p| reports.push((p.file.to_owned(), p.bytes, p.total_bytes)))
        .unwrap();

    let root = setup.cache.path().join("models--owner--model");
    assert_eq!(fetched.revision, COMMIT);
    assert_eq!(fetched.directory, root.join("snapshots").join(COMMIT));
    assert_eq!(fs::read_to_string(root.join("refs").join("main")).unwrap(), COMMIT);
    let names: Vec<&str> = fetched.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["config.json", "preprocessor_config.json", WEIGHTS]);
    assert_eq!(fetched.files[2].sha256, sha256(&weights()));
    assert_eq!(fetched.files[2].size_bytes, 400_000);
    assert_eq!(fetched.files[1].sha256, sha256(b"{\"size\": 224}"));
    assert_whole(&fetched);
    assert_eq!(fs::read(setup.blob(&sha256(&weights()))).unwrap(), weights());
    assert!(!setup.part().exists());
    #[cfg(unix)]
    assert_eq!(
        fs::read_link(fetched.directory.join("config.json")).unwrap(),
        std::path::PathBuf::from(format!("../../blobs/{}", "a".repeat(40)))
    );

    let of_weights: Vec<_> = reports.iter().filter(|report| report.0 == WEIGHTS).collect();
    assert_eq!(of_weights.first().unwrap().1, 0);
    assert!(of_weights.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    assert_eq!((of_weights.last().unwrap().1, of_weights.last().unwrap().2), (400_000, 400_000));
    assert_eq!(setup.cached().unwrap(), fetched);
}

#[test]
fn what_is_there_is_not_downloaded_again() {
    let setup = Setup::new(model());
    let first = setup.fetch().unwrap();
    setup.server.forget_requests();
    assert_eq!(setup.fetch().unwrap(), first);
    assert!(setup.server.requests().iter().all(|r| r.header("range") == "bytes=0-0"));
    assert_eq!(setup.server.requests().len(), 3);
}

#[test]
fn all_files_are_of_one_commit() {
    let setup = Setup::new(model());
    setup.fetch().unwrap();
    let of_hub = setup.server.requests().into_iter().filter(|r| r.path.contains("/resolve/"));
    let paths: Vec<String> = of_hub.map(|r| r.path).collect();
    assert_eq!(paths[0], "/owner/model/resolve/main/config.json");
    // Compressed, offsets would mean something else.
    let plain = |r: &Request| r.header("accept-encoding") == "identity";
    assert!(setup.server.requests().iter().all(plain));
    assert!(paths[1..].iter().all(|p| p.starts_with(&format!("/owner/model/resolve/{COMMIT}/"))));
}

#[test]
fn a_redirect_within_the_hub_is_followed() {
    let mut behaviour = model();
    behaviour.moved = true;
    assert_whole(&Setup::new(behaviour).fetch().unwrap());
}

#[test]
fn the_token_stays_with_the_hub() {
    let mut behaviour = model();
    behaviour.gate = Some(("secret", 401, "GatedRepo", ""));
    behaviour.other_host = true;
    let setup = Setup::new(behaviour);
    let mut settings = setup.settings();
    settings.token = Some("secret".to_owned());
    assert_whole(&setup.fetch_with(settings).unwrap());

    let (elsewhere, hub): (Vec<_>, Vec<_>) =
        setup.server.requests().into_iter().partition(|r| r.path.starts_with("/elsewhere/"));
    assert!(hub.iter().all(|r| r.header("authorization") == "Bearer secret"));
    assert!(!elsewhere.is_empty());
    assert!(elsewhere.iter().all(|r| r.header("authorization").is_empty()));
    assert!(elsewhere.iter().all(|r| r.header("range").starts_with("bytes=")));
}

#[test]
fn pytorch_weights_stand_in_for_safetensors() {
    let mut behaviour = model();
    let weights_file = behaviour.files.remove(WEIGHTS).unwrap();
    behaviour.files.insert("pytorch_model.bin", weights_file);
    let setup = Setup::new(behaviour);
    let fetched = setup.fetch().unwrap();
    assert_eq!(fetched.files[2].name, "pytorch_model.bin");
    assert_eq!(setup.cached().unwrap(), fetched);
}

#[test]
fn offline_the_cache_is_enough() {
    let setup = Setup::new(model());
    let fetched = setup.fetch().unwrap();
    setup.server.forget_requests();
    let mut settings = setup.settings();
    settings.offline = true;
    assert_eq!(setup.fetch_with(settings).unwrap(), fetched);
    assert!(setup.server.requests().is_empty());
}

#[test]
fn offline_with_nothing_cached_says_so() {
    let setup = Setup::new(model());
    let mut settings = setup.settings();
    settings.offline = true;
    let error = setup.fetch_with(settings).unwrap_err();
    assert!(matches!(error, HubError::Offline { .. }));
    assert!(error.to_string().contains("HF_HUB_OFFLINE"), "{error}");
    assert!(setup.server.requests().is_empty() && setup.cached().is_none());
}

#[test]
fn an_unreachable_hub_leaves_the_cache() {
    let setup = Setup::new(model());
    let fetched = setup.fetch().unwrap();
    // Nobody listens on port 1.
    let mut settings = setup.settings();
    settings.endpoint = Some("http://127.0.0.1:1".to_owned());
    assert_eq!(setup.fetch_with(settings.clone()).unwrap(), fetched);

    settings.cache = setup.cache.path().join("empty");
    let error = setup.fetch_with(settings).unwrap_err();
    assert!(matches!(error, HubError::Unreachable { attempts: 4, .. }), "{error:?}");
}

#[test]
fn a_model_of_which_a_file_is_missing_is_not_cached() {
    let setup = Setup::new(model());
    let fetched = setup.fetch().unwrap();
    fs::remove_file(fetched.directory.join("preprocessor_config.json")).unwrap();
    assert!(setup.cached().is_none());
    assert_eq!(setup.fetch().unwrap(), fetched);
}

#[test]
fn a_damaged_file_in_the_cache_is_replaced() {
    let setup = Setup::new(model());
    let fetched = setup.fetch().unwrap();
    let blob = setup.blob(&sha256(&weights()));
    let mut damaged = weights();
    damaged[7] ^= 1;
    fs::write(&blob, damaged).unwrap();
    // If the replacement doesn't come, the damaged file isn't there either.
    setup.server.change(|hub| hub.faults_of_downloads = [Fault::Status(503); 4].into());
    assert!(matches!(setup.fetch(), Err(HubError::Interrupted { .. })));
    assert!(setup.cached().is_none());
    assert_eq!(setup.fetch().unwrap(), fetched);
    assert_whole(&fetched);
}

/// At the same commit a file is always the same one: its checksum is recorded, and compared.
#[test]
fn a_file_that_changes_at_the_same_revision_is_refused() {
    for name in [WEIGHTS, "config.json"] {
        let setup = Setup::new(model());
        let fetched = setup.fetch().unwrap();
        let mut other = weights();
        other[7] ^= 1;
        let etag = if name == WEIGHTS { sha256(&other) } else { "c".repeat(40) };
        setup.server.change(|hub| drop(hub.files.insert(name, (other, etag.clone()))));
        let error = setup.fetch().unwrap_err();
        let HubError::Changed { file, revision, before, now } = &error else { panic!("{error}") };
        assert_eq!((file.as_str(), revision.as_str(), now), (name, COMMIT, &etag));
        assert_ne!(before, now);
        // What was fetched is still there, and is what is used.
        assert_eq!(setup.cached().unwrap(), fetched);
        assert_whole(&fetched);
    }
}

#[test]
fn a_network_has_no_preprocessing() {
    let mut behaviour = model();
    behaviour.files.remove("preprocessor_config.json");
    let setup = Setup::new(behaviour);
    let hub = Hub::new(setup.settings()).unwrap();
    let network = Repository::network("nicolas-dufour/PLONK_YFCC");
    let fetched = hub.fetch_repository(&network, &mut |_| {}).unwrap();
    let names: Vec<&str> = fetched.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["config.json", WEIGHTS]);
    assert_eq!(hub.cached_repository(&network), Some(fetched));
}

#[test]
fn a_blob_of_another_program_is_used() {
    let setup = Setup::new(model());
    let blob = setup.blob(&sha256(&weights()));
    fs::create_dir_all(blob.parent().unwrap()).unwrap();
    fs::write(&blob, weights()).unwrap();
    assert_whole(&setup.fetch().unwrap());
    assert!(setup.server.downloads(WEIGHTS).is_empty());
}

#[test]
fn two_at_once_download_once() {
    let setup = Setup::new(model());
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                barrier.wait();
                assert_whole(&setup.fetch().unwrap());
            });
        }
    });
    assert_eq!(setup.server.downloads(WEIGHTS), ["bytes=0-"]);
}

#[test]
fn encoders_go_by_short_name_or_by_repository() {
    for encoder in Encoder::known() {
        assert_eq!(&encoder.to_string().parse::<Encoder>().unwrap(), encoder);
        assert!(encoder.licence().is_some() && encoder.description().is_some());
        assert_eq!(encoder.revision(), "main");
    }
    let pinned: Encoder = "clip-vit-b-32@refs/pr/15".parse().unwrap();
    assert_eq!(pinned.repository(), "openai/clip-vit-base-patch32");
    assert_eq!(
        (pinned.revision(), pinned.to_string().as_str()),
        ("refs/pr/15", "clip-vit-b-32@refs/pr/15")
    );
    for wrong in ["", "clip", "a/b/c", "../b", "a/..", "a/b@", "a/b@../../x", "a b/c", "/b", "a/.b"]
    {
        let error = wrong.parse::<Encoder>().unwrap_err();
        assert!(error.to_string().contains("streetclip"), "{wrong}: {error}");
    }
}

#[test]
fn a_pinned_commit_needs_no_reference() {
    let setup = Setup::new(model());
    let pinned: Encoder = format!("owner/model@{COMMIT}").parse().unwrap();
    let hub = Hub::new(setup.settings()).unwrap();
    let fetched = hub.fetch(&pinned, &mut |_| {}).unwrap();
    assert_eq!(hub.cached(&pinned), Some(fetched));
    assert!(!setup.cache.path().join("models--owner--model").join("refs").exists());
}
