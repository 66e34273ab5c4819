"""Writes records.json: density records and their log-densities, evaluated without our code.

Exponential and linear records go through the Python code of docs/density-record.md itself, which is taken from there. Points, cells, mixtures
and products follow the words of that page. Normalizers are sums over a Gauss-Legendre grid, which resolves these densities.
"""

import json
from importlib.metadata import version
from math import atan, cos, exp, log, pi, radians, sin, sqrt, tan
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PAGE = (HERE / "../../docs/density-record.md").read_text()
snippet = {}
exec(PAGE.split("```python\n")[1].split("```")[0], snippet)
rng = np.random.default_rng(7)


def vector(latitude, longitude):
    theta, phi = radians(latitude), radians(longitude)
    return [cos(theta) * cos(phi), cos(theta) * sin(phi), sin(theta)]


def bounds(cell):
    """Face, and the smallest and largest u and v."""
    i = j = 0
    for digit in map(int, cell[1:]):
        i, j = 2 * i + digit % 2, 2 * j + digit // 2
    side = [[tan((k + d) / 2 ** (len(cell) - 1) * pi / 2 - pi / 4) for d in (0, 1)] for k in (i, j)]
    return int(cell[0]), side[0], side[1]


def area(cell):
    _, (u0, u1), (v0, v1) = bounds(cell)
    corner = lambda u, v: atan(u * v / sqrt(1 + u * u + v * v))
    return corner(u1, v1) - corner(u0, v1) - corner(u1, v0) + corner(u0, v0)


def holds(cell, latitude, longitude):
    face, us, vs = bounds(cell)
    x, axis = vector(latitude, longitude), face % 3
    if x[axis] == 0 or (x[axis] > 0) != (face < 3):
        return False
    u, v = x[(axis + 1) % 3] / abs(x[axis]), x[(axis + 2) % 3] / abs(x[axis])
    return us[0] < u < us[1] and vs[0] < v < vs[1]


def log_density(record, latitude, longitude):
    """At one place; of products without the normalizer."""
    match record["kind"]:
        case "exponential" | "linear":
            key = json.dumps(record)
            if key not in normalizers:
                places = np.linspace(-85, 85, 50), np.linspace(-180, 180, 50)
                raw, logs = snippet["values"](record, *places), snippet["log_density"](record, *places, rings=rings_of[record["kind"]])
                normalizers[key] = (raw[np.isfinite(raw)] - logs[np.isfinite(raw)])[0]
            return float(snippet["values"](record, np.array(latitude), longitude) - normalizers[key])
        case "points":
            k = (6371.0088 / record["kernel_km"]) ** 2
            here, total = np.array(vector(latitude, longitude)), 1e-6 / (4 * pi)
            for lat, lon, mass in zip(record["latitudes"], record["longitudes"], record["masses"]):
                cosine = float(here @ np.array(vector(lat, lon)))
                total += (1 - 1e-6) * mass * k / (2 * pi * -np.expm1(-2 * k)) * exp(k * (cosine - 1))
            return log(total)
        case "cells":
            for cell, mass in zip(record["cells"], record["masses"]):
                if holds(cell, latitude, longitude):
                    return log(mass / area(cell))
            return -np.inf
        case "mixture":
            return log(sum(p["weight"] * exp(log_density(p["density"], latitude, longitude)) for p in record["parts"]))
        case "product":
            return sum(f["exponent"] * log_density(f["density"], latitude, longitude) for f in record["factors"])


normalizers = {}
# A linear density has a kink where it reaches zero, and so its integral needs more.
rings_of = {"exponential": 150, "linear": 600}


def of_function(kind, degree, size):
    numbers = rng.normal(size=(degree + 1) ** 2) * size / (1 + np.sqrt(np.arange((degree + 1) ** 2)))
    if kind == "linear":
        numbers[0] = 1 / sqrt(4 * pi)
    return {"kind": kind, "max_degree": degree, "coefficients": [float(f"{x:.7g}") for x in numbers]}


points = {"kind": "points", "kernel_km": 900.0, "latitudes": [60.0, -45.5, 0.25], "longitudes": [20.0, 179.5, -60.0], "masses": [0.5, 0.3, 0.2]}
cells = {"kind": "cells", "cells": ["00", "01", "021", "1", "2310", "23111", "3", "402", "5"], "masses": [0.1, 0.05, 0.2, 0.05, 0.1, 0.2, 0.1, 0.15, 0.05]}
smooth = of_function("exponential", 5, 3.0)
records = [
    of_function("exponential", 3, 4.0),
    of_function("exponential", 9, 5.0),
    of_function("linear", 4, 0.5),
    of_function("linear", 8, 1.0),
    points,
    cells,
    {"kind": "mixture", "parts": [{"weight": 0.25, "density": smooth}, {"weight": 0.5, "density": points}, {"weight": 0.25, "density": cells}]},
    {"kind": "product", "factors": [{"exponent": 1.0, "density": smooth}, {"exponent": 0.5, "density": points}]},
]

latitudes = [89.9, -89.9, 48.8566, -33.8688, 0.1, 12.5] + [float(f"{x:.4f}") for x in np.degrees(np.arcsin(rng.uniform(-1, 1, 34)))]
longitudes = [10.0, -100.0, 2.3522, 151.2093, -179.99, 179.99] + [float(f"{x:.4f}") for x in rng.uniform(-180, 180, 34)]
cases = []
for record in records:
    logs = np.array([log_density(record, *place) for place in zip(latitudes, longitudes)])
    if record["kind"] == "product":
        x, weights = np.polynomial.legendre.leggauss(100)
        steps = np.arange(200) * 1.8
        rings = [[exp(log_density(record, lat, lon)) for lon in steps] for lat in np.degrees(np.arcsin(x))]
        logs = logs - log(pi / 100 * float(np.sum(weights[:, None] * np.array(rings))))
    cases.append({"record": record, "log_densities": [float(f"{x:.9g}") if np.isfinite(x) else None for x in logs]})

head = {"made_by": ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy")), "latitudes": latitudes, "longitudes": longitudes}
lines = ",\n".join(json.dumps(case) for case in cases)
(HERE / "records.json").write_text(json.dumps(head)[:-1] + ', "cases": [\n' + lines + "\n]}\n")
