"""What a live agent remembers: an AutoGen memory that serves the facts of one scope."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from datetime import UTC, datetime, time
from typing import Any, Self, TypeVar

from autogen_core import CancellationToken, Component
from autogen_core.memory import Memory, MemoryContent, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext
from pydantic import BaseModel

from afterword import telemetry
from afterword.agents.conversations import hear
from afterword.agents.memory_content import content_of, content_text, entry_of, parse_instant
from afterword.agents.placement import latest_question, place
from afterword.agents.recall_results import (
    UNAVAILABLE,
    FactMatch,
    FactQueryResult,
    RecallResult,
    merge_results,
    recall_result,
)
from afterword.agents.store_reference import (
    FromEnvironment,
    SharedStore,
    StoreReference,
    beside,
    named_scope,
    reference,
    referred,
    url_of,
)
from afterword.facts.assertions import Kind
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.recall.block import opening_tag, render_block, scope_label
from afterword.recall.matched_words import matched_words
from afterword.recall.tokens import token_upper_bound
from afterword.recall.vectors import Embedder
from afterword.store import entered_statements, entries
from afterword.store.database.engine import Store, open_store
from afterword.store.database.urls import store_url
from afterword.store.reading.recall import Recall, recall, search
from afterword.store.reading.scope_vectors import refresh_vectors
from afterword.telemetry import Count, Stage

BUDGET_TOKENS = 600
TIMEOUT_S = 2.0
RANKED = 10

T = TypeVar("T")

_log = telemetry.logs(__name__)


class FactMemoryConfig(BaseModel):
    """What a dumped `FactMemory` holds: never a password. `store` None is the environment's store."""

    scope: str
    also: list[str] | None = None
    budget_tokens: int = BUDGET_TOKENS
    timeout_s: float = TIMEOUT_S
    store: str | FromEnvironment | None = None


def utc_now() -> datetime:
    """Return the present instant, aware."""
    return datetime.now(UTC)


