//! Encoders by short name, and any other model of the hub as `owner/name`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::error::HubError;
use super::repository::{MAIN, Repository};

/// An image encoder on the hub: where it is, and, for those with a name here, what it is.
///
/// ```
/// use locdiff::encoders::hub::Encoder;
///
/// let known: Encoder = "streetclip".parse()?;
/// assert_eq!(known.repository(), "geolocal/StreetCLIP");
/// let any: Encoder = "laion/CLIP-ViT-B-32-laion2B-s34B-b79K@main".parse()?;
/// assert_eq!(any.licence(), None);
/// # Ok::<(), locdiff::encoders::hub::HubError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoder {
    name: Cow<'static, str>,
    source: Repository,
    about: Option<About>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct About {
    licence: &'static str,
    description: &'static str,
}

/// As stated in OpenAI's own repository of CLIP; the pages of the hub state none.
const CLIP_LICENCE: &str = "MIT";
const DINOV2_LICENCE: &str = "Apache-2.0";

static KNOWN: [Encoder; 13] = [
    known(
        "clip-vit-b-32",
        "openai/clip-vit-base-patch32",
        CLIP_LICENCE,
        "CLIP ViT-B/32: 224 pixels, 512 features; the fastest",
    ),
    known(
        "clip-vit-b-16",
        "openai/clip-vit-base-patch16",
        CLIP_LICENCE,
        "CLIP ViT-B/16: 224 pixels, 512 features",
    ),
    known(
        "clip-vit-l-14",
        "openai/clip-vit-large-patch14",
        CLIP_LICENCE,
        "CLIP ViT-L/14: 224 pixels, 768 features; GeoCLIP's encoder",
    ),
    known(
        "clip-vit-l-14-336",
        "openai/clip-vit-large-patch14-336",
        CLIP_LICENCE,
        "CLIP ViT-L/14: 336 pixels, 768 features",
    ),
    known(
        "streetclip",
        "geolocal/StreetCLIP",
        "CC-BY-NC-4.0",
        "CLIP ViT-L/14 at 336 pixels, trained on street views; 768 features, no commercial use",
    ),
    known(
        "streetclip-token",
        "geolocal/StreetCLIP",
        "CC-BY-NC-4.0",
        "StreetCLIP's class token before its head: 1024 features, no commercial use; the encoder of plonk-osv5m",
    ),
    known(
        "dinov2-s-14",
        "facebook/dinov2-small",
        DINOV2_LICENCE,
        "DINOv2 ViT-S/14: 384 features, learned without text",
    ),
    known(
        "dinov2-b-14",
        "facebook/dinov2-base",
        DINOV2_LICENCE,
        "DINOv2 ViT-B/14: 768 features, learned without text",
    ),
    known(
        "dinov2-l-14",
        "facebook/dinov2-large",
        DINOV2_LICENCE,
        "DINOv2 ViT-L/14: 1024 features, learned without text",
    ),
    known(
        "dinov2-s-14-reg",
        "facebook/dinov2-with-registers-small",
        DINOV2_LICENCE,
        "DINOv2 ViT-S/14 with registers: 384 features, learned without text",
    ),
    known(
        "dinov2-b-14-reg",
        "facebook/dinov2-with-registers-base",
        DINOV2_LICENCE,
        "DINOv2 ViT-B/14 with registers: 768 features, learned without text",
    ),
    known(
        "dinov2-l-14-reg",
        "facebook/dinov2-with-registers-large",
        DINOV2_LICENCE,
        "DINOv2 ViT-L/14 with registers: 1024 features, learned without text",
    ),
    known(
        "dinov2-l-14-reg-336",
        "facebook/dinov2-with-registers-large",
        DINOV2_LICENCE,
        "DINOv2 ViT-L/14 with registers at 336 pixels: 1024 features; the encoder of plonk-yfcc and plonk-inaturalist",
    ),
];

const fn known(
    name: &'static str,
    repository: &'static str,
    licence: &'static str,
    description: &'static str,
) -> Encoder {
    Encoder {
        name: Cow::Borrowed(name),
        source: Repository::encoder(repository),
        about: Some(About { licence, description }),
    }
}

impl Encoder {
    /// All encoders that have a short name.
    pub fn known() -> &'static [Encoder] {
        &KNOWN
    }

    /// The short name, or `owner/name`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `owner/name` on the hub.
    pub fn repository(&self) -> &str {
        self.source.name()
    }

    /// A branch, a tag or a commit.
    pub fn revision(&self) -> &str {
        self.source.revision()
    }

    /// The weights' licence, of encoders with a name here.
    pub fn licence(&self) -> Option<&'static str> {
        self.about.as_ref().map(|about| about.licence)
    }

    /// What it is, in a line, of encoders with a name here.
    pub fn description(&self) -> Option<&'static str> {
        self.about.as_ref().map(|about| about.description)
    }

    /// The repository and revision that are fetched.
    pub fn source(&self) -> &Repository {
        &self.source
    }
}

impl fmt::Display for Encoder {
    /// The text that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.revision() != MAIN { write!(f, "@{}", self.revision()) } else { Ok(()) }
    }
}

impl FromStr for Encoder {
    type Err = HubError;

    /// A short name or `owner/name`, either with `@revision` if it isn't to be the main branch.
    fn from_str(text: &str) -> Result<Encoder, HubError> {
        let (name, revision) = text.split_once('@').unwrap_or((text, MAIN));
        let is_this = |encoder: &&Encoder| encoder.name == name || encoder.repository() == name;
        let encoder = match KNOWN.iter().find(is_this) {
            Some(encoder) => encoder.clone(),
            None => {
                let source = Repository::encoder("").renamed(name.to_owned());
                Encoder { name: Cow::Owned(name.to_owned()), source, about: None }
            }
        };
        // Both become names of directories: neither may climb out of the cache.
        let owner_and_name = encoder.repository().split('/').count() == 2;
        if !owner_and_name || !is_path(encoder.repository()) || !is_path(revision) {
            let known: Vec<&str> = KNOWN.iter().map(Encoder::name).collect();
            return Err(HubError::UnknownEncoder {
                name: text.to_owned(),
                known: known.join(", "),
            });
        }
        Ok(Encoder { source: encoder.source.at(revision), ..encoder })
    }
}

/// Whether each part between slashes is a plain name.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.split('/')
        .all(|part| !part.is_empty() && !part.starts_with('.') && part.chars().all(plain))
}
