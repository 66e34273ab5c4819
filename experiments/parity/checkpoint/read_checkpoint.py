"""Runs a LocDiff network from its files with numpy alone, and compares with what Rust computed.

The format is described in docs/model-format.md; this is that page in code.
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file


def forward(config, weights, x, condition, steps):
    """x [batch, d], condition [batch, c], steps [batch] -> [batch, d]"""
    half = config["time_size"] // 2
    frequencies = np.float32(10_000.0) ** -(np.arange(half, dtype=np.float32) / np.float32(half))
    angles = steps[:, None].astype(np.float32) * frequencies
    time = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    time = time / (1 + np.exp(-time))  # silu

    def linear(name, value):
        result = value @ weights[f"{name}.weight"]  # matrices are [input, output]
        bias = weights.get(f"{name}.bias")
        return result if bias is None else result + bias

    def module(name, value):
        scale, shift = np.split(linear(f"{name}.from_time", time), 2, axis=1)
        hidden = (1 + scale) * linear(f"{name}.from_input", value) + shift
        hidden = hidden + linear(f"{name}.from_condition", condition)
        return np.sin(config["frequency"] * linear(f"{name}.out", hidden))

    hidden, skips = x, []
    for k in range(config["depth"] + 1):
        hidden = module(f"down.{k}", hidden)
        skips.append(hidden)
    for k in range(config["depth"] + 1):
        hidden = np.concatenate([module(f"up.{k}", hidden), skips.pop()], axis=1)
    if config["head_rank"] is not None:
        hidden = linear("head.narrow", hidden)
    return linear("head.out", hidden)


def main(directory):
    worst, count = 0.0, 0
    for folder in sorted(Path(directory).iterdir()):
        file = json.loads((folder / "config.json").read_text())
        assert (file["format"], file["version"], file["kind"]) == ("locdiff-model", 2, "diffusion")
        config = file["denoiser"]
        weights = load_file(folder / "model.safetensors")
        case = json.loads((folder / "case.json").read_text())
        steps = np.array(case["steps"])
        d = (config["max_degree"] + 1) ** 2
        x = np.array(case["x"], dtype=np.float32).reshape(-1, d)
        condition = np.array(case["condition"], dtype=np.float32).reshape(-1, config["condition_size"])
        expected = np.array(case["output"], dtype=np.float32).reshape(-1, d)
        found = forward(config, weights, x, condition, steps)
        error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        print(f"{folder.name}: {len(weights)} tensors, relative error {error:.1e}")
        worst, count = max(worst, float(error)), count + 1
    assert worst < 1e-5, worst
    print(json.dumps({"n": count, "relative_error": worst}))


main(sys.argv[1])
