//! Named objects in a directory or an object store.
//!
//! Object stores are asynchronous; their runtime stays in here. A directory is one too, so that both keep the same
//! promises: an object is there as a whole or not at all.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::runtime::{Builder, Runtime};

/// Why a store can't be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store does not respond, or denies access.
    #[error("cannot {what} {location}: {error}")]
    Store {
        /// What was tried.
        what: &'static str,
        /// The object or prefix.
        location: String,
        /// The store's error.
        error: object_store::Error,
    },
    /// The location is neither a directory nor an address that this build reads.
    #[error("cannot open {location}: {reason}")]
    Location {
        /// Path or address as it was given.
        location: String,
        /// Why it cannot be opened.
        reason: &'static str,
    },
}

/// An object's name and size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Below the store's location, with slashes.
    pub name: String,
    /// Size of the object.
    pub bytes: u64,
}

/// A directory, or a prefix in an object store.
#[derive(Clone)]
pub struct Store {
    store: Arc<dyn ObjectStore>,
    prefix: StorePath,
    /// Address of the store, for messages.
    location: String,
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Store({})", self.location)
    }
}

/// One for all stores: its thread only passes messages on.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).thread_name("locdiff-store").enable_all().build();
    runtime.expect("a thread can be started")
});

impl Store {
    /// A directory that exists, or an address such as `s3://bucket/prefix`. Keys, region and endpoint of S3-compatible
    /// stores come from the usual environment variables (`AWS_…`).
    pub fn at(location: &str) -> Result<Store, StoreError> {
        match location.split_once("://") {
            None => Store::directory(location),
            Some(("file", path)) => Store::directory(path),
            Some(("s3", rest)) => s3(location, rest),
            Some(_) => Err(StoreError::Location {
                location: location.to_owned(),
                reason: "it is neither a directory nor an address that begins with s3://",
            }),
        }
    }

    /// Whether a location is an address in an object store.
    pub fn is_address(location: &str) -> bool {
        location.split_once("://").is_some_and(|(scheme, _)| scheme != "file")
    }

    fn directory(path: &str) -> Result<Store, StoreError> {
        let store = LocalFileSystem::new_with_prefix(Path::new(path));
        let store = store.map_err(|error| StoreError::Store {
            what: "open",
            location: path.to_owned(),
            error,
        })?;
        // A unit that is there is whole, even after a power failure.
        Ok(Store::of(Arc::new(store.with_fsync(true)), StorePath::default(), path))
    }

    /// Any store, below a prefix; the location is for messages.
    pub fn of(store: Arc<dyn ObjectStore>, prefix: StorePath, location: &str) -> Store {
        Store { store, prefix, location: location.trim_end_matches('/').to_owned() }
    }

    /// Where an object is, for messages.
    pub fn location_of(&self, name: &str) -> String {
        match (self.location.as_str(), name) {
            (location, "") => location.to_owned(),
            ("", name) => name.to_owned(),
            (location, name) => format!("{location}/{name}"),
        }
    }

    fn path(&self, name: &str) -> Result<StorePath, StoreError> {
        let whole = format!("{}/{name}", self.prefix);
        StorePath::parse(whole.trim_matches('/')).map_err(|_| StoreError::Location {
            location: self.location_of(name),
            reason: "it has an empty part, `.` or `..` in it",
        })
    }

