"""Everything here works with the built-in model and the images of the repository."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

import pytest

import locdiff

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = [ROOT / "examples" / name for name in ("madagascar.jpg", "sinai.jpg")]
#: A photograph from the ground, which earth-view rejects.
REJECTED = ROOT / "parity/photo/files/rgb.jpg"


@pytest.fixture(scope="session", autouse=True)
def no_models(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["LOCDIFF_HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def model(no_models: None) -> locdiff.Model:
    # Registration takes seconds in a debug build; the search alone has densities too.
    return locdiff.open("earth-view", registration=False)


@pytest.fixture(scope="session")
def answer(model: locdiff.Model) -> locdiff.Answer:
    return model.locate(EXAMPLES[0])


@pytest.fixture(scope="session")
def program() -> str:
    """The command of this environment, or the one that is named."""
    named = os.environ.get("LOCDIFF_PROGRAM")
    found = named or shutil.which("locdiff", path=sysconfig.get_path("scripts"))
    if found is None:
        pytest.skip("the command is not installed")
    return found
