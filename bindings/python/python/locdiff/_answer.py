"""What a model makes of one image."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from ._areas import Area, area_text
from ._density import Density, Region
from ._errors import OptionError
from ._packages import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Place(NamedTuple):
    """A place with the name of what is there."""

    latitude: float
    longitude: float
    town: str | None
    district: str | None
    country: str | None
    country_code: str | None
    #: In words: "Paris, Ile-de-France, France", "at sea, 40 km off Egypt".
    name: str


class Candidate(NamedTuple):
    """A place that the image may show."""

    latitude: float
    longitude: float
    #: The probability of the whole peak, or the model's score if it is not calibrated.
    mass: float
    #: A circle of this radius around the place holds half of the mass.
    radius_km: float
    town: str | None
    district: str | None
    country: str | None
    country_code: str | None
    #: In words: "Paris, Ile-de-France, France", "at sea, 40 km off Egypt".
    name: str


class Answer:
    """Where an image was probably taken. A prediction, not a fact.

    >>> import locdiff
    >>> answer = locdiff.open("earth-view").locate("examples/madagascar.jpg")
    >>> answer.best.country
    'Madagascar'
    >>> answer.within("Madagascar").region(0.9).area_km2 <= answer.region(0.9).area_km2
    True
    """

    def __init__(self, native: _native.Answer, areas: tuple[str, ...] = ()) -> None:
        self._native = native
        #: What the answer was restricted to, for other processes.
        self._areas = areas

    @cached_property
    def _record(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self._native.json())
        return record

    @property
    def place(self) -> Place:
        """The answer as one place, by the model's ``decode`` rule."""
        place = self._record["place"]
        return Place(**{name: place[name] for name in Place._fields})

    @property
    def best(self) -> Candidate:
        """The most probable candidate."""
        return self.candidates[0]

    @property
    def candidates(self) -> list[Candidate]:
        """Distinct places, the most probable first."""
        found = self._record["candidates"]
        return [Candidate(**{name: row[name] for name in Candidate._fields}) for row in found]

    @property
    def calibrated(self) -> bool:
        """Whether masses are probabilities. If not, they are scores."""
        return bool(self._record["model"]["calibrated"])

    @property
    def kept(self) -> float | None:
        """The share of the unconstrained answer that the areas of ``within`` keep; None without areas."""
        return self._record.get("kept")

    @property
    def warnings(self) -> list[str]:
        """What the model's training supports badly of how it was asked."""
        return list(self._record["warnings"])

    @cached_property
    def density(self) -> Density:
        """The whole probability map."""
        return Density(self._native.density(), self._areas)

    def region(self, level: float = 0.9) -> Region:
        """The smallest region that holds so much probability."""
        return self.density.region(level)

    def within(self, area: Area) -> Answer:
        """The same answer if the image was taken in an area: a country, GeoJSON, or an object with
        ``__geo_interface__``. All numbers are then under that condition."""
        text = area_text(area)
        return Answer(self._native.within(text), (*self._areas, text))

    def to_dict(self) -> dict[str, Any]:
        """The record that ``locdiff predict --json`` prints; docs/answer.schema.json describes it."""
        record: dict[str, Any] = json.loads(self._native.json())
        return record

    def to_geojson(self, levels: tuple[float, ...] = (0.9, 0.5)) -> dict[str, Any]:
        """A FeatureCollection as ``locdiff predict --geojson`` prints it: regions, candidates, the place, and the
        ground that the image shows if the model found it."""
        collection: dict[str, Any] = json.loads(self._native.geojson(list(levels)))
        return collection

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        return self.to_geojson()

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        ax: Axes | None = None,
        *,
        projection: str | None = None,
    ) -> bytes:
        """A map of the answer, as the bytes of a PNG. Needs no other package.

        ``path``: also write it there; ``.svg`` gives SVG. ``ax``: also show it on a matplotlib axis.
        ``projection``: ``"globe"`` or ``"equal-earth"``; the default depends on how certain the answer is.
        """
        svg = path is not None and os.fspath(path).lower().endswith(".svg")
        if svg and ax is not None:
            raise OptionError("plot() draws only PNG on an axis: give a path that ends in .png, or no axis")
        picture = self._native.plot(projection, svg)
        if path is not None:
            with open(path, "wb") as file:
                file.write(picture)
        if ax is not None:
            import io

            image = needed("matplotlib.image", "plot(ax=…)")
            ax.imshow(image.imread(io.BytesIO(picture), format="png"))
            ax.set_axis_off()
        return picture

    def _repr_png_(self) -> bytes:
        return self.plot()

    def _repr_html_(self) -> str:
        import base64
        import html

        measure = "probability" if self.calibrated else "score"
        rows = "".join(
            f"<tr><td>{row.latitude:.4f}, {row.longitude:.4f}</td>"
            f"<td>{html.escape(', '.join(filter(None, (row.town, row.district, row.country))))}</td>"
            f"<td>{100 * row.mass:.0f} %</td><td>{row.radius_km:.0f} km</td></tr>"
            for row in self.candidates
        )
        picture = base64.b64encode(self.plot()).decode()
        name = html.escape(str(self._record["model"]["name"]))
        return (
            f'<img alt="map of the answer" style="max-width: 100%" src="data:image/png;base64,{picture}">'
            f"<table><thead><tr><th>latitude, longitude</th><th>place</th><th>{measure}</th><th>radius</th></tr></thead>"
            f"<tbody>{rows}</tbody></table><p>A prediction by {name}, not a fact.</p>"
        )

    def __reduce__(self) -> tuple[Callable[..., Answer], tuple[Any, ...]]:
        # The record is kept as it is, the density to 1e-4 nats.
        return (_restored, (self._native.json(), *self._native.parts(), self._areas))

    def __repr__(self) -> str:
        best = self.best
        name = ", ".join(filter(None, (best.town, best.country))) or "at sea"
        return f"<Answer: {best.latitude:.4f},{best.longitude:.4f} {name} ({100 * best.mass:.0f} %)>"


def _restored(record: str, density: str, top: int, areas: tuple[str, ...]) -> Answer:
    return Answer(_native.Answer.restored(record, density, list(areas), top), areas)
