"""Scores of answers, ours or anybody's, on numpy arrays.

>>> from locdiff import evaluate
>>> report = evaluate.score([48.9, 40.0], [2.4, -74.0], [48.8566, 40.7128], [2.3522, -74.006], resamples=0)
>>> report["scores"]["accuracy_25_km"]["value"]
0.5
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._density import Density
from ._packages import numpy as _numpy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["score"]


def score(
    latitude: ArrayLike,
    longitude: ArrayLike,
    true_latitude: ArrayLike,
    true_longitude: ArrayLike,
    *,
    densities: Sequence[Density] | None = None,
    rules: str = "locdiff",
    missing: str = "refuse",
    resamples: int = 1000,
    seed: int = 1,
) -> dict[str, Any]:
    """The report of ``locdiff evaluate --json``: accuracy within 1, 25, 200, 750 and 2500 km, distances, GeoScore, and with
    ``densities`` log-likelihoods, coverage and calibration, each with an interval.

    Not-a-number is no answer: ``missing`` is ``"refuse"``, ``"skip"`` or ``"worst"``. ``rules``: how distances are measured,
    ``"locdiff"``, or as the scripts of ``"geoclip"`` and ``"osv5m"`` do. ``resamples=0``: no intervals.
    """
    xp = _numpy("locdiff.evaluate")
    given = (xp.asarray(latitude, float).ravel(), xp.asarray(longitude, float).ravel())
    truth = (xp.asarray(true_latitude, float).ravel(), xp.asarray(true_longitude, float).ravel())
    natives = None if densities is None else [density._native for density in densities]
    report: dict[str, Any] = json.loads(_native.score(*given, *truth, natives, rules, missing, resamples, seed))
    return report
