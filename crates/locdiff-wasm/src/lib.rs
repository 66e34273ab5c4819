//! Probability maps in the browser: what the map page asks of `locdiff-sphere`.
//!
//! The page gets a density with the server's answer and works on it alone from there: it restricts
//! it, measures it again, draws it at every zoom. [`Maps`] stores densities under numbers and uses
//! JSON, as the page does; `c_interface` passes that on without any tool that writes bindings, so
//! that a plain `cargo build` for wasm32 makes the file that the page loads.
//!
//! ```
//! use locdiff_wasm::Maps;
//!
//! let mut maps = Maps::default();
//! let whole = maps.open(r#"{"kind":"points","kernel_km":100,"latitudes":[38.7,14.7],
//!     "longitudes":[-9.1,-17.5],"masses":[0.75,0.25]}"#)?;
//! let south = maps.restrict(whole, r#"{"kind":"box","south":0,"west":-40,"north":30,"east":0}"#)?;
//! assert!((maps.share(south)? - 0.25).abs() < 0.01);
//! # Ok::<(), locdiff_wasm::Problem>(())
//! ```

#[expect(unsafe_code, reason = "exported names, and memory that the page writes to and reads from")]
mod c_interface;
mod maps;
mod records;
mod tile;

pub use maps::{FirstLook, Maps, Problem};
pub use tile::Tile;
