"""Compares two sequences and returns their equal and different runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

LARGEST_COMPARED = 4_000_000
"""Up to this product of their lengths, two sequences are compared completely."""
_MOST_STEPS = 30_000_000
"""The most steps of a comparison: the pairs of equal elements, for each element of the shorter sequence."""


def diff_runs(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[bool, int, int, int, int]]:
    """Return the runs of equal and of different elements of two sequences, in order.

    Each run is given by whether its elements are equal, its start and end in `old`, and its start and end in `new`.
    Comparing takes quadratic time, and more if elements repeat. So in sequences that are very long or repeat very few
    elements, everything between the common beginning and end counts as different.
    """
    head = _common_prefix_length(old, new)
    number_old, number_new = len(old) - head, len(new) - head
    in_new = Counter(new[head:])
    steps = min(number_old, number_new) * sum(in_new[element] for element in old[head:])
    if number_old * number_new <= LARGEST_COMPARED and steps <= _MOST_STEPS:
        matcher = SequenceMatcher(None, old[head:], new[head:], autojunk=False)
        runs = [(True, 0, head, 0, head)]
        for tag, start, end, new_start, new_end in matcher.get_opcodes():
            runs.append((tag == "equal", head + start, head + end, head + new_start, head + new_end))
        return runs
    tail = _common_prefix_length(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    return [
        (True, 0, head, 0, head),
        (False, head, old_end, head, new_end),
        (True, old_end, len(old), new_end, len(new)),
    ]


def _common_prefix_length(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """Return how many elements the two sequences have in common at their beginning."""
    return next(
        (place for place, (left, right) in enumerate(zip(old, new, strict=False)) if left != right),
        min(len(old), len(new)),
    )
