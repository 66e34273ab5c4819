"""Runs both programs in turn, several rounds, and compares medians."""

import json
import os
import pathlib
import statistics
import subprocess
import sys

quick = "--quick" in sys.argv
folder = pathlib.Path(__file__).parent
target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
venv = pathlib.Path("target/experiments/train-speed/venv")
python = venv / "bin/python"
rounds, seconds = (1, 2) if quick else (3, 6)

if not python.exists():
    if quick:
        print("PyTorch is not installed: run experiments/run train-speed once without --quick", file=sys.stderr)
    else:
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch==2.15.0", "numpy"], check=True)


def run(command, threads):
    environment = os.environ | {"RAYON_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(answer.stdout.splitlines()[-1])


figures = {"n": rounds}
print("# A training step, beside PyTorch's\n")
print("The paper's network, batch 512, reverse KL over 2,048 anchors, AdamW; f32. Medians over rounds in turn.\n")
print("| d | threads | ours, ms | PyTorch, ms | ratio | products alone, of ours | gradient / optimiser, ms |")
print("|---|---|---|---|---|---|---|")
for max_degree in (23, 47):
    for threads in (1, 2):
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(run([target / "release/train-speed", str(max_degree), str(seconds)], threads))
            if python.exists():
                theirs.append(run([python, folder / "torch_step.py", str(max_degree), str(threads), str(seconds)], threads))
        middle = lambda runs, name: statistics.median(r[name] for r in runs)
        d = (max_degree + 1) ** 2
        mine = middle(ours, "ms")
        # Each round's two programs ran one after the other: their ratio suffers least from the neighbours.
        ratio = statistics.median(a["ms"] / b["ms"] for a, b in zip(ours, theirs)) if theirs else None
        figures[f"ratio_d{d}_t{threads}"] = ratio and round(ratio, 3)
        parts = " / ".join(f"{middle(ours, name):.0f}" for name in ("gradient_ms", "optimizer_ms"))
        torch_ms = f"{middle(theirs, 'ms'):.0f}" if theirs else "not installed"
        share = middle(ours, "products_ms") / mine
        print(f"| {d} | {threads} | {mine:.0f} | {torch_ms} | {ratio and round(ratio, 2)} | {share:.2f} | {parts} |", flush=True)
print()
print(json.dumps(figures))
