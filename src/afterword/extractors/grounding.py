"""Check what an extractor proposes: every candidate must quote words that stand in a person's turn. Pure.

The checks are the same for every extractor. A rejected candidate is returned with the reason, so that it can be counted
and shown to the extractor once more. An accepted one becomes an assertion with the exact words of the turn as evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import NamedTuple

from afterword.extractors.candidate_texts import checked_candidate_text, clean_line, cleaned_optional_text
from afterword.extractors.candidates import Candidate, Citation, Modality
from afterword.extractors.conversation import CitedConversation, last_cited_turn
from afterword.extractors.extractor import Rejection
from afterword.extractors.quote_search import find_quote
from afterword.extractors.quote_support import (
    QuotedWords,
    Support,
    first_repeated_quote,
    quote_cut_from_denial,
    stands_in_own_words,
    statement_support,
    unsupported_names_and_numbers,
    withdrawal_support,
)
from afterword.extractors.rejection_reasons import RejectedError, RejectionReason
from afterword.extractors.said_words import unsaid_subject_names
from afterword.facts.assertions import (
    OWNER,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Kind,
    SpeechAct,
    assertion_id,
)
from afterword.facts.safety import must_never_be_missed
from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.transcripts import Role, Transcript, Turn
from afterword.facts.words import folded, snake_case
from afterword.privacy.foreign.stretches import FILLER, fill_foreign_stretches, foreign_stretches_by_turn
from afterword.privacy.off_record import is_off_record
from afterword.privacy.prompt_injection import has_instruction_around, is_instruction
from afterword.privacy.record_requests import HIDDEN
from afterword.privacy.redaction import is_only_masks

FIRST_PERSON = frozenset({"user", "the user", "owner", "the owner", "i", "me", "myself"})
FIRST_YEAR, LAST_YEAR = 1000, 2999
"""The first and last year in which a fact may begin or end. Other years may overflow when a time is converted."""

_LAST_SECOND = time(23, 59, 59)


@dataclass(frozen=True, slots=True)
class Grounding:
    """The accepted candidates as assertions, without duplicates, and the rejected ones."""

    assertions: tuple[Assertion, ...]
    rejections: tuple[Rejection, ...]


_OFF_RECORD = Candidate(kind=Kind.ENTITY, subject=HIDDEN, attribute=HIDDEN, value=HIDDEN, statement=HIDDEN, evidence=[])


@dataclass(frozen=True, slots=True)
class _CitedSession:
    turns: Mapping[int, Turn]
    scope: Scope
    session_id: str
    owners: frozenset[str]
    assumed_people: frozenset[str]
    own_texts: Mapping[int, str]
    conversation: CitedConversation


@dataclass(frozen=True, slots=True)
class _CitedQuote:
    """A quote with its place in a turn. `own_words` is the part of it that the speaker did not paste or quote."""

    turn: Turn
    text: str
    start: int
    own_words: str

    @property
    def has_pasted_words(self) -> bool:
        return self.own_words != self.text

    def evidence(self, session_id: str) -> Evidence:
        return Evidence(EvidenceKind.TURN, self.text, session_id, self.turn.number, self.turn.speaker, self.start)


def ground(
    candidates: Iterable[Candidate],
    transcript: Transcript,
    *,
    scope: Scope,
    session_id: str,
    owners: Iterable[str],
) -> Grounding:
    """Make assertions of candidates whose words stand in a person's turn, and reject the others with a reason.

    Quotes may differ from the turn as `find_quote` allows, but the evidence has the exact words of the turn. An agent's
    words count only together with words of a person in a later turn. Not counted are words of tools, systems, memories
    and thoughts, and words that a person pasted or quoted. A request to withdraw something may have the form of a
    question. Every other sentence that is quoted must be a statement. A candidate that reads like an instruction to an
    assistant, or was pasted together with one, is rejected as quarantined.

    Raises ValueError if a cited turn of a person has no time.
    """
    candidates = tuple(candidates)
    if not candidates:
        return Grounding((), ())
    session = _cited_session(candidates, transcript, scope=scope, session_id=session_id, owners=owners)
    accepted: dict[str, Assertion] = {}
    rejections: list[Rejection] = []
    for candidate in candidates:
        try:
            assertion = _assertion(candidate, session)
        except RejectedError as error:
            shown = _OFF_RECORD if error.reason is RejectionReason.OFF_RECORD else candidate
            rejections.append(Rejection(shown, error.reason.value, error.detail))
        else:
            accepted.setdefault(assertion.id, assertion)
    return Grounding(tuple(accepted.values()), tuple(rejections))


def _cited_session(
    candidates: Sequence[Candidate], transcript: Transcript, *, scope: Scope, session_id: str, owners: Iterable[str]
) -> _CitedSession:
    """Return what the checks need of a session. Pasted words are looked for only in the cited turns."""
    cited = {citation.turn for candidate in candidates for citation in candidate.evidence}
    stretches = zip(transcript.turns, foreign_stretches_by_turn(transcript.turns, numbers=cited), strict=True)
    own_texts = {turn.number: fill_foreign_stretches(turn.text, pasted) for turn, pasted in stretches if pasted}
    turns = {turn.number: turn for turn in transcript.turns}
    # Pasted text is replaced by a line break, so that the words before and after it are separate sentences.
    own = {number: replace(turns[number], text=text.replace(FILLER, "\n")) for number, text in own_texts.items()}
    return _CitedSession(
        turns=turns,
        scope=scope,
        session_id=session_id,
        owners=frozenset(folded(name) for name in owners),
        assumed_people=frozenset(folded(name) for name in transcript.assumed),
        own_texts=own_texts,
        conversation=CitedConversation(turns | own, sorted(cited), people=(*transcript.humans, scope.id)),
    )


def _assertion(candidate: Candidate, session: _CitedSession) -> Assertion:
    _check_on_record(candidate, session)
    _check_modality(candidate)
    _check_days(candidate)
    evidence = _evidence(candidate, session)
    last, said_at = last_cited_turn(evidence, session.turns, session.session_id)
    texts = _clean_texts(candidate, last.speaker, session)
    _check_texts(texts, candidate, evidence, session)
    assertion = Assertion(
        id="",
        scope=session.scope,
        session_id=session.session_id,
        act=candidate.act,
        kind=candidate.kind,
        subject=texts.subject,
        attribute=texts.attribute,
        value=texts.value,
        statement=texts.statement,
        speaker=OWNER if folded(last.speaker) in session.owners else last.speaker,
        authority=Authority.STATED,
        said_at=said_at,
        evidence=evidence,
        time_is_guess=last.time_is_guess,
        valid_from=_instant_of_day(candidate.valid_from, time.min, said_at),
        valid_to=_instant_of_day(candidate.valid_to, _LAST_SECOND, said_at),
        cue=candidate.cue,
        limited_to=texts.limited_to,
        outcome=texts.outcome,
        is_flagged=candidate.flagged
        or must_never_be_missed(candidate.kind, texts.statement, texts.attribute, texts.value),
        former_name=_former_name(candidate, texts.subject, session),
    )
    return replace(assertion, id=_id_of_assertion(assertion, is_flagged=candidate.flagged))


def _id_of_assertion(assertion: Assertion, *, is_flagged: bool) -> str:
    """Return the id of an assertion. `is_flagged` says whether the extractor flagged it."""
    dates = (assertion.valid_from, assertion.valid_to, assertion.said_at)
    times = [at.isoformat() if at else None for at in dates]
    slot = (assertion.act, assertion.kind, assertion.subject, assertion.attribute)
    marks = (assertion.cue, assertion.limited_to, assertion.outcome, assertion.time_is_guess)
    # Older assertions have no such marks, and must keep their ids.
    newer_marks = (is_flagged, assertion.former_name) if is_flagged or assertion.former_name else ()
    content = (*slot, assertion.value, assertion.statement, *times, *marks, *newer_marks)
    return assertion_id(assertion.scope, assertion.session_id, content, assertion.evidence)


class _CandidateTexts(NamedTuple):
    """The texts of a candidate after their checks, in clean form."""

    subject: str
    attribute: str
    value: str
    statement: str
    limited_to: str | None
    outcome: str | None


def _clean_texts(candidate: Candidate, speaker: str, session: _CitedSession) -> _CandidateTexts:
    """Return the texts of a candidate. Reject empty and overlong ones, and a value that is nothing but masks."""
    subject = checked_candidate_text(_resolved_subject(clean_line(candidate.subject), speaker, session), "subject")
    attribute = checked_candidate_text(snake_case(candidate.attribute), "attribute")
    value = checked_candidate_text(clean_line(candidate.value), "value")
    statement = checked_candidate_text(clean_line(candidate.statement), "statement")
    if is_only_masks(value):
        raise RejectedError(RejectionReason.SECRET, "value")
    limited_to = cleaned_optional_text(candidate.limited_to, "limited_to")
    return _CandidateTexts(
        subject, attribute, value, statement, limited_to, cleaned_optional_text(candidate.outcome, "outcome")
    )


def _check_texts(
    texts: _CandidateTexts, candidate: Candidate, evidence: tuple[Evidence, ...], session: _CitedSession
) -> None:
    """Reject texts that the quotes do not support, that are copied from a memory or an agent, or that are commands."""
    subject, _, value, statement, limited_to, outcome = texts
    _check_harmless(evidence, session, subject, value, statement, limited_to, outcome)
    if subject == OWNER and (repeated := first_repeated_quote(evidence, session.turns)):
        raise RejectedError(RejectionReason.PASTED, repeated)
    quoted = session.conversation.quoted_words(evidence, _acceptance_turn(candidate, evidence, session))
    _check_subject(subject, statement, session.turns[evidence[-1].turn or 0].speaker, quoted)
    _check_support(candidate.act, quoted, value, statement, limited_to, outcome)


def _check_on_record(candidate: Candidate, session: _CitedSession) -> None:
    cited = (session.turns.get(citation.turn) for citation in candidate.evidence)
    if any(turn is not None and is_off_record(turn) for turn in cited):
        raise RejectedError(RejectionReason.OFF_RECORD)


def _check_modality(candidate: Candidate) -> None:
    is_request_to_withdraw = candidate.act is not SpeechAct.STATE and candidate.modality is Modality.ASKED
    if candidate.modality is not Modality.STATED and not is_request_to_withdraw:
        raise RejectedError(RejectionReason.NOT_ASSERTED, candidate.modality.value)


def _check_harmless(evidence: tuple[Evidence, ...], session: _CitedSession, *texts: str | None) -> None:
    """Reject texts that read like an instruction to an assistant, and quotes that stand beside one."""
    places = ((session.turns[cited.turn or 0].text, cited.start or 0, len(cited.quote)) for cited in evidence)
    stand_beside_one = any(has_instruction_around(text, start, start + length) for text, start, length in places)
    if stand_beside_one or is_instruction(*texts):
        raise RejectedError(RejectionReason.QUARANTINED)


def _acceptance_turn(candidate: Candidate, evidence: tuple[Evidence, ...], session: _CitedSession) -> int | None:
    """Return the turn in which, by the candidate, a person accepts an agent's words, None if it is not after these."""
    turns = [session.turns[cited.turn or 0] for cited in evidence]
    last_of_agents = max((turn.number for turn in turns if turn.role is Role.AGENT), default=0)
    is_possible = candidate.accepted_in is not None and candidate.accepted_in > last_of_agents
    return candidate.accepted_in if is_possible else None


