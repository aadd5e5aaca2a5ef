"""Taking in what another store has exported: idempotent, resumable, and never against a tombstone.

Lines are written some at a time, each group in one transaction. Nothing of a scope counts before all of it has come:
its runs come in last, in one transaction, and the facts are derived from them. What is here already stays as it is.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlmodel import Session, col, select

from afterword import telemetry
from afterword.errors import FileInvalid
from afterword.facts.assertions import Authority, Cue, EvidenceKind, Kind, SpeechAct
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript
from afterword.privacy.blanking import FORGOTTEN, has_blanked_words
from afterword.privacy.tombstones import Forgotten
from afterword.store import ledger, scope_rows
from afterword.store.database.compaction import analyze
from afterword.store.database.engine import Store
from afterword.store.database.inserts import insert_missing, insert_numbered, insert_rows
from afterword.store.forgetting.tombstone_replay import ChangedTurns, has_unchanged_quotes
from afterword.store.forgetting.tombstone_rows import (
    add_imported_key,
    add_tombstones,
    parse_tombstone,
    read_forgotten,
    read_forgotten_by_session,
)
from afterword.store.lookup import CHUNK
from afterword.store.rows import assertion_of, turn_of
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RejectionRow,
    ScopeRow,
    SessionRow,
    StateRow,
    TurnRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)
from afterword.store.transfer import export_file
from afterword.store.transfer.imported_runs import RunImport
from afterword.store.transfer.json_rows import Line, parse_columns
from afterword.telemetry import Stage

Work = Callable[[Session, Sequence[Line]], None]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What came in, by kind of line; what was held back because it was forgotten here; and what was here already."""

    taken: Counter[str] = field(default_factory=Counter)
    forgotten: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)


@telemetry.staged(Stage.IMPORT)
async def import_file(store: Store, path: Path) -> ImportResult:
    """Import a file of `transfer.export`, and return what came of it.

    Raises `FileInvalid` where it is no such file, is of a newer version, or is damaged or cut short: what came before
    the damage is kept, and importing a whole file goes on from there.
    """
    arrival = _Arrival(store, origin=str(export_file.read_head(path).get("origin")))
    for kind, lines in export_file.read_groups(path):
        await arrival.take(kind, lines)
    await store.write(lambda transaction: analyze(transaction.connection()))
    return arrival.arrived


