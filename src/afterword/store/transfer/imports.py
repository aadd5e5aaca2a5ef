"""Imports the export of another store. An import can be repeated and resumed, and respects tombstones.

Each group of lines is written in one transaction. The runs of a scope are inserted last, in one transaction that also
derives its facts. Until then nothing of the scope has any effect. What this store already has is not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy.exc import StatementError
from sqlmodel import Session, SQLModel, col, select

from afterword.errors import FileInvalid
from afterword.facts.assertions import Assertion, digest
from afterword.facts.scopes import Scope
from afterword.privacy.blanking import FORGOTTEN, has_blanked_words
from afterword.privacy.tombstones import ForgottenContent
from afterword.store import ledger, lookup, scope_rows
from afterword.store.database.compaction import update_postgres_statistics
from afterword.store.database.engine import Store
from afterword.store.database.statements import chunks, insert_missing, insert_numbered, insert_rows
from afterword.store.findings.finding_rows import FindingRow, findings_run_source, is_finding_forgotten
from afterword.store.forgetting.hash_keys import add_imported_keys, read_hash_keys
from afterword.store.forgetting.seen_turn_rows import add_imported_seen_turns
from afterword.store.forgetting.tombstone_replay import (
    ChangedTurns,
    changed_turns,
    count_forbidden_rows,
    has_unchanged_quotes,
)
from afterword.store.forgetting.tombstone_rows import (
    add_imported_tombstones,
    read_forgotten_content,
    read_forgotten_content_by_session,
)
from afterword.store.json_lines import Line, damaged_file_error
from afterword.store.merging.text_forms import convert_stored_texts_to_nfc
from afterword.store.rows import assertion_of, derived_turn_values, pack_state, turn_of, unpack_state, verdict_key
from afterword.store.statement_ids import replacements_of_taken_ids
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RejectionRow,
    SessionRow,
    StateRow,
    TurnRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)
from afterword.store.transfer import export_lines
from afterword.store.transfer.imported_runs import RunImport, stored_values
from afterword.telemetry import Stage, staged

Work = Callable[[Session, Sequence[Line]], None]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The numbers of imported lines, of lines forgotten in this store, and of lines it already had, by kind.

    `still_here` counts the facts, assertions, findings, sessions and turns that the file lists as forgotten but this
    store still has. An import does not erase them; `replay_tombstones` with the same file does.
    """

    imported: Counter[str] = field(default_factory=Counter)
    forgotten: Counter[str] = field(default_factory=Counter)
    here_already: Counter[str] = field(default_factory=Counter)
    still_here: Counter[str] = field(default_factory=Counter)

    @property
    def is_repetition(self) -> bool:
        """Whether no session and no run was new. Then the import changed no fact."""
        return not (self.imported["sessions"] or self.imported["runs"])


@staged(Stage.IMPORT)
async def import_file(store: Store, path: Path) -> ImportResult:
    """Import a file of `export_scopes` and return how much was imported.

    Raises `FileInvalid` if the file is no export, is of another version, or is damaged or cut short. The lines before
    the damage remain imported. Importing the whole file later continues from there.
    """
    running = _Import(store, path, origin=str(export_lines.read_head(path).get("origin")))
    for kind, lines in export_lines.read_groups(path):
        await running.write(kind, [export_lines.mask_line(kind, line, store.privacy) for line in lines])
    await store.write(lambda transaction: update_postgres_statistics(transaction.connection()))
    running.result.still_here.update(
        await count_forbidden_rows(store, sorted(running.scopes_with_tombstones), at=datetime.now(UTC))
    )
    return running.result


