"""The similarity of two assertions by their words, and an index that finds assertions that may affect another. Pure.

The similarity depends only on the two assertions, not on how rare a word is elsewhere. So it stays the same when other
assertions are added.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from afterword.facts.assertions import EVERYTHING, OWNER, Assertion, Authority, Order, SpeechAct
from afterword.facts.persistent_map import LazyMap, PersistentMap, group_ids, regroup_ids
from afterword.facts.words import folded, terms
from afterword.text_caches import text_cache

ATTRIBUTE_WEIGHT, VALUE_WEIGHT, ALL_WORDS_WEIGHT, CROSS_WEIGHT = 1.0, 0.6, 2.0, 0.5
"""The weight of full agreement between the attributes, between the values, between all words, and between the
attribute of one assertion and all words of the other."""

MENTION_BONUS = 0.5
"""Added to the similarity if one assertion mentions the subject of the other."""

# Verbs and adverbs that do not tell what a statement is about. Years occur in statements about anything.
_GENERIC_STEMS = frozenset(terms("want prefer like need take use get go make say keep always never longer"))
_YEAR = re.compile(r"(?:19|20)\d\d")


_SUBJECT, _VAGUE_RETRACTION, _CLEARING, _SAME_TRAITS, _SAME_SPEAKER, _VALUE_WORD = range(1, 7)
SLOT_REACH, WORD_REACH, CLEARING_REACH = 32, 64, 8
"""How far apart, in the order of saying, two statements under one key of the index may be to be compared.

The first limit is for the statements of a slot. The second is for those that share a word or a subject, and for vague
retractions of a subject. The third is for retractions of everything about a subject. Without limits the number of pairs
would grow with the square of the number of statements.
"""
Ordered = list[tuple[Order, str]]
"""The statements of an index key in the order of saying."""


@dataclass(frozen=True, slots=True)
class StatementStems:
    """The stems of an assertion's subject, attribute and value, and (in `all_stems`) of all its words."""

    subject: frozenset[str]
    attribute: frozenset[str]
    value: frozenset[str]
    all_stems: frozenset[str]

    @property
    def names_little(self) -> bool:
        """Whether the statement has no value, or at most one word besides the subject."""
        return not self.value or len(self.all_stems - self.subject) <= 1


def statement_stems(assertion: Assertion) -> StatementStems:
    """Return the stems of an assertion. The owner as subject has none, since most statements are about the owner."""
    subject = _stems("" if folded(assertion.subject) == OWNER else assertion.subject)
    attribute, value = _stems(assertion.attribute.replace("_", " ")), _stems(assertion.value)
    sentence = _stems(assertion.statement) | _stems(assertion.limited_to or "")
    return StatementStems(subject, attribute, value, subject | attribute | value | sentence)


def is_distinctive_stem(stem: str) -> bool:
    """Return whether a stem tells what a statement is about. Generic verbs and years do not."""
    return stem not in _GENERIC_STEMS and (len(stem) != len("2000") or not _YEAR.fullmatch(stem))


def similarity(first: StatementStems, second: StatementStems) -> float:
    """Return how similar two assertions are: 0 if they have no word in common, about 5 if they have the same words.

    The names of the subjects do not count as common words. Different subjects lower the result.
    """
    names = first.subject | second.subject
    first_words, second_words = first.all_stems - names, second.all_stems - names
    common = len(first_words & second_words)
    cosine = common / (len(first_words) * len(second_words)) ** 0.5 if common else 0.0
    score: float = (
        ATTRIBUTE_WEIGHT * _overlap(first.attribute - names, second.attribute - names)
        + VALUE_WEIGHT * _overlap(first.value - names, second.value - names)
        + ALL_WORDS_WEIGHT * cosine
        + CROSS_WEIGHT
        * max(_overlap(first.attribute - names, second_words), _overlap(second.attribute - names, first_words))
    )
    if first.subject == second.subject:
        return score
    if any(other.subject and other.subject <= said.all_stems for said, other in ((first, second), (second, first))):
        return (score + MENTION_BONUS) * 0.9
    if first.subject & second.subject:
        return score * 0.9
    return score * (0.6 if first.subject and second.subject else 0.8)


def _overlap(stems: frozenset[str], others: frozenset[str]) -> float:
    return len(stems & others) / min(len(stems), len(others)) if stems and others else 0.0


