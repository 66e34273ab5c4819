"""Writes the reference numbers of this folder: `python generate.py [name ...]`, all files without a name.

points.json, rules.json, densities.json and manifold.json hold numbers that a test compares digit by digit; resampling.json holds intervals and
p-values, which a test compares within the Monte-Carlo error that the file states. Each is made by one package and
checked here against another formula or package; a check that fails stops the run.
"""

import json
import math
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import prdc.prdc
import scipy.stats
from geographiclib.geodesic import Geodesic
from sklearn.metrics import mean_absolute_error, median_absolute_error, recall_score
from sklearn.metrics.pairwise import haversine_distances

HERE = Path(__file__).parent
RADIUS_KM = 6371.0088
SPHERE = Geodesic(RADIUS_KM * 1000, 0)
EARTH_AREA_KM2 = 4 * math.pi * RADIUS_KM**2
RADII_KM = [1, 25, 200, 750, 2500]
LEVELS = [0.5, 0.8, 0.9, 0.95]
AREAS_KM2 = [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8]
CONFIDENCE = 0.95
REFERENCE_RESAMPLES = 100_000
TEST_RESAMPLES = 20_000


def write(name, made_by, checked_by, note, cases):
    """Compact JSON, one case per line."""
    made_by, checked_by = (", ".join(f"{p} {version(p)}" for p in names) for names in (made_by, checked_by))
    head = {"made_by": made_by, "checked_by": checked_by, "note": note}
    lines = ",\n".join(json.dumps(case, separators=(",", ":"), allow_nan=False) for case in cases)
    text = json.dumps(head, separators=(",", ":"))[:-1] + ',"cases":[\n' + lines + "\n]}\n"
    (HERE / name).write_text(text)
    print(f"{name}: {len(cases)} cases, {len(text)} bytes", flush=True)


def check(condition, message):
    if not condition:
        raise SystemExit(f"check failed: {message}")


def uniform_places(rng, count):
    latitudes = np.degrees(np.arcsin(rng.uniform(-1, 1, count)))
    return np.round(np.column_stack([latitudes, rng.uniform(-180, 180, count)]), 6)


def moved(places, bearings, distances_km):
    """By geographiclib, rounded: only where to find the pairs, their distances are measured afterwards."""
    ends = [SPHERE.Direct(*p, b, d * 1000) for p, b, d in zip(places, bearings, distances_km)]
    return np.round([[end["lat2"], end["lon2"]] for end in ends], 6)


def share(condition):
    """Checked as scikit-learn's recall where every image belongs to the class."""
    condition = np.asarray(condition, int)
    check(abs(recall_score(np.ones_like(condition), condition) - condition.mean()) < 1e-14, "share")
    return float(condition.mean())


def points():
    rng = np.random.default_rng(4)
    count = 160
    anywhere = uniform_places(rng, count)
    bearings = rng.uniform(0, 360, count)
    near_km = 10 ** rng.uniform(-3, 4.2, count)
    poles = np.column_stack([rng.choice([90, -90, 89.999999, -89.9999, 89.5], count), rng.uniform(-180, 180, count)])
    antimeridian = np.column_stack([rng.uniform(-80, 80, count), rng.choice([180, -180, 179.999999, -179.99], count)])
    antipodes = np.column_stack([-anywhere[:, 0], anywhere[:, 1] + 180])
    thresholds = np.array(RADII_KM, float)
    sets = {
        "independent": (anywhere, uniform_places(rng, count)),
        "near and far": (anywhere, moved(anywhere, bearings, near_km)),
        "poles": (poles, moved(poles, bearings, near_km)),
        "from pole to pole": (poles, rng.permutation(poles)),
        "antimeridian": (antimeridian, moved(antimeridian, rng.choice([80.0, 280.0], count), near_km)),
        "near-antipodal": (anywhere, moved(antipodes, bearings, 10 ** rng.uniform(-4, 2, count))),
        "antipodes": (anywhere[:20], antipodes[:20]),
        "perfect": (anywhere[:21], anywhere[:21]),
        "one image": (anywhere[:1], anywhere[1:2]),
    }
    cases = []
    for name, (predicted, truth) in sets.items():
        km = np.array([SPHERE.Inverse(*p, *t)["s12"] / 1000 for p, t in zip(predicted, truth)])
        haversine = RADIUS_KM * np.diag(haversine_distances(np.radians(predicted), np.radians(truth)))
        # Haversine keeps half the digits near the antipode: 1e-8 rad is 0.1 m.
        check(np.max(np.abs(km - haversine)) < 1e-3, f"{name}: haversine off by {np.max(np.abs(km - haversine))} km")
        check(np.min(np.abs(km[:, None] - thresholds)) > 1e-6, f"{name}: a distance is at a radius")
        cases.append(point_case(name, km, predicted=predicted.tolist(), truth=truth.tolist()))
    at_radius = np.concatenate([thresholds, thresholds, rng.uniform(0, 3000, 6)])
    cases.append(point_case("exactly at the radii", at_radius))
    note = (
        "Great circles on a sphere of 6371.0088 km; places are [latitude, longitude] in degrees. accuracy at "
        "1, 25, 200, 750, 2500 km with <= and with <; geoscore is the mean of 5000 exp(-d / 1492.7 km)."
    )
    write("points.json", ["geographiclib", "numpy"], ["scikit-learn"], note, cases)


