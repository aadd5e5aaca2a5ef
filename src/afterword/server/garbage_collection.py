"""Garbage collection in a process that holds millions of objects for long: without it, each full one stops all answers.

A full collection looks at every object, and the facts of a thousand memories are a million objects: more than a second.
Those are not garbage. So what has survived is taken out of the collections that Python starts by itself, and is looked
at again once an hour.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

SECONDS_BETWEEN = 5.0
FULL_EVERY = 720
"""Each of so many times all objects are looked at."""


@asynccontextmanager
async def short_pauses(seconds_between: float = SECONDS_BETWEEN, full_every: int = FULL_EVERY) -> AsyncIterator[None]:
    """Keep the pauses of the garbage collection of this process short until the end of the block.

    What the caller had frozen before is frozen afterwards.
    """
    had_frozen = gc.get_freeze_count() > 0
    task = asyncio.create_task(_set_survivors_apart(seconds_between, full_every))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        gc.unfreeze()
        if had_frozen:
            # Python does not tell who froze what. So whatever is still in use is frozen, not only what was before.
            gc.collect()
            gc.freeze()


async def _set_survivors_apart(seconds_between: float, full_every: int) -> None:
    turn = 0
    while True:
        await asyncio.sleep(seconds_between)
        turn += 1
        if turn % full_every == 0:
            gc.unfreeze()
        # Collect before freezing: garbage that is frozen is freed only by the next full collection. All generations are
        # collected, because what a smaller collection visits differs between versions of Python. They are small:
        # they hold only objects that were made since the last freeze.
        gc.collect()
        gc.freeze()