def _former_name(candidate: Candidate, subject: str, session: _CitedSession) -> str | None:
    """Return the former name of the subject, or None if the candidate has none that differs from the subject.

    A former name joins all facts under both names. So the candidate is rejected if nobody said the former name or the
    subject in the conversation, or if the former name is the owner's.
    """
    name = cleaned_optional_text(candidate.former_name, "former_name")
    if name is None or folded(name) == folded(subject):
        return None
    was_owner = _resolved_subject(name, "", session) == OWNER or folded(name) in FIRST_PERSON
    said = session.conversation.own_words_of_everybody
    is_named = not was_owner and not unsaid_subject_names(subject, "", said)
    if not (subject == OWNER or is_named) or not said.contains_name(name):
        raise RejectedError(RejectionReason.UNSUPPORTED, f"former_name {name}")
    return name


def _check_subject(subject: str, statement: str, speaker: str, quoted: QuotedWords) -> None:
    """Reject a subject with a name that nobody said. The owner's and the speaker's names need not be said."""
    unsaid = unsaid_subject_names(subject, statement, quoted.everybody_words)
    if unsaid and subject != OWNER and folded(subject) != folded(speaker):
        raise RejectedError(RejectionReason.UNSUPPORTED, f"{', '.join(unsaid)} in the subject")