def point_case(name, km, **places):
    zero = np.zeros_like(km)
    case = {
        "name": name,
        **places,
        "distances_km": km.tolist(),
        "accuracy_at_most": [share(km <= radius) for radius in RADII_KM],
        "accuracy_less_than": [share(km < radius) for radius in RADII_KM],
        "median_km": float(np.median(km)),
        "mean_km": float(np.mean(km)),
        "mean_geoscore": float(np.mean(5000 * np.exp(-km / 1492.7))),
    }
    check(abs(case["mean_km"] - mean_absolute_error(zero, km)) < 1e-9, "mean_km")
    check(abs(case["median_km"] - median_absolute_error(zero, km)) < 1e-9, "median_km")
    return case


def rules():
    """Scores by other rules: WGS84's geodesics, a sphere of 6371 km, whole points."""
    rng = np.random.default_rng(4444)
    count = 120
    anywhere = uniform_places(rng, count)
    bearings = rng.uniform(0, 360, count)
    poles = np.column_stack([rng.choice([90, -90, 89.999, -89.9], count), rng.uniform(-180, 180, count)])
    antimeridian = np.column_stack([rng.uniform(-80, 80, count), rng.choice([180, -180, 179.99, -179.99], count)])
    antipodes = np.column_stack([-anywhere[:, 0], anywhere[:, 1] + 180])
    sets = {
        "independent": (anywhere, uniform_places(rng, count)),
        "near and far": (anywhere, moved(anywhere, bearings, 10 ** rng.uniform(-3, 4.2, count))),
        "poles": (poles, moved(poles, bearings, 10 ** rng.uniform(-3, 4, count))),
        "antimeridian": (antimeridian, moved(antimeridian, rng.choice([80.0, 280.0], count), 10 ** rng.uniform(-2, 3, count))),
        "near-antipodal": (anywhere, moved(antipodes, bearings, 10 ** rng.uniform(-2, 2, count))),
        "perfect": (anywhere[:9], anywhere[:9]),
    }
    cases = []
    for name, (predicted, truth) in sets.items():
        geodesic = np.array([Geodesic.WGS84.Inverse(*p, *t)["s12"] / 1000 for p, t in zip(predicted, truth)])
        # A path of a thousand chords between points of the geodesic is as long, but for their sagittas.
        for p, t, km in zip(predicted[:5], truth[:5], geodesic[:5]):
            check(abs(chain_km(p, t) - km) < 1e-5 * km + 1e-9, f"{name}: geodesic {km} km, by chords {chain_km(p, t)}")
        haversine = 6371 * np.diag(haversine_distances(np.radians(predicted), np.radians(truth)))
        sphere = np.array([SPHERE.Inverse(*p, *t)["a12"] for p, t in zip(predicted, truth)]) * math.pi / 180 * 6371
        check(np.max(np.abs(sphere - haversine)) < 1e-3, f"{name}: haversine")
        check(np.min(np.abs(geodesic[:, None] - np.array(RADII_KM, float))) > 1e-6, f"{name}: a distance is at a radius")
        points = 5000 * np.exp(-geodesic / 1492.7)
        check(np.min(np.abs(points % 1 - 0.5)) > 1e-6, f"{name}: a score is at a half")
        cases.append({
            "name": name,
            "predicted": predicted.tolist(),
            "truth": truth.tolist(),
            "geodesic_km": geodesic.tolist(),
            "sphere_6371_km": sphere.tolist(),
            "accuracy": [share(geodesic <= radius) for radius in RADII_KM],
            "mean_whole_points": float(np.mean(np.rint(points))),
        })
    note = (
        "Distances along WGS84's geodesics and on a sphere of 6371 km. accuracy at 1, 25, 200, 750, 2500 km with <= and "
        "mean_whole_points (each image's GeoScore rounded) by the geodesics."
    )
    write("rules.json", ["geographiclib", "numpy"], ["scikit-learn"], note, cases)


