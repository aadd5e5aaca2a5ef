"""Processing sessions in several processes, and the program of such a process.

The sessions of one scope stay together, in their order. A process is started as
`python -m afterword.client.process_pool`. It reads one `SessionShare` from standard input. To standard output it writes
an `Ended` for every session, and one `Finished`. What follows on standard input is the reason to stop: at its end no
further session is begun. So it also ends when the process that began it has died.
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
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.settings import Settings
from afterword.store.costs import Spending
from afterword.store.database.engine import Store
from afterword.store.ledger import session_source

LENGTH_BYTES = 8
"""How many bytes stand before each message and give its length, the highest byte first."""
BACKGROUND_NICENESS = 10
"""How far the priority of background work is lowered, so that a live agent on a busy machine comes first."""

MANY_SESSIONS = 20
"""Beyond this many sessions a run that may choose takes one process for each core. Each needs a second to begin."""
SECONDS_BETWEEN_LOOKS = 0.2
"""How often a run in several processes looks whether it is to stop."""


@dataclass(frozen=True, slots=True)
class SessionShare:
    """The sessions of one process, and how they are processed. `is_background` lowers its priority."""

    settings: Settings
    extractor: str | None
    apply: bool
    concurrency: int
    sessions_at_once: int | None
    is_background: bool
    sessions: tuple[Saved, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of one session, and what it cost."""

    result: SessionOutcome | Failure | NotStarted
    spent: Spending


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a share. `error` says what kept the process from beginning, `budget_reached` which budget ended it."""

    budget_reached: str | None = None
    error: str | None = None


def packed(message: SessionShare | Ended | Finished) -> bytes:
    """Return a message as it is sent: its length and its content."""
    content = pickle.dumps(message)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def unpacked(content: bytes) -> SessionShare | Ended | Finished:
    """Return the message of a content. Only for bytes of a process of our own: pickle runs what it reads."""
    message: SessionShare | Ended | Finished = pickle.loads(content)
    return message


async def process_share(job: SessionShare, stop: Callable[[], str | None], output: BinaryIO) -> None:
    """Process the sessions of a job and write what becomes of each to `output`."""

    def send(message: Ended | Finished) -> None:
        # If the process that began this one has died, nobody reads. What has begun is finished and stored all the same.
        with suppress(BrokenPipeError):
            output.write(packed(message))
            output.flush()

    resources = Resources(job.settings, create=False)
    is_first = True
    try:
        tracker = resources.tracker(job.extractor)

        def send_end(result: SessionOutcome | Failure | NotStarted) -> None:
            nonlocal is_first
            if is_first:
                # By now all libraries are loaded. Collections of garbage that go through them stop this process for
                # tenths of a second each.
                gc.freeze()
                is_first = False
            send(Ended(result, tracker.spent_on(result.scope, session_source(result.session_id))))

        async with resources.extractor_and_judge(job.extractor) as workers:
            results = await run_batch(
                await resources.store(),
                job.sessions,
                extractor=workers.extractor,
                judge=workers.judge,
                apply=job.apply,
                budget=tracker,
                stop=stop,
                on_done=send_end,
                retries=job.settings.retry.policy(),
                concurrency=job.concurrency,
                sessions_at_once=job.sessions_at_once,
                is_brief=True,
            )
        for result in results:
            if isinstance(result, NotStarted):
                send_end(result)
        send(Finished(tracker.reached))
    except AfterwordError as error:
        send(Finished(error=str(error)))
    finally:
        await resources.close()


def _read_exactly(source: FileIO, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        part = source.read(length - len(content))
        if not part:
            raise EOFError
        content += part
    return bytes(content)


def _main() -> None:
    """Run the job that standard input holds. What libraries print goes to standard error."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Unbuffered: a thread that waits for a buffered file keeps its lock, and the interpreter cannot end.
    source, halt = FileIO(sys.stdin.fileno(), closefd=False), Halt()
    try:
        job = unpacked(_read_exactly(source, int.from_bytes(_read_exactly(source, LENGTH_BYTES), "big")))
    except EOFError:
        return  # the process that began this one has ended, so nobody wants its work
    if not isinstance(job, SessionShare):
        raise TypeError(f"expected a job, got {type(job).__name__}")
    if job.is_background and hasattr(os, "nice"):
        os.nice(BACKGROUND_NICENESS)

    def await_stop() -> None:
        halt.stop(source.readall().decode() or "the process that began it has ended")

    threading.Thread(target=await_stop, daemon=True).start()
    try:
        asyncio.run(process_share(job, halt, output))
    finally:
        with suppress(BrokenPipeError):
            output.close()


