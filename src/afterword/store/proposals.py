"""Proposals of runs: windows with their assertions, and verdicts. How they are stored, and what a run has changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from uuid import uuid4

from sqlalchemy import bindparam
from sqlmodel import Session, col, select

from afterword.errors import NotFound
from afterword.facts.assertions import PERSON, Assertion, Verdict
from afterword.facts.fact import Fact, FactChange, fact_changes
from afterword.facts.findings import AgentFinding
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.subjects import current_names
from afterword.facts.transcripts import Transcript
from afterword.facts.validity.fact_history import facts_at
from afterword.store.database.statements import (
    fetch_rows,
    fetch_where_in,
    insert_missing,
    insert_missing_statement,
    insert_rows,
    select_columns,
)
from afterword.store.findings.finding_rows import read_findings_of_windows, store_findings
from afterword.store.lookup import assertion_ids_of_source, assertions_by_id, read_knowledge
from afterword.store.rows import (
    Values,
    assertion_values,
    evidence_values,
    unpack_transcript,
    verdict_key,
    verdict_of,
    verdict_values,
)
from afterword.store.runs import Run, read_run
from afterword.store.scope_rows import scope_key
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RejectionRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)

_MOMENT = timedelta(microseconds=1)
_WINDOWS = select_columns(WindowRow).where(
    col(WindowRow.scope_id) == bindparam("scope_id"), col(WindowRow.source) == bindparam("source")
)
_CONTENT = attrgetter("kind", "subject", "attribute", "value", "statement", "valid_from", "valid_to", "tags")


@dataclass(frozen=True, slots=True)
class WindowReading:
    """What an extractor returned for one window: assertions, and rejected candidates as (reason, statement, detail).

    A window that was read for findings of agents has `findings` and no assertions.
    """

    key: str
    first_turn: int | None
    last_turn: int | None
    assertions: tuple[Assertion, ...]
    rejections: tuple[tuple[str, str, str], ...] = ()
    findings: tuple[AgentFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """The content of a run: the readings of its source, in order, and its verdicts. It counts once it is applied.

    `source` names what was read, for example `session:ID`. Of the applied runs of one source only the latest counts.
    `purpose` is the kind of run (session, application, clear, review, consolidation). `revision` is the revision of the
    scope when the verdicts were judged.
    """

    scope: Scope
    source: str
    purpose: str
    extractor: str
    judge: str
    started_at: datetime
    revision: int
    readings: tuple[WindowReading, ...]
    verdicts: tuple[Verdict, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_entries(
        cls,
        scope: Scope,
        purpose: str,
        assertions: Iterable[Assertion],
        verdicts: Iterable[Verdict],
        *,
        extractor: str,
        judge: str,
        at: datetime,
        revision: int,
    ) -> Proposal:
        """Return a proposal with assertions that an application or a person entered outside of a conversation.

        Its source is a new name.
        """
        source = f"{purpose}:{uuid4().hex}"
        readings = (WindowReading(source, None, None, tuple(assertions)),)
        return cls(scope, source, purpose, extractor, judge, at, revision, readings, tuple(verdicts))

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """The assertions of all readings."""
        return tuple(said for reading in self.readings for said in reading.assertions)

    @property
    def content(self) -> tuple[object, ...]:
        """What the proposal says and replaces, without ids and times of its own."""
        replaced = {(verdict.earlier_id, verdict.relation) for verdict in self.verdicts}
        return self.purpose, list(map(_CONTENT, self.assertions)), replaced

    def is_same_as(self, transaction: Session, run: Run) -> bool:
        """Return whether a stored run says and replaces the same."""
        return run.purpose == self.purpose and read_proposal(transaction, run)[0].content == self.content

    @property
    def statements(self) -> tuple[str, ...]:
        """The sentences of all assertions and findings."""
        said = [assertion.statement for assertion in self.assertions]
        return (*said, *(finding.statement for reading in self.readings for finding in reading.findings))


def store_window(transaction: Session, scope_id: int, proposal: Proposal, reading: WindowReading) -> tuple[int, bool]:
    """Store a window with its assertions, findings and rejected candidates, unless it is stored already.

    Returns the key of its row, and whether the window and all of its assertions are new.
    """
    identity = {"scope_id": scope_id, "source": proposal.source, "key": reading.key}
    turns = {"first_turn": reading.first_turn, "last_turn": reading.last_turn}
    inserted = fetch_rows(
        transaction,
        insert_missing_statement(WindowRow, transaction.connection().dialect.name, returning="id"),
        {**identity, **turns},
    )
    if not inserted:
        return transaction.exec(select(WindowRow.id).filter_by(**identity)).one() or 0, False
    window_id = int(inserted[0].id)
    is_new = store_assertions(transaction, scope_id, reading.assertions, proposal.started_at)
    ties = [{"window_id": window_id, "assertion_id": said.id} for said in reading.assertions]
    insert_missing(transaction, WindowAssertionRow, ties)
    insert_rows(transaction, RejectionRow, _rejection_values(reading, window_id))
    store_findings(transaction, scope_id, window_id, reading.findings, proposal.started_at)
    return window_id, is_new


def _rejection_values(reading: WindowReading, window_id: int) -> list[Values]:
    """Return the columns of each rejected candidate."""
    return [
        {"window_id": window_id, "ordinal": ordinal, "reason": reason, "statement": statement, "detail": detail}
        for ordinal, (reason, statement, detail) in enumerate(reading.rejections)
    ]


def read_window_assertions(transaction: Session, scope: Scope, source: str) -> dict[str, tuple[Assertion, ...]]:
    """Return the assertions of every window of a source that was ever read, by the key of the window."""
    values = {"scope_id": scope_key(transaction, scope), "source": source}
    keys = {row.id: row.key for row in fetch_rows(transaction, _WINDOWS, values)}
    ids: dict[str, list[str]] = {key: [] for key in keys.values()}
    for tie in fetch_where_in(transaction, WindowAssertionRow, "window_id", keys):
        ids[keys[tie.window_id]].append(tie.assertion_id)
    assertions = assertions_by_id(transaction, scope, [name for names in ids.values() for name in names])
    return {key: tuple(assertions[name] for name in names) for key, names in ids.items()}


def read_window_findings(transaction: Session, scope: Scope, source: str) -> dict[str, tuple[AgentFinding, ...]]:
    """Return the findings of each window of a source that was ever read, by the key of the window."""
    scope_id = scope_key(transaction, scope)
    query = select(WindowRow.id, WindowRow.key).where(WindowRow.scope_id == scope_id, WindowRow.source == source)
    keys = {window_id: key for window_id, key in transaction.exec(query).all() if window_id is not None}
    return {key: tuple(read_findings_of_windows(transaction, scope, [window_id])) for window_id, key in keys.items()}


def store_assertions(
    transaction: Session, scope_id: int, assertions: Sequence[Assertion], recorded_at: datetime
) -> bool:
    """Store the assertions that are not stored yet; return whether all of them were new."""
    rows = [assertion_values(said, scope_id, recorded_at) for said in assertions]
    evidence = [values for said in assertions for values in evidence_values(said)]
    is_new = insert_missing(transaction, AssertionRow, rows) == len(rows)
    return insert_missing(transaction, EvidenceRow, evidence) == len(evidence) and is_new


def store_verdicts(transaction: Session, scope_id: int, run_id: int, proposal: Proposal) -> bool:
    """Store the verdicts of a proposal that are not stored yet, and link all of them to its run.

    Returns whether all of them were new.
    """
    assertions = {said.id: said for said in proposal.assertions}
    ids = {end for verdict in proposal.verdicts for end in (verdict.earlier_id, verdict.later_id)}
    assertions |= assertions_by_id(transaction, proposal.scope, list(ids - assertions.keys()))
    rows: list[Values] = []
    for verdict in proposal.verdicts:
        pair = assertions[verdict.earlier_id], assertions[verdict.later_id]
        # After an undo a person may decide differently about the same pair, so each decision has a key of its own.
        judge = f"{PERSON}: {proposal.source}: {verdict.relation}" if verdict.judge == PERSON else verdict.judge
        key = verdict_key(proposal.scope, *pair, judge)
        rows.append(verdict_values(verdict, key, scope_id, proposal.started_at))
    is_new = insert_missing(transaction, VerdictRow, rows) == len(rows)
    insert_missing(transaction, RunVerdictRow, [{"run_id": run_id, "verdict_key": row["key"]} for row in rows])
    return is_new


def dry_run_transcript(transaction: Session, run: Run) -> Transcript | None:
    """Return the transcript that a dry run has read, None for every other run."""
    row = transaction.get(RunRow, run.id)
    return unpack_transcript(row.transcript) if row and row.transcript else None


def read_proposal(transaction: Session, run: Run) -> tuple[Proposal, int | None]:
    """Return the proposal of a run, and the key of the session that it read."""
    row = transaction.get(RunRow, run.id)
    if row is None:
        raise NotFound(f"no run {run.id}")
    windows = select(WindowRow).join(RunWindowRow, col(RunWindowRow.window_id) == col(WindowRow.id))
    windows = windows.where(RunWindowRow.run_id == run.id).order_by(col(RunWindowRow.ordinal))
    keys = select(RunVerdictRow.verdict_key).where(RunVerdictRow.run_id == run.id)
    verdicts = transaction.exec(select(VerdictRow).where(col(VerdictRow.key).in_(keys)))
    proposal = Proposal(
        scope=run.scope,
        source=run.source,
        purpose=run.purpose,
        extractor=run.extractor,
        judge=run.judge,
        started_at=run.started_at,
        revision=run.counts.get("revision", 0),
        readings=tuple([_reading_of(transaction, run.scope, window) for window in transaction.exec(windows).all()]),
        verdicts=tuple(verdict_of(verdict) for verdict in verdicts),
        calls=run.calls,
        prompt_tokens=run.prompt_tokens,
        completion_tokens=run.completion_tokens,
        counts=run.counts,
    )
    return proposal, row.session_pk


def read_verdicts(
    transaction: Session, scope: Scope, pairs: Sequence[tuple[Assertion, Assertion]], judge: str
) -> dict[tuple[str, str], Verdict]:
    """Return the stored verdicts of this judge on these pairs, by the ids of the pair."""
    keys = {verdict_key(scope, earlier, later, judge): (earlier.id, later.id) for earlier, later in pairs}
    return {keys[row.key]: verdict_of(row) for row in fetch_where_in(transaction, VerdictRow, "key", keys)}


def _reading_of(transaction: Session, scope: Scope, window: WindowRow) -> WindowReading:
    ids = transaction.exec(select(WindowAssertionRow.assertion_id).where(WindowAssertionRow.window_id == window.id))
    refused = select(RejectionRow).where(RejectionRow.window_id == window.id).order_by(col(RejectionRow.ordinal))
    return WindowReading(
        window.key,
        window.first_turn,
        window.last_turn,
        tuple(assertions_by_id(transaction, scope, list(ids)).values()),
        tuple((row.reason, row.statement, row.detail) for row in transaction.exec(refused)),
        tuple(read_findings_of_windows(transaction, scope, [window.id or 0])),
    )


@dataclass(frozen=True, slots=True)
class KnowledgeChange:
    """What was known of a scope before and after a run was applied or undone.

    Only facts with an assertion among `affected_ids` may differ.
    """

    before: Knowledge
    after: Knowledge
    affected_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class RunEffect:
    """A run and the changes of facts that it made. A run that is held for a person has changed nothing yet.

    `facts` are the facts that the run concerns, as they are now, whether it changed them or not.
    """

    run: Run
    changes: tuple[FactChange, ...] = ()
    facts: tuple[Fact, ...] = ()


def effect_of(
    transaction: Session,
    run_id: int,
    change: KnowledgeChange,
    at: datetime,
    concerns: Callable[[Fact], bool] = lambda _: False,
) -> RunEffect:
    """Return a run with the facts that it changed or for which `concerns` is true, with their status at `at`."""
    before, after = (
        _facts_of_assertions(transaction, known, change.affected_ids, at) for known in (change.before, change.after)
    )
    return effect_between(transaction, run_id, before, after, concerns)


def effect_between(
    transaction: Session,
    run_id: int,
    before: Sequence[Fact],
    after: Sequence[Fact],
    concerns: Callable[[Fact], bool] = lambda _: False,
) -> RunEffect:
    """Return a run with the facts that differ between `before` and `after`, and those for which `concerns` is true."""
    changes = fact_changes(before, after)
    changed_ids = {changed.after.id for changed in changes if changed.after is not None}
    facts = tuple(fact for fact in after if fact.id in changed_ids or concerns(fact))
    return RunEffect(read_run(transaction, run_id), changes, facts)


def past_changes(transaction: Session, run: Run, hidden_ids: Collection[str]) -> tuple[FactChange, ...]:
    """Return which facts a run changed when it was applied, as they were known then. Empty if it was never applied.

    The facts are derived without the statements that have `hidden_ids`.
    """
    if run.applied_at is None:
        return ()
    before, after = (
        known.revised(known.revision, removed=[known.by_id[id_] for id_ in hidden_ids if id_ in known.by_id])
        for known in (read_knowledge(transaction, run.scope, at) for at in (run.applied_at - _MOMENT, run.applied_at))
    )
    ids = after.affected_ids(before, assertion_ids_of_source(transaction, run.scope, run.source))
    return fact_changes(
        *(_facts_under_current_names(transaction, known, ids, run.applied_at) for known in (before, after))
    )


def _facts_under_current_names(
    transaction: Session, known: Knowledge, ids: Collection[str], at: datetime
) -> list[Fact]:
    """Return the facts of these statements. Each has the name that its subject had at `at`."""
    names = current_names(facts_at(known.histories(known.effective_renaming_ids), at), at)
    return list(map(names.renamed_fact, _facts_of_assertions(transaction, known, ids, at)))


def _facts_of_assertions(transaction: Session, known: Knowledge, ids: Collection[str], at: datetime) -> list[Fact]:
    recorded_at = {row.id: row.recorded_at for row in fetch_where_in(transaction, AssertionRow, "id", ids)}
    histories = [
        replace(history, recorded_at=min(recorded_at[member.id] for member in history.members))
        for history in known.histories(ids)
    ]
    return facts_at(sorted(histories, key=lambda history: history.members[0].order), at)