def chain_km(start, end):
    """Straight pieces through the ellipsoid between points of the geodesic: no formula of geodesics measures them."""
    line = Geodesic.WGS84.InverseLine(*start, *end)
    a, f = Geodesic.WGS84.a, Geodesic.WGS84.f
    e2 = f * (2 - f)
    fixes = [line.Position(line.s13 * i / 1000) for i in range(1001)]
    lat, lon = np.radians([[fix["lat2"], fix["lon2"]] for fix in fixes]).T
    n = a / np.sqrt(1 - e2 * np.sin(lat) ** 2)
    xyz = np.column_stack([n * np.cos(lat) * np.cos(lon), n * np.cos(lat) * np.sin(lon), n * (1 - e2) * np.sin(lat)])
    return float(np.linalg.norm(np.diff(xyz, axis=0), axis=1).sum()) / 1000


def manifold():
    """Precision, recall, density and coverage by the package prdc, given great circles instead of straight lines."""
    rng = np.random.default_rng(44444)
    cities = uniform_places(rng, 40)
    near = lambda count, km: moved(cities[rng.integers(0, 40, count)], rng.uniform(0, 360, count), km * rng.exponential(1, count))
    cap = lambda count, sign: np.column_stack([sign * rng.uniform(88, 90, count), rng.uniform(-180, 180, count)])
    band = lambda count: np.round(np.column_stack([rng.uniform(-60, 60, count), 180 + rng.normal(0, 2, count)]), 6)
    sets = {
        "uniform": (uniform_places(rng, 200), uniform_places(rng, 150), 3),
        "cities": (near(250, 50), near(250, 90), 3),
        "cities, five neighbours": (near(120, 50), near(300, 300), 5),
        "poles": (np.vstack([cap(60, 1), cap(60, -1), [[90, 0], [-90, 0]]]), np.vstack([cap(50, 1), cap(50, -1)]), 3),
        "antimeridian": (band(150), band(150), 3),
        "some answers perfect": (None, None, 3),
        "one neighbour": (uniform_places(rng, 50), uniform_places(rng, 60), 1),
    }
    # The same place twice and more often: radii of 0, which hold nothing.
    crowd = np.vstack([near(80, 50), np.repeat(cities[:6], 5, axis=0)])
    sets["some answers perfect"] = (crowd, np.vstack([crowd[::2], near(40, 2000)]), 3)
    great_circles = lambda a, b=None: haversine_distances(np.radians(a), np.radians(a if b is None else b))
    cases = []
    for name, (truth, predicted, k) in sets.items():
        straight = prdc.compute_prdc(vectors(truth), vectors(predicted), k)
        plain = prdc.prdc.compute_pairwise_distance
        prdc.prdc.compute_pairwise_distance = great_circles
        numbers = prdc.compute_prdc(truth, predicted, k)
        prdc.prdc.compute_pairwise_distance = plain
        # A chord grows with its arc, so both must say the same unless rounding decides a tie.
        if name != "some answers perfect":
            check(all(abs(straight[key] - numbers[key]) < 1e-12 for key in numbers), f"{name}: {numbers}, by chords {straight}")
        cases.append({
            "name": name, "truth": truth.tolist(), "predicted": predicted.tolist(), "neighbours": k,
            **{key: float(value) for key, value in numbers.items()},
        })
    note = "prdc's functions with great-circle distances, on places as [latitude, longitude] in degrees."
    write("manifold.json", ["prdc", "scikit-learn"], ["numpy"], note, cases)