class _Import:
    """The state of one import: the scope that is being imported, its blanked turns, and its runs.

    The runs are collected until the last line of the scope. `_group_counts` counts the lines that are being written.
    """

    def __init__(self, store: Store, path: Path, origin: str) -> None:
        self._store, self._path, self._origin = store, path, origin
        self._scope = Scope.user("nobody")
        self._is_in_scope = False
        self._changed_turns: ChangedTurns = {}
        self._runs: list[Line] = []
        self._ids_here: dict[str, str] = {}
        self._verdict_keys_here: dict[str, str] = {}
        self._forgotten_sessions: set[str] = set()
        self.scopes_with_tombstones: set[Scope] = set()
        """The scopes for which the file contains tombstones."""
        self.result, self._group_counts = ImportResult(), ImportResult()

    async def write(self, kind: str, lines: Sequence[Line]) -> None:
        """Write lines of one kind in one transaction."""
        if kind == "run":
            self._runs += lines
            return
        write_lines = self._writer_of(kind)

        def work(transaction: Session) -> None:
            self._group_counts = ImportResult()  # the transaction may be repeated, and only its last attempt counts
            write_lines(transaction, lines)

        try:
            await self._store.write(work)
        except (FileInvalid, StatementError, ValueError) as error:
            # Each line is valid by itself, but the lines contradict each other or what is stored.
            reason = str(error) if isinstance(error, FileInvalid) else type(error).__name__
            of_scope = f" of {self._scope}" if self._is_in_scope else ""
            raise damaged_file_error(self._path, f"the {kind} lines{of_scope}", reason) from None
        self.result.imported.update(self._group_counts.imported)
        self.result.forgotten.update(self._group_counts.forgotten)
        self.result.here_already.update(self._group_counts.here_already)

    def _writer_of(self, kind: str) -> Work:
        """Return the function that writes lines of a kind. Raises `FileInvalid` if no such line may stand here."""
        writers: Mapping[str, Work] = {
            "key": self._write_keys,
            "tombstone": self._write_tombstones,
            "seen": self._write_seen_turns,
            "scope": self._begin_scope,
            "session": self._write_sessions,
            "assertion": self._write_assertions,
            "window": self._write_windows,
            "verdict": self._write_verdicts,
            "end": self._end_scope,
        }
        if kind not in writers:
            raise FileInvalid(f"the export holds a line of an unknown kind ({kind}); upgrade afterword")
        if not self._is_in_scope and kind not in ("key", "tombstone", "seen", "scope"):
            raise damaged_file_error(self._path, f"line of kind {kind}", "it stands before the line of its scope")
        return writers[kind]

    def _write_keys(self, transaction: Session, lines: Sequence[Line]) -> None:
        add_imported_keys(transaction, [line["parsed"] for line in lines])

    def _write_tombstones(self, transaction: Session, lines: Sequence[Line]) -> None:
        tombstones = [line["parsed"] for line in lines]
        new = add_imported_tombstones(transaction, tombstones)
        self._group_counts.imported["tombstones"] += new
        self._group_counts.here_already["tombstones"] += len(tombstones) - new
        self.scopes_with_tombstones |= {scope for scope, _ in tombstones}

    def _write_seen_turns(self, transaction: Session, lines: Sequence[Line]) -> None:
        add_imported_seen_turns(transaction, [line["parsed"] for line in lines])

    def _begin_scope(self, transaction: Session, lines: Sequence[Line]) -> None:
        (line,) = lines
        self._scope, self._changed_turns, self._runs = Scope.parse(line["scope"]), {}, []
        self._ids_here, self._verdict_keys_here = {}, {}
        self._forgotten_sessions, self._is_in_scope = set(), True
        # The lock keeps other processes from forgetting anything of the scope during the transaction.
        scope_rows.lock_scope(transaction, self._scope)
        row = scope_rows.scope_row(transaction, self._scope)
        if row is not None and not row.revision:
            values = {name: line[name] for name in ("policy", "zone", "findings", "other_people")}
            values["paused_at"] = row.paused_at or line["paused_at"]
            scope_rows.change_scope(transaction, row.id, **values)

    def _write_sessions(self, transaction: Session, lines: Sequence[Line]) -> None:
        scope_id, names = scope_rows.lock_scope(transaction, self._scope), [line["session_id"] for line in lines]
        here = stored_values(transaction, col(SessionRow.session_id), names, SessionRow.scope_id == scope_id)
        forgotten = read_forgotten_content_by_session(transaction, self._scope, names, read_hash_keys(transaction))
        new: list[tuple[Line, Line | None, list[Line]]] = []
        for line in lines:
            state, remaining = self._state_and_turns_without_forgotten(line, forgotten.get(line["session_id"]))
            if remaining is None:
                self._group_counts.forgotten["sessions"] += 1
                self._forgotten_sessions.add(line["session_id"])
            elif line["session_id"] in here:
                self._group_counts.here_already["sessions"] += 1
            else:
                new.append((_new_row(line, scope_id), state, remaining))
        _insert_sessions(transaction, new)
        self._group_counts.imported["sessions"] += len(new)

    def _state_and_turns_without_forgotten(
        self, line: Line, forgotten: ForgottenContent | None
    ) -> tuple[Line | None, list[Line] | None]:
        """Return the state and the turns of a session with forgotten words blanked; no turns if all are forgotten.

        A session of which the other store has kept only placeholders is kept here too, with its runs.
        """
        turns, state = line["turns"], line["state"]
        if forgotten is None or not forgotten.touches_session:
            return state, turns
        before = tuple(turn_of(_as_row({**turn, "session_pk": 0})) for turn in turns)
        after = forgotten.blank_in_turns(before)
        self._changed_turns |= changed_turns(line["session_id"], before, after)
        is_blanked_here = forgotten.is_session_or_scope_forgotten or after != before
        if is_blanked_here and before and all(turn.text == FORGOTTEN for turn in after):
            return None, None
        if state:
            state["content"] = pack_state(forgotten.blank_in_state(unpack_state(state["content"]), before, after))
        return state, [{**turn, "text": new.text} for turn, new in zip(turns, after, strict=True)]

    def _write_assertions(self, transaction: Session, lines: Sequence[Line]) -> None:
        scope_id = scope_rows.lock_scope(transaction, self._scope)
        forgotten = read_forgotten_content(transaction, self._scope)
        self._ids_here |= replacements_of_taken_ids(transaction, self._scope, [line["id"] for line in lines])
        here = stored_values(transaction, col(AssertionRow.id), [self._id_here(line["id"]) for line in lines])
        rows, evidence_rows = [], []
        for line in lines:
            id_ = self._id_here(line["id"])
            row = {**line["columns"], "id": id_, "scope_id": scope_id}
            evidence = [{**piece, "assertion_id": id_} for piece in line["evidence"]]
            if self._is_assertion_forgotten(row, evidence, forgotten):
                self._group_counts.forgotten["assertions"] += 1
                continue
            rows.append(row)
            # A statement that this store already has keeps its evidence.
            evidence_rows += [] if id_ in here else evidence
        self._insert_missing(transaction, AssertionRow, rows, "assertions")
        insert_missing(transaction, EvidenceRow, evidence_rows)

    def _id_here(self, id_: str) -> str:
        """Return the id of a statement in this store. If another scope uses the id of the file, it is a new id."""
        return self._ids_here.get(id_, id_)

    def _verdict_key_here(self, line: Line, earlier: Assertion, later: Assertion) -> str:
        """Return the key of a verdict in this store. The file cannot choose it: another scope may have it."""
        key = verdict_key(self._scope, earlier, later, line["columns"]["judge"])
        return key if key == line["key"] else digest(key, line["key"], length=32)

    def _is_assertion_forgotten(self, row: Line, evidence: Sequence[Line], forgotten: ForgottenContent) -> bool:
        if forgotten.has_no_tombstones and not self._changed_turns and not has_blanked_words(row["value"]):
            return False
        said = assertion_of(_as_row(row), map(_as_row, evidence), self._scope)
        return forgotten.is_assertion_forgotten(said) or not has_unchanged_quotes(said, self._changed_turns)

    def _write_windows(self, transaction: Session, lines: Sequence[Line]) -> None:
        scope_id = scope_rows.lock_scope(transaction, self._scope)
        self._insert_missing(transaction, WindowRow, [_new_row(line, scope_id) for line in lines], "windows")
        numbered = list(zip(_read_window_ids(transaction, scope_id, lines), lines, strict=True))
        changed_sessions = {session_id for session_id, _ in self._changed_turns}
        forgotten = read_forgotten_content(transaction, self._scope)
        refused, findings = list[Line](), list[Line]()
        for window_id, line in numbered:
            session_id = line["source"].removeprefix(findings_run_source(""))
            if session_id != line["source"] and session_id in self._forgotten_sessions:
                continue
            # If something of a session was forgotten, its rejected candidates may contain the forgotten words.
            if line["source"].removeprefix(ledger.session_run_source("")) not in changed_sessions:
                refused += [{**row, "window_id": window_id} for row in line["rejections"]]
            kept = [row for row in line["findings"] if not self._is_finding_forgotten(row, forgotten)]
            findings += [{**row, "window_id": window_id, "scope_id": scope_id} for row in kept]
        self._write_assertions_of_windows(transaction, scope_id, numbered)
        insert_missing(transaction, RejectionRow, refused)
        insert_missing(transaction, FindingRow, findings)

    def _write_assertions_of_windows(
        self, transaction: Session, scope_id: int, numbered: Sequence[tuple[int | None, Line]]
    ) -> None:
        """Record which assertions were made of each window. The windows are given as their ids and lines."""
        pairs = [(window_id, self._id_here(id_)) for window_id, line in numbered for id_ in line["assertions"]]
        ids = [assertion_id for _, assertion_id in pairs]
        here = stored_values(transaction, col(AssertionRow.id), ids, AssertionRow.scope_id == scope_id)
        rows = [{"window_id": window_id, "assertion_id": id_} for window_id, id_ in pairs if id_ in here]
        insert_missing(transaction, WindowAssertionRow, rows)

    def _is_finding_forgotten(self, row: Line, forgotten: ForgottenContent) -> bool:
        """Return whether a finding was forgotten here, or a turn that it quotes no longer contains the quote."""
        if is_finding_forgotten(forgotten, row["statement"], row["said_at"]):
            return True
        changed = (
            (self._changed_turns.get((row["session_id"] or "", piece.get("turn") or 0)), piece["quote"])
            for piece in row["evidence"]
        )
        return any(text is not None and quote not in text for text, quote in changed)

    def _write_verdicts(self, transaction: Session, lines: Sequence[Line]) -> None:
        scope_id = scope_rows.lock_scope(transaction, self._scope)
        ends = [(self._id_here(line["earlier_id"]), self._id_here(line["later_id"])) for line in lines]
        # A file must not add verdicts on statements of other scopes.
        here = lookup.assertions_by_id(transaction, self._scope, [name for pair in ends for name in pair])
        keys = [line["key"] for line in lines]
        known = stored_values(transaction, col(VerdictRow.key), keys, VerdictRow.scope_id == scope_id)
        self._verdict_keys_here |= {key: key for key in known}
        rows = []
        for line, (earlier, later) in zip(lines, ends, strict=True):
            if line["key"] not in known and earlier in here and later in here:
                key = self._verdict_keys_here[line["key"]] = self._verdict_key_here(line, here[earlier], here[later])
                row = {**line["columns"], "key": key, "earlier_id": earlier, "later_id": later, "scope_id": scope_id}
                rows.append(row)
        self._insert_missing(transaction, VerdictRow, rows, "verdicts")
        self._group_counts.here_already["verdicts"] += len(known)

    def _insert_missing(self, transaction: Session, table: type[SQLModel], rows: Sequence[Line], kind: str) -> None:
        new = insert_missing(transaction, table, rows)
        self._group_counts.imported[kind] += new
        self._group_counts.here_already[kind] += len(rows) - new

    def _end_scope(self, transaction: Session, _: Sequence[Line]) -> None:
        """Insert the new runs of the scope, and derive its facts."""
        run_import = RunImport(transaction, self._scope, scope_rows.lock_scope(transaction, self._scope), self._origin)
        new = []
        for line in self._runs:
            reason_to_skip = run_import.reason_to_skip(line)
            if reason_to_skip is None:
                new.append({**line, "verdicts": [self._verdict_keys_here.get(key, key) for key in line["verdicts"]]})
            else:
                counts = self._group_counts
                (counts.forgotten if reason_to_skip == "forgotten" else counts.here_already)["runs"] += 1
        if new:
            convert_stored_texts_to_nfc(transaction.connection(), scope_rows.lock_scope(transaction, self._scope))
            transaction.expire_all()
            run_import.insert(transaction, new)
            ledger.derive_and_store_facts(transaction, self._scope)
        self._group_counts.imported["runs"] += len(new)


