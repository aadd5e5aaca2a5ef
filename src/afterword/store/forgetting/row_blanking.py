"""Blanking forgotten words where they stand among words that stay: turns, saved states, quotes, reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from afterword.store.database.statements import fetch_where_in
from afterword.store.forgetting.text_columns import SessionKeys
from afterword.store.rows import (
    derived_turn_values,
    pack_state,
    pack_transcript,
    turn_of,
    unpack_state,
    unpack_transcript,
)
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
_LONG_VALUE = 7
"""A word of so many letters is looked for in every session, also in lower case."""
BlankText = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class ForgottenWords:
    """The words of forgotten statements by session, and those that are looked for in every session.

    These are the longer quotes, and values that tell something by themselves, such as names.
    """

    quotes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    anywhere: tuple[str, ...] = ()
    telling_values: tuple[str, ...] = ()

    @classmethod
    def of_texts(cls, quotes: Mapping[str, Iterable[str]], sentences: Iterable[str]) -> ForgottenWords:
        """Return the quotes to forget in each session. Longer quotes and sentences are forgotten in every session."""
        anywhere = {*sentences, *(quote for texts in quotes.values() for quote in texts)}
        return cls(
            {session_id: tuple(sorted(texts)) for session_id, texts in quotes.items()},
            anywhere=tuple(sorted(text for text in anywhere if len(text.split()) >= _LONG_QUOTE_WORDS)),
        )

    @classmethod
    def of(cls, transaction: Session, statements: Mapping[str, AssertionRow]) -> ForgottenWords:
        """Return the words of these statements, given by their ids."""
        quotes: dict[str, set[str]] = {}
        values: dict[str, set[str]] = {}
        anywhere = {row.statement for row in statements.values()}
        for evidence in fetch_where_in(transaction, EvidenceRow, "assertion_id", statements):
            anywhere.add(evidence.quote)
            if evidence.session_id is not None:
                quotes.setdefault(evidence.session_id, set()).add(evidence.quote)
                value = statements[evidence.assertion_id].value
                if len(letters_and_digits(value)) >= SHORTEST_VALUE:
                    values.setdefault(evidence.session_id, set()).add(value)
        return cls(
            {session_id: tuple(sorted(texts)) for session_id, texts in quotes.items()},
            {session_id: tuple(sorted(texts)) for session_id, texts in values.items()},
            tuple(sorted(text for text in anywhere if len(text.split()) >= _LONG_QUOTE_WORDS)),
            tuple(sorted({row.value for row in statements.values() if _is_telling(row.value)})),
        )


def _is_telling(value: str) -> bool:
    """Return whether a value is recognisable in any text: it has several words, a capital letter, or is long."""
    is_name = any(letter.isupper() or letter.isdigit() for letter in value)
    is_long = len(value.split()) > 1 or len(value) >= _LONG_VALUE
    return len(letters_and_digits(value)) >= SHORTEST_VALUE and (is_name or is_long)


@dataclass(frozen=True, slots=True)
class _Words:
    """The quotes and values to blank in one session, and those to keep."""

    quotes: tuple[str, ...]
    values: tuple[str, ...]
    quotes_to_keep: tuple[str, ...] = ()
    values_to_keep: tuple[str, ...] = ()

    def spans(self, text: str) -> list[Span]:
        return spans_to_blank(
            text,
            quotes=self.quotes,
            values=self.values,
            quotes_to_keep=self.quotes_to_keep,
            values_to_keep=self.values_to_keep,
        )

    def blank(self, text: str) -> str:
        spans = self.spans(text)
        return blank_spans(text, spans) if spans else text


def blank_session(
    transaction: Session,
    scope: Scope,
    session: SessionKeys,
    forgotten: ForgottenWords,
    key: Key,
    at: datetime,
    counts: Counter[str],
) -> list[Tombstone]:
    """Blank forgotten words in all that is stored of a session; count the changed rows by table in `counts`.

    Returns the tombstones that blank the same words when the session is read again.
    """
    remaining = _remaining_statements(transaction, session)
    values = tuple(dict.fromkeys((*forgotten.values.get(session.session_id, ()), *forgotten.telling_values)))
    # A statement that stays and has the forgotten value itself keeps its words.
    unchanged_ids = {said.id for said, _ in remaining if any(mentions_phrase(said.value, value) for value in values)}
    words = _Words(
        quotes=tuple(dict.fromkeys((*forgotten.quotes.get(session.session_id, ()), *forgotten.anywhere))),
        values=values,
        quotes_to_keep=tuple(evidence.quote for _, evidence in remaining),
        values_to_keep=tuple(evidence.quote for said, evidence in remaining if said.id in unchanged_ids),
    )
    tombstones = _TextTombstones(scope, session, key, at)

    def blank_turn(text: str) -> str:
        spans = words.spans(text)
        return tombstones.blank(text, spans, times=1) if spans else text

    def blank_string(text: str) -> str:
        spans = words.spans(text)
        return keep_json_valid(text, tombstones.blank(text, spans, times=0)) if spans else text

    _blank_turn_rows(transaction, session, blank_turn, counts)
    _blank_state(transaction, session, lambda state: _blank_strings(state, blank_string), counts)
    _blank_transcripts(transaction, session, blank_string, counts)
    changed = [(said, evidence) for said, evidence in remaining if said.id not in unchanged_ids]
    _blank_statements(transaction, changed, words, counts)
    _blank_notes(transaction, session, replace(words, quotes_to_keep=(), values_to_keep=()), counts)
    return tombstones.all()


def blank_turns_before(
    transaction: Session, scope: Scope, session: SessionKeys, tombstone: Tombstone, key: Key, counts: Counter[str]
) -> None:
    """Blank the turns of a session that a tombstone covers, in its saved state and dry runs too."""
    forgotten = Forgotten(scope, session.session_id, [key], [tombstone])
    turns = read_stored_turns(transaction, session)
    blank_turns(transaction, session, forgotten, turns, forgotten.turns(turns), counts)


def read_stored_turns(transaction: Session, session: SessionKeys) -> tuple[Turn, ...]:
    """Return the turns of a session in their order."""
    query = select(TurnRow).where(TurnRow.session_pk == session.key).order_by(col(TurnRow.number))
    return tuple(turn_of(row) for row in transaction.exec(query))


def blank_turns(
    transaction: Session,
    session: SessionKeys,
    forgotten: Forgotten,
    before: tuple[Turn, ...],
    after: tuple[Turn, ...],
    counts: Counter[str],
) -> None:
    """Replace the turns `before` by the blanked turns `after`, in the saved state and dry runs too."""
    replacements = changed_texts(before, after)
    fresh, shown = Transcript(before, layout=""), Transcript(after, layout="")
    _blank_turn_rows(transaction, session, lambda text: replacements.get(text, text), counts)
    _blank_state(transaction, session, lambda state: forgotten.state(state, fresh, shown), counts)
    _blank_transcripts(transaction, session, lambda text: replacements.get(text, text), counts)
    is_of_session = col(RejectionRow.window_id).in_(_select_windows(session))
    _update(transaction, RejectionRow, is_of_session, {"statement": FORGOTTEN, "detail": ""})


def changed_texts(before: Sequence[Turn], after: Sequence[Turn]) -> dict[str, str]:
    """Return the blanked texts by the texts that they replace."""
    return {old.text: new.text for old, new in zip(before, after, strict=True) if old.text != new.text}


class _TextTombstones:
    """The tombstones of the texts of one session."""

    def __init__(self, scope: Scope, session: SessionKeys, key: Key, at: datetime) -> None:
        self._scope, self._session_id, self._key, self._at = scope, session.session_id, key, at
        self._times: Counter[tuple[str, tuple[Span, ...]]] = Counter()

    def blank(self, text: str, spans: Sequence[Span], *, times: int) -> str:
        """Return the text without these spans, and add a tombstone for them."""
        self._times[self._key.text(self._scope, self._session_id, text), tuple(spans)] += times
        return blank_spans(text, spans)

    def all(self) -> list[Tombstone]:
        """Return the tombstones that were added."""
        place = self._key.place(self._scope, self._session_id)
        return [
            Tombstone(TombstoneKind.TEXT, self._key.id, place, mark, self._at, spans, times)
            for (mark, spans), times in self._times.items()
        ]


def _remaining_statements(transaction: Session, session: SessionKeys) -> list[tuple[AssertionRow, EvidenceRow]]:
    query = select(AssertionRow, EvidenceRow).where(
        col(AssertionRow.id) == col(EvidenceRow.assertion_id),
        AssertionRow.scope_id == session.scope_id,
        EvidenceRow.session_id == session.session_id,
    )
    return [(said, evidence) for said, evidence in transaction.exec(query).all()]


def _blank_turn_rows(transaction: Session, session: SessionKeys, blank: BlankText, counts: Counter[str]) -> None:
    for row in transaction.exec(select(TurnRow).where(TurnRow.session_pk == session.key)).all():
        text = blank(row.text)
        if text != row.text:
            counts["turns"] += 1
            is_turn = (col(TurnRow.session_pk) == session.key) & (col(TurnRow.number) == row.number)
            derived = derived_turn_values(replace(turn_of(row), text=text))
            _update(transaction, TurnRow, is_turn, {"text": text, **derived})


def _blank_state(
    transaction: Session,
    session: SessionKeys,
    blank: Callable[[dict[str, Any]], dict[str, Any]],
    counts: Counter[str],
) -> None:
    row = transaction.get(StateRow, session.key)
    if row is None:
        return
    state = unpack_state(row.content)
    blanked = blank(state)
    if blanked != state:
        counts["states"] += 1
        is_state = col(StateRow.session_pk) == session.key
        _update(transaction, StateRow, is_state, {"content": pack_state(blanked)})


def _blank_transcripts(transaction: Session, session: SessionKeys, blank: BlankText, counts: Counter[str]) -> None:
    query = select(RunRow.id, RunRow.transcript).where(
        RunRow.scope_id == session.scope_id, RunRow.source == session.source, col(RunRow.transcript).is_not(None)
    )
    for run_id, packed in transaction.exec(query).all():
        transcript = unpack_transcript(packed or b"")
        turns = tuple(replace(turn, text=blank(turn.text)) for turn in transcript.turns)
        if turns != transcript.turns:
            counts["runs"] += 1
            values = {"transcript": pack_transcript(replace(transcript, turns=turns))}
            _update(transaction, RunRow, col(RunRow.id) == run_id, values)


def _blank_statements(
    transaction: Session,
    remaining: Sequence[tuple[AssertionRow, EvidenceRow]],
    words: _Words,
    counts: Counter[str],
) -> None:
    """Blank words in statements that stay, and in their quotes; find the quotes again in the turns as they are now."""
    # A quote that stays keeps its own words. Only the forgotten value is blanked in it.
    words_of_quotes, words_of_statements = replace(words, quotes=()), replace(words, quotes_to_keep=())
    for said, evidence in remaining:
        quote = words_of_quotes.blank(evidence.quote)
        if quote != evidence.quote:
            counts["evidence"] += 1
        is_evidence = col(EvidenceRow.assertion_id) == evidence.assertion_id
        is_evidence &= col(EvidenceRow.ordinal) == evidence.ordinal
        start = _start_of_quote(transaction, said, evidence, quote)
        _update(transaction, EvidenceRow, is_evidence, {"quote": quote, "start": start})
    for said in {said.id: said for said, _ in remaining}.values():
        columns = ("statement", "limited_to", "outcome", "tags", "former_name")
        texts: dict[str, str | None] = {name: getattr(said, name) for name in columns}
        blanked = {name: text and words_of_statements.blank(text) for name, text in texts.items()}
        if blanked["former_name"] != said.former_name:
            blanked["former_name"] = None  # a name that was blanked would join whatever else was
        if blanked != texts:
            counts["assertions"] += 1
            _update(transaction, AssertionRow, col(AssertionRow.id) == said.id, blanked)


def _start_of_quote(transaction: Session, said: AssertionRow, evidence: EvidenceRow, quote: str) -> int | None:
    """Return where a quote stands in its turn as that is now."""
    session = select(SessionRow.id).where(
        SessionRow.scope_id == said.scope_id, SessionRow.session_id == evidence.session_id
    )
    query = select(TurnRow.text).where(col(TurnRow.session_pk).in_(session), TurnRow.number == evidence.turn)
    text = transaction.exec(query).first()
    start = text.find(quote) if text is not None else -1
    return start if start >= 0 else evidence.start


def _blank_notes(transaction: Session, session: SessionKeys, words: _Words, counts: Counter[str]) -> None:
    """Blank words in the notes about a session: refused candidates, reasons of verdicts, the reason of a failure."""
    refused = select(RejectionRow).where(col(RejectionRow.window_id).in_(_select_windows(session)))
    for row in transaction.exec(refused).all():
        statement, detail = words.blank(row.statement), words.blank(row.detail)
        if (statement, detail) != (row.statement, row.detail):
            counts["rejections"] += 1
            is_refusal = (col(RejectionRow.window_id) == row.window_id) & (col(RejectionRow.ordinal) == row.ordinal)
            _update(transaction, RejectionRow, is_refusal, {"statement": statement, "detail": detail})
    said = select(AssertionRow.id).where(
        AssertionRow.scope_id == session.scope_id, AssertionRow.session_id == session.session_id
    )
    is_about_session = col(VerdictRow.earlier_id).in_(said) | col(VerdictRow.later_id).in_(said)
    for verdict in transaction.exec(select(VerdictRow).where(is_about_session)).all():
        reason, remainder = words.blank(verdict.reason), verdict.remainder and words.blank(verdict.remainder)
        if (reason, remainder) != (verdict.reason, verdict.remainder):
            counts["verdicts"] += 1
            notes = {"reason": reason, "remainder": remainder}
            _update(transaction, VerdictRow, col(VerdictRow.key) == verdict.key, notes)
    session_row = transaction.get(SessionRow, session.key)
    if session_row is not None and session_row.failure and words.spans(session_row.failure):
        counts["sessions"] += 1
        values = {"failure": words.blank(session_row.failure)}
        _update(transaction, SessionRow, col(SessionRow.id) == session.key, values)


def _select_windows(session: SessionKeys) -> Any:
    return select(WindowRow.id).where(WindowRow.scope_id == session.scope_id, WindowRow.source == session.source)


def _update(transaction: Session, table: type[SQLModel], where: Any, values: Mapping[str, Any]) -> None:
    transaction.connection().execute(update(table).where(where).values(**values))


def _blank_strings(value: Any, blank: BlankText) -> Any:
    """Return a copy of a saved state with each of its strings blanked, except names and ids."""
    if isinstance(value, str):
        return blank(value)
    if isinstance(value, Mapping):
        return {
            name: inner if isinstance(inner, str) and name in NEVER_BLANKED else _blank_strings(inner, blank)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_blank_strings(inner, blank) for inner in value]
    return value