    fn failed<'a>(
        &'a self,
        what: &'static str,
        name: &'a str,
    ) -> impl FnOnce(object_store::Error) -> StoreError + 'a {
        move |error| StoreError::Store { what, location: self.location_of(name), error }
    }

    /// How many bytes an object has, if it is there.
    pub fn size(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let head = RUNTIME.block_on(self.store.head(&self.path(name)?));
        match head {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", name)(error)),
        }
    }

    /// A whole object, if it is there.
    pub fn read(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.read_at_most(name, u64::MAX)?.and_then(Result::ok))
    }

    /// A whole object, if it is there; its size instead if that is more than so many bytes.
    pub fn read_at_most(
        &self,
        name: &str,
        max_bytes: u64,
    ) -> Result<Option<Result<Bytes, u64>>, StoreError> {
        let path = self.path(name)?;
        let bytes = RUNTIME.block_on(async {
            let found = self.store.get(&path).await?;
            match found.meta.size {
                size if size > max_bytes => Ok(Err(size)),
                _ => found.bytes().await.map(Ok),
            }
        });
        match bytes {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", name)(error)),
        }
    }

    /// Some bytes of an object.
    pub fn read_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let bytes = RUNTIME.block_on(self.store.get_range(&self.path(name)?, range));
        bytes.map_err(self.failed("read", name))
    }

    /// All objects below a folder of this store, by name; `""` is the store itself.
    pub fn list(&self, folder: &str) -> Result<Vec<Stored>, StoreError> {
        self.listed(folder, true)
    }

    /// The objects of this store, but not those in folders of it.
    pub(crate) fn list_here(&self) -> Result<Vec<Stored>, StoreError> {
        self.listed("", false)
    }

    fn listed(&self, folder: &str, below: bool) -> Result<Vec<Stored>, StoreError> {
        let path = match folder {
            "" => self.prefix.clone(),
            folder => self.path(folder)?,
        };
        let listing = RUNTIME.block_on(async {
            if !below {
                return Ok(self.store.list_with_delimiter(Some(&path)).await?.objects);
            }
            let mut found = Vec::new();
            let mut waiting = vec![path];
            // Not `list`, whose stream would need another crate.
            while let Some(path) = waiting.pop() {
                let listing = self.store.list_with_delimiter(Some(&path)).await?;
                found.extend(listing.objects);
                waiting.extend(listing.common_prefixes);
            }
            Ok(found)
        });
        let own = self.prefix.as_ref();
        let mut stored: Vec<Stored> = listing
            .map_err(self.failed("list", folder))?
            .into_iter()
            .map(|object| {
                let name = object.location.as_ref();
                let name = name.strip_prefix(own).unwrap_or(name).trim_start_matches('/');
                Stored { name: name.to_owned(), bytes: object.size }
            })
            .collect();
        stored.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(stored)
    }

    /// Writes an object, in place of another one if there is one.
    pub fn put(&self, name: &str, bytes: impl Into<Bytes>) -> Result<(), StoreError> {
        let payload = PutPayload::from_bytes(bytes.into());
        let put = RUNTIME.block_on(self.store.put(&self.path(name)?, payload));
        put.map(drop).map_err(self.failed("write", name))
    }

    /// Writes an object unless there is one already; false if there is. Of two who try, one succeeds.
    ///
    /// A store without conditional writes takes the last one of those who try at the same time.
    pub fn put_new(&self, name: &str, bytes: impl Into<Bytes>) -> Result<bool, StoreError> {
        let (path, bytes) = (self.path(name)?, bytes.into());
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let payload = PutPayload::from_bytes(bytes.clone());
        match RUNTIME.block_on(self.store.put_opts(&path, payload, options)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(
                object_store::Error::NotImplemented { .. }
                | object_store::Error::NotSupported { .. },
            ) => match self.size(name)? {
                Some(_) => Ok(false),
                None => self.put(name, bytes).map(|()| true),
            },
            Err(error) => Err(self.failed("write", name)(error)),
        }
    }
}

#[cfg(feature = "s3")]
fn s3(location: &str, rest: &str) -> Result<Store, StoreError> {
    choose_cryptography();
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let store = object_store::aws::AmazonS3Builder::from_env().with_bucket_name(bucket).build();
    let store = store.map_err(|error| StoreError::Store {
        what: "open",
        location: location.to_owned(),
        error,
    })?;
    let prefix = StorePath::parse(prefix.trim_matches('/')).map_err(|_| StoreError::Location {
        location: location.to_owned(),
        reason: "its prefix has an empty part, `.` or `..` in it",
    })?;
    Ok(Store::of(Arc::new(store), prefix, location))
}

/// Which cryptography TLS uses in this process. Not the default of HTTP clients, which would be compiled for minutes; the feature
/// `hub` of `locdiff` brings this one anyway. Every HTTP client of a program with the feature `s3` needs it.
#[cfg(feature = "s3")]
pub fn choose_cryptography() {
    // Somebody may have chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[cfg(not(feature = "s3"))]
fn s3(location: &str, _rest: &str) -> Result<Store, StoreError> {
    Err(StoreError::Location {
        location: location.to_owned(),
        reason: "this build reads no object stores: build it with the feature `s3`",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(store: &Store) {
        assert_eq!(store.read("a/b.txt").unwrap(), None);
        assert_eq!(store.size("a/b.txt").unwrap(), None);
        assert!(store.put_new("a/b.txt", "first").unwrap());
        assert!(!store.put_new("a/b.txt", "second").unwrap());
        assert_eq!(store.read("a/b.txt").unwrap().unwrap(), "first");
        store.put("c d.txt", "third").unwrap();
        store.put("a/b.txt", "fourth").unwrap();
        assert_eq!(store.read_range("a/b.txt", 1..4).unwrap(), "our");
        let names = |stored: Vec<Stored>| -> Vec<(String, u64)> {
            stored.into_iter().map(|stored| (stored.name, stored.bytes)).collect()
        };
        let both = vec![("a/b.txt".to_owned(), 6), ("c d.txt".to_owned(), 5)];
        assert_eq!(names(store.list("").unwrap()), both);
        assert_eq!(names(store.list("a").unwrap()), both[..1]);
        assert_eq!(names(store.list_here().unwrap()), both[1..]);
        assert!(store.read("a/../../b").is_err());
        // Of many who try, one succeeds.
        let won = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8)
                .map(|n| scope.spawn(move || store.put_new("race", vec![n]).unwrap()))
                .collect();
            tries.into_iter().map(|tried| tried.join().unwrap()).filter(|won| *won).count()
        });
        assert_eq!(won, 1);
    }

    #[test]
    fn directories_and_stores_keep_the_same_promises() {
        let directory = tempfile::tempdir().unwrap();
        check(&Store::at(directory.path().to_str().unwrap()).unwrap());
        let memory = Arc::new(object_store::memory::InMemory::new());
        check(&Store::of(memory, StorePath::parse("jobs/x").unwrap(), "memory"));
        assert!(Store::at("ftp://somewhere").is_err());
        assert!(Store::at(directory.path().join("none").to_str().unwrap()).is_err());
    }
}
