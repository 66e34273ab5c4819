"""Parts of the Earth in the forms that people have them in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Union

from ._errors import OptionError

#: A country ("Portugal", "PT"), "land", "SOUTH,WEST,NORTH,EAST", "LAT,LON,RADIUSkm", a GeoJSON file, a GeoJSON
#: mapping, or an object with ``__geo_interface__`` such as a shapely geometry.
Area = Union[str, "os.PathLike[str]", Mapping[str, Any], Any]


def area_text(area: Area) -> str:
    """An area for the native module."""
    if isinstance(area, str):
        return area
    if isinstance(area, os.PathLike):
        return os.fspath(area)
    mapping = getattr(area, "__geo_interface__", area)
    if isinstance(mapping, Mapping):
        return json.dumps(mapping)
    raise OptionError(
        f"{type(area).__qualname__} is not an area: give the name of a country, a GeoJSON mapping, "
        "or an object with __geo_interface__"
    )
