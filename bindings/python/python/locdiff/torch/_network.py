"""The Conditional Siren U-Net, as ``crates/locdiff/src/diffusion/denoiser.rs`` has it.

A module takes x ``[batch, d_in]``, the condition (an image's embedding) and the embedding of the time step::

    (α, ε) = W_t·silu(time)
    h      = (1 + α) ⊙ W_x·x + ε + W_c·condition          [batch, width]
    out    = dropout(sin(ω·(W_o·h + b)))                   [batch, d_out]
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Denoiser(nn.Module):
    """From noisy coefficients, a condition and time steps to as many numbers as there are coefficients."""

    time_frequencies: Tensor

    def __init__(
        self,
        max_degree: int,
        condition_size: int,
        *,
        time_size: int = 200,
        bottleneck: int | None = None,
        depth: int = 2,
        head_rank: int | None = None,
        dropout: float = 0.0,
        frequency: float = 5.0,
    ) -> None:
        super().__init__()
        d = (max_degree + 1) ** 2
        if d >> depth == 0:
            raise ValueError(f"{d} coefficients cannot be halved {depth} times")
        if time_size % 2 or time_size <= 0:
            raise ValueError(f"time_size {time_size} must be positive and even")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout is {dropout}, it must be at least 0 and less than 1")
        widths = [d >> k for k in range(depth + 1)]  # d, d/2, d/4 …

        def module(inputs: int, outputs: int) -> SirenModule:
            width = bottleneck or outputs
            return SirenModule(inputs, outputs, width, condition_size, time_size, dropout, frequency)

        self.down = nn.ModuleList(map(module, [d, *widths[:-1]], widths))
        # Each module but the first takes its neighbor's output and that of the same width on the way down.
        up_inputs = [widths[-1], *(2 * width for width in widths[:0:-1])]
        self.up = nn.ModuleList(map(module, up_inputs, widths[::-1]))
        self.head = Head(2 * d, d, head_rank)
        # Stands for "no condition".
        self.no_condition = nn.Parameter(torch.randn(condition_size) / math.sqrt(condition_size))
        half = time_size // 2
        exponents = -torch.arange(half, dtype=torch.float32) / half
        frequencies = (10_000.0 ** exponents.double()).float()
        self.register_buffer("time_frequencies", frequencies, persistent=False)

    def forward(self, x: Tensor, condition: Tensor, steps: Tensor) -> Tensor:
        """x is ``[batch, d]``, the condition ``[batch, condition_size]``, ``steps`` has a time step for each row."""
        angles = steps.to(self.time_frequencies)[:, None] * self.time_frequencies
        time = functional.silu(torch.cat([torch.sin(angles), torch.cos(angles)], 1))  # [batch, time]
        skips: list[Tensor] = []
        for module in self.down:
            x = module(x, condition, time)
            skips.append(x)  # [batch, d / 2^k]
        for module in self.up:
            x = torch.cat([module(x, condition, time), skips.pop()], 1)  # [batch, 2·d / 2^k]
        return self.head(x)  # type: ignore[no-any-return]

    def without_some(self, condition: Tensor, keep: Tensor) -> Tensor:
        """The condition with the rows where ``keep`` is false replaced by "no condition"."""
        keep = keep.to(condition)[:, None]
        return condition * keep + self.no_condition * (1.0 - keep)


class SirenModule(nn.Module):
    """One module of the U-Net."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int,
        condition_size: int,
        time_size: int,
        dropout: float,
        frequency: float,
    ) -> None:
        super().__init__()
        self.from_input = _linear(inputs, width, 1.0, bias=False)
        self.from_condition = _linear(condition_size, width, 1.0, bias=False)
        self.from_time = _small_linear(time_size, 2 * width)
        # ω·W_o·h has unit variance: h is the sum of two unit variances at the start.
        self.out = _linear(width, outputs, 1.0 / (math.sqrt(2.0) * frequency), bias=True)
        self.dropout = nn.Dropout(dropout)
        self.frequency = frequency

    def forward(self, x: Tensor, condition: Tensor, time: Tensor) -> Tensor:
        scale, shift = self.from_time(time).chunk(2, 1)  # [batch, width] each
        hidden = (1.0 + scale) * self.from_input(x) + shift + self.from_condition(condition)
        return self.dropout(torch.sin(self.frequency * self.out(hidden)))  # type: ignore[no-any-return]


class Head(nn.Module):
    """The last linear map, of full or low rank."""

    def __init__(self, inputs: int, outputs: int, rank: int | None) -> None:
        super().__init__()
        self.narrow = _linear(inputs, rank, 1.0, bias=False) if rank else None
        self.out = _small_linear(rank or inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.narrow(x) if self.narrow else x)  # type: ignore[no-any-return]


def _linear(inputs: int, outputs: int, gain: float, *, bias: bool) -> nn.Linear:
    """Uniform weights that give outputs of standard deviation ``gain`` for inputs of unit mean square; biases are zero."""
    linear = nn.Linear(inputs, outputs, bias=bias)
    bound = gain * math.sqrt(3.0 / inputs)
    nn.init.uniform_(linear.weight, -bound, bound)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear


def _small_linear(inputs: int, outputs: int) -> nn.Linear:
    """Begins near zero."""
    return _linear(inputs, outputs, 0.02, bias=True)
