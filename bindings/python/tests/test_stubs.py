"""The stubs name everything that the native module has, and nothing else; docstrings say what is true."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
from pathlib import Path

import pytest
from conftest import ROOT

import locdiff
from locdiff import _native

FOLDER = Path(locdiff.__file__).parent
STUBS = ast.parse((FOLDER / "_native.pyi").read_text())


def parameters(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


def is_special(name: str) -> bool:
    return name.startswith("__") and name not in ("__arrow_c_stream__", "__iter__", "__next__")


def test_every_name_has_a_stub() -> None:
    names: set[str] = set()
    for node in STUBS.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    assert names == {name for name in dir(_native) if not name.startswith("_")}


def test_every_function_has_its_parameters() -> None:
    for node in STUBS.body:
        if isinstance(node, ast.FunctionDef):
            assert parameters(node) == list(inspect.signature(getattr(_native, node.name)).parameters)


def test_every_class_has_its_members() -> None:
    for node in STUBS.body:
        if not isinstance(node, ast.ClassDef):
            continue
        real = getattr(_native, node.name)
        members = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
        assert set(members) == {name for name in vars(real) if not is_special(name)}, node.name
        for name, member in members.items():
            decorators = {decorator.id for decorator in member.decorator_list if isinstance(decorator, ast.Name)}
            if not name.startswith("__") and "property" not in decorators:
                assert parameters(member) == list(inspect.signature(getattr(real, name)).parameters), name


def test_public_names_are_real_and_documented() -> None:
    for name in locdiff.__all__:
        if name == "torch":
            continue
        value = getattr(locdiff, name)
        assert name == "__version__" or inspect.getdoc(value), name
    public = [value for value in vars(locdiff).values() if inspect.isclass(value) and value.__module__.startswith("locdiff")]
    assert {value.__name__ for value in public} <= set(locdiff.__all__)


@pytest.mark.parametrize("module", ["locdiff", "locdiff._answer", "locdiff._density", "locdiff._model", "locdiff.sphere", "locdiff.evaluate"])
def test_docstrings(module: str) -> None:
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        result = doctest.testmod(importlib.import_module(module))
    finally:
        os.chdir(before)
    assert result.attempted > 0 and result.failed == 0
