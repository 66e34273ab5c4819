"""Attacks on the command line: files that others made, names, numbers, and disks that are full."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import pty
import random
import re
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import faults
import pictures
from arena import MIB, ROOT, SEED, Arena, Result, attack
from wire import at_once

ENCODER = ROOT / "parity/vision/clip-quick-gelu"
PHOTO = ROOT / "parity/photo/files/rgb.jpg"
PARIS = ROOT / "parity/photo/files/gps-paris.jpg"
EARTH = ROOT / "examples/models/earth"
#: Codes of ends that a program does not choose: a panic, and signals as shells report them.
CRASHES = {101, 132, 134, 135, 136, 137, 139}
#: C0 but newline and tab, DEL, and C1 as UTF-8.
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


@dataclass
class Done:
    arguments: list[str]
    code: int
    out: bytes
    err: bytes
    seconds: float

    def shown(self) -> str:
        return " ".join(argument[:60] for argument in self.arguments[:6])


class Program:
    """Runs of the program in a folder, each within a time of processors and an address space: others may use this machine too."""

    def __init__(self, arena: Arena, result: Result) -> None:
        self.arena, self.result, self.folder = arena, result, arena.folder()
        self.environment = {**os.environ, "LOCDIFF_HOME": str(self.folder / "home"), "HF_HOME": str(self.folder / "hub"), "HF_HUB_OFFLINE": "1", "RAYON_NUM_THREADS": "2"}
        self.codes: Counter[int] = Counter()

    def run(self, *arguments: object, stdin: bytes | Path = b"", timeout: float = 60.0, memory: int = 4 << 30, file_size: int | None = None, terminal: bool = False) -> Done:
        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            resource.setrlimit(resource.RLIMIT_CPU, (int(timeout), int(timeout) + 5))
            if file_size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        command = [os.fsencode(self.arena.program), *(os.fsencode(a) if isinstance(a, (bytes, Path)) else str(a).encode("utf-8", "surrogateescape") for a in arguments)]
        began = time.monotonic()
        source = stdin.open("rb") if isinstance(stdin, Path) else None
        if terminal:
            code, out, err = at_terminal(command, self.folder, self.environment)
            return Done([os.fsdecode(part) for part in command[1:]], code, out, err, time.monotonic() - began)
        try:
            found = subprocess.run(command, cwd=self.folder, env=self.environment, input=None if source else stdin, stdin=source, capture_output=True, timeout=8 * timeout, preexec_fn=limited)
            code, out, err = found.returncode, found.stdout, found.stderr
        except subprocess.TimeoutExpired as late:
            code, out, err = -999, late.stdout or b"", late.stderr or b""
        finally:
            if source:
                source.close()
        return Done([os.fsdecode(part) for part in command[1:]], code, out, err, time.monotonic() - began)

    def attacked(self, *arguments: object, refused: bool = False, longest: int = 20_000, **options: object) -> Done:
        """One run that must end by itself, soon, without a panic and with few words."""
        done, result = self.run(*arguments, **options), self.result  # type: ignore[arg-type]
        result.count += 1
        self.codes[done.code] += 1
        words = done.err[:400].decode(errors="replace")
        panicked = b"panicked" in done.err
        result.panics += panicked
        result.check(not panicked, f"{done.shown()}: {words}")
        result.check(done.code not in (-999, -signal.SIGXCPU), f"{done.shown()}: not over after {done.seconds:.0f} s")
        result.check(done.code in (-999, -signal.SIGXCPU) or not (done.code < 0 or done.code in CRASHES), f"{done.shown()}: ended with {done.code}: {words}")
        result.check(len(done.err) <= longest, f"{done.shown()}: {len(done.err)} bytes on stderr")
        result.check(not CONTROL.search(done.err), f"{done.shown()}: control bytes on stderr: {(CONTROL.search(done.err) or [b''])[0]!r} in {done.err[:200]!r}")
        if refused:
            result.check(done.code != 0, f"{done.shown()}: accepted: {done.out[:200]!r}")
        return done

    def together(self, jobs: list[Callable[[], object]], count: int = 2) -> None:
        at_once(count, jobs)  # type: ignore[arg-type]
        self.result.facts["exit codes"] = {str(code): number for code, number in sorted(self.codes.items())}

    def prepared(self) -> faults.Faults:
        """Embeddings and a small model of our own, as the fault injection has."""
        made = faults.Faults(self.arena.program, self.folder, 1)
        return made


def at_terminal(command: list[bytes], folder: Path, environment: dict[str, str], both: bool = False) -> tuple[int, bytes, bytes]:
    """What a person sees on stdout, and stderr; or both as one sees them."""
    parent, child = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=child, stderr=child if both else subprocess.PIPE)
    os.close(child)
    seen = b""
    try:
        while part := os.read(parent, 65536):
            seen += part
    except OSError:
        pass
    os.close(parent)
    _, err = process.communicate(timeout=60)
    return process.returncode, seen.replace(b"\r\n", b"\n"), err or b""


# Text that terminals would obey.


ESCAPES = ["\x1b]0;owned\x07", "\x1b[2J\x1b[31m", "\x9b31m", "\x07\x08\x08", "a\rb", "\x7f", "\x1bP+q544e\x1b\\", "\x1b]52;c;ZXZpbA==\x07", "\x85", "\x1b[?1049h"]


@attack("terminal escapes", "control characters in names of files and models and in the content of tables, manifests, configurations, sidecars, models, GeoJSON and coefficients", area="program", defect=3, holds="no control character is on stdout or stderr; CSV and JSON that are written to a terminal included, to a pipe not")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    folder, jobs = program.folder, []

    def clean(*arguments: object, **options: object) -> None:
        done = program.attacked(*arguments, **options)
        bad = CONTROL.search(done.out)
        result.check(bad is None, f"{done.shown()}: control bytes on stdout: {bad and done.out[max(0, bad.start() - 40) : bad.end() + 40]!r}")

    def seen(escape: str, *arguments: object) -> None:
        """At a terminal the program may have colors of its own: what counts is that what we sent does not come back."""
        command = [os.fsencode(arena.program), *(os.fsencode(a) if isinstance(a, Path) else str(a).encode() for a in arguments)]
        _, both, _ = at_terminal(command, folder, program.environment, both=True)
        result.count += 1
        result.check(escape.encode() not in both, f"{os.fsdecode(b' '.join(command[1:4]))}, at a terminal: {escape!r} came back: {both[:200]!r}")

    model = folder / "model"
    shutil.copytree(EARTH, model)
    chosen = ESCAPES[:2] if arena.quick else ESCAPES
    for number, escape in enumerate(chosen):
        album = folder / f"album-{number}"
        inner = album / f"{escape}in"
        inner.mkdir(parents=True)
        shutil.copy(PARIS, inner / f"{escape}.jpg")
        (inner / f"{escape}bad.jpg").write_bytes(b"\xff\xd8\xff" + escape.encode())
        (inner / f"{escape}none.png").write_bytes(escape.encode() * 4)
        (album / "x.jpg.xmp").write_text(f"<x:xmpmeta><rdf:RDF>{escape}</y>")
        shutil.copy(PHOTO, album / "x.jpg")
        table = folder / f"table-{number}.csv"
        table.write_text(f"image,latitude,longitude,{escape}\n{escape},{escape}1,2,{escape}\na,{escape},{escape},1\n")
        truth = folder / f"truth-{number}.csv"
        truth.write_text(f"image,latitude,longitude\n{escape}b,1,2\n")
        config = folder / f"config-{number}.toml"
        config.write_text(f'[network]\nmax_degree = "{escape}"\n["{escape}"]\n')
        other = folder / f"other-{number}.toml"
        quoted = "".join(f"\\u{ord(character):04x}" for character in escape)
        other.write_text(f'[network]\n"{quoted}" = 1\n')
        shape = folder / f"shape-{number}.geojson"
        shape.write_text(json.dumps({"type": escape, "coordinates": [escape]}))
        lying = folder / f"{escape}model"
        lying.mkdir()
        (lying / "config.json").write_text(json.dumps({"format": "locdiff-model", "version": 2, "kind": escape, "written_by": escape, "files": {escape: "0" * 64}}))
        renamed = folder / f"renamed-{number}"
        shutil.copytree(EARTH, renamed)
        document = json.loads((renamed / "config.json").read_text())
        document["encoder"] |= {"identity": escape, "name": escape, "revision": escape}
        document |= {"written_by": escape}
        (renamed / "config.json").write_text(json.dumps(document))
        head = json.dumps({escape: {"dtype": escape, "shape": [1], "data_offsets": [0, 4]}, "__metadata__": {escape: escape}}).encode()
        weights = folder / f"weights-{number}"
        weights.mkdir()
        (weights / "config.json").write_text(json.dumps({"model_type": escape, "architectures": [escape], escape: 1}))
        (weights / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(4))
        gallery = folder / f"gallery-{number}"
        gallery.mkdir()
        (gallery / "gallery.json").write_text(json.dumps({"format": escape, "version": escape, "encoder": escape, escape: 1}))
        job = folder / f"job-{number}"
        job.mkdir()
        (job / "job.json").write_text(json.dumps({"format": escape, "task": escape, escape: 1}))

        def mine(*arguments: object, escape: str = escape, **options: object) -> None:
            jobs.append(lambda: clean(*arguments, **options))
            # `serve` would not end by itself.
            if number < 2 and arguments[0] != "serve" and (not arena.quick or "--within" in arguments or "evaluate" in arguments) and not options:
                jobs.append(lambda: seen(escape, *arguments))

        mine("predict", inner / f"{escape}.jpg", "--model", "earth-view", "--no-registration")
        mine("predict", inner / f"{escape}bad.jpg", inner / f"{escape}none.png", inner / f"{escape}missing.jpg", "--model", "earth-view", "--no-registration")
        mine("predict", album, "--model", "earth-view", "--no-registration", "--json", terminal=True)
        mine("predict", album, "--model", "earth-view", "--no-registration", "--csv", terminal=True)
        mine("predict", PHOTO, "--model", f"{escape}")
        mine("predict", PHOTO, "--within", f"{escape}")
        mine("predict", PHOTO, "--within", shape)
        if escape.isascii():
            mine(f"{escape}")
            mine("predict", f"--{escape}")
        mine("evaluate", "--predictions", table, "--truth", truth)
        mine("evaluate", "--predictions", truth, "--truth", truth)
        mine("evaluate", "--predictions", truth, "--truth", table)
        mine("train", config, "--data", folder, "--out", folder / "run", "--plan")
        mine("train", other, "--data", folder, "--out", folder / "run", "--plan")
        mine("serve", "--config", other, "--port", "0", timeout=20)
        mine("model", "show", lying)
        mine("model", "verify", lying)
        mine("model", "show", renamed)
        mine("model", "verify", renamed)
        mine("model", "remove", f"{escape}")
        mine("predict", PHOTO, "--model", renamed, "--encoder", EARTH / "encoder")
        mine("model", "import", "encoder", f"n{number}", weights)
        mine("model", "import", "encoder", f"{escape}", weights)
        mine("predict", PHOTO, "--model", model, "--encoder", weights)
        mine("gallery", "info", gallery)
        mine("batch", "status", job)
        mine("batch", "run", job)
        mine("embed", table, "--encoder", ENCODER, "--out", folder / f"embedded-{number}")
        mine("embed", album, "--encoder", ENCODER, "--out", folder / f"embedded-album-{number}")
        mine("scan", album, "--library", folder / f"{escape}.sqlite", "--no-predict")
        mine("scan", album, "--library", folder / f"library-{number}.sqlite", "--model", model, "--encoder", EARTH / "encoder/view-encoder.safetensors")
        mine("sphere", "decode", stdin=f"{escape},1,2\n".encode())
        mine("sphere", "encode", f"{escape}")
        mine("sphere", "encode", stdin=json.dumps([{escape: 1}]).encode())
    program.together(jobs)
    jobs.clear()
    for number, escape in enumerate(chosen):
        library = folder / f"library-{number}.sqlite"
        for arguments in (("tag", library, "--dry-run", "--confidence", "0"), ("export", library, "--format", "csv"), ("export", library, "--format", "geojson"), ("tag", library, "--confidence", "0"), ("tag", library, "--undo")):
            jobs.append(lambda arguments=arguments: clean(*arguments, terminal=arguments[0] == "export"))
    program.together(jobs, 1)


# Numbers.


@attack("hostile sizes", "counts, sizes and shapes up to 2⁶⁴ − 1 as options, in .npy headers and in configurations; input that never ends; within 2 GB", area="program", defect=4, holds="those that are impossible are errors")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    folder, jobs = program.folder, []
    coefficients = b" ".join([b"0.3"] * 16) + b"\n"
    table = folder / "a.csv"
    table.write_text("image,latitude,longitude\n" + "".join(f"{k},{k},{k}\n" for k in range(60)))
    most = 2**64 - 1
    run = lambda *arguments, **options: jobs.append(lambda: program.attacked(*arguments, memory=2 << 30, timeout=40, **options))  # noqa: E731
    score = ["evaluate", "--predictions", table, "--truth", table]
    # Those of the issue first.
    run("sphere", "decode", "--decoder", "paper-mode", "--anchors", most, stdin=coefficients, refused=True)
    run("sphere", "decode", "--anchors", most, stdin=coefficients)
    run("sphere", "decode", "-i", "/dev/zero", refused=True)
    run(*score, "--resamples", 10**12, refused=True)
    cell = folder / "cell.csv"
    with cell.open("wb") as file:
        file.write(b"image,latitude,longitude\n")
        for _ in range(200):
            file.write(b"a" * MIB)
        file.write(b",1,x\n")
    run("evaluate", "--predictions", cell, "--truth", table, refused=True)
    run("evaluate", "--predictions", table, "--truth", cell, refused=True)

    def array(shape: str, data: bytes = bytes(64), header: bytes | None = None) -> Path:
        path = folder / f"{len(list(folder.iterdir()))}-{abs(hash((shape, data, header))) % 1000}.npy"
        text = header or f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) % 65536) + text + data)
        return path

    for shape in (f"({2**63}, 2)", f"({2**62}, 4)", f"(4, {2**62})"):
        run("sphere", "encode", "-i", array(shape), refused=True)
        run("sphere", "decode", "-i", array(shape), refused=True)
    if not arena.quick:
        for shape in ("(-1, 2)", f"({most}, {most})", f"({2**32}, {2**32})", "(0, 0)", "(0, 16)", "(2,)", "()", "(1,)" * 1000, f"({'9' * 5000}, 2)", "(1, 1, 1, 1, 8)", "(2.0, 2)", f"({2**61}, 16)"):
            run("sphere", "encode", "-i", array(shape))
            run("sphere", "decode", "-i", array(shape))
        for descr in ("|O", "<f99", ">f8", "|V8", "<c16", "[('a','<f8')]", "<i8", "|S1000000000"):
            run("sphere", "decode", "-i", array("", header=f"{{'descr': '{descr}', 'fortran_order': True, 'shape': (1, 16), }}".encode()))
        for number, where in enumerate(("encode", "decode", "plot")):
            more = ["-o", folder / "a.png"] if where == "plot" else []
            for endless in ("/dev/zero", "/dev/urandom"):
                if number or endless == "/dev/urandom":
                    run("sphere", where, "-i", endless, *more, refused=True)
            run("sphere", where, *more, "-i", "-", stdin=Path("/dev/zero"), refused=True)
            run("sphere", where, *more, "-i", "-", stdin=b"1 " * (16 << 20))
            run("sphere", where, *more, "-i", "-", stdin=b"[" * 1_000_000)
        for anchors in (0, 1, 2**32, 2**40, 2**62, 10**9):
            for decoder in ("paper-mode", "paper-kl"):
                run("sphere", "decode", "--decoder", decoder, "--anchors", anchors, stdin=coefficients)
        run("sphere", "decode", "--modes", most, stdin=coefficients)
        for degree in (2**16, 2**32, most, 10**6):
            run("sphere", "encode", "-L", degree, "1,2", refused=True)
            run("sphere", "plot", "-L", degree, "1,2", "-o", folder / "b.png", refused=True)
        for width in (0, 1, 2**31, 2**32 - 1, most):
            run("sphere", "plot", "1,2", "--width", width, "-o", folder / "c.png", refused=width > 2**20)
        for name, value in (("--row", most), ("--decades", most), ("--decades", "1e308"), ("--decades", "NaN"), ("--regions", "0.5," * 5000 + "0.5")):
            run("sphere", "plot", "1,2", name, value, "-o", folder / "d.png")
        for name in ("--resamples", "--permutations", "--neighbours"):
            for value in (most, 10**12, 2**40):
                run(*score, "--against", table, name, value)
        run(*score, "--confidence", "1e308")
        run(*score, "--confidence", "NaN")
        for name in ("--top", "--draws", "--frames", "--samples", "--views", "--steps", "--seed"):
            for value in (2**62, most, 10**12):
                run("predict", PHOTO, "--model", EARTH, "--encoder", EARTH / "encoder/view-encoder.safetensors", "--json", name, value)
        for name, value in (("--kernel-km", "1e-300"), ("--kernel-km", "NaN"), ("--guidance", "1e308"), ("--width-km", "inf"), ("--zoom", "1e308")):
            run("predict", PHOTO, "--model", "earth-view", name, value)
        for name in ("--max-batch", "--workers", "--max-queue", "--max-connections", "--max-memory-bytes", "--max-wait-ms", "--request-timeout-s", "--max-image-pixels", "--max-images", "--density-budget-ms", "--batch-delay-ms"):
            # A server that starts is ended by the time: what counts is that it does not fall over.
            jobs.append(lambda name=name: starts(program, ["serve", "--port", "0", "--model", "earth-view", name, str(most)]))
        for name, value in (("--batch", most), ("--views", 2**62), ("--rows-per-shard", most), ("--threads", most), ("--threads", 10**6), ("--shard", f"1/{most}"), ("--max-bytes", most), ("--max-pixels", most)):
            run("embed", ROOT / "parity/photo/files", "--encoder", ENCODER, "--out", folder / f"e{len(jobs)}", name, value)
        run("batch", "plan", ROOT / "parity/photo/files", "--task", "check", "--out", folder / "job", "--rows-per-unit", most)
        run("batch", "run-unit", folder / "job", f"0-{most - 1}")
    program.together(jobs)


def starts(program: Program, arguments: list[str]) -> None:
    """A server with a hostile setting: it refuses, or it serves until it is told to stop."""
    process = subprocess.Popen([str(program.arena.program), *arguments], cwd=program.folder, env=program.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)))
    time.sleep(3)
    process.terminate()
    try:
        _, err = process.communicate(timeout=40)
    except subprocess.TimeoutExpired:
        process.kill()
        _, err = process.communicate()
        program.result.failed.append(f"{arguments}: does not stop")
    program.result.count += 1
    program.codes[process.returncode] += 1
    program.result.check(b"panicked" not in err and process.returncode in (0, 1, 2, 3), f"{arguments}: {process.returncode} {err[-300:]!r}")
    program.result.panics += b"panicked" in err


# Weights.


def safetensors(header: bytes, data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def hostile_weights(honest: bytes, count: int) -> list[tuple[str, bytes]]:
    size = struct.unpack("<Q", honest[:8])[0]
    header, data = json.loads(honest[8 : 8 + size]), honest[8 + size :]
    names = [name for name in header if name != "__metadata__"]
    made: list[tuple[str, bytes]] = [(f"length {length}", safetensors(honest[8 : 8 + size], data, length)) for length in (0, 1, 7, size - 1, size + 1, len(honest), 100_000_001, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1)]
    made += [("empty", b""), ("seven bytes", honest[:7]), ("length alone", honest[:8]), ("no data", honest[: 8 + size]), ("cut", honest[:-1]), ("more", honest + b"\0" * 1000)]
    texts = [b"", b"[]", b"null", b"{}", b'{"a":' * 100_000, b"[" * 1_000_000, b"\xff" * 100, b'{"a":1}', b'{"__metadata__":{"a":1}}', b'{"__metadata__":' + json.dumps({"a" * 5_000_000: "b"}).encode() + b"}", b" " * 1_000_000]
    made += [(f"header {text[:12]!r}", safetensors(text, data)) for text in texts]

    def changed(label: str, change: Callable[[dict], None]) -> None:
        other = json.loads(json.dumps(header))
        change(other)
        made.append((label, safetensors(json.dumps(other).encode(), data)))

    first, last = names[0], names[-1]
    total = len(data)
    offsets = [[0, 0], [4, 0], [0, 2**64 - 1], [2**64 - 1, 2**64 - 1], [2**63, 2**63 + 4], [-4, 0], [0, total], [total, total + 4], [1, 5], [0.5, 4], ["0", "4"], [0], [0, 4, 8], []]
    shapes = [[2**32, 2**32], [2**63, 2], [2**64 - 1], [-1], [0], [], [1] * 100_000, [2**62, 4], [1.5], ["1"], [10**30], None]
    dtypes = ["F64", "I8", "BOOL", "F16", "BF16", "F8_E4M3", "U64", "X", "", "F32\0", 7, None, "f" * 1_000_000]
    for target in (first, last):
        for value in offsets:
            changed(f"offsets {value}", lambda other, value=value: other[target].update(data_offsets=value))
        for value in shapes:
            changed(f"shape {str(value)[:30]}", lambda other, value=value: other[target].update(shape=value))
        for value in dtypes:
            changed(f"dtype {str(value)[:10]}", lambda other, value=value: other[target].update(dtype=value))
        changed("missing", lambda other: other.pop(target))
        changed("long name", lambda other: other.update({"n" * 5_000_000: other.pop(target)}))
    changed("all overlap", lambda other: [other[name].update(data_offsets=other[first]["data_offsets"]) for name in names])
    changed("a million tensors", lambda other: other.update({f"t{k}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in range(1_000_000)}))
    made.append(("twice", safetensors(json.dumps(header).encode()[:-1] + b"," + json.dumps({first: header[first]}).encode()[1:], data)))
    for value in (math.nan, math.inf, 3e38, 1e-45):
        made.append((f"all {value}", safetensors(honest[8 : 8 + size], struct.pack("<f", value) * (total // 4) + bytes(total % 4))))
    chance = random.Random(SEED)
    for number in range(count):
        if number % 2:
            made.append((f"mutation {number}", honest[:8] + pictures.mutated(honest[8 : 8 + size], chance) + data))
        else:
            made.append((f"mutation {number}", pictures.mutated(honest, chance)))
    return made


def refreshed(model: Path) -> None:
    """Checksums as a hostile author writes them: right."""
    import hashlib

    document = json.loads((model / "config.json").read_text())
    for name in document.get("files", {}):
        if (model / name).exists():
            document["files"][name] = hashlib.sha256((model / name).read_bytes()).hexdigest()
    (model / "config.json").write_text(json.dumps(document))


@attack("hostile weights", "safetensors with wrong lengths, nested headers, overlapping offsets, shapes that overflow, lying types, NaN, and seeded mutations: as a model, as an encoder, imported and verified", area="program")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    folder, jobs = program.folder, []
    honest = (EARTH / "model.safetensors").read_bytes()
    encoder = (ENCODER / "model.safetensors").read_bytes()
    view = (EARTH / "encoder/view-encoder.safetensors").read_bytes()

    def as_model(name: str, data: bytes, file: str) -> None:
        place = folder / f"m{abs(hash((name, file, len(data), data[:2000]))) % 10**12}"
        shutil.copytree(EARTH, place)
        (place / file).write_bytes(data)
        refreshed(place)
        program.attacked("predict", PHOTO, "--model", place, "--encoder", place / "encoder/view-encoder.safetensors", "--json")
        program.attacked("model", "verify", place)
        shutil.rmtree(place)

    def as_encoder(name: str, data: bytes, number: int) -> None:
        place = folder / f"e{number}"
        place.mkdir()
        shutil.copy(ENCODER / "config.json", place / "config.json")
        (place / "model.safetensors").write_bytes(data)
        program.attacked("model", "import", "encoder", f"hostile-{number}", place)
        program.attacked("embed", folder / "one", "--encoder", place, "--out", folder / f"o{number}")
        shutil.rmtree(place)
        shutil.rmtree(folder / f"o{number}", ignore_errors=True)

    (folder / "one").mkdir()
    shutil.copy(PHOTO, folder / "one/a.jpg")
    step = arena.some(3, 40)
    for name, data in hostile_weights(honest, 80)[::step]:
        jobs.append(lambda name=name, data=data: as_model(name, data, "model.safetensors"))
    for name, data in hostile_weights(view, 40)[:: 3 * step]:
        jobs.append(lambda name=name, data=data: as_model(name, data, "encoder/view-encoder.safetensors"))
    for number, (name, data) in enumerate(hostile_weights(encoder, 80)[::step]):
        jobs.append(lambda name=name, data=data, number=number: as_encoder(name, data, number))
    result.facts["files"] = len(jobs)
    program.together(jobs)


class Ran:
    """An object whose unpickling runs a command."""

    def __init__(self, function: Callable, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple:
        return self.call


def hostile_pickles(mark: Path) -> list[tuple[str, bytes]]:
    command = f"touch {mark}"
    text = command.encode()
    made = [(f"reduce, protocol {protocol}", pickle.dumps(Ran(os.system, command), protocol)) for protocol in range(6)]
    made += [
        ("exec", pickle.dumps(Ran(exec, f"open({str(mark)!r}, 'w')"), 2)), ("eval", pickle.dumps({"w": Ran(eval, f"open({str(mark)!r}, 'w')")}, 2)),
        ("global", b"cposix\nsystem\n(S'" + text + b"'\ntR."), ("inst", b"(S'" + text + b"'\niposix\nsystem\n."), ("object", b"(cposix\nsystem\nS'" + text + b"'\no."),
        ("stack global", b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c" + bytes([len(text)]) + text + b"\x85R."), ("nested in a dictionary", b"\x80\x02}q\0X\x01\0\0\0wcposix\nsystem\nX" + struct.pack("<I", len(text)) + text + b"\x85Rs."),
        ("build", b"\x80\x02c__main__\nX\n)\x81}X\x01\0\0\0acposix\nsystem\nX" + struct.pack("<I", len(text)) + text + b"\x85Rsb."), ("runpy", b"crunpy\n_run_code\n(S'" + text + b"'\n}tR."), ("getattr", b"cbuiltins\ngetattr\n(cbuiltins\n__import__\n(S'os'\ntRS'system'\ntR(S'" + text + b"'\ntR."),
        ("torch rebuild of a callable", b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(cposix\nsystem\nK\0K\x01\x85K\x01\x85\x89}tR."), ("extension", b"\x80\x02\x82\x01."), ("extension 4", b"\x80\x02\x84\xff\xff\xff\x7f."), ("persistent id", b"\x80\x02X\x01\0\0\0aQ."), ("persistent text", b"Pabc\n."),
        ("long of 2 GB", b"\x80\x02\x8b\xff\xff\xff\x7f"), ("text of 2⁶³", b"\x80\x04\x8d" + b"\xff" * 7 + b"\x7f"), ("bytes of 2⁶⁴", b"\x80\x04\x8e" + b"\xff" * 8), ("frame of 2⁶⁴", b"\x80\x04\x95" + b"\xff" * 8 + b"."), ("memo 2³²", b"\x80\x02Nr\xff\xff\xff\xff."), ("memo missing", b"\x80\x02j\xff\xff\xff\xff."),
        ("a million marks", b"\x80\x02" + b"(" * 1_000_000 + b"."), ("a million lists", b"\x80\x02" + b"]" * 1_000_000 + b"a" * 999_999 + b"."), ("deep tuples", b"\x80\x02N" + b"\x85" * 1_000_000 + b"."), ("deep lists", b"\x80\x02" + b"]" * 500_000 + b"a" * 499_999 + b"."), ("doubling", b"\x80\x02N" + b"q\0h\0\x86" * 100 + b"."), ("doubling, 5000", b"\x80\x02N" + b"q\0h\0\x86" * 5000 + b"."),
        ("contains itself", b"\x80\x02]q\0h\0a."), ("empty", b""), ("stop alone", b"."), ("pop", b"\x80\x02" + b"0" * 1000 + b"."), ("protocol 255", b"\x80\xffN."), ("long digits", b"I" + b"9" * 1_000_000 + b"\n."), ("float text", b"F" + b"1" * 1_000_000 + b"e999\n."), ("no end", b"S'" + b"a" * 1_000_000),
    ]  # fmt: skip
    return made


def archives(data: bytes, label: str) -> list[tuple[str, bytes]]:
    """A pickle as torch stores it: in a zip; and alone, as it once did."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/data/0", bytes(64))
    return [(label, packed.getvalue()), (f"{label}, bare", data)]


