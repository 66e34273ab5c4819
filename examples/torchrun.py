"""Trains a model in PyTorch on several processes: CPUs or GPUs, on one host or on many.

    torchrun --nproc-per-node 2 examples/torchrun.py embeddings/train runs/ranks --steps 200

DATA is a directory of shards that `locdiff embed` wrote. OUT becomes a model directory:

    locdiff evaluate --model runs/ranks --data embeddings/test

Every rank reads the shards by the Rust loader and takes its part of each global batch, so the batches don't depend on the
number of ranks. Noise and dropout do: each rank draws its own. Needs `pip install 'locdiff[torch]'`.
"""

import argparse
import os

import torch
import torch.distributed as dist
from locdiff.torch import LocDiff, MovingAverage, Shards
from torch.nn.parallel import DistributedDataParallel

arguments = argparse.ArgumentParser()
arguments.add_argument("data")
arguments.add_argument("out")
arguments.add_argument("--steps", type=int, default=200)
arguments.add_argument("--batch", type=int, default=512, help="rows of all ranks together")
arguments.add_argument("--max-degree", type=int, default=23)
arguments.add_argument("--rate", type=float, default=1e-3)
arguments.add_argument("--seed", type=int, default=0)
options = arguments.parse_args()

cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")

# Weights are the same on all ranks, what follows is not.
torch.manual_seed(options.seed)
shards = Shards(options.data, options.batch, seed=options.seed)
model = LocDiff(max_degree=options.max_degree, condition_size=shards.width, dropout=0.1).to(device)
sample = Shards(options.data, 4096, rank=0, world=1, seed=options.seed, epochs=1)
model.standardize(next(sample)[0])
torch.manual_seed(options.seed + 1 + dist.get_rank())

replica = DistributedDataParallel(model, broadcast_buffers=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.99), weight_decay=5e-4)
average = MovingAverage(model)
for step in range(1, options.steps + 1):
    embeddings, latitude, longitude = (column.to(device) for column in next(shards))
    loss = replica(embeddings, latitude, longitude)
    optimizer.zero_grad()
    loss.backward()  # and the mean of the gradients over the ranks
    torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    average.update(model)
    if dist.get_rank() == 0 and step % 50 == 0:
        print(f"step {step}: {loss.item():.3f} nats", flush=True)

if dist.get_rank() == 0:
    facts = {"steps": options.steps, "batch": options.batch, "rows": shards.rows}
    average.model.save(options.out, encoder=shards.encoder, training=facts)
    print(f"the model is in {options.out}")
dist.destroy_process_group()
