"""Check by code what an extractor proposes: every candidate's words must stand in a person's turn. Pure.

The same for every extractor. What fails is returned with its reason, so that it can be shown to the extractor once and
counted; what passes becomes an assertion with the exact words of the turn as its evidence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum

from afterword.extractors.candidates import Candidate, Modality
from afterword.extractors.extractor import Rejection
from afterword.facts.assertions import OWNER, Assertion, Authority, Evidence, EvidenceKind, SpeechAct, assertion_id
from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.transcripts import Role, Transcript, Turn
from afterword.facts.words import folded
from afterword.privacy.prompt_injection import is_instruction, is_pasted_with_instruction
from afterword.privacy.redaction import is_masked

LONGEST = {"statement": 400, "value": 200, "subject": 100, "attribute": 60, "limited_to": 200, "outcome": 200}
FIRST_PERSON = frozenset({"user", "the user", "owner", "the owner", "i", "me", "myself"})
_LAST_SECOND = time(23, 59, 59)
_TYPOGRAPHIC = str.maketrans("‘’‚‛′‹›“”„‟″«»‐‑‒–—―−", "'" * 7 + '"' * 7 + "-" * 7)


class Reason(StrEnum):
    """Why a candidate was refused."""

    TURN_UNKNOWN = "turn_unknown"
    QUOTE_MISSING = "quote_missing"
    NOT_A_PERSON = "not_a_person"
    NOT_ACCEPTED = "not_accepted"
    NOT_ASSERTED = "not_asserted"
    SECRET = "secret"
    EMPTY = "empty"
    TOO_LONG = "too_long"
    BAD_TIME = "bad_time"
    QUARANTINED = "quarantined"
    FORGOTTEN = "forgotten"


FINAL = frozenset({Reason.NOT_ASSERTED, Reason.QUARANTINED, Reason.SECRET, Reason.FORGOTTEN})
"""Refusals that are not shown to the extractor: nothing about them can be mended."""

DETAILS = {
    Reason.TURN_UNKNOWN: "no such turn in this session",
    Reason.QUOTE_MISSING: "these words do not stand in the cited turn",
    Reason.NOT_A_PERSON: "no words of a person are cited",
    Reason.NOT_ACCEPTED: "an agent's words are cited, and no later words of a person that accept them",
    Reason.NOT_ASSERTED: "it was not stated as true",
    Reason.SECRET: "it is masked as a secret",
    Reason.EMPTY: "must not be empty",
    Reason.TOO_LONG: "is too long",
    Reason.BAD_TIME: "valid_to lies before valid_from",
    Reason.QUARANTINED: "it reads like an instruction to an assistant, not like something a person tells",
    Reason.FORGOTTEN: "it was forgotten since it was said",
}


@dataclass(frozen=True, slots=True)
class Grounding:
    """What passed and what did not; equal assertions are one."""

    assertions: tuple[Assertion, ...]
    rejections: tuple[Rejection, ...]


class _RefusedError(Exception):
    """A candidate fails a check; never leaves this module."""

    def __init__(self, reason: Reason, what: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = f"{what}: {DETAILS[reason]}" if what else DETAILS[reason]


@dataclass(frozen=True, slots=True)
class _Ground:
    """The session that candidates are checked against."""

    turns: Mapping[int, Turn]
    scope: Scope
    session_id: str
    owners: frozenset[str]
    assumed: frozenset[str]


def ground(
    candidates: Iterable[Candidate],
    transcript: Transcript,
    *,
    scope: Scope,
    session_id: str,
    owners: Iterable[str],
) -> Grounding:
    """Turn the candidates whose words stand in a person's turn into assertions, and refuse the others with a reason.

    Quotes are compared with runs of white space, typographic quotation marks, apostrophes and dashes folded, nothing
    else, and kept exactly as they stand in the turn. An agent's words count only beside a person's words of a later
    turn; words of tools, systems, memories and thoughts are left out. A request to take something back may be a
    question; everything else must be stated. What reads like an instruction to an assistant, or was pasted with one, is
    quarantined. Raises ValueError where a cited turn of a person has no time.
    """
    session = _Ground(
        turns={turn.number: turn for turn in transcript.turns},
        scope=scope,
        session_id=session_id,
        owners=frozenset(folded(name) for name in owners),
        assumed=frozenset(folded(name) for name in transcript.assumed),
    )
    passed: dict[str, Assertion] = {}
    rejections: list[Rejection] = []
    for candidate in candidates:
        try:
            assertion = _assertion(candidate, session)
        except _RefusedError as refusal:
            rejections.append(Rejection(candidate, refusal.reason.value, refusal.detail))
        else:
            passed.setdefault(assertion.id, assertion)
    return Grounding(tuple(passed.values()), tuple(rejections))


def _assertion(candidate: Candidate, session: _Ground) -> Assertion:
    _check_modality(candidate)
    valid_from, valid_to = _validity(candidate)
    evidence = _evidence(candidate, session)
    last, said_at = _last_said(evidence, session)
    subject = _text(_subject(_clean(candidate.subject), last.speaker, session), "subject")
    attribute = _text(snake_case(candidate.attribute), "attribute")
    value, statement = _text(_clean(candidate.value), "value"), _text(_clean(candidate.statement), "statement")
    if is_masked(value):
        raise _RefusedError(Reason.SECRET, "value")
    limited_to, outcome = _note(candidate.limited_to, "limited_to"), _note(candidate.outcome, "outcome")
    if candidate.act is SpeechAct.STATE:
        _check_harmless(evidence, session, subject, value, statement, limited_to, outcome)
    times = [at.isoformat() if at else None for at in (valid_from, valid_to, last.said_at)]
    content = (candidate.act, candidate.kind, subject, attribute, value, statement, *times)
    marks = (candidate.cue, limited_to, outcome, last.time_is_guess)
    return Assertion(
        id=assertion_id(session.scope, session.session_id, (*content, *marks), evidence),
        scope=session.scope,
        session_id=session.session_id,
        act=candidate.act,
        kind=candidate.kind,
        subject=subject,
        attribute=attribute,
        value=value,
        statement=statement,
        speaker=OWNER if folded(last.speaker) in session.owners else last.speaker,
        authority=Authority.STATED,
        said_at=said_at,
        evidence=evidence,
        time_is_guess=last.time_is_guess,
        valid_from=valid_from,
        valid_to=valid_to,
        cue=candidate.cue,
        limited_to=limited_to,
        outcome=outcome,
    )


def _last_said(evidence: tuple[Evidence, ...], session: _Ground) -> tuple[Turn, datetime]:
    """Return the last turn that is evidence, which is a person's, and its time."""
    last = session.turns[evidence[-1].turn or 0]
    if last.said_at is None:
        raise ValueError(f"session {session.session_id!r}: turn {last.number} has no time; date the transcript first")
    return last, last.said_at


