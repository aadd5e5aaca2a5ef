"""`FactMemory`: an AutoGen memory that gives an agent the facts of one scope."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, time
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self

from autogen_core import CancellationToken, Component, ComponentType
from autogen_core.memory import Memory, MemoryContent, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext

from afterword import telemetry
from afterword.agents.memory_content import (
    UNAVAILABLE,
    FactQueryResult,
    RecallOutcome,
    RecallResult,
    as_recall_result,
    content_of_fact,
    contents_of_result,
    entry_of_content,
    merge_results,
    parse_instant,
    text_of_content,
)
from afterword.agents.memory_settings import (
    ChangeClock,
    FactMemoryConfig,
    MemorySettings,
    SharedStore,
    StoreReference,
    additional_scopes,
    check_above_zero,
    dump_store_reference,
    memory_settings,
    named_scope,
    resolve_url,
    utc_now,
)
from afterword.agents.placement import (
    recall_queries,
    remove_stale_blocks,
    replace_block,
    set_conversation_of_task,
    user_texts,
)
from afterword.agents.shared_recall import recall_in_shared_budget
from afterword.agents.turn_guard import TurnGuard
from afterword.facts.assertions import Kind
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.recall.block import hashed_scope_label, opening_tag, opening_tag_for_question
from afterword.recall.layers import Layers
from afterword.recall.vectors import Embedder
from afterword.store import entries
from afterword.store.database.engine import Store
from afterword.store.database.urls import store_url
from afterword.store.reading.recall import Recall, recall, search
from afterword.store.reading.scope_vectors import refresh_vectors

RANKED_LIMIT = 10
ANSWERED_OUTCOMES = (RecallOutcome.FOUND, RecallOutcome.NOTHING_RELEVANT)

_log = telemetry.logs(__name__)


class FactMemory(Memory, Component[FactMemoryConfig]):
    """Gives an agent the facts of one scope, for example `AssistantAgent(..., memory=[FactMemory(user="lena")])`.

    `also` names scopes that are read in addition, for example the project of a team. Each scope has its own block of
    text in the context, and all blocks share one budget. `add` and `clear` change the first scope only. One memory may
    serve any number of agents and teams at once.

    `store` is an opened store, a URL, a `FromEnvironment`, or None for the store of the settings. It is opened at first
    use, and may be used from several event loops. The blocks never exceed `budget_tokens`. A turn never waits longer
    than `timeout_s` for the store: if the store is slow or down, the turn goes on without the memory. With an
    `embedder`, facts are ranked by meaning and by words, with None by words alone; missing vectors are made in the
    background. Arguments that are left out come from the profile and the environment, as for the command line. The
    embedder is not part of `dump_component`. Raises `ScopeInvalid` unless exactly one of `user` and `scope` is given,
    or if `also` names a scope of another tenant, `ArgumentInvalid` unless `budget_tokens` and `timeout_s` are above 0,
    and `StoreError` for an unsupported URL.
    """

    component_type: ClassVar[ComponentType] = "memory"
    component_config_schema = FactMemoryConfig
    component_provider_override: ClassVar[str] = "afterword.FactMemory"
    component_version = 1

    def __init__(
        self,
        *,
        user: str | None = None,
        scope: Scope | str | None = None,
        also: Collection[Scope | str] = (),
        store: StoreReference | None = None,
        budget_tokens: int | None = None,
        timeout_s: float | None = None,
        clock: Callable[[], datetime] = utc_now,
        embedder: Embedder | Literal["settings"] | None = "settings",
    ) -> None:
        self._scope = named_scope(user, scope)
        if isinstance(store, str):
            store_url(store)
        self._also = additional_scopes(self._scope, also)
        self._scopes = (self._scope, *self._also)
        self._label = hashed_scope_label(self._scope)
        self._store_argument = store
        self._opened: Store | None = None
        self._guard = TurnGuard(self._label)
        self._budget_argument, self._timeout_argument = budget_tokens, timeout_s
        check_above_zero("budget_tokens", budget_tokens)
        check_above_zero("timeout_s", timeout_s)
        self._clock = clock if isinstance(clock, ChangeClock) else ChangeClock(clock)
        self._embedder_argument = embedder
        self._vector_refresh: asyncio.Task[None] | None = None

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Replace the memory block in the context by a new one, and return the facts in it.

        If the store fails, no error is raised, and the context keeps its old block.
        """
        set_conversation_of_task(self._scope, model_context)
        with telemetry.stage(telemetry.Stage.UPDATE_CONTEXT, scope=self._scope):
            shown = await self._guard.attempt(self._replace_blocks(model_context))
            telemetry.note(facts=len(shown or ()))
        return UpdateContextResult(memories=MemoryQueryResult(results=[content_of_fact(fact) for fact in shown or ()]))

    @cached_property
    def _settings(self) -> MemorySettings:
        return memory_settings()

    @property
    def _budget_tokens(self) -> int:
        return self._settings.budget_tokens if self._budget_argument is None else self._budget_argument

    @property
    def timeout_s(self) -> float:
        """How long a turn waits for the store at most."""
        return self._settings.timeout_s if self._timeout_argument is None else self._timeout_argument

    @property
    def _embedder(self) -> Embedder | None:
        argument = self._embedder_argument
        return self._settings.embedder if isinstance(argument, str) else argument

    @property
    def scope(self) -> Scope:
        """The scope that new facts are added to."""
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
        """Return the result of `recall` as an AutoGen result. The metadata of each fact hold its score.

        With `explain` they also hold the matched words and the parts of the score. Without `limit` and `kinds`, all
        facts are returned if they fit the budget, best first. If there is no fact, `outcome` tells whether nothing is
        stored, nothing stored is relevant, or the store did not answer.
        """
        words = query if isinstance(query, str) else text_of_content(query)
        result = await self.recall(
            words, limit=limit, kinds=kinds, as_of=as_of, explain=explain, cancellation_token=cancellation_token
        )
        is_for_all = limit is None and kinds is None and words.strip() and result.outcome in ANSWERED_OUTCOMES
        others = await self._other_current_facts_if_all_fit(words, as_of, result) if is_for_all else []
        results = contents_of_result(result, others, explain=explain)
        return FactQueryResult(results=results, outcome=result.outcome, stored=result.stored)

    async def _other_current_facts_if_all_fit(
        self, query: str, as_of: datetime | str | None, result: RecallResult
    ) -> list[Fact]:
        """Return the facts that hold and are not in `result`, in the order of the block.

        It returns no facts if they do not all fit the budget.
        """
        at = parse_instant(as_of, time.max) or self._clock()
        reading = recall_in_shared_budget(partial(self._recall_scope, query, at=at), self._scopes, self._budget_tokens)
        recalls = await self._guard.attempt(self._guard.read_in_time(reading, self.timeout_s)) or []
        if not all(recalled.has_all_facts for recalled in recalls):
            return []
        known_ids = {fact.id for fact in result.facts}
        return [fact for recalled in recalls for fact in recalled.facts if fact.is_served and fact.id not in known_ids]

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
        """Return the facts that match the query, best first, at most `limit` (by default 10).

        An empty query returns every fact. `kinds` are one or several of preference, entity and decision. `as_of` is the
        time at which the facts held, by default now; a date stands for its end. `explain` adds the parts of each score.
        Raises ValueError for an invalid limit, kind or time. If the store is slow or down, no error is raised, and the
        outcome is `unavailable`.
        """
        if limit is not None and limit < 1:
            raise ValueError(f"the limit is {limit}; it must be at least 1")
        chosen_kinds = None if kinds is None else {Kind(kind) for kind in kinds}
        at = parse_instant(as_of, time.max) or self._clock()
        if limit is None and query.strip():
            limit = RANKED_LIMIT
        search = self._search_scopes(query, limit, chosen_kinds, at, explain)
        result = await self._guard.attempt(self._guard.read_in_time(search, self.timeout_s, cancellation_token))
        return UNAVAILABLE if result is None else result

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Store a sentence on behalf of the application. Adding the same sentence again adds support to its fact.

        `content` may be text, Markdown or JSON. Its `metadata` may hold kind, subject, attribute, value, valid_from and
        valid_to (ISO 8601 dates or times). A sentence that reads like an instruction to an assistant waits for a person
        (`afterword review`). Raises ValueError for bytes, images, an empty text or invalid metadata, and for a sentence
        that asks to be off the record or contains only a secret. Raises `StoreError` if it could not be stored.
        """
        entry = entry_of_content(content)

        async def enter() -> None:
            await entries.add_entry(await self.opened(), self._scope, entry, at=self._clock.change_time())

        adding = asyncio.ensure_future(enter())
        if cancellation_token is not None:
            cancellation_token.link_future(adding)
        await adding

    async def clear(self) -> None:
        """Withdraw every current fact of the scope, as one run that can be undone. Nothing is erased.

        Raises `StoreError` if the store does not answer.
        """
        await entries.withdraw_everything(await self.opened(), self._scope, at=self._clock.change_time())

    async def close(self) -> None:
        """Cancel background tasks, and close the store if this memory opened it.

        The next use opens the store again. No facts are deleted.
        """
        await self._guard.cancel_tasks()
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    def _to_config(self) -> FactMemoryConfig:
        return FactMemoryConfig(
            scope=str(self._scope),
            also=[str(scope) for scope in self._also] or None,
            budget_tokens=self._budget_argument,
            timeout_s=self._timeout_argument,
            store=dump_store_reference(self._store_argument),
        )

    @classmethod
    def _from_config(cls, config: FactMemoryConfig) -> Self:
        resolve_url(config.store)  # a variable that is not set is named now, and not at the first turn
        return cls(
            scope=config.scope,
            also=config.also or (),
            budget_tokens=config.budget_tokens,
            timeout_s=config.timeout_s,
            store=config.store,
        )

    def now(self) -> datetime:
        """Return the present instant by this memory's clock, for a change. Every later call returns a later one."""
        return self._clock.change_time()

    async def opened(self) -> Store:
        """Return the opened store. Raises `StoreError` if it cannot be opened."""
        if isinstance(self._store_argument, Store):
            return self._store_argument
        if isinstance(self._store_argument, SharedStore):
            return await self._store_argument.open()
        if self._opened is None:
            opened = await self._settings.store.open(self._store_argument)
            if self._opened is None:
                self._opened = opened
            else:
                # Another turn has opened the store meanwhile.
                await opened.close()
        return self._opened

    async def _recall_scope(
        self,
        query: str,
        scope: Scope,
        budget_tokens: int,
        *,
        at: datetime | None = None,
        second_query: str = "",
        heard: Collection[str] = (),
    ) -> Recall:
        return await recall(
            await self.opened(),
            scope,
            query,
            second_query=second_query,
            heard=heard,
            at=at or self._clock(),
            budget_tokens=budget_tokens,
            embedder=self._embedder,
            # If loading takes longer than this, the turn gets the previous snapshot. The next turn gets the new one.
            patience_s=self.timeout_s / 2,
        )

    async def _search_scopes(
        self, query: str, limit: int | None, kinds: Collection[Kind] | None, at: datetime, explain: bool
    ) -> RecallResult:
        store, results = await self.opened(), []
        for scope in self._scopes:
            ranked = await search(
                store,
                scope,
                query,
                at=at,
                limit=limit,
                kinds=kinds,
                turns=True,
                explain=explain,
                embedder=self._embedder,
            )
            results.append(as_recall_result(query, ranked))
        return merge_results(results, limit)

    async def instructions(self, query: str, heard: Collection[str] = (), timeout_s: float | None = None) -> str:
        """Return the memory blocks of all scopes as one text, for frameworks without an AutoGen context.

        `heard` are the texts of the user's messages that the agent sees; the blocks do not repeat them. The text is
        empty if the store fails or takes longer than `timeout_s` seconds, by default the memory's own timeout.
        """
        with telemetry.stage(telemetry.Stage.UPDATE_CONTEXT, scope=self._scope):
            recalls = await self._guard.attempt(self._recall_layers(query, heard, timeout_s)) or []
            telemetry.note(facts=sum(len(recalled.facts) for recalled, _ in recalls))
        stable = [layers.stable_text for _, layers in recalls]
        return "\n".join(filter(None, [*stable, *(layers.question_text for _, layers in recalls)]))

    async def _recall_layers(
        self, query: str, heard: Collection[str], timeout_s: float | None = None, *, second_query: str = ""
    ) -> list[tuple[Recall, Layers]]:
        """Return the recall result of each scope, and its layers without the turns whose text is in `heard`."""
        recall_of = partial(self._recall_scope, query, second_query=second_query, heard=heard)
        reading = recall_in_shared_budget(recall_of, self._scopes, self._budget_tokens)
        in_time = self._guard.read_in_time(reading, self.timeout_s if timeout_s is None else max(timeout_s, 0.0))
        recalls = list(zip(self._scopes, await in_time, strict=True))
        self._start_vector_refresh([scope for scope, recalled in recalls if recalled.without_vector])
        return [(recalled, recalled.layers or Layers(hashed_scope_label(scope))) for scope, recalled in recalls]

    async def _replace_blocks(self, model_context: ChatCompletionContext) -> Sequence[Fact]:
        """Place the block of each scope, and return the facts in them."""
        await remove_stale_blocks(model_context, self, [hashed_scope_label(scope) for scope in self._scopes])
        messages = await model_context.get_messages()
        shown: list[Fact] = []
        marks: list[str] = []
        query, second_query = recall_queries(messages, self._scope)
        recalls = await self._recall_layers(query, user_texts(messages), second_query=second_query)
        for recalled, layers in recalls:
            mark, next_mark = opening_tag(layers.label), opening_tag_for_question(layers.label)
            is_shown = await replace_block(model_context, layers.stable_text, mark=mark, other_marks=marks)
            # The first part that is told has the preface.
            text = (layers if is_shown else replace(layers, stable_entries=[], missing_fact_count=0)).question_text
            marks.append(mark)
            is_shown &= await replace_block(
                model_context, text, mark=next_mark, other_marks=marks, before_question=True
            )
            marks.append(next_mark)
            if is_shown:
                shown += [*recalled.facts, *(former.fact for former in recalled.former)]
            else:
                _log.warning("memory %s: the context has no room for the memory block", layers.label)
        return shown

    def _start_vector_refresh(self, scopes: Sequence[Scope]) -> None:
        """Make missing vectors in the background, unless that is already running."""
        embedder = self._embedder
        if embedder is None or not scopes or (self._vector_refresh is not None and not self._vector_refresh.done()):
            return

        async def refresh() -> None:
            for scope in scopes:
                await refresh_vectors(await self.opened(), scope, embedder, at=self._clock())

        self._vector_refresh = self._guard.start(refresh())
