"""Forgets content for good: deletes rows, blanks words, and stores tombstones, so that the content cannot come back.

All changes to a scope happen in one transaction. The revision of the scope grows, so that every cache notices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, or_, update
from sqlmodel import Session, SQLModel, col, select

from afterword import telemetry
from afterword.errors import NotFound
from afterword.facts.findings import statement_key
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Turn
from afterword.privacy.tombstones import ForgottenContent, TombstoneKey
from afterword.store import ledger, lookup, scope_rows
from afterword.store.access.keys import revoke_keys_of_scope
from afterword.store.database.clock import check_not_ahead
from afterword.store.database.engine import Store
from afterword.store.database.statements import chunks
from afterword.store.findings.finding_rows import ERASED, FINDING, FindingRow, finding_rows_of_scope
from afterword.store.forgetting import forgotten_statements, hash_keys, served_copies, tombstone_rows
from afterword.store.forgetting.erasable_tables import ERASABLE_TABLES, Clause, SessionKeys
from afterword.store.forgetting.row_blanking import ForgottenWords, RowBlanking
from afterword.store.sessions import turns_by_session_pk
from afterword.store.tables import (
    AssertionRow,
    ImportedRunRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    SessionRow,
    SpendingRow,
    TurnRow,
    WindowAssertionRow,
    WindowRow,
)

FORGOTTEN_SOURCE = "forgotten"
"""The source that replaces the name of a forgotten session in the recorded costs."""
_TICK = timedelta(microseconds=1)
_FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)
_PURPOSES_WITHOUT_SESSION = ("application", "remember", "correct", "withdraw", "review", "clear", "import", "finding")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten: the numbers of deleted rows and of blanked texts, by table, and of new tombstones.

    The entry "facts" of `erased` counts the facts that people no longer see. Derived rows are not counted. `is_clean`
    tells whether the words are also gone from the database files (on PostgreSQL: from the tables, the indexes and the
    statistics, see `compaction.vacuum_postgres`); None if the files were not compacted.
    """

    scope: Scope
    erased: Mapping[str, int] = field(default_factory=dict)
    blanked: Mapping[str, int] = field(default_factory=dict)
    tombstones: int = 0
    is_clean: bool | None = None


class _PreviewError(Exception):
    """Raised to roll back the transaction of a preview, and caught in this module."""


