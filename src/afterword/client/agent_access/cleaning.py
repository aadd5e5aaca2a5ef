"""Facts, turns and search results as an agent may read them. Pure.

Every text is on one line, without invisible characters, disguised letters and tags of a block, as in the block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from afterword.client.results import SearchHit
from afterword.facts.assertions import Assertion, Evidence
from afterword.facts.fact import Fact
from afterword.facts.transcripts import SourceTurn
from afterword.privacy.prompt_injection import commands_assistant
from afterword.recall.block import safe_line


def cleaned_fact(fact: Fact) -> Fact:
    """Return a fact with clean texts."""
    return replace(
        fact,
        subject=safe_line(fact.subject),
        attribute=safe_line(fact.attribute),
        value=safe_line(fact.value),
        statement=safe_line(fact.statement),
        limited_to=_cleaned(fact.limited_to),
        outcome=_cleaned(fact.outcome),
        former=_cleaned(fact.former),
        former_name=_cleaned(fact.former_name),
        exceptions=tuple(map(cleaned_fact, fact.exceptions)),
        evidence=cleaned_evidence(fact.evidence),
        tags=tuple(map(safe_line, fact.tags)),
    )


def cleaned_assertion(assertion: Assertion) -> Assertion:
    """Return an assertion with clean texts."""
    return replace(
        assertion,
        subject=safe_line(assertion.subject),
        attribute=safe_line(assertion.attribute),
        value=safe_line(assertion.value),
        statement=safe_line(assertion.statement),
        speaker=_cleaned(assertion.speaker),
        limited_to=_cleaned(assertion.limited_to),
        outcome=_cleaned(assertion.outcome),
        former_name=_cleaned(assertion.former_name),
        tags=tuple(map(safe_line, assertion.tags)),
        evidence=cleaned_evidence(assertion.evidence),
    )


def cleaned_evidence(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence with clean quotes. A quote that commands an assistant becomes empty."""
    return tuple(
        replace(
            source,
            quote="" if commands_assistant(source.quote) else safe_line(source.quote),
            speaker=_cleaned(source.speaker),
        )
        for source in evidence
    )


def cleaned_turn(turn: SourceTurn) -> SourceTurn:
    """Return a turn that may be shown, with clean words."""
    return replace(turn, speaker=safe_line(turn.speaker), text=safe_line(turn.text))


def cleaned_hit(hit: SearchHit) -> SearchHit:
    """Return a search hit with clean texts."""
    return replace(
        hit,
        fact=cleaned_fact(hit.fact) if hit.fact is not None else None,
        turn=cleaned_turn(hit.turn) if hit.turn is not None else None,
    )


def _cleaned(text: str | None) -> str | None:
    return None if text is None else safe_line(text)
