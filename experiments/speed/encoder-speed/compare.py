"""Images per second beside PyTorch and ONNX Runtime (two threads, f32), and reading photographs beside Pillow + transformers (one thread)."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy
import onnxruntime
import torch
from PIL import Image
import transformers

import models

quick = "--quick" in sys.argv
program = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release/encoders"
data = pathlib.Path(os.environ.get("LOCDIFF_DATA") or sys.exit("set LOCDIFF_DATA to the data folder, for its photographs"))
models.folder.mkdir(parents=True, exist_ok=True)
THREADS = 2
rounds, seconds = (1, 1) if quick else (3, 4)


def lap(work, at_least):
    """Seconds, the median of repeated calls."""
    work()
    laps, began = [], time.perf_counter()
    while len(laps) < 2 or time.perf_counter() - began < at_least:
        start = time.perf_counter()
        work()
        laps.append(time.perf_counter() - start)
    return statistics.median(laps)


def ours(*arguments, threads):
    answer = subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"RAYON_NUM_THREADS": str(threads)})
    return json.loads(answer.stdout)


class Embedding(torch.nn.Module):
    """The embedding alone, for the export."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixels):
        answer = self.model(pixel_values=pixels)
        return answer.image_embeds if hasattr(answer, "image_embeds") else answer.pooler_output


def onnx_session(path, model, batch):
    """A graph for a fixed number of pictures, which serves ONNX Runtime best."""
    file = path / f"model-{batch}.onnx"
    if not file.exists():
        torch.onnx.export(Embedding(model), (torch.zeros(batch, 3, 224, 224),), file, input_names=["pixels"], dynamo=True, external_data=True, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def encoder(key, title, make, pictures):
    path, model = make()
    torch.manual_seed(2)
    pixels = torch.randn(pictures, 3, 224, 224)
    written = models.write_pixels(models.folder / f"{key}-speed.safetensors", pixels)
    sessions = {batch: onnx_session(path, model, batch) for batch in (1, pictures)}
    rows = []
    for _ in range(rounds):
        mine = ours("time", path, written, seconds, threads=THREADS)
        torch.set_num_threads(THREADS)
        row = {"ours": mine["batch_ms"], "ours, one": mine["single_ms"]}
        for batch in (1, pictures):
            name = ", one" if batch == 1 else ""
            some = pixels[:batch]
            row["torch" + name] = 1e3 * lap(lambda: models.embeddings_of(model, some), seconds) / batch
            feed = {"pixels": some.numpy()}
            row["onnx" + name] = 1e3 * lap(lambda: sessions[batch].run(None, feed), seconds) / batch
        rows.append(row)
    middle = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    # Theirs by whichever batch serves them best; each round's programs ran one after the other.
    ratio = statistics.median(min(row[n] for n in row if not n.startswith("ours")) / row["ours"] for row in rows)
    single = statistics.median(min(row["torch, one"], row["onnx, one"]) / row["ours, one"] for row in rows)
    print(f"| {title}, {pictures} or one | " + " | ".join(f"{1e3 / middle[name]:.2f}" for name in ("ours", "torch", "onnx", "ours, one", "torch, one", "onnx, one")) + f" | {ratio:.2f} | {single:.2f} |", flush=True)
    return ratio, single


def photographs():
    """Natural pictures of 12 and 1 megapixels: photographs from orbit side by side, and one of them scaled down."""
    sources = sorted(path for path in (data / "astronaut").iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
    paths = []
    for name, width, height in (("12", 4000, 3000), ("1", 1200, 900)):
        path = models.folder / f"photo-{name}mp.jpg"
        if not path.exists():
            picture = Image.new("RGB", (4096, 3072))
            for k in range(12):
                picture.paste(Image.open(sources[k % len(sources)]).convert("RGB").resize((1024, 1024)), (k % 4 * 1024, k // 4 * 1024))
            picture.resize((width, height), Image.Resampling.LANCZOS).save(path, quality=85, subsampling="4:2:0")
        paths.append(path)
    return paths


def decoding():
    paths = photographs()
    path, (model, _) = models.clip()[0], models.dinov2()
    torch.set_num_threads(1)
    processors = [transformers.AutoImageProcessor.from_pretrained(path, backend=backend) for backend in ("pil", "torchvision")]
    ratios, lines = [], []
    for number, photo in enumerate(paths):
        measured = []
        for _ in range(rounds):
            mine = ours("decode", seconds / 2, model, photo, threads=1)["photos"][0]
            theirs = []
            for processor in processors:
                def prepare():
                    with open(photo, "rb") as file:
                        picture = Image.open(file)
                        picture.load()
                        return processor(picture, return_tensors="pt")["pixel_values"]
                theirs.append(1e3 * lap(prepare, seconds / 2))
            measured.append((mine, theirs))
        ratio = [statistics.median(theirs[k] / mine["exact_ms"] for mine, theirs in measured) for k in (0, 1)]
        ratios.append(ratio)
        mine = lambda name: statistics.median(m[name] for m, _ in measured)
        pil, torchvision = (statistics.median(t[k] for _, t in measured) for k in (0, 1))
        lines.append(f"| {('12', '1')[number]} megapixels | {mine('exact_ms'):.1f} | {pil:.1f} | {torchvision:.1f} | {ratio[0]:.2f} | {ratio[1]:.2f} | {mine('fast_ms'):.1f} | {mine('fast_cosine'):.5f} |")
    return ratios, lines


print("# Encoders and decoding, beside others\n")
print(f"PyTorch {torch.__version__}, ONNX Runtime {onnxruntime.__version__}, transformers {transformers.__version__}; {THREADS} threads, f32, pictures per second; medians over {rounds} rounds in turn.\n")
print(f"| encoder | ours, several pictures | PyTorch | ONNX Runtime | ours, one picture | PyTorch | ONNX Runtime | ours / best | one picture |\n|---|---|---|---|---|---|---|---|---|")
figures = {"n": rounds}
encoders = (("dinov2_s", "DINOv2 ViT-S/14 with registers", models.dinov2, 8), ("vit_l14", "CLIP ViT-L/14", models.clip, 4))
# The large one takes minutes.
for key, title, make, pictures in encoders[:1] if quick else encoders:
    figures[f"{key}_over_best"], figures[f"{key}_single_over_best"] = (round(ratio, 3) for ratio in encoder(key, title, make, pictures))
ratios, lines = decoding()
print("\nFrom a JPEG in memory (ours) or a file (theirs) to 3 × 224 × 224 numbers, milliseconds on one thread. transformers has two ways to go on after Pillow has decoded: by Pillow, or by torchvision.\n")
print("| JPEG | ours | Pillow, transformers (pil) | Pillow, transformers (torchvision) | Pillow's / ours | torchvision's / ours | ours, `--fast-decode` | cosine of its DINOv2 embedding to the exact one |\n|---|---|---|---|---|---|---|---|")
print("\n".join(lines))
for k, name in enumerate(("pillow", "torchvision")):
    figures[f"decode_over_{name}"] = round(min(ratio[k] for ratio in ratios), 3)
    figures[f"decode_12mp_over_{name}"], figures[f"decode_1mp_over_{name}"] = (round(ratio[k], 3) for ratio in ratios)
print()
print(json.dumps(figures))
