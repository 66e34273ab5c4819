"""Packages that are imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from ._errors import MissingPackageError


def needed(package: str, purpose: str, extra: str | None = None) -> Any:
    """Imports a package; the error explains how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = f"'locdiff[{extra}]'" if extra else package.split(".")[0]
        raise MissingPackageError(f"{purpose} needs {package.split('.')[0]}: pip install {name}") from error


def numpy(purpose: str) -> Any:
    return needed("numpy", purpose)
