"""Writes the reference numbers of this folder: `python generate.py geoclip-1.3.0-py3-none-any.whl`.

GeoCLIP's own projection and Fourier features, imported from the wheel, run in float64 on the weights of the wheel
(embeddings.safetensors) and on small random ones (tiny-wheel.zip, tiny.json). float64, because phases reach thousands of
radians: float32 moves embeddings by some 1e-5, differently on every machine. How far is written into the files.
"""

import copy
import hashlib
import io
import json
import math
import sys
import types
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn
from torch.nn.functional import normalize

HERE = Path(__file__).parent
WEIGHTS = "geoclip/model/weights/{}_weights.pth"
GALLERY = "geoclip/model/gps_gallery/coordinates_100K.csv"
SIGMAS = [1, 16, 256]
SPECIAL = [(90, 0), (-90, 0), (90, -135), (0, 0), (0, -180), (51.5, -180), (51.5, 179.999999), (89.999999, 12.5), (-89.999999, -77), (0, 90)]


def location_encoder_module(wheel):
    """geoclip.model.location_encoder alone: the package around it wants transformers, pandas and more."""
    sys.path.insert(0, str(wheel))
    for name in ("geoclip", "geoclip.model"):
        package = types.ModuleType(name)
        package.__path__ = [f"{wheel}/{name.replace('.', '/')}"]
        sys.modules[name] = package
    sys.modules["geoclip.model.misc"] = types.ModuleType("geoclip.model.misc")
    sys.modules["geoclip.model.misc"].file_dir = ""
    return import_module("geoclip.model.location_encoder")


def embed(geoclip, encoder, places):
    """LocationEncoder.forward, but for its sum, which is float32 at every precision; then normalised."""
    projected = geoclip.equal_earth_projection(places)
    return normalize(sum(capsule(projected) for capsule in encoder.children()), dim=1)


def uniform_places(rng, count):
    latitudes = np.degrees(np.arcsin(rng.uniform(-1, 1, count)))
    return np.round(np.column_stack([latitudes, rng.uniform(-180, 180, count)]), 6)


def check(condition, message):
    if not condition:
        raise SystemExit(f"check failed: {message}")


def deviation(a, b):
    return (a.double() - b).abs().max().item()


def image_head(widths):
    return nn.Sequential(nn.Linear(widths[0], widths[1]), nn.ReLU(), nn.Linear(widths[1], widths[2]))


@torch.no_grad()
def real(geoclip, archive):
    def state(name):
        return torch.load(io.BytesIO(archive.read(WEIGHTS.format(name))), weights_only=True)

    rng = np.random.default_rng(20231214)
    encoder = geoclip.LocationEncoder(from_pretrained=False)
    encoder.load_state_dict(state("location_encoder"))
    head = image_head([768, 768, 512])
    head.load_state_dict(state("image_encoder_mlp"))
    exact, exact_head = copy.deepcopy(encoder).double(), copy.deepcopy(head).double()

    gallery = np.loadtxt(io.BytesIO(archive.read(GALLERY)), delimiter=",", skiprows=1)
    places = np.concatenate([SPECIAL, uniform_places(rng, 490), rng.choice(gallery, 500, replace=False)])
    rng.shuffle(places[20:])
    places = torch.tensor(places)
    embeddings = embed(geoclip, exact, places)
    single = normalize(encoder(places.float()), dim=1)
    arithmetic = deviation(single, embed(geoclip, exact, places.float().double()))
    with_inputs = deviation(single, embeddings)
    check(1e-5 < arithmetic < with_inputs < 5e-4, "float32 is near float64, but not within 1e-5")
    directions = torch.tensor(rng.standard_normal((16, 512)))
    directions = normalize(directions, dim=1).float()
    # About the size of CLIP's features.
    features = torch.tensor(rng.standard_normal((4, 768)) * 0.4).float()
    image_embeddings = normalize(exact_head(features.double()), dim=1)
    tensors = {
        "places": places,
        "directions": directions,
        "projections": (embeddings @ directions.double().T).float(),
        "embeddings": embeddings[:20].float(),
        "image_features": features,
        "image_embeddings": image_embeddings.float(),
        "logit_scale": state("logit_scale").exp(),
    }
    note = {
        "made_by": f"torch {torch.__version__}, float64, weights of geoclip 1.3.0",
        "note": "1,000 places (latitude, longitude in degrees); embeddings of the first 20, for all their products with 16 directions",
        "float32_deviation": f"{arithmetic:.1e} by its arithmetic, {with_inputs:.1e} with its rounding of the places",
    }
    # Scalars keep their shape only as numpy arrays.
    save_file({name: np.asarray(tensor.numpy()) for name, tensor in tensors.items()}, HERE / "embeddings.safetensors", note)
    print("embeddings.safetensors:", note["float32_deviation"])


