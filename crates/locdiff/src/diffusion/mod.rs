//! The diffusion over coefficients: network, noise levels, objectives, samplers.

mod cpu_integrals;
mod denoiser;
mod objective;
mod sampler;
mod schedule;
mod sphere_grid;
mod standardization;

pub use denoiser::{Denoiser, DenoiserConfig, Dropped};
pub use objective::{Loss, Objective, Points, Quadrature, encoding_width_km};
pub(crate) use sampler::rows_of;
pub use sampler::{
    Diffusion, DiffusionConfig, Meaning, Method, SampleOptions, Step, coefficients_of,
};
pub use schedule::{InvalidSchedule, LEAKAGE_LIMIT, Schedule, ScheduleConfig, ScheduleKind};
pub use sphere_grid::{SphereGrid, encodings};
pub use standardization::Standardization;
