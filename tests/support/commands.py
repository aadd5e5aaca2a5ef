"""The command line within the test's own process: a command costs no start of an interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from afterword.cli import main

WORDS_ALONE = {"AFTERWORD_EMBEDDING__KIND": "none"}
"""What keeps a command from loading the local vectors, which takes a second."""


class Commands:
    """Runs commands in an empty folder, with nothing configured but what the call gives."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.errors = ""
        """What the last command wrote to standard error."""
        self._patch, self._captured = patch, captured

    def __call__(self, *arguments: str, expected: int = 0, **environment: str) -> str:
        """Return what a command prints, errors too where it fails; its exit code must be the expected one."""
        return self.within(environment, *arguments, expected=expected)

    def within(self, environment: Mapping[str, str], *arguments: str, expected: int | None = 0) -> str:
        """Return what a command prints, with these variables set. With `expected=None` it may end in any way."""
        with self.surroundings(environment) as patch:
            patch.setattr(sys, "argv", ["afterword", *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
        told = self._captured.readouterr()
        self.errors = told.err
        assert expected is None or (ended.value.code or 0) == expected, told.out + told.err
        return told.out + (told.err if expected else "")

    @contextmanager
    def surroundings(self, environment: Mapping[str, str]) -> Iterator[pytest.MonkeyPatch]:
        """Be in the folder, with these variables and nothing else configured."""
        with self._patch.context() as patch:
            patch.chdir(self.folder)
            for name in os.environ.keys() - clean_environment().keys():
                patch.delenv(name)
            for name, value in {**WORDS_ALONE, **environment}.items():
                patch.setenv(name, value)
            yield patch


def clean_environment() -> dict[str, str]:
    """Return the environment without what would configure afterword or a model. Recall goes by words alone."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AFTERWORD_", "OPENAI_"))}
    return {**clean, **WORDS_ALONE}
