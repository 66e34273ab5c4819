"""Shards of embeddings as other people write them: see ../README.md.

`generate.py` writes the folders beside it; `generate.py check DIRECTORY` reads shards that our
writer made, by pyarrow, pandas and datasets."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
WIDTH = 5
ROWS = 40


def metadata(views=1):
    return {
        "locdiff.format": "locdiff-embeddings",
        "locdiff.version": "1",
        "locdiff.encoder": "test",
        "locdiff.width": str(WIDTH),
        "locdiff.views": str(views),
    }


# The same rows as in crates/locdiff-train/tests/data/sets.rs.
def place(row):
    return [(90, 0), (-90, 0), (12.5, -180), (-45.25, 179.999), (row / 100, row / 50)][row % 5]


def embedding(row, views=1):
    return [x for view in range(views) for x in (row, view, -0.5, 2, row / 2)]


def table(rows, numbers, views=1, fixed=True, places=None, embeddings=None):
    places = places or [place(row) for row in range(rows)]
    embeddings = embeddings or [embedding(row, views) for row in range(rows)]
    kind = pa.list_(numbers, views * WIDTH) if fixed else pa.list_(numbers)
    if pa.types.is_float16(numbers):
        embeddings = [[np.float16(x) for x in row] for row in embeddings]
    columns = {
        "id": pa.array([f"row-{row}" for row in range(rows)]),
        "latitude": pa.array([at[0] for at in places], pa.float64()),
        "longitude": pa.array([at[1] for at in places], pa.float64()),
        "embedding": pa.array(embeddings, kind),
    }
    return pa.table(columns).replace_schema_metadata(metadata(views))


def documented():
    """The lines of docs/data-format.md."""
    embeddings = np.array([embedding(row) for row in range(ROWS)])  # [rows, width]
    ids = [f"row-{row}" for row in range(ROWS)]
    latitudes, longitudes = zip(*(place(row) for row in range(ROWS)))
    rows, width = embeddings.shape
    numbers = pa.array(embeddings.astype(np.float16).ravel())
    shard = pa.table({
        "id": pa.array(ids, pa.string()),
        "latitude": pa.array(latitudes, pa.float64()),
        "longitude": pa.array(longitudes, pa.float64()),
        "embedding": pa.FixedSizeListArray.from_arrays(numbers, width),
    }).replace_schema_metadata({
        "locdiff.format": "locdiff-embeddings", "locdiff.version": "1",
        "locdiff.encoder": "test", "locdiff.width": str(width), "locdiff.views": "1",
    })
    pq.write_table(shard, out("documented"), row_group_size=4096, use_dictionary=False,
                   compression="none", write_page_checksum=True)


def out(name):
    (HERE / name).mkdir(exist_ok=True)
    return HERE / name / "shard-00000.parquet"


def generate():
    pq.write_table(table(ROWS, pa.float32(), fixed=False), out("default"), row_group_size=16)
    pq.write_table(table(ROWS, pa.float32()), out("plain"), row_group_size=16, use_dictionary=False)
    pq.write_table(
        table(ROWS, pa.float16(), views=2), out("second-pages"), row_group_size=16,
        use_dictionary=["id"], compression="zstd", data_page_version="2.0", data_page_size=64,
    )
    documented()
    places = [place(row) for row in range(12)]
    embeddings = [embedding(row) for row in range(12)]
    places[1] = (91, 0)
    places[2] = (0, float("nan"))
    places[3] = (None, 0)
    embeddings[4] = None
    embeddings[5] = embeddings[5][:4]
    embeddings[6] = [None] + embeddings[6][1:]
    embeddings[7] = embeddings[7][:4] + [float("inf")]
    embeddings[8] = []
    bad = table(12, pa.float32(), fixed=False, places=places, embeddings=embeddings)
    pq.write_table(bad, out("bad-rows"))
    pq.write_table(table(2, pa.float32()).replace_schema_metadata(None), out("no-metadata"))
    pq.write_table(table(2, pa.float64()), out("doubles"))


def check(directory):
    import datasets
    import pandas

    files = sorted(str(path) for path in Path(directory).glob("*.parquet"))
    frame = pandas.concat(pandas.read_parquet(file) for file in files)
    whole = datasets.load_dataset("parquet", data_files=files, split="train")
    stream = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
    assert len(frame) == len(whole) > 0
    print(whole.features)
    for (_, ours), row, streamed in zip(frame.iterrows(), whole, stream):
        number = int(ours["id"].removeprefix("row-"))
        assert row["id"] == streamed["id"] == ours["id"]
        assert np.allclose([row["latitude"], row["longitude"]], place(number))
        for found in (ours["embedding"], row["embedding"], streamed["embedding"]):
            assert np.array_equal(np.float32(found), np.float32(embedding(number)))
    print(pq.read_schema(files[0]))
    print(pq.ParquetFile(files[0]).metadata.metadata)
    print(f"{len(whole)} rows read by pyarrow {pa.__version__}, pandas {pandas.__version__}, "
          f"datasets {datasets.__version__}")


if __name__ == "__main__":
    check(sys.argv[2]) if sys.argv[1:2] == ["check"] else generate()
