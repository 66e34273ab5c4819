"""Writes the reference numbers of this folder: `python generate.py [name ...]`, all files without a name.

Each file is made by one independent package and checked here against at least one other; a check that fails stops the
run, and the deviations found are written into the file. Deviations of harmonics are relative to sqrt((2l+1)/4pi), the
largest possible value, times sqrt(l(l+1)) for each derivative.
"""

import json
import math
import random
import sys
from importlib.metadata import version
from pathlib import Path

import ducc0
import flint
import numpy as np
import scipy.special
from geographiclib.geodesic import Geodesic
from mpmath import mp, mpf

import precise
from precise import degree_order, index

HERE = Path(__file__).parent
RADIUS_KM = 6371.0088
SMALL_COLATITUDES = {c: 90 - math.degrees(c) for c in (1e-6, 1e-3, 0.01, 0.1)}  # radians: latitude
CONVENTION = (
    "Place: latitude, longitude in degrees, exact binary doubles as printed. Real orthonormal spherical harmonics "
    "without Condon-Shortley phase, (l, m) at index l*l + l + m, m > 0 cosine, m < 0 sine."
)


def write(name, made_by, checked_by, note, cases, **fields):
    """Compact JSON, one case per line."""
    made_by, checked_by = (", ".join(f"{p} {version(p)}" for p in names) for names in (made_by, checked_by))
    head = {"made_by": made_by, "checked_by": checked_by, "note": note, **fields}
    lines = ",\n".join(json.dumps(case, separators=(",", ":"), allow_nan=False) for case in cases)
    text = json.dumps(head, separators=(",", ":"), allow_nan=False)[:-1] + ',"cases":[\n' + lines + "\n]}\n"
    (HERE / name).write_text(text)
    checks = {key: value for key, value in fields.items() if "checked" in key}
    print(f"{name}: {len(cases)} cases, {len(text)} bytes, {checks}", flush=True)


def double(x):
    return float(x) + 0.0  # no negative zero


def peak(degree):
    return math.sqrt((2 * degree + 1) / (4 * math.pi))


def random_place(rng):
    return round(math.degrees(math.asin(rng.uniform(-1, 1))), 6), round(rng.uniform(-180, 180), 6)


def check(condition, message):
    if not condition:
        raise SystemExit(f"check failed: {message}")


def flint_harmonic(degree, signed_order, latitude, longitude):
    """Arb's spherical_y (with phase, complex) as our real harmonic; balls, so its error is bounded."""
    flint.ctx.dps = 80 + degree
    degrees = flint.arb.pi() / 180
    m = abs(signed_order)
    y = flint.acb.spherical_y(degree, m, (90 - flint.arb(latitude)) * degrees, flint.arb(longitude) * degrees)
    y = (y.real if signed_order >= 0 else y.imag) * (-1) ** m * (flint.arb(2).sqrt() if m else 1)
    check(y.rad() < 1e-30, f"flint's ball for {degree}, {signed_order} is wide")
    return mpf(y.mid().str(40, radius=False))


def scipy_harmonics(indices, latitude, longitude):
    l, m = np.array([degree_order(i) for i in indices]).T
    y = scipy.special.sph_harm_y(l, abs(m), math.radians(90 - latitude), math.radians(longitude))
    y = np.where(m >= 0, y.real, y.imag) * np.where(m == 0, 1, math.sqrt(2))
    return [double(v) for v in np.where(m % 2 == 0, y, -y)]


