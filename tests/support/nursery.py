"""Processes that need not load the program anew: forked from one that has, they begin at once and may be killed.

Starting an interpreter and importing a model's client takes seconds of a small machine; what is shown of processes that
die is the same.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

import pytest

from programs import run_command

# `openai`, `instructor` and the server are what a command loads last, and what takes longest.
LOADED = (
    *("pytest", "openai", "instructor", "procrastinate", "programs"),
    *(
        "afterword.cli.outcomes",
        "afterword.cli.progress",
        "afterword.cli.logs",
        "afterword.store.merging.moves",
        "rich.logging",
    ),
    *("afterword.server.listener", "uvicorn.lifespan.on", "anyio._backends._asyncio", "warm_program"),
)
LONGEST_S = 120.0

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(LOADED))


class Child:
    """A process that runs `afterword` with these arguments, or another program, with this environment.

    What it prints is written to the file `log`; its errors to the file `errors` where one is named, else to `log` too.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        program: Callable[[Sequence[str]], None] = run_command,
        errors: Path | None = None,
    ) -> None:
        started_with = (program, list(arguments), dict(environment), str(log), str(errors or log))
        self._process = _context.Process(target=_live, args=started_with, daemon=True)
        _start_nursery()
        self._process.start()
        self.log = log

    def poll(self) -> int | None:
        """Return how it has ended, None while it lives; minus the number of the signal that killed it."""
        return self._process.exitcode

    def wait(self, timeout_s: float = LONGEST_S) -> int:
        """Wait until it has ended, and return how."""
        self._process.join(timeout_s)
        code = self.poll()
        assert code is not None, "it did not end in time"
        return code

    def printed(self) -> str:
        """Return what it has printed so far."""
        return self.log.read_text() if self.log.exists() else ""

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def interrupt(self) -> None:
        """Send SIGINT."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGINT)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()


def _start_nursery() -> None:
    """Start the process from which the others are forked, unless it runs."""
    with pytest.MonkeyPatch.context() as patch:
        # Python 3.11 hands it no other path, and leaves out silently what it cannot import.
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()


def _live(
    program: Callable[[Sequence[str]], None],
    arguments: list[str],
    environment: dict[str, str],
    log: str,
    errors: str,
) -> None:
    """Become the process."""
    # A shell has the programs that it runs in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor, path in ((1, log), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(Path(log).parent)
    program(arguments)
