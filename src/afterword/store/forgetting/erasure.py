"""Forgetting for good: rows are erased, words blanked, and tombstones keep what is gone from coming back.

Everything happens in one transaction of the scope, and its revision grows, so that every cache sees it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import delete, func, or_, update
from sqlmodel import Session, col, select

from afterword import telemetry
from afterword.errors import NotFound
from afterword.facts.scopes import Scope
from afterword.privacy.tombstones import Key, Tombstone, TombstoneKind
from afterword.store import ledger, lookup, scope_rows
from afterword.store.database.engine import Store
from afterword.store.forgetting import targets
from afterword.store.forgetting.row_blanking import ForgottenWords, blank_session, blank_turns_before
from afterword.store.forgetting.text_columns import ERASABLE_TABLES, Clause, ErasableTable, SessionKeys
from afterword.store.forgetting.tombstone_rows import add_tombstones, ensure_store_key
from afterword.store.lookup import CHUNK
from afterword.store.scope_changes import new_stamp
from afterword.store.scope_rows import scope_row
from afterword.store.tables import (
    AssertionRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeRow,
    SessionRow,
    SpendingRow,
    TurnRow,
    WindowAssertionRow,
    WindowRow,
)
from afterword.telemetry import Stage

STRUCK = "forgotten"
"""What stands in the books in the place of a session that was forgotten."""
_TICK = timedelta(microseconds=1)
_SMALL_RUNS = ("application", "remember", "withdraw", "review", "clear", "import")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten, in counts: rows erased by table, texts blanked by table, tombstones laid.

    `is_clean` says whether the words are gone from the database's files too; None where that was not tried.
    """

    scope: Scope
    erased: Mapping[str, int] = field(default_factory=dict)
    blanked: Mapping[str, int] = field(default_factory=dict)
    tombstones: int = 0
    is_clean: bool | None = None


class _PreviewError(Exception):
    """Rolls a transaction back; never leaves this module."""


