"""Formats facts as JSON for programs and as Markdown for people, with quotes and dates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby

from afterword.facts.assertions import Evidence, EvidenceKind
from afterword.facts.fact import SERVED_STATUSES, Fact, Status
from afterword.facts.scopes import Scope
from afterword.json_form import JsonForm, Nullable

_KINDS = {
    EvidenceKind.APPLICATION: "entered by the application",
    EvidenceKind.PERSON: "entered by a person",
    EvidenceKind.IMPORT: "imported",
}


evidence_json: JsonForm[Evidence] = JsonForm(
    "Evidence",
    "Words that a fact rests on. `session_id`, `turn` and `speaker` are null if they were not said in a session.",
    session_id=Nullable(str),
    turn=Nullable(int),
    speaker=Nullable(str),
    quote=str,
)
fact_json: JsonForm[Fact] = JsonForm(
    "Fact",
    "A fact with its evidence.",
    id=str,
    kind=str,
    subject=str,
    attribute=str,
    value=str,
    statement=str,
    status=str,
    tags=[str],
    valid_from=Nullable(datetime),
    valid_to=Nullable(datetime),
    recorded_at=Nullable(datetime),
    support=int,
    flagged=(bool, "is_flagged"),
    evidence=[evidence_json],
)


def facts_as_markdown(scope: Scope, facts: Sequence[Fact]) -> str:
    """Return the facts of a scope as Markdown, with quotes and dates: first the facts that hold, then the others."""
    ordered = sorted(facts, key=lambda fact: (fact.status not in SERVED_STATUSES, fact.kind, fact.said_at, fact.id))
    statements = {id_: fact.statement for fact in ordered for id_ in (*fact.assertion_ids, fact.id)}
    lines = [f"# What is remembered of {scope}", "", "1 fact." if len(facts) == 1 else f"{len(facts)} facts."]
    for is_served, group in groupby(ordered, key=lambda fact: fact.status in SERVED_STATUSES):
        lines += ["", "## What holds" if is_served else "## What held once, or is open"]
        for fact in group:
            lines += _fact_lines(fact, statements.get(fact.retired_by or ""))
    return "\n".join(lines) + "\n"


def _fact_lines(fact: Fact, successor_statement: str | None) -> Iterable[str]:
    until = f" until {fact.ends_at:%Y-%m-%d}" if fact.ends_at else ""
    since = f"since {fact.valid_from:%Y-%m-%d}" if fact.valid_from else "no date"
    yield ""
    status = "withdrawn" if fact.status is Status.RETRACTED else fact.status
    yield f"- **{fact.statement}** ({fact.kind}, {status}, {since}{until}; said {fact.said_at:%Y-%m-%d})"
    if successor_statement is not None:
        yield f"  - replaced by: {successor_statement}"
    for evidence in fact.evidence:
        place = _KINDS.get(evidence.kind) or f"session {evidence.session_id}, turn {evidence.turn}"
        quote = " ".join(evidence.quote.split())
        yield f'  - "{quote}" ({place})'
