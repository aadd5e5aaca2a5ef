"""The resources that an `Afterword` opens: store and embedder, and for single calls the extractor and the judge."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from sqlmodel import Session

from afterword.agents.memory_settings import ChangeClock, SharedStore, utc_now
from afterword.composition import ExtractorAndJudge, configured_cost_tracker, embedder, open_extractor_and_judge
from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge
from afterword.extractors.model.embeddings import EndpointEmbedder
from afterword.extractors.rules import RulesExtractor
from afterword.facts.local_time import read_zone
from afterword.facts.scopes import Scope
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.vector_refresh import RefreshResult, VectorRefresher
from afterword.recall.vectors import LocalEmbedder
from afterword.settings import Settings
from afterword.store.database.engine import Store, open_store
from afterword.store.database.urls import shown_url

if TYPE_CHECKING:
    from afterword.client.session_processing.background_processor import BackgroundProcessor

T = TypeVar("T")


class Resources:
    """The store, embedder and background processor of one `Afterword`. Each is opened when it is first needed.

    `given_store` is the store that the caller has opened and also closes, or None. `is_custom` is true if the caller
    passed a store, an extractor, a judge or a clock: another process could not use these objects.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store | None = None,
        create: bool = True,
        extractor: Extractor | None = None,
        judge: Judge | None = None,
        clock: Callable[[], datetime] | None = None,
        on_vectors: Callable[[RefreshResult], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self.on_vectors = on_vectors
        self.now: ChangeClock = ChangeClock(clock or utc_now)
        self.is_custom: bool = any(argument is not None for argument in (store, extractor, judge, clock))
        self.given_store = store
        self._create = create
        self._extractor, self._judge = extractor, judge
        self._opened: Store | None = None
        self._embedder: LocalEmbedder | EndpointEmbedder | None = None
        self.processor: BackgroundProcessor | None = None

    async def store(self) -> Store:
        """Return the store, opened. Raises `StoreMissing`, `StoreUnreachable`, `StoreOutdated` or `StoreTooNew`."""
        if self.given_store is not None:
            return self.given_store
        if self._opened is None:
            options, zone = self.settings.store, read_zone(self.settings.zone)
            privacy = self.settings.privacy_of_store()
            opened = await open_store(
                options.url, create=self._create, privacy=privacy, limits=options.limits(), zone=zone
            )
            if self._opened is None:
                self._opened = opened
            else:
                # Another call has opened the store meanwhile.
                await opened.close()
        return self._opened

    async def read(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a reading transaction, and return its result. Raises what `store` and `Store.read` raise."""
        return await (await self.store()).read(work)

    async def write(self, work: Callable[[Session], T], *, lasting: bool = True) -> T:
        """Run `work` in a writing transaction, commit it, and return the result of `work`.

        `lasting` is that of `Store.write`. Raises what `store` and `work` raise.
        """
        return await (await self.store()).write(work, lasting=lasting)

    @property
    def shown_url(self) -> str:
        """The address of the store without a password."""
        return shown_url(self.settings.store.url)

    def shared_store(self) -> SharedStore:
        """Return a reference to the store for agents' memories and recorders, which open it at their first use."""
        return SharedStore(self.settings.store.url, self.store)

    @property
    def is_store_open(self) -> bool:
        """Whether the store is opened already."""
        return self.given_store is not None or self._opened is not None

    async def close(self) -> None:
        """Stop background work, and close what this object has opened. The next use opens it again."""
        processor, self.processor = self.processor, None
        if processor is not None:
            await processor.stop()
        embedder, self._embedder = self._embedder, None
        if embedder is not None and not isinstance(embedder, LocalEmbedder):
            await embedder.close()
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    @asynccontextmanager
    async def extractor_and_judge(self, extractor_kind: str | None = None) -> AsyncIterator[ExtractorAndJudge]:
        """Yield the extractor and the judge, which are closed at the end of the block.

        `extractor_kind` is "rules" or "model". By default, the objects that the caller of `open` passed are yielded, or
        else the configured ones.
        """
        extractor, judge = (None, None) if extractor_kind else (self._extractor, self._judge)
        if extractor is not None and judge is not None:
            yield ExtractorAndJudge(extractor, judge)
            return
        async with open_extractor_and_judge(
            extractor_kind or self.settings.extractor, self.settings.model
        ) as configured:
            yield ExtractorAndJudge(extractor or configured.extractor, judge or configured.judge)

    def asks_model(self, extractor_kind: str | None = None) -> bool:
        """Return whether what `extractor_and_judge` yields for this kind may send requests to a model."""
        is_custom = extractor_kind is None and (self._extractor is not None or self._judge is not None)
        return is_custom or (extractor_kind or self.settings.extractor) != "rules"

    def offline_extractor_if_configured(self) -> Extractor | None:
        """Return the offline rules if they are the configured extractor, None if a model is."""
        is_offline = self._extractor is None and self.settings.extractor == "rules"
        return RulesExtractor() if is_offline else None

    def new_tracker(self, extractor_kind: str | None = None) -> CostTracker:
        """Return a new tracker of what models cost in one call.

        Raises `PriceUnknown` if there is a budget in dollars and the price of the model is not known.
        """
        return configured_cost_tracker(self.settings, extractor_kind or self.settings.extractor)

    def embedder(self) -> LocalEmbedder | EndpointEmbedder | None:
        """Return the configured embedder, None if there is none. Each call returns the same object."""
        if self._embedder is None:
            self._embedder = embedder(self.settings.embedding)
        return self._embedder

    async def vector_refresher(
        self, tracker: CostTracker | None = None, stop: Callable[[], str | None] = lambda: None
    ) -> VectorRefresher | None:
        """Return an object that makes missing vectors, None if no embedder is configured.

        What the embedder costs is charged to `tracker`.
        """
        embedder, batch = self.embedder(), self.settings.embedding.batch
        if embedder is None:
            return None
        return VectorRefresher(
            await self.store(), embedder, lambda: tracker or self.new_tracker("rules"), batch=batch, stop=stop
        )

    async def refresh_vectors(
        self,
        scopes: Sequence[Scope] | None,
        tracker: CostTracker | None = None,
        stop: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Make the missing vectors of these scopes (None: all scopes), and call `on_vectors` with the result.

        An error of the embedder is not raised: it is part of the result. Texts without a vector are ranked by their
        words alone until the next refresh.
        """
        refresher = await self.vector_refresher(tracker, stop)
        if refresher is not None:
            self.on_vectors(await refresher.refresh(scopes))
