"""Code as users write it, for mypy and pyright: it is checked, and test_examples runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import locdiff


def use(folder: Path) -> str:
    model = locdiff.open("earth-view", registration=False)
    answer = model.locate(folder / "madagascar.jpg")
    best: locdiff.Candidate = answer.best
    area: float = answer.region(0.9).area_km2
    answers: list[locdiff.Answer] = model.locate([folder / "sinai.jpg", (folder / "madagascar.jpg").read_bytes()])
    countries = {one.best.country for one in answers}
    latitude, longitude = answer.density.sample(10, seed=1)
    highest: float = float(np.max(answer.density.log_density(latitude, longitude)))
    coefficients = locdiff.sphere.encode(latitude, longitude, max_degree=7)
    back = locdiff.sphere.decode(coefficients)
    report = locdiff.evaluate.score(*back, latitude, longitude, resamples=0)
    try:
        model.locate(b"")
    except locdiff.ImageError as error:
        print(error)
    return f"{best.country} {area:.0f} {len(countries)} {highest:.1f} {report['images']}"
