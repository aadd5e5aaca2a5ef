"""Pages of long lists. Pure."""

from __future__ import annotations

from dataclasses import dataclass

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
