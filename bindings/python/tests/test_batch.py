"""Jobs of many images, on this machine. `experiments/run batch` has clusters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import EXAMPLES

import locdiff
from locdiff import batch


def manifest(folder: Path) -> str:
    rows = [f"{number},{EXAMPLES[number % 2]}" for number in range(6)] + ["6,none.jpg"]
    path = folder / "images.csv"
    path.write_text("id,path\n" + "\n".join(rows) + "\n")
    return str(path)


def test_from_plan_to_finish(tmp_path: Path) -> None:
    job = str(tmp_path / "job")
    planned = batch.plan(manifest(tmp_path), job, task="check", rows_per_unit=2, cells="h3:5")
    assert planned["units"] == 4 and planned["rows"] == 7
    assert batch.plan(manifest(tmp_path), job, task="check", rows_per_unit=2, cells="h3:5") == planned
    with pytest.raises(locdiff.BatchError, match="rows_per_unit was 2, is now 3"):
        batch.plan(manifest(tmp_path), job, task="check", rows_per_unit=3, cells="h3:5")
    with pytest.raises(locdiff.BatchError, match="not finished"):
        batch.finish(job)
    done = batch.run_unit(job, 3, threads=1)
    assert (done["already"], done["rows"], done["errors"]) == (False, 1, 1)
    assert batch.run_unit(job, 3)["already"]
    reports: list[batch.Report] = []
    assert batch.run(job, on_unit=reports.append)["open"] == 0
    assert [report["unit"] for report in reports] == [0, 1, 2]
    assert batch.run(job, on_unit=reports.append)["done"] == 4 and len(reports) == 3
    finished = batch.finish(job)
    assert (finished["rows"], finished["errors"]) == (7, 1)


def test_rows_are_those_of_locate_table(tmp_path: Path, model: locdiff.Model) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"id": [1, 2], "image": [EXAMPLES[0].read_bytes(), b"no image"]})
    pq.write_table(table, tmp_path / "images.parquet")
    job = str(tmp_path / "job")
    batch.plan(str(tmp_path / "images.parquet"), job, registration=False)
    batch.run(job, cpus_per_unit=2)
    found = pq.read_table(tmp_path / "job/out/unit-00000.parquet")
    expected = pa.table(model.locate_table(table))
    assert found["id"].to_pylist() == ["1", "2"]
    for name in expected.column_names:
        if name == "answer":
            answers = [json.loads(answer) for answer in (found[name][0].as_py(), expected[name][0].as_py())]
            assert answers[0]["place"] == answers[1]["place"] and answers[0]["candidates"] == answers[1]["candidates"]
        elif name != "id":
            assert found[name].to_pylist() == expected[name].to_pylist(), name


def test_mistakes_are_named(tmp_path: Path) -> None:
    images = manifest(tmp_path)
    with pytest.raises(locdiff.OptionError, match="needs an encoder"):
        batch.plan(images, str(tmp_path / "job"), task="embed")
    with pytest.raises(locdiff.OptionError, match="not for task"):
        batch.plan(images, str(tmp_path / "job"), task="check", registration=False)
    with pytest.raises(locdiff.OptionError, match="h3:99"):
        batch.plan(images, str(tmp_path / "job"), task="check", cells="h3:99")
    with pytest.raises(locdiff.ModelError):
        batch.plan(images, str(tmp_path / "job"), model="nothing")
    with pytest.raises(locdiff.BatchError, match="nowhere"):
        batch.status(str(tmp_path / "nowhere"))
    batch.plan(images, str(tmp_path / "job"), task="check")
    with pytest.raises(locdiff.OptionError, match="engine 'dask'"):
        batch.run(str(tmp_path / "job"), "dask")  # type: ignore[arg-type]


def test_engines_name_their_package(tmp_path: Path) -> None:
    job = str(tmp_path / "job")
    batch.plan(manifest(tmp_path), job, task="check")
    for engine in ("ray", "spark"):
        # As if it were not installed.
        code = (
            "import sys; sys.modules['ray'] = sys.modules['pyspark'] = None; from locdiff.__main__ import main; "
            "sys.exit(main())"
        )
        command = [sys.executable, "-c", code, "batch", "run", job, f"--engine={engine}"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == 1 and f"pip install 'locdiff[{engine}]'" in ended.stderr
    command = [sys.executable, "-m", "locdiff", "batch", "run", job]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0 and "7 rows, 1 with an error" in ended.stderr
