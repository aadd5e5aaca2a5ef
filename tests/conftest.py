"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real saved states and scenarios beside the checkout; a test that needs it is skipped without."""
    folder = Path(os.environ.get("AFTERWORD_SHARED", REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: set AFTERWORD_SHARED to the folder that holds data/ and tools/")
    return folder
