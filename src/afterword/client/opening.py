"""How the door is opened: the settings, and what takes the place of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from afterword.client.app import Afterword
from afterword.client.resources import Resources
from afterword.settings import Settings, load
from afterword.store.database.engine import Store

if TYPE_CHECKING:
    from afterword.extractors.extractor import Extractor
    from afterword.extractors.judge import Judge
    from afterword.pipeline.vector_refresh import RefreshResult


def open(  # noqa: A001 - as in gzip.open: called as afterword.open()
    url: str | None = None,
    *,
    settings: Settings | None = None,
    store: Store | None = None,
    create: bool = True,
    extractor: Extractor | None = None,
    judge: Judge | None = None,
    clock: Callable[[], datetime] | None = None,
    on_vectors: Callable[[RefreshResult], None] = lambda _: None,
) -> Afterword:
    """Return the door to a store. Use it with `async with`, or close it.

    `settings` are by default those of the profile and the environment; `url` replaces the address of the store in
    them, and `store` is one that is open already and stays so. Nothing is opened before it is needed. With `create`
    False a SQLite file that is not there is not made: what needs it raises `StoreMissing`. `extractor` and `judge` take
    the place of the configured ones. `on_vectors` is told what became of vectors that a call has made.

    Raises `SettingsInvalid`.
    """
    chosen = settings or load()
    if store is not None:
        url = store.shown_url
    if url is not None:
        chosen = chosen.model_copy(update={"store": chosen.store.model_copy(update={"url": url})})
    resources = Resources(
        chosen,
        store=store,
        create=create,
        extractor=extractor,
        judge=judge,
        clock=clock,
        on_vectors=on_vectors,
    )
    return Afterword(resources)
