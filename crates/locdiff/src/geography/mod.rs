//! Countries, continents, names of places, and where a picture can only have been taken.

pub(crate) mod constraint;
pub(crate) mod continents;
pub(crate) mod countries;
pub(crate) mod place_names;

pub use constraint::{Constraint, InvalidConstraint};
pub use continents::{Continent, continent_at};
pub use countries::{Country, UnknownCountry, find as find_country, land_area, outlines};
pub use place_names::{Coast, MapName, PlaceName, names_around, place_name};