class Erasure:
    """Forgets parts of one scope within one transaction."""

    def __init__(self, transaction: Session, scope: Scope, scope_id: int, key: TombstoneKey, at: datetime) -> None:
        self.transaction = transaction
        self.scope = scope
        self.scope_id = scope_id
        self._key, self._at = key, at
        self.erased: Counter[str] = Counter()
        self.blanked: Counter[str] = Counter()
        self.tombstones: tombstone_rows.NewTombstones = tombstone_rows.NewTombstones(transaction, scope, scope_id, key)
        self.hidden_facts: set[str] = set()
        self._erased_words = served_copies.ErasedWords()

    def forget_everything(self) -> None:
        """Forget everything in the scope, and revoke the API keys that give access only to this scope."""
        revoke_keys_of_scope(self.transaction, self.scope, self._at)
        for session in self.sessions():
            self.tombstones.add_session(session.session_id, self._turns_said_until(session, self._at), self._at)
        self.tombstones.add_scope(self._at)
        self._detach_spending(col(SpendingRow.scope_id) == self.scope_id)
        for table in ERASABLE_TABLES:
            if table.of_scope and not table.is_derived:
                self._delete_rows(table.table, table.of_scope(self.scope_id))

    def forget_session(self, session_id: str) -> None:
        """Forget a session, and the statements by which a person has confirmed what was said in it.

        Does nothing if the session is already forgotten. Raises `NotFound` if there never was such a session.
        """
        session = next((session for session in self.sessions() if session.session_id == session_id), None)
        if session is not None:
            self.erase_session(session, self._at)
        elif not tombstone_rows.has_session_tombstone(self.transaction, self.scope, self.scope_id, session_id):
            raise NotFound(f"no session {session_id!r} in {self.scope}; see `afterword sessions`")

    def carry_out_erase_requests(self, requests: Iterable[forgotten_statements.EraseRequest]) -> None:
        """Forget the statements and turns that these requests hide, except what was said after a request."""
        for request in requests:
            # Hidden facts are no longer derived, but the receipt counts them as forgotten facts.
            members = lookup.read_knowledge(self.transaction, self.scope).judged_pairs(request.ids).members
            self.hidden_facts |= {
                root for root, said in members.items() if request.ids.issuperset(each.id for each in said)
            }
            until = request.request.said_at
            if not request.finds_facts:
                # No fact holds the words, so whole turns are blanked. "My number" does not contain the number itself.
                meant = forgotten_statements.texts_of_meant_turns(self.transaction, self.scope_id, request.request)
                self._blank_sessions(ForgottenWords.of_texts(meant, ()), until)
            self.forget_statements(request.ids, until=until)

    def forget_statements(self, ids: Iterable[str], *, until: datetime | None = None) -> None:
        """Forget these statements, and blank their words everywhere in the scope.

        Statements with the same value are forgotten too; with `until`, only those that were said up to that instant.
        """
        rows = forgotten_statements.read_statements_to_forget(self.transaction, self.scope_id, ids, until)
        if not rows:
            return
        for row in rows.values():
            self.tombstones.add_slot(row.subject, row.attribute, row.value, until or self._at)
        words = ForgottenWords.of_statements(self.transaction, rows)
        # A waiting correction may contain the forgotten words, and has nothing left to correct. It gets no tombstone.
        corrections = forgotten_statements.held_correction_ids(self.transaction, self.scope_id, rows)
        self.erase_statements([*rows, *corrections])
        self._blank_sessions(words, until or self._at)
        self._erase_empty_runs()

    def forget_findings(self, keys: Collection[str], *, may_return: bool = False) -> None:
        """Forget the findings of agents with these statement keys, and blank their words everywhere in the scope.

        They are not stored again, or with `may_return` only if they are found again later.
        """
        rows = [
            row
            for row in finding_rows_of_scope(self.transaction, self.scope_id)
            if statement_key(row.statement) in keys
        ]
        quotes: dict[str, set[str]] = {}
        for row in rows:
            attribute, value = (FINDING, row.statement) if may_return else (ERASED, statement_key(row.statement))
            self.tombstones.add_slot(FINDING, attribute, value, self._at)
            quotes.setdefault(row.session_id or "", set()).update(piece["quote"] for piece in row.evidence)
        words = ForgottenWords.of_texts(quotes, [row.statement for row in rows])
        self.erase_findings(lambda row: statement_key(row.statement) in keys)
        self._blank_sessions(words, self._at)
        self._erase_empty_runs()

    def _blank_sessions(self, words: ForgottenWords, until: datetime) -> None:
        for session in self.sessions():
            blanking = self.blanking_of(session, until)
            blanking.blank_words(words)
            self.tombstones.add(blanking.tombstones)

    def blanking_of(
        self, session: SessionKeys, until: datetime | None = None, scope: Scope | None = None
    ) -> RowBlanking:
        """Return what blanks words in the rows of a session. The session is of this scope, unless `scope` is given."""
        return RowBlanking(self.transaction, scope or self.scope, session, self._key, until or self._at, self.blanked)

    def erase_findings(self, is_erased: Callable[[Any], bool]) -> None:
        """Delete the findings that `is_erased` selects, and note their words for `erase_served_copies`."""
        rows = [row for row in finding_rows_of_scope(self.transaction, self.scope_id) if is_erased(row)]
        self._erased_words.add_findings(rows)
        for ids in chunks([row.id for row in rows]):
            self._delete_rows(FindingRow, col(FindingRow.id).in_(ids))

    def forget_before(self, moment: datetime) -> None:
        """Forget everything that was said before an instant."""
        until = max(moment, _FIRST_INSTANT + _TICK) - _TICK
        for session in self.sessions():
            first, last = self._first_and_last_time(session)
            if last is not None and last < moment:
                self.erase_session(session, until)
            elif first is not None and first < moment:
                said_before = self._turns_said_until(session, until)
                tombstones = self.tombstones.add_session(session.session_id, said_before, until)
                self._erased_words.add_turns(said_before)
                forgotten = ForgottenContent(self.scope, session.session_id, [self._key], tombstones)
                turns = turns_by_session_pk(self.transaction, session.key)
                self.blanking_of(session).blank_turns(forgotten, turns, forgotten.blank_in_turns(turns))
        said = select(AssertionRow.id).where(AssertionRow.scope_id == self.scope_id, AssertionRow.said_at < moment)
        self.erase_statements(list(self.transaction.exec(said)))
        self.erase_findings(lambda row: row.said_at < moment)
        self._erase_empty_runs()
        self.tombstones.add_scope(until)

    def _turns_said_until(self, session: SessionKeys, until: datetime) -> list[Turn]:
        """Return the turns of a session that were said up to an instant, and those without a time."""
        turns = turns_by_session_pk(self.transaction, session.key)
        return [turn for turn in turns if turn.said_at is None or turn.said_at <= until]

    def erase_derived_rows(self) -> None:
        """Delete the rows that are derived from others. They are derived again from the remaining rows."""
        for table in ERASABLE_TABLES:
            if table.of_scope and table.is_derived:
                self.transaction.connection().execute(delete(table.table).where(table.of_scope(self.scope_id)))

    def erase_session(self, session: SessionKeys, until: datetime) -> None:
        """Forget a session, what it asks to forget, and what a person entered to confirm or withdraw its statements.

        If the session continues, what is said in it after `until` is stored again.
        """
        requests = forgotten_statements.read_erase_requests_with_facts(self.transaction, self.scope)
        self.carry_out_erase_requests(each for each in requests if each.request.session_id == session.session_id)
        turns = self._turns_said_until(session, until)
        self.tombstones.add_session(session.session_id, turns, until)
        self._erased_words.add_turns(turns)
        said = select(AssertionRow.id).where(
            AssertionRow.scope_id == self.scope_id, AssertionRow.session_id == session.session_id
        )
        self.erase_findings(lambda row: row.session_id == session.session_id)
        confirmed = forgotten_statements.confirmation_ids(self.transaction, self.scope_id, session.session_id)
        self.erase_statements([*self.transaction.exec(said), *confirmed])
        runs = select(RunRow.id).where(RunRow.scope_id == self.scope_id, col(RunRow.source).in_(session.sources))
        is_of_source = (col(SpendingRow.scope_id) == self.scope_id) & col(SpendingRow.source).in_(session.sources)
        self._detach_spending(or_(is_of_source, col(SpendingRow.run_id).in_(runs)))
        for table in ERASABLE_TABLES:
            if table.of_session and not table.is_derived:
                self._delete_rows(table.table, table.of_session(session))
        self._erase_empty_runs()

    def erase_statements(self, ids: Sequence[str]) -> None:
        """Delete statements, the rows that refer to them, and what a person entered to withdraw nothing but them."""
        # A withdrawal in force gets a tombstone, so that it keeps its effect on sessions that are read later.
        withdrawals = forgotten_statements.entered_withdrawals(self.transaction, self.scope_id, ids)
        for row in (withdrawal for withdrawal, is_in_force in withdrawals if is_in_force):
            self.tombstones.add_slot(row.subject, row.attribute, row.value, row.said_at)
        ids = list(dict.fromkeys((*ids, *(row.id for row, _ in withdrawals))))
        self._erased_words.add_statements(self.transaction, ids)
        for chunk in chunks(ids):
            for table in ERASABLE_TABLES:
                if table.of_statements and not table.is_derived:
                    self._delete_rows(table.table, table.of_statements(chunk))

    def erase_served_copies(self) -> None:
        """Erase the erased words where agents were served or repeated them, in all remaining sessions and scopes."""
        if not (self.erased or self.blanked or self.tombstones):
            return
        self.transaction.expunge_all()  # its objects do not reflect the changed rows
        words = self._erased_words.build_search(self.transaction, self.scope_id)
        # A finding that repeats erased words is deleted as a whole.
        self.erase_findings(lambda row: served_copies.finding_repeats_words(row, words))
        self._erase_empty_runs()
        for session in self.sessions():
            blanking = self.blanking_of(session)
            blanking.blank_spans_sparing_people(served_copies.block_and_word_finder(words=words))
            self.tombstones.add(blanking.tombstones)
        # The agents of other scopes were served blocks of this one, too.
        for owner, session in served_copies.sessions_elsewhere_with_blocks(self.transaction, self.scope, self.scope_id):
            blanking = self.blanking_of(session, scope=owner)
            blanking.blank_spans_sparing_people(served_copies.block_and_word_finder(self.scope))
            tombstone_rows.add_tombstones(self.transaction, owner, blanking.tombstones)

    def sessions(self) -> list[SessionKeys]:
        """Return the sessions of the scope, including those that only a dry run has read."""
        query = select(SessionRow.session_id, SessionRow.id).where(SessionRow.scope_id == self.scope_id)
        keys = {name: key or 0 for name, key in self.transaction.exec(query.order_by(col(SessionRow.id))).all()}
        prefix = ledger.session_run_source("")
        sources = select(RunRow.source).where(RunRow.scope_id == self.scope_id, col(RunRow.source).startswith(prefix))
        for source in self.transaction.exec(sources.distinct().order_by(RunRow.source)):
            keys.setdefault(source.removeprefix(prefix), 0)
        return [SessionKeys(self.scope_id, key, name) for name, key in keys.items()]

    def _erase_empty_runs(self) -> None:
        """Delete the runs that belong to no session (entries and corrections) and have no content left."""
        runs_with_assertions = select(RunWindowRow.run_id).where(
            or_(
                col(RunWindowRow.window_id).in_(select(WindowAssertionRow.window_id)),
                col(RunWindowRow.window_id).in_(select(FindingRow.window_id)),
            )
        )
        empty_runs = select(RunRow.id, RunRow.source).where(
            RunRow.scope_id == self.scope_id,
            col(RunRow.purpose).in_(_PURPOSES_WITHOUT_SESSION),
            col(RunRow.id).not_in(runs_with_assertions),
            col(RunRow.id).not_in(select(RunVerdictRow.run_id)),
        )
        for run_id, source in self.transaction.exec(empty_runs).all():
            self._erase_empty_run(run_id, source)

    def _erase_empty_run(self, run_id: int | None, source: str) -> None:
        self._detach_spending(col(SpendingRow.run_id) == run_id)
        windows = select(WindowRow.id).where(WindowRow.scope_id == self.scope_id, WindowRow.source == source)
        is_unread = col(WindowRow.id).not_in(select(RunWindowRow.window_id))
        self._delete_rows(RunWindowRow, col(RunWindowRow.run_id) == run_id)
        self._delete_rows(WindowRow, col(WindowRow.id).in_(windows) & is_unread)
        self._delete_rows(ImportedRunRow, col(ImportedRunRow.run_id) == run_id)
        self._delete_rows(RunRow, col(RunRow.id) == run_id)

    def _detach_spending(self, clause: Clause) -> None:
        """Keep the recorded costs that `clause` selects, but remove the names of the sessions that they were for."""
        statement = update(SpendingRow).where(clause).values(run_id=None, source=FORGOTTEN_SOURCE)
        self.transaction.connection().execute(statement)

    def _delete_rows(self, table: type[SQLModel], clause: Clause) -> None:
        erased = self.transaction.connection().execute(delete(table).where(clause)).rowcount
        if erased:
            self.erased[str(table.__tablename__)] += erased

    def _first_and_last_time(self, session: SessionKeys) -> tuple[datetime | None, datetime | None]:
        """Return when the first and the last turn of a session were said.

        If no turn has a time, both are the time when the session was last updated, or when its runs were started.
        """
        query = select(TurnRow.said_at).where(TurnRow.session_pk == session.key)
        moments = [said_at for said_at in self.transaction.exec(query) if said_at is not None]
        if not moments and (row := self.transaction.get(SessionRow, session.key)):
            moments = [row.updated_at]
        if not moments:
            runs = select(RunRow.started_at).where(RunRow.scope_id == self.scope_id, RunRow.source == session.source)
            moments = list(self.transaction.exec(runs))
        return min(moments, default=None), max(moments, default=None)


