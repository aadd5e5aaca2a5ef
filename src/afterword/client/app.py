"""`Afterword`: the methods that work on a whole store, and those that return the memory of one scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Self

from sqlmodel import Session

from afterword.client.access.keys import KeyedRequests, Keys
from afterword.client.access.webhooks import Webhooks
from afterword.client.arguments import Instant, NameOrNames, Source, first_page, limit_plus_one, scope_of
from afterword.client.forgetting import ForgetTarget, forget
from afterword.client.processing import (
    ProcessingOptions,
    consolidate,
    estimate_costs,
    outdated_sessions,
    process,
    queue_failed_sessions_again,
    scope_of_session,
)
from afterword.client.queries import run_page_reader, session_page_reader
from afterword.client.resources import Resources
from afterword.client.results import (
    ConsolidationReport,
    FactOrigin,
    ProcessingReport,
    Review,
    RunPage,
    SessionDetails,
    SessionPage,
)
from afterword.client.scope_memory import ScopeMemory
from afterword.client.session_processing.selection import selection_from_source
from afterword.client.status import store_costs, store_status
from afterword.client.store_results import (
    CostEstimate,
    OutdatedSession,
    ScopePage,
    StoreCosts,
    StoreStatus,
)
from afterword.client.upkeep import StoreUpkeep
from afterword.errors import Ambiguous, NotFound
from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge
from afterword.facts.scopes import Scope
from afterword.pipeline.reversible_runs import merge_scopes
from afterword.pipeline.vector_refresh import RefreshResult
from afterword.settings import Settings, load
from afterword.store import fact_ids, runs, scope_rows
from afterword.store.database.engine import Store
from afterword.store.forgetting.erasure import Receipt
from afterword.store.proposals import RunEffect
from afterword.store.runs import Run


class Afterword(StoreUpkeep):
    """A store and the operations on it, as `afterword.open()` returns it.

    It may be used from several event loops, and by any number of tasks at once. Its methods are for the operator of
    the store: they see every scope. For the memory of one person or project, call `user` or `scope`. Besides the
    errors that its description names, every method raises `StoreError` if the store does not answer.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store and all connections that this object has opened. The next call opens them again."""
        await self._resources.close()

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self._resources.settings

    @property
    def shown_url(self) -> str:
        """The address of the store without a password."""
        return self._resources.shown_url

    @property
    def keys(self) -> Keys:
        """An object that creates, lists, checks and revokes API keys of the HTTP service."""
        return Keys(self._resources)

    @property
    def requests(self) -> KeyedRequests:
        """An object that records requests made with API keys, for the audit log and so that they can be repeated."""
        return KeyedRequests(self._resources)

    @property
    def webhooks(self) -> Webhooks:
        """An object that creates, lists, tests and removes webhooks."""
        return Webhooks(self._resources)

    async def check(self) -> None:
        """Raise a `StoreError` if the store does not answer, cannot be written, or has tables of another version.

        A disk that is full is noticed only when something is written.
        """
        await (await self.store()).check(writing=True)

    async def store(self) -> Store:
        """Return the opened store, for functions that take one, such as `process_session`."""
        return await self._resources.store()

    def user(self, name: str) -> ScopeMemory:
        """Return the memory of a user of the default tenant. Raises `ScopeInvalid` for a name that cannot be used."""
        return ScopeMemory(self._resources, Scope.user(name))

    def scope(self, scope: Scope | str) -> ScopeMemory:
        """Return the memory of a scope, written tenant/kind/id. Raises `ScopeInvalid`."""
        return ScopeMemory(self._resources, scope_of(scope))

    async def scopes(
        self, *, prefix: str = "", tenant: str | None = None, limit: int | None = None, after: str | None = None
    ) -> ScopePage:
        """Return a page of the scopes whose id, or whose written form tenant/kind/id, begins with `prefix`.

        With `tenant`, only scopes of this tenant are returned. Raises `ArgumentInvalid` for a limit below 1, and
        `ScopeInvalid` if `after` is not a cursor.
        """
        most, last = limit_plus_one(limit), None if after is None else Scope.parse(after)
        scopes, total = await self._resources.read(
            lambda transaction: scope_rows.find_scopes(transaction, prefix=prefix, tenant=tenant, most=most, after=last)
        )
        shown, cursor = first_page(scopes, str, limit=limit)
        return ScopePage(shown, total, cursor)

    async def sessions(
        self,
        *,
        state: NameOrNames | None = None,
        session_id: str | None = None,
        tenant: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> SessionPage:
        """Return a page of the sessions of all scopes, oldest first, filtered by state, session id and tenant.

        `state` is one or several of pending, done, failed and "set aside". Raises `ArgumentInvalid`.
        """
        return await self._resources.read(session_page_reader(None, session_id, state, limit, after, tenant=tenant))

    async def session(self, session_id: str) -> SessionDetails:
        """Return the session with this id, of any scope, as `ScopeMemory.session` does.

        Raises `NotFound`, and `Ambiguous` if several scopes have a session with this id.
        """
        scope = await scope_of_session(await self.store(), session_id)
        return await self.scope(scope).session(session_id)

    async def history(self, fact_id: str) -> FactOrigin:
        """Return the assertions and verdicts behind a fact of any scope, as `ScopeMemory.history` does.

        Raises `NotFound`, and `Ambiguous` if several scopes have a fact whose id begins with `fact_id`.
        """
        at = self._resources.now()

        def work(transaction: Session) -> Scope:
            scopes = []
            for scope in fact_ids.scopes_with_statement(transaction, fact_id):
                with suppress(NotFound):
                    fact_ids.read_fact(transaction, scope, fact_id, at=at)
                    scopes.append(scope)
            if len(scopes) > 1:
                raise Ambiguous(
                    f"{len(scopes)} memories have a fact whose id begins with {fact_id!r}; give more of the id"
                )
            if not scopes:
                raise NotFound(f"no fact {fact_id!r}; see `afterword facts --all`")
            return scopes[0]

        return await self.scope(await self._resources.read(work)).history(fact_id)

    async def run(self, run_id: int) -> Run:
        """Return a run of any scope. Raises `NotFound`."""
        return await self._resources.read(lambda transaction: runs.read_run(transaction, run_id))

    async def runs(
        self, *, status: NameOrNames | None = None, limit: int | None = None, after: str | None = None
    ) -> RunPage:
        """Return a page of the runs of all scopes, oldest first. Raises `ArgumentInvalid`. See `ScopeMemory.runs`."""
        return await self._resources.read(run_page_reader(None, status, limit, after))

    async def reviews(self) -> Mapping[Scope, Review]:
        """Return what waits for a person's decision in each scope. Scopes in which nothing waits are left out."""
        scopes = await self._resources.read(scope_rows.read_scopes)
        reviews = {scope: await self.scope(scope).review() for scope in scopes}
        return {scope: review for scope, review in reviews.items() if not review.is_empty}

    async def apply(self, run_id: int) -> RunEffect:
        """Apply a proposed or held run of any scope, as `ScopeMemory.apply` does."""
        return await (await self._memory_of_run(run_id)).apply(run_id)

    async def undo(self, run_id: int) -> RunEffect:
        """Undo an applied run of any scope, as `ScopeMemory.undo` does."""
        return await (await self._memory_of_run(run_id)).undo(run_id)

    async def redo(self, run_id: int) -> RunEffect:
        """Redo an undone run of any scope, as `ScopeMemory.redo` does."""
        return await (await self._memory_of_run(run_id)).redo(run_id)

    async def process(
        self,
        source: str | Path | Sequence[str | Path] | None = None,
        *,
        manifest: str | Path | None = None,
        trust_manifest: bool = False,
        session_id: str | None = None,
        options: ProcessingOptions | None = None,
    ) -> ProcessingReport:
        """Extract facts from the saved sessions at `source`, and return the result of each session.

        `source` is a folder with a manifest.json, a folder of files named <user>/<session>.json, a database, or a
        list of these. It must tell to which scope each session belongs. `manifest` is the path of a manifest file;
        the paths in this file are relative to its folder. With `session_id`, only this session is processed. A
        manifest may name only files below its own folder, unless `trust_manifest` is set.
        Raises `SourceInvalid`, and `NotFound` if no session has this id.
        """
        selection = selection_from_source(
            source,
            scope=None,
            session_id=session_id,
            manifest=manifest,
            trust_manifest=trust_manifest,
            at=self._resources.now(),
        )
        return await process(self._resources, selection, options)

    async def run_pending(self, *, options: ProcessingOptions | None = None) -> ProcessingReport:
        """Extract facts from the recorded sessions that wait, and return the result of each.

        A session that failed is tried again only after a pause. During the pause it is reported as `NotDue`.
        """
        return await process(self._resources, None, options)

    async def estimate(
        self,
        source: Source = None,
        *,
        scope: Scope | str | None = None,
        manifest: str | Path | None = None,
        trust_manifest: bool = False,
        session_id: str | None = None,
        extractor: str | None = None,
    ) -> CostEstimate:
        """Return an estimate of what `process` would cost with the same arguments.

        Without a source, the estimate is for the recorded sessions that wait. No request is sent to a model, nothing
        is stored, and no store is created.
        """
        selection = None
        if source is not None or manifest is not None or session_id is not None:
            selection = selection_from_source(
                source,
                scope=None if scope is None else scope_of(scope),
                session_id=session_id,
                manifest=manifest,
                trust_manifest=trust_manifest,
                at=self._resources.now(),
            )
        return await estimate_costs(self._resources, selection, extractor)

    async def reprocess(self, session_id: str, *, options: ProcessingOptions | None = None) -> ProcessingReport:
        """Extract facts again from the session with this id, of any scope, as `ScopeMemory.reprocess` does.

        Raises `NotFound`, and `Ambiguous` if several scopes have a session with this id.
        """
        scope = await scope_of_session(await self.store(), session_id)
        return await self.scope(scope).reprocess(session_id, options=options)

    async def outdated(self, *, extractor: str | None = None) -> tuple[OutdatedSession, ...]:
        """Return the sessions of all scopes whose facts come from another extractor or version than the present one."""
        return await outdated_sessions(self._resources, None, extractor)

    async def consolidate(self, *, scope: Scope | str | None = None, apply: bool = True) -> ConsolidationReport:
        """Consolidate `scope`, or every scope if it is None, as `ScopeMemory.consolidate` does.

        One budget limits what models may cost for all scopes together.
        """
        scopes = await self._resources.read(scope_rows.read_scopes) if scope is None else [scope_of(scope)]
        return await consolidate(self._resources, scopes, apply=apply)

    async def retry(
        self, session_id: str | None = None, *, scope: Scope | str | None = None
    ) -> tuple[tuple[Scope, str], ...]:
        """Queue failed sessions again, and return their scopes and ids. The next run processes them.

        A session that was set aside after many failures counts as failed, too. Without `session_id`, all failed
        sessions are queued, or with `scope` those of this scope. Raises `NothingSelected` if no session with this id
        has failed, and `Ambiguous` if several scopes have a failed session with this id.
        """
        owner = None if scope is None else scope_of(scope)
        return await queue_failed_sessions_again(await self._resources.store(), session_id, owner)

    async def merge(self, scope: Scope | str, *, into: Scope | str) -> RunEffect:
        """Move everything that is known of `scope` into the scope `into`. Return the run and the facts that changed.

        The run belongs to `into`: `scope(into).undo(run_id)` moves everything back. If both scopes have a session with
        the same id, the name of the old scope is appended to the id of the moved session. What was forgotten in either
        scope stays forgotten. Sessions that are recorded for the old scope after the merge stay in the old scope. API
        keys that gave access to the old scope give access to `into` instead. Raises `NotFound` if nothing was ever
        stored for one of them (`rename` gives a new name), and `StateConflict` if both are the same scope or belong to
        different tenants.
        """
        return await self._merge(scope_of(scope), scope_of(into), is_rename=False)

    async def rename(self, scope: Scope | str, to: Scope | str) -> RunEffect:
        """Rename a scope, and return the run. `scope(to).undo(run_id)` gives the old name back.

        The old name stays in the list of scopes, without facts. What programs still record under it is stored there.
        Raises `NotFound` if nothing was ever stored for `scope`, and `StateConflict` for scopes of different tenants,
        and if something is already stored under the new name.
        """
        return await self._merge(scope_of(scope), scope_of(to), is_rename=True)

    async def _merge(self, scope: Scope, into: Scope, *, is_rename: bool) -> RunEffect:
        store, clock = await self.store(), self._resources.now
        async with self._resources.extractor_and_judge() as configured:
            effect = await merge_scopes(store, scope, into, judge=configured.judge, is_rename=is_rename, clock=clock)
        await self._resources.refresh_vectors([into])
        return effect

    async def status(self) -> StoreStatus:
        """Return what the store holds, what waits, and what failed and why."""
        return await store_status(self._resources)

    async def costs(self, *, tenant: str | None = None) -> StoreCosts:
        """Return what requests to models have cost in the whole store or in one tenant, by scope and by day."""
        return await self._resources.read(lambda transaction: store_costs(transaction, tenant))

    async def preview_forget(self, *, before: Instant | None = None, asked: bool = False) -> tuple[Receipt, ...]:
        """Return how much `forget` with the same arguments would erase in each scope. Nothing is changed."""
        return await self._forget(before, asked, is_preview=True)

    async def forget(self, *, before: Instant | None = None, asked: bool = False) -> tuple[Receipt, ...]:
        """Erase data in every scope, and return a receipt for each scope in which something was erased.

        Give either `before`, to erase what was said before this instant, or `asked=True`, to erase what people have
        asked to be forgotten. Raises `ArgumentInvalid`.
        """
        return await self._forget(before, asked, is_preview=False)

    async def _forget(self, before: Instant | None, asked: bool, *, is_preview: bool) -> tuple[Receipt, ...]:
        target = ForgetTarget(before=before, asked=asked)
        scopes = await self._resources.read(scope_rows.read_scopes)
        return tuple(await forget(self._resources, scopes, target, is_preview=is_preview))

    async def _memory_of_run(self, run_id: int) -> ScopeMemory:
        return self.scope((await self.run(run_id)).scope)


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
    """Return the `Afterword` of a store. Use it with `async with`, or close it.

    `settings` come by default from the profile and the environment. `url` overrides the address of the store in the
    settings. `store` is a store that the caller has opened; the caller also closes it. Nothing is opened before it is
    needed. With `create=False` a missing SQLite file is not created, and methods that need it raise `StoreMissing`.
    `extractor` and `judge` replace the configured ones. `clock` is called for the present time, so that tests and
    replays of old conversations can set it. `on_vectors` is called with the result each time vectors were made.

    Raises `SettingsInvalid`.
    """
    chosen, address = settings or load(), url if store is None else store.shown_url
    if address is not None:
        chosen = chosen.model_copy(update={"store": chosen.store.model_copy(update={"url": address})})
    return Afterword(
        Resources(
            chosen,
            store=store,
            create=create,
            extractor=extractor,
            judge=judge,
            clock=clock,
            on_vectors=on_vectors,
        )
    )
