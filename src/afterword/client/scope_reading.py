"""The methods of `ScopeMemory` that read. None of them creates a scope or sends a request to a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import datetime, time, tzinfo
from functools import partial
from typing import TypeVar

from sqlmodel import Session

from afterword.agents.memory_settings import additional_scopes, check_above_zero
from afterword.agents.shared_recall import recall_in_shared_budget
from afterword.client.arguments import (
    Instant,
    NameOrNames,
    check_limit,
    checked_tags,
    chosen_members,
    fact_filter,
    instant,
)
from afterword.client.queries import (
    context_block,
    fact_origin,
    fact_page,
    fact_page_of_view,
    held_runs,
    omitted_facts,
    run_changes,
    run_page_reader,
    search_hits,
    session_details,
    session_page_reader,
)
from afterword.client.resources import Resources
from afterword.client.results import (
    ContextBlock,
    FactOrigin,
    FactPage,
    Review,
    RunPage,
    ScopeCosts,
    SearchResults,
    SessionDetails,
    SessionPage,
    WaitingErasure,
)
from afterword.client.type_checks import TypeCheckedMethods
from afterword.errors import ArgumentInvalid
from afterword.extractors.model.embeddings import PURPOSE
from afterword.facts.assertions import Kind
from afterword.facts.fact import Fact, FactChange, FactOrder
from afterword.facts.findings import FindingStatus
from afterword.facts.local_time import read_zone
from afterword.facts.scopes import Scope
from afterword.pipeline.budget import Account
from afterword.store import costs, fact_ids, lookup, reviews, scope_rows
from afterword.store.costs import Spending
from afterword.store.findings.stored_findings import read_findings
from afterword.store.forgetting.forgotten_statements import read_erase_requests_in_force
from afterword.store.forgetting.pauses import Pause, read_pause
from afterword.store.reading import recall
from afterword.store.reading.fact_lists import FactCounts
from afterword.store.reading.view_cache import view_cache_of
from afterword.store.reading.views import View
from afterword.store.scope_rows import ApprovalPolicy

T = TypeVar("T")


class ScopeReading(TypeCheckedMethods):
    """Reads what is known in one scope. Use it through `ScopeMemory`."""

    def __init__(self, resources: Resources, scope: Scope) -> None:
        self._resources = resources
        self.scope = scope

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.scope)!r})"

    async def _view(self, at: datetime, scope: Scope | None = None) -> View:
        """Return the cached facts of this scope, or of `scope`, with the status that they have at the time `at`."""
        store = await self._resources.store()
        return await view_cache_of(store).view(store, scope or self.scope, at)

    async def _view_for_list(self, at: datetime) -> View:
        """Return a view that is enough for a list of facts.

        A list needs no turns, so the facts alone are read if the scope is not in the cache.
        """
        views = view_cache_of(await self._resources.store())
        if views.is_loaded(self.scope):
            return await self._view(at)
        return await self._resources.read(
            lambda transaction: views.view_of_facts(transaction.connection(), self.scope, at)
        )

    async def check_known(self) -> None:
        """Raise `NotFound` if nothing was ever stored for the scope. Its message names scopes with similar names."""
        await self._resources.read(lambda transaction: scope_rows.check_known(transaction, self.scope))

    async def facts(
        self,
        *,
        status: NameOrNames | None = None,
        kind: NameOrNames | None = None,
        about: str | None = None,
        tags: NameOrNames = (),
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        limit: int | None = None,
        after: str | None = None,
        order: FactOrder | str = FactOrder.SAID,
        offset: int = 0,
    ) -> FactPage:
        """Return the facts of the scope, at most `limit` of them, beginning after the cursor `after`.

        `status` is one or several of current, superseded, retracted, expired, contested and pending, or "all"; by
        default the facts that hold: current and contested. `kind` is one or several of preference, entity and decision.
        `about` is the name of a person or thing, or "user" for the owner of the memory. Only facts that have all `tags`
        are returned. `as_of` is the time at which the statuses apply, by default now. With `known_at`, the facts are
        those that the store would have returned at that time.

        `order` is "said" (oldest first), "subject" (by kind and subject, newest first) or "learned" (newest first). The
        first `offset` facts are left out. `after` works only with the order "said". With a `limit` and without
        `known_at`, only the facts of the page are built. Raises `ArgumentInvalid`.
        """
        at = self._resources.now() if as_of is None else await self._instant(as_of)
        believed_at = None if known_at is None else await self._instant(known_at)
        wanted = fact_filter(status, kind, about, tags)
        (known_order,) = chosen_members(FactOrder, order, "order")
        if offset < 0 or (after is not None and known_order is not FactOrder.SAID):
            raise ArgumentInvalid(f"offset={offset} is below 0, or after={after!r} is given with order={order!r}")
        if limit is None or believed_at is not None:
            facts = await self._resources.read(
                lambda transaction: lookup.read_facts(transaction, self.scope, at=at, known_at=believed_at)
            )
            return fact_page(facts, wanted, known_order, limit=limit, after=after, offset=offset)
        check_limit(limit)
        view = await self._view_for_list(at)
        chosen = partial(fact_page_of_view, view, wanted, known_order, limit=limit, after=after, offset=offset)
        return await asyncio.to_thread(chosen)

    async def fact_counts(self) -> FactCounts:
        """Return the number of facts with each status, and the number of facts that hold about each subject."""
        view = await self._view(self._resources.now())
        return await asyncio.to_thread(lambda: view.lists.counts)

    async def erasures(self) -> tuple[WaitingErasure, ...]:
        """Return the requests to forget that wait, including those that match no fact."""
        erase_due_at = self._resources.settings.privacy.erase_due_at

        def work(transaction: Session) -> tuple[WaitingErasure, ...]:
            return tuple(
                WaitingErasure(
                    asked.id,
                    asked.request.statement,
                    asked.hidden_since,
                    erase_due_at(asked.hidden_since) if asked.finds_facts else None,
                    asked.finds_facts,
                    asked.is_everything,
                )
                for asked in read_erase_requests_in_force(transaction, self.scope)
            )

        return await self._resources.read(work)

    async def fact(self, fact_id: str, *, as_of: Instant | None = None) -> Fact:
        """Return one fact by its id or the id of one of its assertions; the first digits are enough.

        `as_of` is the time at which its status applies. Raises `NotFound` unless exactly one fact has this id; if
        several ids begin with these digits, the error lists them.
        """
        at = self._resources.now() if as_of is None else await self._instant(as_of)
        return await self._resources.read(
            lambda transaction: fact_ids.read_fact(transaction, self.scope, fact_id, at=at)
        )

    async def history(self, fact_id: str) -> FactOrigin:
        """Return where a fact comes from: its assertions, and every verdict on them. Raises `NotFound`."""
        at = self._resources.now()
        return await self._resources.read(lambda transaction: fact_origin(transaction, self.scope, fact_id, at))

    async def sessions(
        self,
        *,
        state: NameOrNames | None = None,
        limit: int | None = None,
        after: str | None = None,
        newest_first: bool = False,
        offset: int = 0,
    ) -> SessionPage:
        """Return a page of the sessions of the scope, oldest or newest first. The first `offset` are left out.

        `state` is one or several of pending, done, failed and "set aside". Raises `ArgumentInvalid`.
        """
        chosen = session_page_reader(self.scope, None, state, limit, after, newest_first=newest_first, offset=offset)
        return await self._resources.read(chosen)

    async def session(self, session_id: str) -> SessionDetails:
        """Return a session: its transcript, the facts that each turn supports, and what was left out and why.

        Raises `NotFound` if the scope has no such session.
        """
        at = self._resources.now()
        return await self._resources.read(lambda transaction: session_details(transaction, self.scope, session_id, at))

    async def search(
        self,
        query: str,
        *,
        limit: int | None = 10,
        kind: NameOrNames | None = None,
        tags: NameOrNames = (),
        turns: bool = True,
        as_of: Instant | None = None,
        explain: bool = True,
    ) -> SearchResults:
        """Return what matches a query: facts that hold, facts that held before, turns, and findings of agents.

        Each hit has a layer, a score, a time and a speaker. Facts that held before follow those that hold; for a
        question about the past, they are ranked together. Without `turns`, only facts are searched. `limit` bounds
        facts and turns together. With `tags`, only facts that have all of these tags are found. An empty query finds
        every fact. With a configured embedder, hits are ranked by meaning and by words; if it does not answer, by words
        alone. Without `explain`, `matched` and `parts` of the hits are empty. Raises `ArgumentInvalid`.
        """
        check_limit(limit)
        kinds = None if kind is None else chosen_members(Kind, kind, "kind")
        at, wanted = self._resources.now() if as_of is None else await self._instant(as_of), checked_tags(tags)
        search = partial(recall.search, at=at, limit=limit, kinds=kinds, tags=wanted, turns=turns, explain=explain)
        results = await self._call_recall(partial(search, query=query), self.scope)
        hits = search_hits(query, results, explain=explain)
        return SearchResults(tuple(hits), results.stored, results.without_vector)

    async def context(
        self,
        query: str = "",
        *,
        budget_tokens: int | None = None,
        also: Collection[Scope | str] = (),
        most_left_out: int | None = None,
    ) -> ContextBlock:
        """Return the text that `FactMemory` puts into an agent's context for a query, and what is left out and why.

        `also` names scopes that are read in addition. Each has its own block of text after the first, and all blocks
        share one budget. At most `most_left_out` of the facts that are left out are returned, but all are counted.
        Raises `ArgumentInvalid` for a number that is too small, and `ScopeInvalid` for a scope of another tenant.
        """
        if budget_tokens is None:
            budget_tokens = self._resources.settings.recall.budget_tokens
        check_above_zero("budget_tokens", budget_tokens)
        if most_left_out is not None and most_left_out < 0:
            raise ArgumentInvalid(f"most_left_out={most_left_out} is below 0; give 0 or more, or None for all")
        at, scopes = self._resources.now(), (self.scope, *additional_scopes(self.scope, also))

        async def recall_of(scope: Scope, tokens: int) -> recall.Recall:
            return await self._call_recall(partial(recall.recall, query=query, at=at, budget_tokens=tokens), scope)

        recalls = await recall_in_shared_budget(recall_of, scopes, budget_tokens)
        chosen_ids = {fact.id for recalled in recalls for fact in recalled.facts}
        views = [await self._view(at, scope) for scope in scopes]
        left_out, left_out_count = await asyncio.to_thread(omitted_facts, views, chosen_ids, most_left_out)
        return replace(context_block(recalls, budget_tokens), left_out=left_out, left_out_count=left_out_count)

    async def _call_recall(
        self, recall_function: Callable[..., Awaitable[recall.Recall]], scope: Scope
    ) -> recall.Recall:
        """Call a function of `recall`, and return its result. The cost of the embedder is charged to the scope."""
        store, embedder = await self._resources.store(), self._resources.embedder()
        if embedder is None:
            return await recall_function(store=store, scope=scope)

        with Account(self._resources.new_tracker("rules"), store, scope, PURPOSE, PURPOSE).charging_requests():
            return await recall_function(store=store, scope=scope, embedder=embedder)

    async def runs(
        self,
        *,
        status: NameOrNames | None = None,
        limit: int | None = None,
        after: str | None = None,
        newest_first: bool = False,
        offset: int = 0,
    ) -> RunPage:
        """Return a page of the runs of the scope with their costs, oldest or newest first, without the first `offset`.

        `status` is one or several of proposed, held, applied, undone, rejected and satisfied. Raises `ArgumentInvalid`.
        """
        return await self._resources.read(
            run_page_reader(self.scope, status, limit, after, newest_first=newest_first, offset=offset)
        )

    async def run_changes(self, run_id: int) -> tuple[FactChange, ...]:
        """Return the facts that a run changed when it was applied; none if it was never applied. Raises `NotFound`."""
        return await self._resources.read(lambda transaction: run_changes(transaction, self.scope, run_id))

    async def review(self) -> Review:
        """Return what waits for a person's decision. Pass the decision to `decide`."""
        at = self._resources.now()
        view = await self._view(at)
        waiting = await asyncio.to_thread(lambda: view.lists.facts_to_check)
        erasures = await self.erasures()

        def work(transaction: Session) -> Review:
            return Review(
                tuple(reviews.read_contests(transaction, self.scope, at=at)),
                tuple(held_runs(transaction, self.scope)),
                waiting.dependents,
                waiting.pending,
                erasures,
                tuple(
                    finding
                    for finding in read_findings(transaction, self.scope)
                    if finding.status_at(at) is FindingStatus.WAITING
                ),
            )

        return await self._resources.read(work)

    async def policy(self) -> ApprovalPolicy:
        """Return which runs wait for a person's approval before they take effect. The default is `auto`: none."""
        return await self._resources.read(lambda transaction: scope_rows.approval_policy_of(transaction, self.scope))

    async def zone(self) -> str:
        """Return the time zone (IANA name) for saved times without an offset: that of the profile if none was set."""
        return str(await self._zone())

    async def _zone(self) -> tzinfo:
        default = read_zone(self._resources.settings.zone)
        return await self._resources.read(lambda transaction: scope_rows.zone_of(transaction, self.scope, default))

    async def _instant(self, value: Instant, day_time: time = time.max) -> datetime:
        """Return `value` as a datetime. Without an offset, it is in the time zone of the scope.

        A date becomes `day_time` of that day.
        """
        return instant(value, day_time=day_time, zone=await self._zone())

    async def paused(self) -> Pause | None:
        """Return when the scope was paused and how many sessions were not stored since, None if it is not paused."""
        return await self._resources.read(lambda transaction: read_pause(transaction, self.scope))

    async def spent(self) -> Spending:
        """Return what requests to models have cost in this scope in total. This is faster than `costs`."""
        return await self._resources.read(lambda transaction: costs.spending_of_scope(transaction, self.scope))

    async def costs(self) -> ScopeCosts:
        """Return what requests to models have cost in this scope, by source and by run."""

        def work(transaction: Session) -> ScopeCosts:
            by_source = costs.spending_by_run_source(transaction, self.scope)
            by_run = costs.spending_by_run(transaction, self.scope)
            total = sum(by_source.values(), start=Spending())
            of_runs = {run_id: spent for run_id, spent in by_run.items() if run_id is not None}
            return ScopeCosts(total, by_source, of_runs, by_run.get(None, Spending()))

        return await self._resources.read(work)
