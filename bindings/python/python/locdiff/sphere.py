"""Places and functions on the sphere as numpy arrays.

Latitude before longitude, in degrees; real orthonormal harmonics without Condon-Shortley phase, (l, m) at index
l² + l + m, sine for m < 0; ``max_degree`` inclusive. Distances on a sphere of radius 6371.0088 km.

>>> from locdiff import sphere
>>> coefficients = sphere.encode([48.8566], [2.3522], max_degree=47)
>>> coefficients.shape
(1, 2304)
>>> latitude, longitude = sphere.decode(coefficients)
>>> latitude.round(4).tolist(), longitude.round(4).tolist()
([48.8566], [2.3522])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from ._density import Density, Mode, Region
from ._packages import numpy as _numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Density", "Grid", "Mode", "Region", "analysis", "decode", "distance_km", "encode", "grid", "synthesis"]


class Grid(NamedTuple):
    """Gauss-Legendre rings from north to south × equispaced longitudes from 0° eastwards."""

    #: Of each ring, in degrees.
    latitude: NDArray[np.float64]
    #: Degrees.
    longitude: NDArray[np.float64]
    #: Of a point on each ring, in steradians: ``(values.sum(-1) * weight).sum(-1)`` is the integral.
    weight: NDArray[np.float64]


def encode(latitude: ArrayLike, longitude: ArrayLike, max_degree: int) -> NDArray[np.float64]:
    """The harmonics at places, ``[..., (max_degree + 1)²]``."""
    xp = _numpy("locdiff.sphere")
    both = xp.broadcast_arrays(xp.asarray(latitude, float), xp.asarray(longitude, float))
    rows = _native.encode(both[0].ravel(), both[1].ravel(), max_degree)
    encoded: NDArray[np.float64] = rows.reshape(*both[0].shape, -1)
    return encoded


def decode(coefficients: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Latitude and longitude where Σ c·Y is highest, for coefficients ``[..., (max_degree + 1)²]``."""
    array, shape = _rows(coefficients, 1)
    latitude, longitude = _native.decode(array)
    return latitude.reshape(shape), longitude.reshape(shape)


def grid(rings: int, longitudes: int) -> Grid:
    """The grid of :func:`synthesis` and :func:`analysis`.

    >>> from locdiff import sphere
    >>> points = sphere.grid(8, 16)
    >>> round(float(points.weight.sum()) * 16, 6)  # 4π
    12.566371
    """
    _numpy("locdiff.sphere")
    return Grid(*_native.grid(rings, longitudes))


def synthesis(
    coefficients: ArrayLike, rings: int | None = None, longitudes: int | None = None
) -> NDArray[np.float64]:
    """Σ c·Y on a grid, ``[..., rings, longitudes]``; by default the smallest grid on which :func:`analysis` is exact."""
    array, shape = _rows(coefficients, 1)
    degree = round(array.shape[1] ** 0.5) - 1
    rings = degree + 1 if rings is None else rings
    longitudes = 2 * degree + 2 if longitudes is None else longitudes
    values: NDArray[np.float64] = _native.synthesis(array, rings, longitudes).reshape(*shape, rings, longitudes)
    return values


def analysis(values: ArrayLike, max_degree: int | None = None) -> NDArray[np.float64]:
    """The coefficients of functions from their values ``[..., rings, longitudes]`` on the grid.

    >>> from locdiff import sphere
    >>> coefficients = sphere.encode(10.0, 20.0, max_degree=15)
    >>> bool(abs(sphere.analysis(sphere.synthesis(coefficients)) - coefficients).max() < 1e-12)
    True
    """
    array, shape = _rows(values, 2)
    degree = array.shape[1] - 1 if max_degree is None else max_degree
    coefficients: NDArray[np.float64] = _native.analysis(array, degree).reshape(*shape, -1)
    return coefficients


def distance_km(
    latitude: ArrayLike, longitude: ArrayLike, other_latitude: ArrayLike, other_longitude: ArrayLike
) -> NDArray[np.float64]:
    """Great-circle distances.

    >>> from locdiff import sphere
    >>> sphere.distance_km(48.8566, 2.3522, [51.5074], [-0.1278]).round(1).tolist()
    [343.6]
    """
    xp = _numpy("locdiff.sphere")
    given = (latitude, longitude, other_latitude, other_longitude)
    arrays = xp.broadcast_arrays(*(xp.asarray(values, float) for values in given))
    flat = [array.ravel() for array in arrays]
    distances: NDArray[np.float64] = _native.distance_km(*flat).reshape(arrays[0].shape)
    return distances


def _rows(values: ArrayLike, axes: int) -> tuple[Any, tuple[int, ...]]:
    """The last axes as they are, all before as one."""
    xp = _numpy("locdiff.sphere")
    array = xp.asarray(values, float)
    if array.ndim < axes:
        from ._errors import OptionError

        raise OptionError(f"an array of {array.ndim} axes: at least {axes} are needed")
    split = array.ndim - axes
    return xp.ascontiguousarray(array.reshape(-1, *array.shape[split:])), array.shape[:split]
