"""Shared fixtures. Data and golden files live outside the repository (see CONTRIBUTING.md)."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# The same examples in every run: a red run is the fault of the change, not of the draw.
# HYPOTHESIS_PROFILE=explore looks for new counterexamples.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

if not (Path(__file__).parents[1] / "benchmarks").exists():  # as in a source archive
    collect_ignore = ["test_quality_bench.py"]


def folder_or_skip(variable: str, content: str) -> Path:
    """Return the folder that an environment variable names; skip the test when it is not there."""
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set: it names the folder of the {content}")
    folder = Path(value)
    if not folder.is_dir():
        pytest.skip(f"{variable} does not name a folder: the {content} are not here")
    return folder


@pytest.fixture
def data_dir() -> Path:
    """Return the folder of the image data sets (`orl.npz`, `coil20.npz`, ...)."""
    return folder_or_skip("TUBAL_DATA", "image data sets")


@pytest.fixture
def golden() -> Callable[[str], dict[str, np.ndarray]]:
    """Return a function that loads one golden file by name, such as `golden("dct")`."""
    folder = folder_or_skip("TUBAL_GOLDEN", "golden files")

    def load(name: str) -> dict[str, np.ndarray]:
        path = folder / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"TUBAL_GOLDEN has no file {path.name}")
        with np.load(path) as arrays:
            return dict(arrays)

    return load
