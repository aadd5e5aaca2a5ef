"""The write side: runs are proposed, applied and undone; facts follow.

Nothing here deletes an assertion. A run that is undone is left out, and the facts are derived again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import delete, insert, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm.attributes import set_committed_value
from sqlmodel import SQLModel, col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from afterword.store.assertions import Assertion, Verdict
from afterword.store.errors import NotFound, ScopeMoved
from afterword.store.knowledge import Known
from afterword.store.lookup import CHUNK, assertions_by_id, known, known_after, plain, revision_of, scope_row
from afterword.store.rows import (
    Values,
    assertion_values,
    evidence_values,
    fact_values,
    member_values,
    packed,
    verdict_key,
    verdict_values,
)
from afterword.store.scopes import Scope
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    RejectionRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)
from afterword.store.timeline import Course, courses
from afterword.store.transcripts import Transcript


class RunStatus(StrEnum):
    """Where a run stands: proposed by a dry run, held for a person, or decided."""

    PROPOSED = "proposed"
    HELD = "held"
    APPLIED = "applied"
    UNDONE = "undone"
    REJECTED = "rejected"


WAITING = (RunStatus.PROPOSED, RunStatus.HELD)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one window gave: its assertions, and (reason, statement, detail) of each candidate that was refused."""

    key: str
    first_turn: int | None
    last_turn: int | None
    assertions: tuple[Assertion, ...]
    rejections: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a run would do: the readings of its source, in order, and the verdicts that it stands on.

    `source` names what is read: of the applied runs of one source only the latest counts. `purpose` says what kind of
    run it is (session, application, clear, review, consolidation). `revision` is the scope's revision that the verdicts
    were judged at.
    """

    scope: Scope
    source: str
    purpose: str
    extractor: str
    judge: str
    started_at: datetime
    revision: int
    readings: tuple[Reading, ...]
    verdicts: tuple[Verdict, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """All that it says."""
        return tuple(one for reading in self.readings for one in reading.assertions)


def source_of(session_id: str) -> str:
    """Return the source of the runs that read a session."""
    return f"session:{session_id}"


async def ensure_scope(db: AsyncSession, scope: Scope) -> int:
    """Return the key of the scope's row, which is made where it is missing."""
    row = await scope_row(db, scope)
    if row is None:
        values = {"tenant": scope.tenant, "kind": str(scope.kind), "name": scope.id, "revision": 0, "policy": "auto"}
        await _insert_missing(db, ScopeRow, [values])
        row = await scope_row(db, scope)
    if row is None or row.id is None:
        raise NotFound(f"the scope {scope} could not be made")
    return row.id


async def kept_readings(db: AsyncSession, scope: Scope, source: str) -> dict[str, tuple[Assertion, ...]]:
    """Return the windows of a source that were ever read: of each key its assertions."""
    row = await scope_row(db, scope)
    if row is None:
        return {}
    query = plain(WindowRow).where(WindowRow.scope_id == row.id, WindowRow.source == source)
    windows = {one.id: one.key for one in await db.exec(query)}
    if not windows:
        return {}
    ties = plain(WindowAssertionRow).where(col(WindowAssertionRow.window_id).in_(windows))
    found: dict[str, list[str]] = {key: [] for key in windows.values()}
    for tie in await db.exec(ties):
        found[windows[tie.window_id]].append(tie.assertion_id)
    said = await assertions_by_id(db, scope, [one for ids in found.values() for one in ids])
    return {key: tuple(said[one] for one in ids) for key, ids in found.items()}


async def last_keys(db: AsyncSession, scope: Scope, source: str) -> list[str] | None:
    """Return the keys of the windows that the last run over a source read, dry runs aside; None without a run."""
    row = await scope_row(db, scope)
    if row is None:
        return None
    runs = select(RunRow.id).where(
        RunRow.scope_id == row.id, RunRow.source == source, RunRow.status != RunStatus.PROPOSED
    )
    last = (await db.exec(runs.order_by(col(RunRow.id).desc()).limit(1))).first()
    if last is None:
        return None
    read = select(WindowRow.key).where(col(WindowRow.id) == col(RunWindowRow.window_id), RunWindowRow.run_id == last)
    return list(await db.exec(read.order_by(col(RunWindowRow.ordinal))))


async def propose(
    db: AsyncSession,
    proposal: Proposal,
    *,
    session_pk: int | None = None,
    is_held: bool = False,
    transcript: Transcript | None = None,
) -> int:
    """Store a proposal and return its run's id. Nothing of it counts before it is applied.

    With `is_held` it waits for a person. `transcript` is what a dry run has read, for when it is applied.

    `session_pk` is the key of the session that it reads, None where the application or a person speaks.
    """
    scope_id = await ensure_scope(db, proposal.scope)
    run = RunRow(
        scope_id=scope_id,
        session_pk=session_pk,
        source=proposal.source,
        purpose=proposal.purpose,
        status=RunStatus.HELD if is_held else RunStatus.PROPOSED,
        extractor=proposal.extractor,
        judge=proposal.judge,
        started_at=proposal.started_at,
        calls=proposal.calls,
        prompt_tokens=proposal.prompt_tokens,
        completion_tokens=proposal.completion_tokens,
        counts={**proposal.counts, "revision": proposal.revision},
        transcript=packed(transcript) if transcript else None,
    )
    db.add(run)
    await db.flush()
    if run.id is None:
        raise NotFound("the run got no id")
    db.info[RunRow] = run  # applied in the same transaction it need not be read: the session forgets what nobody holds
    windows = [await _keep_reading(db, scope_id, proposal, reading) for reading in proposal.readings]
    read = [{"run_id": run.id, "ordinal": ordinal, "window_id": key} for ordinal, key in enumerate(windows)]
    await _insert(db, RunWindowRow, read)
    await _keep_verdicts(db, scope_id, run.id, proposal)
    return run.id


