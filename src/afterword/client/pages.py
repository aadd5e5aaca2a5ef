"""Pages of facts, sessions, runs and audit entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime

from sqlmodel import Session

from afterword.client.arguments import (
    Several,
    choices,
    fact_cursor,
    first_page,
    number_after,
    one_more,
    page,
    run_cursor,
)
from afterword.client.results import FactPage, Omission, OmittedFact, RunPage, RunRecord, SessionPage
from afterword.client.store_results import AuditPage
from afterword.errors import ArgumentInvalid
from afterword.facts.fact import Fact
from afterword.facts.fact_filter import FactFilter, FactOrder
from afterword.facts.scopes import Scope
from afterword.store import costs, runs, sessions
from afterword.store.access import audit
from afterword.store.costs import Spending
from afterword.store.database.statements import RowRange
from afterword.store.ledger import RunStatus
from afterword.store.reading.fact_listing import FactListing
from afterword.store.reading.views import View
from afterword.store.runs import Run
from afterword.store.sessions import Progress


def fact_page(
    facts: Iterable[Fact], wanted: FactFilter, order: FactOrder, *, limit: int | None, after: str | None, offset: int
) -> FactPage:
    """Return a page of the facts of a scope, which come in the order of saying. Raises `ArgumentInvalid`."""
    fitting = [fact for fact in facts if wanted.fits(fact)]
    chosen = order.sorted(filter(wanted.has_status, fitting))
    shown, cursor = page(chosen[offset:], fact_cursor, limit=limit, after=after)
    return FactPage(shown, len(chosen), len(fitting) - len(chosen), cursor if order is FactOrder.SAID else None)


def fact_page_of_view(
    view: View, wanted: FactFilter, order: FactOrder, *, limit: int, after: str | None, offset: int
) -> FactPage:
    """Return the page that `fact_page` returns of the same facts. It builds no other facts than those of the page."""
    lists = view.lists
    places, others = lists.chosen(wanted, order)
    shown, cursor = page(places[offset:], lambda place: fact_cursor(lists.stored(place)), limit=limit, after=after)
    facts = tuple(map(view.fact, map(lists.stored, shown)))
    return FactPage(facts, len(places), others, cursor if order is FactOrder.SAID else None)


def listed_page(
    listing: FactListing,
    transaction: Session,
    wanted: FactFilter,
    order: FactOrder,
    *,
    at: datetime,
    limit: int,
    offset: int,
) -> FactPage | None:
    """Return the page that `fact_page` returns, of a scope that is not loaded; None where it must be loaded first."""
    listed = listing.page(transaction, wanted, order, at=at, limit=limit, offset=offset)
    if listed is None:
        return None
    facts, total, others = listed
    return FactPage(tuple(facts), total, others, None)


def omissions(
    views: Sequence[View], chosen_ids: Collection[str], most: int | None
) -> tuple[tuple[OmittedFact, ...], int]:
    """Return at most so many of the facts that an agent is not told, and how many there are in all."""
    places = [(view, place, Omission.NO_ROOM) for view in views for place in view.lists.served_but(chosen_ids)]
    places += [(view, place, Omission.UNCLEAR_SUBJECT) for view in views for place in view.lists.pending()]
    shown = places if most is None else places[:most]
    left_out = (OmittedFact(view.fact(view.lists.stored(place)), reason) for view, place, reason in shown)
    return tuple(left_out), len(places)


def session_page(
    scope: Scope | None,
    session_id: str | None,
    state: Several | None,
    limit: int | None,
    after: str | None,
    *,
    tenant: str | None = None,
    newest_first: bool = False,
    offset: int = 0,
) -> Callable[[Session], SessionPage]:
    """Return what reads a page of the sessions in these states. Raises `ArgumentInvalid`."""
    states = None if state is None else choices(Progress, state, "state")
    rows = _row_range(limit, after, offset, newest_first)

    def work(transaction: Session) -> SessionPage:
        saved, total = sessions.list_sessions(
            transaction, scope=scope, tenant=tenant, session_id=session_id, states=states, rows=rows
        )
        shown, cursor = first_page(saved, lambda session: run_cursor(session.key), limit=limit)
        return SessionPage(shown, total, cursor)

    return work


def run_page(
    scope: Scope | None,
    status: Several | None,
    limit: int | None,
    after: str | None,
    *,
    newest_first: bool = False,
    offset: int = 0,
) -> Callable[[Session], RunPage]:
    """Return what reads a page of the runs with these statuses, of a scope or of all. Raises `ArgumentInvalid`."""
    statuses = () if status is None else tuple(choices(RunStatus, status, "status"))
    rows = _row_range(limit, after, offset, newest_first)

    def work(transaction: Session) -> RunPage:
        stored, total = runs.read_run_range(transaction, scope, statuses=statuses, rows=rows)
        shown, cursor = first_page(stored, lambda run: run_cursor(run.id), limit=limit)
        spent = costs.spending_of_runs(transaction, [run.id for run in shown])
        actors = audit.actors_of_runs(transaction, [run.id for run in shown])
        records = (RunRecord(run, _run_cost(run, spent.get(run.id)), actors.get(run.id)) for run in shown)
        return RunPage(tuple(records), total, cursor)

    return work


def _run_cost(run: Run, spent: Spending | None) -> Spending:
    """Return what a run cost; of a run from before costs were recorded its tokens, without a price."""
    return spent or Spending(run.calls, run.prompt_tokens, 0, run.completion_tokens, unpriced_calls=run.calls)


def _row_range(limit: int | None, after: str | None, offset: int, newest_first: bool) -> RowRange:
    """Return the rows of a page and one more. Raises `ArgumentInvalid`."""
    if offset < 0:
        raise ArgumentInvalid(f"offset={offset} is below 0")
    return RowRange(one_more(limit), number_after(after), offset, newest_first)


def audit_page(
    tenant: str | None, scope: Scope | None, key_id: str | None, limit: int | None, after: str | None
) -> Callable[[Session], AuditPage]:
    """Return what reads a page of the audit entries. Raises `ArgumentInvalid`."""
    most, before = one_more(limit), number_after(after)

    def work(transaction: Session) -> AuditPage:
        entries = audit.read_audit(transaction, tenant=tenant, scope=scope, key_id=key_id, most=most, before=before)
        return AuditPage(*first_page(entries, lambda entry: run_cursor(entry.id), limit=limit))

    return work
