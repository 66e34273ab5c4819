//! What is in the cache, and what is fetched into it.

use std::fmt;
use std::fs;
use std::path::Path;

use ureq::Agent;

use super::cache::{FetchedFile, FetchedModel, Shelf, check, remove};
use super::encoders::Encoder;
use super::error::HubError;
use super::remote::{Progress, Remote, RemoteFile, agent};
use super::repository::Repository;
use super::settings::HubSettings;

/// The hub, and the cache of what came from it.
///
/// ```no_run
/// use locdiff::encoders::hub::{Encoder, Hub};
///
/// let hub = Hub::from_env()?;
/// let encoder: Encoder = "clip-vit-b-32".parse()?;
/// let model = hub.fetch(&encoder, &mut |_| {})?;
/// let config = std::fs::read_to_string(model.directory.join("config.json"));
/// # Ok::<(), locdiff::encoders::hub::HubError>(())
/// ```
pub struct Hub {
    settings: HubSettings,
    agent: Agent,
}

impl Hub {
    /// From the environment: see [`HubSettings::from_env`].
    pub fn from_env() -> Result<Hub, HubError> {
        Hub::new(HubSettings::from_env()?)
    }

    /// By explicit settings; the environment is not read.
    pub fn new(settings: HubSettings) -> Result<Hub, HubError> {
        if let Some(endpoint) = &settings.endpoint
            && !endpoint.starts_with("http://")
            && !endpoint.starts_with("https://")
        {
            return Err(HubError::Endpoint(endpoint.clone()));
        }
        Ok(Hub { settings, agent: agent() })
    }

    /// Address, token and cache.
    pub fn settings(&self) -> &HubSettings {
        &self.settings
    }

    /// The encoder, if all its files are in the cache. The network is not used, and large files
    /// are not read: their sums are the ones they were stored by.
    pub fn cached(&self, encoder: &Encoder) -> Option<FetchedModel> {
        self.cached_repository(encoder.source())
    }

    /// [`Hub::cached`] for any repository.
    pub fn cached_repository(&self, repository: &Repository) -> Option<FetchedModel> {
        Shelf::new(&self.settings.cache, repository).model(repository.files())
    }

    /// The encoder as the hub has it now. Only what isn't in the cache is downloaded; what is there
    /// is read and checked, and replaced if it is damaged. When the hub can't be reached or the
    /// settings say offline, the answer is [`Hub::cached`], if that is anything. Progress is
    /// reported of files that are downloaded.
    pub fn fetch(
        &self,
        encoder: &Encoder,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<FetchedModel, HubError> {
        self.fetch_repository(encoder.source(), progress)
    }

    /// [`Hub::fetch`] for any repository.
    pub fn fetch_repository(
        &self,
        repository: &Repository,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<FetchedModel, HubError> {
        let cached = || self.cached_repository(repository);
        if self.settings.offline {
            return cached().ok_or_else(|| HubError::Offline {
                repository: repository.name().to_owned(),
                revision: repository.revision().to_owned(),
                cache: self.settings.cache.clone(),
            });
        }
        match self.fetch_online(repository, progress) {
            Err(error @ HubError::Unreachable { .. }) => cached().ok_or(error),
            result => result,
        }
    }

    fn fetch_online(
        &self,
        repository: &Repository,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<FetchedModel, HubError> {
        let shelf = Shelf::new(&self.settings.cache, repository);
        let (config, others) = repository.files().split_first().expect("some files are wanted");
        let branch = Remote::new(&self.settings, &self.agent, repository, repository.revision());
        let config = branch.find(config)?;
        // The branch may move on while we read: all files are of the commit it is at now.
        let revision = config.commit.clone();
        let remote = Remote::new(&self.settings, &self.agent, repository, &revision);
        // All are looked up before the first is downloaded: if one isn't there, none is wanted.
        let mut found = vec![config];
        for names in others {
            found.push(remote.find(names)?);
        }
        found.iter().try_for_each(|file| shelf.expect_unchanged(file))?;
        let mut files = Vec::new();
        for file in &found {
            let sha256 = obtain(&shelf, &remote, file, progress)?;
            files.push(FetchedFile { name: file.name.to_owned(), size_bytes: file.size, sha256 });
        }
        // Last, so that the branch never stands for a model of which half is missing.
        shelf.remember(&revision)?;
        Ok(FetchedModel { directory: shelf.snapshot(&revision), revision, files })
    }
}

/// Sees to it that a file is in the snapshot, whole; its SHA-256.
fn obtain(
    shelf: &Shelf,
    remote: &Remote<'_>,
    file: &RemoteFile,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<String, HubError> {
    // Without a lock: a cache that is complete may be one that we can't write to.
    let pointer = shelf.snapshot(&file.commit).join(file.name);
    if let Some(sha256) = check_if_there(&pointer, file)? {
        return Ok(sha256);
    }
    let _lock = shelf.lock(file)?;
    let (blob, part) = (shelf.blob(&file.etag), shelf.part(&file.etag));
    let sha256 = match check_if_there(&blob, file)? {
        Some(sha256) => sha256,
        None => {
            let sha256 = download_checked(remote, file, &part, progress)?;
            fs::rename(&part, &blob).map_err(HubError::at(&blob))?;
            sha256
        }
    };
    shelf.link(file)?;
    Ok(sha256)
}

/// The file's SHA-256, or none if it isn't there. A damaged file is removed: if its replacement
/// doesn't come, it must not pass for whole.
fn check_if_there(path: &Path, file: &RemoteFile) -> Result<Option<String>, HubError> {
    if !path.is_file() {
        return Ok(None);
    }
    match check(path, file) {
        Err(error) if error.is_damage() => remove(path).map(|()| None),
        result => result.map(Some),
    }
}

fn download_checked(
    remote: &Remote<'_>,
    file: &RemoteFile,
    part: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<String, HubError> {
    loop {
        let continued = fs::metadata(part).is_ok_and(|part| part.len() > 0);
        remote.download(file, part, progress)?;
        match check(part, file) {
            Err(error) if error.is_damage() => {
                remove(part)?;
                // What was there before may be the fault, not what came now.
                if !continued {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}

impl fmt::Debug for Hub {
    /// Without the client, which holds the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("settings", &self.settings).finish_non_exhaustive()
    }
}