def _insert_sessions(transaction: Session, sessions: Sequence[tuple[Line, Line | None, Sequence[Line]]]) -> None:
    """Insert sessions. Each is given as the columns of its row, its saved state, and its turns."""
    keys = insert_numbered(transaction, SessionRow, [row for row, _, _ in sessions])
    turn_rows = [
        {**turn, "session_pk": key} for key, (_, _, turns) in zip(keys, sessions, strict=True) for turn in turns
    ]
    # Columns that are derived from the text of a turn are computed here and not taken from the file.
    insert_rows(transaction, TurnRow, [{**row, **derived_turn_values(turn_of(_as_row(row)))} for row in turn_rows])
    states = [{**state, "session_pk": key} for key, (_, state, _) in zip(keys, sessions, strict=True) if state]
    insert_rows(transaction, StateRow, states)


def _read_window_ids(transaction: Session, scope_id: int, lines: Sequence[Line]) -> list[int | None]:
    """Return the ids of the windows of these lines in this store."""
    of_scope = select(WindowRow).where(WindowRow.scope_id == scope_id)
    ids = {
        (row.source, row.key): row.id
        for keys in chunks([line["key"] for line in lines])
        for row in transaction.exec(of_scope.where(col(WindowRow.key).in_(keys)))
    }
    return [ids[line["source"], line["key"]] for line in lines]


def _as_row(values: Line) -> Any:
    return SimpleNamespace(**values)


def _new_row(line: Line, scope_id: int) -> Line:
    """Return the columns of a row to insert, without the number that it had in the other store."""
    return {name: value for name, value in line["columns"].items() if name != "id"} | {"scope_id": scope_id}