def _check_support(act: SpeechAct, quoted: QuotedWords, value: str, statement: str, *optional: str | None) -> None:
    """Reject a candidate that its quoted sentences do not support, or that rests on an agent's unaccepted words."""
    details = "\n".join(filter(None, optional))
    if act is SpeechAct.STATE:
        if quote := quote_cut_from_denial(f"{value}\n{statement}", quoted.quotes):
            raise RejectedError(RejectionReason.UNSUPPORTED, f"“{quote}” is cut out of a denial")
        support = statement_support(value, statement, details, quoted)
    else:
        support = withdrawal_support(value, statement, quoted)
    if support is Support.UNSAID:
        unsaid = ", ".join(unsupported_names_and_numbers(value, statement, details, quoted))
        raise RejectedError(RejectionReason.UNSUPPORTED, f"{unsaid} in the statement or value" if unsaid else value)
    if support is Support.NOT_ACCEPTED:
        is_named = bool(quoted.acceptance) or act is not SpeechAct.STATE
        raise RejectedError(RejectionReason.NOT_ACCEPTED, quoted.last_sentence if is_named else "accepted_in")


def _evidence(candidate: Candidate, session: _CitedSession) -> tuple[Evidence, ...]:
    """Return the citations of people's and agents' own words as evidence, in the order of the turns."""
    citations = sorted(candidate.evidence, key=lambda citation: citation.turn)
    quotes = [quote for citation in citations if (quote := _cited_quote(citation, session))]
    _check_own_words(candidate, quotes)
    own = (quote for quote in quotes if not quote.has_pasted_words or any(map(str.isalnum, quote.own_words)))
    evidence = tuple(dict.fromkeys(quote.evidence(session.session_id) for quote in own))
    if not evidence:
        raise RejectedError(RejectionReason.NOT_A_PERSON)
    # An agent's words count only if a person accepts them later. So the last cited words must be a person's.
    if session.turns[evidence[-1].turn or 0].role is not Role.HUMAN:
        raise RejectedError(RejectionReason.NOT_ACCEPTED)
    return evidence


