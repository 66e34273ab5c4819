//! The native part of the Python package `locdiff`: what is called here does its work without the interpreter's lock. The
//! Python in `python/locdiff` gives it names, types and documentation.

mod answer;
#[cfg(feature = "av1")]
mod av1;
mod batch;
mod density;
mod errors;
mod evaluate;
mod images;
mod model;
mod process;
mod shards;
mod sphere;
mod stored;
mod table;

use pyo3::prelude::*;

/// The module `locdiff._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::answer::Answer;
    #[pymodule_export]
    use crate::batch::BatchJob;
    #[pymodule_export]
    use crate::density::Density;
    #[pymodule_export]
    use crate::evaluate::score;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::process::run;
    #[pymodule_export]
    use crate::shards::Shards;
    #[pymodule_export]
    use crate::sphere::{analysis, decode, distance_km, encode, grid, synthesis};
    #[pymodule_export]
    use crate::table::{Batches, Table};

    /// What is done when the module is loaded.
    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        #[cfg(feature = "av1")]
        crate::av1::register();
        Ok(())
    }

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
