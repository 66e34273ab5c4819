"""Two ranks of PyTorch against Rust: the gradient of one global batch.

Usage: torchrun --nproc-per-node 2 ranks.py FOLDER, where `python-reference ranks FOLDER` wrote shards, a model with random
weights and Rust's gradient. Each rank reads its rows by the Rust loader; noise and levels are those of Rust. Rank 0 prints one
JSON object: the largest difference of a gradient, relative to the largest entry of its array.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from locdiff.torch import LocDiff, Shards, encode
from locdiff.torch._files import read_tensors
from locdiff.torch._objective import loss_of_encodings
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

folder = Path(sys.argv[1])
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
case = read_tensors(folder / "model/case.safetensors")
batch = len(case["embeddings"])
shards = Shards(folder / "data", batch)
embeddings, latitude, longitude = next(shards)
own = slice(rank * batch // world, (rank + 1) * batch // world)


class Loss(nn.Module):
    """The loss with draws that are given."""

    def __init__(self, model: LocDiff) -> None:
        super().__init__()
        self.model = model

    def forward(self, embeddings: Tensor, latitude: Tensor, longitude: Tensor) -> Tensor:
        model, steps = self.model, case["steps"].long()[own]
        truth = encode(latitude, longitude, model.max_degree).float()
        latent = model.noisy(truth, case["noise"][own], steps)
        condition = model.denoiser.without_some(model.condition(embeddings), case["keep"][own])
        grid, angle = model.grid(int(case["grid"])), float(case["angle"].double().sum())
        return loss_of_encodings(model.output(latent, condition, steps), truth, grid, angle)


model = LocDiff.open(folder / "model")
# Kept: without the object nobody averages the gradients.
parallel = DistributedDataParallel(Loss(model))
parallel(embeddings, latitude, longitude).backward()
rows = float((embeddings - case["embeddings"][own]).abs().max())
differences = {}
for name, weights in model.denoiser.named_parameters():
    assert weights.grad is not None
    gradient = weights.grad.T if name.endswith(".weight") else weights.grad
    theirs = case[f"gradient.{name}"]
    differences[name] = float((gradient - theirs).abs().max() / theirs.abs().max())
if rank == 0:
    print(json.dumps({"torchrun_gradient_difference": max(differences.values()), "row_difference": rows, "ranks": world}))
dist.destroy_process_group()
