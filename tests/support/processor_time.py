"""How much processor time the tests take, by file: their own, and that of the processes that they start."""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SHOWN = 25
_ELSEWHERE = "importing, collecting"


class ProcessorTime:
    """A plugin that prints at the end how many seconds of processor time each file of tests took.

    Servers that have left the process group of the tests, such as PostgreSQL, are not counted.
    """

    def __init__(self) -> None:
        self._seconds_by_file: defaultdict[str, float] = defaultdict(float)
        self._counted_s: float | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Count what a test takes, with the fixtures that it is the first to need."""
        if self._counted_s is None:
            self._counted_s = self._seconds_by_file[_ELSEWHERE] = processor_s()
        result = yield
        begun_at_s, self._counted_s = self._counted_s, processor_s()
        # It is less than before where a process that lived then has ended without anybody waiting for it.
        self._seconds_by_file[item.location[0]] += max(0.0, self._counted_s - begun_at_s)
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand a worker's figures to the process that started it."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["processor_s"] = dict(self._seconds_by_file)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the figures of a worker that has ended."""
        for name, seconds in getattr(node, "workeroutput", {}).get("processor_s", {}).items():
            self._seconds_by_file[name] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the sum, and the files that took most."""
        terminalreporter.write_line(f"processor time: {sum(self._seconds_by_file.values()):.0f} s")
        by_seconds = sorted(self._seconds_by_file.items(), key=lambda entry: -entry[1])
        for name, seconds in by_seconds[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:8.1f} s  {name}")


def processor_s() -> float:
    """Return the processor time of this process and of all that it has started so far, living or ended, in seconds."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime + _living_s(Path("/proc/self"))


def _living_s(process: Path) -> float:
    """Return the processor time of the children that live, with what they have started. Zero where /proc is absent."""
    total = 0.0
    for thread in process.glob("task/*/children"):
        for child in _read(thread).split():
            # The name of a process stands in brackets and may hold spaces; the numbers follow it.
            numbers = _read(Path("/proc", child, "stat")).rpartition(") ")[2].split()
            total += sum(map(int, numbers[11:15])) / _TICKS_PER_S + _living_s(Path("/proc", child))
    return total


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has just ended
        return ""
