//! Weights from the Hugging Face hub, fetched when asked for and never otherwise.
//!
//! [`Hub::fetch`] is the only function that uses the network; [`Hub::cached`] looks at the disk.
//! The cache is the one of Python's `huggingface_hub`, in its place and layout: what one has
//! fetched, the other need not. A file counts as there once it has been checked: large files by
//! the SHA-256 that the hub states, small ones by size and by being read. A download that was cut
//! off goes on where it stopped, in the same process or the next.

mod cache;
mod encoders;
mod error;
mod fetching;
mod remote;
mod repository;
mod settings;

pub use cache::{FetchedFile, FetchedModel};
pub use encoders::Encoder;
pub use error::{Failure, HubError};
pub use fetching::Hub;
pub use remote::Progress;
pub use repository::Repository;
pub use settings::HubSettings;
