"""What a store may use in a process. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """What a store may use in a process.

    `cache_bytes` is the memory for facts that were read, None for a quarter of what the process may use. The others are
    for PostgreSQL: how many connections are kept open (twice as many for a moment), and how long a statement may take.
    """

    pool_size: int = 10
    statement_timeout_s: float = 60.0
    cache_bytes: int | None = None
