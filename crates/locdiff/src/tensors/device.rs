//! Devices by name.

use burn::tensor::Device;

/// A device that this program does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownDevice {
    /// There is no device of this name.
    #[error("there is no device `{0}`: use cpu, cuda:N, wgpu or metal")]
    Name(String),
    /// This build does not contain the device.
    #[error(
        "this program was built without `{0}`: build it with `cargo install --features {0}` (see \
         docs/training.md), or use --device cpu"
    )]
    NotBuilt(&'static str),
}

/// The device of a name: `cpu`, `cuda` or `cuda:N`, `wgpu`, `metal`. All but the first exist
/// only in builds with the Cargo feature of the same name.
pub fn device_by_name(name: &str) -> Result<Device, UnknownDevice> {
    let (kind, number) = match name.split_once(':') {
        None => (name, 0),
        Some((kind, number)) => {
            (kind, number.parse().map_err(|_| UnknownDevice::Name(name.to_owned()))?)
        }
    };
    match kind {
        "cpu" if number == 0 => Ok(Device::flex()),
        "cuda" => cuda(number),
        "wgpu" if number == 0 => wgpu(),
        "metal" if number == 0 => metal(),
        _ => Err(UnknownDevice::Name(name.to_owned())),
    }
}

#[cfg(feature = "cuda")]
fn cuda(number: usize) -> Result<Device, UnknownDevice> {
    Ok(Device::cuda(number))
}

#[cfg(not(feature = "cuda"))]
fn cuda(_number: usize) -> Result<Device, UnknownDevice> {
    Err(UnknownDevice::NotBuilt("cuda"))
}

#[cfg(feature = "wgpu")]
fn wgpu() -> Result<Device, UnknownDevice> {
    Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice))
}

#[cfg(not(feature = "wgpu"))]
fn wgpu() -> Result<Device, UnknownDevice> {
    Err(UnknownDevice::NotBuilt("wgpu"))
}

#[cfg(feature = "metal")]
fn metal() -> Result<Device, UnknownDevice> {
    Ok(Device::metal(burn::tensor::DeviceKind::DefaultDevice))
}

#[cfg(not(feature = "metal"))]
fn metal() -> Result<Device, UnknownDevice> {
    Err(UnknownDevice::NotBuilt("metal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_make_no_sense_are_refused() {
        assert_eq!(device_by_name("cpu"), Ok(Device::flex()));
        for name in ["gpu", "cpu:1", "cuda:x", "wgpu:2", ""] {
            let error = device_by_name(name).expect_err("no such device").to_string();
            assert!(error.contains(&format!("`{name}`")), "{error}");
        }
        if cfg!(not(feature = "cuda")) {
            let error = device_by_name("cuda:1").expect_err("not built").to_string();
            assert!(error.contains("--features cuda"), "{error}");
        }
    }
}