def _cited_quote(citation: Citation, session: _CitedSession) -> _CitedQuote | None:
    """Return the quote with its place in the turn, or None if neither a person nor an agent speaks in the turn."""
    turn = session.turns.get(citation.turn)
    if turn is None:
        raise RejectedError(RejectionReason.TURN_UNKNOWN, str(citation.turn))
    if turn.role not in (Role.HUMAN, Role.AGENT):
        return None
    own_text = session.own_texts.get(turn.number, turn.text)
    # The same words may stand in a pasted stretch and outside of it.
    quote = find_quote(citation.quote, own_text) or find_quote(citation.quote, turn.text)
    if quote is None:
        raise RejectedError(RejectionReason.QUOTE_MISSING, citation.quote)
    start = own_text.find(quote) if quote in own_text else turn.text.find(quote)
    return _CitedQuote(turn, quote, start, own_text[start : start + len(quote)].replace(FILLER, ""))


def _check_own_words(candidate: Candidate, quotes: Sequence[_CitedQuote]) -> None:
    """Reject a candidate that quotes pasted words, unless the speakers' own words support it as well."""
    pasted = [quote for quote in quotes if quote.has_pasted_words]
    own_words = " ".join(quote.own_words for quote in quotes)
    if not pasted or stands_in_own_words(candidate.value, own_words, " ".join(quote.text for quote in pasted)):
        return
    if is_instruction(candidate.value, candidate.statement) or any(
        has_instruction_around(quote.turn.text, quote.start, quote.start + len(quote.text)) for quote in pasted
    ):
        raise RejectedError(RejectionReason.QUARANTINED)
    raise RejectedError(RejectionReason.PASTED, pasted[0].text)


def _check_days(candidate: Candidate) -> None:
    first, last = candidate.valid_from, candidate.valid_to
    for day in filter(None, (first, last)):
        if not FIRST_YEAR <= day.year <= LAST_YEAR:
            raise RejectedError(RejectionReason.BAD_TIME, str(day))
    if first and last and last < first:
        raise RejectedError(RejectionReason.BAD_TIME, f"{first} to {last}")


def _instant_of_day(day: date | None, clock: time, said_at: datetime) -> datetime | None:
    """Return the day at this time of day, in the speaker's time zone."""
    return datetime.combine(day, clock, tzinfo=said_at.tzinfo) if day else None


def _resolved_subject(name: str, speaker: str, session: _CitedSession) -> str:
    """Return the subject: `user` for any name of the owner, the speaker for "I" or "me", else the name itself.

    If the speaker is only assumed to be a person, the owner's name is kept as it is.
    """
    if folded(name) in FIRST_PERSON:
        return OWNER if folded(speaker) in session.owners else speaker
    is_bystander = folded(speaker) in session.assumed_people - session.owners
    if session.scope.kind is not ScopeKind.USER or is_bystander:
        return name
    is_owner = folded(name) in session.owners or snake_case(name) == snake_case(session.scope.id)
    return OWNER if is_owner and name else name
