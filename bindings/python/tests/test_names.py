"""Public names are documented, and docstrings are true. (mypy's stubtest compares the stubs with the module: see `check`.)"""

from __future__ import annotations

import doctest
import importlib
import inspect
import os

import pytest
from conftest import ROOT

import locdiff


def test_public_names_are_real_and_documented() -> None:
    for name in locdiff.__all__:
        if name == "torch":
            continue
        value = getattr(locdiff, name)
        assert name == "__version__" or inspect.getdoc(value), name
    public = [value for value in vars(locdiff).values() if inspect.isclass(value) and value.__module__.startswith("locdiff")]
    assert {value.__name__ for value in public} <= set(locdiff.__all__)


MODULES = ["locdiff", "locdiff._answer", "locdiff._density", "locdiff._model", "locdiff.sphere", "locdiff.evaluate", "locdiff.batch"]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module: str) -> None:
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        result = doctest.testmod(importlib.import_module(module))
    finally:
        os.chdir(before)
    assert result.attempted > 0 and result.failed == 0
