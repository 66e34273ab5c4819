"""Photo archives, from folders to tags and back.

(a) 20,000 generated files: photos without a place (most of them without a time), photos with GPS, screenshots, damaged files and copies. `locdiff scan` with a cheap test model (GeoCLIP's
architecture, 8 places, made-up weights) is killed with -9 at five random moments. `lost`: files that are not recorded, and photos without a prediction, after the
last run. `twice`: files that the last run read, and photos that it predicted, beyond those that are new in the library after it. Then every second photo is accepted through
`locdiff review`, tagged (sidecars, then in place) and undone. `undo_identical`: percent of files with the bytes they had before. `read_back`: what exiftool reads of tags in many formats (formats.py); `fixture_different`: places and times
of real pictures (parity/tags/read.py). `scan_per_s`: files per second of an
uninterrupted scan into another library.
`page_p95_ms`: the review page with 5,000 of these pictures, by the real program in Chromium: the slowest kind of interaction, 95th percentile
(web/tests/e2e/review.mjs; needs web/node_modules and a program with the page, otherwise null).
(b) 1,500 rendered views along simulated passes (main.rs), by earth-view without registration. Errors are distances to the middle of the picture; medians are over
pictures that are answered both ways. `fused_coverage_90`: percent of the final answers (fused, or single where nothing was fused) whose 90 % circle contains the truth, of
`fused_coverage_n` answers. `shuffled`: the same library with times
shuffled within each pass, fused again. The answers are stored in passes.csv, from which `--quick` computes the same figures.

The last line of standard output is one JSON object.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Callable

import numpy as np
from PIL import Image

from formats import read_back

ROOT = Path(__file__).resolve().parents[2]
PASSES = Path(__file__).with_name("passes.csv")
BUILT = Path(sys.argv[1]).resolve()
QUICK = "--quick" in sys.argv[2:]
SEED = 20261118
WORK = ROOT / "target/experiments/archive"


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


# The cheap model.


def install_model(home: Path) -> None:
    """GeoCLIP's tensors, small and made up, as crates/locdiff-cli/tests/made_up has them."""
    encoder = home / "models/clip-vit-l-14"
    encoder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(ROOT / "parity/vision/clip-quick-gelu" / name, encoder / name)
    model = home / "models/geoclip"
    model.mkdir()
    config = {"model_type": "geoclip-geolocation", "format_version": 1, "gallery_file": "coordinates_100K.csv", "sigma": [1, 16, 256]}
    (model / "config.json").write_text(json.dumps(config))
    places = [(48.8566, 2.3522), (38.7223, -9.1393), (-33.8688, 151.2093), (-22.9068, -43.1729)]
    places += [(64.1466, -21.9426), (-18.1416, 178.4419), (35.6762, 139.6503), (40.7128, -74.006)]
    (model / "coordinates_100K.csv").write_text("LAT,LON\n" + "".join(f"{a},{b}\n" for a, b in places))
    shapes: list[tuple[str, list[int]]] = []

    def linear(name: str, outputs: int, inputs: int) -> None:
        shapes.extend([(f"{name}.weight", [outputs, inputs]), (f"{name}.bias", [outputs])])

    for capsule in range(3):
        part = f"location_encoder.LocEnc{capsule}"
        for name, outputs, inputs in (("capsule.1", 12, 8), ("capsule.3", 12, 12), ("capsule.5", 12, 12), ("head.0", 8, 12)):
            linear(f"{part}.{name}", outputs, inputs)
        shapes.append((f"{part}.capsule.0.b", [4, 2]))
    linear("image_encoder.mlp.0", 16, 16)
    linear("image_encoder.mlp.2", 8, 16)
    shapes.append(("logit_scale", []))
    header: dict[str, object] = {}
    data = b""
    for number, (name, shape) in enumerate(shapes):
        count = math.prod(shape)
        values = np.array([2.0]) if name == "logit_scale" else 0.6 * np.sin(7.0 * np.arange(count) + 13.0 * number)
        bytes_ = values.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    (model / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


# The generated archive.


def degrees(value: float) -> tuple[float, float, float]:
    value = abs(value)
    minutes = (value - int(value)) * 60
    return (float(int(value)), float(int(minutes)), (minutes - int(minutes)) * 60)


def generate(folder: Path, count: int) -> None:
    rng = np.random.default_rng(SEED)
    for number in range(count):
        path = folder / f"{number // 500:03}" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = number % 20
        if kind == 0:
            screen = np.full((120, 200, 3), 245, dtype=np.uint8)
            top, left = rng.integers(0, 60), rng.integers(0, 100)
            screen[top : top + 40, left : left + 60] = rng.integers(0, 255, 3)
            Image.fromarray(screen).save(path.with_suffix(".png"))
            continue
        if kind == 1:
            path.write_bytes(b"damaged" + rng.bytes(200))
            continue
        if kind == 2 and number > 20:
            # A copy of a photo.
            source = number - 17 if number % 500 >= 17 else number + 3
            original = folder / f"{source // 500:03}" / f"{source:05}.jpg"
            if original.exists():
                shutil.copy(original, path.with_name(f"{number:05} copy.jpg"))
                continue
        picture = Image.fromarray(rng.integers(60, 255, (24, 32, 3), dtype=np.uint8)).resize((64, 48), Image.Resampling.BICUBIC)
        exif = Image.Exif()
        exif[0x010F] = "Box"
        # Messengers remove times. Outings are three days apart.
        if kind >= 12:
            taken_s = 1_600_000_000 + 3 * 86_400 * (number // 150) + 40 * (number % 150)
            exif.get_ifd(0x8769)[0x9003] = time.strftime("%Y:%m:%d %H:%M:%S", time.gmtime(taken_s))
        if kind >= 15:
            gps = exif.get_ifd(0x8825)
            latitude, longitude = rng.uniform(-60, 70), rng.uniform(-180, 180)
            gps[1], gps[2] = "S" if latitude < 0 else "N", degrees(latitude)
            gps[3], gps[4] = "W" if longitude < 0 else "E", degrees(longitude)
        picture.save(path, exif=exif)


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def home() -> dict[str, str]:
    return {"LOCDIFF_HOME": str(WORK / "home"), "HF_HOME": str(WORK / "hub")}


class Archive:
    def __init__(self, name: str, environment: dict[str, str]) -> None:
        self.path = WORK / name
        self.environment = {**os.environ, **environment}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [str(BUILT / "locdiff"), *arguments]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict[str, object]:
        process = self.start(*arguments, "--json")
        output, _ = process.communicate()
        if process.returncode not in codes:
            raise SystemExit(f"{arguments} ended with {process.returncode}")
        return json.loads(output)

    def rows(self, sql: str) -> list[tuple]:
        connection = sqlite3.connect(self.path, timeout=60)
        try:
            return connection.execute(sql).fetchall()
        except sqlite3.OperationalError:
            # Killed before there were tables.
            return []
        finally:
            connection.close()

    def recorded(self) -> tuple[set[str], set[bytes]]:
        """Paths of files, and contents with a prediction."""
        files, predictions = ({row[0] for row in self.rows(sql)} for sql in (FILES, PREDICTIONS))
        return files, predictions


FILES = "SELECT path FROM files"
PREDICTIONS = "SELECT hash FROM predictions WHERE fused = 0"


def generated(count: int, kills: int) -> dict[str, object]:
    rng = random.Random(SEED)
    folder = WORK / "files"
    for old in (folder, WORK / "home"):
        shutil.rmtree(old, ignore_errors=True)
    for old in WORK.glob("*.sqlite*"):
        old.unlink()
    install_model(WORK / "home")
    say("generating", count, "files")
    generate(folder, count)
    before = hashes(folder)
    environment = home()
    clean = Archive("clean.sqlite", environment)
    scan = ("scan", str(folder), "--model", "geoclip", "--library")
    whole = clean.run(*scan, str(clean.path))
    say("uninterrupted:", whole)
    archive = Archive("killed.sqlite", environment)
    state: tuple[set[str], set[bytes]] = (set(), set())
    for number in range(kills):
        process = archive.start(*scan, str(archive.path))
        time.sleep(rng.uniform(0.05, 0.9 / kills) * float(whole["seconds"]))
        process.send_signal(signal.SIGKILL)
        process.wait()
        state = archive.recorded()
        say("kill", number + 1, "after", *map(len, state))
    last = archive.run(*scan, str(archive.path))
    files, predictions = archive.recorded()
    # Neither can make up for the other.
    lost = len({str(folder.resolve() / name) for name in before} - files) + len(clean.recorded()[1] - predictions)
    twice = max(0, int(last["read"]) - len(files - state[0])) + max(0, int(last["predicted"]) - len(predictions - state[1]))
    fused = "SELECT hash, latitude, longitude FROM predictions WHERE fused = 1 ORDER BY hash"
    same = archive.rows(fused) == clean.rows(fused)
    say("the last run:", last, "the same fused places:", same)
    return {
        "files": len(before),
        "kills": kills,
        "lost": lost,
        "twice": twice,
        "same_fused_places": same,
        "scan_per_s": round(len(before) / float(whole["seconds"]), 1),
        "reading_per_s": round(float(whole["read_per_s"]), 1),
        "undo_identical": tagged(archive, folder, before),
        **read_back(ROOT, WORK / "formats", Archive("formats.sqlite", environment), review),
    }


def review(archive: Archive, decided: Callable[[list[dict]], list[dict]]) -> list[dict]:
    """Takes decisions on the pictures that the page gets; returns those pictures."""
    server = archive.start("review", str(archive.path), "--port", "0")
    assert server.stdout
    address = server.stdout.readline().strip()
    pictures = json.load(urllib.request.urlopen(f"{address}/v1/archive"))["pictures"]
    decisions = decided(pictures)
    body = json.dumps({"decisions": decisions}).encode()
    stored = json.load(urllib.request.urlopen(urllib.request.Request(f"{address}/v1/archive/decisions", body)))
    assert stored == {"stored": len(decisions), "changed": []}, stored
    server.terminate()
    server.wait()
    return pictures


def tagged(archive: Archive, folder: Path, before: dict[str, str]) -> float:
    accepted: list[str] = []

    def every_second(pictures: list[dict]) -> list[dict]:
        accepted.extend(p["id"] for p in [p for p in pictures if p["place"]][::2])
        return [{"id": one, "decision": "accepted"} for one in accepted]

    review(archive, every_second)
    identical = []
    for how in ([], ["--in-place"]):
        written = archive.run("tag", str(archive.path), *how)
        changed = hashes(folder)
        assert changed != before and len(written["files"]) >= len(accepted), len(written["files"])
        archive.run("tag", str(archive.path), "--undo")
        after = hashes(folder)
        names = before.keys() | after.keys()
        identical.append(100 * sum(before.get(name) == after.get(name) for name in names) / len(names))
        say("tagged", len(written["files"]), *how, "and undone:", identical[-1], "% identical")
    return min(identical)


def page(folder: Path, environment: dict[str, str]) -> dict[str, object]:
    """How long interactions take on the review page with 5,000 pictures."""
    archive = Archive("page.sqlite", environment)
    folders = sorted(str(path) for path in folder.iterdir())[: 5_000 // 500]
    archive.run("scan", *folders, "--model", "geoclip", "--library", str(archive.path))
    server = archive.start("review", str(archive.path), "--port", "0")
    assert server.stdout
    address = server.stdout.readline().strip()
    command = ["node", str(ROOT / "web/tests/e2e/review.mjs"), address]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    server.terminate()
    server.wait()
    if not done.stdout.strip():
        return {"page_pictures": 0, "page_p95_ms": None}
    measured = json.loads(done.stdout.splitlines()[-1])
    slowest = max(measured["interactions"].items(), key=lambda one: one[1]["p95_ms"])
    say("page:", measured)
    return {
        "page_pictures": measured["pictures"],
        "page_interactions": len(measured["interactions"]),
        "page_p95_ms": slowest[1]["p95_ms"],
        "page_slowest": slowest[0],
        "page_map_ms": measured["map"]["one_state"]["median_ms"],
        "page_load_average": round(measured["load_average"], 1),
    }


def fixtures() -> dict[str, object]:
    """Real pictures with GPS from packages, and broken ones, as exiftool reads them."""
    folder = WORK / "fixtures"
    if not folder.exists():
        wanted = ["geovisio==2.15.1", "geopic_tag_reader==0.4.0"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "geovisio,geopic_tag_reader"]
        subprocess.run([*pip, *wanted, "--dest", str(WORK / "packages")], check=True)
        for archive in (WORK / "packages").glob("*.tar.gz"):
            shutil.unpack_archive(archive, folder, filter="data")
    command = [sys.executable, str(ROOT / "parity/tags/read.py"), str(BUILT / "locdiff"), str(folder)]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {f"fixture_{name}": value for name, value in json.loads(found).items()}


# Simulated passes.


def distance_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    (lat1, lon1), (lat2, lon2) = ([math.radians(x) for x in p] for p in (a, b))
    half = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * 6371.0088 * math.asin(min(1.0, math.sqrt(half)))


def passes(count: int) -> dict[str, object]:
    folder = WORK / "passes"
    made_from = WORK / "passes.json"
    wanted = json.dumps({"count": count, "seed": SEED})
    if not made_from.exists() or made_from.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        made_from.unlink(missing_ok=True)
        say("rendering", count, "views")
        subprocess.run([str(BUILT / "archive-passes"), str(folder), str(count), str(SEED)], check=True)
        made_from.write_text(wanted)
    rows = {row["name"]: row for row in csv.DictReader((folder / "truth.csv").open())}
    archive = Archive("passes.sqlite", {"LOCDIFF_HOME": str(WORK / "no-home")})
    scan = ("scan", str(folder), "--model", "earth-view", "--no-registration", "--motion", "orbit", "--library")
    summary = archive.run(*scan, str(archive.path))
    say("passes:", summary)
    shuffled = Archive("shuffled.sqlite", archive.environment)
    connection = sqlite3.connect(archive.path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    shutil.copy(archive.path, shuffled.path)
    rng = random.Random(SEED)
    groups: dict[str, list[tuple[bytes, float]]] = {}
    for path, content, seconds in archive.rows("SELECT f.path, c.hash, c.time_s FROM files f JOIN contents c ON c.hash = f.hash"):
        groups.setdefault(rows[Path(path).name]["pass"], []).append((content, seconds))
    connection = sqlite3.connect(shuffled.path)
    for group in groups.values():
        times = [seconds for _, seconds in group]
        rng.shuffle(times)
        for (content, _), seconds in zip(group, times):
            connection.execute("UPDATE contents SET time_s = ? WHERE hash = ?", (seconds, content))
    connection.commit()
    connection.close()
    shuffled.run(*scan, str(shuffled.path))
    store(rows, archive, shuffled)
    return {**compared(), "predicted_per_s": round(float(summary["predicted_per_s"]), 2)}


# Of a picture: its name, its pass, where it is; then place and 90 % radius of each kind of answer, empty without one.
KINDS = ("single", "fused", "shuffled")
FIELDS = ("latitude", "longitude", "radius_90_km")


def store(rows: dict[str, dict[str, str]], archive: Archive, shuffled: Archive) -> None:
    sql = """SELECT f.path, p.latitude, p.longitude, p.radius_90_km FROM predictions p JOIN files f ON f.hash = p.hash
             WHERE p.latitude IS NOT NULL AND p.fused = """
    for kind, found in zip(KINDS, (archive.rows(sql + "0"), archive.rows(sql + "1"), shuffled.rows(sql + "1"))):
        for path, *numbers in found:
            rows[Path(path).name].update({f"{kind}_{field}": f"{number:.4f}" for field, number in zip(FIELDS, numbers)})
    names = ["name", "pass", "latitude", "longitude", *(f"{kind}_{field}" for kind in KINDS for field in FIELDS)]
    with PASSES.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())


def compared() -> dict[str, object]:
    """The figures of the stored answers."""
    errors: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    covered: dict[str, dict[str, bool]] = {kind: {} for kind in KINDS}
    views = list(csv.DictReader(PASSES.open()))
    for row in views:
        truth = (float(row["latitude"]), float(row["longitude"]))
        for kind in KINDS:
            if row[f"{kind}_latitude"]:
                error = distance_km((float(row[f"{kind}_latitude"]), float(row[f"{kind}_longitude"])), truth)
                errors[kind][row["name"]] = error
                covered[kind][row["name"]] = error <= float(row[f"{kind}_radius_90_km"])
    single = errors["single"]
    # What the fusion left alone keeps its answer.
    fused, shuffled = ({**single, **errors[kind]} for kind in ("fused", "shuffled"))
    final = {**covered["single"], **covered["fused"]}
    gained = [error for name, error in errors["fused"].items() if name not in single]

    def median(answers: dict[str, float]) -> float:
        return statistics.median(answers[name] for name in single)

    return {
        "views": len(views),
        "single_answered": len(single),
        "fused_answered": len(fused),
        "single_median_km": round(median(single), 1),
        "fused_median_km": round(median(fused), 1),
        "fused_median_over_single": round(median(fused) / median(single), 3),
        "shuffled_median_over_single": round(median(shuffled) / median(single), 3),
        "fused_coverage_90": round(100 * statistics.mean(final.values()), 1) if final else None,
        "fused_coverage_n": len(final),
        "fused_radius_90_median_km": round(statistics.median(float(row["fused_radius_90_km"]) for row in views if row["fused_radius_90_km"]), 1),
        "gained": len(gained),
        "gained_median_km": round(statistics.median(gained), 1),
    }


def main() -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    if QUICK:
        result = {**generated(400, 2), **compared()}
    else:
        result = {**generated(20_000, 5), **page(WORK / "files", home()), **fixtures(), **passes(1_500)}
    print(json.dumps({**result, "seed": SEED}))


if __name__ == "__main__":
    main()
