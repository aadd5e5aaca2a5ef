"""The interface to processing sessions in the background when they end.

`afterword.client` implements it. This package must not import that one, so the implementation is registered here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol

from afterword.agents.store_reference import StoreReference
from afterword.facts.scopes import Scope


class SessionProcessor(Protocol):
    """Processes recorded sessions in the background, such as `Afterword.processor()`."""

    def start(self, scope: Scope, session_id: str, *, after_s: float = 0.0) -> None:
        """Process a recorded session in `after_s` seconds. It returns at once."""
        ...

    async def finish(self) -> None:
        """Process what was started, without a pause, and wait for the end."""
        ...


_source: list[Callable[[StoreReference | None], SessionProcessor]] = []


def process_with(source: Callable[[StoreReference | None], SessionProcessor]) -> None:
    """Let sessions be processed by what `source` returns for their store."""
    _source[:] = [source]


def chosen_processor(process: bool | SessionProcessor, store: StoreReference | None) -> SessionProcessor | None:
    """Return the processor that a caller passed, with True the configured one of the store, with False none."""
    if not isinstance(process, bool):
        return process
    if not process:
        return None
    if not _source:
        # `import afterword` loads nothing, so that it is light; its settings are read when they are first needed.
        import_module("afterword.live_settings").provide()
    return _source[0](store)