@text_cache(10_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(filter(is_distinctive_stem, terms(text)))


@dataclass(frozen=True, slots=True)
class IndexedStatement:
    """A statement with the values by which it is compared: stems, slot, and place in the order of saying."""

    said: Assertion
    words: StatementStems
    slot: tuple[str, str]
    order: Order

    @classmethod
    def of(cls, assertion: Assertion) -> IndexedStatement:
        """Return the index entry of a statement."""
        return cls(assertion, statement_stems(assertion), assertion.slot, assertion.order)

    @property
    def is_vague_retraction(self) -> bool:
        """Whether it may withdraw any statement about its subject."""
        return self.said.act is SpeechAct.ERASE or (self.said.act is not SpeechAct.STATE and self.words.names_little)

    @property
    def is_clearing_retraction(self) -> bool:
        """Whether it withdraws everything about its subject."""
        return self.said.act is not SpeechAct.STATE and self.said.attribute == EVERYTHING and not self.said.value

    @property
    def replacement_traits(self) -> tuple[Authority, bool, bool, bool]:
        """The properties that decide whether the statement can replace another one of its slot for good."""
        said = self.said
        return said.authority, said.time_is_guess, said.valid_to is None, said.limited_to is None

    @property
    def keys(self) -> list[Hashable]:
        """The index keys under which the statement is found."""
        return [self.slot, *self.words.all_stems, (_SUBJECT, self.slot[0]), *self.keys_as_broad_retraction]

    @property
    def keys_as_broad_retraction(self) -> list[Hashable]:
        """Further index keys of a statement that may withdraw many others."""
        subject = self.slot[0]
        keys: list[Hashable] = [(_VAGUE_RETRACTION, subject)] if self.is_vague_retraction else []
        return [*keys, (_CLEARING, subject)] if self.is_clearing_retraction else keys

    @property
    def slot_keys(self) -> list[Hashable]:
        """The keys under which the statement is found among the statements of its slot."""
        words = ((_VALUE_WORD, word) for word in self.words.value)
        return [(_SAME_TRAITS, self.replacement_traits), (_SAME_SPEAKER, self.said.speaker), *words]


class StatementIndex:
    """An immutable index that finds statements by their keys.

    The statements of a key are sorted when that is first needed, and so are those of a slot with many statements.
    """

    def __init__(
        self,
        by_id: PersistentMap[str, IndexedStatement],
        orders: PersistentMap[str, Order],
        ids: PersistentMap[Hashable, Sequence[str]],
    ) -> None:
        self.by_id = by_id
        self._orders = orders
        self._ids = ids
        self._sorted: dict[Hashable, Ordered] = {}
        self._slots: dict[tuple[str, str], dict[Hashable, Ordered]] = {}

    @classmethod
    def of(cls, assertions: Iterable[Assertion]) -> StatementIndex:
        """Return the index of these statements."""
        by_id = {assertion.id: IndexedStatement.of(assertion) for assertion in assertions}
        orders = {id_: statement.order for id_, statement in by_id.items()}
        return cls(PersistentMap(by_id), PersistentMap(orders), group_ids(_key_id_pairs(by_id)))

    @classmethod
    def of_groups(
        cls,
        by_id: LazyMap[str, Assertion],
        orders: LazyMap[str, Order],
        groups: Iterable[Mapping[Any, Sequence[str]]],
        ids_by_subject: PersistentMap[str, Sequence[str]],
        retraction_ids: Iterable[str],
    ) -> StatementIndex:
        """Return the index of statements that are already grouped: by slot and by stem (`groups`), and by subject.

        `retraction_ids` are the withdrawals and the requests to erase.
        """
        statements = LazyMap(by_id, lambda id_: IndexedStatement.of(by_id[id_]))
        retractions = group_ids(
            (key, id_) for id_ in retraction_ids for key in statements[id_].keys_as_broad_retraction
        )
        subjects: dict[Hashable, Sequence[str]] = {
            (_SUBJECT, label): ids for label, ids in ids_by_subject.as_dict().items()
        }
        ids = {**subjects, **retractions.as_dict()}
        for ids_by_key in groups:
            ids |= ids_by_key
        return cls(PersistentMap(statements), PersistentMap(orders), PersistentMap(ids))

    def revised(self, removed: Sequence[Assertion], added: Sequence[Assertion]) -> StatementIndex:
        """Return the index without the removed statements, which must be in it, and with the added ones."""
        old = {assertion.id: self.by_id[assertion.id] for assertion in removed}
        new = {assertion.id: IndexedStatement.of(assertion) for assertion in added}
        after = StatementIndex(
            self.by_id.updated({**dict.fromkeys(old), **new}),
            self._orders.updated({**dict.fromkeys(old), **{id_: statement.order for id_, statement in new.items()}}),
            regroup_ids(self._ids, _key_id_pairs(old), _key_id_pairs(new)),
        )
        after._sorted, after._slots = dict(self._sorted), dict(self._slots)
        _replace_lists_of_present_keys(after._sorted, _entries_by_key(old, "keys"), _entries_by_key(new, "keys"))
        for slot in {statement.slot for statement in (*old.values(), *new.values())} & after._slots.keys():
            groups = after._slots[slot] = dict(after._slots[slot])
            sides = ({id_: said for id_, said in side.items() if said.slot == slot} for side in (old, new))
            gone, come = (_entries_by_key(side, "slot_keys") for side in sides)
            for key in come:
                groups.setdefault(key, [])
            _replace_lists_of_present_keys(groups, gone, come)
        return after

    def statements_near(self, statement: IndexedStatement) -> list[IndexedStatement]:
        """Return other statements that may affect this one: for each key, the nearest in the order of saying."""
        subject, order = statement.slot[0], statement.order
        ids = {id_ for word in statement.words.all_stems for id_ in self._nearest_of_key(word, order, WORD_REACH)}
        if subject != OWNER:
            ids.update(self._nearest_of_key((_SUBJECT, subject), order, WORD_REACH))
        # Statements of the same slot are chosen separately, since they share words and would be too many.
        ids.difference_update(self._ids.get(statement.slot, ()))
        ids.update(self._said_nearest_in_slot(statement))
        vague, clearing = (_VAGUE_RETRACTION, subject), (_CLEARING, subject)
        for key, reach in ((vague, WORD_REACH), (clearing, CLEARING_REACH)):
            ids.update(self._nearest_of_key(key, order, reach))
            if key in statement.keys_as_broad_retraction:
                ids.update(self._said_since(key, statement, reach))
        return [self.by_id[id_] for id_ in ids - {statement.said.id}]

    def _said_nearest_in_slot(self, statement: IndexedStatement) -> Iterable[str]:
        """Return statements of the same slot: the nearest of each weight, of its speaker, and with a word of its value.

        The number is limited for each weight (authority) by itself. So many statements of low weight cannot crowd out
        one that this statement may replace. A value that the statement repeats or withdraws may have been said long
        ago, so it is found by its words.
        """
        if len(ids := self._ids.get(statement.slot, ())) <= SLOT_REACH:
            return ids
        groups = self._groups_of_slot(statement.slot)
        keys: list[Hashable] = [key for key in tuple(groups) if isinstance(key, tuple) and key[0] == _SAME_TRAITS]
        keys.append((_SAME_SPEAKER, statement.said.speaker))
        keys += [(_VALUE_WORD, word) for word in statement.words.value]
        return (id_ for key in keys for id_ in _nearest_in(groups.get(key, []), statement.order, SLOT_REACH))

    def _groups_of_slot(self, slot: tuple[str, str]) -> dict[Hashable, Ordered]:
        """Return the statements of a slot, grouped by their `slot_keys` and sorted."""
        if slot not in self._slots:
            statements = {id_: self.by_id[id_] for id_ in self._ids.get(slot, ())}
            groups = _entries_by_key(statements, "slot_keys")
            self._slots[slot] = {key: sorted(entries) for key, entries in groups.items()}
        return self._slots[slot]

    def _nearest_of_key(self, key: Hashable, order: Order, reach: int) -> Sequence[str]:
        """Return the statements of a key that were said at most `reach` places before or after."""
        ids = self._ids.get(key, ())
        return ids if len(ids) <= reach else _nearest_in(self._sorted_of_key(key), order, reach)

    def _said_since(self, key: Hashable, retraction: IndexedStatement, reach: int) -> Sequence[str]:
        """Return what precedes a retraction on its subject, back to the `reach`-th earlier retraction of this kind."""
        retractions = self._sorted_of_key(key)
        place = bisect_left(retractions, (retraction.order, ""))
        ordered = self._sorted_of_key((_SUBJECT, retraction.slot[0]))
        first = bisect_left(ordered, retractions[place - reach]) if place >= reach else 0
        last = bisect_left(ordered, (retraction.order, ""))
        return [id_ for _, id_ in ordered[first:last]]

    def _sorted_of_key(self, key: Hashable) -> Ordered:
        """Return the statements of a key in the order of saying, sorted once."""
        if key not in self._sorted:
            self._sorted[key] = sorted([(self._orders[id_], id_) for id_ in self._ids.get(key, ())])
        return self._sorted[key]


def _nearest_in(ordered: Ordered, order: Order, reach: int) -> Sequence[str]:
    if len(ordered) > reach:
        first = max(0, bisect_left(ordered, (order, "")) - reach)
        ordered = ordered[first : bisect_right(ordered, (order, "\uffff")) + reach]
    return [id_ for _, id_ in ordered]


def _entries_by_key(
    by_id: Mapping[str, IndexedStatement], keys: Literal["keys", "slot_keys"]
) -> dict[Hashable, Ordered]:
    """Return the statements grouped by their keys: `keys` of the whole index, or `slot_keys` within a slot."""
    entries: dict[Hashable, Ordered] = defaultdict(list)
    for id_, statement in by_id.items():
        for key in getattr(statement, keys):
            entries[key].append((statement.order, id_))
    return entries


def _replace_lists_of_present_keys(
    groups: dict[Hashable, Ordered], removed: Mapping[Hashable, Ordered], added: Mapping[Hashable, Ordered]
) -> None:
    """Replace the lists that change by new ones, since other versions of the index share the old lists."""
    for key in (removed.keys() | added.keys()) & groups.keys():
        gone = set(removed.get(key, ()))
        groups[key] = [entry for entry in groups[key] if entry not in gone] if gone else list(groups[key])
        for entry in added.get(key, ()):
            insort(groups[key], entry)


def _key_id_pairs(by_id: Mapping[str, IndexedStatement]) -> Iterator[tuple[Hashable, str]]:
    return ((key, id_) for id_, statement in by_id.items() for key in statement.keys)
