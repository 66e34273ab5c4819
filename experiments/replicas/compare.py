"""Runs the programs of this experiment, several rounds in turn where time is measured: see `run`."""

import json
import os
import pathlib
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
    print(f"A step on two threads, batch 512, medians of {rounds} rounds in turn:\n")
    print("| d | two replicas of one thread, ms | no replicas, two threads, ms | PyTorch, two threads, ms | replicas / PyTorch | no replicas / PyTorch |")
    print("|---|---|---|---|---|---|")
    speed, step = programs / "train-speed", here.parent / "speed/train-speed/torch_step.py"
    for max_degree in (23, 47):
        columns = {"replicas": [], "whole": [], "torch": []}
        for _ in range(rounds):
            two = {"RAYON_NUM_THREADS": 2, "OMP_NUM_THREADS": 2}
            columns["replicas"].append(run(speed, max_degree, seconds, 2, **two)["ms"])
            columns["torch"].append(run(python, step, max_degree, 2, seconds, **two)["ms"])
            columns["whole"].append(run(speed, max_degree, seconds, **two)["ms"])
        # Each round's programs ran one after the other: their ratio suffers least from the neighbours.
        ratio = {
            name: statistics.median(a / b for a, b in zip(columns[name], columns["torch"])) for name in ("replicas", "whole")
        }
        d = (max_degree + 1) ** 2
        figures[f"ratio_d{d}_t2"] = round(ratio["replicas"], 3)
        times = " | ".join(f"{statistics.median(columns[name]):.0f}" for name in ("replicas", "whole", "torch"))
        print(f"| {d} | {times} | {ratio['replicas']:.2f} | {ratio['whole']:.2f} |", flush=True)
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
