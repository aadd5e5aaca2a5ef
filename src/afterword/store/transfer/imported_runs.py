"""Imports the runs of an export: selects those that are new to this store, and inserts them as applied runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlmodel import Session, col, select

from afterword.errors import FileInvalid
from afterword.facts.scopes import Scope
from afterword.store import ledger, scope_rows
from afterword.store.database.statements import chunks, insert_numbered, insert_rows
from afterword.store.findings.finding_rows import findings_run_source
from afterword.store.forgetting.tombstone_rows import read_forgotten_content
from afterword.store.json_lines import Line
from afterword.store.rows import pack_transcript, unpack_transcript
from afterword.store.tables import (
    ImportedRunRow,
    MovedSourceRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    SessionRow,
    VerdictRow,
    WindowRow,
)

_SESSION, _FINDINGS = ledger.session_run_source(""), findings_run_source("")


class RunImport:
    """Imports the runs of one scope. `origin` is the id of the store that was exported.

    It reads what this store already has of the scope: the sources of its own runs, the ids of the runs that were
    imported from `origin` before, and its sessions and windows.
    """

    def __init__(self, transaction: Session, scope: Scope, scope_id: int, origin: str) -> None:
        self.scope = scope
        self.scope_id = scope_id
        self.origin = origin
        from_origin = select(ImportedRunRow.run_id).where(ImportedRunRow.origin == origin)
        sources = select(RunRow.source).where(RunRow.scope_id == scope_id, col(RunRow.id).not_in(from_origin))
        imported = select(ImportedRunRow.their_id).where(ImportedRunRow.origin == origin)
        sessions = select(SessionRow.session_id, SessionRow.id).where(SessionRow.scope_id == scope_id)
        windows = select(WindowRow.source, WindowRow.key, WindowRow.id).where(WindowRow.scope_id == scope_id)
        self.sources: frozenset[str] = frozenset(transaction.exec(sources.distinct()))
        self.imported: frozenset[int] = frozenset(transaction.exec(imported))
        self.sessions: dict[str, int] = {session_id: key for session_id, key in transaction.exec(sessions).all() if key}
        self.windows: dict[tuple[str, str], int] = {
            (source, key): id_ for source, key, id_ in transaction.exec(windows).all() if id_
        }

    def reason_to_skip(self, line: Line) -> str | None:
        """Return why a run is skipped, None if it is imported.

        "here": this store already has the run, or a run of its own for the same source. "forgotten": the session of the
        run was forgotten in this store.
        """
        if line["source"] in self.sources or line["id"] in self.imported:
            return "here"
        is_session = line["source"].startswith(_SESSION) and line.get("session_id") is not None
        session_id = line["session_id"] if is_session else line["source"].removeprefix(_FINDINGS)
        is_of_session = is_session or line["source"].startswith(_FINDINGS)
        return "forgotten" if is_of_session and session_id not in self.sessions else None

    def insert(self, transaction: Session, lines: Sequence[Line]) -> None:
        """Insert these runs with their status. They are applied after all runs that are applied here already."""
        revisions = self._new_revisions(transaction, lines)
        values = [self._run_values(transaction, line, revisions) for line in lines]
        numbered = list(zip(insert_numbered(transaction, RunRow, values), lines, strict=True))
        named_keys = [key for line in lines for key in line["verdicts"]]
        verdict_keys = stored_values(transaction, col(VerdictRow.key), named_keys, VerdictRow.scope_id == self.scope_id)
        windows, verdicts, imported = list[Line](), list[Line](), list[Line]()
        for run_id, line in numbered:
            imported.append({"origin": self.origin, "their_id": line["id"], "run_id": run_id})
            windows += self._window_rows(run_id, line)
            verdicts += [{"run_id": run_id, "verdict_key": key} for key in line["verdicts"] if key in verdict_keys]
        insert_rows(transaction, RunWindowRow, windows)
        insert_rows(transaction, RunVerdictRow, verdicts)
        insert_rows(transaction, ImportedRunRow, imported)
        self._insert_moved_sources(transaction, numbered)
        scope_rows.raise_revision(transaction, self.scope_id, by=len(revisions) + 1)

    def _new_revisions(self, transaction: Session, lines: Sequence[Line]) -> dict[int, int]:
        """Return the revisions at which these runs count as applied in this store, by their ids in the other store.

        The order of applying decides which run is live, the order of ids which run is the latest. Both are preserved.
        """
        applied = sorted(
            (line["applied_revision"], line["id"]) for line in lines if line.get("applied_revision") is not None
        )
        last = scope_rows.revision_of(transaction, self.scope)
        return {their_id: last + place for place, (_, their_id) in enumerate(applied, 1)}

    def _window_rows(self, run_id: int, line: Line) -> list[Line]:
        for window in line["windows"]:
            if window not in self.windows:
                raise FileInvalid(f"run {line['id']} names a window that is not in the file")
        return [
            {"run_id": run_id, "ordinal": ordinal, "window_id": self.windows[window]}
            for ordinal, window in enumerate(line["windows"])
        ]

    def _insert_moved_sources(self, transaction: Session, numbered: Sequence[tuple[int, Line]]) -> None:
        """Record the former scope and name of each source that the runs moved. Tombstones may be stored under these."""
        rows = [
            {
                "run_id": run_id,
                "source": source,
                "former_source": former_source,
                "former_scope_id": scope_rows.ensure_scope(transaction, Scope.parse(former)),
            }
            for run_id, line in numbered
            for former, former_source, source in line["moved"]
        ]
        insert_rows(transaction, MovedSourceRow, rows)

    def _run_values(self, transaction: Session, line: Line, revisions: Mapping[int, int]) -> Line:
        row = {name: value for name, value in line["columns"].items() if name != "id"}
        row |= {"scope_id": self.scope_id, "session_pk": self.sessions.get(line.get("session_id") or "")}
        row["caused_by"] = None  # this is the id of a run in the other store
        row["applied_revision"] = revisions.get(line["id"])
        if row["status"] in ledger.UNDECIDED:
            # No revision matches, so the run must be judged again before it is applied in this store.
            row["counts"] = {**row["counts"], "revision": -1}
        if row["transcript"] is not None:
            forgotten = read_forgotten_content(transaction, self.scope, line["source"].removeprefix(_SESSION))
            transcript = unpack_transcript(row["transcript"])
            row["transcript"] = pack_transcript(replace(transcript, turns=forgotten.blank_in_turns(transcript.turns)))
        return row


def stored_values(transaction: Session, column: Any, values: Sequence[str], *where: Any) -> set[str]:
    """Return which of the values occur in a column, in the rows that `where` selects."""
    query = select(column).where(*where)
    return {value for chunk in chunks(values) for value in transaction.exec(query.where(column.in_(chunk)))}
