"""Which subject a name means: names that verdicts joined or parted, and bare names that fit several people. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from afterword.facts.assertions import OWNER, PERSON, Assertion, Authority, Relation, SpeechAct, Verdict
from afterword.facts.similarity import is_compared
from afterword.facts.validity.retirement_guard import refusal_reason
from afterword.facts.words import folded, plain_words, terms

LabelPair = tuple[str, str]
"""The folded names of two subjects."""

LEAST_COMMON_WORDS, LEAST_COMMON_SHARE = 2, 0.2
"""How many words two sentences need in common to be about one thing, and what share of the shorter one."""


def joined_labels(verdict: Verdict, by_id: Mapping[str, Assertion]) -> LabelPair | None:
    """Return the two labels that a verdict makes one subject in the whole scope, or None where it does not."""
    if not verdict.joins_subjects or verdict.relation is Relation.BESIDE:
        return None
    labels = folded(by_id[verdict.earlier_id].subject), folded(by_id[verdict.later_id].subject)
    return None if OWNER in labels else labels


def renamed_labels(said: Assertion) -> LabelPair | None:
    """Return the folded former name and the folded new name that a statement gives its subject, None if it has none.

    The owner is never renamed, and an agent's word renames nothing.
    """
    if said.former_name is None or said.act is not SpeechAct.STATE or said.authority is Authority.AGENT:
        return None
    labels = folded(said.former_name), folded(said.subject)
    return None if OWNER in labels or labels[0] == labels[1] or not labels[0] else labels


def undoes_renaming(verdict: Verdict, by_id: Mapping[str, Assertion]) -> bool:
    """Whether the deciding verdict on a pair takes the whole earlier statement back, and with it the new name."""
    if verdict.relation not in (Relation.RETRACTS, Relation.CORRECTS) or verdict.remainder is not None:
        return False
    earlier, later = by_id[verdict.earlier_id], by_id[verdict.later_id]
    return verdict.judge == PERSON or refusal_reason(earlier, later, is_same_subject=True) is None


def names_subject(later: Assertion, earlier: Assertion) -> bool:
    """Whether the sentence of a later statement contains the name of the subject of an earlier one.

    The owner has no name.
    """
    label = folded(earlier.subject)
    return label != OWNER and f" {' '.join(_words(label))} " in f" {' '.join(_words(later.statement))} "


def share_topic(earlier: Assertion, later: Assertion) -> bool:
    """Whether two sentences have at least two words in common, and at least a fifth of those of the shorter one."""
    first, second = ({stem for stem in terms(said.statement) if is_compared(stem)} for said in (earlier, later))
    common = len(first & second)
    return common >= LEAST_COMMON_WORDS and common >= LEAST_COMMON_SHARE * min(len(first), len(second))


def _may_join(verdict: Verdict, by_id: Mapping[str, Assertion]) -> bool:
    """Whether a verdict may join its two subjects for the judged pair.

    The owner gets no other name by a verdict alone: the statement about the owner, or its quotes, must contain it, or
    the two statements must speak of the same thing in the same words. If the owner spoke later, a name in the value of
    the other statement will do. A person's verdict may join them without such words.
    """
    earlier, later = by_id[verdict.earlier_id], by_id[verdict.later_id]
    is_owner = folded(earlier.subject) == OWNER, folded(later.subject) == OWNER
    if all(is_owner) or not any(is_owner) or verdict.judge == PERSON:
        return True
    owner, other = (earlier, later) if is_owner[0] else (later, earlier)
    said = {*_words(owner.statement), *(word for cited in owner.evidence for word in _words(cited.quote))}
    names = {folded(word) for word in plain_words(other.value) if word[0].isupper()}
    is_named = said.issuperset(_words(other.subject)) or (owner is later and not said.isdisjoint(names))
    return is_named or share_topic(earlier, later)


def _words(text: str) -> list[str]:
    return plain_words(folded(text))


class SubjectNames:
    """Which labels of a scope mean one subject, and which bare names fit several people.

    `spellings` maps every label (the folded name) to its latest spelling. `joins` are the pairs of labels that verdicts
    have made one. A join of a bare name that fits two people is left out, because it is unclear which of them is meant.
    """

    def __init__(self, spellings: Mapping[str, str], joins: Iterable[LabelPair]) -> None:
        self.spellings = spellings
        self._parents: dict[str, str] = {}
        joins = list(joins)
        self._join(pair for pair in joins if not any(map(_is_bare, pair)))
        self.ambiguous = self._ambiguous()
        self._join(pair for pair in joins if any(map(_is_bare, pair)) and not self.ambiguous.keys() & set(pair))

    def canonical(self, label: str) -> str:
        """Return the label that stands for all labels of the same subject."""
        while label in self._parents:
            label = self._parents[label]
        return label

    def other_labels(self, label: str) -> list[str]:
        """Return the other labels of the same subject, sorted."""
        labels = {*self._parents, *self._parents.values()}
        canonical = self.canonical(label)
        return sorted(other for other in labels - {label} if self.canonical(other) == canonical)

    def changed_labels(self, before: SubjectNames) -> set[str]:
        """Return the labels that mean another subject than they did before."""
        if self is before:
            return set()
        labels = {*self._parents, *before._parents, *self.ambiguous, *before.ambiguous}
        return {label for label in labels if self._meaning(label) != before._meaning(label)}

    def _meaning(self, label: str) -> tuple[object, ...]:
        people = {(self.spellings[name], self.canonical(name)) for name in self.ambiguous.get(label, ())}
        return self.canonical(label), people

    def _join(self, joins: Iterable[LabelPair]) -> None:
        for earlier, later in joins:
            parent, child = sorted((self.canonical(earlier), self.canonical(later)))
            if parent != child:
                self._parents[child] = parent

    def _ambiguous(self) -> dict[str, set[str]]:
        """Return the bare names that are part of the full names of two people, each with those names."""
        full_names: dict[str, set[str]] = defaultdict(set)
        for label, spelling in self.spellings.items():
            if _is_full_name(spelling):
                for word in set(label.split()) & self.spellings.keys():
                    full_names[word].add(label)
        return {word: names for word, names in full_names.items() if len(set(map(self.canonical, names))) > 1}


class Subjects:
    """Which of some statements are about one subject, and which statements may be about several people.

    A join by a judge holds for the judged pair. Where `names` has the join, it holds for all statements of both labels.
    """

    def __init__(self, by_id: Mapping[str, Assertion], verdicts: Iterable[Verdict], names: SubjectNames | None) -> None:
        verdicts = list(verdicts)
        self._joined: dict[str, set[str]] = defaultdict(set)
        self._parted: dict[str, set[str]] = defaultdict(set)
        for verdict in verdicts:
            for id_, other_id in ((verdict.earlier_id, verdict.later_id), (verdict.later_id, verdict.earlier_id)):
                if verdict.parts_subjects:
                    self._parted[id_].add(other_id)
                if verdict.joins_subjects and _may_join(verdict, by_id):
                    self._joined[id_].add(folded(by_id[other_id].subject))
        joins = (joined_labels(verdict, by_id) for verdict in verdicts)
        undone = {verdict.earlier_id for verdict in verdicts if undoes_renaming(verdict, by_id)}
        renames = (renamed_labels(said) for said in by_id.values() if said.id not in undone)
        self._names = names or SubjectNames(latest_spellings(by_id.values()), filter(None, (*joins, *renames)))

    def are_same(self, earlier: Assertion, later: Assertion) -> bool:
        """Whether both statements are known to be about one subject."""
        if self.are_parted(earlier, later):
            return False
        label, other_label = folded(earlier.subject), folded(later.subject)
        is_judged = other_label in self._joined.get(earlier.id, ()) and label in self._joined.get(later.id, ())
        return is_judged or self._names.canonical(label) == self._names.canonical(other_label)

    def are_parted(self, earlier: Assertion, later: Assertion) -> bool:
        """Whether a verdict says that the two are about two subjects of one name."""
        return later.id in self._parted.get(earlier.id, ())

    def possible_people(self, assertion: Assertion) -> tuple[str, ...]:
        """Return the names of all whom a statement may be about, or nothing where that is known."""
        names = self._names.ambiguous.get(folded(assertion.subject), set())
        joined = self._joined.get(assertion.id, set())
        if len(set(map(self._names.canonical, joined & names))) == 1:
            return ()
        if names:
            return tuple(sorted(self._names.spellings[name] for name in names))
        return (assertion.subject, assertion.subject) if self._parted.get(assertion.id) and not joined else ()


def latest_spellings(assertions: Iterable[Assertion]) -> dict[str, str]:
    """Return the latest spelling of every label."""
    in_order = sorted(assertions, key=lambda assertion: assertion.order)
    return {folded(assertion.subject): assertion.subject for assertion in in_order}


def _is_bare(label: str) -> bool:
    return " " not in label


def _is_full_name(spelling: str) -> bool:
    """Whether a name reads as the full name of a person: two or three capitalised words of letters."""
    words = spelling.split()
    return 2 <= len(words) <= 3 and all(
        word[0].isupper() and len(word) > 1 and word.replace("-", "").replace("'", "").isalpha() for word in words
    )
