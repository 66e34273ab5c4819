"""Likelihood: A(e) − e·Y(place), a proper score of the density exp(e·Y − A(e))."""

import math

import torch
from torch import Tensor

from ._sphere import SphereGrid, default_rings, encode


def likelihood_loss(
    coefficients: Tensor,
    latitude: Tensor,
    longitude: Tensor,
    grid: SphereGrid | None = None,
    angle: float = 0.0,
) -> Tensor:
    """The mean of −log density of true places (degrees), in nats.

    ``coefficients`` is ``[batch, (max_degree + 1)²]``. The normalizing integral A is a sum over ``grid`` turned eastwards by
    ``angle`` (radians); training takes another angle for each batch. Without a grid the default one is made, which takes a
    moment: pass one in a loop.

    The true place is among the nodes with a sixteenth of a node's area. Otherwise a density that is too sharp for the grid
    could hide between its nodes, and the loss would fall without end.

    >>> flat = torch.zeros(1, 16)
    >>> float(likelihood_loss(flat, torch.tensor([10.0]), torch.tensor([20.0])).exp() / (4 * math.pi))
    1.00...
    """
    max_degree = _max_degree(coefficients)
    if grid is None:
        grid = SphereGrid(max_degree, default_rings(max_degree), coefficients.dtype).to(coefficients.device)
    return loss_of_encodings(coefficients, encode(latitude, longitude, max_degree), grid, angle)


def loss_of_encodings(coefficients: Tensor, truth: Tensor, grid: SphereGrid, angle: float) -> Tensor:
    """:func:`likelihood_loss` of places whose harmonics ``[batch, d]`` are known."""
    # Half precision has too few digits for a sum over the sphere.
    with torch.autocast(coefficients.device.type, enabled=False):
        e = coefficients.to(grid.waves.dtype)
        at_truth = (e * truth.to(e)).sum(1)
        values = grid(e, angle).add_(grid.log_areas)  # [batch, node]
        guard = math.log(4.0 * math.pi / (16 * values.shape[1]))
        log_integral = torch.logaddexp(torch.logsumexp(values, 1), at_truth + guard)
        return (log_integral - at_truth).mean()


def log_density(coefficients: Tensor, latitude: Tensor, longitude: Tensor, rings: int | None = None) -> Tensor:
    """log of the density per steradian of each row of ``coefficients`` at each place: ``[batch, places]``.

    In 64 bits, on a grid of ``rings``, by default twice as many as in training. For densities that are sharper than the grid
    resolves, ``locdiff.sphere.Density`` integrates adaptively.
    """
    max_degree = _max_degree(coefficients)
    grid = SphereGrid(max_degree, rings or 2 * default_rings(max_degree), torch.float64)
    e = coefficients.cpu().double()
    places = encode(latitude.cpu(), longitude.cpu(), max_degree)  # [place, d]
    log_integrals = [torch.logsumexp(grid(row) + grid.log_areas, 1) for row in torch.split(e, 16)]
    return (e @ places.T - torch.cat(log_integrals)[:, None]).to(coefficients.device)


def _max_degree(coefficients: Tensor) -> int:
    size = coefficients.shape[-1]
    max_degree = math.isqrt(size) - 1
    if coefficients.dim() != 2 or (max_degree + 1) ** 2 != size:
        raise ValueError(f"coefficients are [batch, (max_degree + 1)²], these are {list(coefficients.shape)}")
    return max_degree
