"""Follows README and book word for word: every `sh` and `python` block is run in a new clone, with a wheel in an empty environment and without a network.

Each page has a clone and a home of its own; its blocks run one after the other. Blocks after `<!-- background -->` run until the page ends. Before blocks after
`<!-- files: NAME -->`, files are made that stand in for the reader's, as STAND_INS says. Blocks after `<!-- not run: REASON -->` are skipped, for the reasons of
SKIPPED only.

The last line of standard output is one JSON object: `commands` (blocks that were run), `failed`, `skipped` (by reason), `first_map_s` (from the installation of the wheel to
the map of the first block of README), `readme_words` (of README's text, without code, tables of links and addresses). The run over all pages writes result.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What is not there: the network (published models, data and maps), CUDA and Metal, the package index, clusters, a compiler, hours.
SKIPPED = {"hub", "GPU", "package index", "cluster", "compiler", "hours"}
# Commands that make what the reader of a block is taken to have.
STAND_INS = {
    "evaluation": """
        for name in im2gps3k_places365 truth; do cp parity/scores/evaluation/truth.csv $name.csv; done
        cp parity/scores/evaluation/geoclip.csv answers.csv
        sed 's/,3/,4/' answers.csv > baseline.csv
        mkdir views && cp examples/*.jpg views
        printf 'image,latitude,longitude\nmadagascar.jpg,-19,46.5\nsinai.jpg,27.5,34\n' > views/manifest.csv
        locdiff embed views/manifest.csv --encoder examples/models/earth/encoder --out embeddings/test
        mkdir -p runs/first && cp -r examples/models/earth runs/first/model
    """,
    "leakage": """
        cp parity/scores/evaluation/truth.csv im2gps3k.csv
        (echo LAT,LON; tail -n +2 im2gps3k.csv | cut -d, -f2,3) > coordinates_100K.csv
        for name in im2gps3k mp16; do cp -r embeddings/test embeddings/$name; done
    """,
    "new photograph": "cp other-trips/000001.jpg new.jpg",
    "trip": """
        mkdir -p ~/Pictures/peru-2019 && cp examples/*.jpg ~/Pictures/peru-2019
        echo '<gpx version="1.1"><trk><trkseg><trkpt lat="-13.5" lon="-72"><time>2019-08-01T12:00:00Z</time></trkpt></trkseg></trk></gpx>' > trip.gpx
    """,
}
BLOCK = re.compile(r"(?:^ *<!-- (?P<mark>[^\n]*?) -->\n)?^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
LONGEST_S = 1800


@dataclass
class Block:
    page: str
    line: int
    language: str
    code: str
    mark: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = []
    for match in BLOCK.finditer(text):
        if match["language"] not in ("sh", "bash", "console", "python"):
            continue
        indent = match["indent"]
        code = "\n".join(line.removeprefix(indent) for line in match["code"].splitlines())
        line = text.count("\n", 0, match.start("code"))
        found.append(Block(str(page.relative_to(ROOT)), line, match["language"], code, match["mark"]))
    return found


def pages() -> list[Path]:
    """README, then the book in its order."""
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    listed = [ROOT / "docs" / name for name in re.findall(r"\]\(([^)#]+\.md)\)", summary)]
    return list(dict.fromkeys([ROOT / "README.md", *(page for page in listed if page.exists())]))


def words(page: Path) -> int:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->|\]\([^)]*\)|<http[^>]*>|[|`*#]", " ", text, flags=re.DOTALL)
    return sum(any(sign.isalnum() for sign in word) for word in text.split())


class Follower:
    def __init__(self, wheel: Path, scratch: Path) -> None:
        self.scratch = scratch
        self.venv = scratch / "venv"
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "venv", str(self.venv)], check=True)
        subprocess.run([str(self.venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--no-index", str(wheel)], check=True)
        self.install_s = time.monotonic() - began
        self.failures: list[str] = []
        # Of each page: the seconds that its blocks took.
        self.seconds: Counter[str] = Counter()

    def follow(self, page: list[Block]) -> None:
        home = self.scratch / "home"
        clone = self.scratch / "locdiff"
        for old in (home, clone):
            shutil.rmtree(old, ignore_errors=True)
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", "--local", str(ROOT), str(clone)], check=True)
        environment = {"HOME": str(home), "PATH": f"{self.venv}/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
        # One network for the page: a server of one block answers the next.
        inside = subprocess.Popen(["unshare", "--net", "bash", "-c", "ip link set lo up; exec sleep infinity"], env=environment)
        time.sleep(0.3)
        background: list[subprocess.Popen[bytes]] = []
        try:
            for block in page:
                if name := stand_ins(block.mark):
                    made = Block(block.page, block.line, "sh", STAND_INS[name], None)
                    if not self.try_block(made, inside_of(inside, ["bash", "-euo", "pipefail", "-c", made.code]), clone, environment):
                        continue
                run = ["bash", "-euo", "pipefail", "-c", block.code] if block.language != "python" else [str(self.venv / "bin/python"), "-c", block.code]
                command = inside_of(inside, run)
                if block.mark == "background":
                    background.append(subprocess.Popen(command, cwd=clone, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True))
                    time.sleep(2)
                    continue
                self.try_block(block, command, clone, environment)
        finally:
            for process in background:
                if process.poll() not in (None, 0):
                    self.failures.append(f"{page[0].page}: a block in the background ended with {process.returncode}")
                else:
                    os.killpg(process.pid, signal.SIGTERM)
                process.wait()
            inside.kill()
            inside.wait()

    def try_block(self, block: Block, command: list[str], clone: Path, environment: dict[str, str]) -> bool:
        began = time.monotonic()
        try:
            done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, timeout=LONGEST_S, stdin=subprocess.DEVNULL)
            wanted = int(block.mark.removeprefix("exit code ")) if (block.mark or "").startswith("exit code ") else 0
            outcome = "ok" if done.returncode == wanted else f"FAILED with {done.returncode}: {done.stderr[-1500:]}"
        except subprocess.TimeoutExpired:
            outcome = f"FAILED: longer than {LONGEST_S} s"
        seconds = time.monotonic() - began
        self.seconds[block.page] += seconds
        print(f"{seconds:6.1f} s  {block.page}:{block.line}  {outcome}", file=sys.stderr, flush=True)
        if outcome != "ok":
            self.failures.append(f"{block.page}:{block.line}")
        return outcome == "ok"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--quick", action="store_true", help="README only")
    parser.add_argument("--page", action="append", help="pages whose path contains this, in the order given; may be repeated")
    arguments = parser.parse_args()
    found = {page: blocks(page) for page in pages()}
    wrong = [f"{block.page}:{block.line}" for page in found.values() for block in page if block.mark and not is_known(block.mark)]
    if wrong:
        raise SystemExit(f"marks that mean nothing: {wrong}")
    skipped = Counter(block.mark.removeprefix("not run: ") for page in found.values() for block in page if (block.mark or "").startswith("not run"))
    to_run = {page: [block for block in page_blocks if not (block.mark or "").startswith("not run")] for page, page_blocks in found.items()}
    if arguments.quick:
        to_run = {ROOT / "README.md": to_run[ROOT / "README.md"]}
    if arguments.page:
        to_run = {page: to_run[page] for part in arguments.page for page in to_run if part in str(page)}
    with tempfile.TemporaryDirectory() as scratch:
        follower = Follower(arguments.wheel.resolve(), Path(scratch))
        first_map_s = None
        for page, page_blocks in to_run.items():
            if not page_blocks:
                continue
            if page.name == "README.md":
                first = Block(page_blocks[0].page, page_blocks[0].line, "sh", page_blocks[0].code.splitlines()[0], None)
                began = time.monotonic()
                before = len(follower.failures)
                follower.follow([first])
                first_map_s = follower.install_s + time.monotonic() - began if len(follower.failures) == before else None
            follower.follow(page_blocks)
    result = {
        "commands": sum(map(len, to_run.values())),
        "failed": len(follower.failures),
        "failing": follower.failures,
        "skipped": sum(skipped.values()),
        "skipped_for": dict(skipped),
        "first_map_s": first_map_s and round(first_map_s, 1),
        "readme_words": words(ROOT / "README.md"),
        "pages": len(to_run),
    }
    if not arguments.quick and not arguments.page:
        pages_run = [(page, len(page_blocks)) for page, page_blocks in to_run.items() if page_blocks]
        report(result, [(str(page.relative_to(ROOT)), count, follower.seconds[str(page.relative_to(ROOT))]) for page, count in pages_run], arguments.wheel)
    print(json.dumps(result))


def report(result: dict[str, object], followed: list[tuple[str, int, float]], wheel: Path) -> None:
    figures = "".join(f"| `{name}` | {value} |\n" for name, value in result.items() if not isinstance(value, (dict, list)))
    reasons = "".join(f"| {reason} | {count} |\n" for reason, count in sorted(result["skipped_for"].items(), key=lambda one: -one[1]))
    failing = "".join(f"- {block}\n" for block in result["failing"])
    rows = "".join(f"| {page} | {count} | {seconds:.0f} |\n" for page, count, seconds in followed)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores that others may have used too, {time.strftime('%Y-%m-%d', time.gmtime())}"
    (Path(__file__).parent / "result.md").write_text(
        "# README and book, followed word for word\n\n"
        f"Written by `experiments/run first-minutes` ({machine}; `{wheel.name}`). Every `sh` and `python` block was run in an empty environment with the wheel and without a network, but for those that are skipped. "
        "[reader.md](reader.md) has the sentences that readers had to read twice.\n\n"
        f"| figure | value |\n|---|---|\n{figures}\n"
        + (f"Failed:\n\n{failing}\n" if failing else "")
        + f"| skipped, because of | blocks |\n|---|---|\n{reasons}\n"
        f"| page | blocks | seconds, in the foreground |\n|---|---|---|\n{rows}"
    )  # fmt: skip


def inside_of(network: subprocess.Popen[bytes], command: list[str]) -> list[str]:
    return ["nsenter", "--net", f"--target={network.pid}", *command]


def stand_ins(mark: str | None) -> str | None:
    return mark.removeprefix("files: ") if mark and mark.startswith("files: ") else None


def is_known(mark: str) -> bool:
    return mark == "background" or mark.startswith("exit code ") or mark.removeprefix("not run: ") in SKIPPED or stand_ins(mark) in STAND_INS


if __name__ == "__main__":
    main()
