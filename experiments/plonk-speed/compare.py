"""The package's sampler and ours on the same network, in turn, on the same threads. The last line is one JSON object."""

import argparse
import json
import subprocess
import time
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402

import plonk.pipe  # noqa: E402
from plonk.models.pretrained_models import Plonk  # noqa: E402
from plonk.models.samplers.riemannian_flow_sampler import riemannian_flow_sampler  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("network")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--exact-points", type=int, default=2600)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = Plonk.from_pretrained(options.network).eval().requires_grad_(False)
    scheduler = plonk.pipe.scheduler_fn("sigmoid", -7, 3, 1.0)
    noise = torch.nn.functional.normalize(torch.randn(options.samples, 3), dim=-1)
    embedding = torch.randn(1, model.cond_mapper.in_features).repeat(options.samples, 1)

    def theirs():
        began = time.perf_counter()
        with torch.inference_mode():
            riemannian_flow_sampler(
                model, {"y": noise, "emb": embedding}, conditioning_keys="emb", scheduler=scheduler, num_steps=options.steps
            )
        return time.perf_counter() - began

    def ours(*points):
        command = [options.program, options.network, options.samples, options.steps, 1, *points]
        environment = {"RAYON_NUM_THREADS": str(options.threads)}
        output = subprocess.run([str(part) for part in command], env=environment, check=True, capture_output=True, text=True)
        return json.loads(output.stdout)

    theirs()
    # In turn, because the machine is not always as fast.
    pairs = [(theirs(), ours()["sample_s"]) for _ in range(options.rounds)]
    ratios = sorted(theirs / ours for theirs, ours in pairs)
    exact = ours(options.exact_points)
    print(f"| {options.samples} samples × {options.steps} steps, {options.threads} threads | seconds, best of {options.rounds} |")
    print("|---|---|")
    print(f"| diff-plonk (PyTorch {torch.__version__}) | {min(pair[0] for pair in pairs):.2f} |")
    print(f"| ours | {min(pair[1] for pair in pairs):.2f} |")
    print(f"| ours, exact density, {exact['exact_points']} points × 96 evaluations | {exact['exact_s']:.1f} |")
    print()
    figures = {
        "samples": options.samples, "steps": options.steps, "threads": options.threads,
        "plonk_s": min(pair[0] for pair in pairs), "ours_s": min(pair[1] for pair in pairs),
        "sample_over_plonk": ratios[len(ratios) // 2], "exact_s": exact["exact_s"], "exact_points": exact["exact_points"],
    }
    print(json.dumps(figures))


main()
