//! The hub's side: what a file is, and its bytes.
//!
//! Written for itself and not by the crate `hf-hub`: with its version 0.5 a file cut short can pass for whole, a part may be
//! continued at the wrong place, and a silent server is waited for without end.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use ureq::Agent;
use ureq::config::RedirectAuthHeaders;

use super::error::{Failure, HubError};
use super::repository::Repository;
use super::settings::HubSettings;

/// As many as browsers put up with, or nearly.
const MOST_REDIRECTS: usize = 10;

/// Progress of the download of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Its name in the repository.
    pub file: &'a str,
    /// What is here of it, with what was here before. Starts over if the server can't continue.
    pub bytes: u64,
    /// Size of the file on the hub.
    pub total_bytes: u64,
}

/// A model at one revision, as the hub has it.
pub(super) struct Remote<'a> {
    settings: &'a HubSettings,
    repository: &'a str,
    revision: &'a str,
    agent: &'a Agent,
}

/// The public hub.
const PUBLIC: &str = "https://huggingface.co";

/// A client that sends the token to the hub only, not to servers that it redirects to.
pub(super) fn agent() -> Agent {
    Agent::config_builder()
        .user_agent(concat!("locdiff/", env!("CARGO_PKG_VERSION")))
        .redirect_auth_headers(RedirectAuthHeaders::SameHost)
        .build()
        .into()
}

/// A file, as the hub has it.
pub(super) struct RemoteFile {
    pub(super) name: &'static str,
    pub(super) commit: String,
    /// The file's name in the cache: its SHA-256 if it is large, else git's SHA-1.
    pub(super) etag: String,
    pub(super) size: u64,
}

impl<'a> Remote<'a> {
    /// `revision` is the repository's own, or the commit that it stands for.
    pub(super) fn new(
        settings: &'a HubSettings,
        agent: &'a Agent,
        repository: &'a Repository,
        revision: &'a str,
    ) -> Remote<'a> {
        Remote { settings, repository: repository.name(), revision, agent }
    }

    fn url(&self, file: &str) -> String {
        let endpoint = self.settings.endpoint.as_deref().unwrap_or(PUBLIC).trim_end_matches('/');
        // A branch may have slashes in its name.
        let revision = self.revision.replace('/', "%2F");
        format!("{endpoint}/{}/resolve/{revision}/{file}", self.repository)
    }

    /// The first of these files that the hub has.
    pub(super) fn find(&self, names: &[&'static str]) -> Result<RemoteFile, HubError> {
        for name in names {
            if let Some(file) = self.look_up(name)? {
                return Ok(file);
            }
        }
        Err(HubError::NoFile {
            repository: self.repository.to_owned(),
            revision: self.revision.to_owned(),
            file: names.join(" or "),
        })
    }

    fn look_up(&self, name: &'static str) -> Result<Option<RemoteFile>, HubError> {
        let first = self.url(name);
        let mut url = first.clone();
        // Within the hub, redirects are followed; the answer that points out of it, to where large
        // files are, is the one that describes the file.
        for _ in 0..MOST_REDIRECTS {
            let answer = self.ask(&url)?;
            if let Some(target) = answer.redirect_within(&url) {
                url = target;
                continue;
            }
            return match (answer.status, answer.header("x-error-code")) {
                (404, "" | "EntryNotFound") => Ok(None),
                (200..400, _) => answer.describe(name, &first).map(Some),
                _ => Err(self.refusal(&answer, first)),
            };
        }
        Err(HubError::NotAHub { url: first, problem: "its redirects form a loop".to_owned() })
    }

    /// The answer to a question for a file's first byte, once there is one.
    fn ask(&self, url: &str) -> Result<Answer, HubError> {
        let mut attempts = 1;
        loop {
            let source = match self.get(url, "bytes=0-0", 0) {
                Ok(answer) if !answer.may_pass() => return Ok(answer),
                Ok(answer) => answer.failure(),
                Err(failure) => failure,
            };
            if attempts >= self.settings.attempts {
                return Err(HubError::Unreachable { url: url.to_owned(), attempts, source });
            }
            self.pause_after(attempts);
            attempts += 1;
        }
    }

    fn refusal(&self, answer: &Answer, url: String) -> HubError {
        let repository = self.repository.to_owned();
        let message = answer.header("x-error-message").to_owned();
        match (answer.status, answer.header("x-error-code")) {
            (_, "RevisionNotFound") => {
                HubError::NoRevision { repository, revision: self.revision.to_owned() }
            }
            // Models that don't exist are answered like private ones, by 401.
            (_, "RepoNotFound") => HubError::NoRepository { repository, message },
            (status @ (401 | 403), _) => HubError::Refused { repository, status, message },
            (status, _) => HubError::NotAHub { url, problem: format!("its status is {status}") },
        }
    }

    /// Completes `part`, which may hold the file's beginning from an earlier time.
    pub(super) fn download(
        &self,
        file: &RemoteFile,
        part: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), HubError> {
        let url = self.url(file.name);
        let mut output = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(part)
            .map_err(HubError::at(part))?;
        let mut received = output.metadata().map_err(HubError::at(part))?.len();
        let (mut furthest, mut attempts) = (received, 0);
        let mut report =
            |bytes| progress(Progress { file: file.name, bytes, total_bytes: file.size });
        report(received);
        while received < file.size {
            let stopped = self.transfer(&url, file.size, &mut output, &mut received, &mut report);
            let source = match stopped {
                Ok(()) => continue,
                Err(Stopped::Disk(source)) => return Err(HubError::at(part)(source)),
                Err(Stopped::Network(failure)) => failure,
            };
            // A server that can't continue is only getting somewhere once it gets further.
            attempts = if received > furthest { 1 } else { attempts + 1 };
            furthest = furthest.max(received);
            if attempts >= self.settings.attempts {
                let (file, size) = (file.name.to_owned(), file.size);
                return Err(HubError::Interrupted { file, received, size, attempts, source });
            }
            self.pause_after(attempts);
        }
        // Before the name says that it is whole, it should be on the disk.
        output.sync_all().map_err(HubError::at(part))
    }

    /// One connection's worth of the file.
    fn transfer(
        &self,
        url: &str,
        size: u64,
        output: &mut File,
        received: &mut u64,
        report: &mut dyn FnMut(u64),
    ) -> Result<(), Stopped> {
        let answer = self
            .get(url, &format!("bytes={received}-"), MOST_REDIRECTS as u32)
            .map_err(Stopped::Network)?;
        match answer.status {
            206 => answer.check_range(*received, size).map_err(Stopped::Network)?,
            // The whole file: the server can't continue.
            200 => {
                *received = 0;
                output.set_len(0).map_err(Stopped::Disk)?;
            }
            _ => return Err(Stopped::Network(answer.failure())),
        }
        output.seek(SeekFrom::Start(*received)).map_err(Stopped::Disk)?;
        let mut body = answer.body.take(size - *received);
        let mut buffer = vec![0; 1 << 17];
        while *received < size {
            let count = match body.read(&mut buffer) {
                Ok(0) => return Err(Stopped::Network("the connection was closed".into())),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Stopped::Network(error.into())),
            };
            output.write_all(&buffer[..count]).map_err(Stopped::Disk)?;
            *received += count as u64;
            report(*received);
        }
        Ok(())
    }

    fn get(&self, url: &str, range: &str, redirects: u32) -> Result<Answer, Failure> {
        let mut request = self.agent.get(url).header("Range", range);
        if let Some(token) = &self.settings.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        // Compressed, parts of a file would be parts of something else.
        let request = request.header("Accept-Encoding", "identity").config();
        let silence = Some(self.settings.silence);
        let response = request
            .http_status_as_error(false)
            .max_redirects(redirects)
            .timeout_connect(silence)
            .timeout_per_read(silence)
            .build()
            .call()?;
        let (parts, body) = response.into_parts();
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = parts.headers.iter();
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: headers.map(|(k, v)| (k.as_str().to_owned(), text(v.as_bytes()))).collect(),
            body: Box::new(body.into_reader()),
        })
    }

    fn pause_after(&self, attempts: u32) {
        let longest = Duration::from_secs(30);
        thread::sleep(self.settings.pause.saturating_mul(1 << (attempts - 1).min(10)).min(longest));
    }
}

