"""The commands for more than one machine: worker, and `run --defer`. Only they load Procrastinate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec

from afterword import settings
from afterword.cli import embedding
from afterword.cli.output import UsageInvalid, console, opened, print_json
from afterword.composition import configured_tracker, open_extractor_and_judge
from afterword.store.database.engine import Store

EXTRA = "procrastinate"


def work(*, concurrency: int, once: bool) -> None:
    """Process what is in the queue, until stopped or until it is empty."""
    asyncio.run(_work(concurrency, once=once))


async def _work(concurrency: int, *, once: bool) -> None:
    configured = settings.load()
    async with (
        opened() as store,
        open_extractor_and_judge(configured.extractor, configured.model) as workers,
        embedding.refreshing(store, configured) as refresher,
    ):
        _check(store)
        from afterword.pipeline.background import workers as fleet

        worker = fleet.Worker(
            store,
            extractor=workers.extractor,
            judge=workers.judge,
            new_tracker=partial(configured_tracker, configured, configured.extractor),
            retries=configured.retry.policy(),
            refresher=refresher,
            erases=configured.privacy.erases,
        )
        async with fleet.open_queue(store) as app:
            console().print(f"working on {store.shown_url}; SIGTERM or Ctrl-C stops it")
            await worker.run(app, concurrency=concurrency, once=once)


def defer(*, anything_else: bool, as_json: bool) -> None:
    """Put the recorded sessions that wait into the queue."""
    if anything_else:
        raise UsageInvalid("--defer hands out the queue of recorded sessions; it takes no path, session or scope")

    async def put() -> int:
        async with opened() as store, handing_over(store, wanted=True) as hand_over:
            return await hand_over() if hand_over else 0

    count = asyncio.run(put())
    if as_json:
        print_json({"deferred": count})
    else:
        console().print(f"{count} sessions handed to the workers")


@asynccontextmanager
async def handing_over(store: Store, *, wanted: bool) -> AsyncIterator[Callable[[], Awaitable[int]] | None]:
    """Yield what puts waiting sessions into the workers' queue; None where that is not wanted."""
    if not wanted:
        yield None
        return
    _check(store)
    from afterword.pipeline.background import workers as fleet

    async with fleet.open_queue(store) as app:
        yield partial(fleet.enqueue, app, store)


def _check(store: Store) -> None:
    if store.dialect != "postgresql":
        raise UsageInvalid(f"workers share a PostgreSQL store, and this is {store.shown_url}; use `afterword schedule`")
    if not is_installed():
        raise UsageInvalid("workers need the extra: pip install 'afterword[workers]'")


def is_installed() -> bool:
    """Whether the library that the workers need is there."""
    return find_spec(EXTRA) is not None