def count_processes(
    resources: Resources, store: Store, sessions: Sequence[Saved], wanted: int | None, *, own_process: bool
) -> int:
    """Return how many processes of their own a run takes; 0 means that the calling process does the work.

    `wanted` None takes one for each core where many sessions of several scopes wait. Raises `ArgumentInvalid` if a
    process of its own is asked for and the sessions cannot be handed to one.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = min(len({saved.scope for saved in sessions}), cores if wanted is None else wanted)
    if not own_process and (most <= 1 or (wanted is None and len(sessions) <= MANY_SESSIONS)):
        return 0
    if obstacle := process_obstacle(resources, store, sessions):
        if wanted is None and not own_process:
            return 0
        raise ArgumentInvalid(f"these sessions can only be processed in this process: {obstacle}")
    return most


def process_obstacle(resources: Resources, store: Store, sessions: Sequence[Saved]) -> str | None:
    """Return why no other process can do the work, None if it can."""
    if resources.is_custom:
        return "the store, the extractor, the judge or the clock is an object of the caller"
    if store.in_memory:
        return "the store is in memory"
    budget = resources.settings.budget
    if budget.usd_per_run is not None or budget.tokens_per_run is not None:
        return "a budget for one run is kept within one process; a budget for a day holds for all"
    try:
        pickle.dumps(sessions)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return f"their states cannot be copied ({error})"
    return None


def shares(sessions: Sequence[Saved], count: int) -> list[tuple[Saved, ...]]:
    """Return the sessions divided among `count` processes by scope, so that the largest share is small."""
    sizes = Counter(saved.scope for saved in sessions)
    loads = [0] * count
    place_of: dict[Scope, int] = {}
    for scope, size in sizes.most_common():
        place_of[scope] = loads.index(min(loads))
        loads[place_of[scope]] += size
    return [tuple(saved for saved in sessions if place_of[saved.scope] == place) for place in range(count)]


async def run_in_processes(
    jobs: Sequence[SessionShare], *, stop: Callable[[], str | None], on_ended: Callable[[Ended], None]
) -> str | None:
    """Run each job in a process of its own, and return the budget that was reached, None if none was.

    `on_ended` is called with what became of each session. After `stop` returns a reason, no process begins another
    session. The sessions that a process left when it failed are reported as `NotStarted`.
    """
    processes: list[Process] = []
    try:
        for job in jobs:
            processes.append(await _started(job))
        watching = asyncio.create_task(_pass_on_stop(processes, stop))
        try:
            reached = await asyncio.gather(*map(_follow, processes, jobs, [on_ended] * len(jobs)))
        finally:
            watching.cancel()
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return next(filter(None, reached), None)


async def _started(job: SessionShare) -> Process:
    # A session of its own keeps Ctrl-C from it: it is told to stop by the end of its input.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "afterword.client.process_pool", stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    if process.stdin is not None:
        # It may have ended already, which is found when it is followed.
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(packed(job))
            await process.stdin.drain()
    return process


async def _follow(process: Process, job: SessionShare, on_ended: Callable[[Ended], None]) -> str | None:
    left = {(saved.scope, saved.session_id): None for saved in job.sessions}
    finished = Finished()
    while (message := await _next_message(process)) is not None:
        if isinstance(message, Ended):
            left.pop((message.result.scope, message.result.session_id), None)
            on_ended(message)
        elif isinstance(message, Finished):
            finished = message
    code = await process.wait()
    reason = finished.error or f"its process ended with exit code {code}"
    for key in left:
        on_ended(Ended(NotStarted(*key, reason), Spending()))
    return finished.budget_reached


async def _next_message(process: Process) -> SessionShare | Ended | Finished | None:
    if process.stdout is None:
        return None
    try:
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
        return unpacked(await process.stdout.readexactly(length))
    except asyncio.IncompleteReadError:
        return None


async def _pass_on_stop(processes: Sequence[Process], stop: Callable[[], str | None]) -> None:
    # `stop` is a function of the caller, and cannot wake anybody: it has to be asked.
    while (reason := stop()) is None:  # noqa: ASYNC110
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
    for process in processes:
        if process.stdin is not None:
            process.stdin.write(reason.encode())
            process.stdin.close()


if __name__ == "__main__":
    # The classes of the messages belong to the module that was imported, not to the program that is run.
    from afterword.client import process_pool

    process_pool._main()
