"""Probability densities on the Earth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from ._areas import Area, area_text
from ._errors import OptionError
from ._packages import needed, numpy

if TYPE_CHECKING:
    import numpy as np
    import xarray
    from numpy.typing import ArrayLike, NDArray


class Mode(NamedTuple):
    """A peak of a density."""

    latitude: float
    longitude: float
    #: The probability of the whole peak.
    mass: float
    #: At the top, per steradian.
    log_density: float


class Region:
    """The smallest part of the Earth that holds some probability: a credible region.

    Takes part in ``__geo_interface__``: shapely, geopandas and folium read it.
    """

    def __init__(self, density: _native.Density, level: float) -> None:
        self._density = density
        self._numbers = density.region(float(level))

    @property
    def level(self) -> float:
        """What was asked for, from 0 to 1."""
        return self._numbers[0]

    @property
    def probability(self) -> float:
        """What the region holds: the level, except for point masses and cells."""
        return self._numbers[1]

    @property
    def area_km2(self) -> float:
        """Square kilometers."""
        return self._numbers[2]

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        """A GeoJSON Polygon or MultiPolygon, cut at the antimeridian."""
        outline = self._numbers[3]
        if outline is None:
            return {"type": "MultiPolygon", "coordinates": []}
        geometry: dict[str, Any] = json.loads(outline)
        return geometry

    def contains(self, latitude: ArrayLike, longitude: ArrayLike) -> NDArray[np.bool_]:
        """Which places lie inside.

        >>> from locdiff import Density
        >>> region = Density.points([48.9], [2.4], kernel_km=100).region(0.9)
        >>> region.contains([48.9, 40.7], [2.4, -74.0]).tolist()
        [True, False]
        """
        places = _Places(latitude, longitude)
        inside: NDArray[np.bool_] = self._density.region_contains(self.level, *places.flat).reshape(places.shape)
        return inside

    def __repr__(self) -> str:
        return f"Region(level={self.level:g}, area_km2={self.area_km2:.0f})"


class Density:
    """A probability density on the Earth, per steradian, normalized.

    >>> from locdiff import Density
    >>> density = Density.points([48.9, 40.7], [2.4, -74.0], weights=[3, 1], kernel_km=50)
    >>> round(density.probability(circle=(48.9, 2.4, 500)), 3)
    0.75
    >>> round(density.modes()[0].latitude, 6)
    48.9
    """

    def __init__(self, native: _native.Density, areas: tuple[str, ...] = ()) -> None:
        self._native = native
        #: What the density was restricted to, for other processes.
        self._areas = areas

    @classmethod
    def exponential(cls, coefficients: ArrayLike) -> Density:
        """exp(e·Y), normalized; (max_degree + 1)² coefficients, as networks trained by likelihood give them."""
        return cls(_native.Density.exponential(_vector(coefficients)))

    @classmethod
    def linear(cls, coefficients: ArrayLike) -> Density:
        """max(e·Y, 0), normalized."""
        return cls(_native.Density.linear(_vector(coefficients)))

    @classmethod
    def points(
        cls,
        latitude: ArrayLike,
        longitude: ArrayLike,
        weights: ArrayLike | None = None,
        kernel_km: float = 25.0,
    ) -> Density:
        """Places with weights, spread by a von Mises-Fisher kernel."""
        latitudes = _vector(latitude)
        given = _vector(weights) if weights is not None else numpy("a density").ones(len(latitudes))
        return cls(_native.Density.points(latitudes, _vector(longitude), given, float(kernel_km)))

    @classmethod
    def uniform(cls) -> Density:
        """The same everywhere.

        >>> round(Density.uniform().entropy_nats(), 3)
        2.531
        """
        return cls(_native.Density.uniform())

    @classmethod
    def mixture(cls, parts: Sequence[tuple[float, Density]]) -> Density:
        """The mean of densities with weights."""
        return cls(_native.Density.mixture([(float(weight), part._native) for weight, part in parts]))

    @classmethod
    def product(cls, factors: Sequence[tuple[float, Density]]) -> Density:
        """The normalized product of densities, each to the power of its exponent."""
        return cls(_native.Density.product([(float(power), part._native) for power, part in factors]))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Density:
        """From the record that docs/density-record.md describes."""
        return cls(_native.Density.from_record(json.dumps(record)))

    def to_dict(self) -> dict[str, Any]:
        """The record that docs/density-record.md describes; right to 1e-4 nats. Of a restricted density, the whole."""
        record: dict[str, Any] = json.loads(self._native.record())
        return record

    def within(self, area: Area) -> Density:
        """This density on an area only, normalized there."""
        text = area_text(area)
        return Density(self._native.within(text), (*self._areas, text))

    def log_density(self, latitude: ArrayLike, longitude: ArrayLike) -> NDArray[np.float64]:
        """Natural logarithms of the density per steradian, of the arrays' common shape.

        >>> Density.uniform().log_density([0, 45], 10).round(3).tolist()
        [-2.531, -2.531]
        """
        places = _Places(latitude, longitude)
        values: NDArray[np.float64] = self._native.log_density(*places.flat).reshape(places.shape)
        return values

    def sample(self, count: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Latitudes and longitudes of places drawn from the density. The same seed gives the same places."""
        numpy("sample()")
        return self._native.sample(count, seed)

    def probability(
        self,
        area: Area | None = None,
        *,
        circle: tuple[float, float, float] | None = None,
        box: tuple[float, float, float, float] | None = None,
    ) -> float:
        """The probability of an area: one of ``area`` (a country, GeoJSON, a geometry), ``circle=(latitude, longitude,
        radius_km)`` and ``box=(south, west, north, east)``; a box may cross the antimeridian.

        >>> round(Density.uniform().probability(box=(0, -180, 90, 180)), 6)
        0.5
        """
        if [area, circle, box].count(None) != 2:
            raise OptionError("probability() takes one of area, circle and box")
        if circle is not None:
            return self._native.probability_in_circle(*circle)
        if box is not None:
            return self._native.probability_in_box(*box)
        return self._native.probability_in_area(area_text(area))

    def region(self, level: float = 0.9) -> Region:
        """The smallest region that holds so much probability."""
        return Region(self._native, level)

    def radius_km(self, latitude: float, longitude: float, probability: float = 0.5) -> float:
        """The radius of the circle around a place that holds so much probability."""
        return self._native.radius_km(latitude, longitude, probability)

    def modes(self) -> list[Mode]:
        """Peaks, the heaviest first."""
        return [Mode(*mode) for mode in self._native.modes()]

    def entropy_nats(self) -> float:
        """Entropy over steradians; log 4π = 2.531 if all places are equally probable."""
        return self._native.entropy_nats()

    def divergence_nats(self, other: Density) -> float:
        """Kullback-Leibler divergence from another density."""
        return self._native.divergence_nats(other._native)

    @property
    def kernel_km(self) -> float | None:
        """The width of the kernel that spread point masses, if there are any: finer detail is the kernel's."""
        return self._native.kernel_km()

    def to_grid(
        self,
        resolution: float = 1.0,
        *,
        box: tuple[float, float, float, float] = (-90.0, -180.0, 90.0, 180.0),
    ) -> xarray.DataArray:
        """The density per steradian at the centers of cells of so many degrees, as ``xarray.DataArray`` with dimensions
        ``latitude`` and ``longitude``. ``box`` is (south, west, north, east).

        ``grid()`` gives the same without xarray.
        """
        module = needed("xarray", "to_grid()")
        parts = self.grid(resolution, box=box)
        array: xarray.DataArray = module.DataArray(
            parts["density"],
            dims=("latitude", "longitude"),
            coords={
                "latitude": ("latitude", parts["latitude"], {"units": "degrees_north"}),
                "longitude": ("longitude", parts["longitude"], {"units": "degrees_east"}),
            },
            name="density",
            attrs={"units": "sr-1", "long_name": "probability density per steradian"},
        )
        return array

    def grid(
        self,
        resolution: float = 1.0,
        *,
        box: tuple[float, float, float, float] = (-90.0, -180.0, 90.0, 180.0),
    ) -> dict[str, NDArray[np.float64]]:
        """``latitude``, ``longitude`` and ``density`` [latitude, longitude] at the centers of cells.

        >>> grid = Density.uniform().grid(30)
        >>> grid["density"].shape, grid["latitude"].tolist()
        ((6, 12), [-75.0, -45.0, -15.0, 15.0, 45.0, 75.0])
        """
        xp = numpy("grid()")
        south, west, north, east = box
        east += 360.0 if east <= west else 0.0
        if not (resolution > 0 and south < north):
            raise OptionError(f"a grid of {resolution} degrees in the box {box}: it has no cells")
        rows = max(1, round((north - south) / resolution))
        columns = max(1, round((east - west) / resolution))
        latitude = south + (xp.arange(rows) + 0.5) * (north - south) / rows
        longitude = west + (xp.arange(columns) + 0.5) * (east - west) / columns
        wrapped = (longitude + 180.0) % 360.0 - 180.0
        density = xp.exp(self.log_density(latitude[:, None], wrapped[None, :]))
        return {"latitude": latitude, "longitude": longitude, "density": density}

    def __reduce__(self) -> tuple[Callable[..., Density], tuple[Any, ...]]:
        return (_restored, (self._native.unrestricted_record(), self._areas))

    def __repr__(self) -> str:
        return f"<Density: {self._native.describe()}>"


def _restored(record: str, areas: tuple[str, ...]) -> Density:
    density = Density(_native.Density.from_record(record))
    for area in areas:
        density = density.within(area)
    return density


class _Places:
    """Latitudes and longitudes, broadcast against each other and flat."""

    def __init__(self, latitude: ArrayLike, longitude: ArrayLike) -> None:
        xp = numpy("arrays of places")
        both = xp.broadcast_arrays(xp.asarray(latitude, float), xp.asarray(longitude, float))
        self.shape: tuple[int, ...] = both[0].shape
        self.flat: tuple[NDArray[np.float64], NDArray[np.float64]] = (both[0].ravel(), both[1].ravel())


def _vector(values: ArrayLike) -> NDArray[np.float64]:
    array: NDArray[np.float64] = numpy("arrays").atleast_1d(numpy("arrays").asarray(values, float)).ravel()
    return array
