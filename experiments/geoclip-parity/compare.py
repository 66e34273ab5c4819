"""All logits over the gallery and the five best places, by us and by the package `geoclip`."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy
import torch
from geoclip import GeoCLIP
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "encoder-parity"))
from pictures import pictures

quick = "--quick" in sys.argv
target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
folder = pathlib.Path("target/experiments/geoclip").absolute()
home, clip = folder / "home", folder / "clip"
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


def logits_of_package(model, double):
    """`GeoCLIP.forward`, with the gallery encoded once instead of for every picture."""
    with torch.no_grad():
        cast = (lambda t: t.double()) if double else (lambda t: t)
        gallery = torch.cat([torch.nn.functional.normalize(model.location_encoder(part), dim=1) for part in cast(model.gps_gallery).split(5000)])
        rows = []
        for path in paths:
            pixels = model.image_encoder.preprocess_image(Image.open(path).convert("RGB"))
            features = torch.nn.functional.normalize(model.image_encoder(cast(pixels)), dim=1)
            rows.append(model.logit_scale.exp() * (features @ gallery.t()))
        return torch.cat(rows)


theirs = logits_of_package(model, double=False)
# Once by its own method, whole.
predicted, _ = model.predict(str(paths[0]), top_k=100)
with torch.no_grad():
    order = torch.argsort(theirs[0], descending=True)[:100]
assert torch.allclose(model.gps_gallery[order].sort(0).values, predicted.sort(0).values, atol=1e-4), "the shortcut is not the package"
exact = logits_of_package(model.double(), double=True)
gallery = model.gps_gallery.double()

error = (ours.double() - theirs.double()).abs().max().item()
to_exact = (ours.double() - exact).abs().max().item()
package_to_exact = (theirs.double() - exact).abs().max().item()


def best_five(logits):
    """Distinct places, the best first, with their logits."""
    found = {}
    for index in torch.argsort(logits, descending=True).tolist():
        place = tuple(round(x, 5) for x in gallery[index].tolist())
        found.setdefault(place, logits[index].item())
        if len(found) == 6:
            return list(found.items())


equal = 0
for answer, logits in zip(answers, theirs):
    best = best_five(logits)
    names = [(round(row["latitude"], 5), round(row["longitude"], 5)) for row in answer["rows"]]
    wanted = [(place, value) for place, value in best[:5] if value - best[5][1] > GAP]
    same = all(place in names for place, _ in wanted)
    in_order = same and all(names.index(a) < names.index(b) for a, x in wanted for b, y in wanted if x - y > GAP)
    equal += in_order
figures = {
    "n": len(paths),
    "places": ours.shape[1],
    "top5_equal": round(100 * equal / len(paths), 1),
    "max_logit_error": error,
    "max_logit_error_to_float64": to_exact,
    "package_error_to_float64": package_to_exact,
}
print("# GeoCLIP, beside the Python package\n")
print(f"{len(paths)} pictures (PNG, without losses), {ours.shape[1]:,} places; CLIP ViT-L/14 with random weights saved by `transformers`, head, location encoder and gallery as published. PyTorch {torch.__version__}.\n")
print("| logits, largest difference over all pictures and places | |\n|---|---|")
print(f"| ours and the package's (float32) | {error:.1e} |")
print(f"| ours and the package's code in float64 | {to_exact:.1e} |")
print(f"| the package's float32 and its float64 | {package_to_exact:.1e} |")
print(f"\nThe five best distinct places are the same, wherever gaps exceed {GAP}: {figures['top5_equal']} % of the pictures. Range of logits: {exact.min():.2f} to {exact.max():.2f}.\n")
print(json.dumps(figures))
