//! Flows on the sphere from noise to places: plonk's published models.
//!
//! The weights (MIT) are not part of this program: `locdiff model fetch plonk-yfcc` gets them from the Hugging Face hub. A model
//! directory holds `config.json`, the published `model.safetensors` and a model card. Networks with random weights that plonk's
//! own package saved are the reference of the tests: `parity/plonk`.

mod by_rows;
mod files;
mod likelihood;
mod model;
mod network;
mod published;

pub use files::{FlowAbout, FlowSource};
pub use likelihood::Motion;
pub use model::FlowModel;
pub use network::{FlowConfig, FlowField, FlowNetwork, gammas};
pub use published::PublishedFlow;
