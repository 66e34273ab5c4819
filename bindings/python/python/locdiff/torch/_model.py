"""A network with its noise levels and objective, as ``crates/locdiff/src/diffusion/sampler.rs`` and
``crates/locdiff-train/src/training.rs`` have it."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from . import _files as files
from ._network import Denoiser
from ._noise import starting_noise
from ._objective import loss_of_encodings
from ._sphere import SphereGrid, default_rings, encode, sharpest

# Grids of so many sizes take turns, so that no peak can hide between nodes for long.
_GRIDS = 3
# (L+1)²·ᾱ_T/(1 − ᾱ_T) must be below this, or the last noise level still tells the place.
_LEAKAGE_LIMIT = 0.1
# Numbers that hardly vary in training are divided by at least this part of the mean deviation.
_LEAST_DEVIATION = 0.01


class LocDiff(nn.Module):
    """LocDiff: from an image's embedding to a probability map of the Earth.

    ``max_degree`` is the highest degree L of the spherical harmonics, ``condition_size`` the length of an embedding. The
    network has the options of :class:`Denoiser`. ``rings`` is the number of rings of the grid for the objective (0: enough for
    the degree). ``share_at_full_noise`` is the share of rows trained at the highest noise level, which one pass uses;
    ``condition_dropout`` the share of rows trained without their embedding.
    """

    signal: Tensor
    noise: Tensor
    evidence: Tensor
    mean: Tensor
    deviation: Tensor
    latent: Tensor

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
        schedule: str = "shifted",
        schedule_steps: int = 200,
        objective: str = "likelihood",
        rings: int = 0,
        share_at_full_noise: float = 0.5,
        condition_dropout: float = 0.1,
    ) -> None:
        super().__init__()
        bars = _alpha_bars(schedule, schedule_steps, max_degree)
        network: dict[str, Any] = {
            "max_degree": max_degree,
            "condition_size": condition_size,
            "time_size": time_size,
            "bottleneck": bottleneck,
            "depth": depth,
            "head_rank": head_rank,
            "dropout": dropout,
            "frequency": frequency,
        }
        self.config: dict[str, Any] = {
            "denoiser": network,
            "schedule": {"kind": schedule, "steps": schedule_steps},
            "objective": objective,
            "quadrature": {"transform": rings},
        }
        # What else config.json stores: the encoder, how the model answers, facts of its training.
        self.about: dict[str, Any] = {"encoder": None, "inference": {"sampler": "one-pass", "seed": 0}, "training": None}
        self.share_at_full_noise, self.condition_dropout = share_at_full_noise, condition_dropout
        self.max_degree, self.size, self.last_level = max_degree, (max_degree + 1) ** 2, schedule_steps
        self.denoiser = Denoiser(**network)
        self.register_buffer("mean", torch.zeros(condition_size))
        self.register_buffer("deviation", torch.ones(condition_size))
        # What follows from the configuration is not part of checkpoints. For each noise level: x_t = signal·x_0 + noise·ε,
        # and x_t is evidence·x_t·Y(place) nats of evidence for a place.
        self.register_buffer("signal", bars.sqrt().float(), persistent=False)
        self.register_buffer("noise", (1.0 - bars).sqrt().float(), persistent=False)
        evidence = (4.0 * math.pi * bars).sqrt() / (1.0 - bars)
        self.register_buffer("evidence", evidence.float(), persistent=False)
        self.register_buffer("latent", starting_noise(self.size), persistent=False)
        coarsest = max(rings, max_degree + 1) if rings else default_rings(max_degree)
        self.grids = nn.ModuleList()
        self.first_level = 1
        if objective == "likelihood":
            self.grids.extend(SphereGrid(max_degree, coarsest + k) for k in range(_GRIDS))
            # The evidence of a noisy latent must be no sharper than the grid resolves.
            below = bars / (1.0 - bars) <= sharpest(max_degree, coarsest) / (4.0 * math.pi)
            self.first_level = int(below.nonzero()[0]) if below.any() else schedule_steps

    @classmethod
    def from_config(cls, config: Mapping[str, Any], condition_size: int | None = None) -> "LocDiff":
        """A model with random weights, from ``config.json`` of a model or from a training configuration.

        Training configurations are the TOML files of ``locdiff train``, as ``tomllib`` reads them; the length of an embedding
        is not part of them.

        >>> LocDiff.from_config({"network": {"max_degree": 7}, "objective": {"kind": "likelihood"}}, condition_size=8).size
        64
        """
        if "network" in config:
            if condition_size is None:
                raise ValueError("a training configuration needs condition_size, the length of an embedding")
            network = {key: value for key, value in config["network"].items() if key != "standardize"}
            objective = dict(config["objective"])
            kind, quadrature = objective.pop("kind"), objective.pop("quadrature", {"transform": 0})
        else:
            network = dict(config["denoiser"])
            condition_size = network.pop("condition_size")
            kind, quadrature = config["objective"], config["quadrature"]
            facts = config.get("training") or {}
            objective = {key: facts[key] for key in ("share_at_full_noise", "condition_dropout") if key in facts}
        schedule = config.get("schedule", {"kind": "shifted", "steps": 200})
        model = cls(
            condition_size=condition_size,
            **network,
            schedule=schedule["kind"],
            schedule_steps=schedule["steps"],
            objective=kind,
            rings=quadrature.get("transform", 0),
            **objective,
        )
        model.config["quadrature"] = dict(quadrature)
        return model

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> "LocDiff":
        """The model in a directory, which ``locdiff train`` or :meth:`save` wrote; ready to answer."""
        path = Path(directory)
        config = files.read_config(path)
        model = cls.from_config(config)
        weights = files.read_tensors(path / files.WEIGHTS)
        model.denoiser.load_state_dict({name: _turned(name, tensor) for name, tensor in weights.items()})
        if files.CONDITION in config.get("files", {}):
            condition = files.read_tensors(path / files.CONDITION)
            model.mean.copy_(condition["mean"])
            model.deviation.copy_(condition["deviation"])
        model.about = {key: config[key] for key in ("encoder", "inference", "training")}
        model.latent.copy_(starting_noise(model.size, model.about["inference"].get("seed", 0)))
        return model.eval()

    def save(
        self,
        directory: str | os.PathLike[str],
        encoder: str | Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        card: str | None = None,
    ) -> None:
        """Writes a model directory, which ``locdiff.open`` and :meth:`open` read.

        ``encoder`` says whose embeddings the model takes: the record that shards of ``locdiff embed`` have in their metadata
        (``locdiff.encoder``), or a line of text, with which the model answers embeddings but not images. A model that was
        opened has one already. ``training`` may state ``steps``, ``batch`` and ``rows``; ``card`` is the text of README.md.
        """
        about = dict(self.about)
        if encoder is not None:
            about["encoder"] = files.encoder_record(encoder)
        if about["encoder"] is None:
            raise ValueError("encoder is missing: name the encoder of the embeddings")
        if training is not None:
            shares = {"share_at_full_noise": self.share_at_full_noise, "condition_dropout": self.condition_dropout}
            about["training"] = {**shares, **{key: int(training[key]) for key in ("steps", "batch", "rows")}}
        path = Path(directory)
        path.mkdir(parents=True, exist_ok=True)
        weights = {name: _turned(name, tensor).float() for name, tensor in self.denoiser.state_dict().items()}
        files.write_tensors(path / files.WEIGHTS, weights, {"format": files.FORMAT})
        (path / files.CONDITION).unlink(missing_ok=True)
        if self.mean.any() or (self.deviation != 1.0).any():
            condition = {"mean": self.mean.float(), "deviation": self.deviation.float()}
            files.write_tensors(path / files.CONDITION, condition)
        text = card or (
            "# A LocDiff model\n\nTrained in PyTorch with `locdiff.torch`, on embeddings of "
            f"{about['encoder'].get('name') or about['encoder']['identity']}. Its answers are predictions, and not calibrated.\n"
        )
        (path / files.CARD).write_text(text, encoding="utf-8")
        files.write_config(path, {**about, **self.config})

    def standardize(self, embeddings: Tensor) -> None:
        """From now on embeddings are centered and scaled as these rows, those of the training set, need it."""
        rows = embeddings.detach().cpu().double()
        deviation = rows.std(0, correction=0)
        typical = float(deviation.mean())
        least = _LEAST_DEVIATION * typical if typical > 0.0 else 1.0
        self.mean.copy_(rows.mean(0))
        self.deviation.copy_(deviation.clamp(min=least))

    def forward(self, embeddings: Tensor, latitude: Tensor, longitude: Tensor) -> Tensor:
        """The training loss of a batch, in nats: embeddings ``[batch, condition_size]`` and true places in degrees.

        Noise, noise levels, dropped conditions and the grid are drawn anew by PyTorch's generators.
        """
        if not self.grids or "transform" not in self.config["quadrature"]:
            kind, quadrature = self.config["objective"], self.config["quadrature"]
            raise ValueError(f"locdiff.torch trains likelihood with a transform; this is {kind} with {quadrature}")
        condition = self.condition(embeddings)
        batch, device = len(condition), condition.device
        keep = torch.rand(batch, device=device) >= self.condition_dropout
        condition = self.denoiser.without_some(condition, keep)
        steps = self.noise_levels(batch)
        truth = encode(latitude, longitude, self.max_degree).to(condition)
        latent = self.noisy(truth, torch.randn(batch, self.size, device=device), steps)
        # Drawn on the CPU, so that a GPU need not be waited for.
        grid = self.grid(int(torch.randint(_GRIDS, ())))
        angle = 2.0 * math.pi * float(torch.rand((), dtype=torch.float64))
        return loss_of_encodings(self.output(latent, condition, steps), truth, grid, angle)

    def coefficients(self, embeddings: Tensor, latent: Tensor | None = None) -> Tensor:
        """Coefficients e ``[batch, (max_degree + 1)²]`` of the log-density of each embedding, in one pass.

        The same as those of ``locdiff``, which starts from the same noise; ``latent`` is another noise ``[batch or 1, …]``.
        The model should be in evaluation mode (``model.eval()``).
        """
        condition = self.condition(embeddings)
        latent = self.latent[None] if latent is None else latent
        steps = torch.full((len(condition),), self.last_level, device=condition.device)
        return self.output(latent.to(condition).expand(len(condition), -1), condition, steps)

    def condition(self, embeddings: Tensor) -> Tensor:
        """Embeddings as the network takes them: centered and scaled."""
        return (embeddings.to(self.mean) - self.mean) / self.deviation

    def grid(self, choice: int) -> SphereGrid:
        """One of the three grids of the objective."""
        grid = self.grids[choice]
        assert isinstance(grid, SphereGrid)
        return grid

    def noise_levels(self, batch: int) -> Tensor:
        """A share at the highest level, the others anywhere among those that are trained."""
        levels = torch.randint(self.first_level, self.last_level + 1, (batch,), device=self.mean.device)
        # Halves are rounded up, as Rust does.
        levels[: math.floor(self.share_at_full_noise * batch + 0.5)] = self.last_level
        return levels

    def noisy(self, truth: Tensor, noise: Tensor, steps: Tensor) -> Tensor:
        """x_t = √ᾱ_t·√4π·Y(place) + √(1 − ᾱ_t)·noise, from harmonics Y and a noise level for each row."""
        clean = math.sqrt(4.0 * math.pi) * truth
        return clean * self.signal[steps][:, None] + noise * self.noise[steps][:, None]

    def output(self, latent: Tensor, condition: Tensor, steps: Tensor) -> Tensor:
        """e from a noisy latent. Under likelihood the network adds to the evidence that the latent itself carries."""
        network: Tensor = self.denoiser(latent, condition, steps)
        if self.config["objective"] != "likelihood":
            return network
        return network + latent * self.evidence[steps][:, None]


def _turned(name: str, tensor: Tensor) -> Tensor:
    """Matrices of linear layers are [input, output] in files, and [output, input] in PyTorch."""
    return tensor.T if name.endswith(".weight") else tensor


def _alpha_bars(kind: str, steps: int, max_degree: int) -> Tensor:
    """ᾱ_0 … ᾱ_T of a noise schedule."""
    if steps < 1:
        raise ValueError("a schedule of 0 steps: use at least 1")
    bars = [1.0]
    for t in range(1, steps + 1):
        if kind == "linear":
            share = 1.0 if steps == 1 else (t - 1) / (steps - 1)
            bars.append(bars[-1] * (1.0 - min(1000.0 / steps * (1e-4 + share * (0.02 - 1e-4)), 0.999)))
        elif kind == "cosine":
            here, before = (math.cos((s / steps + 0.008) / 1.008 * math.pi / 2.0) ** 2 for s in (t, t - 1))
            bars.append(bars[-1] * max(here / before, 1e-3))
        elif kind == "shifted":
            tangent = math.tan(math.pi / 2.0 * 0.9999 * t / steps)
            bars.append(1.0 / (1.0 + tangent**2 * (max_degree + 1) ** 2 / 16.0))
        else:
            raise ValueError(f"schedule {kind}: use linear, cosine or shifted")
    leakage = (max_degree + 1) ** 2 * bars[-1] / (1.0 - bars[-1])
    if leakage >= _LEAKAGE_LIMIT:
        raise ValueError(
            f"the {kind} schedule of {steps} steps leaks: at its last step (L+1)²·ᾱ/(1−ᾱ) is {leakage:.3f} for max degree "
            f"{max_degree}, which reveals the place; use more steps, a lower degree, or the shifted schedule"
        )
    return torch.tensor(bars, dtype=torch.float64)