def basis_scipy():
    rng = random.Random(1)
    places = [(48.8566, 2.3522), random_place(rng), random_place(rng), (90.0, 37.5), (-90.0, -120.25)]
    places += [(89.9999, 12.3), (-89.99, 101.7), (-17.3, -180.0), (66.1, 179.999), (0.0, -45.7)]
    cases, dropped, worst = [], [], 0.0
    for max_degree in (47, 128):
        for latitude, longitude in places:
            chosen = {index(l, m) for l in (0, 1, 2, 3, max_degree) for m in range(-l, l + 1)}
            chosen |= set(rng.sample(range((max_degree + 1) ** 2), 300))
            indices = sorted(chosen)
            values = scipy_harmonics(indices, latitude, longitude)
            top = values[-(2 * max_degree + 1) :]
            check(abs(math.fsum(v * v for v in top) / peak(max_degree) ** 2 - 1) < 1e-12, "scipy: sum of squares")
            deviation = 0.0
            for i, value in zip(indices, values):
                l, m = degree_order(i)
                exact = precise.harmonic(l, m, latitude, longitude)
                deviation = max(deviation, float(abs(value - exact)) / peak(l))
            if deviation > 1e-13:
                dropped.append({"max_degree": max_degree, "place": [latitude, longitude], "max_deviation": deviation})
                continue
            worst = max(worst, deviation)
            case = {"max_degree": max_degree, "latitude": latitude, "longitude": longitude}
            cases.append(case | {"max_deviation": deviation, "indices": indices, "values": values})
    note = CONVENTION + " All orders of degrees 0 to 3 and of the top degree, and random indices."
    checked = {"every_value": True, "max_deviation": worst, "dropped_above_1e-13": dropped}
    write("basis_scipy.json", ["scipy"], ["mpmath"], note, cases, checked_against_mpmath=checked)