ErasureWork = Callable[[Erasure], None]


@telemetry.staged(telemetry.Stage.FORGET, "scope", "is_preview")
async def erase_in_scope(
    store: Store, scope: Scope, work: ErasureWork, *, at: datetime, is_preview: bool = False
) -> Receipt:
    """Let `work` forget parts of a scope, and return a receipt. With `is_preview`, everything is rolled back.

    `at` is the present instant. What is said after it is not forgotten. The words may remain in the database files
    until `Store.compact`. Raises `NotFound` if the scope, or what `work` looks for, does not exist, and `ClockAhead` if
    `at` is far ahead of the database's clock.
    """
    receipts: list[Receipt] = []

    def erase(transaction: Session) -> None:
        receipts.append(_erase(transaction, scope, work, at))
        if is_preview:
            raise _PreviewError

    with suppress(_PreviewError):
        await store.write(erase)
        store.drop_caches_of(scope)
    telemetry.note(erased=sum(receipts[-1].erased.values()), tombstones=receipts[-1].tombstones)
    return receipts[-1]


def _erase(transaction: Session, scope: Scope, work: ErasureWork, at: datetime) -> Receipt:
    if not scope_rows.scope_key(transaction, scope):
        raise NotFound(f"nothing was ever stored for {scope}")
    check_not_ahead(transaction, at)
    scope_id = scope_rows.lock_scope(transaction, scope)
    erasure = Erasure(transaction, scope, scope_id, hash_keys.ensure_store_key(transaction), at)
    before = forgotten_statements.fact_members(transaction, scope_id)
    erasure.erase_derived_rows()
    work(erasure)
    erasure.erase_served_copies()
    scope_rows.raise_revision(transaction, scope_id)
    added = erasure.tombstones.store()
    transaction.expunge_all()  # its objects do not reflect the changed rows
    ledger.derive_and_store_facts(transaction, scope)
    remaining = set[str]().union(*forgotten_statements.fact_members(transaction, scope_id).values())
    erased = dict(erasure.erased)
    facts_gone = sum(remaining.isdisjoint(members) for members in before.values()) + len(erasure.hidden_facts)
    if facts_gone:
        erased["facts"] = facts_gone
    return Receipt(scope, erased, dict(erasure.blanked), added)


async def forget_requested_statements(
    store: Store, scope: Scope, *, at: datetime, hidden_since_before: datetime | None = None, is_preview: bool = False
) -> Receipt | None:
    """Forget what people have asked to be forgotten, and return a receipt; None if there are no such requests.

    With `hidden_since_before`, only requests that have hidden facts since that instant or earlier are carried out. Such
    requests need no approval. A request to erase everything is not carried out here, see `Erasure.forget_everything`.
    """

    def requests(transaction: Session) -> list[forgotten_statements.EraseRequest]:
        if hidden_since_before is not None:
            return forgotten_statements.read_erase_requests_with_facts(transaction, scope, hidden_since_before)
        waiting = forgotten_statements.read_erase_requests_in_force(transaction, scope)
        return [request for request in waiting if not request.is_everything]

    if not await store.read(requests):
        return None

    def work(erasure: Erasure) -> None:
        erasure.carry_out_erase_requests(requests(erasure.transaction))

    return await erase_in_scope(store, scope, work, at=at, is_preview=is_preview)
