"""The clock of the database. Instants that are stored for good must not be later than it shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlmodel import Session, text

from afterword.errors import ClockAhead

MOST_AHEAD = timedelta(minutes=10)
"""How far ahead of the database's clock a machine's may be."""
_NOW = {
    "sqlite": "SELECT unixepoch('now')",
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
}


def check_not_ahead(transaction: Session, now: datetime) -> None:
    """Raise `ClockAhead` if an instant that stands for the present is far ahead of the database's clock.

    What is said before a tombstone's instant stays forgotten, and a job that is marked as done until then is not done
    again.
    """
    connection = transaction.connection()
    seconds = connection.execute(text(_NOW[connection.dialect.name])).scalar_one()
    database_now = datetime.fromtimestamp(float(seconds), UTC)
    if now > database_now + MOST_AHEAD:
        raise ClockAhead(
            f"the clock says {now.isoformat(timespec='seconds')}, and the database's "
            f"{database_now.isoformat(timespec='seconds')}; set the clock of this machine, then try again"
        )
