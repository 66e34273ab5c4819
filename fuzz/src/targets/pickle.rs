//! PyTorch state dicts, of which only tensors are read.

use locdiff::encoders::VisionTransformer;
use locdiff::tensors::device_by_name;

use crate::{Target, folder};

pub(super) const TARGET: Target = Target {
    name: "pickle",
    reads: "weights in PyTorch state dicts",
    longest: 16 << 10,
    most_bytes: 128 << 20,
    run,
    // `fuzz/seeds/state_dicts.py` wrote those in `fuzz/corpus`.
    seeds: Vec::new,
};

fn run(input: &[u8]) {
    let device = device_by_name("cpu").expect("the CPU");
    let folder = folder::with_file("pytorch_model.bin", input);
    let _ = VisionTransformer::open(&folder.path().join("pytorch_model.bin"), None, &device);
}
