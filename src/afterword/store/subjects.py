"""Whom a name means: labels that verdicts have joined or parted, and bare names that fit several people. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from afterword.store.assertions import OWNER, Assertion, Relation, Verdict, folded


class Subjects:
    """Which labels are one subject, and whose name leaves open who is meant.

    A join that a judge has found spreads to every statement under both labels, except where it would guess: the owner's
    label stands for much that is filed under it, and a bare name that fits two people says nothing of its other uses.
    There it holds for the judged pair alone.
    """

    def __init__(self, by_id: Mapping[str, Assertion], verdicts: Iterable[Verdict]) -> None:
        self._labels = {folded(one.subject): one.subject for one in sorted(by_id.values(), key=lambda one: one.order)}
        self._one = {label: label for label in self._labels}
        self._joined: dict[str, set[str]] = defaultdict(set)
        self._parted: dict[str, set[str]] = defaultdict(set)
        joins: list[tuple[str, str]] = []
        for verdict in verdicts:
            earlier, later = folded(by_id[verdict.earlier_id].subject), folded(by_id[verdict.later_id].subject)
            if verdict.parts_subjects:
                self._parted[verdict.earlier_id].add(verdict.later_id)
                self._parted[verdict.later_id].add(verdict.earlier_id)
            if verdict.joins_subjects:
                self._joined[verdict.earlier_id].add(later)
                self._joined[verdict.later_id].add(earlier)
                if verdict.relation is not Relation.BESIDE and OWNER not in (earlier, later):
                    joins.append((earlier, later))
        self._union(pair for pair in joins if not any(map(_is_bare, pair)))
        self._fits = self._fitting()
        self._union(pair for pair in joins if any(map(_is_bare, pair)) and not self._fits.keys() & set(pair))

    def are_one(self, one: Assertion, other: Assertion) -> bool:
        """Whether both are known to be about one subject."""
        if other.id in self._parted.get(one.id, ()):
            return False
        mine, others = folded(one.subject), folded(other.subject)
        is_judged = others in self._joined.get(one.id, ()) and mine in self._joined.get(other.id, ())
        return is_judged or self._one[mine] == self._one[others]

    def fitting(self, one: Assertion) -> tuple[str, ...]:
        """Return the names of all whom it may be about, where that is left open; empty where it is known."""
        label = folded(one.subject)
        fits = self._fits.get(label, set())
        if len({self._one[name] for name in self._joined.get(one.id, set()) & fits}) == 1:
            return ()
        if fits:
            return tuple(sorted(self._labels[name] for name in fits))
        return (one.subject, one.subject) if self._parted.get(one.id) and not self._joined.get(one.id) else ()

    def _union(self, joins: Iterable[tuple[str, str]]) -> None:
        for earlier, later in joins:
            old, new = self._one[earlier], self._one[later]
            keep = min(old, new)
            self._one = {label: keep if held in (old, new) else held for label, held in self._one.items()}

    def _fitting(self) -> dict[str, set[str]]:
        """Return the bare names that are part of the full names of two people, each with those names."""
        by_word: dict[str, set[str]] = defaultdict(set)
        for label, written in self._labels.items():
            if _is_full_name(written):
                for word in label.split():
                    by_word[word].add(label)
        return {
            word: names
            for word, names in by_word.items()
            if word in self._one and len({self._one[name] for name in names}) > 1
        }


def _is_bare(label: str) -> bool:
    return " " not in label


def _is_full_name(written: str) -> bool:
    """Whether a label reads as the full name of a person: two or three capitalised words of letters."""
    words = written.split()
    return 2 <= len(words) <= 3 and all(
        word[0].isupper() and len(word) > 1 and word.replace("-", "").replace("'", "").isalpha() for word in words
    )
