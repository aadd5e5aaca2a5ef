"""What a store may use in a process, and how often a failed session is tried again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

GROWTH = 4


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """What a store may use in a process.

    `cache_bytes` is the memory for facts that were read, None for a quarter of what the process may use. The others are
    for PostgreSQL: how many connections are kept open (twice as many for a moment), and how long a statement may take.
    """

    pool_size: int = 10
    statement_timeout_s: float = 60.0
    cache_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a session is tried (`tries`, the first one included), and the pauses between, in seconds."""

    tries: int = 6
    first_pause_s: float = 60.0
    longest_pause_s: float = 6 * 3600.0

    def next_try_at(self, attempts: int, failed_at: datetime) -> datetime | None:
        """Return when to try again after so many failed attempts (from 1), None where it was tried often enough."""
        if attempts >= self.tries:
            return None
        pause_s = self.first_pause_s * float(GROWTH) ** min(attempts - 1, 32)
        return failed_at + timedelta(seconds=min(pause_s, self.longest_pause_s))
