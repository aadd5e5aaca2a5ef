"""Conversion between rows and the values of `afterword.facts`."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import String, case, cast, func, type_coerce
from sqlalchemy.types import JSON, NullType
from sqlmodel import SQLModel

from afterword.errors import FileInvalid
from afterword.facts.assertions import (
    Assertion,
    Authority,
    Cue,
    Evidence,
    EvidenceKind,
    Extent,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
    digest,
)
from afterword.facts.fact import Status
from afterword.facts.local_time import at_offset, offset_seconds
from afterword.facts.safety import is_assertion_flagged
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import LARGEST_STATE_BYTES, Role, Transcript, Turn
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.validity.periods import ValidityPeriod
from afterword.facts.validity.wording import Rewording
from afterword.recall.said_index import shown_text_to_store
from afterword.recall.search_terms import TOKENIZER, fact_terms, turn_terms
from afterword.store.database.statements import parse_stored_instant
from afterword.store.tables import AssertionRow, EvidenceRow, TurnRow, VerdictRow

Values = dict[str, Any]

_STATUSES = {str(status): status for status in Status}

_LARGEST_PACKED_BYTES = 3 * LARGEST_STATE_BYTES
"""The largest size to which a state is decompressed. Text as ASCII JSON is at most three times as long as in UTF-8."""
_MOST_PACKED = 1032
"""The highest compression ratio of zlib."""
_TOO_LARGE = f"a saved state is larger than {LARGEST_STATE_BYTES // 1024 // 1024} MiB; split it into single sessions"


ASSERTION_COLUMNS = (
    *"id session_id act kind subject attribute value statement speaker authority said_at time_is_guess".split(),
    *"valid_from valid_to cue limited_to outcome is_flagged tags former_name utc_offset_s".split(),
)
"""The columns of `AssertionRow` from which an assertion is built."""
EVIDENCE_COLUMNS = "kind quote session_id turn speaker start".split()
"""The columns of `EvidenceRow` from which a piece of evidence is built, in the order of its fields."""


def assertion_values(assertion: Assertion, scope_id: int, recorded_at: datetime) -> Values:
    """Return the columns of an assertion."""
    subject_key, attribute_key = assertion.slot
    return {
        "id": assertion.id,
        "scope_id": scope_id,
        "session_id": assertion.session_id,
        "act": str(assertion.act),
        "kind": str(assertion.kind),
        "subject": assertion.subject,
        "attribute": assertion.attribute,
        "subject_key": subject_key,
        "attribute_key": attribute_key,
        "value": assertion.value,
        "statement": assertion.statement,
        "speaker": assertion.speaker,
        "authority": int(assertion.authority),
        "said_at": assertion.said_at,
        "time_is_guess": assertion.time_is_guess,
        "valid_from": assertion.valid_from,
        "valid_to": assertion.valid_to,
        "cue": str(assertion.cue) if assertion.cue else None,
        "limited_to": assertion.limited_to,
        "outcome": assertion.outcome,
        "is_flagged": is_assertion_flagged(assertion),
        "tags": "\n".join(assertion.tags) or None,
        "former_name": assertion.former_name,
        "utc_offset_s": offset_seconds(assertion.said_at),
        "recorded_at": recorded_at,
    }


def evidence_values(assertion: Assertion) -> list[Values]:
    """Return the columns of each piece of an assertion's evidence."""
    return [
        {"assertion_id": assertion.id, "ordinal": ordinal, **_fields(evidence), "kind": str(evidence.kind)}
        for ordinal, evidence in enumerate(assertion.evidence)
    ]


def assertion_of(row: AssertionRow, evidence: Iterable[EvidenceRow], scope: Scope) -> Assertion:
    """Return the assertion of a row and the rows of its evidence."""
    pieces = sorted(evidence, key=lambda piece: piece.ordinal)
    return assertion_of_columns(
        {name: getattr(row, name) for name in ASSERTION_COLUMNS},
        [[getattr(piece, name) for name in EVIDENCE_COLUMNS] for piece in pieces],
        scope,
    )


