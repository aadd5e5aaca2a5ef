"""Processes sessions in several child processes. This module is also the program of a child process.

All sessions of one scope are processed by the same child, in order. A child is started as
`python -m afterword.client.process_pool`. It reads one `SessionShare` from standard input. To standard output it writes
a `SessionEnd` for every session, and then one `ShareEnd`. When standard input ends, the child begins no further
session; the text before the end is the reason to stop. So a child also stops if its parent process has died.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import BinaryIO

from afterword.client.resources import Resources
from afterword.errors import AfterwordError, ArgumentInvalid
from afterword.facts.scopes import Scope
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.batch import Failure, NotStarted, run_batch
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.settings import Settings
from afterword.store.costs import Spending
from afterword.store.database.engine import Store
from afterword.store.ledger import session_run_source

LENGTH_BYTES = 8
"""Each message begins with its length, as an integer of this many bytes in big-endian order."""
BACKGROUND_NICENESS = 10
"""The `nice` value of background work. It lowers its priority, so that a live agent on a busy machine comes first."""

MANY_SESSIONS = 20
"""Above this number of sessions, one process for each core is worth while. A process needs a second to start."""
SECONDS_BETWEEN_POLLS = 0.2
"""How often the parent process asks whether to stop."""


@dataclass(frozen=True, slots=True)
class SessionShare:
    """The sessions of one child process, and how to process them. `is_background` lowers the priority of the child."""

    settings: Settings
    extractor: str | None
    apply: bool
    concurrency: int
    sessions_at_once: int | None
    is_background: bool
    sessions: tuple[Saved, ...]


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The result of one session, and what it cost."""

    result: SessionOutcome | Failure | NotStarted
    spent: Spending


@dataclass(frozen=True, slots=True)
class ShareEnd:
    """The last message of a child. `error` is why it failed, `budget_reached` the budget that stopped it; else None."""

    budget_reached: str | None = None
    error: str | None = None


def message_bytes(message: SessionShare | SessionEnd | ShareEnd) -> bytes:
    """Return the bytes of a message: its length and its content."""
    content = pickle.dumps(message)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def message_from_bytes(content: bytes) -> SessionShare | SessionEnd | ShareEnd:
    """Return the message in these bytes. Pass only bytes of our own processes: unpickling may run any code."""
    message: SessionShare | SessionEnd | ShareEnd = pickle.loads(content)
    return message


class _ResultSender:
    """Writes the result of each session as a message to `output`."""

    def __init__(self, output: BinaryIO, tracker: CostTracker) -> None:
        self._output, self._tracker = output, tracker
        self._has_sent = False

    def send_result(self, result: SessionOutcome | Failure | NotStarted) -> None:
        if not self._has_sent:
            # By now all libraries are loaded. If the garbage collector went through their objects, each collection
            # would stop this process for tenths of a second.
            gc.freeze()
            self._has_sent = True
        spent = self._tracker.spent_on(result.scope, session_run_source(result.session_id))
        _send(self._output, SessionEnd(result, spent))


def _send(output: BinaryIO, message: SessionEnd | ShareEnd) -> None:
    # If the parent process has died, nobody reads. The session is nevertheless finished and stored.
    with suppress(BrokenPipeError):
        output.write(message_bytes(message))
        output.flush()


async def process_share(share: SessionShare, stop: Callable[[], str | None], output: BinaryIO) -> None:
    """Process the sessions of `share`, and write the result of each as a message to `output`."""
    resources = Resources(share.settings, create=False)
    try:
        tracker = resources.new_tracker(share.extractor)
        await _process_sessions(resources, share, tracker, stop, _ResultSender(output, tracker).send_result)
        _send(output, ShareEnd(tracker.reached))
    except AfterwordError as error:
        _send(output, ShareEnd(error=str(error)))
    finally:
        await resources.close()


async def _process_sessions(
    resources: Resources,
    share: SessionShare,
    tracker: CostTracker,
    stop: Callable[[], str | None],
    on_result: Callable[[SessionOutcome | Failure | NotStarted], None],
) -> None:
    """Process the sessions of `share`, and call `on_result` with the result of each."""
    async with resources.extractor_and_judge(share.extractor) as configured:
        results = await run_batch(
            await resources.store(),
            share.sessions,
            extractor=configured.extractor,
            judge=configured.judge,
            apply=share.apply,
            budget=tracker,
            stop=stop,
            on_done=on_result,
            retries=share.settings.retry.policy(),
            concurrency=share.concurrency,
            sessions_at_once=share.sessions_at_once,
            is_brief=True,
        )
    for result in results:
        if isinstance(result, NotStarted):
            on_result(result)


