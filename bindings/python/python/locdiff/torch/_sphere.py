"""Spherical harmonics at places, and functions on grids.

Convention as in the Rust crate ``locdiff-sphere``: real orthonormal harmonics without Condon-Shortley phase; (l, m) sits at
index l² + l + m; m < 0 is the sine, m > 0 the cosine part. Harmonics are computed in 64 bits.
"""

import math

import torch
from torch import Tensor, nn


def encode(latitude: Tensor, longitude: Tensor, max_degree: int) -> Tensor:
    """All harmonics up to ``max_degree`` at places in degrees: ``[places, (max_degree + 1)²]``, 64 bits.

    >>> encode(torch.tensor([48.8566]), torch.tensor([2.3522]), 47).shape
    torch.Size([1, 2304])
    """
    latitude, longitude = _double(latitude).reshape(-1), _double(longitude).reshape(-1)
    # Latitudes of the south follow from those of the north: p_lm(π − θ) = (−1)^(l+m) p_lm(θ).
    theta = torch.deg2rad(90.0 - latitude.abs())
    sine, one_minus_cosine = torch.sin(theta)[:, None], 2.0 * torch.sin(0.5 * theta)[:, None] ** 2
    mirror = torch.where(latitude < 0, -1.0, 1.0).to(latitude)[:, None]
    orders = torch.arange(max_degree + 1, dtype=torch.float64, device=latitude.device)
    angles = torch.deg2rad(longitude)[:, None] * orders  # [places, order]
    cosines, sines = torch.cos(angles), torch.sin(angles)
    seed = torch.full_like(sine, 1.0 / math.sqrt(4.0 * math.pi))
    values = differences = seed[:, :0]  # p_lm for m < l, and how far they are from their growth at the pole
    degrees = []
    for degree in range(max_degree + 1):
        if degree > 0:
            m = orders[:degree]
            ratio = (2.0 * degree + 1.0) / (2.0 * degree - 1.0)
            growth = torch.sqrt(ratio * (degree + m) / (degree - m))
            memory = torch.sqrt(ratio / ((degree + m) * (degree - m))) * (degree - m - 1.0)
            grown = growth * values
            differences = memory * (differences - one_minus_cosine * values) - one_minus_cosine * grown
            values = grown + differences
            seed = seed * sine * math.sqrt(3.0 if degree == 1 else (2.0 * degree + 1.0) / (2.0 * degree))
        values = torch.cat([values, seed], 1)  # [places, order 0 … degree]
        differences = torch.cat([differences, torch.zeros_like(seed)], 1)
        p = values * mirror ** (degree + orders[: degree + 1])
        odd, even = (p * sines[:, : degree + 1])[:, 1:], p * cosines[:, : degree + 1]
        degrees.append(torch.cat([odd.flip(1), even], 1))  # orders −degree … degree
    return torch.cat(degrees, 1)


