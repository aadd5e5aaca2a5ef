"""Read what agents found or advised from the answer of a model, and check it. Pure except for the protocol.

The words of a finding must stand in a turn of an agent whose findings the scope keeps. Findings are stored apart from
assertions, which are about what people said, and no fact is derived from a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, Field, field_validator

from afterword.extractors.candidates import Citation
from afterword.extractors.conversation import last_cited_turn
from afterword.extractors.extractor import Usage, Window
from afterword.extractors.quote_search import find_quote
from afterword.extractors.quote_support import quote_cut_from_denial
from afterword.extractors.said_words import (
    SaidWords,
    count_content_words,
    said_share,
    sentence_around,
    unsaid_names_and_numbers,
)
from afterword.facts.assertions import Evidence, EvidenceKind
from afterword.facts.findings import (
    LONGEST_SOURCE,
    LONGEST_STATEMENT,
    LONGEST_TOPIC,
    AgentFinding,
    FindingPolicy,
    FindingReview,
    ToolFindingPolicy,
    repeats_note,
)
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Transcript, Turn
from afterword.privacy.blanking import letters_and_digits
from afterword.privacy.normalisation import undisguised_text
from afterword.privacy.policy import Privacy
from afterword.privacy.prompt_injection import has_instruction_around, is_instruction
from afterword.privacy.redaction import count_masks

FEWEST_SAID = 0.5
"""The least share of a finding's content words that must stand in the cited turn."""
LONG_QUOTE_WORDS = 5
"""A quote of at least this many words that stands in an earlier turn of a person or a tool is not the agent's own."""
OWN_TOOLS = frozenset({"remember", "recall", "withdraw", "save_finding"})
"""The tools of afterword itself. What they return is no material from elsewhere."""

QuotePlace = tuple[str, int, int]
"""A quote in the text of its turn: `text[start:end]`."""


class FindingCandidate(BaseModel):
    """One thing that an agent found or advised."""

    kind: Literal["finding", "advice"] = "finding"
    statement: str = Field(description="One self-contained sentence.")
    topic: str = Field(description="What it is about, in one to four words.")
    evidence: list[Citation] = Field(description="The agent's turns and words that say it.")
    source: str | None = None
    expires: date | None = None

    @field_validator("expires", mode="wrap")
    @classmethod
    def _without_impossible_day(cls, value: Any, parse: Any) -> date | None:
        # A model sometimes writes "2026-02-30" or "soon". Then the finding expires after the usual time.
        try:
            day: date | None = parse(value)
        except ValueError:
            return None
        return day


class FindingsAnswer(BaseModel):
    """What agents found and advised in one transcript."""

    findings: list[FindingCandidate]


@dataclass(frozen=True, slots=True)
class FindingsExtraction:
    """The findings that were proposed for one window, and the usage."""

    candidates: tuple[FindingCandidate, ...]
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class FindingsExtractor(Protocol):
    """An extractor that can also extract what agents found. The offline rules cannot."""

    @property
    def findings_version(self) -> str:
        """A name of the extractor, its model and its prompt. It changes whenever answers may change."""

    async def extract_findings(self, window: Window, agents: Sequence[str], *, advice: bool) -> FindingsExtraction:
        """Return what these agents found in the window and, with `advice`, what they advised.

        Raises an `ExtractionError` if there was no answer.
        """


@dataclass(frozen=True, slots=True)
class GroundedFindings:
    """The findings that passed all checks, and how many candidates were refused, by reason."""

    findings: tuple[AgentFinding, ...]
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _CitedSession:
    """The session whose turns the candidates cite, and the policy of its scope."""

    turns: dict[int, Turn]
    scope: Scope
    session_id: str
    policy: FindingPolicy


class _RejectedError(Exception):
    """A candidate fails a check. The error is caught in this module."""


def ground_findings(
    candidates: Iterable[FindingCandidate],
    transcript: Transcript,
    *,
    scope: Scope,
    session_id: str,
    policy: FindingPolicy,
    privacy: Privacy,
) -> GroundedFindings:
    """Return the candidates that an agent of the policy really said, as findings without ids, and count the others.

    A candidate is refused if it cites anyone but such an agent, repeats or quotes somebody else's words, says more than
    the cited turn, repeats a note from memory, holds a secret, or reads like an instruction to an assistant. Findings
    after tool output wait for a review unless the policy keeps them. Raises ValueError if a cited turn has no time.
    """
    session = _CitedSession({turn.number: turn for turn in transcript.turns}, scope, session_id, policy)
    findings: dict[str, AgentFinding] = {}
    refused: Counter[str] = Counter()
    for candidate in candidates:
        try:
            finding = _grounded_finding(_masked_candidate(candidate, privacy), session)
        except _RejectedError as error:
            refused[str(error)] += 1
        else:
            findings.setdefault(finding.key, finding)
    return GroundedFindings(tuple(findings.values()), refused)


def _masked_candidate(candidate: FindingCandidate, privacy: Privacy) -> FindingCandidate:
    texts = (candidate.topic, candidate.source or "", *(cited.quote for cited in candidate.evidence))
    statement, topic, source, *quotes = privacy.mask_value_and_others("statement", candidate.statement, *texts)
    evidence = [Citation(turn=cited.turn, quote=text) for cited, text in zip(candidate.evidence, quotes, strict=True)]
    changes = {"statement": statement, "topic": topic, "source": source or None, "evidence": evidence}
    return candidate.model_copy(update=changes)


