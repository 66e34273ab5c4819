//! What stands between Burn and our networks: devices, weights on disk, operations that the CPU does in one pass.

pub(crate) mod device;
pub(crate) mod fused;
pub(crate) mod named_parameters;
pub(crate) mod weights;

pub use device::{UnknownDevice, device_by_name};
pub use fused::{Gelu, gelu, is_cpu, slice_of};
pub use named_parameters::{NamedMapper, NamedVisitor, map_named, visit_named};
pub use weights::{InvalidWeights, read_weights, write_weights};