def assertion_of_columns(columns: Mapping[str, Any], evidence: Iterable[Sequence[Any]], scope: Scope) -> Assertion:
    """Return the assertion of these columns.

    `columns` has the values of `ASSERTION_COLUMNS` by name, as the driver or a row returns them. `evidence` has
    those of `EVIDENCE_COLUMNS` for each piece of evidence, in the order of the pieces.
    """
    said_at, valid_from, valid_to = (
        value and at_offset(parse_stored_instant(value), columns["utc_offset_s"])
        for value in (columns["said_at"], columns["valid_from"], columns["valid_to"])
    )
    cue, is_flagged = columns["cue"], columns["is_flagged"]
    return Assertion(
        id=columns["id"],
        scope=scope,
        session_id=columns["session_id"],
        act=SpeechAct(columns["act"]),
        kind=Kind(columns["kind"]),
        subject=columns["subject"],
        attribute=columns["attribute"],
        value=columns["value"],
        statement=columns["statement"],
        speaker=columns["speaker"],
        authority=Authority(columns["authority"]),
        said_at=said_at,
        evidence=tuple(map(evidence_of_columns, evidence)),
        time_is_guess=bool(columns["time_is_guess"]),
        valid_from=valid_from,
        valid_to=valid_to,
        cue=Cue(cue) if cue else None,
        limited_to=columns["limited_to"],
        outcome=columns["outcome"],
        is_flagged=None if is_flagged is None else bool(is_flagged),
        tags=tags_of(columns["tags"]),
        former_name=columns["former_name"],
    )


def evidence_of_columns(columns: Sequence[Any]) -> Evidence:
    """Return the piece of evidence with these values of `EVIDENCE_COLUMNS`."""
    return Evidence(EvidenceKind(columns[0]), *columns[1:])


def tags_of(text: str | None) -> tuple[str, ...]:
    """Return the tags in the text of a column, which has one tag on each line."""
    return tuple(text.split("\n")) if text else ()


def verdict_key(scope: Scope, earlier: Assertion, later: Assertion, judge: str) -> str:
    """Return the key of a judged pair: a hash of both statements, their dates and the judge."""
    judged = [
        (said.id, said.statement, said.said_at.isoformat(), _iso(said.valid_from), _iso(said.valid_to))
        for said in (earlier, later)
    ]
    return digest(str(scope), judged, judge, length=32)


def verdict_values(verdict: Verdict, key: str, scope_id: int, recorded_at: datetime) -> Values:
    """Return the columns of a verdict."""
    extent = None if verdict.extent is None else str(verdict.extent)
    columns = {**_fields(verdict), "relation": str(verdict.relation), "extent": extent}
    return {"key": key, "scope_id": scope_id, **columns, "recorded_at": recorded_at}


def verdict_of(row: VerdictRow) -> Verdict:
    """Return the verdict of a row."""
    return Verdict(
        row.earlier_id,
        row.later_id,
        Relation(row.relation),
        row.reason,
        row.judge,
        row.joins_subjects,
        row.parts_subjects,
        Extent(row.extent) if row.extent else None,
        row.remainder,
    )


def fact_values(history: FactHistory, scope_id: int) -> Values:
    """Return the columns of a fact."""
    subject_key, attribute_key = history.lead.slot
    return {
        "id": history.id,
        "scope_id": scope_id,
        "lead_id": history.lead.id,
        "subject_key": subject_key,
        "attribute_key": attribute_key,
        "spans": [
            {"start": _iso(span.start), "end": _iso(span.end), "ending": str(span.ending), "by": span.ended_by}
            for span in history.spans
        ],
        "undone_as": str(history.undone_as),
        "undone_by": history.undone_by,
        "contested_by": list(history.contested_by),
        "may_be": list(history.may_be),
        "exceptions": list(history.exceptions),
        "rewordings": [
            {"start": _iso(each.start), "end": _iso(each.end), "statement": each.statement, "ended_by": each.ended_by}
            for each in history.rewordings
        ],
    }


def fact_search_terms(history: FactHistory) -> str:
    """Return the words by which a search finds a fact."""
    lead, said_at = history.lead, history.members[0].said_at
    return f"{TOKENIZER}{fact_terms(said_at, lead.subject, lead.statement, lead.attribute, lead.value)}"


def member_values(history: FactHistory) -> list[Values]:
    """Return the columns of the rows that link a fact to each of its assertions."""
    return [
        {"fact_id": history.id, "ordinal": ordinal, "assertion_id": member.id}
        for ordinal, member in enumerate(history.members)
    ]


_JSON = json.JSONDecoder()


def parse_json_list(text: str) -> tuple[Any, ...]:
    """Return the items of a stored JSON list."""
    # A recall calls this several times for each fact, and `json.loads` would also look for blanks around the list.
    return tuple(_JSON.raw_decode(text)[0]) if text != "[]" else ()


def period_of(span: Values) -> ValidityPeriod:
    """Return a stored validity period."""
    end = datetime.fromisoformat(span["end"]) if span["end"] else None
    return ValidityPeriod(datetime.fromisoformat(span["start"]), end, _STATUSES[span["ending"]], span["by"])


