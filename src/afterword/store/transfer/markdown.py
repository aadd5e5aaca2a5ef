"""One user's own data as they can read it: facts with the words that support them, and when. Pure."""

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
    """Return what is known of a scope as Markdown: what holds first, then what held, each with its quotes and dates."""
    ordered = sorted(facts, key=lambda fact: (not fact.is_served, fact.kind, fact.said_at, fact.id))
    lines = [f"# What is remembered of {scope}", "", f"{len(facts)} facts."]
    for is_served, group in groupby(ordered, key=lambda fact: fact.is_served):
        lines += ["", "## What holds" if is_served else "## What held once, or is open"]
        for fact in group:
            lines += _told(fact)
    return "\n".join(lines) + "\n"


def _told(fact: Fact) -> Iterable[str]:
    until = f" until {fact.valid_to:%Y-%m-%d}" if fact.valid_to else ""
    since = f"since {fact.valid_from:%Y-%m-%d}" if fact.valid_from else "no date"
    yield ""
    yield f"- **{fact.statement}** ({fact.kind}, {fact.status}, {since}{until}; said {fact.said_at:%Y-%m-%d})"
    for item in fact.evidence:
        where = _KINDS.get(item.kind) or f"session {item.session_id}, turn {item.turn}"
        quote = " ".join(item.quote.split())
        yield f'  - "{quote}" ({where})'