async def apply(db: AsyncSession, scope: Scope, run_id: int, at: datetime) -> int:
    """Let a proposed run count; return the scope's new revision.

    Raises `ScopeMoved` where the scope has changed since the run was judged, and `NotFound` where there is no such
    proposal: then nothing is changed.
    """
    run = await _run(db, scope, run_id, *WAITING)
    if await revision_of(db, scope) != run.counts.get("revision", await revision_of(db, scope)):
        raise ScopeMoved(f"{scope} has changed since run {run_id} was judged; judge it again")
    before = await known(db, scope)
    revision = await _moved_on(db, run.scope_id)
    run.status, run.applied_at, run.applied_revision = RunStatus.APPLIED, at, revision
    db.add(run)
    await db.flush()
    await _follow(db, scope, run.scope_id, before, await _latest_of(db, run))
    return revision


async def undo(db: AsyncSession, scope: Scope, run_id: int, at: datetime) -> int:
    """Leave an applied run out, as if it had never been; return the scope's new revision.

    Raises `NotFound` where there is no such applied run.
    """
    run = await _run(db, scope, run_id, RunStatus.APPLIED)
    before, latest = await known(db, scope), await _latest_of(db, run)
    revision = await _moved_on(db, run.scope_id)
    run.status, run.undone_at = RunStatus.UNDONE, at
    db.add(run)
    await db.flush()
    await _follow(db, scope, run.scope_id, before, latest)
    return revision


async def _latest_of(db: AsyncSession, run: RunRow) -> list[int]:
    """Return the applied runs of a run's source of which one counts, or does when the other is undone."""
    applied = select(RunRow.id).where(
        RunRow.scope_id == run.scope_id, RunRow.source == run.source, RunRow.status == RunStatus.APPLIED
    )
    found = await db.exec(applied.order_by(col(RunRow.applied_revision).desc()).limit(2))
    return [one for one in found if one is not None]


async def _follow(db: AsyncSession, scope: Scope, scope_id: int, before: Known, runs: Sequence[int]) -> None:
    """Lay out what hangs together with what these runs say and judge, and write its facts."""
    after, ids = await known_after(db, scope, before, await revision_of(db, scope), runs)
    touched = after.touched(before, ids)
    kept: list[str] = []
    members = list(touched)
    for start in range(0, len(members), CHUNK):
        of = select(FactAssertionRow.fact_id).where(
            col(FactAssertionRow.assertion_id).in_(members[start : start + CHUNK])
        )
        kept += await db.exec(of.distinct())
    await _write(db, scope_id, list(dict.fromkeys(kept)), courses(*after.excerpt(touched)))


async def derive(db: AsyncSession, scope: Scope) -> None:
    """Lay out all that is live and write the facts that differ from the kept ones, whatever was held in memory."""
    row = await scope_row(db, scope)
    if row is None or row.id is None:
        return
    live = await known(db, scope, afresh=True)
    kept = await db.exec(select(FactRow.id).where(FactRow.scope_id == row.id))
    await _write(db, row.id, list(kept), courses(live.assertions, live.verdicts))


async def _write(db: AsyncSession, scope_id: int, kept: Sequence[str], laid_out: Sequence[Course]) -> None:
    """Let these courses take the place of the kept facts; rows that say the same are left as they are."""
    wanted = {course.id: course for course in laid_out}
    rows: dict[str, Values] = {}
    ties: dict[str, list[str]] = defaultdict(list)
    for start in range(0, len(kept), CHUNK):
        ids = kept[start : start + CHUNK]
        for row in await db.exec(plain(FactRow).where(col(FactRow.id).in_(ids))):
            rows[row.id] = dict(row._mapping)
        members = plain(FactAssertionRow).where(col(FactAssertionRow.fact_id).in_(ids))
        for tie in await db.exec(members.order_by(FactAssertionRow.ordinal)):
            ties[tie.fact_id].append(tie.assertion_id)
    same = {
        name
        for name, course in wanted.items()
        if (rows.get(name), ties[name]) == (fact_values(course, scope_id), [one.id for one in course.members])
    }
    gone = [name for name in rows if name not in same]
    await _rewrite(db, scope_id, gone, [course for name, course in wanted.items() if name not in same])


