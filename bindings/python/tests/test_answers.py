"""Answers, and that they are those of the program."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import EXAMPLES, REJECTED

import locdiff


def program_records(program: str, images: list[Path], *options: str) -> list[dict[str, Any]]:
    command = [program, "predict", "--model", "earth-view", "--json", *options, *map(str, images)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_records_equal_those_of_the_program(model: locdiff.Model, program: str) -> None:
    images = [*EXAMPLES, REJECTED]
    # LOCDIFF_TEST_IMAGES names a folder with more of them.
    images += sorted(Path(os.environ.get("LOCDIFF_TEST_IMAGES", "/nonexistent")).glob("*.jpg"))[:200]
    answers = model.locate(images, errors="return")
    records = program_records(program, images, "--no-registration")
    assert len(records) == len(answers) == len(images)
    compared = 0
    for answer, record in zip(answers, records):
        if isinstance(answer, locdiff.Answer):
            assert answer.to_dict() == record
            compared += 1
        else:
            assert record["problem"]["detail"] in str(answer)
    assert compared >= 2


def test_all_kinds_of_images(model: locdiff.Model) -> None:
    pillow = pytest.importorskip("PIL.Image")
    path = EXAMPLES[1]
    by_path = model.locate(path)
    by_bytes = model.locate(path.read_bytes(), name=str(path))
    assert by_bytes.to_dict() == by_path.to_dict()
    # Decoders differ by a level of brightness here and there.
    image = pillow.open(path)
    for same in (image, np.asarray(image)):
        answer = model.locate(same)
        assert answer.to_dict()["image"]["sha256"] is None
        place, other = answer.place, by_path.place
        assert abs(place.latitude - other.latitude) < 1 and abs(place.longitude - other.longitude) < 1
    grey = np.asarray(image.convert("L"))
    alpha = np.dstack([np.asarray(image), np.full(grey.shape, 255, np.uint8)])
    answers = model.locate([alpha, np.asarray(image), grey], errors="return")
    assert isinstance(answers[0], locdiff.Answer) and isinstance(answers[1], locdiff.Answer)
    assert answers[0].to_dict() == answers[1].to_dict()
    # Without color the model may have no answer, but it is an image.
    assert isinstance(answers[2], (locdiff.Answer, locdiff.NoAnswerError))


def test_lists_and_errors(model: locdiff.Model) -> None:
    with pytest.raises(locdiff.NoAnswerError):
        model.locate([EXAMPLES[0], REJECTED])
    answers = model.locate([EXAMPLES[0], REJECTED, b"no image", "no/such/file.jpg"], errors="return")
    kinds = [locdiff.Answer, locdiff.NoAnswerError, locdiff.ImageError, locdiff.ImageFileError]
    assert [type(answer) for answer in answers] == kinds
    assert model.locate([]) == []


def test_exceptions_have_our_words(model: locdiff.Model) -> None:
    with pytest.raises(ValueError, match="there is no model `nonsense`"):
        locdiff.open("nonsense")
    with pytest.raises(OSError, match="locdiff model fetch geoclip"):
        locdiff.open("geoclip")
    with pytest.raises(locdiff.OptionError, match="unknown field `sampels`"):
        locdiff.open("earth-view", sampels=2)
    with pytest.raises(locdiff.OptionError, match="one pass"):
        locdiff.open("earth-view", samples=2)
    with pytest.raises(OSError, match="no/such/file.jpg"):
        model.locate("no/such/file.jpg")
    with pytest.raises(ValueError, match="not a picture"):
        model.locate(b"no image")
    with pytest.raises(locdiff.ImageError, match="float64"):
        model.locate(np.zeros((8, 8, 3)))  # type: ignore[arg-type]
    with pytest.raises(locdiff.ImageError, match="is not an image"):
        model.locate([object()])  # type: ignore[list-item]


def test_what_an_answer_offers(answer: locdiff.Answer, tmp_path: Path) -> None:
    assert answer.best == answer.candidates[0]
    assert answer.best.country == answer.place.country == "Madagascar"
    region = answer.region(0.9)
    assert region.area_km2 > answer.region(0.5).area_km2 > 0
    assert region.__geo_interface__["type"] in ("Polygon", "MultiPolygon")
    assert region.contains(answer.best.latitude, answer.best.longitude)
    inside = answer.within("Madagascar")
    assert inside.to_dict()["within"] == ["Madagascar"]
    assert inside.best.mass >= answer.best.mass - 1e-9
    with pytest.raises(locdiff.NoAnswerError, match="nothing is left"):
        answer.within("Portugal").within("Japan")
    assert answer.plot(tmp_path / "map.png").startswith(b"\x89PNG")
    assert (tmp_path / "map.png").read_bytes() == answer._repr_png_()
    assert answer.plot(tmp_path / "map.svg").startswith(b"<svg")
    html = answer._repr_html_()
    assert "Madagascar" in html and "not a fact" in html
    kinds = {feature["properties"]["kind"] for feature in answer.to_geojson()["features"]}
    assert kinds >= {"region", "candidate", "place"}


def test_geojson_equals_that_of_the_program(answer: locdiff.Answer, program: str) -> None:
    command = [program, "predict", "--model", "earth-view", "--no-registration", "--geojson", str(EXAMPLES[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == answer.to_geojson()


def test_models_within_areas_and_with_options(model: locdiff.Model) -> None:
    inside = model.within("Madagascar").locate(EXAMPLES[0])
    assert inside.to_dict()["within"] == ["Madagascar"]
    box = {"type": "Polygon", "coordinates": [[[40, -30], [55, -30], [55, -10], [40, -10], [40, -30]]]}
    assert model.within(box).locate(EXAMPLES[0]).best.country == "Madagascar"
    assert model.with_options(decode="mean").describe()["inference"]["decode"] == "mean"


def test_embeddings(model: locdiff.Model) -> None:
    rows = model.embed([EXAMPLES[0], EXAMPLES[1]])
    assert rows.ndim == 2 and rows.shape[0] == 2 and rows.dtype == np.float32