def evaluation():
    """A whole test set as files: truth, the same answers in the formats of several projects, and every score by three sets of rules."""
    rng = np.random.default_rng(444444)
    count = 240
    anywhere = uniform_places(rng, count - 80)
    poles = np.column_stack([rng.choice([89.9, -89.95, 89.5], 30), np.round(rng.uniform(-180, 180, 30), 6)])
    antimeridian = np.round(np.column_stack([rng.uniform(-70, 70, 50), 180 + rng.normal(0, 0.3, 50)]), 6)
    truth = np.vstack([anywhere, poles, antimeridian])
    answers = moved(truth, rng.uniform(0, 360, count), 10 ** rng.uniform(-1.5, 4.2, count))
    names = [f"{i % 7:02x}/{1000 + 37 * i}.jpg" for i in range(count)]
    folder = HERE / "evaluation"
    folder.mkdir(exist_ok=True)
    order = rng.permutation(count)

    def table(name, heading, rows):
        (folder / name).write_text("\n".join([heading, *rows]) + "\n")

    wrapped = (truth[:, 1] + 180) % 360 - 180
    table("truth.csv", "image,latitude,longitude", [f"{n},{t[0]},{w:.6f}" for n, t, w in zip(names, truth, wrapped)])
    table("plain.csv", "image,latitude,longitude", [f"{names[i]},{answers[i][0]},{answers[i][1]}" for i in order])
    # As GeoCLIP's data loader names columns, with files in a folder of one's own.
    table("geoclip.csv", "IMG_FILE,LAT,LON", [f"{names[i].split('/')[1]},{answers[i][0]},{answers[i][1]}" for i in order])
    # As plonk's tables: tabs, longitude first, photo ids.
    rows = [f"{names[i][3:-4]}\t{answers[i][1]}\t{answers[i][0]}\t16.0" for i in order]
    table("plonk.tsv", "photo_id\tlongitude\tlatitude\taccuracy", rows)
    # What plonk's pipeline returns, saved by numpy: degrees in the order of the images; and its inner radians.
    np.savetxt(folder / "plonk_array.csv", answers, delimiter=",")
    np.savetxt(folder / "plonk_radians.txt", np.radians(answers))
    # As GeoEstimation publishes its results: answers and truth in one file.
    rows = [f"{names[i]},{truth[i][0]},{answers[i][0]},{truth[i][1]},{answers[i][1]},0" for i in order]
    table("geoestimation.csv", "img_id,gt_lat,predicted_lat,gt_long,predicted_long,great_circle_distance", rows)
    pairs = list(zip(answers, truth))
    sphere = np.array([SPHERE.Inverse(*a, *t)["a12"] for a, t in pairs]) * math.pi / 180
    geodesic = np.array([Geodesic.WGS84.Inverse(*a, *t)["s12"] / 1000 for a, t in pairs])
    great_circles = lambda a, b=None: haversine_distances(np.radians(a), np.radians(a if b is None else b))
    plain, prdc.prdc.compute_pairwise_distance = prdc.prdc.compute_pairwise_distance, great_circles
    cloud = {key: float(value) for key, value in prdc.compute_prdc(truth, answers, 3).items()}
    prdc.prdc.compute_pairwise_distance = plain
    cases = []
    for rules, km, within in [
        ("locdiff", sphere * RADIUS_KM, np.less_equal), ("geoclip", geodesic, np.less_equal), ("osv5m", sphere * 6371, np.less),
    ]:
        check(np.min(np.abs(km[:, None] - np.array(RADII_KM, float))) > 1e-6, f"{rules}: a distance is at a radius")
        zero = np.zeros_like(km)
        cases.append({
            "rules": rules,
            "images": count,
            **{f"accuracy_{radius}_km": share(within(km, radius)) for radius in RADII_KM},
            "median_km": float(median_absolute_error(zero, km)),
            "mean_km": float(mean_absolute_error(zero, km)),
            "geoscore": float(np.mean(5000 * np.exp(-km / 1492.7))),
            "cloud": cloud,
        })
    note = "Every score of evaluation/*, whose answers are the same in several formats, by the rules of several projects."
    write("evaluation.json", ["geographiclib", "scikit-learn", "prdc"], ["numpy"], note, cases)


