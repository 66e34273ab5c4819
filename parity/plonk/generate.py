"""A network of plonk with random weights, saved by the package `diff-plonk` itself, and what the package computes with it.

The folder gets `config.json` and `model.safetensors` as they are published, and `expected.json`: outputs of the network, samples with and
without guidance, the noise levels, and likelihoods by the package's own formula in space, with fixed steps instead of its adaptive solver (which
adapts to the whole batch). All weights are drawn: the package starts with `mlp.3` at zero, which would leave the blocks without effect.

`--pictures` writes `pictures.json` instead: some of the numbers that the package makes of pictures before it encodes them with DINOv2.

Usage: generate.py [--shape small|yfcc|inaturalist] [--out FOLDER] | --pictures, in an environment with requirements.txt and diff-plonk.
"""

import argparse
import importlib.metadata
import json
import math
import pathlib
import warnings

warnings.filterwarnings("ignore")
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torchdiffeq  # noqa: E402

from PIL import Image  # noqa: E402

import plonk.pipe  # noqa: E402
from plonk.models.pretrained_models import Plonk  # noqa: E402
from plonk.models.preconditioning import DDPMPrecond  # noqa: E402
from plonk.models.samplers.riemannian_flow_sampler import riemannian_flow_sampler  # noqa: E402
from plonk.utils.manifolds import Sphere  # noqa: E402

SHAPES = {
    # As wide as the embeddings of the tiny encoders in parity/vision.
    "small": dict(input_dim=3, dim=32, depth=3, expansion=4, cond_dim=24),
    "yfcc": dict(input_dim=3, dim=512, depth=12, expansion=4, cond_dim=1024),
    "inaturalist": dict(input_dim=3, dim=256, depth=12, expansion=4, cond_dim=1024),
}
STEPS, LIKELIHOOD_STEPS = 16, 64
# Of the numbers of a picture, one of so many is stored.
STRIDE = 997


def randomised(shape, seed):
    model = Plonk(**shape)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        if name.endswith("bias"):
            values = 0.1 * values
        else:
            # Of deep networks each block adds less, as after a training: otherwise the flow would be wild.
            gain = 0.5 / shape["depth"] ** 0.5 if "ada_map" in name else 1.5 if "final_linear" in name else 0.7
            values = gain * values / parameter.shape[1] ** 0.5
        parameter.data = values
    return model.eval().requires_grad_(False)


def uniform(count, generator):
    points = torch.randn(count, 3, generator=generator)
    return points / points.norm(dim=-1, keepdim=True)


def pipeline(model):
    """The package's pipeline without its image encoder, which it would download."""
    pipe = object.__new__(plonk.pipe.PlonkPipeline)
    pipe.network, pipe.device = model, torch.device("cpu")
    pipe.scheduler = plonk.pipe.scheduler_fn("sigmoid", -7, 3, 1.0)
    pipe.preconditioning, pipe.manifold, pipe.input_dim = DDPMPrecond(), Sphere(), 3
    return pipe


def fixed_steps(function, state, t, **_options):
    """torchdiffeq's `rk4` is Kutta's 3/8 rule."""
    return torchdiffeq.odeint(function, state, torch.linspace(0, 1, LIKELIHOOD_STEPS + 1), method="rk4")


def pattern(width, height):
    """The same picture as `pattern` in parity_tests.rs."""
    y, x = np.mgrid[0:height, 0:width].astype(np.int64)
    planes = [(x * (3 + c) + y * (5 - c) + ((x * y) >> 4) + 40 * (((x >> 4) ^ (y >> 4)) & 1)) & 255 for c in range(3)]
    return Image.fromarray(np.stack(planes, -1).astype(np.uint8))


def pictures():
    """Pictures as the package prepares them; its encoder is not loaded."""
    torch.hub.load = lambda *_arguments: torch.nn.Identity()
    prepare = plonk.pipe.DinoV2FeatureExtractor(torch.device("cpu")).augmentation
    # Smaller and larger than 336, wide and high, with halves of pixels at the border.
    sizes = [(300, 200), (201, 334), (641, 480), (480, 645), (336, 336), (1000, 337)]
    return [
        {"width": width, "height": height, "stride": STRIDE, "numbers": prepare(pattern(width, height)).flatten()[::STRIDE].tolist()}
        for width, height in sizes
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "small")
    options = parser.parse_args()
    if options.pictures:
        lines = ",\n".join(json.dumps(picture) for picture in pictures())
        (pathlib.Path(__file__).parent / "pictures.json").write_text(f"[\n{lines}\n]\n")
        return
    torch.manual_seed(0)
    torch.set_num_threads(1)
    shape = SHAPES[options.shape]
    model = randomised(shape, seed=7)
    options.out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(options.out)
    (options.out / "README.md").unlink(missing_ok=True)
    (options.out / "model.safetensors").chmod(0o644)

    generator = torch.Generator().manual_seed(11)
    embeddings = torch.randn(2, shape["cond_dim"], generator=generator)
    noise = uniform(12, generator)
    pipe = pipeline(model)
    places = [[0.0, 0.0], [48.8566, 2.3522], [-33.8568, 151.2153], [90.0, 0.0], [-89.9, 10.0], [10.0, 180.0]]

    def output(embedding, gamma):
        with torch.no_grad():
            batch = {"y": noise, "emb": embedding.expand(len(noise), -1), "gamma": torch.tensor(gamma).expand(len(noise))}
            return pipe.model(batch).tolist()

    def samples(embedding, cfg):
        with torch.no_grad():
            batch = {"y": noise.clone(), "emb": embedding.expand(len(noise), -1)}
            return riemannian_flow_sampler(
                pipe.model, batch, conditioning_keys="emb", scheduler=pipe.scheduler, num_steps=STEPS, cfg_rate=cfg
            ).tolist()

    def likelihoods(embedding, cfg):
        plonk.pipe.odeint = fixed_steps
        nats = pipe.compute_likelihood(coordinates=places, emb=embedding[None], cfg=cfg, normalize_logp=False)
        return nats.tolist()

    outputs, trajectories, nats = [], [], []
    for k, embedding in enumerate(embeddings):
        for gamma in [1e-9, 0.01, 0.5, 0.9876543, 1.0]:
            outputs.append({"embedding": k, "gamma": gamma, "velocity": output(embedding, gamma)})
        for cfg in [0.0, 1.5]:
            trajectories.append({"embedding": k, "cfg": cfg, "places": samples(embedding, cfg)})
            nats.append({"embedding": k, "cfg": cfg, "nats": likelihoods(embedding, cfg)})
    expected = {
        "made_by": {
            name: importlib.metadata.version(name).split("+")[0] for name in ["diff-plonk", "torch", "torchdiffeq", "geoopt"]
        },
        "note": "velocity is dx/dgamma of the noise; cfg is guidance - 1; nats by the trace of the Jacobian in space, 3/8 rule over t",
        "embeddings": embeddings.tolist(),
        "noise": noise.tolist(),
        "steps": STEPS,
        "gammas": pipe.scheduler(1 - torch.arange(STEPS + 1) / STEPS).tolist(),
        "outputs": outputs,
        "trajectories": trajectories,
        "places": places,
        "likelihood_steps": LIKELIHOOD_STEPS,
        "their_likelihoods": nats,
    }
    assert all(math.isfinite(value) for row in nats for value in row["nats"])
    (options.out / "expected.json").write_text(json.dumps(expected) + "\n")
    spread = torch.tensor(trajectories[0]["places"]).mean(0).norm()
    print(f"{options.out}: mean vector of the samples {spread:.3f}, nats {nats[0]['nats'][:3]}")


main()
