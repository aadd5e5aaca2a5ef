"""The clock of the database. Instants that are stored for good must not be later than it shows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from sqlmodel import Session, text

from afterword.errors import ClockAhead

MOST_AHEAD = timedelta(minutes=10)
"""How far ahead of the database's clock a machine's may be."""
_NOW = {
    "sqlite": "SELECT unixepoch('now')",
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
}


def without_future(transaction: Session, instants: Iterable[datetime]) -> list[datetime]:
    """Return the instants, the present instead of those that are far ahead of the database's clock."""
    present = _database_now(transaction)
    return [present if at > present + MOST_AHEAD else at for at in instants]


def check_not_ahead(transaction: Session, now: datetime) -> None:
    """Raise `ClockAhead` if an instant that stands for the present is far ahead of the database's clock.

    What is said before a tombstone's instant stays forgotten, and a job that is marked as done until then is not done
    again.
    """
    database_now = _database_now(transaction)
    if now > database_now + MOST_AHEAD:
        raise ClockAhead(
            f"the clock says {now.isoformat(timespec='seconds')}, and the database's "
            f"{database_now.isoformat(timespec='seconds')}; set the clock of this machine, then try again"
        )


def _database_now(transaction: Session) -> datetime:
    connection = transaction.connection()
    seconds = connection.execute(text(_NOW[connection.dialect.name])).scalar_one()
    return datetime.fromtimestamp(float(seconds), UTC)