class SphereGrid(nn.Module):
    """Values at Gauss-Legendre rings × equispaced longitudes, from coefficients up to ``max_degree``.

    The harmonics separate there: one small matrix product over the degree for each order, then one Fourier product.
    """

    legendre: Tensor
    waves: Tensor
    log_areas: Tensor
    index: Tensor

    def __init__(self, max_degree: int, rings: int, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.max_degree, self.rings, self.longitudes = max_degree, rings, 2 * rings
        degrees = max_degree + 1
        orders = torch.arange(-max_degree, max_degree + 1, dtype=torch.float64)
        colatitudes, weights = _gauss_legendre(rings)
        # On the meridian of Greenwich only the cosines remain: Y_lm = p_lm.
        meridian = encode(90.0 - torch.rad2deg(colatitudes), torch.zeros(rings), max_degree)  # [ring, d]
        padded = torch.cat([meridian, torch.zeros(rings, 1, dtype=torch.float64)], 1)
        # Where (order, degree) stands among the coefficients; the last place if l < |m|.
        degree, order = torch.arange(degrees)[None, :], orders.long()[:, None]
        center = degree * degree + degree
        index = torch.where(order.abs() <= degree, center + order, degrees * degrees)  # [order, degree]
        cosine_index = torch.where(order.abs() <= degree, center + order.abs(), degrees * degrees)
        legendre = padded[:, cosine_index].permute(1, 2, 0)  # [order, degree, ring]
        angles = orders.abs()[:, None] * torch.arange(self.longitudes) * (2.0 * math.pi / self.longitudes)
        waves = torch.where(orders[:, None] < 0, torch.sin(angles), torch.cos(angles))  # [order, longitude]
        areas = weights * (2.0 * math.pi / self.longitudes)
        # Follow from the two numbers, so checkpoints need not store them.
        self.register_buffer("legendre", legendre.to(dtype).contiguous(), persistent=False)
        self.register_buffer("waves", waves.to(dtype), persistent=False)
        self.register_buffer("log_areas", areas.log().repeat_interleave(self.longitudes).to(dtype), persistent=False)
        self.register_buffer("index", index.flatten(), persistent=False)

    def forward(self, coefficients: Tensor, angle: float = 0.0) -> Tensor:
        """F at the nodes ``[batch, ring · longitude]``; the grid is turned eastwards by an angle in radians."""
        batch, orders = len(coefficients), 2 * self.max_degree + 1
        padded = torch.cat([coefficients, coefficients.new_zeros(batch, 1)], 1)
        by_order = padded[:, self.index].reshape(batch, orders, -1).transpose(0, 1)  # [order, batch, degree]
        on_rings = by_order @ self.legendre  # [order, batch, ring]
        turned = self._turned_waves(angle)  # [order, longitude]
        return (on_rings.reshape(orders, -1).T @ turned).reshape(batch, -1)

    def _turned_waves(self, angle: float) -> Tensor:
        turns = torch.arange(-self.max_degree, self.max_degree + 1, dtype=torch.float64) * angle
        cosine, sine = torch.cos(turns)[:, None].to(self.waves), torch.sin(turns)[:, None].to(self.waves)
        # cos m(φ + a) = cos mφ·cos ma − sin mφ·sin ma, and the same for sines: the row of −m is that of the other wave.
        return cosine * self.waves - sine * self.waves.flip(0)


def default_rings(max_degree: int) -> int:
    """Rings that resolve the density of a clean encoding, but at most six per degree."""
    enough = math.ceil(math.pi * math.sqrt(_curvature_of_encoding(max_degree)) / SPACING_PER_SIGMA)
    return min(max(enough, 2 * max_degree + 2), 6 * max(max_degree + 1, 4))


def sharpest(max_degree: int, rings: int) -> float:
    """The sharpest density that a grid resolves, as the factor t of t·Y(place); at most 1, a clean encoding."""
    sigma = math.pi / rings / SPACING_PER_SIGMA
    return min(1.0 / (_curvature_of_encoding(max_degree) * sigma * sigma), 1.0)


# Spacing of the grid over the narrowest standard deviation for which sums over it are good to about 0.01 nat.
SPACING_PER_SIGMA = 1.75


def _curvature_of_encoding(max_degree: int) -> float:
    """−F″ at the peak of an encoding's own function."""
    return sum(k * (k + 1) * (2 * k + 1) for k in range(max_degree + 1)) / (8.0 * math.pi)


def _gauss_legendre(count: int) -> tuple[Tensor, Tensor]:
    """Colatitudes of the nodes from north to south, and their weights, which sum to 2: Newton's method in the angle."""
    guess = math.pi * (4.0 * torch.arange(count, dtype=torch.float64) + 3.0) / (4.0 * count + 2.0)
    theta = guess + 1.0 / (8.0 * count * count * torch.tan(guess))
    slope = torch.ones_like(theta)
    for _ in range(6):
        before, value = torch.zeros_like(theta), torch.ones_like(theta)
        cosine = torch.cos(theta)
        for k in range(1, count + 1):
            before, value = value, ((2 * k - 1) * cosine * value - (k - 1) * before) / k
        slope = count * (cosine * value - before) / torch.sin(theta)  # dP/dθ
        theta = theta - value / slope
    return theta, 2.0 / slope**2


def _double(numbers: Tensor) -> Tensor:
    # Apple's GPUs have no 64 bits.
    return (numbers.cpu() if numbers.device.type == "mps" else numbers).double()
