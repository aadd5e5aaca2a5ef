"""How commands speak: tables for people, JSON for machines, errors in one line, exit codes 0, 1 and 2."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time
from typing import Any, TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from afterword import settings
from afterword.errors import AfterwordError
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope
from afterword.privacy.policy import OFF_THE_RECORD, SECRETS_MASKED
from afterword.store.database.engine import Store, open_store

T = TypeVar("T")

PIPED_WIDTH = 160
"""How wide tables are where no terminal says."""
STYLES = {Status.CURRENT: "green", Status.CONTESTED: "yellow", Status.PENDING: "yellow"}


class UsageInvalid(AfterwordError):
    """An option or argument cannot be used."""

    is_usage = True


def console(*, to_errors: bool = False) -> Console:
    """Return a console; text is printed as it is, never read as markup."""
    made = Console(stderr=to_errors, markup=False, highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = PIPED_WIDTH
    return made


def run(work: Callable[[Store], Awaitable[T]], *, create: bool = False) -> T:
    """Open the configured store, do the work in it, and close it; it is made only where `create` says so."""

    async def go() -> T:
        async with opened(create=create) as store:
            return await work(store)

    return asyncio.run(go())


@asynccontextmanager
async def opened(*, create: bool = False) -> AsyncIterator[Store]:
    """Open the configured store for one command; it is made only where `create` says so."""
    configured = settings.load()
    privacy, connections = configured.privacy.policy(), configured.store.connections()
    store = await open_store(configured.store.url, create=create, privacy=privacy, connections=connections)
    try:
        yield store
    finally:
        await store.close()


def told_skipped(reason: str, count: int) -> str:
    """Return in words what was left out of a session."""
    if reason == SECRETS_MASKED:
        return f"{count} secret{'s' if count > 1 else ''} masked"
    if reason == OFF_THE_RECORD:
        return f"{count} turn{'s' if count > 1 else ''} off the record"
    return f"skipped: {reason}: {count}"


def chosen_scope(user: str | None, scope: str | None) -> Scope | None:
    """Return the scope that the options name, None where they name none."""
    if user is not None and scope is not None:
        raise UsageInvalid("give --user or --scope, not both")
    if scope is not None:
        return Scope.parse(scope)
    return Scope.user(user) if user is not None else None


def needed_scope(user: str | None, scope: str | None) -> Scope:
    """Return the scope that the options name. Raises `UsageInvalid` where they name none: no scope, no answer."""
    found = chosen_scope(user, scope)
    if found is None:
        raise UsageInvalid("say whose memory: --user NAME, or --scope tenant/kind/id")
    return found


def instant(text: str | None) -> datetime:
    """Return the instant that an option names, now where it names none.

    A bare date is the end of that day; a time without an offset is UTC.
    """
    if text is None:
        return datetime.now(UTC)
    try:
        if len(text) == len("2026-01-01"):
            return datetime.combine(date.fromisoformat(text), time.max, tzinfo=UTC)
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageInvalid(f"{text!r} is no instant; write 2026-01-31 or 2026-01-31T18:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def iso(moment: datetime | None) -> str | None:
    """Return an instant as ISO 8601 in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


def day(moment: datetime | None) -> str:
    """Return the day of an instant for people."""
    return moment.astimezone(UTC).date().isoformat() if moment else ""


def fact_json(fact: Fact) -> dict[str, Any]:
    """Return a fact as machines get it."""
    return {
        "id": fact.id,
        "kind": str(fact.kind),
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "statement": fact.statement,
        "status": str(fact.status),
        "valid_from": iso(fact.valid_from),
        "valid_to": iso(fact.valid_to),
        "recorded_at": iso(fact.recorded_at),
        "support": fact.support,
        "evidence": [
            {"session_id": item.session_id, "turn": item.turn, "speaker": item.speaker, "quote": item.quote}
            for item in fact.evidence
        ],
    }


def fact_table(facts: Sequence[Fact], *, title: str) -> Table:
    """Return a table of facts for people."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("id", "kind", "status", "statement", "since", "until", "support"):
        table.add_column(name, overflow="fold", no_wrap=name != "statement")
    for fact in facts:
        style = STYLES.get(fact.status, "dim")
        cells = [fact.id[:8], fact.kind, fact.status, fact.statement, day(fact.valid_from), day(fact.valid_to)]
        table.add_row(*(Text(cell, style=style) for cell in (*map(str, cells), str(fact.support))))
    return table


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Return a plain table for people."""
    made = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        made.add_column(name, overflow="fold")
    for row in rows:
        made.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    return made