def _check_modality(candidate: Candidate) -> None:
    asked_to_take_back = candidate.act is not SpeechAct.STATE and candidate.modality is Modality.ASKED
    if candidate.modality is not Modality.STATED and not asked_to_take_back:
        raise _RefusedError(Reason.NOT_ASSERTED, candidate.modality.value)


def _check_harmless(evidence: tuple[Evidence, ...], session: _Ground, *told: str | None) -> None:
    """Refuse what commands an assistant, or was pasted together with such a command."""
    pasted = any(
        is_pasted_with_instruction(
            session.turns[item.turn or 0].text, item.start or 0, (item.start or 0) + len(item.quote)
        )
        for item in evidence
    )
    if pasted or is_instruction(*told):
        raise _RefusedError(Reason.QUARANTINED)


def _is_person(turn: Turn) -> bool:
    return turn.role is Role.HUMAN


def _evidence(candidate: Candidate, session: _Ground) -> tuple[Evidence, ...]:
    """Return the citations that count, in the order of the turns, each word for word."""
    kept: dict[Evidence, None] = {}
    for citation in sorted(candidate.evidence, key=lambda item: item.turn):
        turn = session.turns.get(citation.turn)
        if turn is None:
            raise _RefusedError(Reason.TURN_UNKNOWN, str(citation.turn))
        if turn.role not in (Role.HUMAN, Role.AGENT):
            continue
        quote = find_quote(citation.quote, turn.text)
        if quote is None:
            raise _RefusedError(Reason.QUOTE_MISSING, citation.quote)
        start = turn.text.find(quote)
        kept[Evidence(EvidenceKind.TURN, quote, session.session_id, turn.number, turn.speaker, start)] = None
    evidence = tuple(kept)
    if not evidence:
        raise _RefusedError(Reason.NOT_A_PERSON)
    # In the order of turns: a person's words come last exactly if every agent's words have an acceptance after them.
    if not _is_person(session.turns[evidence[-1].turn or 0]):
        raise _RefusedError(Reason.NOT_ACCEPTED)
    return evidence