def _read_exactly(source: FileIO, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        part = source.read(length - len(content))
        if not part:
            raise EOFError
        content += part
    return bytes(content)


def _read_share(source: FileIO) -> SessionShare:
    share = message_from_bytes(_read_exactly(source, int.from_bytes(_read_exactly(source, LENGTH_BYTES), "big")))
    if not isinstance(share, SessionShare):
        raise TypeError(f"expected the share of a process, got {type(share).__name__}")
    return share


def _stop_at_end_of_input(source: FileIO, halt: Halt) -> None:
    halt.stop(source.readall().decode() or "the parent process has ended")


def _main() -> None:
    """Process the share from standard input. What libraries print is redirected to standard error."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Unbuffered, because a thread that waits for a buffered file holds a lock, and then the interpreter cannot exit.
    source, halt = FileIO(sys.stdin.fileno(), closefd=False), Halt()
    try:
        share = _read_share(source)
    except EOFError:
        return  # the process that began this one has ended, so nobody wants its work
    if share.is_background and hasattr(os, "nice"):
        os.nice(BACKGROUND_NICENESS)
    threading.Thread(target=_stop_at_end_of_input, args=(source, halt), daemon=True).start()
    try:
        asyncio.run(process_share(share, halt, output))
    finally:
        with suppress(BrokenPipeError):
            output.close()


def child_process_count(
    resources: Resources, store: Store, sessions: Sequence[Saved], wanted: int | None, *, own_process: bool
) -> int:
    """Return how many child processes to start; 0 means that the calling process does the work.

    With `wanted` None, it is one for each core if many sessions of several scopes wait. Raises `ArgumentInvalid` if
    child processes are required and the sessions cannot be passed to them.
    """
    most = min(len({saved.scope for saved in sessions}), _usable_cores() if wanted is None else wanted)
    if not own_process and (most <= 1 or (wanted is None and len(sessions) <= MANY_SESSIONS)):
        return 0
    if obstacle := child_process_obstacle(resources, store, sessions):
        if wanted is None and not own_process:
            return 0
        raise ArgumentInvalid(f"these sessions can only be processed in this process: {obstacle}")
    return most


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def child_process_obstacle(resources: Resources, store: Store, sessions: Sequence[Saved]) -> str | None:
    """Return the reason why no other process can do the work, None if it can."""
    if resources.is_custom:
        return "the store, the extractor, the judge or the clock is an object of the caller"
    if store.is_in_memory:
        return "the store is in memory"
    budget = resources.settings.budget
    if budget.usd_per_run is not None or budget.tokens_per_run is not None:
        return "a budget for one run works only within one process; a budget for a day works for all"
    try:
        pickle.dumps(sessions)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return f"their states cannot be copied ({error})"
    return None


def divide_by_scope(sessions: Sequence[Saved], count: int) -> list[tuple[Saved, ...]]:
    """Return the sessions divided among `count` processes, about equally. A scope is never split."""
    sizes = Counter(saved.scope for saved in sessions)
    loads = [0] * count
    place_of: dict[Scope, int] = {}
    for scope, size in sizes.most_common():
        place_of[scope] = loads.index(min(loads))
        loads[place_of[scope]] += size
    return [tuple(saved for saved in sessions if place_of[saved.scope] == place) for place in range(count)]


async def run_in_processes(
    shares: Sequence[SessionShare], *, stop: Callable[[], str | None], on_session_end: Callable[[SessionEnd], None]
) -> str | None:
    """Process each share in its own child process. Return which budget was reached, None if none was.

    `on_session_end` is called with the result of each session. After `stop` has returned a reason, no child begins
    another session. If a child fails, its remaining sessions are reported as `NotStarted`.
    """
    processes: list[Process] = []
    try:
        for share in shares:
            processes.append(await _start_child(share))
        watching = asyncio.create_task(_pass_stop_to_children(processes, stop))
        try:
            reached = await asyncio.gather(*map(_follow_child, processes, shares, [on_session_end] * len(shares)))
        finally:
            watching.cancel()
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return next(filter(None, reached), None)


async def _start_child(share: SessionShare) -> Process:
    # In a new process group, Ctrl-C does not reach the child. The end of its input tells it to stop.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "afterword.client.process_pool", stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    if process.stdin is not None:
        # The child may have ended already. `_follow_child` notices that.
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(message_bytes(share))
            await process.stdin.drain()
    return process


async def _follow_child(
    process: Process, share: SessionShare, on_session_end: Callable[[SessionEnd], None]
) -> str | None:
    """Pass on the results that a child process sends until it has ended. Return which budget was reached."""
    left = {(saved.scope, saved.session_id): None for saved in share.sessions}
    finished = ShareEnd()
    while (message := await _next_message(process)) is not None:
        if isinstance(message, SessionEnd):
            left.pop((message.result.scope, message.result.session_id), None)
            on_session_end(message)
        elif isinstance(message, ShareEnd):
            finished = message
    code = await process.wait()
    reason = finished.error or f"its process ended with exit code {code}"
    for key in left:
        on_session_end(SessionEnd(NotStarted(*key, reason), Spending()))
    return finished.budget_reached


async def _next_message(process: Process) -> SessionShare | SessionEnd | ShareEnd | None:
    if process.stdout is None:
        return None
    try:
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
        return message_from_bytes(await process.stdout.readexactly(length))
    except asyncio.IncompleteReadError:
        return None


async def _pass_stop_to_children(processes: Sequence[Process], stop: Callable[[], str | None]) -> None:
    # `stop` is a function of the caller, so it can only be polled.
    while (reason := stop()) is None:  # noqa: ASYNC110
        await asyncio.sleep(SECONDS_BETWEEN_POLLS)
    for process in processes:
        if process.stdin is not None:
            process.stdin.write(reason.encode())
            process.stdin.close()


if __name__ == "__main__":
    # Import this module again: pickle needs its classes under the module's name, not under `__main__`.
    from afterword.client import process_pool

    process_pool._main()
