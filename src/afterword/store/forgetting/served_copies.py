"""Erasing the copies of forgotten words that agents were served or repeated: in blocks, tool results and their replies.

A block is emptied whatever it holds, since the next turn of a resumed session writes it anew.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, SQLModel, col, select

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role
from afterword.privacy.blanking import FORGOTTEN, SHORTEST_VALUE, PhraseSearch, Span, blank_spans, letters_and_digits
from afterword.privacy.state_keys import NEVER_BLANKED
from afterword.privacy.tombstones import Key, Tombstone, TombstoneKind, keep_json_valid
from afterword.recall.block import CLOSING, OPENING, scope_label
from afterword.store.database.statements import fetch_where_in
from afterword.store.findings.finding_rows import rows_of_scope
from afterword.store.forgetting.text_columns import SessionKeys
from afterword.store.ledger import session_source
from afterword.store.rows import pack_state, pack_transcript, unpack_state, unpack_transcript
from afterword.store.scope_rows import scope_of_row
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RejectionRow,
    RunRow,
    ScopeRow,
    SessionRow,
    StateRow,
    TurnRow,
    VerdictRow,
    WindowRow,
)

_BLOCK = re.compile(
    rf"{re.escape(OPENING)}(?P<label>[^>\n]{{0,200}})>(?P<content>.*?)(?:{re.escape(CLOSING)}|\Z)", re.DOTALL
)
_SENTENCE = re.compile(r"[^.!?\n]+")
_LONG_SENTENCE_WORDS = 4
PAGE = 200
"""How many saved states are read at once."""

FindSpans = Callable[[str], list[Span]]
"""Finds the spans of a text that are blanked."""


@dataclass(slots=True)
class ErasedWords:
    """The words of erased statements and turns, collected before their rows are deleted."""

    statements: set[str] = field(default_factory=set)
    sentences: set[str] = field(default_factory=set)
    findings: set[str] = field(default_factory=set)

    def add_statements(self, transaction: Session, ids: Sequence[str]) -> None:
        """Add the values, sentences and quotes of these statements."""
        self.statements.update(_words_of(transaction, fetch_where_in(transaction, AssertionRow, "id", ids), ids))

    def add_findings(self, rows: Iterable[Any]) -> None:
        """Add the sentences and quotes of these rows of findings."""
        for row in rows:
            self.findings |= _words_of_finding(row)

    def add_turns(self, transaction: Session, session: SessionKeys, until: datetime) -> None:
        """Add the longer sentences that people said in a session up to that time."""
        query = select(TurnRow.text, TurnRow.said_at).where(
            TurnRow.session_pk == session.key, TurnRow.role == str(Role.HUMAN)
        )
        for text, said_at in transaction.exec(query).all():
            if said_at is None or said_at <= until:
                sentences = map(str.strip, _SENTENCE.findall(text))
                self.sentences.update(part for part in sentences if len(part.split()) >= _LONG_SENTENCE_WORDS)

    def search(self, transaction: Session, scope_id: int) -> PhraseSearch:
        """Return a search for the erased words, except those that remaining statements and findings contain too."""
        rows = list(transaction.exec(select(AssertionRow).where(AssertionRow.scope_id == scope_id)))
        remaining = _words_of(transaction, rows, [row.id for row in rows]) if self.statements else set()
        rows_of_findings = rows_of_scope(transaction, scope_id) if self.findings else ()
        found_still = {letters_and_digits(text) for row in rows_of_findings for text in _words_of_finding(row)}
        known = {letters_and_digits(text) for text in remaining}
        found_only = {text for text in self.findings if letters_and_digits(text) not in found_still}
        return PhraseSearch(
            text
            for text in (*self.statements, *self.sentences, *found_only)
            if len(letters := letters_and_digits(text)) >= SHORTEST_VALUE and letters not in known
        )


def _words_of_finding(row: Any) -> set[str]:
    return {row.statement, *(piece["quote"] for piece in row.evidence)}


def _words_of(transaction: Session, rows: Iterable[AssertionRow], ids: Sequence[str]) -> set[str]:
    quotes = (evidence.quote for evidence in fetch_where_in(transaction, EvidenceRow, "assertion_id", ids))
    return {text for row in rows for text in (row.value, row.statement)} | set(quotes)


class CopySweep:
    """Erases forgotten words from what is stored of one session, except from what people said in it."""

    def __init__(
        self, transaction: Session, scope: Scope, session: SessionKeys, key: Key, at: datetime, find_spans: FindSpans
    ) -> None:
        self.transaction, self.scope, self.session = transaction, scope, session
        self.key, self.at, self.find_spans = key, at, find_spans
        self.counts: Counter[str] = Counter()
        self._tombstones: dict[tuple[str, tuple[Span, ...]], int] = {}
        query = select(TurnRow).where(TurnRow.session_pk == session.key)
        self._turns = list(transaction.exec(query))
        said = (letters_and_digits(turn.text) for turn in self._turns if turn.role == Role.HUMAN)
        self._said_by_people = "\n".join(said)

    def run(self) -> list[Tombstone]:
        """Erase the copies; return the tombstones that blank them when the session is saved or read again."""
        for turn in self._turns:
            text = turn.text if turn.role == Role.HUMAN else self._blanked(turn.text, times=1)
            if text != turn.text:
                is_turn = (col(TurnRow.session_pk) == self.session.key) & (col(TurnRow.number) == turn.number)
                self._update("turns", TurnRow, is_turn, {"text": text})
        self.sweep_state()
        self._sweep_transcripts()
        self._sweep_notes()
        return self.tombstones()

    def sweep_state(self) -> None:
        """Erase the copies in the saved state."""
        row = self.transaction.get(StateRow, self.session.key)
        if row is None:
            return
        state = unpack_state(row.content)
        blanked = self._blanked_strings(state)
        if blanked != state:
            is_state = col(StateRow.session_pk) == self.session.key
            self._update("states", StateRow, is_state, {"content": pack_state(blanked)})

    def tombstones(self) -> list[Tombstone]:
        """Return the tombstones of the texts that were changed so far."""
        place = self.key.place(self.scope, self.session.session_id)
        return [
            Tombstone(TombstoneKind.TEXT, self.key.id, place, mark, self.at, spans, times)
            for (mark, spans), times in self._tombstones.items()
        ]

    def _blanked(self, text: str, *, times: int = 0) -> str:
        """Return the text without forgotten words, with a tombstone for what was blanked."""
        spans = self.find_spans(text)
        if not spans or letters_and_digits(text) in self._said_by_people:
            return text
        mark = self.key.text(self.scope, self.session.session_id, text), tuple(spans)
        self._tombstones[mark] = self._tombstones.get(mark, 0) + times
        return keep_json_valid(text, blank_spans(text, spans))

    def _blanked_strings(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._blanked(value)
        if isinstance(value, Mapping):
            return {
                name: inner if isinstance(inner, str) and name in NEVER_BLANKED else self._blanked_strings(inner)
                for name, inner in value.items()
            }
        return [self._blanked_strings(inner) for inner in value] if isinstance(value, list) else value

    def _sweep_transcripts(self) -> None:
        of_session = (RunRow.scope_id == self.session.scope_id, RunRow.source == self.session.source)
        query = select(RunRow.id, RunRow.transcript).where(*of_session, col(RunRow.transcript).is_not(None))
        for run_id, packed in self.transaction.exec(query).all():
            transcript = unpack_transcript(packed or b"")
            turns = tuple(
                turn if turn.role is Role.HUMAN else replace(turn, text=self._blanked(turn.text))
                for turn in transcript.turns
            )
            if turns != transcript.turns:
                values = {"transcript": pack_transcript(replace(transcript, turns=turns))}
                self._update("runs", RunRow, col(RunRow.id) == run_id, values)

    def _sweep_notes(self) -> None:
        """Blank the words in refused candidates, in the reasons of verdicts, and in the reason of a failure."""
        windows = select(WindowRow.id).where(
            WindowRow.scope_id == self.session.scope_id, WindowRow.source == self.session.source
        )
        for row in self.transaction.exec(select(RejectionRow).where(col(RejectionRow.window_id).in_(windows))).all():
            is_refusal = (col(RejectionRow.window_id) == row.window_id) & (col(RejectionRow.ordinal) == row.ordinal)
            self._blank_note("rejections", RejectionRow, is_refusal, statement=row.statement, detail=row.detail)
        said = select(AssertionRow.id).where(
            AssertionRow.scope_id == self.session.scope_id, AssertionRow.session_id == self.session.session_id
        )
        for verdict in self.transaction.exec(select(VerdictRow).where(col(VerdictRow.later_id).in_(said))).all():
            notes = {"reason": verdict.reason, "remainder": verdict.remainder or ""}
            self._blank_note("verdicts", VerdictRow, col(VerdictRow.key) == verdict.key, **notes)
        session = self.transaction.get(SessionRow, self.session.key)
        if session is not None and session.failure:
            self._blank_note("sessions", SessionRow, col(SessionRow.id) == session.id, failure=session.failure)

    def _blank_note(self, count_name: str, table: type[SQLModel], where: Any, **texts: str) -> None:
        spans = {column: self.find_spans(text) for column, text in texts.items()}
        blanked = {column: blank_spans(texts[column], spans[column]) for column in texts if spans[column]}
        if blanked:
            self._update(count_name, table, where, blanked)

    def _update(self, count_name: str, table: type[SQLModel], where: Any, values: Mapping[str, Any]) -> None:
        self.counts[count_name] += 1
        self.transaction.connection().execute(update(table).where(where).values(**values))


def sweep_blocks_in_other_scopes(
    transaction: Session, scope: Scope, scope_id: int, key: Key, at: datetime
) -> Iterator[tuple[Scope, CopySweep]]:
    """Empty the blocks of this scope in what is stored of other scopes, whose agents were served it too.

    Yields each other scope with the sweep of a session, whose tombstones belong to that scope.
    """
    find_blocks, scopes = block_finder(scope), dict[int, Scope]()
    for row in transaction.exec(select(ScopeRow).where(ScopeRow.id != scope_id)).all():
        scopes[row.id or 0] = scope_of_row(row)
    for session in sorted(_sessions_with(transaction, scope_label(scope)), key=lambda keys: (keys.scope_id, keys.key)):
        if session.scope_id in scopes:
            owner = scopes[session.scope_id]
            yield owner, CopySweep(transaction, owner, session, key, at, find_blocks)


def _sessions_with(transaction: Session, label: str) -> set[SessionKeys]:
    """Return the sessions of all scopes in whose turns, saved state or dry runs this label stands."""
    of_turns = select(TurnRow.session_pk).where(col(TurnRow.text).contains(label, autoescape=True))
    session_keys = set(transaction.exec(of_turns.distinct()))
    for session_key, content in _pages(transaction, StateRow.session_pk, StateRow.content):
        if label.encode() in zlib.decompress(content):
            session_keys.add(session_key)
    rows = fetch_where_in(transaction, SessionRow, "id", session_keys)
    found_sessions = {SessionKeys(row.scope_id, row.id, row.session_id) for row in rows}
    for run_id, content in _pages(transaction, RunRow.id, RunRow.transcript):
        if content and label.encode() in zlib.decompress(content):
            run = transaction.get_one(RunRow, run_id)
            session_id = run.source.removeprefix(session_source(""))
            found_sessions.add(SessionKeys(run.scope_id, run.session_pk or 0, session_id))
    return found_sessions


def _pages(transaction: Session, key: Any, content: Any) -> Iterator[tuple[int, bytes]]:
    """Yield the key and the content of every row, so many at a time."""
    query = select(key, content).where(col(content).is_not(None)).order_by(col(key)).limit(PAGE)
    rows = transaction.exec(query).all()
    while rows:
        yield from rows
        rows = transaction.exec(query.where(col(key) > rows[-1][0])).all()


def block_finder(scope: Scope | None = None, words: PhraseSearch | None = None) -> FindSpans:
    """Return a function that finds the contents of blocks, of one scope or of all, and these words besides."""
    search = words or PhraseSearch(())
    label = scope_label(scope) if scope else ""
    return lambda text: search.spans(text, _block_places(text, label))


def _block_places(text: str, label: str) -> Iterator[tuple[int, int]]:
    """Yield where the contents of blocks stand in a text, without those that are empty already."""
    for block in _BLOCK.finditer(text) if OPENING in text else ():
        is_empty = not any(map(str.isalnum, block["content"].replace(FORGOTTEN, "")))
        if label in block["label"] and not is_empty:
            yield block.span("content")
