"""Where on Earth was this taken? Answers with a probability map.

>>> import locdiff
>>> model = locdiff.open("earth-view")
>>> answer = model.locate("examples/madagascar.jpg")
>>> answer.best.country
'Madagascar'
>>> answer.region(0.9).area_km2 > 0
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._answer import Answer, Candidate, Place
from ._density import Density, Mode, Region
from ._errors import (
    BatchError,
    Error,
    ForkError,
    ImageError,
    ImageFileError,
    MissingPackageError,
    ModelError,
    ModelMissingError,
    NoAnswerError,
    OptionError,
)
from ._model import Model, Table, open
from ._native import VERSION as __version__

if TYPE_CHECKING:
    from . import batch, evaluate, sphere, torch

__all__ = [
    "Answer",
    "BatchError",
    "Candidate",
    "Density",
    "Error",
    "ForkError",
    "ImageError",
    "ImageFileError",
    "MissingPackageError",
    "Mode",
    "Model",
    "ModelError",
    "ModelMissingError",
    "NoAnswerError",
    "OptionError",
    "Place",
    "Region",
    "Table",
    "__version__",
    "batch",
    "evaluate",
    "open",
    "sphere",
    "torch",
]


def __getattr__(name: str) -> Any:
    # These need packages that not everybody has.
    if name in ("batch", "evaluate", "sphere", "torch"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
