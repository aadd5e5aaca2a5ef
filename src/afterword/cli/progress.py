"""How a long command shows its progress, and how Ctrl-C ends it."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import afterword
from afterword.cli.calls import call_store
from afterword.cli.output import console, money
from afterword.client.results import ProcessingReport
from afterword.client.values import Failure, Halt, SessionOutcome, Spending

INTERRUPT = "interrupted"
LINES = 10
"""How many lines show the progress of a run if there is no terminal for a bar."""

Processing = Callable[[afterword.Afterword, afterword.ProcessingOptions], Awaitable[ProcessingReport]]


def process_interruptibly(
    process: Processing, options: afterword.ProcessingOptions, *, is_quiet: bool
) -> ProcessingReport:
    """Process sessions, show the progress unless `is_quiet`, and stop at Ctrl-C; return what became of each session."""

    async def process_and_show(store: afterword.Afterword) -> ProcessingReport:
        with interruptible() as stop, showing_progress(is_quiet=is_quiet) as progress:
            shown = replace(options, stop=stop, on_begin=progress.begin, on_done=progress.advance)
            return await process(store, shown)

    return call_store(process_and_show, create=True)


class RunProgress:
    """Counts the sessions that have ended, and shows nothing."""

    def __init__(self) -> None:
        self.total = self.done = self.failed = 0
        self._since = time.monotonic()

    def begin(self, total: int) -> None:
        """Take note of how many sessions are processed."""
        self.total, self._since = total, time.monotonic()

    def advance(self, result: SessionOutcome | Failure, spent: Spending) -> None:  # noqa: ARG002 - shown by others
        """Take note of a session that has ended, and of what the run has cost so far."""
        self.done += 1
        self.failed += isinstance(result, Failure)

    def text(self, spent: Spending) -> str:
        """Return the rate, the cost and the failures so far."""
        minutes = (time.monotonic() - self._since) / 60
        rate = self.done / minutes if minutes else 0.0
        return f"{rate:.0f} a minute, {money(spent)}, {self.failed} failed"


class _ProgressBar(RunProgress):
    """Shows a bar on a terminal."""

    def __init__(self, bar: Progress) -> None:
        super().__init__()
        self._bar = bar
        self._task = bar.add_task("sessions", total=None, state="")

    def begin(self, total: int) -> None:
        super().begin(total)
        self._bar.update(self._task, total=total)

    def advance(self, result: SessionOutcome | Failure, spent: Spending) -> None:
        super().advance(result, spent)
        self._bar.update(self._task, advance=1, state=self.text(spent))


class _ProgressLines(RunProgress):
    """Writes a line at each tenth of the way."""

    def __init__(self, out: Console) -> None:
        super().__init__()
        self._out = out

    def advance(self, result: SessionOutcome | Failure, spent: Spending) -> None:
        super().advance(result, spent)
        if self.done * LINES // self.total != (self.done - 1) * LINES // self.total:
            self._out.print(f"{self.done} of {self.total} sessions, {self.text(spent)}")


@contextmanager
def showing_progress(*, is_quiet: bool) -> Iterator[RunProgress]:
    """Show the progress of a run on standard error: a bar on a terminal, otherwise lines; nothing if `is_quiet`."""
    out = console(to_errors=True)
    if is_quiet:
        yield RunProgress()
    elif not out.is_terminal:
        yield _ProgressLines(out)
    else:
        state = TextColumn("{task.fields[state]}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), state, TimeElapsedColumn())
        with Progress(*columns, console=out, transient=True) as bar:
            yield _ProgressBar(bar)


@contextmanager
def interruptible() -> Iterator[Halt]:
    """Take Ctrl-C as a request to stop: sessions in progress are finished. The second one cancels the running task."""
    task, halt = asyncio.current_task(), Halt()

    def on_signal(_signal: signal.Signals) -> None:
        if halt() is None:
            halt.stop(INTERRUPT)
            console(to_errors=True).print(
                "stopping: sessions in progress are finished; press Ctrl-C again to leave them for the next run"
            )
        elif task is not None:
            task.cancel()

    with handling_signals(on_signal, signal.SIGINT):
        yield halt


@contextmanager
def handling_signals(handle: Callable[[signal.Signals], None], *signals: signal.Signals) -> Iterator[None]:
    """Call `handle` for these signals. On Windows and in other threads than the first they do what they always do."""
    loop = asyncio.get_running_loop()
    can_handle = sys.platform != "win32" and threading.current_thread() is threading.main_thread()
    handled = signals if can_handle else ()
    for number in handled:
        loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
