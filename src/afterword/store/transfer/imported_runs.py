"""The runs of an import: which of them are new here, and how they come to count."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import update
from sqlmodel import Session, col, select

from afterword.facts.scopes import Scope
from afterword.store import ledger
from afterword.store.database.inserts import insert_numbered, insert_rows
from afterword.store.forgetting.tombstone_rows import read_forgotten
from afterword.store.lookup import CHUNK
from afterword.store.rows import pack_transcript, unpack_transcript
from afterword.store.scope_changes import new_stamp
from afterword.store.tables import (
    ImportedRunRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeRow,
    SessionRow,
    VerdictRow,
    WindowRow,
)
from afterword.store.transfer.json_rows import Line, parse_columns

RUNS_AT_ONCE = 1_000
_SESSION = ledger.session_source("")


@dataclass(frozen=True, slots=True)
class RunImport:
    """What is here of a scope before runs of another store come in: sources that were read here, runs that came
    before, sessions, windows."""

    scope: Scope
    scope_id: int
    origin: str
    sources: Collection[str]
    imported: Collection[int]
    sessions: Mapping[str, int]
    windows: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, transaction: Session, scope: Scope, scope_id: int, origin: str) -> RunImport:
        """Return what is here; `origin` is where the import comes from."""
        came = select(ImportedRunRow.run_id).where(ImportedRunRow.origin == origin)
        own = select(RunRow.source).where(RunRow.scope_id == scope_id, col(RunRow.id).not_in(came)).distinct()
        theirs = select(ImportedRunRow.their_id).where(ImportedRunRow.origin == origin)
        names = select(SessionRow.session_id, SessionRow.id).where(SessionRow.scope_id == scope_id)
        windows = select(WindowRow.source, WindowRow.key, WindowRow.id).where(WindowRow.scope_id == scope_id)
        return cls(
            scope,
            scope_id,
            origin,
            frozenset(transaction.exec(own)),
            frozenset(transaction.exec(theirs)),
            {name: key for name, key in transaction.exec(names).all() if key},
            {(source, key): window for source, key, window in transaction.exec(windows).all() if window},
        )

    def why_not(self, line: Line) -> str | None:
        """Return why a run does not come in: it or a reading of its source is `here`, or its session is `forgotten`.

        None where it comes in.
        """
        if line["source"] in self.sources or line["id"] in self.imported:
            return "here"
        is_session = line["source"].startswith(_SESSION) and line.get("session_id") is not None
        return "forgotten" if is_session and line["session_id"] not in self.sessions else None

    def take(self, transaction: Session, lines: Sequence[Line]) -> None:
        """Let these runs count here as they did there, after all that counts here already."""
        # Which run counts goes by the order of applying, which run is the last by the order of proposing: keep both.
        applied = sorted((one["applied_revision"], one["id"]) for one in lines if "applied_revision" in one)
        row = transaction.get(ScopeRow, self.scope_id)
        last = row.revision if row else 0
        revisions = {their_id: last + place for place, (_, their_id) in enumerate(applied, 1)}
        for start in range(0, len(lines), RUNS_AT_ONCE):
            self._take(transaction, lines[start : start + RUNS_AT_ONCE], revisions)
        moved = (
            update(ScopeRow)
            .where(col(ScopeRow.id) == self.scope_id)
            .values(revision=last + len(applied) + 1, stamp=new_stamp())
        )
        transaction.connection().execute(moved)
        transaction.expunge_all()  # the row was changed behind its back

    def _take(self, transaction: Session, lines: Sequence[Line], revisions: Mapping[int, int]) -> None:
        keys = insert_numbered(transaction, RunRow, [self._run(transaction, line, revisions) for line in lines])
        known = _known(transaction, [key for line in lines for key in line["verdicts"]])
        read, stands_on, imported = [], [], []
        for run_id, line in zip(keys, lines, strict=True):
            imported.append({"origin": self.origin, "their_id": line["id"], "run_id": run_id})
            for ordinal, (source, key) in enumerate(line["windows"]):
                read.append({"run_id": run_id, "ordinal": ordinal, "window_id": self.windows[source, key]})
            stands_on += [{"run_id": run_id, "verdict_key": key} for key in line["verdicts"] if key in known]
        insert_rows(transaction, RunWindowRow, read)
        insert_rows(transaction, RunVerdictRow, stands_on)
        insert_rows(transaction, ImportedRunRow, imported)

    def _run(self, transaction: Session, line: Line, revisions: Mapping[int, int]) -> Line:
        row = {name: value for name, value in parse_columns(RunRow, line).items() if name != "id"}
        row |= {"scope_id": self.scope_id, "session_pk": self.sessions.get(line.get("session_id") or "")}
        row["applied_revision"] = revisions.get(line["id"])
        if row["status"] in ledger.UNDECIDED:
            row["counts"] = {**row["counts"], "revision": -1}  # judged again when it is applied: this is another store
        if row["transcript"] is not None:
            gone = read_forgotten(transaction, self.scope, line["source"].removeprefix(_SESSION))
            read = unpack_transcript(row["transcript"])
            row["transcript"] = pack_transcript(replace(read, turns=gone.turns(read.turns)))
        return row


def _known(transaction: Session, keys: Sequence[str]) -> Collection[str]:
    """Return those of the verdicts that have come."""
    found: set[str] = set()
    for start in range(0, len(keys), CHUNK):
        found.update(
            transaction.exec(select(VerdictRow.key).where(col(VerdictRow.key).in_(keys[start : start + CHUNK])))
        )
    return found