class Erasure:
    """The forgetting of something of one scope, within one transaction."""

    def __init__(self, transaction: Session, scope: Scope, scope_id: int, key: Key, at: datetime) -> None:
        self.db, self.scope, self.scope_id, self.key, self.at = transaction, scope, scope_id, key, at
        self.erased: Counter[str] = Counter()
        self.blanked: Counter[str] = Counter()
        self.stones: list[Tombstone] = []

    def forget_everything(self) -> None:
        """Forget all of the scope."""
        for one in self.conversations():
            self.stones.append(self._session_stone(one, self.at))
        self.stones.append(self._scope_stone(self.at))
        self._strike(col(SpendingRow.scope_id) == self.scope_id)
        for holding in ERASABLE_TABLES:
            if holding.of_scope and not holding.derived:
                self._erase(holding, holding.of_scope(self.scope_id))

    def forget_session(self, session_id: str) -> None:
        """Forget one session, and what a person has confirmed of it. Raises `NotFound` where there is none."""
        found = [one for one in self.conversations() if one.session_id == session_id]
        if not found:
            raise NotFound(f"no session {session_id!r} in {self.scope}; see `afterword facts` and `afterword status`")
        self.whole(found[0], self.at)

    def forget_statements(self, ids: Iterable[str]) -> None:
        """Forget what these statements say, wherever it is told in the scope."""
        gone = targets.with_equal_statements(self.db, self.scope_id, ids)
        if not gone:
            return
        for said in gone.values():
            mark = self.key.slot(self.scope, said.subject, said.attribute, said.value)
            self.stones.append(Tombstone(TombstoneKind.SLOT, self.key.id, "", mark, self.at))
        needles = ForgottenWords.of(self.db, list(gone.values()))
        self.erase_statements(list(gone))
        for one in self.conversations():
            laid = blank_session(self.db, self.scope, one, needles, self.key, self.at, self.blanked)
            self.stones += laid
        self._drop_emptied()

    def forget_before(self, moment: datetime) -> None:
        """Forget what was said before a moment."""
        until = moment - _TICK
        for one in self.conversations():
            first, last = self._said_between(one)
            if last is not None and last < moment:
                self.whole(one, until)
            elif first is not None and first < moment:
                self.stones.append(self._session_stone(one, until))
                blank_turns_before(self.db, self.scope, one, self.stones[-1], self.key, self.blanked)
        said = select(AssertionRow.id).where(AssertionRow.scope_id == self.scope_id, AssertionRow.said_at < moment)
        self.erase_statements(list(self.db.exec(said)))
        self._drop_emptied()
        self.stones.append(self._scope_stone(until))

    def erase_derived(self) -> None:
        """Erase what is derived; it is made again from what is left."""
        for holding in ERASABLE_TABLES:
            if holding.of_scope and holding.derived:
                self._erase(holding, holding.of_scope(self.scope_id))

    def whole(self, one: SessionKeys, until: datetime) -> None:
        """Forget a session, and what a person has confirmed of it; what is said in it after `until` is new."""
        self.stones.append(self._session_stone(one, until))
        confirmed = targets.confirmed_ids(self.db, self.scope_id, one.session_id)
        runs = select(RunRow.id).where(RunRow.scope_id == self.scope_id, RunRow.source == one.source)
        self._strike(
            or_(
                (col(SpendingRow.scope_id) == self.scope_id) & (col(SpendingRow.source) == one.source),
                col(SpendingRow.run_id).in_(runs),
            )
        )
        for holding in ERASABLE_TABLES:
            if holding.of_session and not holding.derived:
                self._erase(holding, holding.of_session(one))
        self.erase_statements(confirmed)
        self._drop_emptied()

    def erase_statements(self, ids: Sequence[str]) -> None:
        """Erase statements and what hangs on them, and lay no tombstone."""
        for start in range(0, len(ids), CHUNK):
            for holding in ERASABLE_TABLES:
                if holding.of_statements and not holding.derived:
                    self._erase(holding, holding.of_statements(ids[start : start + CHUNK]))

    def _drop_emptied(self) -> None:
        """Erase the runs of the application and of people that say and judge nothing any more."""
        saying = select(WindowAssertionRow.window_id)
        said = select(RunWindowRow.run_id).where(col(RunWindowRow.window_id).in_(saying))
        empty = select(RunRow.id, RunRow.source).where(
            RunRow.scope_id == self.scope_id,
            col(RunRow.purpose).in_(_SMALL_RUNS),
            col(RunRow.id).not_in(said),
            col(RunRow.id).not_in(select(RunVerdictRow.run_id)),
        )
        for run_id, source in list(self.db.exec(empty).all()):
            self._strike(col(SpendingRow.run_id) == run_id)
            windows = select(WindowRow.id).where(WindowRow.scope_id == self.scope_id, WindowRow.source == source)
            for holding in ERASABLE_TABLES:
                if holding.table is RunWindowRow:
                    self._erase(holding, col(RunWindowRow.run_id) == run_id)
                elif holding.table is WindowRow:
                    unread = col(WindowRow.id).in_(windows) & col(WindowRow.id).not_in(select(RunWindowRow.window_id))
                    self._erase(holding, unread)
                elif holding.table is RunRow:
                    self._erase(holding, col(RunRow.id) == run_id)

    def _strike(self, clause: Clause) -> None:
        """Keep what was paid, and forget for which session."""
        connection = self.db.connection()
        connection.execute(update(SpendingRow).where(clause).values(run_id=None, source=STRUCK))

    def _erase(self, holding: ErasableTable, clause: Clause) -> None:
        done = self.db.connection().execute(delete(holding.table).where(clause))
        if done.rowcount:
            self.erased[str(holding.table.__tablename__)] += done.rowcount

    def conversations(self) -> list[SessionKeys]:
        """Return the sessions of the scope, those too that only a proposal has read."""
        query = select(SessionRow.session_id, SessionRow.id).where(SessionRow.scope_id == self.scope_id)
        found = {name: key or 0 for name, key in self.db.exec(query.order_by(col(SessionRow.id))).all()}
        prefix = ledger.session_source("")
        runs = select(RunRow.source).where(RunRow.scope_id == self.scope_id, col(RunRow.source).startswith(prefix))
        for source in self.db.exec(runs.distinct().order_by(RunRow.source)):
            found.setdefault(source.removeprefix(prefix), 0)
        return [SessionKeys(self.scope_id, key, name) for name, key in found.items()]

    def _said_between(self, one: SessionKeys) -> tuple[datetime | None, datetime | None]:
        """Return when the first and the last turn were said; when it was last touched where there are no turns."""
        query = select(TurnRow.said_at).where(TurnRow.session_pk == one.key)
        said = [at for at in self.db.exec(query) if at is not None]
        if said:
            return min(said), max(said)
        if row := self.db.get(SessionRow, one.key):
            return row.updated_at, row.updated_at
        runs = select(RunRow.started_at).where(RunRow.scope_id == self.scope_id, RunRow.source == one.source)
        proposed = list(self.db.exec(runs))
        return min(proposed, default=None), max(proposed, default=None)

    def _session_stone(self, one: SessionKeys, until: datetime) -> Tombstone:
        query = select(func.count()).select_from(TurnRow).where(TurnRow.session_pk == one.key)
        query = query.where(or_(col(TurnRow.said_at).is_(None), col(TurnRow.said_at) <= until))
        place = self.key.place(self.scope, one.session_id)
        return Tombstone(TombstoneKind.SESSION, self.key.id, place, "", until, times=self.db.exec(query).one())

    def _scope_stone(self, until: datetime) -> Tombstone:
        return Tombstone(TombstoneKind.SCOPE, self.key.id, "", "", until)


