"""Runs the programs of this experiment, several rounds in turn where time is measured: see `run`."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

programs, python, folder = (pathlib.Path(argument).absolute() for argument in sys.argv[1:4])
quick = "--quick" in sys.argv
here = pathlib.Path(__file__).parent
steps = 10 if quick else 50
rounds, seconds = (1, 2) if quick else (5, 6)


def run(*command, **variables):
    environment = os.environ | {key: str(value) for key, value in variables.items()}
    answer = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(answer.stdout.splitlines()[-1])


figures = run(programs / "replicas", folder / "runs", steps)
print("# Replicas\n")
print(
    f"The same {figures['steps']} steps with dropout by 1, 2 and 4 replicas of one thread, each batch cut into {figures['slices']} slices. "
    f"Weights, averaged weights and Adam's memory ({figures['numbers']:,} numbers) differ by {figures['parameter_difference']:g}; "
    f"after two replicas were resumed by one and by four, by {figures['resume_difference']:g}.\n"
)
if not python.exists():
    print("PyTorch is not installed: run experiments/run replicas once without --quick", file=sys.stderr)
    figures |= dict.fromkeys(("ratio_d576_t2", "ratio_d2304_t2", "torchrun_gradient_difference"))
else:
    print(f"A step on two threads (a replica has one), batch 512, medians of {rounds} rounds in turn. Runs that don't set `run.slices` have 4:\n")
    print("| d | two replicas, 2 slices, ms | two replicas, 4 slices, ms | no replicas, ms | PyTorch, ms | the first three over PyTorch |")
    print("|---|---|---|---|---|---|")
    speed, step = programs / "train-speed", here.parent / "speed/train-speed/torch_step.py"
    for max_degree in (23, 47):
        columns = {"2 slices": [], "4 slices": [], "whole": [], "torch": []}
        for _ in range(rounds):
            two = {"RAYON_NUM_THREADS": 2, "OMP_NUM_THREADS": 2}
            for slices in (2, 4):
                columns[f"{slices} slices"].append(run(speed, max_degree, seconds, 2, slices, **two)["ms"])
            columns["torch"].append(run(python, step, max_degree, 2, seconds, **two)["ms"])
            columns["whole"].append(run(speed, max_degree, seconds, **two)["ms"])
        # Each round's programs ran one after the other: their ratio suffers least from the neighbours.
        ratio = {name: statistics.median(a / b for a, b in zip(columns[name], columns["torch"])) for name in columns}
        d = (max_degree + 1) ** 2
        figures[f"ratio_d{d}_t2"] = round(ratio["2 slices"], 3)
        figures[f"ratio_d{d}_t2_4_slices"] = round(ratio["4 slices"], 3)
        times = " | ".join(f"{statistics.median(values):.0f}" for values in columns.values())
        ratios = ", ".join(f"{ratio[name]:.2f}" for name in ("2 slices", "4 slices", "whole"))
        print(f"| {d} | {times} | {ratios} |", flush=True)
    shutil.rmtree(folder / "ranks", ignore_errors=True)
    subprocess.run([programs / "python-reference", "ranks", folder / "ranks"], check=True)
    torchrun = (python, "-m", "torch.distributed.run", "--nproc-per-node", 2, "--standalone")
    path = {"PYTHONPATH": folder / "python"}
    ranks = run(*torchrun, here / "ranks.py", folder / "ranks", **path)
    figures["torchrun_gradient_difference"] = ranks["torchrun_gradient_difference"]
    print(
        f"\nTwo ranks of PyTorch (gloo) read the same global batch by the Rust loader (rows differ by {ranks['row_difference']:g}); their mean "
        f"gradient differs from Rust's by {ranks['torchrun_gradient_difference']:.1e}, relative to the largest entry of each array."
    )
print()
print(json.dumps(figures))
