"""How long something took, without the time in which the machine let this process wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_EVERY_S = 0.01
LONGEST_LOOK_S = 0.05
"""The clock is read every `LOOK_EVERY_S`. Of a longer gap, only this much counts: the process did not run meanwhile."""


@contextmanager
def running_time() -> Iterator[Callable[[], float]]:
    """Yield a function that returns for how many seconds this process has run since."""
    counted_s, is_over = 0.0, threading.Event()

    def count() -> None:
        nonlocal counted_s
        looked_at = time.monotonic()
        while not is_over.wait(LOOK_EVERY_S):
            now = time.monotonic()
            counted_s += min(now - looked_at, LONGEST_LOOK_S)
            looked_at = now

    counting = threading.Thread(target=count, name="running time")
    counting.start()
    try:
        yield lambda: counted_s
    finally:
        is_over.set()
        counting.join()