class FactMemory(Memory, Component[FactMemoryConfig]):
    """Serves the facts of one scope to an agent, for example `AssistantAgent(..., memory=[FactMemory(user="lena")])`.

    `also` names scopes that are read beside it, for example the project of a team: each has a block of its own after
    the first, all within one budget; what is added, cleared or remembered goes to the first alone. One memory may serve
    any number of agents and teams at once.

    `store` is an opened store, a URL, a `FromEnvironment`, or None: then `AFTERWORD_STORE__URL`, else
    `sqlite:///afterword.db`. It is opened at first use, and may be used from several event loops. The block never
    exceeds `budget_tokens`, and a turn never waits longer than `timeout_s` for the store: where it is slow or down, the
    turn goes on without it. With an `embedder` meaning counts beside words; vectors that are missing are made in the
    background, and until then words alone count. It is not part of a dump. Raises `ScopeInvalid` unless exactly one of
    `user` and `scope` is given, or where `also` names a scope of another tenant, and `StoreError` for a URL of no
    database that afterword uses.
    """

    component_type = "memory"
    component_config_schema = FactMemoryConfig
    component_provider_override = "afterword.FactMemory"
    component_version = 1

    def __init__(
        self,
        *,
        user: str | None = None,
        scope: Scope | str | None = None,
        also: Collection[Scope | str] = (),
        store: StoreReference | None = None,
        budget_tokens: int = BUDGET_TOKENS,
        timeout_s: float = TIMEOUT_S,
        clock: Callable[[], datetime] = utc_now,
        embedder: Embedder | None = None,
    ) -> None:
        self._scope = named_scope(user, scope)
        if isinstance(store, str):
            store_url(store)
        self._also = beside(self._scope, also)
        self._label = scope_label(self._scope)
        self._given = store
        self._opened: Store | None = None
        self._late: asyncio.Task[Any] | None = None
        self._unwaited: set[asyncio.Task[Any]] = set()
        self._budget_tokens = budget_tokens
        self._timeout_s = timeout_s
        self._clock = clock
        self._embedder = embedder
        self._refreshing: asyncio.Task[None] | None = None

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Put what is known into the context as one block, in place of the one before; return what was put.

        Never raises for the store's sake: then the context keeps the block that it has.
        """
        hear(self._scope, model_context)
        with telemetry.stage(Stage.UPDATE_CONTEXT, scope=self._scope):
            shown = await self._unbroken(self._put(model_context))
            telemetry.note(facts=len(shown or ()))
        return UpdateContextResult(memories=MemoryQueryResult(results=[content_of(fact) for fact in shown or ()]))

    @property
    def scope(self) -> Scope:
        """Whose memory it is: what is added or remembered goes there."""
        return self._scope

    async def query(
        self,
        query: str | MemoryContent = "",
        cancellation_token: CancellationToken | None = None,
        *,
        limit: int | None = None,
        kinds: Collection[str] | None = None,
        as_of: datetime | str | None = None,
        explain: bool = False,
        **_other: Any,
    ) -> FactQueryResult:
        """Return what `recall` finds as AutoGen's memories do, with scores; with `explain` also the matched words and
        what each score adds up from.

        The result's `outcome` tells apart that nothing is stored, that nothing stored is relevant, and that the store
        did not answer.
        """
        words = query if isinstance(query, str) else content_text(query)
        told = await self.recall(
            words, limit=limit, kinds=kinds, as_of=as_of, explain=explain, cancellation_token=cancellation_token
        )
        results = [content_of(one.fact, one.score, one.matched if explain else None, one.parts) for one in told.found]
        return FactQueryResult(results=results, outcome=told.outcome, stored=told.stored)

    async def recall(
        self,
        query: str = "",
        *,
        limit: int | None = None,
        kinds: Collection[str] | None = None,
        as_of: datetime | str | None = None,
        explain: bool = False,
        cancellation_token: CancellationToken | None = None,
    ) -> RecallResult:
        """Return the facts that share words with the query, best first, 10 unless `limit` is given.

        An empty query returns every fact. `kinds` are preference, entity, decision; `as_of` (an instant or a date, of
        which the end counts) asks for what held then; `explain` for what each score adds up from.
        Raises ValueError for a limit, a kind or an instant that is none;
        where the store is slow or down, the outcome is `unavailable`.
        """
        if limit is not None and limit < 1:
            raise ValueError(f"at most how many facts? {limit} is no number of them")
        wanted = None if kinds is None else {Kind(kind) for kind in kinds}
        at = parse_instant(as_of, time.max) or self._clock()
        if limit is None and query.strip():
            limit = RANKED
        found = await self._unbroken(self._in_time(self._search(query, limit, wanted, at, explain), cancellation_token))
        return UNAVAILABLE if found is None else found

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Keep a sentence on the application's word; the same sentence again supports the fact that is there.

        Takes text, Markdown and JSON. `metadata` may give kind, subject, attribute, value, valid_from and valid_to
        (dates or instants, ISO). What reads like an instruction to an assistant awaits a person (`afterword review`).
        Raises ValueError for bytes, images, an empty text or metadata that does not fit, and `StoreError` where it
        could not be kept.
        """
        entry = entry_of(content)
        adding = asyncio.ensure_future(self._enter(entry))
        if cancellation_token is not None:
            cancellation_token.link_future(adding)
        await adding

    async def clear(self) -> None:
        """Withdraw every current fact of the scope, as one run that can be undone. Nothing is erased.

        Raises `StoreError` where the store does not answer.
        """
        await entries.withdraw_everything(await self._store(), self._scope, at=self._clock())

    async def close(self) -> None:
        """Give up what nobody waits for any more, and close the store if this memory opened it.

        It is opened again at the next use. Nothing is deleted.
        """
        loop = asyncio.get_running_loop()
        given_up = [task for task in list(self._unwaited) if task.get_loop() is loop]
        for task in given_up:
            task.cancel()
        # What is still at work when its store is closed leaves a connection open.
        await asyncio.gather(*given_up, return_exceptions=True)
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    def _to_config(self) -> FactMemoryConfig:
        return FactMemoryConfig(
            scope=str(self._scope),
            also=[str(scope) for scope in self._also] or None,
            budget_tokens=self._budget_tokens,
            timeout_s=self._timeout_s,
            store=reference(self._given),
        )

    @classmethod
    def _from_config(cls, config: FactMemoryConfig) -> Self:
        return cls(
            scope=config.scope,
            also=config.also or (),
            budget_tokens=config.budget_tokens,
            timeout_s=config.timeout_s,
            store=referred(config.store),
        )

    async def _store(self) -> Store:
        if isinstance(self._given, Store | SharedStore):
            return await self._given.open() if isinstance(self._given, SharedStore) else self._given
        if self._opened is None:
            opened = await open_store(url_of(self._given))
            if self._opened is None:
                self._opened = opened
            else:
                # Another turn was faster; one store is enough.
                await opened.close()
        return self._opened

    def now(self) -> datetime:
        """Return the present instant by this memory's clock."""
        return self._clock()

    async def opened(self) -> Store:
        """Return the store, opened. Raises `StoreError` where it cannot be."""
        return await self._store()

    async def _recall(self, query: str) -> list[Recall]:
        """Return what each scope tells; what does not fit together keeps to its share of the budget."""
        found = [await self._recall_of(scope, query, self._budget_tokens) for scope in self._scopes]
        if not self._also:
            return found
        needs = [
            token_upper_bound(render_block(one.facts, label=scope_label(scope), turns=one.turns))
            for scope, one in zip(self._scopes, found, strict=True)
        ]
        for number, share in enumerate(shares(needs, self._budget_tokens)):
            if share < needs[number]:
                found[number] = await self._recall_of(self._scopes[number], query, share)
        return found

    async def _recall_of(self, scope: Scope, query: str, budget_tokens: int) -> Recall:
        return await recall(
            await self._store(),
            scope,
            query,
            at=self._clock(),
            budget_tokens=budget_tokens,
            embedder=self._embedder,
            # What was loaded last serves a turn that the store would hold up; the loading serves the next.
            patience_s=self._timeout_s / 2,
        )

    async def _search(
        self, query: str, limit: int | None, kinds: Collection[Kind] | None, at: datetime, explain: bool
    ) -> RecallResult:
        store, parts = await self._store(), []
        for scope in self._scopes:
            one = await search(
                store, scope, query, at=at, limit=limit, kinds=kinds, explain=explain, embedder=self._embedder
            )
            told = zip(one.facts, one.scores, one.parts or [None] * len(one.facts), strict=True)
            found = [FactMatch(fact, score, matched_words(query, fact), why) for fact, score, why in told]
            parts.append(recall_result(found, one.stored))
        return merge_results(parts, limit)

    @property
    def _scopes(self) -> tuple[Scope, ...]:
        return (self._scope, *self._also)

    async def _enter(self, entry: entered_statements.Entry) -> None:
        await entries.add_entry(await self._store(), self._scope, entry, at=self._clock())

    async def _put(self, model_context: ChatCompletionContext) -> Sequence[Fact]:
        """Place the block of each scope, and return the facts in them."""
        query = latest_question(await model_context.get_messages())
        told = list(zip(self._scopes, await self._in_time(self._recall(query), None), strict=True))
        self._refresh([scope for scope, found in told if found.without_vector])
        shown: list[Fact] = []
        marks: list[str] = []
        for scope, found in told:
            name = scope_label(scope)
            marks.append(opening_tag(name))
            text = render_block(found.facts, label=name, turns=found.turns)
            if await place(model_context, text, mark=marks[-1], besides=marks[:-1]):
                shown += found.facts
            else:
                _log.warning("memory %s: the context has no room for a block beside the message", name)
        return shown

    async def _unbroken(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return what the work returns, None where it failed."""
        try:
            return await work
        # A turn must not break for the sake of its memory, whatever a driver or a damaged store may raise.
        except Exception as error:  # noqa: BLE001 - told, counted, and said to the caller as "unavailable"
            what = "memory %s was not read (%s), the turn goes on without; see `afterword doctor`"
            _log.warning(what, self._label, type(error).__name__)
            telemetry.count(Count.RECALLS, outcome="unavailable")
            return None

    async def _in_time(self, reading: Coroutine[Any, Any, T], token: CancellationToken | None) -> T:
        """Return what is read in time. Raises TimeoutError and goes on without waiting for what comes too late."""
        self._give_up_late()
        task = asyncio.ensure_future(reading)
        task.add_done_callback(_retrieved)
        if token is not None:
            token.link_future(task)
        try:
            await asyncio.wait({task}, timeout=self._timeout_s)
        except asyncio.CancelledError:
            self._unwait(task)
            task.cancel()
            raise
        if not task.done():
            # A large memory that is read for the first time may end while the model answers, and serves the next turn.
            self._late = task
            self._unwait(task)
            raise TimeoutError
        return task.result()

    def _refresh(self, scopes: Sequence[Scope]) -> None:
        """Have vectors made that are missing, one such work at a time; the turn does not wait for it."""
        if self._embedder is not None and scopes and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.ensure_future(self._refreshed(scopes, self._embedder))
            self._refreshing.add_done_callback(_retrieved)
            self._unwait(self._refreshing)

    async def _refreshed(self, scopes: Sequence[Scope], embedder: Embedder) -> None:
        for scope in scopes:
            await refresh_vectors(await self._store(), scope, embedder, at=self._clock())

    def _unwait(self, task: asyncio.Task[Any]) -> None:
        """Know of a task that nobody waits for, until it ends."""
        self._unwaited.add(task)
        task.add_done_callback(self._unwaited.discard)

    def _give_up_late(self) -> None:
        late, self._late = self._late, None
        if late is not None and late.get_loop() is asyncio.get_running_loop():
            late.cancel()


def shares(needs: Sequence[int], budget: int) -> list[int]:
    """Return how much of a budget each may have: equal shares, and what one does not need goes to the others."""
    given = [0] * len(needs)
    left = budget
    for done, number in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        given[number] = min(needs[number], left // (len(needs) - done))
        left -= given[number]
    return given


def _retrieved(task: asyncio.Task[Any]) -> None:
    # A task that nobody waits for any more would complain of its exception when it is collected.
    if not task.cancelled():
        task.exception()
