//! Downloads that break off, and files that aren't what they should be.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use locdiff::encoders::hub::{Hub, HubError};

use crate::hub::server::Fault;
use crate::hub::{Setup, WEIGHTS, assert_whole, encoder, model, settings, sha256, weights};

fn setup(faults: &[Fault]) -> Setup {
    let mut behaviour = model();
    behaviour.faults_of_downloads = faults.iter().copied().collect();
    Setup::new(behaviour)
}

#[test]
fn a_closed_connection_is_continued() {
    let setup = setup(&[Fault::Cut(150_000), Fault::CutUnannounced(100_000)]);
    assert_whole(&setup.fetch().unwrap());
    let ranges = setup.server.downloads(WEIGHTS);
    assert_eq!(ranges, ["bytes=0-", "bytes=150000-", "bytes=250000-"]);
}

#[test]
fn getting_further_is_not_failing() {
    // More breaks than attempts.
    let setup = setup(&[Fault::Cut(30_000); 12]);
    assert_whole(&setup.fetch().unwrap());
    assert_eq!(setup.server.downloads(WEIGHTS).len(), 13);
}

#[test]
fn a_silent_server_is_left() {
    let setup = setup(&[Fault::Stall(150_000)]);
    let mut settings = setup.settings();
    settings.silence = Duration::from_millis(300);
    let begin = Instant::now();
    assert_whole(&setup.fetch_with(settings).unwrap());
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(setup.server.downloads(WEIGHTS), ["bytes=0-", "bytes=150000-"]);
}

#[test]
fn the_next_process_goes_on() {
    let setup = setup(&[Fault::Cut(150_000)]);
    let mut once = setup.settings();
    once.attempts = 1;
    let error = setup.fetch_with(once).unwrap_err();
    assert!(matches!(&error, HubError::Interrupted { received: 150_000, size: 400_000, .. }));
    assert!(error.to_string().contains("fetch again"), "{error}");
    assert!(setup.cached().is_none() && setup.part().exists());

    let mut first_report = None;
    let hub = Hub::new(setup.settings()).unwrap();
    let fetched = hub.fetch(&encoder(), &mut |progress| {
        if progress.file == WEIGHTS {
            first_report.get_or_insert(progress.bytes);
        }
    });
    assert_whole(&fetched.unwrap());
    assert_eq!(first_report, Some(150_000));
    assert_eq!(setup.server.downloads(WEIGHTS), ["bytes=0-", "bytes=150000-"]);
}

/// A failure right at the start of a continuation is where `hf-hub` would begin again from 0 and
/// append.
#[test]
fn continuing_survives_an_error_at_first() {
    let setup = setup(&[Fault::Cut(150_000), Fault::Status(503), Fault::Cut(0)]);
    assert_whole(&setup.fetch().unwrap());
    assert_eq!(setup.server.downloads(WEIGHTS)[1..], ["bytes=150000-"; 3]);
}

#[test]
fn a_killed_process_leaves_what_it_has() {
    let setup = setup(&[Fault::Stall(150_000)]);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "hub::interruptions::a_process_to_kill"])
        .env("LOCDIFF_TEST_CACHE", setup.cache.path())
        .env("LOCDIFF_TEST_ENDPOINT", setup.server.endpoint())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let here = || fs::metadata(setup.part()).map_or(0, |part| part.len());
    let begin = Instant::now();
    while here() < 150_000 && begin.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(here(), 150_000);

    // Its lock is gone with it.
    assert_whole(&setup.fetch().unwrap());
    assert_eq!(setup.server.downloads(WEIGHTS), ["bytes=0-", "bytes=150000-"]);
}

#[test]
#[ignore = "is started, and killed, by another test"]
fn a_process_to_kill() {
    let Some(cache) = std::env::var_os("LOCDIFF_TEST_CACHE") else { return };
    let endpoint = std::env::var("LOCDIFF_TEST_ENDPOINT").unwrap();
    let settings = settings(cache.as_ref(), endpoint);
    Hub::new(settings).unwrap().fetch(&encoder(), &mut |_| {}).unwrap();
}

#[test]
fn killed_just_before_the_end() {
    let setup = setup(&[]);
    fs::create_dir_all(setup.part().parent().unwrap()).unwrap();
    fs::write(setup.part(), weights()).unwrap();
    assert_whole(&setup.fetch().unwrap());
    assert!(setup.server.downloads(WEIGHTS).is_empty());
}

#[test]
fn a_server_without_ranges_starts_over() {
    let mut behaviour = model();
    behaviour.no_ranges = true;
    behaviour.faults_of_downloads = [Fault::Cut(150_000)].into();
    let setup = Setup::new(behaviour);
    assert_whole(&setup.fetch().unwrap());

    // It gets no further, however often it is asked.
    setup.server.change(|hub| hub.faults_of_downloads = [Fault::Cut(150_000); 20].into());
    fs::remove_dir_all(setup.cache.path().join("models--owner--model")).unwrap();
    setup.server.forget_requests();
    assert!(matches!(setup.fetch(), Err(HubError::Interrupted { .. })));
    assert_eq!(setup.server.downloads(WEIGHTS).len(), 4);
}

#[test]
fn wrong_bytes_are_removed() {
    let mut behaviour = model();
    behaviour.files.get_mut(WEIGHTS).unwrap().0[399_999] ^= 1;
    let setup = Setup::new(behaviour);
    let error = setup.fetch().unwrap_err();
    assert!(matches!(&error, HubError::Checksum { .. }), "{error:?}");
    for words in [WEIGHTS, &sha256(&weights()), "removed", "fetch again"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(!setup.part().exists() && !setup.blob(&sha256(&weights())).exists());
    assert!(setup.cached().is_none());
}

#[test]
fn a_wrong_beginning_is_not_built_upon() {
    let setup = setup(&[]);
    fs::create_dir_all(setup.part().parent().unwrap()).unwrap();
    for beginning in [vec![0; 1000], vec![0; 500_000]] {
        fs::write(setup.part(), beginning).unwrap();
        assert_whole(&setup.fetch().unwrap());
        fs::remove_file(setup.blob(&sha256(&weights()))).unwrap();
    }
}

#[test]
fn bytes_of_another_place_are_noticed() {
    let setup = setup(&[Fault::Cut(150_000), Fault::WrongPart]);
    assert!(matches!(setup.fetch(), Err(HubError::Checksum { .. })));
    assert!(!setup.part().exists());
    assert_whole(&setup.fetch().unwrap());
}

#[test]
fn a_small_file_must_be_readable() {
    let mut behaviour = model();
    behaviour.files.get_mut("config.json").unwrap().0 = b"<html>sign in</html>".to_vec();
    let setup = Setup::new(behaviour);
    let error = setup.fetch().unwrap_err();
    assert!(matches!(&error, HubError::Contents { file, .. } if file == "config.json"));
    assert!(!setup.blob(&"a".repeat(40)).exists());

    let mut behaviour = model();
    behaviour.files.insert(WEIGHTS, (b"no tensors".to_vec(), "c".repeat(40)));
    let error = Setup::new(behaviour).fetch().unwrap_err();
    assert!(matches!(&error, HubError::Contents { file, .. } if file == WEIGHTS));
}