class TinyCapsule(nn.Module):
    """LocationEncoderCapsule, whose widths are fixed."""

    def __init__(self, geoclip, sigma, frequencies, hidden, width):
        super().__init__()
        encoding = geoclip.GaussianEncoding(sigma=sigma, input_size=2, encoded_size=frequencies)
        layers = [nn.Linear(2 * frequencies, hidden[0])]
        for inputs, outputs in zip(hidden, hidden[1:]):
            layers += [nn.ReLU(), nn.Linear(inputs, outputs)]
        self.capsule = nn.Sequential(encoding, *layers, nn.ReLU())
        self.head = nn.Sequential(nn.Linear(hidden[-1], width))

    forward = None  # set below: the package's own


@torch.no_grad()
def tiny(geoclip):
    """The same architecture with random weights and widths that all differ, in a wheel's paths."""
    TinyCapsule.forward = geoclip.LocationEncoderCapsule.forward
    torch.manual_seed(20231214)
    rng = np.random.default_rng(20231214)
    encoder = nn.Module()
    for index, sigma in enumerate(SIGMAS):
        encoder.add_module(f"LocEnc{index}", TinyCapsule(geoclip, sigma, 7, [11, 10, 9], 6))
    head = image_head([5, 8, 6])
    logit_scale = torch.tensor(1.25)
    gallery = [[12.5, -7.25], [-33.8568, 151.2153], [12.5, -7.25], [0.1, 179.98352], [-90, 0]]

    files = {GALLERY: ("LAT,LON\n" + "".join(f"{lat},{lon}\n" for lat, lon in gallery)).encode()}
    states = {"location_encoder": encoder.state_dict(), "image_encoder_mlp": head.state_dict(), "logit_scale": logit_scale}
    for name, state in states.items():
        buffer = io.BytesIO()
        torch.save(state, buffer)
        files[WEIGHTS.format(name)] = buffer.getvalue()
    with zipfile.ZipFile(HERE / "tiny-wheel.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            # A date of its own would change the file with every run.
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED, 9)

    exact, exact_head = encoder.double(), head.double()
    places = torch.tensor(np.concatenate([SPECIAL, uniform_places(rng, 30)]))
    features = torch.tensor(rng.standard_normal((3, 5))).float()
    reference = {
        "made_by": f"torch {torch.__version__}, float64",
        "note": "What GeoCLIP's architecture gives with the random weights of tiny-wheel.zip",
        "sha256": {path: hashlib.sha256(content).hexdigest() for path, content in files.items()},
        "logit_scale": math.exp(logit_scale.item()),
        "gallery": gallery,
        "places": places.tolist(),
        "embeddings": embed(geoclip, exact, places).tolist(),
        "image_features": features.tolist(),
        "image_embeddings": normalize(exact_head(features.double()), dim=1).tolist(),
    }
    lines = (f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}" for key, value in reference.items())
    (HERE / "tiny.json").write_text("{" + ",\n".join(lines) + "}\n")


def main():
    wheel = Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else sys.exit(__doc__)
    torch.set_num_threads(1)
    geoclip = location_encoder_module(wheel)
    with zipfile.ZipFile(wheel) as archive:
        real(geoclip, archive)
    tiny(geoclip)
    for path in sorted(HERE.iterdir()):
        print(f"{path.name}: {path.stat().st_size} bytes")


main()
