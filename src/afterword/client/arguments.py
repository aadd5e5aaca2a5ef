"""Checks the arguments of the Python interface, and converts them: names, dates, filters, cursors of pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from afterword.errors import ArgumentInvalid
from afterword.facts.assertions import Kind
from afterword.facts.fact import SERVED_STATUSES, Fact, FactFilter, Status
from afterword.facts.local_time import at_offset, offset_seconds
from afterword.facts.scopes import Scope
from afterword.facts.words import folded
from afterword.normal_form import composed
from afterword.store.reading.fact_rows import StoredFact
from afterword.store.runs import LARGEST_ID

Row = TypeVar("Row")
Choice = TypeVar("Choice", bound=StrEnum)

Instant = datetime | date | str
"""A datetime, a date, or either as an ISO 8601 text. Without a time zone, that of the scope applies.

A date stands for the end of that day, unless the description of the method says otherwise.
"""
NameOrNames = Collection[str] | str
"""One name, or several."""
Source = (
    str | Path | Sequence[str | Path] | Mapping[str, Any] | bytes | BaseModel | Sequence[Mapping[str, Any] | BaseModel]
) | None
"""What is processed: one or several paths, a saved state (a mapping, or the bytes of its JSON), messages, or None.

Messages are a list of mappings or of messages of AutoGen, or a `TaskResult`.
"""

EVERY_STATUS = "all"
LONGEST_TAG = 100
LONGEST_NUMBER = 18
"""The most digits that a number in a cursor may have."""


_FACT_CURSOR = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00 \w+", re.ASCII)


def scope_of(scope: Scope | str) -> Scope:
    """Return the scope, parsed if it is a text tenant/kind/id. Raises `ScopeInvalid`."""
    return scope if isinstance(scope, Scope) else Scope.parse(scope)


def instant(value: Instant, *, day_time: time = time.max, zone: tzinfo = UTC) -> datetime:
    """Return `value` as a datetime with a time zone. Raises `ArgumentInvalid` if it is not a date or time.

    A date becomes `day_time` of that day. A value without a time zone is in `zone`.
    """
    given = str(value)
    try:
        if isinstance(value, str):
            with suppress(ValueError):  # a date in any form of ISO 8601, such as 20260131 or 2026-W05-6
                value = date.fromisoformat(value)
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if not isinstance(value, datetime):
            value = datetime.combine(value, day_time)
        local = value if value.tzinfo else value.replace(tzinfo=zone)
        return at_offset(local, offset_seconds(local))
    except (ValueError, OverflowError):
        raise ArgumentInvalid(f"{given!r} is not a date or time; write 2026-01-31 or 2026-01-31T18:00:00Z") from None


def check_not_future(argument: str, at: datetime, *, now: datetime, margin: timedelta) -> None:
    """Raise `ArgumentInvalid` if `at`, which must not lie in the future, is later than `now` plus `margin`."""
    if at > now + margin:
        future, present = at.isoformat(timespec="seconds"), now.isoformat(timespec="seconds")
        raise ArgumentInvalid(f"{argument}={future} lies in the future; the present time is {present}")


def chosen_members(enum_class: type[Choice], names: NameOrNames, argument: str) -> frozenset[Choice]:
    """Return the members of `enum_class` that have these names.

    Raises `ArgumentInvalid` for an unknown name, and if nothing is named.
    """
    chosen = {names} if isinstance(names, str) else set(names) or {""}
    unknown = chosen - set(enum_class)
    if unknown:
        raise ArgumentInvalid(f"{argument}={sorted(unknown)[0]!r} is unknown; use one of {', '.join(enum_class)}")
    return frozenset(enum_class(name) for name in chosen)


def checked_tags(tags: NameOrNames) -> tuple[str, ...]:
    """Return tags as they are stored: without duplicates and line breaks.

    Raises `ArgumentInvalid` for a tag that is empty or longer than 100 characters.
    """
    names = tuple(dict.fromkeys(" ".join(composed(tag).split()) for tag in ([tags] if isinstance(tags, str) else tags)))
    if not all(0 < len(name) <= LONGEST_TAG for name in names):
        raise ArgumentInvalid(f"a tag is a text of 1 to {LONGEST_TAG} characters, not {min(names, key=len)!r}")
    return names


def checked_new_tags(tags: NameOrNames) -> tuple[str, ...]:
    """Return new tags as `checked_tags` does.

    Raises `ArgumentInvalid` also for a tag with a comma, because commas separate the tags in an address.
    """
    names = checked_tags(tags)
    if any("," in name for name in names):
        raise ArgumentInvalid("a tag has no comma; give several tags instead")
    return names


def fact_filter(
    status: NameOrNames | None, kind: NameOrNames | None, about: str | None, tags: NameOrNames
) -> FactFilter:
    """Return the filter that these arguments describe. Raises `ArgumentInvalid`.

    Without a status it selects the facts that hold: current and contested.
    """
    statuses: frozenset[Status] | None = SERVED_STATUSES
    if status is not None:
        statuses = None if status == EVERY_STATUS else chosen_members(Status, status, "status")
    if about is not None and not about.strip():
        raise ArgumentInvalid("about is empty; name whom or what the facts are about")
    words = frozenset(folded(about).split()) if about is not None else None
    kinds = None if kind is None else chosen_members(Kind, kind, "kind")
    return FactFilter(statuses, kinds, words, frozenset(checked_tags(tags)))


def page_after_cursor(
    rows: Sequence[Row], cursor_of: Callable[[Row], str], *, limit: int | None, after: str | None
) -> tuple[tuple[Row, ...], str | None]:
    """Return at most `limit` rows that follow the cursor `after`, and the cursor of the next page (None: no next page).

    `cursor_of` returns the cursor of a row. If the row of `after` no longer exists, the page begins with the next
    greater cursor. Raises `ArgumentInvalid` for a limit below 1, and for an `after` that is no cursor of a fact.
    """
    most, start = limit_plus_one(limit), 0
    if after is not None:
        if _FACT_CURSOR.fullmatch(after) is None:
            raise _cursor_invalid(after)
        places = [place for place, row in enumerate(rows) if cursor_of(row) == after]
        start = places[0] + 1 if places else sum(cursor_of(row) <= after for row in rows)
    return first_page(rows[start : None if most is None else start + most], cursor_of, limit=limit)


def check_limit(limit: int | None) -> None:
    """Raise `ArgumentInvalid` for a limit below 1, and for one that a database could not read."""
    if limit is not None and not 1 <= limit < LARGEST_ID:
        raise ArgumentInvalid(f"limit={limit} is not possible; give 1 or more, or None for all")


def limit_plus_one(limit: int | None) -> int | None:
    """Return `limit` plus 1: the row beyond a page shows that there is a next page. None stays None.

    Raises what `check_limit` raises.
    """
    check_limit(limit)
    return None if limit is None else limit + 1


def first_page(
    rows: Sequence[Row], cursor_of: Callable[[Row], str], *, limit: int | None
) -> tuple[tuple[Row, ...], str | None]:
    """Return the first `limit` of the rows, and the cursor of the next page, None if there are no more rows."""
    chosen = tuple(rows[:limit])
    return chosen, cursor_of(chosen[-1]) if len(chosen) < len(rows) else None


def fact_cursor(fact: Fact | StoredFact) -> str:
    """Return the cursor of a fact. Cursors sort like the facts: by the time of saying, then by id."""
    return f"{fact.said_at.astimezone(UTC).isoformat(timespec='microseconds')} {fact.id}"


def cursor_of_number(number: int) -> str:
    """Return the cursor of the row with this number. Cursors sort like the numbers."""
    return f"{number:012d}"


def number_of_cursor(cursor: str | None) -> int:
    """Return the number in a cursor that `cursor_of_number` returned, 0 for None. Raises `ArgumentInvalid`."""
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= LONGEST_NUMBER):
        raise _cursor_invalid(cursor)
    return min(int(cursor or 0), LARGEST_ID)


def _cursor_invalid(after: str) -> ArgumentInvalid:
    return ArgumentInvalid(f"after={after!r} is not a cursor; pass `next` of the previous page")
