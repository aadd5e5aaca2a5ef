"""Pages of long lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

PER_PAGE = 50
SHOWN_STATUSES = ("current", "contested", "pending", "superseded", "retracted", "expired")
"""The statuses of facts in the order in which pages name them."""


@dataclass(frozen=True, slots=True)
class PageOfList:
    """Where a page stands in a list."""

    number: int
    last: int
    total: int
    per_page: int = PER_PAGE

    @classmethod
    def of(cls, total: int, number: int, per_page: int = PER_PAGE) -> PageOfList:
        """Return the page of this number, or the last one if there are fewer."""
        last = max(1, -(-total // per_page))
        return cls(min(number, last), last, total, per_page)

    @property
    def first_row(self) -> int:
        """The number of the first row of the page, from 0."""
        return (self.number - 1) * self.per_page


class Counted(Protocol):
    """A part of a list, with how many rows there are in all."""

    @property
    def total(self) -> int: ...  # noqa: D102 - described above


Rows = TypeVar("Rows", bound=Counted)


async def page_or_last(rows_from: Callable[[int], Awaitable[Rows]], number: int) -> tuple[Rows, PageOfList]:
    """Return the rows of a page and where it stands; of the last page, if there are fewer.

    `rows_from` reads the rows of a page from its first row on.
    """
    rows = await rows_from((number - 1) * PER_PAGE)
    page = PageOfList.of(rows.total, number)
    return (rows if page.number == number else await rows_from(page.first_row)), page
