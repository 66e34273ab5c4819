"""The training step of `main.rs` in PyTorch: the same network, batch, objective and optimiser.

Usage: torch_step.py MAX_DEGREE THREADS SECONDS; prints one JSON object.
"""

import json
import math
import sys
import time

import torch
from torch import nn

max_degree, threads, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
torch.set_num_threads(threads)
torch.manual_seed(0)
BATCH, CONDITION, TIME, ANCHORS, FREQUENCY = 512, 768, 200, 2048, 5.0
d = (max_degree + 1) ** 2


def linear(inputs, outputs, gain, bias):
    layer = nn.Linear(inputs, outputs, bias=bias)
    bound = gain * math.sqrt(3 / inputs)
    nn.init.uniform_(layer.weight, -bound, bound)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class SirenModule(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.from_input = linear(inputs, outputs, 1.0, False)
        self.from_condition = linear(CONDITION, outputs, 1.0, False)
        self.from_time = linear(TIME, 2 * outputs, 0.02, True)
        self.out = linear(outputs, outputs, 1 / (math.sqrt(2) * FREQUENCY), True)

    def forward(self, x, condition, time):
        scale, shift = self.from_time(time).chunk(2, 1)
        hidden = (1 + scale) * self.from_input(x) + shift + self.from_condition(condition)
        return torch.sin(FREQUENCY * self.out(hidden))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [d, d // 2, d // 4]
        inputs = [d] + widths[:-1]
        self.down = nn.ModuleList(SirenModule(i, o) for i, o in zip(inputs, widths))
        up_inputs = [d // 4, 2 * (d // 4), 2 * (d // 2)]
        self.up = nn.ModuleList(SirenModule(i, o) for i, o in zip(up_inputs, widths[::-1]))
        self.head = linear(2 * d, d, 0.02, True)

    def forward(self, x, condition, time):
        time = nn.functional.silu(time)
        skips = []
        for module in self.down:
            x = module(x, condition, time)
            skips.append(x)
        for module in self.up:
            x = torch.cat([module(x, condition, time), skips.pop()], 1)
        return self.head(x)


denoiser = Denoiser()
# PyTorch's own single-pass AdamW: its fastest on a CPU.
optimizer = torch.optim.AdamW(
    denoiser.parameters(), lr=1e-4, betas=(0.9, 0.99), weight_decay=5e-4, fused=True
)
x = torch.randn(BATCH, d)
condition = torch.randn(BATCH, CONDITION)
times = torch.randn(BATCH, TIME)
truth = torch.randn(BATCH, d) / math.sqrt(4 * math.pi)
anchors = torch.randn(ANCHORS, d) / math.sqrt(4 * math.pi)


def step():
    optimizer.zero_grad(set_to_none=True)
    output = denoiser(x, condition, times)
    mine = torch.log_softmax(output @ anchors.T, 1)
    theirs = torch.log_softmax(truth @ anchors.T, 1)
    # KL(mine ‖ theirs).
    loss = nn.functional.kl_div(theirs, mine, log_target=True, reduction="batchmean")
    loss.backward()
    optimizer.step()


for _ in range(2):
    step()
laps, began = [], time.perf_counter()
while time.perf_counter() - began < seconds or len(laps) < 3:
    lap = time.perf_counter()
    step()
    laps.append(time.perf_counter() - lap)
laps.sort()
print(
    json.dumps(
        {
            "ms": 1e3 * laps[len(laps) // 2],
            "steps": len(laps),
            "parameters": sum(p.numel() for p in denoiser.parameters()),
            "torch": torch.__version__,
        }
    )
)
