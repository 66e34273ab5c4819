//! Cells of the Earth, for joins with other tables.

use std::fmt;
use std::str::FromStr;

use h3o::{LatLng, Resolution};
use locdiff_sphere::LatLon;
use serde::{Deserialize, Serialize};

/// Which cells: H3 at a resolution from 0 (4.4 million km²) to 15 (1 m²).
///
/// ```
/// use locdiff_batch::Cells;
/// use locdiff_sphere::LatLon;
///
/// let cells: Cells = "h3:7".parse()?;
/// assert_eq!(cells.to_string(), "h3:7");
/// assert_eq!(cells.at(LatLon::new(48.8584, 2.2945)?), "871fb4674ffffff");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cells(Resolution);

/// Why a text is not a kind of cells.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a kind of cells: write h3:R with a resolution from 0 to 15, for example h3:7"
)]
pub struct InvalidCells(String);

impl Cells {
    /// The id of the cell that contains a place, as H3's libraries write it.
    pub fn at(self, place: LatLon) -> String {
        let place = LatLng::new(place.latitude(), place.longitude());
        place.map(|place| place.to_cell(self.0).to_string()).unwrap_or_default()
    }
}

impl fmt::Display for Cells {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "h3:{}", u8::from(self.0))
    }
}

impl FromStr for Cells {
    type Err = InvalidCells;

    fn from_str(text: &str) -> Result<Cells, InvalidCells> {
        let resolution = text.strip_prefix("h3:").and_then(|number| number.parse::<u8>().ok());
        let resolution = resolution.and_then(|number| Resolution::try_from(number).ok());
        resolution.map(Cells).ok_or_else(|| InvalidCells(text.to_owned()))
    }
}

impl TryFrom<String> for Cells {
    type Error = InvalidCells;

    fn try_from(text: String) -> Result<Cells, InvalidCells> {
        text.parse()
    }
}

impl From<Cells> for String {
    fn from(cells: Cells) -> String {
        cells.to_string()
    }
}
