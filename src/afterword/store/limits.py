"""How much memory and how many connections a store may use, and how often a failed session is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

GROWTH = 4
"""How many times longer each pause between two tries is than the one before."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """What a store may use in one process.

    `cache_bytes` is the size of the cache of facts, None for a quarter of the memory that the process may use. The
    other two limits apply to PostgreSQL only: `pool_size` connections are kept open, and up to twice as many are used
    under load. A statement is cancelled after `statement_timeout_s`.
    """

    pool_size: int = 10
    statement_timeout_s: float = 60.0
    cache_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How many times a session is processed until it succeeds (at most `tries`), and the pauses between two tries."""

    tries: int = 6
    first_pause_s: float = 60.0
    longest_pause_s: float = 6 * 3600.0

    def next_try_at(self, attempts: int, failed_at: datetime) -> datetime | None:
        """Return when to try again after this many failed attempts (at least 1), None if no try is left."""
        if attempts >= self.tries:
            return None
        pause_s = self.first_pause_s * float(GROWTH) ** min(attempts - 1, 32)
        return failed_at + timedelta(seconds=min(pause_s, self.longest_pause_s))
