"""usearch (HNSW) on the same encodings and queries: recall by the same rule, and times on one core. Arguments: folder, rows. Prints JSON."""

import json
import pathlib
import sys
import time

import numpy as np
import usearch
from usearch.index import Index

folder, rows = pathlib.Path(sys.argv[1]), int(sys.argv[2])
stored = folder / f"usearch-{rows}.index"
encodings = np.memmap(folder / "encodings.f16", dtype=np.float16, mode="r").reshape(-1, 512)[:rows]
queries = np.load(folder / "queries.npy").astype(np.float32)
tenths = np.load(folder / f"tenths-{rows}.npy").astype(np.float32)

# The defaults of the package: connectivity 16, expansion 128 while building, 64 while searching.
index = Index(ndim=512, metric="cos", dtype="f16")
built = folder / f"usearch-{rows}.json"
if stored.exists() and built.exists():
    index.load(str(stored))
    build_s = json.loads(built.read_text())["build_s"]
else:
    build_s = 0.0
    for first in range(0, rows, 20_000):
        block = np.ascontiguousarray(encodings[first : first + 20_000])
        began = time.process_time()
        index.add(np.arange(first, first + len(block)), block, threads=2)
        build_s += time.process_time() - began
        print(f"usearch: {first + len(block):,} of {rows:,}, {build_s:.0f} s of processor time", file=sys.stderr, flush=True)
    index.save(str(stored))
    built.write_text(json.dumps({"build_s": build_s}))

began = time.process_time()
answers = [index.search(query, 10, threads=1) for query in queries]
query_ms = 1e3 * (time.process_time() - began) / len(queries)
good = 0
for query, tenth, found in zip(queries, tenths, answers):
    near = encodings[np.asarray(found.keys, dtype=np.int64)].astype(np.float32)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    good += int((near @ query >= tenth - 1e-3).sum())
print(json.dumps({
    "version": usearch.__version__,
    "rows": rows,
    "queries": len(queries),
    "recall": good / (10 * len(queries)),
    "query_ms": query_ms,
    "build_per_s": rows / build_s,
    "gb": stored.stat().st_size / 1e9,
}))
