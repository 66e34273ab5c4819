"""Densities, the sphere and scores as arrays."""

from __future__ import annotations

import numpy as np
import pytest

import locdiff
from locdiff import Density, evaluate, sphere


def test_densities_are_normalized_and_sampled() -> None:
    density = Density.mixture([(3, Density.points([48.9], [2.4], kernel_km=200)), (1, Density.points([-18], [179.5], kernel_km=300))])
    grid = density.grid(1.0)
    weight = np.cos(np.radians(grid["latitude"]))[:, None] * np.radians(1) ** 2
    assert abs((grid["density"] * weight).sum() - 1) < 1e-3
    assert grid["density"].shape == (180, 360)
    latitude, longitude = density.sample(4000, seed=3)
    assert np.array_equal(latitude, density.sample(4000, seed=3)[0])
    inside = density.region(0.5).contains(latitude, longitude).mean()
    assert abs(inside - 0.5) < 0.03
    assert abs(density.probability(circle=(48.9, 2.4, 2000)) - 0.75) < 1e-3
    assert abs(density.probability(box=(-30, 170, 0, -170)) - 0.25) < 1e-2
    geometry = {"type": "Polygon", "coordinates": [[[-10, 35], [20, 35], [20, 60], [-10, 60], [-10, 35]]]}
    assert abs(density.probability(geometry) - density.probability(box=(35, -10, 60, 20))) < 2e-2
    assert density.kernel_km == 300 and [round(mode.mass, 2) for mode in density.modes()] == [0.75, 0.25]
    assert density.entropy_nats() < Density.uniform().entropy_nats()
    again = Density.from_dict(density.to_dict())
    assert abs(again.log_density(48, 2) - density.log_density(48, 2)) < 1e-4
    assert abs(again.divergence_nats(density)) < 1e-3


def test_log_density_takes_any_shape() -> None:
    density = Density.uniform()
    assert density.log_density(0, 0).shape == ()
    assert density.log_density(np.zeros((2, 1)), np.zeros(3)).shape == (2, 3)
    with pytest.raises(locdiff.OptionError):
        density.log_density([91], [0])


def test_to_grid_is_an_xarray() -> None:
    pytest.importorskip("xarray")
    grid = Density.points([-18], [179.5], kernel_km=100).to_grid(0.5, box=(-25, 170, -10, -170))
    assert grid.dims == ("latitude", "longitude") and grid.shape == (30, 40)
    assert abs(float(grid.sel(latitude=-18, longitude=179.5, method="nearest")) - float(grid.max())) < 1e-6 * float(grid.max()) + 300


def test_the_sphere_goes_there_and_back() -> None:
    generator = np.random.default_rng(1)
    latitude, longitude = np.degrees(np.arcsin(generator.uniform(-1, 1, 50))), generator.uniform(-180, 180, 50)
    coefficients = sphere.encode(latitude, longitude, max_degree=23)
    assert coefficients.shape == (50, 576)
    back = sphere.decode(coefficients)
    assert sphere.distance_km(latitude, longitude, *back).max() < 0.01
    values = sphere.synthesis(coefficients, 40, 80)
    assert values.shape == (50, 40, 80)
    assert abs(sphere.analysis(values, 23) - coefficients).max() < 1e-12
    points = sphere.grid(40, 80)
    at = sphere.encode(points.latitude[3], points.longitude[5], 23) @ coefficients[0]
    assert abs(values[0, 3, 5] - at) < 1e-10
    exponential = Density.exponential(coefficients[0])
    assert sphere.distance_km(latitude[0], longitude[0], *exponential.modes()[0][:2]) < 1


def test_the_sphere_refuses_nonsense() -> None:
    for call in (
        lambda: sphere.decode(np.zeros((1, 5))),
        lambda: sphere.decode(np.full((1, 16), np.nan)),
        lambda: sphere.encode([0], [0], 100_000),
        lambda: sphere.synthesis(np.zeros(16), 4, 3),
        lambda: sphere.analysis(np.zeros((4, 8)), 9),
        lambda: sphere.grid(0, 3),
        lambda: Density.exponential([1.0, 2.0]),
        lambda: Density.points([0], [0], kernel_km=-1),
        lambda: Density.uniform().region(1.5),
        lambda: Density.uniform().probability(),
        lambda: Density.uniform().probability("Atlantis"),
    ):
        with pytest.raises(locdiff.OptionError):
            call()


def test_scores() -> None:
    truth = ([48.8566, 40.7128, -33.9], [2.3522, -74.006, 151.2])
    report = evaluate.score(*truth, *truth, resamples=100)
    assert report["scores"]["accuracy_1_km"]["value"] == 1 and report["scores"]["geoscore"]["value"] == 5000
    with pytest.raises(locdiff.OptionError):
        evaluate.score([np.nan, 0, 0], [0, 0, 0], *truth)
    worst = evaluate.score([np.nan, 0, 0], [0, 0, 0], *truth, missing="worst", resamples=0)
    assert worst["counted_as_worst"] == 1
    densities = [Density.points([lat], [lon], kernel_km=50) for lat, lon in zip(*truth)]
    scored = evaluate.score(*truth, *truth, densities=densities, resamples=0)
    assert scored["density_scores"]["coverage_50"]["value"] == 1
