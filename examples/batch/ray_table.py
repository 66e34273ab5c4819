"""A table that contains the bytes of images, located inside a Ray Data pipeline: ray_table.py INPUT.parquet OUTPUT."""

from __future__ import annotations

import functools
import sys

import pyarrow as pa
import ray

import locdiff


@functools.cache
def model() -> locdiff.Model:
    """Opened once per process."""
    return locdiff.open("earth-view", registration=False)


def locate(images: pa.Table) -> pa.Table:
    return pa.table(model().locate_table(images))


if __name__ == "__main__":
    source, target = sys.argv[1:]
    # Tasks, not actors. Ray sets RAYON_NUM_THREADS for nobody: as many threads as processors are reserved.
    options = {"num_cpus": 1, "runtime_env": {"env_vars": {"RAYON_NUM_THREADS": "1"}}}
    table = ray.data.read_parquet(source).map_batches(locate, batch_format="pyarrow", batch_size=64, **options)
    table.write_parquet(target)
