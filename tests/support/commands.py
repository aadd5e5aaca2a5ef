"""The command line within the test's own process: a command costs no start of an interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from afterword.cli import main


class Commands:
    """Runs commands in an empty folder, with nothing configured but what the call gives."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._patch, self._captured = patch, captured

    def __call__(self, *arguments: str, expected: int = 0, **environment: str) -> str:
        """Return what a command prints, errors too where it fails; its exit code must be the expected one."""
        with self._patch.context() as patch:
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["afterword", *arguments])
            for name, value in environment.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        told = self._captured.readouterr()
        assert (ended.value.code or 0) == expected, told.out + told.err
        return told.out + (told.err if expected else "")
