"""Blanking what was forgotten where it stands among words that stay: turns, saved states, quotes, reasons."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, SQLModel, col, select

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript, Turn
from afterword.privacy.blanking import (
    FORGOTTEN,
    SHORTEST_VALUE,
    Span,
    blank_spans,
    letters_and_digits,
    mentions_phrase,
    spans_to_blank,
)
from afterword.privacy.state_keys import NEVER_BLANKED
from afterword.privacy.tombstones import Forgotten, Key, Tombstone, TombstoneKind, keep_json_valid
from afterword.store.forgetting.text_columns import SessionKeys
from afterword.store.lookup import CHUNK
from afterword.store.rows import pack_transcript, turn_of, unpack_transcript
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    RejectionRow,
    RunRow,
    SessionRow,
    StateRow,
    TurnRow,
    VerdictRow,
    WindowRow,
)

_LONG_QUOTE_WORDS = 3
Cover = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class ForgottenWords:
    """The words of what is forgotten, by the session that says them; those of no session are looked for in all."""

    quotes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    anywhere: tuple[str, ...] = ()

    @classmethod
    def of(cls, transaction: Session, gone: Sequence[AssertionRow]) -> ForgottenWords:
        """Return the words of these statements."""
        quotes: dict[str, set[str]] = {}
        values: dict[str, set[str]] = {}
        anywhere = {one.statement for one in gone}
        by_id = {one.id: one for one in gone}
        ids = list(by_id)
        for start in range(0, len(ids), CHUNK):
            query = select(EvidenceRow).where(col(EvidenceRow.assertion_id).in_(ids[start : start + CHUNK]))
            for item in transaction.exec(query):
                anywhere.add(item.quote)
                if item.session_id is not None:
                    quotes.setdefault(item.session_id, set()).add(item.quote)
                    values.setdefault(item.session_id, set()).add(by_id[item.assertion_id].value)
        long = sorted(text for text in anywhere if len(text.split()) >= _LONG_QUOTE_WORDS)
        return cls(
            {name: tuple(sorted(found)) for name, found in quotes.items()},
            {name: tuple(sorted(one for one in found if _is_distinct(one))) for name, found in values.items()},
            tuple(long),
        )


def _is_distinct(value: str) -> bool:
    return len(letters_and_digits(value)) >= SHORTEST_VALUE


@dataclass(frozen=True, slots=True)
class _Words:
    """What is blanked in one session, and what is not."""

    quotes: tuple[str, ...]
    values: tuple[str, ...]
    kept: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()

    def spans(self, text: str) -> list[Span]:
        return spans_to_blank(
            text, quotes=self.quotes, values=self.values, quotes_to_keep=self.kept, values_to_keep=self.spared
        )

    def cover(self, text: str) -> str:
        spans = self.spans(text)
        return blank_spans(text, spans) if spans else text


def blank_session(
    transaction: Session,
    scope: Scope,
    one: SessionKeys,
    needles: ForgottenWords,
    key: Key,
    at: datetime,
    counts: Counter[str],
) -> list[Tombstone]:
    """Blank the needles in what is kept of a session; return the tombstones that do the same to what is read anew."""
    kept = _kept(transaction, one)
    values = needles.values.get(one.session_id, ())
    spared = {said.id for said, _ in kept if any(mentions_phrase(said.value, value) for value in values)}
    words = _Words(
        quotes=tuple(dict.fromkeys((*needles.quotes.get(one.session_id, ()), *needles.anywhere))),
        values=values,
        kept=tuple(item.quote for _, item in kept),
        spared=tuple(item.quote for said, item in kept if said.id in spared),
    )
    marks = _Marks(scope, one, key, at)

    def turned(text: str) -> str:
        spans = words.spans(text)
        return marks.lay(text, spans, times=1) if spans else text

    def within(text: str) -> str:
        spans = words.spans(text)
        return keep_json_valid(text, marks.lay(text, spans, times=0)) if spans else text

    _blank_turns(transaction, one, turned, counts)
    _blank_state(transaction, one, lambda state: _strings_covered(state, within), counts)
    _blank_transcripts(transaction, one, within, counts)
    _blank_kept(transaction, [pair for pair in kept if pair[0].id not in spared], words, counts)
    _blank_notes(transaction, one, replace(words, kept=(), spared=()), counts)
    return marks.stones()


def blank_turns_before(
    transaction: Session, scope: Scope, one: SessionKeys, stone: Tombstone, key: Key, counts: Counter[str]
) -> None:
    """Blank the turns of a session for which a tombstone stands, in its saved state and dry runs too."""
    query = select(TurnRow).where(TurnRow.session_pk == one.key).order_by(col(TurnRow.number))
    kept = tuple(turn_of(row) for row in transaction.exec(query))
    forgotten = Forgotten(scope, one.session_id, [key], [stone])
    left = forgotten.turns(kept)
    blank_turns(transaction, one, forgotten, kept, left, counts)


def blank_turns(
    transaction: Session,
    one: SessionKeys,
    forgotten: Forgotten,
    kept: tuple[Turn, ...],
    left: tuple[Turn, ...],
    counts: Counter[str],
) -> None:
    """Let the turns that are `left` take the place of those that were `kept`, in the saved state and dry runs too."""
    before, after = Transcript(kept, layout=""), Transcript(left, layout="")
    covers = {old.text: new.text for old, new in zip(kept, left, strict=True) if old.text != new.text}
    _blank_turns(transaction, one, lambda text: covers.get(text, text), counts)
    _blank_state(transaction, one, lambda state: forgotten.state(state, before, after), counts)
    _blank_transcripts(transaction, one, lambda text: covers.get(text, text), counts)
    windows = select(WindowRow.id).where(WindowRow.scope_id == one.scope_id, WindowRow.source == one.source)
    _write(transaction, RejectionRow, col(RejectionRow.window_id).in_(windows), {"statement": FORGOTTEN, "detail": ""})


class _Marks:
    """The tombstones of the texts of one session."""

    def __init__(self, scope: Scope, one: SessionKeys, key: Key, at: datetime) -> None:
        self._scope, self._session_id, self._key, self._at = scope, one.session_id, key, at
        self._times: Counter[tuple[str, tuple[Span, ...]]] = Counter()

    def lay(self, text: str, spans: Sequence[Span], *, times: int) -> str:
        """Return the text without these spans, for which a tombstone is laid."""
        self._times[self._key.text(self._scope, self._session_id, text), tuple(spans)] += times
        return blank_spans(text, spans)

    def stones(self) -> list[Tombstone]:
        """Return what was laid."""
        place = self._key.place(self._scope, self._session_id)
        return [
            Tombstone(TombstoneKind.TEXT, self._key.id, place, mark, self._at, spans, times)
            for (mark, spans), times in self._times.items()
        ]


def _kept(transaction: Session, one: SessionKeys) -> list[tuple[AssertionRow, EvidenceRow]]:
    query = select(AssertionRow, EvidenceRow).where(
        col(AssertionRow.id) == col(EvidenceRow.assertion_id),
        AssertionRow.scope_id == one.scope_id,
        EvidenceRow.session_id == one.session_id,
    )
    return [(said, item) for said, item in transaction.exec(query).all()]


def _blank_turns(transaction: Session, one: SessionKeys, cover: Cover, counts: Counter[str]) -> None:
    for row in transaction.exec(select(TurnRow).where(TurnRow.session_pk == one.key)).all():
        text = cover(row.text)
        if text != row.text:
            counts["turns"] += 1
            found = (col(TurnRow.session_pk) == one.key) & (col(TurnRow.number) == row.number)
            _write(transaction, TurnRow, found, {"text": text})


def _blank_state(
    transaction: Session, one: SessionKeys, cover: Callable[[dict[str, Any]], dict[str, Any]], counts: Counter[str]
) -> None:
    row = transaction.get(StateRow, one.key)
    if row is None:
        return
    state = json.loads(zlib.decompress(row.content))
    shown = cover(state)
    if shown != state:
        counts["states"] += 1
        content = zlib.compress(json.dumps(shown, ensure_ascii=True).encode())
        _write(transaction, StateRow, col(StateRow.session_pk) == one.key, {"content": content})


def _blank_transcripts(transaction: Session, one: SessionKeys, cover: Cover, counts: Counter[str]) -> None:
    query = select(RunRow).where(
        RunRow.scope_id == one.scope_id, RunRow.source == one.source, col(RunRow.transcript).is_not(None)
    )
    for row in transaction.exec(query).all():
        if row.transcript is None:
            continue
        read = unpack_transcript(row.transcript)
        turns = tuple(replace(turn, text=cover(turn.text)) for turn in read.turns)
        if turns != read.turns:
            counts["runs"] += 1
            _write(
                transaction,
                RunRow,
                col(RunRow.id) == row.id,
                {"transcript": pack_transcript(replace(read, turns=turns))},
            )


def _blank_kept(
    transaction: Session, kept: Sequence[tuple[AssertionRow, EvidenceRow]], words: _Words, counts: Counter[str]
) -> None:
    """Blank the words in statements that stay, and in their quotes, which stand in the turns as those are now."""
    # A quote that stays keeps its own words; only the value that is gone leaves it.
    of_quotes, of_statements = replace(words, quotes=()), replace(words, kept=())
    for said, item in kept:
        quote = of_quotes.cover(item.quote)
        if quote != item.quote:
            counts["evidence"] += 1
        _write(
            transaction,
            EvidenceRow,
            (col(EvidenceRow.assertion_id) == item.assertion_id) & (col(EvidenceRow.ordinal) == item.ordinal),
            {"quote": quote, "start": _start(transaction, said, item, quote)},
        )
    for said in {said.id: said for said, _ in kept}.values():
        told = {"statement": said.statement, "limited_to": said.limited_to, "outcome": said.outcome}
        shown = {name: text and of_statements.cover(text) for name, text in told.items()}
        if shown != told:
            counts["assertions"] += 1
            _write(transaction, AssertionRow, col(AssertionRow.id) == said.id, shown)


def _start(transaction: Session, said: AssertionRow, item: EvidenceRow, quote: str) -> int | None:
    """Return where a quote stands in its turn now."""
    session = select(SessionRow.id).where(
        SessionRow.scope_id == said.scope_id, SessionRow.session_id == item.session_id
    )
    query = select(TurnRow.text).where(col(TurnRow.session_pk).in_(session), TurnRow.number == item.turn)
    text = transaction.exec(query).first()
    place = text.find(quote) if text is not None else -1
    return place if place >= 0 else item.start


def _blank_notes(transaction: Session, one: SessionKeys, words: _Words, counts: Counter[str]) -> None:
    """Blank the words in what was noted about a session: what was refused, why it was judged so, why it failed."""
    windows = select(WindowRow.id).where(WindowRow.scope_id == one.scope_id, WindowRow.source == one.source)
    for row in transaction.exec(select(RejectionRow).where(col(RejectionRow.window_id).in_(windows))).all():
        statement, detail = words.cover(row.statement), words.cover(row.detail)
        if (statement, detail) != (row.statement, row.detail):
            counts["rejections"] += 1
            found = (col(RejectionRow.window_id) == row.window_id) & (col(RejectionRow.ordinal) == row.ordinal)
            _write(transaction, RejectionRow, found, {"statement": statement, "detail": detail})
    said = select(AssertionRow.id).where(
        AssertionRow.scope_id == one.scope_id, AssertionRow.session_id == one.session_id
    )
    touching = col(VerdictRow.earlier_id).in_(said) | col(VerdictRow.later_id).in_(said)
    for verdict in transaction.exec(select(VerdictRow).where(touching)).all():
        reason = words.cover(verdict.reason)
        if reason != verdict.reason:
            counts["verdicts"] += 1
            _write(transaction, VerdictRow, col(VerdictRow.key) == verdict.key, {"reason": reason})
    session = transaction.get(SessionRow, one.key)
    if session is not None and session.failure and words.spans(session.failure):
        counts["sessions"] += 1
        _write(transaction, SessionRow, col(SessionRow.id) == one.key, {"failure": words.cover(session.failure)})


def _write(transaction: Session, table: type[SQLModel], where: Any, values: Mapping[str, Any]) -> None:
    transaction.connection().execute(update(table).where(where).values(**values))


def _strings_covered(value: Any, cover: Cover) -> Any:
    """Return a copy of a state with each of its strings covered, keys aside."""
    if isinstance(value, str):
        return cover(value)
    if isinstance(value, Mapping):
        return {
            name: inner if isinstance(inner, str) and name in NEVER_BLANKED else _strings_covered(inner, cover)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_strings_covered(inner, cover) for inner in value]
    return value