def _validity(candidate: Candidate) -> tuple[datetime | None, datetime | None]:
    first, last = candidate.valid_from, candidate.valid_to
    if first and last and last < first:
        raise _RefusedError(Reason.BAD_TIME, f"{first} to {last}")
    return _at(first, time.min), _at(last, _LAST_SECOND)


def _at(day: date | None, clock: time) -> datetime | None:
    return datetime.combine(day, clock, tzinfo=UTC) if day else None


def _subject(name: str, speaker: str, session: _Ground) -> str:
    """Return the canonical subject: the owner however called, the speaker for the first person, else the name.

    Who only may be a person says nothing of the owner, even by name.
    """
    if folded(name) in FIRST_PERSON:
        return OWNER if folded(speaker) in session.owners else speaker
    is_bystander = folded(speaker) in session.assumed - session.owners
    if session.scope.kind is not ScopeKind.USER or is_bystander:
        return name
    is_owner = folded(name) in session.owners or snake_case(name) == snake_case(session.scope.id)
    return OWNER if is_owner and name else name


def _clean(text: str) -> str:
    """Return the text on one line, without control characters and lone surrogates."""
    return " ".join("".join(" " if unicodedata.category(sign) in ("Cc", "Cs") else sign for sign in text).split())


def _text(text: str, what: str) -> str:
    if not text:
        raise _RefusedError(Reason.EMPTY, what)
    if len(text) > LONGEST[what]:
        raise _RefusedError(Reason.TOO_LONG, f"{what} ({len(text)} characters, at most {LONGEST[what]})")
    return text


def _note(text: str | None, what: str) -> str | None:
    cleaned = _clean(text or "")
    return _text(cleaned, what) if cleaned else None


def snake_case(text: str) -> str:
    """Return the words of a text in lower case, joined by underscores."""
    return re.sub(r"[\W_]+", "_", _clean(text).casefold()).strip("_")


def find_quote(quote: str, text: str) -> str | None:
    """Return the words of `text` that `quote` copies, exactly as they stand there, or None.

    Runs of white space, typographic quotation marks, apostrophes and dashes are the same; letter case is not. A quote
    without a letter or digit is none.
    """
    as_it_stands = quote.strip()
    if not any(sign.isalnum() for sign in as_it_stands):
        return None
    if as_it_stands in text:
        return as_it_stands
    wanted, _ = _fold(quote)
    plain, places = _fold(text)
    start = plain.find(wanted)
    if start < 0:
        return None
    return text[places[start] : places[start + len(wanted) - 1] + 1]


def _fold(text: str) -> tuple[str, list[int]]:
    """Return the text folded for comparison, and for each of its characters the place where it stands in `text`."""
    signs: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text.translate(_TYPOGRAPHIC)):
        if sign.isspace():
            if not signs or signs[-1] == " ":
                continue
            sign = " "
        signs.append(sign)
        places.append(place)
    if signs and signs[-1] == " ":
        signs.pop()
    return "".join(signs), places
