"""A user's own data in readable form: facts with their quotes and dates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from afterword.facts.assertions import EvidenceKind
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope

_KINDS = {
    EvidenceKind.APPLICATION: "entered by the application",
    EvidenceKind.PERSON: "entered by a person",
    EvidenceKind.IMPORT: "imported",
}


def facts_as_markdown(scope: Scope, facts: Sequence[Fact]) -> str:
    """Return the facts of a scope as Markdown: first those that hold, then the others, with their quotes and dates."""
    ordered = sorted(facts, key=lambda fact: (not fact.is_served, fact.kind, fact.said_at, fact.id))
    lines = [f"# What is remembered of {scope}", "", f"{len(facts)} facts."]
    for is_served, group in groupby(ordered, key=lambda fact: fact.is_served):
        lines += ["", "## What holds" if is_served else "## What held once, or is open"]
        for fact in group:
            lines += _fact_lines(fact)
    return "\n".join(lines) + "\n"


def _fact_lines(fact: Fact) -> Iterable[str]:
    until = f" until {fact.valid_to:%Y-%m-%d}" if fact.valid_to else ""
    since = f"since {fact.valid_from:%Y-%m-%d}" if fact.valid_from else "no date"
    yield ""
    yield f"- **{fact.statement}** ({fact.kind}, {fact.status}, {since}{until}; said {fact.said_at:%Y-%m-%d})"
    for evidence in fact.evidence:
        place = _KINDS.get(evidence.kind) or f"session {evidence.session_id}, turn {evidence.turn}"
        quote = " ".join(evidence.quote.split())
        yield f'  - "{quote}" ({place})'
