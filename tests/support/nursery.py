"""Processes that need not load the program anew: forked from one that has, they begin at once and may be killed.

Starting an interpreter and importing a model's client takes seconds of a small machine; what is shown of processes that
die is the same.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LOADED = (
    "pytest",
    "openai",
    "instructor",
    "procrastinate",
    "afterword.cli",
    "afterword.cli.fleet",
    "afterword.cli.processing",
    "afterword.cli.scheduling",
    "afterword.pipeline.background.workers",
)
LONGEST_S = 120.0

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(LOADED))


class Child:
    """A process that runs `afterword` with these arguments, or a program where one is given, with this environment.

    What it prints is written to the file `log`.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: Path, *, program: str | None = None
    ) -> None:
        given = (list(arguments), dict(environment), str(log), program)
        self._process = _context.Process(target=_live, args=given, daemon=True)
        self._process.start()

    def poll(self) -> int | None:
        """Return how it has ended, None while it lives; minus the number of the signal that killed it."""
        return self._process.exitcode

    def wait(self, timeout: float = LONGEST_S) -> int:
        """Wait until it has ended, and return how."""
        self._process.join(timeout)
        code = self.poll()
        assert code is not None, "it did not end in time"
        return code

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()


def _live(arguments: list[str], environment: dict[str, str], log: str, program: str | None) -> None:
    """Become the process."""
    printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(Path(log).parent)
    sys.argv = ["afterword", *arguments]
    if program is not None:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
        return
    from afterword.cli import main

    main()