def _grounded_finding(candidate: FindingCandidate, session: _CitedSession) -> AgentFinding:
    is_advice, policy = candidate.kind == "advice", session.policy
    if is_advice and not policy.advice:
        raise _RejectedError("advice")
    evidence = _evidence(candidate, session)
    statement = _checked_line(candidate.statement, LONGEST_STATEMENT)
    topic = _checked_line(candidate.topic, LONGEST_TOPIC)
    places = [_quote_place(cited, session.turns) for cited in evidence]
    _check_harmless(statement, topic, places)
    last, said_at = last_cited_turn(evidence, session.turns, session.session_id)
    turns_so_far = [turn for turn in session.turns.values() if turn.number <= last.number]
    _check_own_words(places, turns_so_far)
    _check_statement(statement, evidence, places, turns_so_far)
    after_tools = any(turn.role is Role.TOOL and turn.speaker not in OWN_TOOLS for turn in turns_so_far)
    waits = after_tools and policy.agents_with_tools is ToolFindingPolicy.REVIEW
    return AgentFinding(
        id="",
        scope=session.scope,
        session_id=session.session_id,
        agent=last.speaker,
        topic=topic,
        statement=statement,
        said_at=said_at,
        expires_at=policy.expiry(said_at, _end_of_future_day(candidate.expires, said_at)),
        is_advice=is_advice,
        source=_said_source(candidate.source, turns_so_far),
        after_tools=after_tools,
        review=FindingReview.WAITING if waits else FindingReview.OPEN,
        evidence=evidence,
    )


def _quote_place(cited: Evidence, turns: dict[int, Turn]) -> QuotePlace:
    start = cited.start or 0
    return turns[cited.turn or 0].text, start, start + len(cited.quote)


def _check_harmless(statement: str, topic: str, places: Sequence[QuotePlace]) -> None:
    """Raise `_RejectedError` for secrets, and for texts that read like an instruction to an assistant."""
    if count_masks((statement, topic)):
        raise _RejectedError("secret")
    if any(has_instruction_around(*place) for place in places) or is_instruction(statement, topic):
        raise _RejectedError("quarantined")


def _end_of_future_day(day: date | None, said_at: datetime) -> datetime | None:
    """Return the end of the last day, in UTC, or None if there is no day or it is over before the finding was made."""
    end = datetime.combine(day, time(23, 59, 59), tzinfo=UTC) if day else None
    return end if end and end > said_at else None


def _evidence(candidate: FindingCandidate, session: _CitedSession) -> tuple[Evidence, ...]:
    """Return the citations as evidence. They must all quote the same agent, whose findings are kept."""
    evidence: list[Evidence] = []
    for cited in sorted(candidate.evidence, key=lambda cited: cited.turn):
        turn = session.turns.get(cited.turn)
        if turn is None:
            raise _RejectedError("turn_unknown")
        if turn.role is not Role.AGENT or not session.policy.keeps_findings_of(turn.speaker):
            raise _RejectedError("not_an_agent")
        quote = find_quote(cited.quote, turn.text)
        if quote is None:
            raise _RejectedError("quote_missing")
        start = turn.text.find(quote)
        evidence.append(Evidence(EvidenceKind.TURN, quote, session.session_id, turn.number, turn.speaker, start))
    if len({cited.speaker for cited in evidence}) != 1:
        raise _RejectedError("not_an_agent")
    return tuple(dict.fromkeys(evidence))


def _check_own_words(places: Sequence[QuotePlace], turns_so_far: Sequence[Turn]) -> None:
    """Raise `_RejectedError` for words that the agent only repeats or quotes from a person or a tool."""
    others = [letters_and_digits(turn.text) for turn in turns_so_far if turn.role in (Role.HUMAN, Role.TOOL)]
    for text, start, end in places:
        is_quoted = text[text.rfind("\n", 0, start) + 1 :].lstrip().startswith(">")
        is_long, words = len(text[start:end].split()) >= LONG_QUOTE_WORDS, letters_and_digits(text[start:end])
        if is_quoted or (is_long and any(words in said for said in others)):
            raise _RejectedError("not_own_words")


def _check_statement(
    statement: str, evidence: Sequence[Evidence], places: Sequence[QuotePlace], turns_so_far: Sequence[Turn]
) -> None:
    """Raise `_RejectedError` if the cited turns do not support the statement, or if it repeats a note from memory."""
    cited = {piece.turn for piece in evidence}
    said = SaidWords("\n".join(turn.text for turn in turns_so_far if turn.number in cited))
    everybody = SaidWords(
        "\n".join(f"{turn.speaker}\n{turn.text}" for turn in turns_so_far if turn.role is not Role.SYSTEM)
    )
    if quote_cut_from_denial(statement, [sentence_around(*place) for place in places]):
        raise _RejectedError("unsupported")
    is_said = not count_content_words(statement) or said_share(statement, said) >= FEWEST_SAID
    if not is_said or unsaid_names_and_numbers(statement, everybody):
        raise _RejectedError("unsupported")
    if repeats_note(statement, (turn.text for turn in turns_so_far if turn.role is Role.MEMORY)):
        raise _RejectedError("known")


def _said_source(source: str | None, turns_so_far: Sequence[Turn]) -> str | None:
    """Return the source that the agent names for a finding, or None unless it stands in a turn of the session."""
    text = " ".join(undisguised_text(source or "").split())
    is_said = any(text in turn.text for turn in turns_so_far)
    return text if text and is_said and len(text) <= LONGEST_SOURCE and not is_instruction(text) else None


def _checked_line(text: str, longest: int) -> str:
    """Return the text on one line. Raises `_RejectedError` if it is empty or too long."""
    plain = " ".join(undisguised_text("".join(sign if sign.isprintable() else " " for sign in text)).split())
    if not plain:
        raise _RejectedError("empty")
    if len(plain) > longest:
        raise _RejectedError("too_long")
    return plain