def hostile_zips() -> list[tuple[str, bytes]]:
    made, good = [], pickle.dumps({}, 2)

    def packed(label: str, *files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", method) as archive:
            for name, data in files:
                archive.writestr(name, data)
        made.append((label, stream.getvalue()))
        return stream.getvalue()

    packed("bomb of 1 GB", ("archive/data.pkl", bytes(1 << 30)))
    packed("names that climb", ("../../archive/data.pkl", good), ("/etc/archive/data.pkl", good))
    packed("two pickles", ("archive/data.pkl", good), ("archive/data.pkl", good))
    packed("no pickle", ("a", b"b"))
    packed("100,000 files", ("archive/data.pkl", good), *[(f"archive/data/{k}", b"") for k in range(100_000)])
    plain = packed("plain", ("archive/data.pkl", good), ("archive/data/0", bytes(100)), method=zipfile.ZIP_STORED)
    chance = random.Random(SEED)
    made += [(f"zip mutation {number}", pictures.mutated(plain, chance)) for number in range(60)]
    for at in (plain.rfind(b"PK\5\6") + 8, plain.rfind(b"PK\5\6") + 12, plain.rfind(b"PK\5\6") + 16, plain.find(b"PK\1\2") + 20, plain.find(b"PK\1\2") + 24, plain.find(b"PK\1\2") + 42):
        made.append((f"field at {at}", plain[:at] + b"\xff\xff\xff\xff" + plain[at + 4 :]))
    return made


@attack("hostile pickles", "checkpoints of PyTorch whose pickles would run a command, ask for 2⁶⁴ bytes, nest 1,000,000 deep or contain themselves; zip bombs, lying zips and mutations", area="program", holds="no command is executed")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    folder = program.folder
    mark = folder / "executed"
    (folder / "one").mkdir()
    shutil.copy(PHOTO, folder / "one/a.jpg")
    files = [made for label, data in hostile_pickles(mark) for made in archives(data, label)] + hostile_zips()
    chance = random.Random(SEED)
    base = archives(pickle.dumps({"w": [1, 2.0, ("a", None)], "b": {}}, 2), "")[0][1]
    files += [(f"mutation {number}", pictures.mutated(base, chance)) for number in range(60)]
    # The mark can be made at all.
    pickle.loads(pickle.dumps(Ran(os.system, f"touch {mark}")))
    assert mark.exists()
    mark.unlink()

    def one(number: int, label: str, data: bytes) -> None:
        place = folder / f"p{number}"
        place.mkdir()
        shutil.copy(ENCODER / "config.json", place / "config.json")
        (place / "pytorch_model.bin").write_bytes(data)
        done = program.attacked("model", "import", "encoder", f"pickle-{number}", place)
        more = program.attacked("embed", folder / "one", "--encoder", place, "--out", folder / f"o{number}", refused=True)
        result.check(done.code != 0 or more.code != 0, f"{label}: accepted")
        shutil.rmtree(place)

    program.together([lambda number=number, made=made: one(number, *made) for number, made in list(enumerate(files))[:: arena.some(1, 12)]])
    result.facts |= {"files": len(files), "executed": mark.exists()}
    result.check(not mark.exists(), "a pickle was executed")


# Directories.


def wounded(chance: random.Random, source: Path, target: Path) -> str:
    """A copy with one file changed, removed, emptied, or replaced by a directory, a link or a pipe."""
    shutil.copytree(source, target)
    files = sorted(path for path in target.rglob("*") if path.is_file())
    chosen = chance.choice(files)
    kind = chance.choice(["mutated"] * 6 + ["removed", "empty", "cut", "directory", "link", "loop", "swapped"])
    data = chosen.read_bytes()
    match kind:
        case "mutated":
            chosen.write_bytes(pictures.mutated(data, chance) if data else b"\0")
        case "removed":
            chosen.unlink()
        case "empty":
            chosen.write_bytes(b"")
        case "cut":
            chosen.write_bytes(data[: chance.randrange(len(data) + 1)])
        case "directory":
            chosen.unlink()
            chosen.mkdir()
        case "link":
            chosen.unlink()
            chosen.symlink_to("/etc/passwd")
        case "loop":
            chosen.unlink()
            chosen.symlink_to(chosen.name)
        case "swapped":
            shutil.copyfile(chance.choice(files), target / ".other")
            (target / ".other").replace(chosen)
    return f"{kind} {chosen.relative_to(target)}"


@attack("hostile model directories", "configurations with sizes up to 2⁶⁴, wrong types and nesting, and directories with files changed, removed, cut, swapped or linked elsewhere", area="program")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    folder, jobs, chance = program.folder, [], random.Random(SEED)
    document = json.loads((EARTH / "config.json").read_text())
    values = [0, -1, 1, 2**31, 2**32, 2**63, 2**64 - 1, 2**64, 1e308, 1e999, "x", "", None, True, [], {}, [[]], "k" * 5_000_000, 0.5]

    def paths_of(value: object, at: tuple = ()) -> list[tuple]:
        if not isinstance(value, dict):
            return [at]
        return [at] * bool(at) + [path for key, inner in value.items() for path in paths_of(inner, (*at, key))]

    def with_value(path: tuple, value: object) -> bytes:
        other = json.loads(json.dumps(document))
        inner = other
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return json.dumps(other).encode()

    configs = [with_value(path, value) for path in paths_of(document) for value in values]
    chance.shuffle(configs)
    configs = configs[: arena.some(150, 4)]
    configs += [b"", b"{", b"[" * 1_000_000, b'{"a":' * 100_000, b"\xff\xfe{}", b"null", b'{"kind":"hybrid","format":"locdiff-model","version":2,"files":{},"model":".","gallery":"."}',
                b'{"kind":"hybrid","format":"locdiff-model","version":2,"files":{},"model":"../../../etc","gallery":"/etc"}', json.dumps({**document, "files": {"../../../../etc/passwd": "0" * 64}}).encode(), json.dumps({**document, "files": {"/dev/zero": "0" * 64}}).encode()]  # fmt: skip

    def configured(number: int, config: bytes) -> None:
        place = folder / f"c{number}"
        shutil.copytree(EARTH, place)
        (place / "config.json").write_bytes(config)
        program.attacked("predict", PHOTO, "--model", place, "--encoder", place / "encoder/view-encoder.safetensors", "--json")
        program.attacked("model", "show" if number % 2 else "verify", place)
        shutil.rmtree(place)

    def damaged(number: int, seed: int) -> None:
        place = folder / f"d{number}"
        wounded(random.Random(seed), EARTH, place)
        if number % 2 and (place / "config.json").is_file():
            try:
                refreshed(place)
            except (ValueError, OSError, AttributeError, TypeError):
                pass
        program.attacked("predict", PHOTO, "--model", place, "--encoder", place / "encoder/view-encoder.safetensors", "--json")
        program.attacked("model", "verify", place)
        shutil.rmtree(place)

    jobs += [lambda number=number, config=config: configured(number, config) for number, config in enumerate(configs)]
    jobs += [lambda number=number: damaged(number, SEED + number) for number in range(arena.some(60, 2))]
    program.together(jobs)


@attack("hostile galleries", "galleries with files mutated, cut, removed, swapped or linked elsewhere: shown, searched and asked", area="program")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    made = program.prepared()
    scenario = next(s for s in faults.scenarios(made) if s.name == "gallery")
    made.fresh(scenario)
    made.prepared(scenario.first)
    good = made.out / "gallery"

    def damaged(number: int) -> None:
        place = program.folder / f"g{number}"
        wounded(random.Random(SEED + number), good, place)
        program.attacked("gallery", "info", place)
        program.attacked("gallery", "search", place, PHOTO, "--encoder", ENCODER)
        program.attacked("predict", PHOTO, "--model", place, "--encoder", ENCODER)
        shutil.rmtree(place)

    program.together([lambda number=number: damaged(number) for number in range(arena.some(100, 3))])


# Photo archives.


def sidecar(latitude: str = "48,51.5N", longitude: str = "2,17.6E", time_: str = "2024-05-01T12:00:00", more: str = "") -> bytes:
    return f"""<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" exif:GPSLatitude="{latitude}" exif:GPSLongitude="{longitude}" exif:DateTimeOriginal="{time_}">{more}</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>""".encode("utf-8", "surrogatepass")


def hostile_sidecars() -> list[bytes]:
    lol = '<!DOCTYPE l [<!ENTITY a "lol">' + "".join(f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(12)) + "]>"
    places = ["999,99N", "NaN", "1e308,1N", "-1,-1N", "48,51.5", "", ",", "48,51,30,20,10N", "4" * 100_000 + "N", "48,51.5\u202eN", "\x1b[31mN", "48,60N", "90,0.0001N", "1/0,1/0N"]
    times = ["99999-99-99T99:99:99", "-2024-05-01T12:00:00", "0000-00-00T00:00:00", "2024-02-30T25:61:61+99:99", "2" * 100_000, "9223372036854775807", "2024-05-01T12:00:00." + "9" * 10_000, "", "292277026596-12-04T15:30:08Z"]
    made = [sidecar(latitude=place) for place in places] + [sidecar(longitude=place) for place in places] + [sidecar(time_=when) for when in times]
    made += [
        lol.encode() + sidecar(more="&m;"), b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + sidecar(more="&e;"), sidecar(more="<a>" * 200_000), sidecar(more="<a>" * 200_000 + "</a>" * 200_000), sidecar(more="<!--" + "-" * 1_000_000), sidecar(more='<a b="' + "c" * 10_000_000),
        sidecar(more="&#x1b;&#0;&#xFFFFFFFF;"), sidecar().decode().encode("utf-16"), b"\xff" * 1000, b"\0" * 10_000_000, b"", b"<", b"<x:xmpmeta", sidecar(more="<![CDATA[" + "x" * 1_000_000), sidecar(more="<?pi " * 100_000), sidecar().replace(b"exif:GPSLatitude", b"exif:GPSLatitude exif:GPSLatitude"), b"<a " + b'b="1" ' * 200_000 + b"/>",
    ]  # fmt: skip
    return made


@attack("hostile archives", "`locdiff scan`, `tag` and `export` of folders with hostile sidecars, Exif, GPX tracks, loops of links, devices and deep folders, beside honest pictures", area="program", holds="every honest picture is in the library with its place; all places are places")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    album, chance = program.folder / "album", random.Random(SEED)
    album.mkdir()
    made = hostile_sidecars()
    base = sidecar()
    made += [pictures.mutated(base, chance) for _ in range(arena.some(80, 5))]
    made = made[:: arena.some(1, 6)]
    photo, paris = PHOTO.read_bytes(), PARIS.read_bytes()
    for number, data in enumerate(made):
        # Each picture has content of its own.
        (album / f"s{number}.jpg").write_bytes(photo[:2] + pictures.segment(0xFE, f"{number}".encode()) + photo[2:])
        (album / f"s{number}.jpg.xmp").write_bytes(data)
    for number in range(arena.some(150, 10)):
        (album / f"e{number}.jpg").write_bytes(pictures.mutated(paris[:400], chance) + paris[400:])
    for name, data in pictures.giants().items():
        (album / f"{name.replace('/', ' ')}.jpg").write_bytes(data)
    for name, data in list(pictures.metadata().items())[:: arena.some(1, 6)]:
        (album / f"{name.replace('/', ' ')}.png").write_bytes(data)
    honest = 40
    for number in range(honest):
        (album / f"honest {number}.jpg").write_bytes(paris[:2] + pictures.segment(0xFE, f"honest {number}".encode()) + paris[2:])
    deep = album
    for number in range(60):
        deep = deep / f"{number}"
    deep.mkdir(parents=True)
    (deep / "a.jpg").write_bytes(paris)
    (album / "loop").symlink_to(album)
    (album / "zero.jpg").symlink_to("/dev/zero")
    tracks = []
    point = '<trkpt lat="{}" lon="{}"><time>{}</time></trkpt>'
    whole = '<gpx version="1.1"><trk><trkseg>{}</trkseg></trk></gpx>'
    for number, text in enumerate((
        whole.format(point.format("NaN", "1e999", "x")), whole.format(point.format("91", "181", "2024-05-01T12:00:00Z")), whole.format("<trkpt>" * 200_000), "<gpx>" * 200_000, whole.format(point.format("1", "2", "99999-01-01T00:00:00Z") * 2), "", "\0" * 1000,
        whole.format("".join(point.format(48 + k / 1e5, 2, f"2024-05-01T12:{k // 60 % 60:02}:{k % 60:02}Z") for k in range(100_000))), '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + whole.format("&e;"),
    )):  # fmt: skip
        path = program.folder / f"track-{number}.gpx"
        path.write_text(text)
        tracks.append(path)
    library = program.folder / "library.sqlite"
    done = program.attacked("scan", album, "--library", library, "--no-predict", "--json", longest=500_000, timeout=300)
    again = program.attacked("scan", album, "--library", library, "--no-predict", "--json", longest=500_000, timeout=300)
    result.count += len(list(album.rglob("*"))) - 2
    rows = {}
    if library.exists():
        connection = sqlite3.connect(library)
        rows = {Path(path).name: (latitude, longitude) for path, latitude, longitude in connection.execute("SELECT path, latitude, longitude FROM files")}
        sound = connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        result.check(sound, "the library is damaged")
    lost = sum(rows.get(f"honest {number}.jpg", (None,))[0] is None for number in range(honest))
    result.facts |= {"rows": len(rows), "lost rows": lost, "scan": f"exit code {done.code}, then {again.code}"}
    result.check(lost == 0, f"{lost} of {honest} honest pictures are not in the library")
    wrong = [name for name, (latitude, longitude) in rows.items() if latitude is not None and not (-90 <= latitude <= 90 and -180 <= longitude <= 180)]
    result.check(not wrong, f"places that are none: {wrong[:3]}")
    for track in tracks:
        program.attacked("scan", album / "0", "--library", program.folder / f"{track.stem}.sqlite", "--no-predict", "--track", track, timeout=120)
    for arguments in (["export", library, "--format", "geojson"], ["export", library, "--format", "kml"], ["export", library, "--format", "gpx"], ["export", library, "--format", "csv"], ["tag", library, "--dry-run", "--confidence", "0"], ["tag", library, "--confidence", "0", "--in-place", "--dry-run"]):
        program.attacked(*arguments, longest=500_000)
    # A library that others made.
    data = library.read_bytes() if library.exists() else b""
    for number in range(arena.some(30, 3) if data else 0):
        other = program.folder / f"other-{number}.sqlite"
        other.write_bytes(pictures.mutated(data, chance) if number % 3 else data[: chance.randrange(len(data))])
        program.attacked("export", other, "--format", "csv")
        program.attacked("scan", album / "0", "--library", other, "--no-predict")
        other.unlink(missing_ok=True)
    program.together([])


@attack("pipes and devices", "pipes that nobody writes to and links to `/dev/zero`, in place of pictures, of sidecars and of rows of a manifest", area="program", holds="no command waits for them, or reads without end")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    folder = program.folder
    for name in ("pictures", "sidecars", "endless"):
        (folder / name).mkdir()
        shutil.copy(PARIS, folder / name / "a.jpg")
    os.mkfifo(folder / "pictures/pipe.jpg")
    os.mkfifo(folder / "sidecars/a.jpg.xmp")
    (folder / "endless/a.jpg.xmp").symlink_to("/dev/zero")
    (folder / "pictures/endless.jpg").symlink_to("/dev/zero")
    (folder / "manifest.csv").write_text("path,latitude,longitude\npictures/pipe.jpg,1,2\npictures/endless.jpg,1,2\npictures/a.jpg,1,2\n")
    jobs = [
        ["scan", folder / "pictures", "--library", folder / "a.sqlite", "--no-predict"], ["scan", folder / "sidecars", "--library", folder / "b.sqlite", "--no-predict"], ["scan", folder / "endless", "--library", folder / "c.sqlite", "--no-predict"],
        ["predict", folder / "pictures", "--model", "earth-view", "--no-registration"], ["embed", folder / "pictures", "--encoder", ENCODER, "--out", folder / "c"], ["embed", folder / "manifest.csv", "--encoder", ENCODER, "--out", folder / "d"],
    ]  # fmt: skip
    # A command that waits uses no processor: it is the clock that ends it.
    program.together([lambda arguments=arguments: program.attacked(*arguments, timeout=15) for arguments in jobs], 4)


# Tables, configurations, areas, data sets.


@attack("hostile tables", "CSV, JSON and Parquet with a cell of 200 MB, 1,000,000 columns, open quotes, NULs, other encodings, odd numbers, and mutations: `evaluate` and manifests", area="program")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    folder, chance = program.folder, random.Random(SEED)
    good = "image,latitude,longitude\n" + "".join(f"{k}.jpg,{k % 80},{k}\n" for k in range(60))
    (folder / "good.csv").write_text(good)
    odd = ["NaN", "inf", "1e999", "91", "-91", "1,5", "", "48°", "0x10", "1_000", "+1", "1e-400", "9" * 10_000, "\u0661", '"""', "=1+1"]
    files: list[tuple[str, bytes]] = [
        ("cell.csv", b"image,latitude,longitude\n" + b"a" * (200 << 20) + b",1,2\n"), ("number.csv", b"image,latitude,longitude\na," + b"1" * (50 << 20) + b",2\n"), ("header.csv", b"h" * (50 << 20)), ("columns.csv", b"image,latitude,longitude" + b",a" * 1_000_000 + b"\n" + b"1," * 1_000_003 + b"\n"),
        ("quote.csv", b'image,latitude,longitude\n"' + b"a\n" * 5_000_000), ("nul.csv", good.encode().replace(b"1", b"\0")), ("utf-16.csv", good.encode("utf-16")), ("bom.csv", b"\xef\xbb\xbf" + good.encode()), ("latin.csv", b"image,latitude,longitude\n\xe9,1,2\n"), ("cr.csv", good.encode().replace(b"\n", b"\r")),
        ("empty.csv", b""), ("twice.csv", b"latitude,latitude,longitude,longitude\n1,2,3,4\n"), ("short.csv", b"image,latitude,longitude\na\na,1\na,1,2,3,4\n"), ("repeated.csv", b"image,latitude,longitude\n" + b"a,1,2\n" * 1000),
        ("deep.json", b"[" * 1_000_000), ("deep.jsonl", b'{"a":' * 200_000), ("not.parquet", b"PAR1" + bytes(1000) + b"PAR1"), ("footer.parquet", b"PAR1" + b"\xff" * 100 + struct.pack("<I", 2**31 - 1) + b"PAR1"), ("endless.parquet", b"PAR1" * 1000),
    ]  # fmt: skip
    files += [(f"odd-{number}.csv", f"image,latitude,longitude\na,{value},1\nb,1,{value}\n".encode()) for number, value in enumerate(odd)]
    files += [(f"mutation-{number}.csv", pictures.mutated(good.encode(), chance)) for number in range(arena.some(60, 3))]
    if arena.quick:
        files = files[::9]

    def one(name: str, data: bytes) -> None:
        path = folder / name
        path.write_bytes(data)
        program.attacked("evaluate", "--predictions", path, "--truth", folder / "good.csv", timeout=120)
        program.attacked("evaluate", "--predictions", folder / "good.csv", "--truth", path, timeout=120)
        program.attacked("embed", path, "--encoder", ENCODER, "--out", folder / f"out-{name}", timeout=120)
        path.unlink()

    program.together([lambda name=name, data=data: one(name, data) for name, data in files])
    program.attacked("evaluate", "--predictions", "/dev/zero", "--truth", folder / "good.csv", refused=True, timeout=120)
    (folder / "zero.csv").write_text("path,latitude,longitude\n/dev/zero,1,2\n/proc/self/mem,1,2\n/,1,2\n../../../../../etc/passwd,1,2\n")
    program.attacked("embed", folder / "zero.csv", "--encoder", ENCODER, "--out", folder / "out-zero")


@attack("hostile configurations and areas", "TOML of training and of the server with sizes up to 2⁶³, nesting and huge keys; GeoJSON for `--within` with NaN, millions of corners, crossings and nesting", area="program")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    made = program.prepared()
    faults.scenarios(made)
    folder, jobs, chance = program.folder, [], random.Random(SEED)
    data, number = made.inputs / "embedded", 0
    values = ["0", "-1", "9223372036854775807", "4294967296", "1000000000000", "1e308", "inf", "nan", '""', "[]", "true", "1_000_000_000"]
    fields = [("network", name) for name in ("max_degree", "bottleneck", "depth", "head_rank", "time_size", "dropout", "frequency")] + [("schedule", "steps"), ("objective", "quadrature"), ("objective", "share_at_full_noise"), ("objective", "condition_dropout"), ("optimizer", "rate"), ("optimizer", "warmup_steps"), ("optimizer", "clip_norm"), ("run", "steps"), ("run", "batch"), ("run", "slices"), ("run", "ema_decay"), ("validation", "share"), ("validation", "rows"), ("validation", "every_steps"), ("checkpoint", "every_steps"), ("checkpoint", "keep"), ("inference", "samples"), ("inference", "steps"), ("inference", "kernel_km")]  # fmt: skip

    def trained(text: str, plan: bool) -> None:
        nonlocal number
        number += 1
        path = folder / f"config-{number}.toml"
        path.write_text(text)
        # Steps are limited, so that a configuration that is accepted comes to an end.
        more = ["--plan"] if plan else ["--steps", "2"]
        program.attacked("train", path, "--data", data, "--out", folder / f"run-{number}", *more, timeout=60)
        shutil.rmtree(folder / f"run-{number}", ignore_errors=True)

    for section, name in fields:
        for value in values:
            table = f"[{section}]\n"
            text = re.sub(rf"(?m)^{name} = .*\n", "", faults.CONFIG) if f"\n{name} = " in faults.CONFIG else faults.CONFIG
            text = text.replace(table, f"{table}{name} = {value}\n") if table in text else f"{text}\n{table}{name} = {value}\n"
            jobs += [lambda text=text, plan=plan: trained(text, plan) for plan in (True, False)]
    for text in ("a = " + "[" * 100_000, "a." * 100_000 + "b = 1", "[" + "a" * 5_000_000 + "]", "a = '''" + "b" * 5_000_000, "\0", "[a]\n" * 100_000, "a = 1\n" * 1000, "a = " + "9" * 1_000_000):
        jobs.append(lambda text=text: trained(text, True))
        jobs.append(lambda text=text: served(text))

    def served(text: str) -> None:
        path = folder / f"serve-{abs(hash(text)) % 10**9}.toml"
        path.write_text(text)
        program.attacked("serve", "--config", path, "--port", "0", refused=True, timeout=30)

    ring = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]
    shapes = [
        {"type": "Polygon", "coordinates": [[[math.nan, 0], [1, math.inf], [2, 2], [math.nan, 0]]]}, {"type": "Polygon", "coordinates": []}, {"type": "Polygon", "coordinates": [[]]}, {"type": "Polygon", "coordinates": [[[0, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0]] * 1_000_000]},
        {"type": "Polygon", "coordinates": [[[1e308, 1e308], [-1e308, 1], [0, -1e308], [1e308, 1e308]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[180, 90], [-180, 90], [-180, -90], [180, -90], [180, 90]]]},
        {"type": "Polygon", "coordinates": [[[k * 0.0001 % 360 - 180, 80 * math.sin(k)] for k in range(300_000)] + [[-180, 0]]]}, {"type": "MultiPolygon", "coordinates": [[ring]] * 20_000}, {"type": "MultiPolygon", "coordinates": [[ring, ring, ring]]}, {"type": "FeatureCollection", "features": [{}] * 100_000},
        {"type": "GeometryCollection", "geometries": []}, {"type": "Point", "coordinates": [0, 0]}, {"type": "Polygon", "coordinates": ring}, {"type": "Polygon", "coordinates": [[["a", "b"]] * 4]}, {"type": "Polygon", "coordinates": [[[0, 0, 0, 0, 0, 0]] * 4]}, {"type": 7}, [], None,
        {"type": "Polygon", "coordinates": [[[0, 0], [1e-12, 0], [0, 1e-12], [0, 0]]]},
    ]  # fmt: skip
    nested: object = {"type": "Polygon", "coordinates": [ring]}
    for _ in range(120):
        nested = {"type": "GeometryCollection", "geometries": [nested]}
    texts = [json.dumps(shape) for shape in [*shapes, nested]] + ["[" * 1_000_000, '{"type":"GeometryCollection","geometries":[' * 100_000, "", "\0"]
    base = json.dumps({"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}]})
    texts += [pictures.mutated(base.encode(), chance).decode(errors="replace") for _ in range(arena.some(80, 2))]

    def within(index: int, text: str) -> None:
        path = folder / f"area-{index}.geojson"
        path.write_text(text)
        program.attacked("predict", ROOT / "examples/madagascar.jpg", "--model", "earth-view", "--no-registration", "--within", path, "--json", timeout=60)

    jobs += [lambda index=index, text=text: within(index, text) for index, text in enumerate(texts)]
    program.together(jobs[:: arena.some(2, 40)])


@attack("hostile data sets", "tars with lying sizes, climbing names, links and 8 EB; Parquet shards and jobs with mutations: `embed`, `train`, `gallery build`, `batch`", area="program", holds="nothing is written outside of the output")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    made = program.prepared()
    faults.scenarios(made)
    folder, jobs, chance = program.folder, [], random.Random(SEED)
    shard = next((made.inputs / "embedded").glob("*.parquet")).read_bytes()
    photo = PHOTO.read_bytes()

    def tarred(*members: tuple[str, bytes, dict[str, object]]) -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, data, more in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                for key, value in more.items():
                    setattr(info, key, value)
                tar.addfile(info, io.BytesIO(data) if info.isreg() else None)
        return packed.getvalue()

    place = json.dumps({"latitude": 1, "longitude": 2}).encode()
    good = tarred(("a.jpg", photo, {}), ("a.json", place, {}), ("b.jpg", photo, {}), ("b.json", place, {}))

    def sized(field: bytes, at: int = 124) -> bytes:
        head = bytearray(good)
        start = good.find(b"a.jpg")
        head[start + at : start + at + len(field)] = field
        head[start + 148 : start + 156] = b" " * 8
        total = sum(head[start : start + 512])
        head[start + 148 : start + 156] = b"%06o\0 " % total
        return bytes(head)

    tars = [
        good, good[:700], sized(b"77777777777\0"), sized(b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7), sized(b"\xff" * 12), sized(b"-1         \0"), sized(b"99999999999\0"), tarred(("../../../climbed.jpg", photo, {}), ("../../../climbed.json", place, {})), tarred(("/climbed.jpg", photo, {})),
        tarred(("a" * 100_000 + ".jpg", photo, {})), tarred(("\x1b[31m.jpg", photo, {})), tarred(("a.jpg", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"})), tarred(("a.jpg", b"", {"type": tarfile.FIFOTYPE})), tarred(*[("a.jpg", photo, {})] * 100), tarred(("a.json", b"[" * 100_000, {}), ("a.jpg", photo, {})),
        tarred(("a.jpg", photo, {}), ("a.json", b'{"latitude":1e999,"longitude":"x"}', {})), tarred(("a.jpg", photo, {"pax_headers": {"size": "99999999999999"}})), tarred(("a.jpg", photo, {"pax_headers": {"path": "b" * 1_000_000}})), bytes(100_000), b"",
    ]  # fmt: skip
    tars += [pictures.mutated(good, chance) for _ in range(arena.some(60, 2))]

    def tar(number: int, data: bytes) -> None:
        path = folder / f"{number}.tar"
        path.write_bytes(data)
        program.attacked("embed", path, "--encoder", ENCODER, "--out", folder / f"tar-{number}")
        program.attacked("batch", "plan", path, "--task", "check", "--out", folder / f"job-{number}")
        program.attacked("batch", "run", folder / f"job-{number}")
        shutil.rmtree(folder / f"tar-{number}", ignore_errors=True)

    def parquet(number: int) -> None:
        place = folder / f"shards-{number}"
        place.mkdir()
        chance = random.Random(SEED + number)
        data = shard
        if number % 3 == 0:
            # The footer says where everything is.
            size = struct.unpack("<I", shard[-8:-4])[0]
            start = len(shard) - 8 - size
            data = shard[:start] + pictures.mutated(shard[start:-8], chance)
            data += struct.pack("<I", len(data) - start) + b"PAR1"
        elif number % 3 == 1:
            data = pictures.mutated(shard, chance)
        else:
            at = chance.randrange(4, len(shard) - 8)
            data = shard[:at] + chance.choice((b"\xff", b"\x7f", b"\0", b"\x80")) * chance.choice((1, 4, 9)) + shard[at + 4 :]
        (place / "a.parquet").write_bytes(data)
        program.attacked("train", made.inputs / "config.toml", "--data", place, "--out", folder / f"run-{number}", "--steps", 2)
        program.attacked("gallery", "build", "--data", place, "--out", folder / f"gallery-{number}")
        program.attacked("embed", place / "a.parquet", "--encoder", ENCODER, "--out", folder / f"again-{number}")
        for name in ("run", "gallery", "again", "shards"):
            shutil.rmtree(folder / f"{name}-{number}", ignore_errors=True)

    program.run("batch", "plan", ROOT / "parity/photo/files", "--task", "check", "--out", folder / "job")

    def job(number: int) -> None:
        place = folder / f"hurt-{number}"
        wounded(random.Random(SEED + number), folder / "job", place)
        program.attacked("batch", "status", place)
        program.attacked("batch", "run", place)
        program.attacked("batch", "finish", place)

    jobs += [lambda number=number, data=data: tar(number, data) for number, data in enumerate(tars)]
    jobs += [lambda number=number: parquet(number) for number in range(arena.some(100, 6))]
    jobs += [lambda number=number: job(number) for number in range(arena.some(40, 2))]
    program.together(jobs[:: arena.some(1, 5)])
    result.check(not (folder.parent / "climbed.jpg").exists() and not Path("/climbed.jpg").exists(), "a tar wrote outside of its folder")


# A full disk.


@attack("full disk", "`embed`, `train`, `gallery build`, `calibrate` and `scan` on a file system of 0 to 110 % of what they write; then the same command with room", area="program", holds="the command fails with an error or is complete; the next run ends with the result of a run with room")
def _(arena: Arena, result: Result) -> None:
    program = Program(arena, result)
    made = program.prepared()
    disk = program.folder / "disk"
    disk.mkdir()
    made.out = disk / "out"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], capture_output=True).returncode == 0
    result.facts["made by"] = "a small tmpfs" if mounted else "RLIMIT_FSIZE"

    def room(size: int | None) -> None:
        if mounted:
            subprocess.run(["mount", "-o", f"remount,size={size if size is not None else 64 * MIB}", str(disk)], check=True, capture_output=True)

    try:
        for scenario in faults.scenarios(made)[:: arena.some(1, 4)]:
            room(None)
            made.fresh(scenario)
            before = used(disk)
            made.prepared(scenario.first)
            wanted, whole = scenario.digest(made.out), used(disk)
            for step in range(arena.some(12, 2)):
                size = int(before + (whole - before) * step / 10)
                room(None)
                made.fresh(scenario)
                room(max(4096, size // 4096 * 4096) if mounted else None)
                done = limited(made, scenario.first, None if mounted else max(1, (size - before) // 3))
                result.count += 1
                result.panics += b"panicked" in done[1]
                result.check(b"panicked" not in done[1] and done[0] in (0, 1, 2), f"{scenario.name}, {step * 10} %: ended with {done[0]}: {done[1][:300]!r}")
                room(None)
                again = (0, b"")
                if done[0] != 0:
                    again = limited(made, scenario.again, None)
                try:
                    found = scenario.digest(made.out)
                except Exception as error:  # noqa: BLE001: whatever is wrong with the result
                    found = repr(error)
                same = found == wanted
                result.facts["lost rows"] = int(result.facts.get("lost rows", 0)) + (not same)  # type: ignore[call-overload]
                result.check(same, f"{scenario.name}, {step * 10} %: ended with {done[0]} ({done[1][:200]!r}), then {again[0]} ({again[1][:200]!r}); the result differs")
    finally:
        if mounted:
            subprocess.run(["umount", str(disk)], capture_output=True)


def used(disk: Path) -> int:
    status = os.statvfs(disk)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def limited(made: faults.Faults, arguments: list[str], file_size: int | None) -> tuple[int, bytes]:
    def prepared() -> None:
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = subprocess.run([str(made.program), *arguments], cwd=made.inputs, env=made.environment, capture_output=True, timeout=300, preexec_fn=prepared)
    return done.returncode, done.stderr
