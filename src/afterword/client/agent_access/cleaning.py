"""Facts, turns and search results as an agent may read them. Pure.

Every text is on one line, without invisible characters, disguised letters and tags of a block, as in the block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from afterword.client.results import SearchHit
from afterword.facts.assertions import Assertion, Evidence
from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.transcripts import SourceTurn
from afterword.privacy.prompt_injection import commands_assistant
from afterword.recall.block import safe_line

_TEXTS = ("subject", "attribute", "value", "statement", "limited_to", "outcome", "former_name")


def _texts(said: Fact | Assertion) -> dict[str, Any]:
    """Return the clean texts that a fact and an assertion both have."""
    texts: dict[str, Any] = {name: _cleaned(getattr(said, name)) for name in _TEXTS}
    return {**texts, "evidence": cleaned_evidence(said.evidence), "tags": tuple(map(safe_line, said.tags))}


def cleaned_fact(fact: Fact) -> Fact:
    """Return a fact with clean texts."""
    exceptions = tuple(map(cleaned_fact, fact.exceptions))
    return replace(fact, **_texts(fact), former=_cleaned(fact.former), exceptions=exceptions)


def cleaned_assertion(assertion: Assertion) -> Assertion:
    """Return an assertion with clean texts."""
    return replace(assertion, **_texts(assertion), speaker=_cleaned(assertion.speaker))


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


def cleaned_finding(finding: AgentFinding) -> AgentFinding:
    """Return a finding with clean texts, without the words of its session."""
    return replace(
        finding,
        agent=safe_line(finding.agent),
        topic=safe_line(finding.topic),
        statement=safe_line(finding.statement),
        source=_cleaned(finding.source),
        evidence=(),
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
        finding=cleaned_finding(hit.finding) if hit.finding is not None else None,
    )


def _cleaned(text: str | None) -> str | None:
    return None if text is None else safe_line(text)
