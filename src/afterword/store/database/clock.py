"""Checks by the clock of the database: no instant that is stored for good may be later than this clock shows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from sqlmodel import Session, text

from afterword.errors import ClockAhead

MOST_AHEAD = timedelta(minutes=10)
"""How far a machine's clock may be ahead of the database's clock."""
_NOW = {
    "sqlite": "SELECT unixepoch('now')",
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
}


def clamp_to_present(transaction: Session, instants: Iterable[datetime]) -> list[datetime]:
    """Return the instants. Each that is far ahead of the database's clock is replaced by the present instant."""
    present = _database_now(transaction)
    return [present if at > present + MOST_AHEAD else at for at in instants]


def check_not_ahead(transaction: Session, now: datetime) -> None:
    """Raise `ClockAhead` if `now`, by this machine's clock, is far ahead of the database's clock.

    A tombstone with a later instant would suppress what is said until then. A job that is marked as done for a later
    time would not run until then.
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