def vectors(places):
    lat, lon = np.radians(places).T
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def densities():
    rng = np.random.default_rng(44)
    cases = []
    sets = {
        "calibrated": rng.uniform(0, 1, 401),
        "overconfident": rng.beta(3, 1, 300),
        "underconfident": rng.beta(1, 2, 250),
        "with the ends": np.concatenate([[0, 0, 1, 1, 1], rng.uniform(0, 1, 45)]),
        "at the levels": np.array([0.5, 0.8, 0.9, 0.95, 0.5, 0.2]),
        "one image": np.array([0.7]),
    }
    for name, levels in sets.items():
        n = len(levels)
        nll = rng.normal(-2, 4, n)
        area = np.minimum(10 ** rng.normal(4.5, 2.5, n), EARTH_AREA_KM2)
        area[0] = 1e4 if n > 1 else area[0]
        # Both cumulative curves at the middle of fine cells: the jumps cost at most one cell each.
        fine = (np.arange(2_000_000) + 0.5) / 2_000_000
        curve = np.searchsorted(np.sort(levels), fine, side="right") / n
        by_sum = float(np.mean(np.abs(curve - fine)))
        # The Wasserstein distance is also the mean |difference| of the quantile functions.
        quantiles = np.sort(levels)[np.minimum((fine * n).astype(int), n - 1)]
        error = quantile_distance(np.sort(levels))
        check(abs(by_sum - error) < 1e-5, f"{name}: calibration by sum {by_sum}, exactly {error}")
        check(abs(scipy.stats.wasserstein_distance(quantiles[::50], fine[::50]) - error) < 1e-4, f"{name}: scipy")
        cases.append({
            "name": name,
            "nll_nats": nll.tolist(),
            "levels": levels.tolist(),
            "areas_km2": area.tolist(),
            "mean_nll_nats": float(np.mean(nll)),
            "median_nll_nats": float(np.median(nll)),
            "mean_gain_nats": float(np.log(4 * np.pi) - np.mean(nll)),
            "coverage": [share(levels <= level) for level in LEVELS],
            "calibration_error": error,
            "recall": [share(area <= limit) for limit in AREAS_KM2],
            "median_area_km2": float(np.median(area)),
        })
    note = (
        "Random outcomes. coverage at levels 0.5, 0.8, 0.9, 0.95; recall at 1e2, 1e3, ..., 1e8 km2; both with <=. "
        "calibration_error is the Wasserstein distance of the levels to the uniform distribution on [0, 1]."
    )
    write("densities.json", ["numpy"], ["scipy", "scikit-learn"], note, cases)


def quantile_distance(levels):
    """Integral of |quantile of the levels - q| over q in [0, 1]: a sum over images, not over gaps between levels."""
    n = len(levels)
    total = 0.0
    for i, u in enumerate(levels):
        a, b = i / n, (i + 1) / n
        if u <= a or u >= b:
            total += abs((a + b) / 2 - u) * (b - a)
        else:
            total += ((u - a) ** 2 + (b - u) ** 2) / 2
    return float(total)


