"""Processing sessions in several processes. The sessions of one scope stay together, in their order."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from afterword.client.process_worker import LENGTH_BYTES, Ended, Finished, SessionShare, packed, unpacked
from afterword.client.resources import Resources
from afterword.errors import ArgumentInvalid
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import NotStarted
from afterword.pipeline.intake import Saved
from afterword.store.costs import Spending
from afterword.store.database.engine import Store

MANY_SESSIONS = 20
"""Beyond this many sessions a run that may choose takes one process for each core. Each needs a second to begin."""
SECONDS_BETWEEN_LOOKS = 0.2
"""How often a run in several processes looks whether it is to stop."""


def count_processes(
    resources: Resources, store: Store, sessions: Sequence[Saved], wanted: int | None, *, own_process: bool
) -> int:
    """Return how many processes of their own a run takes; 0 means that the calling process does the work.

    `wanted` None takes one for each core where many sessions of several scopes wait. Raises `ArgumentInvalid` if a
    process of its own is asked for and the sessions cannot be handed to one.
    """
    scopes = len({saved.scope for saved in sessions})
    most = min(scopes, _cores() if wanted is None else wanted)
    if not own_process and (most <= 1 or (wanted is None and len(sessions) <= MANY_SESSIONS)):
        return 0
    if obstacle := process_obstacle(resources, store, sessions):
        if wanted is None and not own_process:
            return 0
        raise ArgumentInvalid(f"these sessions can only be processed in this process: {obstacle}")
    return most


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
        sys.executable, "-P", "-m", "afterword.client.process_worker", stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    if process.stdin is not None:
        with suppress(
            BrokenPipeError, ConnectionResetError
        ):  # it has ended already, which is found when it is followed
            process.stdin.write(packed(job))
            await process.stdin.drain()
    return process


async def _follow(process: Process, job: SessionShare, on_ended: Callable[[Ended], None]) -> str | None:
    """Report the sessions of a process as they end, and return the budget that was reached."""
    left = {(saved.scope, saved.session_id) for saved in job.sessions}
    finished = Finished()
    while (message := await _next_message(process)) is not None:
        if isinstance(message, Ended):
            left.discard((message.result.scope, message.result.session_id))
            on_ended(message)
        elif isinstance(message, Finished):
            finished = message
    code = await process.wait()
    reason = finished.error or f"its process ended with exit code {code}"
    for saved in job.sessions:
        if (saved.scope, saved.session_id) in left:
            on_ended(Ended(NotStarted(saved.scope, saved.session_id, reason), Spending()))
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
