"""Every write of `embed`, `train`, `gallery build`, `calibrate` and `scan` fails once, in three ways (fault.c); then the command is run again.

A point holds if the command that failed says so by its exit code, and the next run ends with the result that a run without faults has: the same rows, weights and
answers. A command that ends with 0 in spite of the fault must have that result at once.

    python3 experiments/attacks/faults.py PROGRAM [--every N]

The last line of standard output is one JSON object: `fault_points`, `fault_runs`, `fault_failures`, `lost_rows`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("error", "short", "kill")
CONFIG = """
[network]
max_degree = 3
time_size = 8
[objective]
kind = "likelihood"
[optimizer]
kind = "adamw"
rate = 1e-3
[run]
steps = 6
batch = 16
[validation]
share = 0.0
[checkpoint]
every_steps = 2
"""
ENCODER = ROOT / "parity/vision/clip-quick-gelu"


class Scenario:
    """A command that writes below `out`, and what counts of its result."""

    def __init__(self, name: str, first: list[str], again: list[str], digest: Callable[[Path], object]) -> None:
        self.name, self.first, self.again, self.digest = name, first, again, digest


def hashes(folder: Path, pattern: str = "*") -> dict[str, str]:
    files = [path for path in sorted(folder.rglob(pattern)) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def rows(library: Path) -> object:
    connection = sqlite3.connect(library)
    try:
        files = connection.execute("SELECT path, hash, latitude, longitude, time_s, missing FROM files ORDER BY path").fetchall()
        predictions = connection.execute("SELECT hash, fused, latitude, longitude, candidates, density, error FROM predictions ORDER BY hash, fused").fetchall()
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return files, predictions
    finally:
        connection.close()


class Faults:
    def __init__(self, program: Path, scratch: Path, every: int) -> None:
        self.program, self.scratch, self.every = program, scratch, every
        self.inputs, self.out = scratch / "inputs", scratch / "out"
        self.library, self.count = scratch / "fault.so", scratch / "count"
        self.environment = {**os.environ, "LOCDIFF_HOME": str(scratch / "home"), "HF_HOME": str(scratch / "hub"), "RAYON_NUM_THREADS": "1"}
        self.failures: list[str] = []
        self.lost = self.points = self.runs = 0

    def arm(self) -> None:
        """Builds the library that makes calls fail."""
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(self.library), str(Path(__file__).with_name("fault.c")), "-ldl"], check=True)

    def run(self, arguments: list[str], *, at: int | None = None, kind: str = "error") -> tuple[int, str]:
        environment = dict(self.environment)
        if at is not None:
            self.count.write_bytes(bytes(8))
            environment |= {"LD_PRELOAD": str(self.library), "FAULT_ROOT": str(self.out), "FAULT_AT": str(at), "FAULT_KIND": kind, "FAULT_COUNT": str(self.count)}
        done = subprocess.run([str(self.program), *arguments], cwd=self.inputs, env=environment, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stderr

    def prepared(self, arguments: list[str]) -> None:
        code, words = self.run(arguments)
        if code != 0:
            raise SystemExit(f"{arguments} ended with {code}: {words}")

    def fresh(self, scenario: Scenario) -> None:
        shutil.rmtree(self.out, ignore_errors=True)
        if scenario.name == "calibrate":
            shutil.copytree(self.inputs / "model", self.out / "model")
        else:
            self.out.mkdir()

    def examine(self, scenario: Scenario) -> None:
        self.fresh(scenario)
        code, words = self.run(scenario.first, at=0)
        assert code == 0, f"{scenario.name}: {words}"
        points = struct.unpack("<q", self.count.read_bytes())[0]
        wanted = scenario.digest(self.out)
        chosen = range(1, points + 1, self.every)
        self.points += len(chosen)
        began = time.monotonic()
        for at in chosen:
            for kind in KINDS:
                self.runs += 1
                problem = self.held(scenario, at, kind, wanted)
                if problem is not None:
                    self.failures.append(f"{scenario.name}, point {at} of {points}, {kind}: {problem}")
                    print(self.failures[-1][:1500], file=sys.stderr, flush=True)
        print(f"{scenario.name}: {points} points, {len(chosen)} tried, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    def held(self, scenario: Scenario, at: int, kind: str, wanted: object) -> str | None:
        self.fresh(scenario)
        code, words = self.run(scenario.first, at=at, kind=kind)
        if "panicked" in words or code == 101:
            return f"panicked: {words}"
        again = 0
        if code != 0:
            again, more = self.run(scenario.again)
            words = f"{words.strip()}; run again, {again}: {more}"
        try:
            found = scenario.digest(self.out)
        except Exception as error:  # noqa: BLE001: whatever is wrong with the result
            return f"ended with {code} ({words.strip()}); its result can't be read: {error!r}"
        # A gallery that was finished before the fault is not built again: that is an error, with the whole result in its place.
        if again != 0 and not (scenario.name == "gallery" and found == wanted):
            return f"ended with {code} ({words.strip()})"
        if found != wanted:
            self.lost += 1
            return f"ended with {code} ({words.strip()}); the result differs"
        return None


def scenarios(faults: Faults) -> list[Scenario]:
    """Prepares what the commands read, and lists them."""
    pictures = faults.inputs / "pictures"
    pictures.mkdir(parents=True)
    manifest = "path,latitude,longitude\n"
    for number in range(120):
        name = f"{number:03}.jpg"
        shutil.copy(ROOT / "parity/photo/files" / ("rgb.jpg", "420.jpg", "grey.jpg")[number % 3], pictures / name)
        manifest += f"{name},{number % 80},{number}\n"
    (pictures / "manifest.csv").write_text(manifest)
    few = faults.inputs / "few"
    few.mkdir()
    for name in ("rgb.jpg", "gps-paris.jpg", "p3.png", "orientation-6.jpg"):
        shutil.copy(ROOT / "parity/photo/files" / name, few / name)
    (faults.inputs / "config.toml").write_text(CONFIG)
    embed = ["embed", "pictures/manifest.csv", "--encoder", str(ENCODER), "--rows-per-shard", "50", "--out"]
    faults.prepared([*embed, "embedded"])
    train = ["train", "config.toml", "--data", "embedded", "--out"]
    faults.prepared([*train, "run"])
    shutil.copytree(faults.inputs / "run/model", faults.inputs / "model")
    out = str(faults.out)
    scan = ["scan", "few", "--library", f"{out}/library.sqlite", "--model", f"{faults.inputs}/model", "--encoder", str(ENCODER)]
    calibrate = ["calibrate", f"{out}/model", "--data", "embedded", "--encoder", str(ENCODER)]
    gallery = ["gallery", "build", "--data", "embedded", "--out", f"{out}/gallery"]
    return [
        Scenario("embed", [*embed, f"{out}/e"], [*embed, f"{out}/e"], lambda folder: hashes(folder / "e", "*.parquet")),
        Scenario("train", [*train, f"{out}/run"], [*train, f"{out}/run", "--resume"], lambda folder: hashes(folder / "run/model")),
        Scenario("gallery", gallery, gallery, lambda folder: hashes(folder / "gallery")),
        Scenario("calibrate", calibrate, calibrate, lambda folder: hashes(folder / "model")),
        Scenario("scan", scan, scan, lambda folder: rows(folder / "library.sqlite")),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--every", type=int, default=1, help="try every n-th point")
    parser.add_argument("--only", help="one command")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder).resolve()
        faults = Faults(arguments.program.resolve(), scratch, arguments.every)
        faults.arm()
        for scenario in scenarios(faults):
            if arguments.only in (None, scenario.name):
                faults.examine(scenario)
    print(json.dumps({"fault_points": faults.points, "fault_runs": faults.runs, "fault_failures": len(faults.failures), "lost_rows": faults.lost}))


if __name__ == "__main__":
    main()