def resampling():
    rng = np.random.default_rng(444)
    first = 10 ** rng.normal(2.5, 1, 200)
    second = first * 10 ** rng.normal(0.06, 0.35, 200)
    few = rng.normal(0, 1, 12), rng.normal(0.7, 1, 12)
    sets = {
        "mean geoscore": ("mean", 5000 * np.exp(-first / 1492.7), 5000 * np.exp(-second / 1492.7)),
        "median km": ("median", first, 1.2 * second),
        "accuracy at 200 km": ("mean", (first <= 200).astype(float), (1.1 * second <= 200).astype(float)),
        "same distribution": ("mean", rng.normal(0, 1, 301), rng.normal(0, 1, 301)),
        "twelve images": ("mean", *few),
        "twelve images, median": ("median", *few),
        "twelve images, ties": ("mean", np.round(few[0]), np.round(few[1])),
    }
    cases = []
    for name, (statistic, a, b) in sets.items():
        of = {"mean": np.mean, "median": np.median}[statistic]

        def difference(x, y, axis=-1):
            return of(x, axis=axis) - of(y, axis=axis)

        n = len(a)
        exact = 2**n <= REFERENCE_RESAMPLES
        test = scipy.stats.permutation_test(
            (a, b), difference, permutation_type="samples", vectorized=True, batch=2000, rng=rng,
            n_resamples=np.inf if exact else REFERENCE_RESAMPLES,
        )
        # scipy doubles the smaller tail.
        tail = test.pvalue / 2
        error = 0.0 if exact else 2 * math.sqrt(tail * (1 - tail) / REFERENCE_RESAMPLES)
        if statistic == "mean":
            flips = rng.choice([-1.0, 1.0], (100_000, n)) @ (a - b) / n
            by_flips = np.mean(np.abs(flips) >= abs(np.mean(a - b)) * (1 - 1e-9))
            tolerance = 5 * math.hypot(error, math.sqrt(test.pvalue * (1 - test.pvalue) / 100_000))
            check(abs(by_flips - test.pvalue) < tolerance, f"{name}: p {test.pvalue}, by sign flips {by_flips}")
        cases.append({
            "name": name,
            "statistic": statistic,
            "first": a.tolist(),
            "second": b.tolist(),
            "p_value": float(test.pvalue),
            "p_value_error": error,
            "interval": interval(name, (a,), of, rng),
            "difference": interval(name, (a, b), difference, rng),
        })
    note = (
        "interval: percentile bootstrap of the first model's score; difference: paired, first minus second; both at "
        f"confidence {CONFIDENCE}. low_between, high_between: where the ends of a bootstrap of {TEST_RESAMPLES} "
        "resamples lie, five standard errors to each side. p_value: two-sided permutation of pairs, all of them where "
        "p_value_error (the standard error) is 0."
    )
    write("resampling.json", ["scipy", "numpy"], ["numpy"], note, cases)


def interval(name, samples, statistic, rng):
    result = scipy.stats.bootstrap(
        samples, statistic, n_resamples=REFERENCE_RESAMPLES, paired=len(samples) > 1, confidence_level=CONFIDENCE,
        method="percentile", vectorized=True, batch=2000, rng=rng,
    )
    case = {"estimate": float(statistic(*samples, axis=-1))}
    images = rng.integers(0, len(samples[0]), (TEST_RESAMPLES, len(samples[0])))
    by_numpy = statistic(*(sample[images] for sample in samples), axis=-1)
    for end, share in (("low", (1 - CONFIDENCE) / 2), ("high", (1 + CONFIDENCE) / 2)):
        case[end] = float(getattr(result.confidence_interval, end))
        # The error of a quantile is binomial in its share, whatever the distribution.
        error = math.sqrt(share * (1 - share) * (1 / TEST_RESAMPLES + 1 / REFERENCE_RESAMPLES))
        between = np.quantile(result.bootstrap_distribution, [share - 5 * error, share + 5 * error])
        case[f"{end}_between"] = between.tolist()
        plain = np.quantile(by_numpy, share)
        check(between[0] - 1e-9 <= plain <= between[1] + 1e-9, f"{name}: {end} {case[end]}, by numpy {plain}")
    return case


if __name__ == "__main__":
    makers = {
        "points": points, "rules": rules, "densities": densities, "manifold": manifold, "resampling": resampling,
        "evaluation": evaluation,
    }
    for name in sys.argv[1:] or makers:
        makers[name]()
