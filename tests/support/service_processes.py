"""The service as a process of its own, forked from one that has loaded it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from afterword.server import listener
from batches import start, wait_until
from nursery import Child
from programs import run_command

IMPATIENT_HEADER_S = 2.0


def serve_impatiently(arguments: Sequence[str]) -> None:
    """Run a command; a server waits only `IMPATIENT_HEADER_S` seconds for the headers of a request."""
    listener.HEADER_S = IMPATIENT_HEADER_S
    run_command(arguments)


@contextmanager
def served(
    url: str,
    folder: Path,
    command: str = "serve",
    *options: str,
    program: Callable[[Sequence[str]], None] = run_command,
) -> Iterator[tuple[Child, str]]:
    """Run the service on a store, and yield the process with its address or its one-time link."""
    process = start(url, folder, command, "--port", "0", *options, program=program)
    try:
        wait_until(lambda: "\n" in process.printed() or process.poll() is not None)
        yield process, process.printed().splitlines()[0].split()[-1]
    finally:
        process.kill()
        process.wait()
