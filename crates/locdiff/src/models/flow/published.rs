//! The flows that others have published, and what is known of them.

/// A flow that plonk's authors published: where it is, and what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedFlow {
    /// Name for `locdiff model fetch`.
    pub name: &'static str,
    /// `owner/name` on the hub.
    pub repository: &'static str,
    /// The encoder of its condition, by its name here.
    pub encoder: &'static str,
    /// License of code and weights.
    pub licence: &'static str,
    /// Whose photographs it was trained on.
    pub trained_on: &'static str,
}

static PUBLISHED: [PublishedFlow; 3] = [
    PublishedFlow {
        name: "plonk-yfcc",
        repository: "nicolas-dufour/PLONK_YFCC",
        encoder: "dinov2-l-14-reg-336",
        licence: "MIT",
        trained_on: "YFCC100M (photographs from Flickr)",
    },
    PublishedFlow {
        name: "plonk-inaturalist",
        repository: "nicolas-dufour/PLONK_iNaturalist",
        encoder: "dinov2-l-14-reg-336",
        licence: "MIT",
        trained_on: "iNaturalist (animals and plants)",
    },
    PublishedFlow {
        name: "plonk-osv5m",
        repository: "nicolas-dufour/PLONK_OSV_5M",
        encoder: "streetclip-token",
        licence: "MIT",
        trained_on: "OpenStreetView-5M (street views)",
    },
];

impl PublishedFlow {
    /// All of them, the one for photographs of any kind first.
    pub fn all() -> &'static [PublishedFlow] {
        &PUBLISHED
    }

    /// Finds a published flow by its name here.
    pub fn named(name: &str) -> Option<&'static PublishedFlow> {
        PUBLISHED.iter().find(|flow| flow.name == name)
    }
}
