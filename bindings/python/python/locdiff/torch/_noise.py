"""The noise from which ``locdiff`` starts: the same numbers as Rust's ``ChaCha8Rng`` and ``StandardNormal`` for a seed.

In one pass the network is asked at the highest noise level, so its answer depends a little on the noise there. With the same
noise the answers are the same.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

_MASK = 0xFFFF_FFFF
# The ziggurat's outermost abscissa, and the area of each of its 256 layers.
_R, _AREA = 3.654152885361008796, 0.00492867323399


def starting_noise(count: int, seed: int = 0) -> Tensor:
    """So many standard normal numbers."""
    numbers = _chacha8(seed)
    return torch.tensor([_normal(numbers) for _ in range(count)], dtype=torch.float64).float()


def _normal(numbers: Iterator[int]) -> float:
    """One number by the ziggurat method."""
    while True:
        bits = next(numbers)
        layer, u = bits & 0xFF, (bits >> 12) * 2.0**-51 - 1.0
        x = u * _X[layer]
        if abs(x) < _X[layer + 1]:
            return x
        if layer == 0:
            return _tail(numbers, u)
        if _F[layer + 1] + (_F[layer] - _F[layer + 1]) * (next(numbers) >> 11) * 2.0**-53 < math.exp(-0.5 * x * x):
            return x


def _tail(numbers: Iterator[int], u: float) -> float:
    x, y = 1.0, 0.0
    while -2.0 * y < x * x:
        x = math.log(((next(numbers) >> 12) + 0.5) * 2.0**-52) / _R
        y = math.log(((next(numbers) >> 12) + 0.5) * 2.0**-52)
    return x - _R if u < 0.0 else _R - x


def _ziggurat() -> tuple[list[float], list[float]]:
    def density(x: float) -> float:
        return math.exp(-0.5 * x * x)

    x = [_AREA / density(_R), _R]
    while len(x) < 256:
        x.append(math.sqrt(-2.0 * math.log(_AREA / x[-1] + density(x[-1]))))
    x.append(0.0)
    return x, [density(value) for value in x]


_X, _F = _ziggurat()


def _chacha8(seed: int) -> Iterator[int]:
    """Numbers of 64 bits by ChaCha with 8 rounds."""
    key = []
    for _ in range(8):  # by PCG32
        seed = (seed * 0x5851_F42D_4C95_7F2D + 0xA176_54E4_6FBE_17F3) & 0xFFFF_FFFF_FFFF_FFFF
        shifted, turn = (((seed >> 18) ^ seed) >> 27) & _MASK, seed >> 59
        key.append(((shifted >> turn) | (shifted << (32 - turn))) & _MASK)
    block = 0
    while True:
        start = [0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574, *key, block & _MASK, block >> 32, 0, 0]
        state = list(start)
        for _ in range(4):
            for a, b, c, d in _COLUMNS_AND_DIAGONALS:
                for i, j, k, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    state[i] = (state[i] + state[j]) & _MASK
                    mixed = state[k] ^ state[i]
                    state[k] = ((mixed << turn) | (mixed >> (32 - turn))) & _MASK
        words = [(a + b) & _MASK for a, b in zip(state, start, strict=True)]
        for low, high in zip(words[::2], words[1::2], strict=True):
            yield low | high << 32
        block += 1


_COLUMNS_AND_DIAGONALS = (
    *((k, k + 4, k + 8, k + 12) for k in range(4)),
    *((k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4) for k in range(4)),
)
