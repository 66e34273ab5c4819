//! What is fetched: a repository at a revision, and which of its files.

use std::borrow::Cow;

/// The branch that is fetched when none is named.
pub(super) const MAIN: &str = "main";

/// What is fetched of an encoder, in this order; of the names in a line, the first that the
/// repository holds. CLIP's ViT-B/32, for one, has no safetensors on its main branch.
const OF_AN_ENCODER: [&[&str]; 3] =
    [&["config.json"], &["preprocessor_config.json"], &["model.safetensors", "pytorch_model.bin"]];
/// And of a network that takes embeddings.
const OF_A_NETWORK: [&[&str]; 2] = [&["config.json"], &["model.safetensors"]];

/// A model on the hub.
///
/// ```
/// use locdiff::encoders::hub::Repository;
///
/// let network = Repository::network("nicolas-dufour/PLONK_YFCC");
/// assert_eq!((network.name(), network.revision()), ("nicolas-dufour/PLONK_YFCC", "main"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    name: Cow<'static, str>,
    revision: Cow<'static, str>,
    files: &'static [&'static [&'static str]],
}

impl Repository {
    /// The main branch of an image encoder.
    pub(super) const fn encoder(name: &'static str) -> Repository {
        let (name, revision) = (Cow::Borrowed(name), Cow::Borrowed(MAIN));
        Repository { name, revision, files: &OF_AN_ENCODER }
    }

    /// The main branch of a network without an encoder: `config.json` and `model.safetensors`.
    pub const fn network(name: &'static str) -> Repository {
        let (name, revision) = (Cow::Borrowed(name), Cow::Borrowed(MAIN));
        Repository { name, revision, files: &OF_A_NETWORK }
    }

    /// The same files of another repository.
    pub(super) fn renamed(self, name: String) -> Repository {
        Repository { name: Cow::Owned(name), ..self }
    }

    /// The same at a branch, a tag or a commit.
    pub(super) fn at(self, revision: &str) -> Repository {
        Repository { revision: Cow::Owned(revision.to_owned()), ..self }
    }

    /// `owner/name`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A branch, a tag or a commit.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The files that are fetched: of each line, the first that the repository holds.
    pub fn files(&self) -> &'static [&'static [&'static str]] {
        self.files
    }
}