ErasureWork = Callable[[Erasure], None]


@telemetry.staged(Stage.FORGET, "scope", "is_preview")
async def erase_in_scope(
    store: Store, scope: Scope, work: ErasureWork, *, at: datetime, is_preview: bool = False
) -> Receipt:
    """Let `work` forget something of a scope, and return what went; with `is_preview` nothing does.

    `at` is now: what is said later is new. Raises `NotFound` where there is no such scope, or nothing to forget in it.
    The words may still lie in the database's files: see `Store.compact`.
    """
    receipts: list[Receipt] = []

    def carried_out(transaction: Session) -> None:
        receipts.append(_carried_out(transaction, scope, work, at))
        if is_preview:
            raise _PreviewError

    with suppress(_PreviewError):
        await store.write(carried_out)
    telemetry.note(erased=sum(receipts[-1].erased.values()), tombstones=receipts[-1].tombstones)
    return receipts[-1]


def _carried_out(transaction: Session, scope: Scope, work: ErasureWork, at: datetime) -> Receipt:
    if scope_row(transaction, scope) is None:
        raise NotFound(f"nothing was ever kept for {scope}")
    scope_rows.lock_scope(transaction, scope)
    row = scope_row(transaction, scope)
    if row is None or row.id is None:
        raise NotFound(f"nothing was ever kept for {scope}")
    erasure = Erasure(transaction, scope, row.id, ensure_store_key(transaction), at)
    erasure.erase_derived()
    work(erasure)
    transaction.connection().execute(
        update(ScopeRow).where(col(ScopeRow.id) == row.id).values(revision=ScopeRow.revision + 1, stamp=new_stamp())
    )
    laid = add_tombstones(transaction, scope, dict.fromkeys(erasure.stones))
    transaction.expunge_all()  # rows were changed behind its back
    ledger.derive_facts(transaction, scope)
    erased = {name: count for name, count in erasure.erased.items() if name != "fact_assertions"}
    return Receipt(scope, erased, dict(erasure.blanked), laid)


def requested_ids(transaction: Session, scope: Scope) -> frozenset[str]:
    """Return the ids of the statements that somebody has asked to be gone, the requests among them."""
    known = lookup.read_knowledge(transaction, scope)
    return targets.ids_requested_to_forget(known.assertions, known.verdicts)


async def erase_requested(store: Store, scope: Scope, *, at: datetime, is_preview: bool = False) -> Receipt | None:
    """Carry out what people have asked to be forgotten in conversations; None where nobody has."""
    if not await store.read(lambda transaction: requested_ids(transaction, scope)):
        return None

    def work(erasure: Erasure) -> None:
        erasure.forget_statements(requested_ids(erasure.db, scope))

    return await erase_in_scope(store, scope, work, at=at, is_preview=is_preview)
