"""How a long command shows that it gets on, and how Ctrl-C ends it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from afterword.cli.output import console
from afterword.cli.spending import money
from afterword.pipeline.batch import Failure
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.session import SessionOutcome

INTERRUPTED = "interrupted"
LINES = 10
"""How many lines tell the progress of a run where no terminal shows a bar."""


class Report:
    """Keeps what became of each session as it ends, and says how far the run is."""

    def __init__(self, total: int, tracker: CostTracker) -> None:
        self.ended: list[SessionOutcome | Failure] = []
        self._total, self._tracker, self._since = total, tracker, time.monotonic()

    def __call__(self, one: SessionOutcome | Failure) -> None:
        """Take note of a session that has ended."""
        self.ended.append(one)

    @property
    def text(self) -> str:
        """Rate, cost and failures so far."""
        minutes = (time.monotonic() - self._since) / 60
        failed = sum(isinstance(one, Failure) for one in self.ended)
        rate = len(self.ended) / minutes if minutes else 0.0
        return f"{rate:.0f} a minute, {money(self._tracker.spent)}, {failed} failed"


class _Bar(Report):
    """Shows a bar on a terminal."""

    def __init__(self, total: int, tracker: CostTracker, progress: Progress) -> None:
        super().__init__(total, tracker)
        self._progress = progress
        self._task = progress.add_task("sessions", total=total, told="")

    def __call__(self, one: SessionOutcome | Failure) -> None:
        super().__call__(one)
        self._progress.update(self._task, advance=1, told=self.text)


class _Lines(Report):
    """Writes a line at each tenth of the way."""

    def __init__(self, total: int, tracker: CostTracker, out: Console) -> None:
        super().__init__(total, tracker)
        self._out = out

    def __call__(self, one: SessionOutcome | Failure) -> None:
        super().__call__(one)
        done, total = len(self.ended), self._total
        if done * LINES // total != (done - 1) * LINES // total:
            self._out.print(f"{done} of {total} sessions, {self.text}")


@contextmanager
def reporting(total: int, tracker: CostTracker, *, quiet: bool) -> Iterator[Report]:
    """Show the progress of a run on stderr: a bar on a terminal, else lines; nothing where `quiet`."""
    out = console(to_errors=True)
    if quiet:
        yield Report(total, tracker)
    elif not out.is_terminal:
        yield _Lines(total, tracker, out)
    else:
        told = TextColumn("{task.fields[told]}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), told, TimeElapsedColumn())
        with Progress(*columns, console=out, transient=True) as progress:
            yield _Bar(total, tracker, progress)


@dataclass(slots=True)
class Stop:
    """Whether somebody has asked for an end. Called, it gives the reason, None before that."""

    reason: str | None = None

    def __call__(self) -> str | None:
        """Return the reason to stop."""
        return self.reason


@contextmanager
def interruptible() -> Iterator[Stop]:
    """Take Ctrl-C as the wish to stop: sessions at work are finished. The second one cancels the running task."""
    loop, task, stop = asyncio.get_running_loop(), asyncio.current_task(), Stop()

    def on_signal() -> None:
        if stop.reason is None:
            stop.reason = INTERRUPTED
            console(to_errors=True).print("stopping: the sessions at work are finished; once more hands them back")
        elif task is not None:
            task.cancel()

    try:
        loop.add_signal_handler(signal.SIGINT, on_signal)
    except (NotImplementedError, RuntimeError, ValueError):
        # Not on Windows, nor in another thread: there Ctrl-C ends the program as it always did.
        yield stop
        return
    try:
        yield stop
    finally:
        loop.remove_signal_handler(signal.SIGINT)
