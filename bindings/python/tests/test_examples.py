"""What is checked by mypy and pyright also runs."""

from __future__ import annotations

from conftest import ROOT
from examples import use


def test_examples_run() -> None:
    assert use(ROOT / "examples").startswith("Madagascar")
