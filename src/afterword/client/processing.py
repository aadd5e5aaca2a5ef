"""Processes the selected sessions for `Afterword`: extracts their facts within a budget, and reports the results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlmodel import Session

from afterword.client.process_pool import (
    SessionEnd,
    SessionShare,
    child_process_count,
    divide_by_scope,
    run_in_processes,
)
from afterword.client.resources import Resources
from afterword.client.results import ConsolidatedScope, ConsolidationReport, ProcessedSession, ProcessingReport
from afterword.client.store_results import CostEstimate, CostRange, OutdatedSession
from afterword.composition import ExtractorAndJudge
from afterword.errors import Ambiguous, NotFound, NothingSelected
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import (
    Failure,
    NotStarted,
    SelectedSessions,
    queued_sessions,
    run_batch,
    sessions_to_process,
)
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.consolidation import CONSOLIDATION, consolidate_scope, erase_requested_and_compare
from afterword.pipeline.estimate import Estimate, estimate_costs_by_scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import runs, scope_rows, sessions
from afterword.store.costs import Spending
from afterword.store.database.engine import Store
from afterword.store.ledger import RunStatus, session_run_source

SESSION_SOURCE = session_run_source("")

ProcessingResult = SessionOutcome | Failure | NotStarted
ProgressCallback = Callable[[SessionOutcome | Failure, Spending], None]


@dataclass(frozen=True, slots=True)
class ProcessingOptions:
    """How sessions are processed.

    `extractor` is "rules" or "model" (default: as configured). With `apply=False` the runs are only proposed: they have
    no effect until `apply(run_id)` is called. With `retry_now`, sessions that failed before are tried at once,
    including those that were set aside. `concurrency` is the number of requests to a model that are open at once.

    `processes` is the number of processes among which the scopes are divided; None means one process for each core if
    more than twenty sessions wait. With `own_process`, all work is done in other processes, with a lower priority, so
    that this process can answer requests. `stop` returns the reason to begin no further session, or None to go on.
    `on_begin` is called with the number of sessions, and `on_done` after each session with its result and with the
    cost of all sessions so far.
    """

    extractor: str | None = None
    apply: bool = True
    retry_now: bool = False
    concurrency: int | None = None
    processes: int | None = 1
    own_process: bool = False
    stop: Callable[[], str | None] = lambda: None
    on_begin: Callable[[int], None] = lambda _: None
    on_done: ProgressCallback = lambda *_: None


async def process(
    resources: Resources, selection: SelectedSessions | None, options: ProcessingOptions | None = None
) -> ProcessingReport:
    """Process the selected sessions, or without a selection the recorded ones that wait, and return the results."""
    options = options or ProcessingOptions()
    tracker, store = resources.new_tracker(options.extractor), await resources.store()
    ended: dict[tuple[Scope, str], ProcessingResult] = {}

    def note_end(outcome: SessionOutcome | Failure) -> None:
        ended[outcome.scope, outcome.session_id] = outcome
        options.on_done(outcome, tracker.spent)

    async with resources.extractor_and_judge(options.extractor) as configured:
        processing = _Processing(resources, store, options, tracker, configured)
        retried = await _queue_failed_again(store, selection) if options.retry_now else 0
        batch, waiting = await sessions_to_process(store, selection, resources.now())
        options.on_begin(len(batch))
        try:
            results = await processing.process_batch(batch, note_end)
            if options.apply:
                await processing.erase_and_make_vectors(results)
        except asyncio.CancelledError:
            reason = options.stop()
            if reason is None:
                raise
            # A caller that has asked to stop and then cancels this call still gets the result of each session.
            keys = [(saved.scope, saved.session_id) for saved in batch]
            results = [ended.get(key) or NotStarted(*key, reason) for key in keys]
    processed = (
        ProcessedSession(result, tracker.spent_on(result.scope, session_run_source(result.session_id)))
        for result in (*results, *waiting)
    )
    return ProcessingReport(tuple(processed), tracker.spent, tracker.reached, retried)


async def _queue_failed_again(store: Store, selection: SelectedSessions | None) -> int:
    """Queue failed sessions again, and return their number. Without a selection, these are all recorded ones."""

    def work(transaction: Session) -> int:
        failed = {(session.scope, session.session_id) for session in sessions.failed_sessions(transaction)}
        if selection is None:
            recorded = sessions.waiting_sessions(transaction, progress=sessions.TROUBLED)
            failed &= {(session.scope, session.session_id) for session in recorded}
        else:
            failed &= {(saved.scope, saved.session_id) for saved in selection.sessions}
        for scope, session_id in failed:
            sessions.retry_session(transaction, scope, session_id)
        return len(failed)

    return await store.write(work)


@dataclass(frozen=True, slots=True)
class _Processing:
    """One call of `process`: its store, options, costs, extractor and judge."""

    resources: Resources
    store: Store
    options: ProcessingOptions
    tracker: CostTracker
    configured: ExtractorAndJudge

    async def process_batch(
        self, batch: Sequence[Saved], on_done: Callable[[SessionOutcome | Failure], None]
    ) -> Sequence[ProcessingResult]:
        """Process the sessions in this process or in child processes, and return the results in their order."""
        options = self.options
        count = child_process_count(
            self.resources, self.store, batch, options.processes, own_process=options.own_process
        )
        if count:
            return await self._process_in_children(batch, count, on_done)
        return await run_batch(
            self.store,
            batch,
            extractor=self.configured.extractor,
            judge=self.configured.judge,
            apply=options.apply,
            budget=self.tracker,
            stop=options.stop,
            on_done=on_done,
            retries=self.resources.settings.retry.policy(),
            clock=self.resources.now,
            concurrency=self._concurrency(),
            sessions_at_once=self._most_sessions_at_once(),
            is_brief=True,
        )

    def _concurrency(self) -> int:
        return self.options.concurrency or self.resources.settings.concurrency

    def _most_sessions_at_once(self) -> int | None:
        """Return 1 if sessions wait neither for a model nor for a database server, None (no limit) otherwise.

        Such sessions only compete for Python's global lock, so processing several at once is not faster. It would
        double the time of the slowest turns of a live agent in this process.
        """
        waits_for_others = self.store.dialect != "sqlite" or self.resources.asks_model(self.options.extractor)
        return None if waits_for_others else 1

    async def _process_in_children(
        self, batch: Sequence[Saved], count: int, on_done: Callable[[SessionOutcome | Failure], None]
    ) -> list[ProcessingResult]:
        """Process the sessions in `count` child processes, and return the results in the order of the sessions."""
        options, tracker, results = self.options, self.tracker, dict[tuple[Scope, str], ProcessingResult]()

        def note_end(ended: SessionEnd) -> None:
            result = ended.result
            results[result.scope, result.session_id] = result
            tracker.add_spending(result.scope, session_run_source(result.session_id), ended.spent)
            if not isinstance(result, NotStarted):
                on_done(result)

        shares = [
            SessionShare(
                self.resources.settings,
                options.extractor,
                options.apply,
                max(1, self._concurrency() // count),
                self._most_sessions_at_once(),
                options.own_process,
                sessions,
            )
            for sessions in divide_by_scope(batch, count)
        ]
        reached = await run_in_processes(shares, stop=options.stop, on_session_end=note_end)
        tracker.reached = tracker.reached or reached
        return [results[saved.scope, saved.session_id] for saved in batch]

    async def erase_and_make_vectors(self, results: Sequence[ProcessingResult]) -> None:
        """Erase what people have asked to be forgotten, if the settings say so, and make missing vectors."""
        resources, privacy = self.resources, self.resources.settings.privacy
        if privacy.erases_without_approval:
            scopes = [result.scope for result in results]
            judge, wait = self.configured.judge, privacy.erase_wait
            await erase_requested_and_compare(self.store, scopes, judge=judge, at=resources.now(), wait=wait)
        stored = [result.scope for result in results if isinstance(result, SessionOutcome)]
        await resources.refresh_vectors(stored, self.tracker, self.options.stop)


async def reprocess(
    resources: Resources, scope: Scope, session_id: str, options: ProcessingOptions | None
) -> ProcessingReport:
    """Extract facts again from the stored turns of a session. Raises `NotFound` if the scope has no such session."""
    if await resources.read(lambda transaction: sessions.find_session(transaction, scope, session_id)) is None:
        raise NotFound(f"no session {session_id!r} in {scope}; see `afterword sessions`")
    return await process(resources, SelectedSessions([Saved(scope, session_id, reread=True)], are_named=True), options)


async def queue_failed_sessions_again(
    store: Store, session_id: str | None, owner: Scope | None
) -> tuple[tuple[Scope, str], ...]:
    """Queue failed sessions again, and return their scopes and ids. `session_id` and `owner` select some of them."""

    def work(transaction: Session) -> tuple[tuple[Scope, str], ...]:
        failed = [
            session
            for session in sessions.failed_sessions(transaction)
            if session_id in (None, session.session_id) and owner in (None, session.scope)
        ]
        if session_id is not None and not failed:
            raise NothingSelected(f"no failed session {session_id!r}; see `afterword status`")
        if session_id is not None and len(failed) > 1:
            raise Ambiguous(f"{len(failed)} memories have a failed session {session_id!r}; name the scope")
        for session in failed:
            sessions.retry_session(transaction, session.scope, session.session_id)
        return tuple((session.scope, session.session_id) for session in failed)

    return await store.write(work)


async def scope_of_session(store: Store, session_id: str) -> Scope:
    """Return the scope that has a session with this id. Raises `NotFound`, and `Ambiguous` if several scopes have."""
    saved = await store.read(lambda transaction: sessions.read_sessions(transaction, session_id=session_id))
    if not saved:
        raise NotFound(f"no session {session_id!r} is stored; see `afterword sessions`")
    if len(saved) > 1:
        raise Ambiguous(f"{len(saved)} memories have a session {session_id!r}; name the scope")
    return saved[0].scope


async def outdated_sessions(
    resources: Resources, scope: Scope | None, extractor_kind: str | None
) -> tuple[OutdatedSession, ...]:
    """Return the sessions whose facts come from another extractor or version than the present one."""
    async with resources.extractor_and_judge(extractor_kind) as configured:
        version = configured.extractor.version

    def work(transaction: Session) -> tuple[OutdatedSession, ...]:
        old: list[OutdatedSession] = []
        for owner in [scope] if scope else scope_rows.read_scopes(transaction):
            applied = runs.read_runs(transaction, owner, statuses=[RunStatus.APPLIED])
            last = {run.source: run for run in applied if run.purpose == "session"}
            old += (
                OutdatedSession(owner, run.source.removeprefix(SESSION_SOURCE), run.extractor)
                for run in last.values()
                if run.extractor != version
            )
        return tuple(old)

    return await (await resources.store()).read(work)


async def consolidate(resources: Resources, scopes: Sequence[Scope], *, apply: bool) -> ConsolidationReport:
    """Compare the statements in these scopes that were not compared before, within one budget. Return the report."""
    tracker, store = resources.new_tracker(), await resources.store()
    async with resources.extractor_and_judge() as configured:
        results = [
            await consolidate_scope(
                store, scope, judge=configured.judge, apply=apply, budget=tracker, clock=resources.now
            )
            for scope in scopes
        ]
    if apply:
        await resources.refresh_vectors(scopes, tracker)
    consolidated = tuple(ConsolidatedScope(result, tracker.spent_on(result.scope, CONSOLIDATION)) for result in results)
    return ConsolidationReport(consolidated, tracker.spent, tracker.reached)


async def estimate_costs(
    resources: Resources, selection: SelectedSessions | None, extractor_kind: str | None
) -> CostEstimate:
    """Return what processing would cost. No request is sent, and nothing is stored."""
    extractor = extractor_kind or resources.settings.extractor
    async with (
        _existing_or_empty_store(resources) as store,
        resources.extractor_and_judge(extractor_kind) as configured,
    ):
        waiting = await queued_sessions(store) if selection is None else selection.sessions
        estimates = await estimate_costs_by_scope(
            store, waiting, extractor=configured.extractor, judge=configured.judge
        )
    # The tracker of the rules never raises `PriceUnknown`: an estimate is possible without a price.
    tracker, model = resources.new_tracker("rules"), resources.settings.model.name

    def priced(foreseen: Estimate) -> CostRange:
        least, most = tracker.cost_of(model, foreseen.least), tracker.cost_of(model, foreseen.most)
        return CostRange(foreseen.sessions, foreseen.windows, least, most)

    total = sum(estimates.values(), start=Estimate())
    by_scope = {scope: priced(foreseen) for scope, foreseen in estimates.items()}
    return CostEstimate(extractor, model if extractor == "model" else None, priced(total), by_scope)


@asynccontextmanager
async def _existing_or_empty_store(resources: Resources) -> AsyncIterator[Store]:
    """Yield the store without migrating its tables. If it does not exist, yield an empty store in memory."""
    if resources.is_store_open:
        yield await resources.store()
        return
    store = Store(resources.settings.store.url)
    if store.is_missing():
        async with Store("sqlite://") as empty:
            await empty.migrate()
            yield empty
        return
    async with store:
        await store.check()
        yield store
