"""The progress of long commands, and how Ctrl-C stops them."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from afterword import Afterword, Failure, ProcessingOptions, ProcessingReport, SessionOutcome, Spending
from afterword.cli.app import call_store
from afterword.cli.printing import console, cost_text, print_lines
from afterword.client.values import Halt

PROGRESS_LINES = 10
"""How many lines show the progress of a run if there is no terminal for a bar."""


def process_interruptibly(
    process: Callable[[Afterword, ProcessingOptions], Awaitable[ProcessingReport]],
    options: ProcessingOptions,
    *,
    is_quiet: bool,
) -> ProcessingReport:
    """Process sessions, and return the results. Show the progress unless `is_quiet`, and stop at Ctrl-C."""

    async def process_with_progress(store: Afterword) -> ProcessingReport:
        with halting_at_interrupt() as halt, showing_progress(is_quiet=is_quiet) as progress:
            shown = replace(options, stop=halt, on_begin=progress.begin, on_done=progress.advance)
            return await process(store, shown)

    return call_store(process_with_progress, create=True)


class RunProgress:
    """Shows how many sessions have ended: in a bar, and with `has_lines` in a line after each tenth of them."""

    def __init__(self, bar: Progress, *, has_lines: bool) -> None:
        self._bar, self._has_lines, self._failed = bar, has_lines, 0
        self._task = bar.add_task("sessions", total=None, state="")

    def begin(self, total: int) -> None:
        """Set how many sessions will be processed."""
        self._bar.reset(self._task, total=total)

    def advance(self, result: SessionOutcome | Failure, spent: Spending) -> None:
        """Count a session that has ended, and show the rate, the cost and the failures so far."""
        task = self._bar.tasks[0]
        done, total, minutes = int(task.completed) + 1, int(task.total or 1), (task.elapsed or 0) / 60
        self._failed += isinstance(result, Failure)
        rate = done / minutes if minutes else 0.0
        pace = f"{rate:.0f} a minute" if rate >= 1 or not rate else f"{60 * rate:.0f} an hour"
        state = f"{pace}, {cost_text(spent)}, {self._failed} failed"
        self._bar.update(self._task, advance=1, state=state)
        if self._has_lines and done * PROGRESS_LINES // total != (done - 1) * PROGRESS_LINES // total:
            self._bar.console.print(f"{done} of {total} sessions, {state}")


@contextmanager
def showing_progress(*, is_quiet: bool) -> Iterator[RunProgress]:
    """Show the progress of a run on standard error, unless `is_quiet`: as a bar on a terminal, otherwise as lines."""
    out, state = console(to_errors=True), TextColumn("{task.fields[state]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), state, TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True, disable=is_quiet or not out.is_terminal) as bar:
        yield RunProgress(bar, has_lines=not is_quiet and not out.is_terminal)


@contextmanager
def halting_at_interrupt() -> Iterator[Halt]:
    """Handle Ctrl-C: the first one lets sessions in progress finish and stops, the second one cancels the task."""
    task, halt = asyncio.current_task(), Halt()

    def on_signal(_signal: signal.Signals) -> None:
        if halt() is None:
            halt.stop("interrupted")
            advice = "press Ctrl-C again to leave them for the next run"
            print_lines(f"stopping: sessions in progress are finished; {advice}", to_errors=True)
        elif task is not None:
            task.cancel()

    with handling_signals(on_signal, signal.SIGINT):
        yield halt


@contextmanager
def handling_signals(handle: Callable[[signal.Signals], None], *signals: signal.Signals) -> Iterator[None]:
    """Call `handle` for these signals inside the block. On Windows and outside the main thread, nothing changes."""
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
