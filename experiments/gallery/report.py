"""Runs the measurements of one machine and puts them together. Arguments: program, wheel, [--quick] [--rows N]. The last line is JSON."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("wheel")
parser.add_argument("--quick", action="store_true")
parser.add_argument("--rows", type=int, default=3_000_000)
arguments = parser.parse_args()
folder = pathlib.Path("target/experiments/gallery")
folder.mkdir(parents=True, exist_ok=True)
encodings = folder / "encodings.f16"
here = pathlib.Path(__file__).parent
# Whatever is timed runs on one core.
one_core = {**os.environ, "RAYON_NUM_THREADS": "1"}


def figures(*command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=one_core).stdout)


def measure(rows, queries):
    return figures(arguments.program, "measure", arguments.wheel, folder, str(rows), str(queries))


def encode(rows):
    if not encodings.exists() or encodings.stat().st_size < 1024 * rows:
        subprocess.run([arguments.program, "encode", arguments.wheel, folder, str(rows)], check=True)


full = here / "full.json"
if arguments.quick:
    sizes, queries = [1_000_000], 40
    if not (folder / "build-1000000.txt").exists():
        # Encoding a million takes minutes: the first 20,000 are, the others imitate them.
        folder = folder / "quick"
        folder.mkdir(exist_ok=True)
        if not (folder / "build-1000000.txt").exists():
            (folder / "encodings.f16").unlink(missing_ok=True)
            subprocess.run([arguments.program, "imitate", arguments.wheel, folder, "20000", "1000000"], check=True)
        print("The references are simulated: 20,000 encodings of real places, and 980,000 of them with noise.\n")
else:
    sizes, queries = [rows for rows in (100_000, 1_000_000, 3_000_000, 10_000_000) if rows <= arguments.rows], 200
    encode(sizes[-1])
ours, theirs = {}, {}
for rows in sizes:
    ours[rows] = measure(rows, queries)
    # Building its graph takes minutes, and at three million rows an hour.
    if rows <= 1_000_000 and (not arguments.quick or (folder / f"usearch-{rows}.json").exists()):
        theirs[rows] = figures(sys.executable, here / "usearch_hnsw.py", folder, str(rows))

print("# Galleries\n")
print(f"512 numbers per reference; {queries} queries; processor time of one core, on average; opening is wall-clock time, the median of 11.\n")
print("| references | real places / jittered | built per s | open, ms | query, ms | recall (plain, turned away) | in 16 circles, ms | rows in them | recall in them | GB |")
print("|---|---|---|---|---|---|---|---|---|---|")
for rows, found in ours.items():
    print(
        f"| {rows:,} | {found['real_places']:,} / {rows - found['real_places']:,} | {found['build_per_s']:,.0f} | {found['open_ms']:.2f} | {found['query_ms']:.2f} "
        f"| {found['recall']:.4f} ({found['recall_plain']:.4f}, {found['recall_turned']:.4f}) | {found['restricted_ms']:.2f} | {found['restricted_rows']:,.0f} "
        f"| {found['restricted_recall']:.4f} | {found['bytes'] / 1e9:.2f} |"
    )
for rows, found in theirs.items():
    print(
        f"| usearch {found['version']}, {rows:,} | | {found['build_per_s']:,.0f} | | {found['query_ms']:.2f} | {found['recall']:.4f} | | | | {found['gb']:.2f} |"
    )
largest = ours[sizes[-1]]
# What has 1m in its name was measured at a million, or is null.
million, graph = ours.get(1_000_000, {}), theirs.get(1_000_000, {})
if len(sizes) > 1:
    first, last = ours[sizes[-2]], largest
    per_row_ns = 1e6 * (last["query_ms"] - first["query_ms"]) / (last["rows"] - first["rows"])
    bytes_per_row = largest["bytes"] / largest["rows"]
    print(f"\nFrom {first['rows']:,} to {last['rows']:,} references a query takes {per_row_ns:.1f} ns more per reference, and a reference {bytes_per_row:,.0f} bytes. So:")
    print(f"- 100 million: {bytes_per_row / 10:,.0f} GB of files, 6.4 GB of them sketches that every search reads; {per_row_ns / 10:.1f} s on one core.")
    print(f"- 1 billion over ten machines: the same on each of them, and ten lists of hits to merge.")
print()
round_to = lambda number, digits: None if number is None else round(number, digits)
figures = {
    "build_per_s": round_to(largest["build_per_s"], 0),
    "open_ms": round_to(largest["open_ms"], 2),
    "query_ms_1m": round_to(million.get("query_ms"), 2),
    "query_ms_3m": round_to(ours.get(3_000_000, {}).get("query_ms"), 2),
    "recall_1m": round_to(million.get("recall"), 4),
    "restricted_ms_1m": round_to(million.get("restricted_ms"), 2),
    "restricted_recall_1m": round_to(million.get("restricted_recall"), 4),
    "usearch_recall_1m": round_to(graph.get("recall"), 4),
    "gb_per_million": round_to(largest["bytes"] / largest["rows"] / 1e3, 3),
    "n": queries,
}
if arguments.quick:
    # What takes too long is that of the full run.
    committed = json.loads(full.read_text())
    missing = [name for name, figure in figures.items() if figure is None]
    figures |= {name: committed[name] for name in missing} | {"of_full_run": missing}
elif arguments.rows >= 3_000_000:
    full.write_text(json.dumps(figures) + "\n")
print(json.dumps(figures))
