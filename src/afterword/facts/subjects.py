"""Whom a name means: labels that verdicts have joined or parted, and bare names that fit several people. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from afterword.facts.assertions import OWNER, Assertion, Relation, Verdict
from afterword.facts.words import folded

Labels = tuple[str, str]


def joined_labels(verdict: Verdict, by_id: Mapping[str, Assertion]) -> Labels | None:
    """Return the two labels that a verdict makes one for every statement under them, None where it does not."""
    if not verdict.joins_subjects or verdict.relation is Relation.BESIDE:
        return None
    labels = folded(by_id[verdict.earlier_id].subject), folded(by_id[verdict.later_id].subject)
    return None if OWNER in labels else labels


class SubjectNames:
    """Which labels of a scope are one subject, and which bare names fit several people.

    `written` holds every label, folded, as it was written last; `joins` the labels that verdicts make one. A join
    spreads except where it would guess: a bare name that fits two people says nothing of its other uses.
    """

    def __init__(self, written: Mapping[str, str], joins: Iterable[Labels]) -> None:
        self.written = written
        self._one: dict[str, str] = {}
        joins = list(joins)
        self._union(pair for pair in joins if not any(map(_is_bare, pair)))
        self.fits = self._fitting()
        self._union(pair for pair in joins if any(map(_is_bare, pair)) and not self.fits.keys() & set(pair))

    def one(self, label: str) -> str:
        """Return the label that stands for all those that are one with this one."""
        while label in self._one:
            label = self._one[label]
        return label

    def other_than(self, before: SubjectNames) -> set[str]:
        """Return the labels that mean someone else than they did before."""
        labels = {*self._one, *before._one, *self.fits, *before.fits} if self is not before else set[str]()
        return {label for label in labels if self._meaning(label) != before._meaning(label)}

    def _meaning(self, label: str) -> tuple[object, ...]:
        return self.one(label), {(self.written[name], self.one(name)) for name in self.fits.get(label, ())}

    def _union(self, joins: Iterable[Labels]) -> None:
        for earlier, later in joins:
            keep, other = sorted((self.one(earlier), self.one(later)))
            if keep != other:
                self._one[other] = keep

    def _fitting(self) -> dict[str, set[str]]:
        """Return the bare names that are part of the full names of two people, each with those names."""
        by_word: dict[str, set[str]] = defaultdict(set)
        for label, written in self.written.items():
            if _is_full_name(written):
                for word in label.split():
                    if word in self.written:
                        by_word[word].add(label)
        return {word: names for word, names in by_word.items() if len({self.one(name) for name in names}) > 1}


class Subjects:
    """Which of some statements are about one subject, and of which it is open whom they are about.

    A join that a judge has found holds for the judged pair, and where `names` let it, for all under both labels.
    """

    def __init__(self, by_id: Mapping[str, Assertion], verdicts: Iterable[Verdict], names: SubjectNames | None) -> None:
        verdicts = list(verdicts)
        self._joined: dict[str, set[str]] = defaultdict(set)
        self._parted: dict[str, set[str]] = defaultdict(set)
        for verdict in verdicts:
            if verdict.parts_subjects:
                self._parted[verdict.earlier_id].add(verdict.later_id)
                self._parted[verdict.later_id].add(verdict.earlier_id)
            if verdict.joins_subjects:
                self._joined[verdict.earlier_id].add(folded(by_id[verdict.later_id].subject))
                self._joined[verdict.later_id].add(folded(by_id[verdict.earlier_id].subject))
        self._names = names or SubjectNames(
            labels_as_written(by_id.values()), filter(None, (joined_labels(one, by_id) for one in verdicts))
        )

    def are_one(self, one: Assertion, other: Assertion) -> bool:
        """Whether both are known to be about one subject."""
        if other.id in self._parted.get(one.id, ()):
            return False
        mine, others = folded(one.subject), folded(other.subject)
        is_judged = others in self._joined.get(one.id, ()) and mine in self._joined.get(other.id, ())
        return is_judged or self._names.one(mine) == self._names.one(others)

    def fitting(self, one: Assertion) -> tuple[str, ...]:
        """Return the names of all whom it may be about, where that is left open; empty where it is known."""
        fits = self._names.fits.get(folded(one.subject), set())
        if len({self._names.one(name) for name in self._joined.get(one.id, set()) & fits}) == 1:
            return ()
        if fits:
            return tuple(sorted(self._names.written[name] for name in fits))
        return (one.subject, one.subject) if self._parted.get(one.id) and not self._joined.get(one.id) else ()


def labels_as_written(assertions: Iterable[Assertion]) -> dict[str, str]:
    """Return every label, folded, as it was written last."""
    return {folded(one.subject): one.subject for one in sorted(assertions, key=lambda one: one.order)}


def _is_bare(label: str) -> bool:
    return " " not in label


def _is_full_name(written: str) -> bool:
    """Whether a label reads as the full name of a person: two or three capitalised words of letters."""
    words = written.split()
    return 2 <= len(words) <= 3 and all(
        word[0].isupper() and len(word) > 1 and word.replace("-", "").replace("'", "").isalpha() for word in words
    )
