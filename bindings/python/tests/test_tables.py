"""Tables of images, through Arrow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import EXAMPLES, REJECTED

import locdiff

pa = pytest.importorskip("pyarrow")


def rows() -> dict[str, Any]:
    images = [EXAMPLES[0].read_bytes(), b"no image", None, REJECTED.read_bytes(), EXAMPLES[1].read_bytes()]
    return {"id": [1, 2, 3, 4, 5], "image": images}


def test_errors_are_rows_and_answers_are_the_same(model: locdiff.Model) -> None:
    table = pa.table(rows())
    answers = pa.table(model.locate_table(table))
    assert answers["id"].to_pylist() == [1, 2, 3, 4, 5] and "image" not in answers.column_names
    errors = answers["error"].to_pylist()
    assert [error is None for error in errors] == [True, False, False, False, True]
    assert "not a picture" in errors[1] and "no image" in errors[2]
    assert answers["latitude"].is_null().to_pylist() == [False, True, True, True, False]
    one = model.locate(rows()["image"][4])
    assert json.loads(answers["answer"].to_pylist()[4]) == one.to_dict()
    assert answers["latitude"].to_pylist()[4] == one.place.latitude
    assert answers["radius_90_km"].to_pylist()[4] == one.to_dict()["radius_90_km"]


def test_types_of_images(model: locdiff.Model) -> None:
    data, path = EXAMPLES[0].read_bytes(), str(EXAMPLES[0])
    columns = [
        pa.array([data], pa.binary()),
        pa.array([data], pa.large_binary()),
        pa.array([data], pa.binary_view()),
        pa.array([path], pa.string()),
        pa.array([path], pa.large_string()),
        pa.array([{"bytes": data, "path": path}]),
        pa.array([{"bytes": None, "path": path}], pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    ]
    places = set()
    for column in columns:
        answers = pa.table(model.locate_table(pa.table({"photo": column}), column="photo"))
        places.add((answers["latitude"][0].as_py(), answers["longitude"][0].as_py()))
    assert len(places) == 1 and None not in places.pop()


def test_streams_are_read_bit_by_bit(model: locdiff.Model) -> None:
    schema = pa.schema({"image": pa.binary(), "latitude": pa.float64()})
    made = 0

    def batches() -> Any:
        nonlocal made
        for _ in range(3):
            made += 1
            yield pa.record_batch({"image": [b"x"] * 100, "latitude": [1.0] * 100}, schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    stream = model.locate_batches(reader, prefix="predicted_")
    first = next(stream)
    assert made == 1 and first.num_rows == 64
    assert "predicted_latitude" in first.column_names
    assert 64 + sum(len(batch) for batch in stream) == 300
    empty = model.locate_table(schema.empty_table(), prefix="p_")
    assert len(empty) == 0 and pa.table(empty).schema.field("p_error").type == pa.string()


def test_what_does_not_fit_is_said(model: locdiff.Model) -> None:
    with pytest.raises(locdiff.OptionError, match="no column `image`"):
        model.locate_table(pa.table({"photo": [b""]}))
    with pytest.raises(locdiff.OptionError, match="contains Int64"):
        model.locate_table(pa.table({"image": [1]}))
    with pytest.raises(locdiff.OptionError, match="prefix"):
        model.locate_table(pa.table({"image": [b""], "latitude": [1.0]}))
    with pytest.raises(locdiff.OptionError, match="__arrow_c_stream__"):
        model.locate_table([b""])  # type: ignore[arg-type]


def test_other_libraries(model: locdiff.Model) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": [7], "image": [EXAMPLES[0].read_bytes()]})
    answers = polars.DataFrame(model.locate_table(frame))
    assert answers["country"].to_list() == ["Madagascar"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"image": [EXAMPLES[0].read_bytes()]})
    assert pa.table(model.locate_table(frame))["country"].to_pylist() == ["Madagascar"]
