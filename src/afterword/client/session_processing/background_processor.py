"""Processes recorded sessions in the background, while the program goes on with its own work."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from afterword import telemetry
from afterword.agents.memory_settings import SharedStore, StoreReference, resolve_url
from afterword.client.access.webhooks import announcing_failures
from afterword.client.process_pool import child_process_obstacle
from afterword.client.processing import ProcessingOptions, process
from afterword.client.resources import Resources
from afterword.errors import AfterwordError
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import SelectedSessions, queued_sessions
from afterword.store.database.engine import Store

_log = telemetry.logs(__name__)

_processors_of_stores: WeakKeyDictionary[Store, BackgroundProcessor] = WeakKeyDictionary()
_processors_of_urls: dict[str | None, BackgroundProcessor] = {}


class BackgroundProcessor:
    """Processes recorded sessions in the background, one batch after the other, with the usual budget and retries.

    With each session, it also processes the other waiting sessions of the same scope, for example those of a program
    that ended too early. Without `options`, the work is done in a child process where that is possible, so that it does
    not slow this process down. It may be used from several event loops.
    """

    def __init__(
        self, resources: Resources, options: ProcessingOptions | None = None, *, closes_resources: bool = False
    ) -> None:
        self._resources, self._options = resources, options
        self._closes_resources = closes_resources
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopQueue] = WeakKeyDictionary()

    def start(self, scope: Scope, session_id: str, *, after_s: float = 0.0) -> None:
        """Process a recorded session in `after_s` seconds. A second call for the same session replaces the first."""
        loop = asyncio.get_running_loop()
        queue = self._loops.setdefault(loop, _LoopQueue())
        queue.due_at[scope, session_id] = loop.time() + after_s
        queue.changed.set()
        if queue.task is None or queue.task.done():
            queue.task = asyncio.create_task(self._run_queue(queue))

    async def finish(self) -> None:
        """Process at once all sessions that were passed to `start` in this event loop, and wait until that is done."""
        queue = self._loops.get(asyncio.get_running_loop())
        if queue is None or queue.task is None:
            return
        queue.due_at = dict.fromkeys(queue.due_at, 0.0)
        queue.changed.set()
        await asyncio.wait({queue.task})

    async def stop(self) -> None:
        """Cancel the work in this event loop. Sessions that are not done stay queued in the store."""
        queue = self._loops.pop(asyncio.get_running_loop(), None)
        if queue is not None and queue.task is not None:
            queue.task.cancel()
            await asyncio.wait({queue.task})

    async def _run_queue(self, queue: _LoopQueue) -> None:
        try:
            while queue.due_at:
                await self._process_due_or_wait(queue)
                if self._closes_resources and not queue.due_at:
                    await self._resources.close()
        finally:
            if self._closes_resources:
                await self._resources.close()

    async def _process_due_or_wait(self, queue: _LoopQueue) -> None:
        """Process the sessions that are due, or wait until one is due."""
        now = asyncio.get_running_loop().time()
        ready = {key for key, due_at in queue.due_at.items() if due_at <= now}
        if ready:
            for key in ready:
                del queue.due_at[key]
            await self._process_sessions(ready)
            return
        queue.changed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(queue.changed.wait(), min(queue.due_at.values()) - now)

    async def _process_sessions(self, session_keys: set[tuple[Scope, str]]) -> None:
        try:
            store = await self._resources.store()
            waiting = await queued_sessions(store, at=self._resources.now())
            scopes = {scope for scope, _ in session_keys}
            selected = [saved for saved in waiting if saved.scope in scopes]
            if not selected:
                return
            async with announcing_failures(self._resources, scopes) as reports:
                obstacle = child_process_obstacle(self._resources, store, selected)
                options = self._options or ProcessingOptions(own_process=obstacle is None)
                reports.append(await process(self._resources, SelectedSessions(selected, are_named=False), options))
        except AfterwordError as error:
            # The sessions stay queued. The next session of their scope, or `run_pending`, tries them again.
            _log.warning("sessions that ended were not processed (%s)", type(error).__name__)


@dataclass(slots=True)
class _LoopQueue:
    """The waiting sessions of one event loop with the times when they are due, and the task that processes them."""

    due_at: dict[tuple[Scope, str], float] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


def existing_or_new_processor(resources: Resources, options: ProcessingOptions | None = None) -> BackgroundProcessor:
    """Return the background processor of these resources. The first call creates it, with `options`."""
    if resources.processor is None:
        resources.processor = BackgroundProcessor(resources, options)
    return resources.processor


def processor_of_store(reference: StoreReference | None) -> BackgroundProcessor:
    """Return the background processor of a store. Each store has one processor.

    Its settings come from the profile and the environment. Raises `SettingsInvalid`, and `StoreError` if the
    environment variable of the store is not set.
    """
    from afterword.client.app import open as open_app

    if isinstance(reference, Store):
        if reference not in _processors_of_stores:
            _processors_of_stores[reference] = BackgroundProcessor(open_app(store=reference).resources)
        return _processors_of_stores[reference]
    url = reference.url if isinstance(reference, SharedStore) else resolve_url(reference)
    if url not in _processors_of_urls:
        _processors_of_urls[url] = BackgroundProcessor(open_app(url).resources, closes_resources=True)
    return _processors_of_urls[url]
