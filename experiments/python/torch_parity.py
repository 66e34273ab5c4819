"""`locdiff.torch` against the Rust program: network, objective and gradients, and a model trained in PyTorch.

Usage: torch_parity.py PROGRAM FOLDER [--quick]

PROGRAM is `python-reference` (reference.rs), FOLDER is for files that may be deleted. The last line is one JSON object:
`torch_max_difference` is the largest difference of outputs, loss and gradients by all weights, each relative to the largest
entry of its array; `torch_roundtrip` the largest difference of log-density (nats) between PyTorch and Rust, for a model
trained in PyTorch with our objective, saved, and opened by Rust.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import torch
from locdiff.torch import LocDiff, MovingAverage, encode, likelihood_loss, log_density
from locdiff.torch._files import read_tensors, write_tensors
from pyarrow import parquet
from torch import Tensor

ROOT = Path(__file__).parents[2]
EMBEDDINGS = ROOT / "experiments/end-to-end/embeddings"
EXAMPLE = ROOT / "examples/models/earth"
ROWS, PLACES, BATCH = 64, 500, 256


def difference(ours: Tensor, theirs: Tensor) -> float:
    """Relative to the largest entry."""
    return float((ours.detach() - theirs).abs().max() / theirs.abs().max())


def objective_differences(directory: Path) -> dict[str, float]:
    """PyTorch against what Rust wrote beside a model with random weights."""
    case = read_tensors(directory / "case.safetensors")
    model = LocDiff.open(directory)
    latitude, longitude = case["places"].double().T
    steps = case["steps"].long()
    latent = model.noisy(encode(latitude, longitude, model.max_degree).float(), case["noise"], steps)
    condition = model.denoiser.without_some(model.condition(case["embeddings"]), case["keep"])
    # The network apart from the output, in which the evidence of the latent is far larger.
    network = model.denoiser(latent, condition, steps)
    output = model.output(latent, condition, steps)
    grid, angle = model.grid(int(case["grid"])), float(case["angle"].double().sum())
    loss = likelihood_loss(output, latitude, longitude, grid, angle)
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {}
    for name, weights in model.denoiser.named_parameters():
        assert weights.grad is not None
        gradient = weights.grad.T if name.endswith(".weight") else weights.grad
        gradients[name] = difference(gradient, case[f"gradient.{name}"])
    assert len(gradients) == sum(name.startswith("gradient.") for name in case)
    return {
        "latent": difference(latent, case["latent"]),
        "network": difference(network, case["network"]),
        "output": difference(output, case["output"]),
        "one_pass": difference(model.coefficients(case["embeddings"]), case["one_pass"]),
        "loss": difference(loss, case["loss"]),
        "gradient": max(gradients.values()),
    }


def read_embeddings() -> tuple[Tensor, Tensor, Tensor, str]:
    """Embeddings, latitudes, longitudes and the encoder's record."""
    table = parquet.read_table(EMBEDDINGS)
    metadata = parquet.read_metadata(next(EMBEDDINGS.glob("*.parquet"))).metadata
    numbers = table["embedding"].combine_chunks().flatten().to_numpy().astype("float32")
    latitude, longitude = (torch.tensor(table[name].to_numpy()) for name in ("latitude", "longitude"))
    return torch.tensor(numbers).reshape(len(table), -1), latitude, longitude, metadata[b"locdiff.encoder"].decode()


def train(steps: int) -> tuple[LocDiff, float]:
    """A model like that of experiments/end-to-end/example.toml, and its mean loss over the last steps."""
    torch.manual_seed(1)
    embeddings, latitude, longitude, _ = read_embeddings()
    model = LocDiff(max_degree=23, condition_size=embeddings.shape[1], bottleneck=128, head_rank=128, dropout=0.1)
    model.standardize(embeddings)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=5e-4)
    average, losses = MovingAverage(model), []
    for _ in range(steps):
        rows = torch.randint(len(embeddings), (BATCH,))
        loss = model(embeddings[rows], latitude[rows], longitude[rows])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        average.update(model)
        losses.append(loss.item())
    last = losses[-20:]
    return average.model, sum(last) / len(last)


def density_difference(program: str, folder: Path, directory: Path) -> dict[str, float]:
    """Log-densities of Rust and PyTorch for a model directory, at random places and at the true ones."""
    embeddings, latitude, longitude, _ = read_embeddings()
    rows = torch.randperm(len(embeddings), generator=torch.Generator().manual_seed(2))[:ROWS]
    uniform = torch.rand(2, PLACES, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    latitudes = torch.cat([torch.rad2deg(torch.asin(2 * uniform[0] - 1)), latitude[rows]])
    longitudes = torch.cat([360 * uniform[1] - 180, longitude[rows]])
    questions, answers = folder / "questions.safetensors", folder / "answers.safetensors"
    places = torch.stack([latitudes, longitudes], 1)
    write_tensors(questions, {"embeddings": embeddings[rows], "places": places})
    subprocess.run([program, "density", directory, questions, answers], check=True)
    theirs = read_tensors(answers)
    model = LocDiff.open(directory)
    with torch.no_grad():
        ours = log_density(model.coefficients(embeddings[rows]), latitudes, longitudes)
        # Rust's coefficients with PyTorch's integral: what is left is the integral's.
        integral = log_density(theirs["coefficients"], latitudes, longitudes)
        # How far each is from the same network in 64 bits: what 32 bits allow.
        exact = log_density(model.double().coefficients(embeddings[rows]), latitudes, longitudes)
    rust = theirs["log_density"]

    def largest(a: Tensor, b: Tensor) -> float:
        return float((a - b).abs().max())

    return {
        "largest": largest(ours, rust),
        "median": float((ours - rust).abs().median()),
        "integral_alone": largest(integral, rust),
        "rust_from_64_bits": largest(rust, exact),
        "torch_from_64_bits": largest(ours, exact),
        "highest_log_density": float(rust.max()),
    }


def main() -> None:
    program, folder, quick = sys.argv[1], Path(sys.argv[2]), "--quick" in sys.argv
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([program, "objective", folder / "objective"], check=True)
    cases = {path.name: objective_differences(path) for path in sorted((folder / "objective").iterdir())}
    print(json.dumps(cases, indent=2), file=sys.stderr)
    steps, began = 20 if quick else 200, time.perf_counter()
    model, loss = train(steps)
    seconds = time.perf_counter() - began
    embeddings, _, _, encoder = read_embeddings()
    facts = {"steps": steps, "batch": BATCH, "rows": len(embeddings)}
    model.save(folder / "trained", encoder=encoder, training=facts)
    trained = density_difference(program, folder, folder / "trained")
    example = density_difference(program, folder, EXAMPLE)
    result = {
        "torch_max_difference": max(value for case in cases.values() for value in case.values()),
        "torch_roundtrip": trained["largest"],
        "cases": cases,
        "trained": {"steps": steps, "seconds": round(seconds, 1), "last_loss_nats": round(loss, 3), **trained},
        "rust_model_in_torch": example,
        "torch": torch.__version__,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
