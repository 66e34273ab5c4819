"""A table that contains the bytes of images, located inside a Spark job: spark_table.py INPUT.parquet OUTPUT."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import locdiff


@functools.cache
def model() -> locdiff.Model:
    """Opened once per process, which Spark keeps."""
    return locdiff.open("earth-view", registration=False)


def locate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from pa.table(model().locate_table(pa.Table.from_batches([batch]))).to_batches()


def located_schema(table: StructType) -> StructType:
    """Columns of the table without its images, then those of answers."""
    kept = [field for field in table if field.name != "image"]
    numbers = ["latitude", "longitude", "mass", "radius_50_km", "radius_90_km", "area_50_km2", "area_90_km2"]
    texts = ["town", "district", "country", "country_code", "model", "model_version", "answer", "error"]
    schema = StructType(kept)
    for name in numbers:
        schema = schema.add(name, "double")
    schema = schema.add("calibrated", "boolean")
    for name in texts:
        schema = schema.add(name, "string")
    return schema


if __name__ == "__main__":
    source, target = sys.argv[1:]
    # Images are large, so that few rows go at a time; threads follow spark.task.cpus.
    spark = (
        SparkSession.builder.appName("locdiff table")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", 64)
        .config("spark.executorEnv.RAYON_NUM_THREADS", 1)
        .getOrCreate()
    )
    table = spark.read.parquet(source)
    table.mapInArrow(locate, located_schema(table.schema)).write.mode("overwrite").parquet(target)