def rewordings_of(stored: Iterable[Mapping[str, Any]]) -> tuple[Rewording, ...]:
    """Return the stored periods in which a fact is told in other words."""
    return tuple(
        Rewording(
            datetime.fromisoformat(each["start"]),
            datetime.fromisoformat(each["end"]) if each["end"] else None,
            each["statement"],
            each.get("ended_by"),
        )
        for each in stored
    )


def turn_values(turn: Turn, session_pk: int) -> Values:
    """Return the columns of a turn."""
    derived = {"utc_offset_s": offset_seconds(turn.said_at), **derived_turn_values(turn)}
    return {"session_pk": session_pk, **_fields(turn), "role": str(turn.role), **derived}


def derived_turn_values(turn: Turn) -> Values:
    """Return the columns that are computed from a turn: its search terms, and what an agent is shown of it.

    Both are None for a turn that is not a person's.
    """
    if turn.role is not Role.HUMAN:
        return {"search_terms": None, "shown": None}
    words = turn_terms(turn.said_at, turn.speaker, turn.text)
    return {"search_terms": f"{TOKENIZER}{words}", "shown": shown_text_to_store(turn.speaker, turn.text)}


def turn_of(row: TurnRow) -> Turn:
    """Return the turn of a row."""
    said_at = row.said_at and at_offset(row.said_at, row.utc_offset_s)
    return Turn(row.number, row.speaker, Role(row.role), row.text, said_at, row.message_id, row.time_is_guess)


def pack_state(state: Mapping[str, Any]) -> bytes:
    """Return a saved state as it is stored: compressed JSON."""
    return zlib.compress(json.dumps(state).encode())


def unpack_state(content: bytes) -> dict[str, Any]:
    """Return the saved state that `pack_state` packed. Raises `FileInvalid` if it is damaged or too large."""
    packed = zlib.decompressobj()
    try:
        text = packed.decompress(content, _LARGEST_PACKED_BYTES)
        if packed.unconsumed_tail:
            raise FileInvalid(_TOO_LARGE)
        state = json.loads(text) if packed.eof else None
    except (zlib.error, ValueError, RecursionError) as error:
        raise FileInvalid(f"a saved state cannot be read ({type(error).__name__})") from None
    if not isinstance(state, dict):
        raise FileInvalid("a saved state cannot be read (it was cut short, or is no JSON object)")
    return state


def check_packed_state(content: bytes) -> None:
    """Raise `FileInvalid` if a packed state is damaged, or larger than the states that are read."""
    state = unpack_state(content)
    if len(content) * _MOST_PACKED > LARGEST_STATE_BYTES:
        text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
        if len(text.encode("utf-8", "surrogatepass")) > LARGEST_STATE_BYTES:
            raise FileInvalid(_TOO_LARGE)


def pack_transcript(transcript: Transcript) -> bytes:
    """Return a transcript as it is stored with a dry run."""
    return zlib.compress(json.dumps(asdict(transcript), default=_iso).encode())


def unpack_transcript(content: bytes) -> Transcript:
    """Return the transcript that `pack_transcript` packed."""
    try:
        return _stored_transcripts().validate_python(unpack_state(content))
    except ValidationError as error:
        raise FileInvalid(f"the transcript of a dry run cannot be read ({type(error).__name__})") from None


@cache
def _stored_transcripts() -> TypeAdapter[Transcript]:
    return TypeAdapter(Transcript)  # making one takes a hundred times as long as using it


def _fields(value: Evidence | Turn | Verdict) -> Values:
    """Return the fields of a value by name. `dataclasses.asdict` would copy the values, which is slow."""
    return {name: getattr(value, name) for name in value.__slots__}


def _iso(instant: datetime | None) -> str | None:
    return instant.isoformat() if instant else None


def unconverted_columns(columns: Iterable[tuple[type[SQLModel], str]]) -> list[Any]:
    """Return columns whose values stay as the driver returns them, since most rows are never converted."""
    return [unconverted_column(table, name).label(f"column_{n}") for n, (table, name) in enumerate(columns)]


def unconverted_column(table: type[SQLModel], name: str) -> Any:
    """Return a column whose values stay as the driver returns them."""
    column = SQLModel.metadata.tables[str(table.__tablename__)].columns[name]
    return cast(column, String) if isinstance(column.type, JSON) else type_coerce(column, NullType())


def search_terms_column(table: type[SQLModel]) -> Any:
    """Return the stored search words without the version of the tokenizer, null if another version made them."""
    words, length = unconverted_column(table, "search_terms"), len(TOKENIZER)
    return case((func.substr(words, 1, length) == TOKENIZER, func.substr(words, length + 1)))