async def _rewrite(db: AsyncSession, scope_id: int, gone: list[str], new: list[Course]) -> None:
    for start in range(0, len(gone), CHUNK):
        ids = gone[start : start + CHUNK]
        await db.exec(delete(FactAssertionRow).where(col(FactAssertionRow.fact_id).in_(ids)))
        await db.exec(delete(FactRow).where(col(FactRow.id).in_(ids)))
    if new:
        await _insert(db, FactRow, [fact_values(course, scope_id) for course in new])
        await _insert(db, FactAssertionRow, [values for course in new for values in member_values(course)])


async def reject(db: AsyncSession, scope: Scope, run_id: int) -> None:
    """Set a proposal aside for good. Raises `NotFound` where there is no such proposal."""
    run = await _run(db, scope, run_id, *WAITING)
    run.status = RunStatus.REJECTED
    db.add(run)
    await db.flush()


async def _run(db: AsyncSession, scope: Scope, run_id: int, *statuses: str) -> RunRow:
    row = await scope_row(db, scope)
    run = await db.get(RunRow, run_id)
    if row is None or run is None or run.scope_id != row.id:
        raise NotFound(f"no run {run_id} in {scope}; see `afterword runs`")
    if run.status not in statuses:
        raise NotFound(f"run {run_id} of {scope} is {run.status}, not {' or '.join(statuses)}")
    return run


async def hold(db: AsyncSession, scope: Scope) -> None:
    """Let every other writer of the scope wait until this transaction ends."""
    await _moved_on(db, await ensure_scope(db, scope), by=0)


async def _moved_on(db: AsyncSession, scope_id: int, *, by: int = 1) -> int:
    """Count up the revision of a scope and return it. Writing it makes two writers of one scope queue up here, and not
    at their commits."""
    counted = update(ScopeRow).where(col(ScopeRow.id) == scope_id).values(revision=ScopeRow.revision + by)
    unwatched = counted.execution_options(synchronize_session=False)
    revision = (await db.exec(unwatched.returning(col(ScopeRow.revision)))).scalar_one()
    row = await db.get(ScopeRow, scope_id)
    if row is None:
        raise NotFound(f"scope {scope_id} is gone")
    set_committed_value(row, "revision", revision)
    return int(revision)


async def _keep_reading(db: AsyncSession, scope_id: int, proposal: Proposal, reading: Reading) -> int:
    of = {"scope_id": scope_id, "source": proposal.source, "key": reading.key}
    turns = {"first_turn": reading.first_turn, "last_turn": reading.last_turn}
    insert_new = (await _dialect(db)).insert(WindowRow).on_conflict_do_nothing()
    window_id = (await db.exec(insert_new.values(**of, **turns).returning(col(WindowRow.id)))).scalar()
    if window_id is None:
        kept = select(WindowRow.id).where(*(col(getattr(WindowRow, name)) == value for name, value in of.items()))
        return (await db.exec(kept)).one() or 0
    await keep_assertions(db, scope_id, reading.assertions, proposal.started_at)
    ties = [{"window_id": window_id, "assertion_id": one.id} for one in reading.assertions]
    await _insert_missing(db, WindowAssertionRow, ties)
    refused = [
        {"window_id": window_id, "ordinal": ordinal, "reason": reason, "statement": statement, "detail": detail}
        for ordinal, (reason, statement, detail) in enumerate(reading.rejections)
    ]
    await _insert(db, RejectionRow, refused)
    return int(window_id)


async def keep_assertions(
    db: AsyncSession, scope_id: int, assertions: Sequence[Assertion], recorded_at: datetime
) -> None:
    """Write the assertions that are not there yet."""
    await _insert_missing(db, AssertionRow, [assertion_values(one, scope_id, recorded_at) for one in assertions])
    await _insert_missing(db, EvidenceRow, [values for one in assertions for values in evidence_values(one)])


async def _keep_verdicts(db: AsyncSession, scope_id: int, run_id: int, proposal: Proposal) -> None:
    if not proposal.verdicts:
        return
    said = {one.id: one for reading in proposal.readings for one in reading.assertions}
    ends = {end for verdict in proposal.verdicts for end in (verdict.earlier_id, verdict.later_id)}
    said |= await assertions_by_id(db, proposal.scope, list(ends - said.keys()))
    rows: list[Values] = []
    for verdict in proposal.verdicts:
        key = verdict_key(proposal.scope, said[verdict.earlier_id], said[verdict.later_id], verdict.judge)
        rows.append(verdict_values(verdict, key, scope_id, proposal.started_at))
    await _insert_missing(db, VerdictRow, rows)
    await _insert_missing(db, RunVerdictRow, [{"run_id": run_id, "verdict_key": row["key"]} for row in rows])


async def _insert(db: AsyncSession, table: type[SQLModel], rows: list[Values]) -> None:
    if rows:
        await (await db.connection()).execute(insert(table), rows)


async def _insert_missing(db: AsyncSession, table: type[SQLModel], rows: list[Values]) -> None:
    """Insert the rows whose key is not there yet."""
    if not rows:
        return
    connection = await db.connection()
    await connection.execute((await _dialect(db)).insert(table).on_conflict_do_nothing(), rows)


async def _dialect(db: AsyncSession) -> Any:
    return postgresql if (await db.connection()).dialect.name == "postgresql" else sqlite
