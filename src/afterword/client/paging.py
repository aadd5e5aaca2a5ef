"""What pages of lists have in common: their rows can be iterated over and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Generic, TypeVar

Row = TypeVar("Row", covariant=True)


class Page(Generic[Row]):
    """A page of a list. `for row in page` goes over its rows, which its first field holds, and `len(page)` counts them.

    The other pages have to be read with `next`, as the description of each class says.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Row]:
        """Return an iterator over the rows of this page."""
        return iter(self._rows())

    def __len__(self) -> int:
        """Return the number of rows on this page."""
        return len(self._rows())

    def _rows(self) -> tuple[Row, ...]:
        page: Any = self
        rows: tuple[Row, ...] = getattr(page, fields(page)[0].name)
        return rows
