"""The moving average of weights, which is what a training run gives out."""

import copy

import torch
from torch import Tensor, nn

from ._model import LocDiff


class MovingAverage(nn.Module):
    """An exponential moving average of a model's weights. Early on it is over the steps that there were.

    Call ``update`` after each step of the optimizer; ``model`` is the averaged model. Under ``DistributedDataParallel`` pass
    ``model.module``.
    """

    steps: Tensor

    def __init__(self, model: LocDiff, decay: float = 0.999) -> None:
        super().__init__()
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def update(self, model: LocDiff) -> None:
        """Moves the average towards the weights of ``model``."""
        self.steps += 1
        steps = int(self.steps)
        share = 1.0 - min(self.decay, steps / (10.0 + steps))
        for average, weights in zip(self.model.parameters(), model.parameters(), strict=True):
            average.lerp_(weights.to(average), share)
        for copied, buffer in zip(self.model.buffers(), model.buffers(), strict=True):
            copied.copy_(buffer)
