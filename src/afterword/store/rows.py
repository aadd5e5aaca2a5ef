"""Between rows and the values that we reason about."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from afterword.facts.assertions import (
    Assertion,
    Authority,
    Cue,
    Evidence,
    EvidenceKind,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
    digest,
)
from afterword.facts.fact import Status
from afterword.facts.scopes import Scope
from afterword.facts.timeline import FactHistory, ValidityPeriod
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    TurnRow,
    VerdictRow,
)

Values = dict[str, Any]


def assertion_values(one: Assertion, scope_id: int, recorded_at: datetime) -> Values:
    """Return the columns of an assertion."""
    subject_key, attribute_key = one.slot
    return {
        "id": one.id,
        "scope_id": scope_id,
        "session_id": one.session_id,
        "act": str(one.act),
        "kind": str(one.kind),
        "subject": one.subject,
        "attribute": one.attribute,
        "subject_key": subject_key,
        "attribute_key": attribute_key,
        "value": one.value,
        "statement": one.statement,
        "speaker": one.speaker,
        "authority": int(one.authority),
        "said_at": one.said_at,
        "time_is_guess": one.time_is_guess,
        "valid_from": one.valid_from,
        "valid_to": one.valid_to,
        "cue": str(one.cue) if one.cue else None,
        "limited_to": one.limited_to,
        "outcome": one.outcome,
        "recorded_at": recorded_at,
    }


def evidence_values(one: Assertion) -> list[Values]:
    """Return the columns of each piece of an assertion's evidence."""
    return [
        {
            "assertion_id": one.id,
            "ordinal": ordinal,
            "kind": str(item.kind),
            "quote": item.quote,
            "session_id": item.session_id,
            "turn": item.turn,
            "speaker": item.speaker,
            "start": item.start,
        }
        for ordinal, item in enumerate(one.evidence)
    ]


def assertion_of(row: AssertionRow, evidence: Iterable[EvidenceRow], scope: Scope) -> Assertion:
    """Return the assertion that a row and its evidence hold."""
    return Assertion(
        id=row.id,
        scope=scope,
        session_id=row.session_id,
        act=SpeechAct(row.act),
        kind=Kind(row.kind),
        subject=row.subject,
        attribute=row.attribute,
        value=row.value,
        statement=row.statement,
        speaker=row.speaker,
        authority=Authority(row.authority),
        said_at=row.said_at,
        evidence=tuple(
            Evidence(EvidenceKind(item.kind), item.quote, item.session_id, item.turn, item.speaker, item.start)
            for item in sorted(evidence, key=lambda item: item.ordinal)
        ),
        time_is_guess=row.time_is_guess,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        cue=Cue(row.cue) if row.cue else None,
        limited_to=row.limited_to,
        outcome=row.outcome,
    )


def verdict_key(scope: Scope, earlier: Assertion, later: Assertion, judge: str) -> str:
    """Return the key under which a judged pair is kept: what was said, when, and who judged."""
    return digest(str(scope), [_judged(earlier), _judged(later)], judge, length=32)


def _judged(one: Assertion) -> list[str | None]:
    return [one.id, one.statement, one.said_at.isoformat(), _iso(one.valid_from), _iso(one.valid_to)]


def verdict_values(verdict: Verdict, key: str, scope_id: int, recorded_at: datetime) -> Values:
    """Return the columns of a verdict."""
    return {
        "key": key,
        "scope_id": scope_id,
        "earlier_id": verdict.earlier_id,
        "later_id": verdict.later_id,
        "relation": str(verdict.relation),
        "reason": verdict.reason,
        "judge": verdict.judge,
        "joins_subjects": verdict.joins_subjects,
        "parts_subjects": verdict.parts_subjects,
        "recorded_at": recorded_at,
    }


def verdict_of(row: VerdictRow) -> Verdict:
    """Return the verdict that a row holds."""
    return Verdict(
        row.earlier_id,
        row.later_id,
        Relation(row.relation),
        row.reason,
        row.judge,
        row.joins_subjects,
        row.parts_subjects,
    )


def fact_values(course: FactHistory, scope_id: int) -> Values:
    """Return the columns of a fact."""
    subject_key, attribute_key = course.lead.slot
    return {
        "id": course.id,
        "scope_id": scope_id,
        "lead_id": course.lead.id,
        "subject_key": subject_key,
        "attribute_key": attribute_key,
        "spans": [
            {"start": _iso(span.start), "end": _iso(span.end), "ending": str(span.ending), "by": span.by}
            for span in course.spans
        ],
        "undone_as": str(course.undone_as),
        "undone_by": course.undone_by,
        "contested_by": list(course.contested_by),
        "may_be": list(course.may_be),
    }


def member_values(course: FactHistory) -> list[Values]:
    """Return the rows that tie a fact to its assertions."""
    return [
        {"fact_id": course.id, "ordinal": ordinal, "assertion_id": one.id} for ordinal, one in enumerate(course.members)
    ]


def history_of(row: FactRow, members: Sequence[FactAssertionRow], assertions: Mapping[str, Assertion]) -> FactHistory:
    """Return the course that a fact's rows hold."""
    return FactHistory(
        lead=assertions[row.lead_id],
        members=tuple(assertions[member.assertion_id] for member in sorted(members, key=lambda one: one.ordinal)),
        spans=tuple(
            ValidityPeriod(
                datetime.fromisoformat(span["start"]),
                datetime.fromisoformat(span["end"]) if span["end"] else None,
                Status(span["ending"]),
                span["by"],
            )
            for span in row.spans
        ),
        undone_as=Status(row.undone_as),
        undone_by=row.undone_by,
        contested_by=tuple(row.contested_by),
        may_be=tuple(row.may_be),
    )


def turn_values(turn: Turn, session_pk: int) -> Values:
    """Return the columns of a turn."""
    return {
        "session_pk": session_pk,
        "number": turn.number,
        "speaker": turn.speaker,
        "role": str(turn.role),
        "text": turn.text,
        "said_at": turn.said_at,
        "message_id": turn.message_id,
        "time_is_guess": turn.time_is_guess,
    }


def turn_of(row: TurnRow) -> Turn:
    """Return the turn that a row holds."""
    return Turn(row.number, row.speaker, Role(row.role), row.text, row.said_at, row.message_id, row.time_is_guess)


def pack_transcript(transcript: Transcript) -> bytes:
    """Return a transcript as it is kept with a dry run."""
    return zlib.compress(json.dumps(asdict(transcript), default=_iso).encode())


def unpack_transcript(content: bytes) -> Transcript:
    """Return the transcript that `packed` has packed."""
    values = json.loads(zlib.decompress(content))
    return Transcript(
        turns=tuple(_unpacked_turn(one) for one in values["turns"]),
        layout=values["layout"],
        humans=tuple(values["humans"]),
        skipped=values["skipped"],
        time_basis=TimeBasis(values["time_basis"]) if values["time_basis"] else None,
        assumed=tuple(values["assumed"]),
    )


def _unpacked_turn(values: Values) -> Turn:
    said_at = datetime.fromisoformat(values["said_at"]) if values["said_at"] else None
    return Turn(**{**values, "role": Role(values["role"]), "said_at": said_at})


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