class _Arrival:
    """One import: the scope that is coming in, what of its sessions is blanked, and its runs until all has come."""

    def __init__(self, store: Store, origin: str) -> None:
        self._store, self._origin = store, origin
        self._scope = Scope.user("nobody")
        self._covers: ChangedTurns = {}
        self._runs: list[Line] = []
        self.arrived = ImportResult()

    async def take(self, kind: str, lines: Sequence[Line]) -> None:
        """Take in lines of one kind, in one transaction."""
        if kind == "run":
            self._runs += lines
            return
        works: Mapping[str, Work] = {
            "key": self._keys,
            "tombstone": self._tombstones,
            "scope": self._begin_scope,
            "session": self._sessions,
            "assertion": self._assertions,
            "window": self._windows,
            "verdict": self._verdicts,
            "end": self._end_scope,
        }
        if kind not in works:
            raise FileInvalid(f"the export holds a line of an unknown kind ({kind}); upgrade afterword")

        def work(transaction: Session) -> ImportResult:
            before, self.arrived = self.arrived, ImportResult()
            try:
                works[kind](transaction, lines)
                return self.arrived
            finally:
                self.arrived = before

        try:
            done = await self._store.write(work)
        except KeyError as error:
            raise FileInvalid(f"a line of kind {kind} tells no {error.args[0]!r}; the file is damaged") from None
        self.arrived.taken.update(done.taken)
        self.arrived.forgotten.update(done.forgotten)
        self.arrived.kept.update(done.kept)

    def _keys(self, transaction: Session, lines: Sequence[Line]) -> None:
        for line in lines:
            add_imported_key(transaction, line)

    def _tombstones(self, transaction: Session, lines: Sequence[Line]) -> None:
        stones = [parse_tombstone(line) for line in lines]
        for scope in {scope for scope, _ in stones}:
            add_tombstones(transaction, scope, [stone for of, stone in stones if of == scope])
        self.arrived.taken["tombstones"] += len(stones)

    def _begin_scope(self, transaction: Session, lines: Sequence[Line]) -> None:
        (line,) = lines
        self._scope, self._covers, self._runs = Scope.parse(line["scope"]), {}, []
        scope_id = self._held(transaction)
        row = transaction.get(ScopeRow, scope_id)
        if row is not None and not row.revision:
            row.policy = line["policy"]
            transaction.add(row)

    def _held(self, transaction: Session) -> int:
        """Return the key of the scope's row. Nobody forgets anything of the scope until the transaction ends: what is
        held back by the tombstones that are seen now is all that is to be held back."""
        return scope_rows.lock_scope(transaction, self._scope)

    def _sessions(self, transaction: Session, lines: Sequence[Line]) -> None:
        scope_id, names = self._held(transaction), [line["session_id"] for line in lines]
        here = _present(transaction, col(SessionRow.session_id), names, SessionRow.scope_id == scope_id)
        gone = read_forgotten_by_session(transaction, self._scope, names)
        rows, states, turns = [], [], []
        for line in lines:
            state, left = self._shown(line, gone.get(line["session_id"]))
            if left is None:
                self.arrived.forgotten["sessions"] += 1
            elif line["session_id"] in here:
                self.arrived.kept["sessions"] += 1
            else:
                rows.append({**parse_columns(SessionRow, line), "scope_id": scope_id})
                states.append(state)
                turns.append(left)
        for row in rows:
            row.pop("id", None)
        keys = insert_numbered(transaction, SessionRow, rows)
        kept = [{**one, "session_pk": key} for key, found in zip(keys, turns, strict=True) for one in found]
        insert_rows(transaction, TurnRow, kept)
        saved = [{**one, "session_pk": key} for key, one in zip(keys, states, strict=True) if one]
        insert_rows(transaction, StateRow, saved)
        self.arrived.taken["sessions"] += len(rows)

    def _shown(self, line: Line, gone: Forgotten | None) -> tuple[Line | None, list[Line] | None]:
        """Return the state and the turns of a session without what was forgotten; no turns where that is all."""
        turns = [parse_columns(TurnRow, turn) for turn in line["turns"]]
        state = parse_columns(StateRow, line["state"]) if line.get("state") else None
        if gone is None or not gone.touches_session:
            return state, turns
        kept = tuple(turn_of(_as_row({**turn, "session_pk": 0})) for turn in turns)
        left = gone.turns(kept)
        pairs = zip(kept, left, strict=True)
        self._covers |= {(line["session_id"], new.number): new.text for old, new in pairs if old.text != new.text}
        if kept and all(turn.text == FORGOTTEN for turn in left):
            return None, None
        if state:
            before, after = Transcript(kept, layout=""), Transcript(left, layout="")
            shown = gone.state(json.loads(zlib.decompress(state["content"])), before, after)
            state = {**state, "content": zlib.compress(json.dumps(shown, ensure_ascii=True).encode())}
        return state, [{**turn, "text": one.text} for turn, one in zip(turns, left, strict=True)]

    def _assertions(self, transaction: Session, lines: Sequence[Line]) -> None:
        scope_id = self._held(transaction)
        gone = read_forgotten(transaction, self._scope)
        rows, evidence = [], []
        for line in lines:
            row = {**parse_columns(AssertionRow, line), "scope_id": scope_id}
            items = [{**parse_columns(EvidenceRow, item), "assertion_id": line["id"]} for item in line["evidence"]]
            _check(row, items)
            if self._is_forgotten(row, items, gone):
                self.arrived.forgotten["assertions"] += 1
                continue
            rows.append(row)
            evidence += items
        insert_missing(transaction, AssertionRow, rows)
        insert_missing(transaction, EvidenceRow, evidence)
        self.arrived.taken["assertions"] += len(rows)

    def _is_forgotten(self, row: Line, items: Sequence[Line], gone: Forgotten) -> bool:
        if gone.is_empty and not self._covers and not has_blanked_words(row["value"]):
            return False
        said = assertion_of(_as_row(row), map(_as_row, items), self._scope)
        return gone.covers(said) or not has_unchanged_quotes(said, self._covers)

    def _windows(self, transaction: Session, lines: Sequence[Line]) -> None:
        scope_id = self._held(transaction)
        rows = [{**parse_columns(WindowRow, line), "scope_id": scope_id} for line in lines]
        for row in rows:
            row.pop("id", None)
        insert_missing(transaction, WindowRow, rows)
        ids = _window_ids(transaction, scope_id, [line["key"] for line in lines])
        here = _present(transaction, col(AssertionRow.id), [name for line in lines for name in line["assertions"]])
        touched = {session_id for session_id, _ in self._covers}
        ties, refused = [], []
        for line in lines:
            window_id = ids[line["source"], line["key"]]
            ties += [{"window_id": window_id, "assertion_id": one} for one in line["assertions"] if one in here]
            # What was refused of a session of which something was forgotten may tell just that.
            if line["source"].removeprefix(ledger.session_source("")) not in touched:
                refused += [{**parse_columns(RejectionRow, one), "window_id": window_id} for one in line["rejections"]]
        insert_missing(transaction, WindowAssertionRow, ties)
        insert_missing(transaction, RejectionRow, refused)
        self.arrived.taken["windows"] += len(lines)

    def _verdicts(self, transaction: Session, lines: Sequence[Line]) -> None:
        scope_id = self._held(transaction)
        named = [line[name] for line in lines for name in ("earlier_id", "later_id")]
        here = _present(transaction, col(AssertionRow.id), named)
        rows = [
            {**parse_columns(VerdictRow, line), "scope_id": scope_id}
            for line in lines
            if line["earlier_id"] in here and line["later_id"] in here
        ]
        insert_missing(transaction, VerdictRow, rows)
        self.arrived.taken["verdicts"] += len(rows)

    def _end_scope(self, transaction: Session, _: Sequence[Line]) -> None:
        """Let the runs of the scope count, those that are not here yet, and derive its facts."""
        newcomers = RunImport.of(transaction, self._scope, self._held(transaction), self._origin)
        come = []
        for line in self._runs:
            why_not = newcomers.why_not(line)
            if why_not is None:
                come.append(line)
            else:
                (self.arrived.forgotten if why_not == "forgotten" else self.arrived.kept)["runs"] += 1
        if come:
            newcomers.take(transaction, come)
            ledger.derive_facts(transaction, self._scope)
        self.arrived.taken["runs"] += len(come)


