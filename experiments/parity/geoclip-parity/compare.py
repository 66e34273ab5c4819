"""All logits over the gallery and the five best places, by us and by the package `geoclip`."""

import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy
import torch
from geoclip import GeoCLIP
from geoclip.model import location_encoder
from PIL import Image
from torch.nn.functional import normalize
from transformers import AutoImageProcessor

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "encoder-parity"))
from pictures import pictures

quick = "--quick" in sys.argv
target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
folder = pathlib.Path("target/experiments/geoclip").absolute()
home, clip = folder / "home", folder / "clip"
GALLERY = pathlib.Path(location_encoder.__file__).parent / "gps_gallery/coordinates_100K.csv"
# Gaps below this don't decide an order.
GAP = 2e-3


def make_clip():
    """The package's own full-size CLIP, random, saved by `transformers` in the layout of the hub's."""
    torch.manual_seed(8)
    model = GeoCLIP(clip_pretrained=False).image_encoder
    model.CLIP.save_pretrained(clip)
    model.image_processor.save_pretrained(clip)


def install():
    """Into a home of models, by the program itself."""
    locdiff = target / "debug/locdiff"
    environment = {**os.environ, "LOCDIFF_HOME": str(home)}
    subprocess.run([locdiff, "model", "import", "geoclip", os.environ["wheel"]], check=True, env=environment)
    subprocess.run([locdiff, "model", "import", "encoder", "clip-vit-l-14", clip], check=True, env=environment)
    subprocess.run([locdiff, "doctor"], check=True, env=environment, stdout=sys.stderr)


if not (clip / "model.safetensors").exists():
    make_clip()
if not (home / "models/clip-vit-l-14/config.json").exists():
    shutil.rmtree(home, ignore_errors=True)
    install()

paths = pictures()[: 3 if quick else 20]
environment = {**os.environ, "LOCDIFF_HOME": str(home)}
answers = subprocess.run([target / "debug/locdiff", "predict", "--model", "geoclip", "--json", *paths], check=True, env=environment, stdout=subprocess.PIPE, text=True)
answers = [json.loads(line) for line in answers.stdout.splitlines()]
subprocess.run([target / "release/geoclip", "logits", home, folder / "logits.f32", *paths], check=True)
ours = torch.from_numpy(numpy.fromfile(folder / "logits.f32", dtype=numpy.float32)).reshape(len(paths), -1)

model = GeoCLIP(clip_pretrained=False)
loaded = type(model.image_encoder.CLIP).from_pretrained(clip)
model.image_encoder.CLIP = loaded
model.eval()


processor = AutoImageProcessor.from_pretrained(clip, backend="pil")
with torch.no_grad():
    scale = model.logit_scale.exp().double()
    pixels = [processor(images=Image.open(path).convert("RGB"), return_tensors="pt")["pixel_values"] for path in paths]
    images = torch.cat([normalize(model.image_encoder(picture), dim=1) for picture in pixels]).double()
    single = torch.cat([normalize(model.location_encoder(part), dim=1) for part in model.gps_gallery.split(5000)]).double()
    # `LocationEncoder.forward` in float64: its own sum is float32 at every precision.
    encoder = copy.deepcopy(model.location_encoder).double()
    gallery = torch.tensor(numpy.loadtxt(GALLERY, delimiter=",", skiprows=1))
    projected = location_encoder.equal_earth_projection(gallery)
    double = torch.cat([normalize(sum(capsule(part) for capsule in encoder.children()), dim=1) for part in projected.split(5000)])
theirs, exact = scale * images @ single.t(), scale * images @ double.t()
# Once by its own method, whole: phases of thousands of radians in float32, hence the tolerance.
predicted, _ = model.predict(str(paths[0]), top_k=20)
rows = {tuple(row) for row in model.gps_gallery[torch.argsort(theirs[0], descending=True)[:60]].tolist()}
assert all(tuple(row) in rows for row in predicted.tolist()), "the shortcut is not the package"

ours = ours.double()
error = (ours - exact).abs().max().item()
to_single = (ours - theirs).abs().max().item()
package_error = (theirs - exact).abs().max().item()


def best_five(logits):
    """Distinct places, the best first, with their logits."""
    found = {}
    for index in torch.argsort(logits, descending=True).tolist():
        place = tuple(round(x, 5) for x in gallery[index].tolist())
        found.setdefault(place, logits[index].item())
        if len(found) == 6:
            return list(found.items())


equal, compared = 0, 0
for answer, logits in zip(answers, exact):
    best = best_five(logits)
    names = [(round(row["latitude"], 5), round(row["longitude"], 5)) for row in answer["rows"]]
    wanted = [(place, value) for place, value in best[:5] if value - best[5][1] > GAP]
    same = all(place in names for place, _ in wanted)
    in_order = same and all(names.index(a) < names.index(b) for a, x in wanted for b, y in wanted if x - y > GAP)
    equal += in_order
    compared += len(wanted)
figures = {
    "n": len(paths),
    "places": ours.shape[1],
    "top5_equal": round(100 * equal / len(paths), 1),
    "places_compared": compared,
    "max_logit_error": error,
    "max_logit_error_float32": to_single,
    "package_error_of_float32": package_error,
}
print("# GeoCLIP, beside the Python package\n")
print(f"{len(paths)} pictures (PNG, without losses), {ours.shape[1]:,} places; CLIP ViT-L/14 with random weights saved by `transformers`, head, location encoder and gallery as published. PyTorch {torch.__version__}.\n")
print("| largest difference of logits, over all pictures and places | |\n|---|---|")
print(f"| ours, and the package's location encoder in float64 | {error:.1e} |")
print(f"| ours, and the package as it runs, in float32 | {to_single:.1e} |")
print(f"| the package in float32, and in float64 | {package_error:.1e} |")
print(f"\nThe package computes phases of thousands of radians in float32, which moves its logits by more than a thousandth, on every machine another way; ours are computed in float64. So the reference is its own code in float64, with CLIP in float32 and Pillow's preprocessing.\n\nThe five best distinct places are the same, in the same order wherever gaps exceed {GAP}: {figures['top5_equal']} % of the pictures. Range of logits: {exact.min():.2f} to {exact.max():.2f}.\n")
print(json.dumps(figures))
