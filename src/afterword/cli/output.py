"""How commands print: tables for people, JSON for machines. The library for tables is loaded when one is printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from afterword.cli.tables import ResponsiveTable
    from afterword.client.values import Fact, Scope, Spending

PIPED_WIDTH = 160
"""How wide tables are if the output is no terminal."""
STYLES = {"current": "green", "contested": "yellow", "pending": "yellow"}
NO_PRICE = "no price known"
NO_PERSON = "no human recognised"
"""The reason that a reader gives where it takes nobody for a person."""
NAME_PEOPLE = "name the people with `humans` in a manifest, in `process` or in `record_session`"


def console(*, to_errors: bool = False) -> Console:
    """Return a console that prints text as it is, never as markup."""
    from rich.console import Console

    plain = Console(stderr=to_errors, markup=False, highlight=False, soft_wrap=True)
    if not plain.is_terminal and "COLUMNS" not in os.environ:
        plain.width = PIPED_WIDTH
    return plain


def print_setting(scope: Scope, name: str, value: str | bool, *, as_json: bool, shown: str | None = None) -> None:
    """Print a setting of a memory, as JSON or in the words of `shown`."""
    if as_json:
        print_json({"scope": str(scope), name: value})
    else:
        console().print(f"{scope}: {value if shown is None else shown}")


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def print_pairs(pairs: dict[str, Any], *, as_json: bool) -> None:
    """Print names with their values, as JSON or a line for each."""
    if as_json:
        print_json(pairs)
        return
    for name, value in pairs.items():
        shown = ", ".join(f"{count} {key}" for key, count in value.items()) if isinstance(value, dict) else value
        if shown is None or isinstance(shown, bool):
            shown = {None: "none", True: "yes", False: "no"}[shown]
        console().print(f"{name.replace('_', ' ')}: {shown if shown != '' else 'nothing'}")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 fact", "2 facts", "2 memories"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("y") and noun != "key" else f"{count} {noun}s"


def day(instant: datetime | None) -> str:
    """Return the day of an instant where it was said (else in UTC), an empty text for none."""
    return instant.date().isoformat() if instant else ""


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> ResponsiveTable:
    """Return a plain table, which becomes a list where the terminal is too narrow for it."""
    from afterword.cli.tables import ResponsiveTable

    return ResponsiveTable(title, columns, rows)


def status_text(fact: Fact) -> str:
    """Return the status of a fact as people read it."""
    return "withdrawn" if fact.status == "retracted" else str(fact.status)


def fact_table(facts: Sequence[Fact], *, title: str) -> ResponsiveTable:
    """Return a table of facts, coloured by status."""
    from afterword.cli.tables import ResponsiveTable

    columns = ("id", "kind", "status", "statement", "since", "until", "times", "tags")
    rows = [
        (
            fact.id[:8],
            fact.kind,
            status_text(fact),
            fact.statement,
            day(fact.valid_from),
            day(fact.valid_to),
            fact.support,
            ", ".join(fact.tags),
        )
        for fact in facts
    ]
    return ResponsiveTable(title, columns, rows, [STYLES.get(fact.status, "dim") for fact in facts])


def skipped_text(reason: str, count: int) -> str:
    """Return in words what was left out of a session."""
    if reason == "secrets masked":
        return f"{count} secret{'s' if count > 1 else ''} masked"
    if reason == NO_PERSON:
        return f"no speaker was taken for a person, so nothing was learned: {NAME_PEOPLE}"
    if reason == "off the record":
        return f"{count} turn{'s' if count > 1 else ''} off the record"
    return f"skipped: {reason}: {count}"


def counts_text(counts: dict[str, int]) -> str:
    """Return counts in one line, by name."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def money(spent: Spending) -> str:
    """Return what it cost in dollars, and for how many calls no price is known."""
    if spent.usd is None:
        return NO_PRICE
    from afterword.client.values import dollars

    unpriced = f" and {spent.unpriced_calls} calls without a known price" if spent.unpriced_calls else ""
    return f"{dollars(spent.usd)}{unpriced}"


def spending_text(spent: Spending) -> str:
    """Return what was spent in one line."""
    if not spent.calls:
        return "no model was asked"
    estimated = f" ({spent.estimated_calls} calls estimated)" if spent.estimated_calls else ""
    tokens = f"{spent.prompt_tokens:,} prompt and {spent.completion_tokens:,} completion tokens"
    return f"{spent.calls:,} calls, {tokens}, {money(spent)}{estimated}"