_KNOWN: Mapping[str, Collection[object]] = {
    "act": frozenset(SpeechAct),
    "kind": frozenset(Kind),
    "authority": frozenset(Authority),
    "cue": frozenset({*Cue, None}),
}
_EVIDENCE_KINDS = frozenset(EvidenceKind)


def _check(row: Line, items: Sequence[Line]) -> None:
    """Raise `FileInvalid` where an assertion says what this program does not know."""
    unknown = [name for name, known in _KNOWN.items() if row[name] not in known]
    if unknown or any(item["kind"] not in _EVIDENCE_KINDS for item in items):
        name = unknown[0] if unknown else "evidence"
        raise FileInvalid(f"assertion {row['id']!r} has an unknown {name}; the file is damaged, or upgrade afterword")


def _as_row(values: Line) -> Any:
    return SimpleNamespace(**values)


def _window_ids(transaction: Session, scope_id: int, keys: Sequence[str]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for start in range(0, len(keys), CHUNK):
        query = select(WindowRow.source, WindowRow.key, WindowRow.id).where(
            WindowRow.scope_id == scope_id, col(WindowRow.key).in_(keys[start : start + CHUNK])
        )
        found.update({(source, key): window for source, key, window in transaction.exec(query).all() if window})
    return found


def _present(transaction: Session, column: Any, names: Sequence[str], *where: Any) -> Collection[str]:
    """Return those of the names that the table has."""
    found: set[str] = set()
    for start in range(0, len(names), CHUNK):
        found.update(transaction.exec(select(column).where(column.in_(names[start : start + CHUNK]), *where)))
    return found
