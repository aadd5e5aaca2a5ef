"""`TurnGuard`: an agent's turn neither fails nor waits for long if its memory is slow or down."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from autogen_core import CancellationToken

from afterword import telemetry

T = TypeVar("T")

_log = telemetry.logs(__name__)


class TurnGuard:
    """Limits how long an agent's turn waits for its memory, and keeps track of background tasks.

    `label` is the name of the memory in the log.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._late_task: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def attempt(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of `work`. If it raises an error, log the error and return None."""
        try:
            return await work
        # A turn must not fail because of its memory, whatever a driver or a damaged store may raise.
        except Exception as error:  # noqa: BLE001 - logged, counted, and returned as "unavailable"
            message = "memory %s was not read or written (%s), the turn goes on without; see `afterword doctor`"
            _log.warning(message, self._label, type(error).__name__)
            telemetry.count(telemetry.Count.RECALLS, outcome="unavailable")
            return None

    async def read_in_time(
        self, reading: Coroutine[Any, Any, T], timeout_s: float, token: CancellationToken | None = None
    ) -> T:
        """Return the result of `reading`. Raises TimeoutError after `timeout_s`.

        The reading then goes on in the background, until the next call cancels it.
        """
        self._cancel_late_task()
        task = asyncio.ensure_future(reading)
        task.add_done_callback(_consume_exception)
        if token is not None:
            token.link_future(task)
        try:
            await asyncio.wait({task}, timeout=timeout_s)
        except asyncio.CancelledError:
            self._keep_task(task)
            task.cancel()
            raise
        if not task.done():
            # The first reading of a large memory may finish while the model answers. The next turn then uses it.
            self._late_task = task
            self._keep_task(task)
            raise TimeoutError
        return task.result()

    async def result_of(self, task: asyncio.Task[T], timeout_s: float) -> T:
        """Return the result of a task. After `timeout_s`, raises TimeoutError; the task goes on in the background.

        The task also goes on if the turn is cancelled.
        """
        await asyncio.wait({task}, timeout=max(timeout_s, 0.0))
        if not task.done():
            raise TimeoutError
        return task.result()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a background task that runs `work`, and return it."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(_consume_exception)
        self._keep_task(task)
        return task

    async def wait_for_tasks(self) -> None:
        """Wait for the background tasks of the running loop."""
        await asyncio.gather(*self._tasks_of_loop(), return_exceptions=True)

    async def cancel_tasks(self) -> None:
        """Cancel the background tasks of the running loop, and wait until they have ended."""
        cancelled = self._tasks_of_loop()
        for task in cancelled:
            task.cancel()
        # If the store were closed while a task is running, the task would leave a connection open.
        await asyncio.gather(*cancelled, return_exceptions=True)

    def _cancel_late_task(self) -> None:
        late, self._late_task = self._late_task, None
        if late is not None and late.get_loop() is asyncio.get_running_loop():
            late.cancel()

    def _tasks_of_loop(self) -> list[asyncio.Task[Any]]:
        loop = asyncio.get_running_loop()
        return [task for task in list(self._tasks) if task.get_loop() is loop]

    def _keep_task(self, task: asyncio.Task[Any]) -> None:
        """Keep a reference to a background task until it ends, so that it is not garbage-collected."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _consume_exception(task: asyncio.Task[Any]) -> None:
    # Otherwise asyncio would log the exception of a task that nobody awaits.
    if not task.cancelled():
        task.exception()
