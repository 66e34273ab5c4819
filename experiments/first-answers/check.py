"""One check for each point that new users met, with the real program and, for the page, a real browser.

The last line of standard output is one JSON object: `checks`, `failed`, and the names of those that failed.
"""

from __future__ import annotations

import contextlib
import csv
import http
import io
import json
import math
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(sys.argv[1]).resolve())
QUICK = "--quick" in sys.argv[2:]
MADAGASCAR, SINAI = ROOT / "examples/madagascar.jpg", ROOT / "examples/sinai.jpg"
PHOTO = ROOT / "parity/photo/files/rgb.jpg"

CHECKS = []


def check(point):
    """A function that asserts one point."""

    def register(function):
        CHECKS.append((point, function))
        return function

    return register


class Box:
    """A folder to work in, and a home without models."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.has_model = False
        self.environment = {**os.environ, "LOCDIFF_HOME": str(folder / "home"), "HF_HOME": str(folder / "hub"), "COLUMNS": "80"}

    def run(self, *arguments, code=0):
        if self.has_model and arguments[0] == "predict" and "--model" not in arguments:
            # Otherwise earth-view looks at each picture first, for two seconds.
            arguments = (*arguments, "--model", "geoclip")
        command = [PROGRAM, *map(os.fspath, arguments)]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True)
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        assert done.returncode == code, f"{arguments} ended with {done.returncode}: {err}"
        return out, err

    def answers(self, *arguments, code=0):
        out, _ = self.run("predict", *arguments, "--json", code=code)
        return [json.loads(line) for line in out.splitlines()]

    def terminal(self, *arguments):
        """What a person sees on stderr."""
        parent, child = pty.openpty()
        process = subprocess.Popen([PROGRAM, *map(os.fspath, arguments)], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=child)
        os.close(child)
        seen = b""
        with contextlib.suppress(OSError):
            while part := os.read(parent, 4096):
                seen += part
        os.close(parent)
        process.wait()
        return seen.decode(errors="replace")

    @contextlib.contextmanager
    def server(self, *options):
        process = subprocess.Popen([PROGRAM, "serve", "--port", "0", *options], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait()

    def model_at(self, places):
        """GeoCLIP's architecture with made-up weights, over these places: it answers about any picture."""
        self.has_model = True
        home = self.folder / "home/models"
        encoder, model = home / "clip-vit-l-14", home / "geoclip"
        shutil.rmtree(home, ignore_errors=True)
        encoder.mkdir(parents=True)
        model.mkdir()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(ROOT / "parity/vision/clip-quick-gelu" / name, encoder / name)
        config = {"model_type": "geoclip-geolocation", "format_version": 1, "gallery_file": "coordinates_100K.csv", "sigma": [1, 16, 256]}
        (model / "config.json").write_text(json.dumps(config))
        (model / "coordinates_100K.csv").write_text("LAT,LON\n" + "".join(f"{a},{b}\n" for a, b in places))
        shapes = []

        def linear(name, outputs, inputs):
            shapes.extend([(f"{name}.weight", [outputs, inputs]), (f"{name}.bias", [outputs])])

        for capsule in range(3):
            part = f"location_encoder.LocEnc{capsule}"
            for name, outputs, inputs in (("capsule.1", 12, 8), ("capsule.3", 12, 12), ("capsule.5", 12, 12), ("head.0", 8, 12)):
                linear(f"{part}.{name}", outputs, inputs)
            shapes.append((f"{part}.capsule.0.b", [4, 2]))
        linear("image_encoder.mlp.0", 16, 16)
        linear("image_encoder.mlp.2", 8, 16)
        shapes.append(("logit_scale", []))
        header, data = {}, b""
        for number, (name, shape) in enumerate(shapes):
            values = [2.0] if name == "logit_scale" else [0.6 * math.sin(7.0 * k + 13.0 * number) for k in range(math.prod(shape))]
            bytes_ = struct.pack(f"<{len(values)}f", *values)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
            data += bytes_
        text = json.dumps(header).encode()
        (model / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)

    def album(self):
        folder = self.folder / "album"
        shutil.rmtree(folder, ignore_errors=True)
        for source, name in ((PHOTO, "2019/a.jpg"), (PHOTO, "2020/a.jpg"), (PHOTO, "without ending"), (PHOTO, ".hidden/b.jpg")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
        (folder / "notes.txt").write_text("no picture")
        return folder


WORLD = [(48.8566, 2.3522), (38.7223, -9.1393), (-33.8688, 151.2093), (40.7128, -74.006)]


# Names of places.


@check("at sea, the nearest coast is named")
def _(box):
    box.model_at([(27.2, 34.15), (0.0, -30.0)])
    names = [candidate["name"] for candidate in box.answers(PHOTO)[0]["candidates"]]
    assert any(re.fullmatch(r"at sea, \d+ km off Egypt(, near .*)?", name) for name in names), names
    assert any(re.fullmatch(r"at sea, \d+ km off Brazil", name) for name in names), names


@check("country names are short")
def _(box):
    box.model_at([(39.0, -98.0), (55.0, 60.0), (35.0, 100.0), (-6.0, 35.0)])
    names = {candidate["country"] for candidate in box.answers(PHOTO)[0]["candidates"]}
    assert {"United States", "Russia", "China", "Tanzania"} <= names, names


@check("the page has the same short names")
def _(box):
    names = json.loads((ROOT / "crates/locdiff/assets/country-names.json").read_text())
    assert names["United States of America"] == "United States"
    assert "country-names.json" in (ROOT / "web/src/basemap.ts").read_text()


@check("the OpenStreetMap borders are gone")
def _(box):
    assert "country-boundaries" not in (ROOT / "Cargo.lock").read_text()


@check("within Egypt, every candidate is in Egypt")
def _(box):
    answer = box.answers(SINAI, "--within", "Egypt", "-k", "20")[0]
    assert {candidate["country"] for candidate in answer["candidates"]} == {"Egypt"}, answer["candidates"]


@check("--within prints the share that it keeps")
def _(box):
    out, _ = box.run("predict", SINAI, "--within", "Egypt")
    assert re.search(r"within Egypt only, which keeps [\d.]+ % of the", " ".join(out.split())), out


@check("--within warns below 1 %")
def _(box):
    box.model_at(WORLD)
    out, _ = box.run("predict", PHOTO, "--within", "Bolivia")
    assert "warning: Bolivia keeps less than" in " ".join(out.split()), out


# Output.


@check("radii are written as 50 % and 90 %")
def _(box):
    out, _ = box.run("predict", MADAGASCAR)
    assert re.search(r"50 % within [\d.,]+ km, 90 % within [\d.,]+ km", out), out


@check("± is explained, and the disclaimer printed, once")
def _(box):
    box.model_at(WORLD)
    out, _ = box.run("predict", box.album())
    flat = " ".join(out.split())
    assert flat.count("± is the radius") == 1 and flat.count("a prediction by") == 1, out


@check("lines fit into 80 columns")
def _(box):
    box.model_at(WORLD)
    out, _ = box.run("predict", "album/2019/a.jpg") if box.album() else ("", "")
    assert all(len(line) <= 80 for line in out.splitlines()), out


@check("a folder ends with a summary")
def _(box):
    box.model_at(WORLD)
    folder = box.album()
    (folder / "damaged.jpg").write_text("no picture")
    _, err = box.run("predict", folder, "--json", code=1)
    assert "4 pictures: 3 located, 0 rejected, 1 failed; 1 file is not a picture" in err, err


@check("text, CSV and JSON name the map")
def _(box):
    box.model_at(WORLD)
    out, _ = box.run("predict", PHOTO, "--plot", "map.png", "--overwrite")
    assert "map: map.png" in out, out
    table, _ = box.run("predict", PHOTO, "--plot", "map.png", "--overwrite", "--csv")
    assert next(csv.DictReader(io.StringIO(table)))["map"] == "map.png"
    assert box.answers(PHOTO, "--plot", "map.png", "--overwrite")[0]["map"] == "map.png"


@check("maps are in folders like the pictures")
def _(box):
    box.model_at(WORLD)
    box.run("predict", box.album(), "--plot", "maps/")
    found = sorted(str(path.relative_to(box.folder / "maps")) for path in (box.folder / "maps").rglob("*.png"))
    assert found == ["2019/a.jpg.png", "2020/a.jpg.png", "without ending.png"], found


@check("existing files are replaced with --overwrite only")
def _(box):
    box.model_at(WORLD)
    (box.folder / "there.png").write_text("mine")
    _, err = box.run("predict", PHOTO, "--plot", "there.png", code=2)
    assert "--overwrite" in err and (box.folder / "there.png").read_text() == "mine", err


# Files.


@check("content decides what is a picture; hidden folders are left out")
def _(box):
    box.model_at(WORLD)
    folder = box.album()
    assert len(box.answers(folder)) == 3 and len(box.answers(folder, "--hidden")) == 4
    out, _ = box.run("embed", folder, "--encoder", ROOT / "parity/vision/clip-quick-gelu", "--out", "embeddings", "--json")
    assert json.loads(out)["rows"] == 3, out


@check("an unreadable folder and names that are not UTF-8 stop nothing")
def _(box):
    box.model_at(WORLD)
    folder = box.album()
    os.symlink(folder, folder / "2020/again")
    shutil.copy(PHOTO, os.fsencode(folder) + b"/caf\xe9.jpg")
    assert len(box.answers(folder, code=1)) == 4


@check("advice names flags that the command has")
def _(box):
    _, err = box.run("predict", MADAGASCAR, "--device", "nowhere", code=2)
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", err))
    known, _ = box.run("predict", "--help")
    assert all(flag in known for flag in flags), flags


# Maps.


def size_of(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


@check("a precise answer has a close-up; --zoom and --theme")
def _(box):
    for name, *options in (("default",), ("none", "--zoom", "0"), ("light", "--theme", "light"), ("wide", "--zoom", "2000")):
        box.run("predict", ROOT / "examples/tibet.jpg", "--width-km", "215", "--plot", f"{name}.png", "--overwrite", *options)
    pictures = {name: (box.folder / f"{name}.png").read_bytes() for name in ("default", "none", "light", "wide")}
    assert len(set(pictures.values())) == 4
    assert size_of(box.folder / "default.png") != (0, 0)


@check("--html writes one readable file")
def _(box):
    box.model_at(WORLD)
    box.run("predict", box.album(), "--html", "report.html", "--overwrite")
    page = (box.folder / "report.html").read_text()
    assert page.count("<img ") == 3 and "<svg" in page and "width=device-width" in page
    assert not re.search(r"(src|href)=\"http|<script|<link", page)


# Progress.


@check("progress has a meaningful rate, and a spinner while models load")
def _(box):
    folder = box.folder / "many"
    folder.mkdir(exist_ok=True)
    count = 6 if QUICK else 16
    for number in range(count):
        shutil.copy(MADAGASCAR, folder / f"{number}.jpg")
    began = time.monotonic()
    seen = box.terminal("predict", folder, "--json", "--no-registration", "--model", "earth-view")
    each = (time.monotonic() - began) / count
    rates = [float(number) for number in re.findall(r"([\d.]+)/s", seen)] + [1 / float(number) for number in re.findall(r"([\d.]+) s each", seen)]
    assert rates and all(0.2 < rate * each < 5 for rate in rates), (rates, each)
    assert "opening the model" in seen


# The server.


@check("the server announces its address when it is ready")
def _(box):
    with box.server() as address:
        with urllib.request.urlopen(f"{address}/health/ready") as answer:
            assert answer.status == 200


@check("serve --config reads what --print-config writes")
def _(box):
    written, _ = box.run("serve", "--port", "9123", "--max-queue", "77", "--log", "warn", "--model", "earth-view", "--print-config")
    (box.folder / "serve.toml").write_text(written)
    again, _ = box.run("serve", "--config", "serve.toml", "--print-config")
    assert written == again and "max_queue = 77" in again, again
    changed, _ = box.run("serve", "--config", "serve.toml", "--max-queue", "5", "--print-config")
    assert "max_queue = 5" in changed and "port = 9123" in changed, changed
    (box.folder / "wrong.toml").write_text("max_quue = 1\n")
    _, err = box.run("serve", "--config", "wrong.toml", "--print-config", code=2)
    assert "max_quue" in err, err


@check("host names are accepted")
def _(box):
    with box.server("--host", "localhost") as address:
        assert address.startswith("http://"), address


@check("HTTP problem titles are the standard phrases")
def _(box):
    with box.server() as address:
        for method, path, body in (("GET", "/v1/nothing", None), ("GET", "/v1/locate", None), ("POST", "/v1/locate", b"no picture"), ("POST", "/v1/density", b"{"), ("POST", "/v1/locate?top=x", PHOTO.read_bytes())):
            request = urllib.request.Request(address + path, body, method=method, headers={"content-type": "image/jpeg"} if "locate" in path else {"content-type": "application/json"})
            try:
                urllib.request.urlopen(request)
                raise AssertionError(f"{method} {path} was answered")
            except urllib.error.HTTPError as error:
                problem = json.load(error)
                phrases = {http.HTTPStatus(error.code).phrase, {413: "Content Too Large", 422: "Unprocessable Content"}.get(error.code)}
                assert problem["title"] in phrases, (path, problem)


@check("one cause is printed once")
def _(box):
    for arguments in (("predict", "missing.jpg"), ("train", "missing.toml", "--data", "nowhere", "--out", "x"), ("evaluate", "--predictions", "missing.csv")):
        command = [PROGRAM, *arguments]
        err = subprocess.run(command, cwd=box.folder, env=box.environment, capture_output=True, text=True).stderr
        assert err.count("No such file or directory") <= 1, err


# Training.


@check("train --steps, the tutorial, and a warning for thousands of epochs")
def _(box):
    box.run("earth", "views", "--out", "views", "--count", "64")
    box.run("embed", "views/manifest.csv", "--encoder", "earth-view", "--out", "views-embedded")
    _, err = box.run("train", "tutorial", "--data", "views-embedded", "--plan")
    assert "epochs of" in err, err
    _, err = box.run("train", "tutorial", "--data", "views-embedded", "--steps", "3", "--out", "run")
    assert "finished after 3 steps" in err and "epochs" not in err, err
    answers = box.answers("views/000000.jpg", "--model", "run/model")
    assert answers[0]["prediction"]


# Sentences.


@check("every sentence can be listed")
def _(box):
    out = subprocess.run([sys.executable, ROOT / "experiments/first-answers/sentences.py", "--count"], capture_output=True, text=True, check=True).stdout
    assert json.loads(out)["sentences"] > 1000, out


def page_checks(box):
    """The page in a browser: points and whether they hold."""
    with box.server() as address:
        pictures = ROOT / "target/experiments/first-answers/page"
        command = ["node", "tests/e2e/reading.mjs", address, pictures]
        out = subprocess.run(command, cwd=ROOT / "web", stdout=subprocess.PIPE, text=True).stdout
        return json.loads(out.splitlines()[-1])["held"]


def main():
    failed = []
    checks = [(point, function) for point, function in CHECKS if not (QUICK and point.startswith("train"))]
    for point, function in checks:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            try:
                function(Box(Path(folder)))
                outcome = "holds"
            except Exception as error:  # noqa: BLE001: whatever it is, the point does not hold
                outcome = f"FAILS: {type(error).__name__}: {str(error)[:2000]}"
                failed.append(point)
            print(f"{time.monotonic() - began:5.1f} s  {point}: {outcome}", flush=True)
    count = len(checks)
    if not QUICK:
        with tempfile.TemporaryDirectory() as folder:
            points = page_checks(Box(Path(folder)))
        count += len(points)
        for point, holds in points.items():
            print(f"page: {point}: {'holds' if holds else 'FAILS'}")
            failed.extend([] if holds else [f"page: {point}"])
    print(json.dumps({"checks": count, "failed": len(failed), "failing": failed, "page": not QUICK}))


main()
