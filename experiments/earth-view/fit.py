"""Fits what evidence counts (`odds` of settings.json) by likelihood: on the tuning half of the real views, every second picture of
other things, and every second rendered view. Needs numpy. Writes settings.json; `earth-view assemble` puts it into the model."""
import json
import math
import pathlib
import numpy as np

FOLDER = pathlib.Path(__file__).parent
CHANCE = 0.12  # As in evidence.rs.


def distance_km(a, b):
    latitudes = math.radians(a["latitude"]), math.radians(b["latitude"])
    turn = math.radians(a["longitude"] - b["longitude"])
    square = math.sin((latitudes[0] - latitudes[1]) / 2) ** 2
    square += math.cos(latitudes[0]) * math.cos(latitudes[1]) * math.sin(turn / 2) ** 2
    return 2 * 6371.0 * math.asin(min(1.0, math.sqrt(square)))


def read(name):
    path = FOLDER / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def frame(line):
    return int(line["name"].split("_")[1].split(".")[0])


def evidence(line):
    """Deviations and margin (in hundredths) of each finding, and which are right."""
    found = line["results"]
    rows = []
    for one in found:
        apart = (o["likeness"] for o in found if distance_km(one, o) > max(one["width_km"], o["width_km"]))
        rows.append([one["deviations"], 100 * (one["likeness"] - max([CHANCE, *apart]))])
    has_place = line["tier"] in ("A", "rendered")
    right = [has_place and distance_km(one, line) < max(25, 0.08 * line["width_km"]) for one in found]
    return np.array(rows), np.array(right)


def loss(odds, views):
    total = 0.0
    for rows, right in views:
        nats = np.append(rows @ odds[:2], odds[2])
        share = np.exp(nats - nats.max())
        share /= share.sum()
        total -= math.log(max(1e-6, share[:-1][right].sum() if right.any() else share[-1]))
    # Keeps what few views would make endlessly sharp.
    return total / len(views) + 1e-3 * odds[1] ** 2


def main():
    real = read("real.jsonl")
    frames = sorted(frame(line) for line in real if line["set"] == "astropi2020" and line["tier"] == "A")
    last = frames[len(frames) // 2 - 1]
    tuning = [line for line in real if line["set"] == "astropi2020" and line["tier"] in "AN" and frame(line) <= last]
    tuning += [line for line in real if line["set"] == "goes19" and line["name"].split("_")[1] in ("ne", "nr")]
    for name in ("other.jsonl", "three-globe.jsonl", "january.jsonl"):
        tuning += read(name)[::2]
    views = [evidence(line) for line in tuning if line["results"]]
    random = np.random.default_rng(1)
    odds = np.array([0.9, 1.0, 9.0])
    best = loss(odds, views)
    for _ in range(4000):
        tried = odds + np.array([0.2, 0.15, 1.5]) * random.normal(size=3) * random.choice([0.1, 0.4, 1.0])
        tried[:2] = np.maximum(tried[:2], 0)
        value = loss(tried, views)
        if value < best:
            odds, best = tried, value
    path = FOLDER / "settings.json"
    settings = json.loads(path.read_text())
    for key, value in zip(("deviation", "margin", "none"), odds):
        settings["odds"][key] = round(float(value), 3)
    path.write_text(json.dumps(settings, indent=2) + "\n")
    print(f"{len(views)} views, {best:.3f} nats: {settings['odds']}")


main()
