"""Mixed files through `locdiff embed`: undisturbed, and killed five times on the way. Every file must be accounted for, and both must come to the same rows."""

import csv
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import pyarrow.parquet
import files

quick = "--quick" in sys.argv
count = 600 if quick else 10_000
kills = 2 if quick else 5
program = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "debug/locdiff"
work = pathlib.Path("target/experiments/embed-robustness")
photos = work / f"photos-{count}"
# A tiny CLIP with random weights: what is tested is everything around it.
encoder = "parity/vision/clip-quick-gelu"


def command(out):
    return [program, "embed", photos, "--encoder", encoder, "--out", out, "--json"]


def run(out):
    """To the end, watching memory."""
    process = subprocess.Popen(command(out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stdout, stderr = process.communicate()
    with open(out.with_suffix(".stderr"), "a") as log:
        log.write(stderr)
    return process.returncode, stdout


def peak_mb_of(out, at):
    """Peak memory of a run when it is done with a share of the files: memory is flat if it doesn't grow."""
    process = subprocess.Popen(command(out), stdout=subprocess.DEVNULL, stderr=open(out.with_suffix(".stderr"), "a"))
    peaks, began = [], time.time()
    while process.poll() is None:
        try:
            text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peaks.append((time.time() - began, int(text.split("VmHWM:")[1].split()[0]) / 1024))
        except (FileNotFoundError, IndexError, ProcessLookupError):
            pass
        time.sleep(0.05)
    total = peaks[-1][0]
    return [next(peak for moment, peak in peaks if moment >= share * total) for share in at], total, process.returncode


def rows(out):
    tables = [pyarrow.parquet.read_table(path) for path in sorted(out.glob("*.parquet")) + sorted((out / "without-place").glob("*.parquet"))]
    return [row for table in tables for row in zip(*(table[name].to_pylist() for name in ("id", "latitude", "longitude", "embedding")))]


def skipped(out):
    with open(out / "skipped.csv", newline="") as file:
        return [row for row in csv.reader(file)][1:]


if not photos.exists():
    partial = photos.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    files.make(partial, count)
    partial.rename(photos)
undisturbed, disturbed = work / "undisturbed", work / "disturbed"
for out in (undisturbed, disturbed):
    shutil.rmtree(out, ignore_errors=True)
    out.with_suffix(".stderr").unlink(missing_ok=True)
(half, end), seconds, code = peak_mb_of(undisturbed, (0.5, 1.0))

rng, killed = random.Random(1), 0
while killed < kills:
    process = subprocess.Popen(command(disturbed), stdout=subprocess.DEVNULL, stderr=open(disturbed.with_suffix(".stderr"), "a"))
    try:
        process.wait(rng.uniform(0.5, 1.5) * seconds / (kills + 1))
        break
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        killed += 1
returncode, stdout = run(disturbed)
summary = json.loads(stdout.splitlines()[-1])

a, b = rows(undisturbed), rows(disturbed)
kinds = {}
for row in skipped(undisturbed):
    kinds[row[2]] = kinds.get(row[2], 0) + 1
lost = count - len(a) - len(skipped(undisturbed))
panics = sum(out.with_suffix(".stderr").read_text().count("panicked") for out in (undisturbed, disturbed))
figures = {
    "n": count, "rows": len(a), "skipped": len(skipped(undisturbed)), "lost": lost, "twice": len(a) - len({row[0] for row in a}), "exit_code": code, "kills": killed,
    "same_rows": a == b, "same_skipped": sorted(skipped(undisturbed)) == sorted(skipped(disturbed)), "panics": panics,
    "peak_mb_at_half": round(half), "peak_mb": round(end), "files_per_s": round(count / seconds),
}
print("# Ten thousand mixed files through `locdiff embed`\n" if not quick else "# Some mixed files through `locdiff embed`\n")
print(f"{count} synthetic files, four in five of them good (JPEG, PNG, WebP, GIF, TIFF, BMP; turned, CMYK, grey, with alpha, misnamed), the rest empty, cut short, altered, bombs, not pictures.\n")
print(f"- {len(a)} rows, {len(skipped(undisturbed))} skipped, {lost} lost, none twice: {figures['twice'] == 0}. Skipped by kind: " + ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items())) + ".")
print(f"- Killed (SIGKILL) {killed} times and resumed: the same rows with the same numbers: {figures['same_rows']}; the same files skipped: {figures['same_skipped']}.")
print(f"- Peak memory {half:.0f} MB after half of the time, {end:.0f} MB at the end. Panics: {panics}. Summary of the last resumption: `{json.dumps(summary)}`\n")
print(json.dumps(figures))
good = lost == 0 and figures["twice"] == 0 and code == 0 and returncode == 0 and killed == kills
sys.exit(0 if good and figures["same_rows"] and figures["same_skipped"] and not panics else 1)
