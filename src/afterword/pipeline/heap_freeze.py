"""Garbage collections of a batch that leave out what existed before it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_batches = 0


@contextmanager
def frozen_heap() -> Iterator[Callable[[], None]]:
    """Leave what exists now out of garbage collections, until the last of the batches that run at once ends.

    Yields a function that does the same for what exists when it is called. A collection of all objects, most of which
    belong to imported libraries, stops everything else for some tenths of a second. A program that has frozen its
    objects itself is left alone.
    """
    global _batches
    with _lock:
        is_frozen_elsewhere = not _batches and gc.get_freeze_count() > 0
        if not is_frozen_elsewhere:
            _batches += 1
    if is_frozen_elsewhere:
        yield lambda: None
        return
    gc.freeze()
    try:
        yield gc.freeze
    finally:
        with _lock:
            _batches -= 1
            if not _batches:
                gc.unfreeze()