/// Why a transfer ended before the file did. More connections help against one, not the other.
enum Stopped {
    Network(Failure),
    Disk(io::Error),
}

struct Answer {
    status: u16,
    /// By lower-case name.
    headers: HashMap<String, String>,
    body: Box<dyn Read>,
}

impl Answer {
    /// A header's value, empty if it isn't there.
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Whether the same question may be answered otherwise in a while.
    fn may_pass(&self) -> bool {
        matches!(self.status, 408 | 429 | 500..)
    }

    fn failure(&self) -> Failure {
        format!("the server answered with status {}", self.status).into()
    }

    fn redirect_within(&self, url: &str) -> Option<String> {
        let location = self.header("location");
        let within = location.starts_with('/') && !location.starts_with("//");
        if !(300..400).contains(&self.status) || !within {
            return None;
        }
        let host = url.find("://").map_or(0, |at| at + 3);
        let path = url[host..].find('/').map_or(url.len(), |at| host + at);
        Some(format!("{}{location}", &url[..path]))
    }

    fn describe(&self, name: &'static str, url: &str) -> Result<RemoteFile, HubError> {
        let odd = |problem| HubError::NotAHub { url: url.to_owned(), problem };
        let commit = self.header("x-repo-commit");
        if !is_commit(commit) {
            return Err(odd(format!("its commit is `{commit}`")));
        }
        let etag = match self.header("x-linked-etag") {
            "" => self.header("etag"),
            linked => linked,
        };
        let etag = etag.trim_start_matches("W/").trim_matches('"');
        // It becomes a file's name.
        if etag.is_empty() || !etag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(odd(format!("its ETag is `{etag}`")));
        }
        let range_total = self.header("content-range").rsplit('/').next();
        let length = (self.status == 200).then(|| self.header("content-length"));
        let sizes = [Some(self.header("x-linked-size")), range_total, length];
        let Some(size) = sizes.into_iter().flatten().find_map(|size| size.parse().ok()) else {
            return Err(odd("its response has no size".to_owned()));
        };
        Ok(RemoteFile { name, commit: commit.to_owned(), etag: etag.to_owned(), size })
    }

    /// That a part is the wanted one.
    fn check_range(&self, start: u64, size: u64) -> Result<(), Failure> {
        let found = self.header("content-range");
        if found == format!("bytes {start}-{}/{size}", size - 1) {
            return Ok(());
        }
        Err(format!("the server sent `{found}` instead of the bytes from {start} of {size}").into())
    }
}

pub(super) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
