"""One query over GeoCLIP's gallery, by us and by the Python package, in one run."""

import json
import os
import pathlib
import subprocess
import sys
import time

import torch
from geoclip import LocationEncoder
from geoclip.model.misc import file_dir, load_gps_data

quick = "--quick" in sys.argv
program = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release/geoclip"
rounds = 11 if quick else 51
torch.set_num_threads(2)
environment = {**os.environ, "RAYON_NUM_THREADS": "2"}
ours = json.loads(subprocess.run([program, "speed", os.environ["wheel"], str(rounds)], check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)

encoder = LocationEncoder().eval()
gallery = load_gps_data(os.path.join(file_dir, "gps_gallery", "coordinates_100K.csv"))
generator = torch.Generator().manual_seed(1)
image = torch.nn.functional.normalize(torch.randn(1, 512, generator=generator), dim=1)


def milliseconds(work, count):
    times = []
    for _ in range(count):
        began = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - began))
    return sorted(times)[len(times) // 2]


with torch.no_grad():
    # What `GeoCLIP.predict` does after the image encoder, for each picture anew.
    def package_query():
        places = torch.nn.functional.normalize(encoder(gallery), dim=1)
        return torch.topk((39.687 * (image @ places.t())).softmax(dim=-1), 5)

    package_ms = milliseconds(package_query, 1 if quick else 3)
    places = torch.nn.functional.normalize(encoder(gallery), dim=1)
    product_ms = milliseconds(lambda: 39.687 * (image @ places.t()), rounds)

figures = {
    "n": rounds,
    "encode_gallery_s": round(ours["encode_gallery_s"], 2),
    "load_ms": round(ours["load_ms"], 1),
    "query_ms": round(ours["query_ms"], 2),
    "query_over_python": round(package_ms / ours["query_ms"], 1),
    "query_over_cached_product": round(product_ms / ours["query_ms"], 2),
    "map_ms": round(ours["map_ms"], 1),
}
print("# GeoCLIP's gallery\n")
print(f"{ours['places']:,} places, 512 numbers each; two threads; medians of {rounds} queries. PyTorch {torch.__version__}, geoclip 1.3.0.\n")
print("| | ours | Python |\n|---|---|---|")
print(f"| encoding the gallery, once | {figures['encode_gallery_s']} s | the same for every picture |")
print(f"| loading it later (100 MB of 16-bit numbers, checked) | {figures['load_ms']} ms | - |")
print(f"| one query, as the package does it | {figures['query_ms']} ms | {package_ms:.0f} ms |")
print(f"| one query, if Python kept the gallery's embeddings (f32) | {figures['query_ms']} ms | {product_ms:.2f} ms |")
print(f"| from logits to candidates, radii and regions ({ours['map_cells']:.0f} cells) | {figures['map_ms']} ms | - |")
print("\n`query_over_python` is their time over ours.\n")
print(json.dumps(figures))
