"""`locdiff.torch`: conventions, laws, and numbers that the Rust program gave (experiments/python compares at length)."""

import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from locdiff.torch import (
    LocDiff,
    MovingAverage,
    SphereGrid,
    encode,
    likelihood_loss,
    log_density,
)
from locdiff.torch._files import read_tensors, write_tensors
from locdiff.torch._noise import starting_noise
from locdiff.torch._sphere import _gauss_legendre

ROOT = Path(__file__).parents[3]
# Small arrays gain nothing from threads, and lose much on a busy machine.
torch.set_num_threads(1)


def small_model() -> LocDiff:
    torch.manual_seed(1)
    return LocDiff(max_degree=5, condition_size=12, bottleneck=16, head_rank=8, dropout=0.1)


def places(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    uniform = torch.rand(2, count, generator=generator, dtype=torch.float64)
    return torch.rad2deg(torch.asin(2 * uniform[0] - 1)), 360 * uniform[1] - 180


def test_harmonics_equal_those_of_scipy() -> None:
    for case in json.loads((ROOT / "parity/sphere/basis_scipy.json").read_text())["cases"]:
        if case["max_degree"] > 100:
            continue
        latitude, longitude = (torch.tensor([case[name]], dtype=torch.float64) for name in ("latitude", "longitude"))
        values = encode(latitude, longitude, case["max_degree"])[0]
        for index, expected in zip(case["indices"], case["values"], strict=True):
            assert abs(float(values[index]) - expected) < 1e-12 * math.sqrt(2 * case["max_degree"] + 1)


def test_grids_integrate_exactly_and_turn() -> None:
    grid = SphereGrid(5, 8, torch.float64)
    assert float(grid.log_areas.exp().sum()) == pytest.approx(4 * math.pi, abs=1e-12)
    e = torch.randn(3, 36, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    # The sum of squares is the integral of F².
    squares = (grid(e) ** 2 * grid.log_areas.exp()).sum(1)
    assert torch.allclose(squares, (e**2).sum(1), atol=1e-12)
    # Values of a turned grid are those at its places.
    colatitudes, _ = _gauss_legendre(8)
    latitude = 90 - torch.rad2deg(colatitudes).repeat_interleave(16)
    longitude = torch.rad2deg(0.7 + torch.arange(16) * 2 * math.pi / 16).repeat(8)
    assert torch.allclose(grid(e, angle=0.7), e @ encode(latitude, longitude, 5).T, atol=1e-5)


def test_a_flat_density_costs_the_logarithm_of_the_sphere() -> None:
    latitude, longitude = places(7)
    loss = likelihood_loss(torch.zeros(7, 36), latitude, longitude)
    assert float(loss) == pytest.approx(math.log(4 * math.pi), abs=1e-3)
    assert torch.allclose(
        log_density(torch.zeros(2, 36), latitude, longitude), torch.tensor(-math.log(4 * math.pi), dtype=torch.float64)
    )


def test_the_gradient_is_the_mean_encoding_minus_the_truth() -> None:
    latitude, longitude = places(2)
    grid = SphereGrid(5, 24, torch.float64)
    generator = torch.Generator().manual_seed(4)
    e = (0.5 * torch.randn(2, 36, dtype=torch.float64, generator=generator)).requires_grad_()
    assert torch.autograd.gradcheck(lambda e: likelihood_loss(e, latitude, longitude, grid, 0.3), (e,))
    likelihood_loss(e, latitude, longitude, grid).backward()  # type: ignore[no-untyped-call]
    shares = torch.softmax(grid(e.detach()) + grid.log_areas, 1)  # [batch, node]
    basis = grid(torch.eye(36, dtype=torch.float64))  # [coefficient, node]
    expected = (shares @ basis.T - encode(latitude, longitude, 5)) / 2
    assert e.grad is not None and torch.allclose(e.grad, expected, atol=1e-3)


def test_a_sharp_output_cannot_hide_between_nodes() -> None:
    latitude, longitude = places(16)
    grid = SphereGrid(5, 12)
    loss = likelihood_loss(1000 * encode(latitude, longitude, 5).float(), latitude, longitude, grid)
    assert float(loss) >= math.log(4 * math.pi / (16 * 12 * 24)) - 1e-3


def test_directories_round_trip(tmp_path: Path) -> None:
    model = small_model().eval()
    embeddings = 3 * torch.randn(20, 12) + 1
    model.standardize(embeddings)
    model.save(tmp_path, encoder="random numbers", training={"steps": 3, "batch": 20, "rows": 20})
    again = LocDiff.open(tmp_path)
    assert torch.equal(again.coefficients(embeddings), model.coefficients(embeddings))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["encoder"] == {"identity": "random numbers"} and config["training"]["steps"] == 3
    for name, checksum in config["files"].items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == checksum
    again.save(tmp_path / "second")
    second = json.loads((tmp_path / "second/config.json").read_text())
    assert second == config


def test_a_model_needs_the_name_of_its_encoder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="encoder"):
        small_model().save(tmp_path)


def test_safetensors_round_trip(tmp_path: Path) -> None:
    tensors = {"b": torch.randn(3, 4), "a": torch.randn(5, dtype=torch.float64)}
    write_tensors(tmp_path / "x.safetensors", tensors, {"format": "test"})
    again = read_tensors(tmp_path / "x.safetensors")
    assert again.keys() == tensors.keys() and all(torch.equal(again[name], tensors[name]) for name in tensors)
    (tmp_path / "x.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ValueError, match="not a safetensors file"):
        read_tensors(tmp_path / "x.safetensors")


def test_noise_is_that_of_the_rust_program() -> None:
    expected = torch.tensor([0.6999607682228088, -0.1440616399049759, 0.3028862774372101, -1.374513864517212])
    assert torch.equal(starting_noise(4), expected)
    assert abs(float(starting_noise(4000).std()) - 1) < 0.05


def test_a_model_of_the_rust_program_opens() -> None:
    model = LocDiff.open(ROOT / "examples/models/earth")
    assert (model.first_level, model.last_level, model.grid(0).rings) == (69, 200, 144)
    assert model.coefficients(torch.zeros(2, 512)).shape == (2, 576)


def test_training_lowers_the_loss_and_averages_weights() -> None:
    model = small_model()
    latitude, longitude = places(64)
    embeddings = encode(latitude, longitude, 5)[:, 1:13].float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    average = MovingAverage(model, decay=0.9)
    before, losses = model.denoiser.head.out.weight.detach().clone(), []
    for step in range(60):
        loss = model(embeddings, latitude, longitude)
        optimizer.zero_grad()
        loss.backward()
        assert all(weights.grad is not None for weights in model.parameters())
        optimizer.step()
        average.update(model)
        losses.append(float(loss.detach()))
        if step == 0:
            after = model.denoiser.head.out.weight.detach()
            assert torch.allclose(average.model.denoiser.head.out.weight, before + (after - before) * 10 / 11)
    assert sum(losses[-10:]) < sum(losses[:10]) - 5


def test_training_configurations_and_their_refusals() -> None:
    config = {
        "network": {"max_degree": 7, "standardize": True},
        "objective": {"kind": "likelihood", "share_at_full_noise": 0.25},
        "schedule": {"kind": "cosine", "steps": 50},
    }
    model = LocDiff.from_config(config, condition_size=8)
    assert (model.size, model.share_at_full_noise, model.last_level) == (64, 0.25, 50)
    assert int((model.noise_levels(40) == 50).sum()) >= 10
    with pytest.raises(ValueError, match="condition_size"):
        LocDiff.from_config(config)
    with pytest.raises(ValueError, match="leaks"):
        LocDiff(max_degree=95, condition_size=4, schedule="linear")
    with pytest.raises(ValueError, match="less than 1"):
        LocDiff(max_degree=3, condition_size=4, dropout=1.0)
    with pytest.raises(ValueError, match="l2"):
        LocDiff(max_degree=3, condition_size=4, objective="l2")(torch.zeros(1, 4), torch.zeros(1), torch.zeros(1))


def test_without_torch_the_message_says_what_to_install() -> None:
    script = "import sys; sys.modules['torch'] = None; import locdiff.torch"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode != 0 and "pip install 'locdiff[torch]'" in run.stderr
