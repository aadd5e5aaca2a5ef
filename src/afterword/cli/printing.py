"""What commands print: tables and sentences for people, or JSON for machines.

The library for tables is imported only when one is printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from afterword.cli.terminal import ResponsiveTable, terminal_safe_json, terminal_safe_text

if TYPE_CHECKING:
    from rich.console import Console

    from afterword import Fact, Spending

STATUS_STYLES = {"current": "green", "contested": "yellow", "pending": "yellow"}
NO_PERSON = "no human recognised"
"""The reason that the readers of saved states report if they took no speaker for a person."""
MAY_BE_PERSON = "may be a person's"
"""The reason that the readers report for turns of an agent that may be turns of a person."""
NAME_PEOPLE = "name the people with `humans` in a manifest, in `process` or in `record_session`"
NO_FACT_FOUND = "asked to be forgotten; no fact was found"
"""Shown for a request to forget that matches no fact."""
SKIPPED_TEXTS = {
    "secrets masked": "{count} secret{s} masked",
    NO_PERSON: f"no speaker was taken for a person, so nothing was learned: {NAME_PEOPLE}",
    MAY_BE_PERSON: f"{{count}} turn{{s}} of a speaker taken for an agent {MAY_BE_PERSON}: {NAME_PEOPLE}",
    "time in the future": "{count} time{s} in the future, taken as unknown",
    "off the record": "{count} turn{s} off the record",
    "forgotten": "{count} turn{s} left out: forgotten, or the same words as something forgotten",
}
"""How the command line says what was left out of a session, by the reason that the readers report."""


def console(*, to_errors: bool = False) -> Console:
    """Return the console for standard output, or with `to_errors` for standard error."""
    from afterword.cli.plain_console import PlainConsole

    return PlainConsole(to_errors=to_errors)


def print_lines(*lines: object, to_errors: bool = False) -> None:
    """Print texts and tables, each on lines of its own. What is None is left out."""
    out = console(to_errors=to_errors)
    for line in lines:
        if line is not None:
            out.print(terminal_safe_text(line) if isinstance(line, str) else line)


def print_result(value: Any, *lines: object, as_json: bool) -> None:
    """Print a value as JSON, or the lines that show it to people."""
    if as_json:
        print_json(value)
    else:
        print_lines(*lines)


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    sys.stdout.write(terminal_safe_json(json.dumps(value, ensure_ascii=False, indent=1)) + "\n")


def print_pairs(pairs: dict[str, Any], *, as_json: bool) -> None:
    """Print names with their values, as JSON or one per line."""
    shown = {
        name: ", ".join(f"{count} {key}" for key, count in value.items()) if isinstance(value, dict) else value
        for name, value in pairs.items()
    }
    words = {"None": "none", "True": "yes", "False": "no", "": "nothing"}
    lines = (f"{name.replace('_', ' ')}: {words.get(str(value), value)}" for name, value in shown.items())
    print_result(pairs, *lines, as_json=as_json)


def count_with_noun(count: int, noun: str) -> str:
    """Return a count with its noun: "1 fact", "2 facts", "2 memories"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("y") and noun != "key" else f"{count} {noun}s"


def date_text(instant: datetime | None) -> str:
    """Return the date of an instant in its own time zone, or an empty text for None."""
    return instant.date().isoformat() if instant else ""


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], styles: Sequence[str] | None = None
) -> ResponsiveTable:
    """Return a table, which becomes a list where the terminal is too narrow for it. Each row may have a style."""
    return ResponsiveTable(title, columns, rows, styles)


def status_text(fact: Fact) -> str:
    """Return the status of a fact as people read it."""
    return "withdrawn" if fact.status == "retracted" else str(fact.status)


def fact_table(facts: Sequence[Fact], *, title: str) -> ResponsiveTable:
    """Return a table of facts, coloured by status."""
    columns = ("id", "kind", "status", "statement", "since", "until", "times", "tags")
    rows = [
        (
            fact.id[:8],
            fact.kind,
            status_text(fact),
            fact.statement,
            date_text(fact.valid_from),
            date_text(fact.ends_at),
            fact.support,
            ", ".join(fact.tags),
        )
        for fact in facts
    ]
    return table(title, columns, rows, [STATUS_STYLES.get(fact.status, "dim") for fact in facts])


def skipped_text(reason: str, count: int) -> str:
    """Return a sentence that says what was left out of a session, and how often."""
    if reason not in SKIPPED_TEXTS:
        return f"skipped: {reason}: {count}"
    return SKIPPED_TEXTS[reason].format(count=count, s="s" if count > 1 else "")


def more_with_all_text(count: int) -> str:
    """Return how many further rows the option --all lists, as the end of a title. It is empty if there are none."""
    return f", {count} more with --all" if count else ""


def counts_text(counts: dict[str, int]) -> str:
    """Return counts in one line, by name."""
    names = {name: name.removesuffix("s") if count == 1 else name for name, count in counts.items()}
    return ", ".join(f"{counts[name]} {shown}" for name, shown in sorted(names.items()))


def cost_text(spent: Spending) -> str:
    """Return a cost in dollars, and how many calls have no known price."""
    if spent.usd is None:
        return "no price known"
    from afterword.client.values import dollars

    unpriced = f" and {spent.unpriced_calls} calls without a known price" if spent.unpriced_calls else ""
    return f"{dollars(spent.usd)}{unpriced}"


def spending_text(spent: Spending) -> str:
    """Return the calls, tokens and cost in one line."""
    if not spent.calls:
        return "no model was asked"
    estimated = f" ({spent.estimated_calls} calls estimated)" if spent.estimated_calls else ""
    tokens = f"{spent.prompt_tokens:,} prompt and {spent.completion_tokens:,} completion tokens"
    return f"{spent.calls:,} calls, {tokens}, {cost_text(spent)}{estimated}"