def telling_indices(max_degree, latitude, rng, count):
    """Degrees near the top and lower ones, with orders where trouble lives: 0, few, the turning point l sin t, l."""
    sine = math.cos(math.radians(latitude))
    chosen = {index(1, m) for m in (-1, 0, 1)}
    degrees = (max_degree, max_degree - 1, max_degree // 2, 2, max_degree * 3 // 4, max_degree // 4, max_degree // 10)
    for l in degrees:
        turning = round(l * sine)
        for m in (0, 1, 2, 5, 10, turning, turning - 3, turning + 3, l // 2, l - 1, l):
            if 0 <= m <= l:
                chosen |= {index(l, m), index(l, -m)} if l == max_degree else {index(l, rng.choice((m, -m)))}
    kept = {i for i in chosen if degree_order(i)[0] in (1, 2, max_degree)}
    others = sorted(chosen - kept)
    chosen = kept | set(rng.sample(others, min(len(others), count - len(kept))))
    while len(chosen) < min(count, (max_degree + 1) ** 2):
        l = rng.randint(0, max_degree)
        chosen.add(index(l, rng.randint(-min(l, int(l * sine) + 5), min(l, int(l * sine) + 5))))
    return sorted(chosen)


def basis_mpmath():
    rng = random.Random(2)
    places = list(zip(SMALL_COLATITUDES.values(), (33.0, -71.3, 140.9, -179.25)))
    places += [(-SMALL_COLATITUDES[1e-6], 77.7), (-SMALL_COLATITUDES[1e-3], -12.0), (48.8566, 2.3522)]
    places += [(-33.8688, 151.2093), (19.4, -180.0), (0.0, 63.1), (90.0, 37.5), (-90.0, -120.25)]
    cases, versus_flint, versus_recurrence = [], 0.0, 0.0
    for max_degree in (47, 128, 1000, 2000):
        for latitude, longitude in places:
            indices = telling_indices(max_degree, latitude, rng, 100)
            values = []
            for i in indices:
                l, m = degree_order(i)
                exact = precise.harmonic(l, m, latitude, longitude)
                values.append(double(exact))
                with mp.workdps(100):
                    by_flint = flint_harmonic(l, m, latitude, longitude)
                    column = precise.recurrence_column(l, abs(m), precise.colatitude_of(latitude))
                    recurred = column[-1] * precise.cos_sin_longitude(abs(m), longitude)[m < 0]
                    versus_flint = max(versus_flint, float(abs(by_flint - exact)) / peak(l))
                    versus_recurrence = max(versus_recurrence, float(abs(recurred - exact)) / peak(l))
            case = {"max_degree": max_degree, "latitude": latitude, "longitude": longitude}
            cases.append(case | {"indices": indices, "values": values})
    check(max(versus_flint, versus_recurrence) < 1e-30, f"mpmath basis: {versus_flint}, {versus_recurrence}")
    for latitude, longitude in places:
        total = sum(precise.harmonic(47, m, latitude, longitude) ** 2 for m in range(-47, 48))
        check(abs(total * 4 * mp.pi / 95 - 1) < 1e-30, "sum of squares over the orders")
    note = CONVENTION + (
        " Finite hypergeometric sum with at least 60 digits beyond its cancellation, rounded to double; values that"
        " underflow are 0. Compare relative to sqrt((2l+1)/4pi)."
    )
    checks = {"checked_against_flint": versus_flint, "checked_against_recurrence": versus_recurrence}
    write("basis_mpmath.json", ["mpmath", "gmpy2"], ["python-flint"], note, cases, **checks)


def derivatives_mpmath():
    rng = random.Random(3)
    places = [(90.0, 37.5), (-90.0, -120.25), (SMALL_COLATITUDES[1e-6], 33.0), (-SMALL_COLATITUDES[1e-6], 77.7)]
    places += [(SMALL_COLATITUDES[1e-3], -71.3), (-SMALL_COLATITUDES[1e-3], -12.0), (SMALL_COLATITUDES[0.1], 5.0)]
    places += [(48.8566, 2.3522), (-33.8688, 151.2093), (0.0, 63.1), (19.4, -180.0)]
    names = ("value", "east", "north", "east_east", "east_north", "north_north")
    derivatives = (0, 1, 1, 2, 2, 2)
    cases, worst = [], 0.0
    for max_degree in (47, 128, 300):
        for latitude, longitude in places:
            indices = telling_indices(max_degree, latitude, rng, 60)
            jets = []
            for i in indices:
                l, m = degree_order(i)
                jet = precise.harmonic_jet(l, m, latitude, longitude)
                jets.append(jet)
                with mp.workdps(180):  # at a pole: the limit, by a colatitude that is almost zero
                    t = precise.colatitude_of(latitude)
                    t = mpf("1e-40") if latitude == 90 else mp.pi - mpf("1e-40") if latitude == -90 else t
                    by_definition = precise.harmonic_jet_by_definition(l, m, t, longitude)
                for name, count in zip(names, derivatives):
                    scale = peak(l) * max(1, l * (l + 1)) ** (count / 2)
                    worst = max(worst, float(abs(getattr(by_definition, name) - getattr(jet, name))) / scale)
            case = {"max_degree": max_degree, "latitude": latitude, "longitude": longitude, "indices": indices}
            cases.append(case | {name: [double(getattr(jet, name)) for jet in jets] for name in names})
    check(worst < 1e-30, f"derivatives by definition: {worst}")
    for latitude, longitude in places:
        l = 47
        jets = [precise.harmonic_jet(l, m, latitude, longitude) for m in range(-l, l + 1)]
        gradient = mpf(l * (l + 1) * (2 * l + 1)) / (8 * mp.pi)
        check(abs(sum(j.east**2 for j in jets) / gradient - 1) < 1e-30, "sum of squares of the east derivative")
        check(abs(sum(j.north**2 for j in jets) / gradient - 1) < 1e-30, "sum of squares of the north derivative")
        check(abs(sum(j.east * j.north for j in jets)) < 1e-30, "east and north are uncorrelated")
        trace = max(abs(j.east_east + j.north_north + l * (l + 1) * j.value) for j in jets)
        check(trace < 1e-30, "the trace of the Hessian is the Laplacian")
    note = CONVENTION + (
        " Covariant derivatives on the unit sphere (per radian) in the frame east, north, with colatitude t:"
        " east = d_lon Y / sin t, north = -d_t Y, east_east = d_lon^2 Y / sin^2 t + cot t d_t Y,"
        " east_north = -(d_t d_lon Y / sin t - cos t / sin^2 t d_lon Y), north_north = d_t^2 Y."
        " At a pole the frame is the limit along the meridian of the given longitude."
        " Compare relative to sqrt((2l+1)/4pi) * sqrt(l(l+1))^(number of derivatives)."
    )
    write("derivatives_mpmath.json", ["mpmath", "gmpy2"], ["mpmath"], note, cases, checked_against_definition=worst)


def test_coefficients(max_degree):
    def coefficient(i):
        return (((i * 2654435761 + 12345) % 2**32) / 2**31 - 1) / (math.isqrt(i) + 1)

    return [coefficient(i) for i in range((max_degree + 1) ** 2)]


def complex_coefficients(real, max_degree):
    """ducc0 (healpy) order, with Condon-Shortley phase: a_lm = (-1)^m (c_lm - i c_l,-m) / sqrt(2)."""
    alm = []
    for m in range(max_degree + 1):
        for l in range(m, max_degree + 1):
            pair = complex(real[index(l, m)], -real[index(l, -m)])
            alm.append((-1) ** m * pair / math.sqrt(2) if m else real[index(l, 0)])
    return np.array([alm], dtype=complex)


def transform_ducc0():
    rng = random.Random(4)
    cases, worst = [], {"value": 0.0, "gradient": 0.0, "analysis": 0.0, "cosine": 0.0, "relative_weight": 0.0}
    for max_degree in (15, 47, 128, 255):
        real = test_coefficients(max_degree)
        alm = complex_coefficients(real, max_degree)
        for rings, longitudes in ((max_degree + 1, 2 * max_degree + 2), (2 * max_degree + 2, 4 * max_degree + 4)):
            grid = {"lmax": max_degree, "geometry": "GL", "nthreads": 1}
            size = {"ntheta": rings, "nphi": longitudes}
            field = ducc0.sht.synthesis_2d(alm=alm, spin=0, **grid, **size)[0]
            theta, east = ducc0.sht.synthesis_2d(alm=alm, spin=1, mode="DERIV1", **grid, **size)
            back = ducc0.sht.analysis_2d(map=field[None], spin=0, **grid)
            worst["analysis"] = max(worst["analysis"], float(abs(back - alm).max()))
            cosines = np.cos(ducc0.misc.GL_thetas(rings))
            weights = ducc0.misc.GL_weights(rings, longitudes) * longitudes / (2 * math.pi)
            shown = sorted({0, 1, 2, rings // 4, rings // 2 - 1, rings // 2, rings - 2, rings - 1})
            pairs = {(0, 0), (0, longitudes - 1), (rings - 1, 0), (rings - 1, longitudes // 2), (rings // 2, 1)}
            pairs |= {(rng.randrange(rings), rng.randrange(longitudes)) for _ in range(2)}
            direct = sorted(pairs)
            while len(pairs) < 300:
                pairs.add((rng.randrange(rings), rng.randrange(longitudes)))
            gradient_max = float(np.hypot(theta, east).max())
            mp.dps = 40
            for ring, j in direct:
                t, x, w = precise.gauss_legendre(rings, ring)
                exact = precise.field_and_gradient(real, max_degree, t, mpf(j) / longitudes)
                off = [abs(float(a - b)) for a, b in zip((field[ring, j], east[ring, j], -theta[ring, j]), exact)]
                worst["value"] = max(worst["value"], off[0] / float(abs(field).max()))
                worst["gradient"] = max(worst["gradient"], max(off[1:]) / gradient_max)
                worst["cosine"] = max(worst["cosine"], abs(float(cosines[ring] - x)))
                worst["relative_weight"] = max(worst["relative_weight"], abs(float(weights[ring] / w - 1)))
            ring_of, longitude_of = zip(*sorted(pairs))
            cases.append(
                {
                    "max_degree": max_degree,
                    "rings": rings,
                    "longitudes": longitudes,
                    "max_abs": float(abs(field).max()),
                    "max_gradient": gradient_max,
                    "ring_indices": shown,
                    "ring_cosines": [double(cosines[r]) for r in shown],
                    "ring_weights": [double(weights[r]) for r in shown],
                    "ring": ring_of,
                    "longitude": longitude_of,
                    "value": [double(field[p]) for p in sorted(pairs)],
                    "east": [double(east[p]) for p in sorted(pairs)],
                    "north": [double(-theta[p]) for p in sorted(pairs)],
                }
            )
    check(max(worst.values()) < 1e-12, f"ducc0: {worst}")
    note = (
        "Real orthonormal spherical harmonics without Condon-Shortley phase, coefficient i = l*l + l + m is"
        " (((i*2654435761 + 12345) mod 2^32) / 2^31 - 1) / (l + 1) in doubles. Gauss-Legendre rings, ring 0 the"
        " northernmost; longitude j at 2 pi j / longitudes radians, j = 0 at longitude 0, going east. ring_cosines are"
        " cos(colatitude), ring_weights sum to 2 over all rings. value, east, north at (ring, longitude): field and"
        " gradient on the unit sphere (per radian); max_abs and max_gradient over the whole grid."
    )
    write("transform_ducc0.json", ["ducc0"], ["mpmath"], note, cases, checked_against_mpmath=worst)


def gauss_legendre_mpmath():
    mp.dps = 50
    cases, versus_flint, versus_scipy = [], 0.0, 0.0
    for n in (1, 2, 3, 8, 96, 193, 1000, 4002):
        middle = range(n // 2 - 2, n // 2 + 2)
        selected = [0, 1, 2, 3, 4, 9, 20, 50, 100, n // 5, n // 3, *middle, n * 7 // 10, *range(n - 4, n)]
        rings = range(n) if n <= 193 else selected
        exact = [precise.gauss_legendre(n, ring) for ring in rings]
        flint.ctx.dps = 50
        for ring, (_, x, w) in zip(rings, exact):
            root, weight = flint.arb.legendre_p_root(n, ring, weight=True)
            off = abs(mpf(root.mid().str(45, radius=False)) - x), abs(mpf(weight.mid().str(45, radius=False)) / w - 1)
            versus_flint = max(versus_flint, *map(float, off))
        nodes = scipy.special.roots_legendre(n)[0][::-1]
        versus_scipy = max(versus_scipy, *(abs(float(nodes[r] - x)) for r, (_, x, _) in zip(rings, exact)))
        if n <= 193:
            check(abs(sum(w for _, _, w in exact) - 2) < 1e-40, "the weights sum to 2")
            moment = sum(w * x ** (2 * n - 2) for _, x, w in exact)
            check(abs(moment - mpf(2) / (2 * n - 1)) < 1e-40, "degree 2n-2 is integrated exactly")
        colatitudes, cosines, weights = ([double(v) for v in column] for column in zip(*exact))
        cases.append({"n": n, "indices": list(rings), "nodes": cosines, "colatitudes": colatitudes, "weights": weights})
    check(versus_flint < 1e-40, f"Gauss-Legendre against flint: {versus_flint}")
    note = (
        "Gauss-Legendre rule with n nodes; index 0 is the northernmost ring: nodes = cos(colatitude) descending,"
        " colatitudes in radians (near the ends they hold more digits than the nodes), weights sum to 2."
    )
    checks = {"checked_against_flint": versus_flint, "nodes_checked_against_scipy": versus_scipy}
    write("gauss_legendre_mpmath.json", ["mpmath", "gmpy2"], ["python-flint", "scipy"], note, cases, **checks)


def place_pairs(rng):
    """(kind, start, end)."""
    for _ in range(12):
        yield "random", random_place(rng), random_place(rng)
    yield "pole", (90.0, 37.5), (10.0, -20.0)
    yield "pole", (-90.0, 0.0), (45.0, 100.0)
    yield "pole", (12.5, 60.0), (90.0, 0.0)
    yield "pole", (12.5, 60.0), (-90.0, 10.0)
    yield "pole", (90.0, -120.0), (89.999999, 30.0)
    yield "over the pole", (80.0, 20.0), (75.0, -160.0)
    yield "antimeridian", (10.0, 179.5), (-5.0, -179.5)
    yield "antimeridian", (0.0, -180.0), (0.0, 179.999)
    yield "antimeridian", (-17.3, 179.999999), (-17.3, -179.999999)
    yield "meridian", (-10.0, 33.0), (55.0, 33.0)
    yield "equator", (0.0, -10.0), (0.0, 80.0)
    yield "short", (48.8566, 2.3522), (48.8566, 2.3523)
    yield "short", (48.8566, 2.3522), (48.85661, 2.3522)
    yield "coincident", (48.8566, 2.3522), (48.8566 + 1e-9, 2.3522)
    yield "coincident", (-33.8688, 151.2093), (-33.8688, 151.2093 + 1e-9)
    yield "coincident", (0.0, 180.0), (1e-9, -180.0 + 1e-9)
    yield "coincident", (89.9, 12.0), (89.9 - 1e-9, 12.0 + 1e-9)
    yield "near antipodal", (25.5, 40.25), (-25.5 + 1e-9, -139.75)
    yield "near antipodal", (25.5, 40.25), (-25.5, -139.75 + 1e-9)
    yield "near antipodal", (0.0, 0.0), (1e-9, 180.0)
    yield "near antipodal", (0.0, 0.0), (0.0, 180.0 - 1e-9)
    yield "near antipodal", (90.0, 0.0), (-90.0 + 1e-9, 50.0)
    yield "near antipodal", (-60.0, 100.0), (60.0001, -80.0002)
    yield "antipodal", (25.5, 40.25), (-25.5, -139.75)
    yield "antipodal", (0.0, 0.0), (0.0, -180.0)
    yield "antipodal", (90.0, 10.0), (-90.0, -75.0)
    yield "equal", (48.8566, 2.3522), (48.8566, 2.3522)
    yield "equal", (12.0, 180.0), (12.0, -180.0)
    yield "equal", (90.0, 10.0), (90.0, -140.0)


def departures(rng):
    """(start, bearing, distance_km)."""
    for _ in range(10):
        yield random_place(rng), round(rng.uniform(0, 360), 4), round(rng.uniform(1, 19000), 3)
    yield (48.8566, 2.3522), 123.0, 0.0
    yield (48.8566, 2.3522), 123.0, 1e-6
    yield (48.8566, 2.3522), 0.0, 10000.0
    yield (-20.0, 179.9), 90.0, 100.0
    yield (-20.0, -179.9), 270.0, 100.0
    yield (0.0, 0.0), 90.0, 15000.0
    yield (90.0, 37.5), 180.0, 1234.5
    yield (90.0, 37.5), 45.0, 1234.5
    yield (-90.0, 37.5), 45.0, 1234.5
    yield (89.999999, 10.0), 300.0, 0.25
    yield (33.0, -75.0), 200.0, 20015.0
    yield (33.0, -75.0), 200.0, 30000.0


def geodesy():
    mp.dps = 60
    rng = random.Random(5)
    radius = mpf(RADIUS_KM)
    sphere = Geodesic(RADIUS_KM * 1000, 0)
    cases, worst = [], {"distance_km": 0.0, "bearing_across_km": 0.0, "destination_km": 0.0}
    for kind, start, end in place_pairs(rng):
        distance, bearing = precise.great_circle(start, end, radius)
        other = sphere.Inverse(*start, *end)
        worst["distance_km"] = max(worst["distance_km"], abs(float(other["s12"] / 1000 - distance)))
        if bearing is not None:
            there = precise.destination(start, bearing, distance, radius)
            check(precise.great_circle(there, end, radius)[0] < 1e-40, f"round trip of {start}, {end}")
            turn = mp.sin((other["azi1"] - bearing) * mp.pi / 180) * mp.sin(distance / radius) * radius
            worst["bearing_across_km"] = max(worst["bearing_across_km"], abs(float(turn)))
            bearing = double(bearing) % 360.0
        check((bearing is None) == (kind in ("equal", "antipodal")), f"bearing of {kind}")
        case = {"kind": kind, "start": start, "end": end}
        cases.append(case | {"distance_km": double(distance), "bearing": bearing})
    destinations = []
    for start, bearing, distance in departures(rng):
        latitude, longitude = precise.destination(start, bearing, distance, radius)
        other = sphere.Direct(*start, bearing, distance * 1000)
        off = precise.great_circle((latitude, longitude), (other["lat2"], other["lon2"]), radius)[0]
        worst["destination_km"] = max(worst["destination_km"], float(off))
        end = [double(latitude), -180.0 if double(longitude) == 180 else double(longitude)]
        destinations.append({"start": start, "bearing": bearing, "distance_km": distance, "end": end})
    check(max(worst.values()) < 1e-9, f"geodesy against geographiclib: {worst}")
    note = (
        "Great circles on a sphere of radius_km. Places are [latitude, longitude] in degrees; bearing at the start in"
        " degrees [0, 360) clockwise from north, null where undefined (equal places, antipodes); at a pole it is"
        " relative to the meridian of the given longitude. Rounding of the input turns a bearing by about"
        " 1e-16 / sin(distance / radius) radians, so near-antipodal and coincident bearings need that tolerance."
        " `cases`: start, end to distance_km, bearing; `destinations`: start, bearing, distance_km to end"
        " (longitude in [-180, 180); compare as distance between places)."
    )
    fields = {"radius_km": RADIUS_KM, "destinations": destinations, "checked_against_geographiclib": worst}
    write("geodesy.json", ["mpmath", "gmpy2"], ["geographiclib"], note, cases, **fields)


MAKERS = (basis_scipy, basis_mpmath, derivatives_mpmath, transform_ducc0, gauss_legendre_mpmath, geodesy)

if __name__ == "__main__":
    makers = {maker.__name__: maker for maker in MAKERS}
    for name in sys.argv[1:] or makers:
        mp.dps = 60
        makers[name]()
