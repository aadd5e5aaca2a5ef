"""List facts that may be outdated because another fact has changed, such as the commute after a move. Pure.

The list is computed on request, is not stored, and retires nothing. It only shows a person what to check. A fact
depends on a changed one if it contains the old value, or if the table of attribute groups says so. A fact that was
repeated, confirmed or edited since the change is not listed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from afterword.facts.assertions import OWNER, Kind
from afterword.facts.attribute_groups import ATTRIBUTE_GROUPS, QUALIFIERS, AttributeGroup
from afterword.facts.fact import Fact, Status
from afterword.facts.words import folded, phrase_pattern, terms, word_set, words_as_written


@dataclass(frozen=True, slots=True)
class Dependent:
    """A fact that may be outdated, the superseded fact that it depends on, and the reason."""

    fact: Fact
    changed: Fact
    reason: str


# Attributes of a person that do not change when their circumstances do.
_PERMANENT = word_set(
    """name birthday birthplace birth hometown age nationality citizenship origin childhood language languages skill
    education degree studies allergy allergies intolerance condition shoe size seat hobby"""
)
_OCCUPATION = word_set("job occupation profession role")
_PAST = phrase_pattern(
    r"born|grew up|childhood|raised|studied|graduated|met|married|formerly|former|previous(?:ly)?|was|were",
    r"used to|ago|originally|comes from|(?:in|until) (?:19|20)\d\d",
)
_RELATIVE = (
    "wife|husband|partner|spouse|girlfriend|boyfriend|son|daughter|child|children|kids?|baby|twins?|family|household|"
    "dog|cat|car|home|house|flat|apartment"
)
_HOUSEHOLD = re.compile(rf"(?:the )?user['’]s (?:\w+ )?(?:{_RELATIVE})\b", re.IGNORECASE)
_NEGATION = phrase_pattern("not", "no", "never", "without", "former", "ex")
_NUMBER = re.compile(r"\d+(?:st|nd|rd|th|am|pm)?")
# Stems that identify nothing by themselves: common verbs, times, amounts.
_GENERIC_STEMS = frozenset(
    terms(
        """user want prefer like need take use get go make say keep live work move change switch plan start begin end
        leave daily weekly monthly yearly every week weekend month year today tomorrow morning noon afternoon evening
        night hour minute monday tuesday wednesday thursday friday saturday sunday january february march april june
        july august september october november december euro euros dollar dollars pound pounds percent none true false
        unknown other another small large high early late first second third one two three four five six seven eight
        nine ten twelve date dates departure arrival"""
    )
)
_OCCASION_STEMS = frozenset(
    terms("trip travel travels holiday vacation journey event visit book booked ticket take place")
)


def dependents(facts: Sequence[Fact]) -> list[Dependent]:
    """Return the facts that may be outdated, in the order of `facts`, each with the changed fact and the reason.

    `facts` are all facts of one scope with their status at one instant, including the superseded ones. Only facts that
    agents are told are listed, if they were last said before the changed fact ended. If a value has changed several
    times, only the latest change is named.
    """
    superseded = [fact for fact in facts if fact.status is Status.SUPERSEDED and fact.valid_to is not None]
    if not superseded:
        return []
    index = _ScopeIndex(facts)
    by_fact_and_slot: dict[tuple[str, tuple[str, str]], Dependent] = {}
    for changed in sorted(superseded, key=_ended_at):
        for fact, reason in index.dependents_of(changed):
            by_fact_and_slot[fact.id, _slot(changed)] = Dependent(fact, changed, reason)
    position = {fact.id: number for number, fact in enumerate(facts)}
    return sorted(
        by_fact_and_slot.values(),
        key=lambda dependent: (position[dependent.fact.id], position[dependent.changed.id]),
    )


class DependenceWording(NamedTuple):
    """The fields of a fact from which the attribute groups that it depends on are found."""

    kind: Kind
    attribute: str
    statement: str


def longest_value_stems(superseded: Iterable[Fact]) -> set[str]:
    """Return the longest stem of the value of each superseded fact. A fact that contains the value has this stem."""
    return {max(stems, key=len) for fact in superseded if (stems := _identifying_value_stems(fact))}


def changed_group_numbers(superseded: Sequence[Fact]) -> frozenset[int]:
    """Return the numbers of the attribute groups to which any of these superseded facts belongs."""
    groups = enumerate(ATTRIBUTE_GROUPS)
    return frozenset(number for number, group in groups if any(_belongs_to(fact, group) for fact in superseded))


class _ScopeIndex:
    """The facts of a scope by id, by assertion, by stem, and by attribute group."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.served = {fact.id: fact for fact in facts if fact.is_served}
        self.by_assertion = {assertion_id: fact for fact in facts for assertion_id in fact.assertion_ids}
        self.ids_by_stem: dict[str, set[str]] = defaultdict(set)
        self.words_by_group: dict[int, dict[str, str]] = defaultdict(dict)
        for fact in self.served.values():
            for stem in _stems(fact):
                self.ids_by_stem[stem].add(fact.id)
            for number, word in groups_affecting(fact):
                self.words_by_group[number][fact.id] = word

    def dependents_of(self, changed: Fact) -> Iterable[tuple[Fact, str]]:
        """Yield the facts that depend on a superseded one, with the reason."""
        successor = self.by_assertion.get(changed.retired_by or "")
        if successor is not None and _only_adds_detail(changed, successor):
            return
        by_group = {
            fact_id: f"“{word}” often depends on the {group.name}"
            for number, group in enumerate(ATTRIBUTE_GROUPS)
            if _belongs_to(changed, group)
            for fact_id, word in self.words_by_group[number].items()
            if _shares_subject(self.served[fact_id], changed, group, word)
        }
        for fact_id, reason in (by_group | self._dependents_by_value(changed)).items():
            fact = self.served[fact_id]
            if _slot(fact) != _slot(changed) and fact is not successor and _predates_change(fact, changed, successor):
                yield fact, reason

    def _dependents_by_value(self, changed: Fact) -> dict[str, str]:
        """Return the ids of the facts that name the old value, with the reason."""
        stems = _identifying_value_stems(changed)
        if not stems:
            return {}
        fact_ids = set.intersection(*(self.ids_by_stem.get(stem, set()) for stem in stems))
        return {
            fact_id: f"it names “{changed.value}”"
            for fact_id in fact_ids
            if _may_depend_on_value(self.served[fact_id], changed)
            and _means_value(self.served[fact_id], changed, stems)
        }


def _ended_at(fact: Fact) -> datetime:
    return fact.valid_to or fact.said_at


def _slot(fact: Fact) -> tuple[str, str]:
    return _comparable_name(fact.subject), _comparable_name(fact.attribute)


def _comparable_name(text: str) -> str:
    """Return a subject or an attribute in folded form, with underscores as spaces."""
    return folded(_without_underscores(text))


def _without_underscores(text: str) -> str:
    return text.replace("_", " ")


def _predates_change(fact: Fact, changed: Fact, successor: Fact | None) -> bool:
    """Whether the fact was last said before the change, so that it may not reflect it."""
    last_said_at = fact.last_said_at or fact.said_at
    if last_said_at >= _ended_at(changed):
        return False
    if successor is None:
        return True
    if successor.said_at < changed.said_at and last_said_at < changed.said_at:
        return False  # the value that held when the fact was said holds again
    stems, old_stems, new_stems = _stems(fact), _identifying_value_stems(changed), _identifying_value_stems(successor)
    names_old, names_new = bool(old_stems) and old_stems <= stems, bool(new_stems) and new_stems <= stems
    return not names_new or (names_old and last_said_at < successor.said_at)


def _only_adds_detail(changed: Fact, successor: Fact) -> bool:
    """Whether the new value contains all words of the old one. A more exact value is not a change."""
    stems = frozenset(terms(changed.value))
    is_negated = bool(_NEGATION.search(_without_underscores(successor.value))) and not _NEGATION.search(
        _without_underscores(changed.value)
    )
    return bool(stems) and stems <= frozenset(terms(successor.value)) and not is_negated


def _belongs_to(changed: Fact, group: AttributeGroup) -> bool:
    """Whether the changed fact belongs to the group, by its attribute or by the opening of its statement."""
    if changed.kind is Kind.PREFERENCE and (group.is_occasion or not group.affects_preferences):
        return False
    words = _attribute_words(changed)
    if words & group.attributes and words <= group.attributes | QUALIFIERS:
        return not (group.name == "stack" and words == {"language"} and folded(changed.subject) == OWNER)
    return bool(group.opening and group.opening.match(_without_underscores(changed.statement)))


def groups_affecting(fact: DependenceWording | Fact) -> Iterable[tuple[int, str]]:
    """Yield the number of each group that the fact depends on, with the word of the fact that shows it."""
    if _attribute_words(fact) & (_PERMANENT | _OCCUPATION):
        return
    for number, group in enumerate(ATTRIBUTE_GROUPS):
        if fact.kind is not Kind.PREFERENCE or group.affects_preferences:
            word = group.dependent_words.search(_text_without_excluded(fact, group))
            if word:
                yield number, word.group().casefold()


def _text_without_excluded(fact: DependenceWording | Fact, group: AttributeGroup) -> str:
    """Return the attribute and the statement without the phrases that the group excludes.

    If the statement contains such a phrase, the attribute is left out too, since it may mean the phrase.
    """
    attribute, whole = _without_underscores(fact.attribute), _without_underscores(fact.statement)
    if group.excluded is None:
        return f"{attribute}. {whole}"
    statement = group.excluded.sub(" ", whole)
    return f"{group.excluded.sub(' ', attribute)}. {statement}" if statement == whole else statement


def _shares_subject(fact: Fact, changed: Fact, group: AttributeGroup, word: str) -> bool:
    """Whether the two facts are about the same subject, the owner's household, or the same occasion."""
    if group.is_occasion:
        return _is_same_occasion(fact, changed)
    if _has_same_subject(fact, changed):
        return True
    # The word may name something of the owner, as in "Anna is the user's boss".
    owned = rf"\buser['’]s (?:new |local |family |line )?{re.escape(word)}\b"
    text = _without_underscores(f"{fact.subject}. {fact.statement}")
    if folded(changed.subject) == OWNER and re.search(owned, text, re.IGNORECASE):
        return True
    return group.is_household and _is_of_household(fact) and _is_of_household(changed)


def _has_same_subject(fact: Fact, changed: Fact) -> bool:
    subject = _comparable_name(changed.subject)
    if _comparable_name(fact.subject) == subject:
        return True
    stems = frozenset(terms(subject))
    return subject != OWNER and bool(stems) and stems <= frozenset(terms(fact.subject))


def _is_of_household(fact: Fact) -> bool:
    subject = _comparable_name(fact.subject)
    return subject == OWNER or bool(_HOUSEHOLD.match(subject) or _HOUSEHOLD.match(_without_underscores(fact.statement)))


def _is_same_occasion(fact: Fact, changed: Fact) -> bool:
    subject = "" if folded(changed.subject) == OWNER else changed.subject
    stems = frozenset(terms(f"{subject} {_without_underscores(changed.attribute)} {changed.statement}"))
    names = frozenset(stem for stem in stems - _GENERIC_STEMS if not _NUMBER.fullmatch(stem))
    return bool((names - _OCCASION_STEMS or names) & _stems(fact))


def _identifying_value_stems(fact: Fact) -> frozenset[str]:
    """Return the stems of the value, or none if they are too common to identify it."""
    stems = frozenset(terms(fact.value))
    is_name = any(len(stem) >= 4 and not _NUMBER.fullmatch(stem) for stem in stems - _GENERIC_STEMS)
    return stems if is_name else frozenset()


def _means_value(fact: Fact, changed: Fact, stems: frozenset[str]) -> bool:
    """Whether the fact uses the words of the old value in the same sense.

    It does if these are several words, if they are a proper name in both facts, or if the facts have other words in
    common.
    """
    if len(stems) > 1:
        return True
    if _writes_as_name(changed, stems):
        return _writes_as_name(fact, stems)
    context = frozenset(terms(f"{_without_underscores(changed.attribute)} {changed.statement}"))
    context -= frozenset(terms(f"{changed.value} {changed.subject}")) | _GENERIC_STEMS
    return bool(context & _stems(fact))


def _writes_as_name(fact: Fact, stems: frozenset[str]) -> bool:
    """Whether the words with these stems are written like a name: with a capital letter or an underscore.

    They are looked up in the statement. If it does not contain them, the value is checked instead.
    """
    written = [word for word in re.findall(r"\w+", fact.statement) if stems & frozenset(terms(word))]
    return any(not word.islower() or "_" in word for word in written or [fact.value])


def _may_depend_on_value(fact: Fact, changed: Fact) -> bool:
    """Whether a fact that contains the old value may depend on it: not if it is about the past or somebody else."""
    if _attribute_words(fact) & _PERMANENT or _PAST.search(_without_underscores(fact.statement)):
        return False
    if _has_same_subject(fact, changed):
        return True
    mentioned = frozenset(terms(fact.statement)) - frozenset(terms(fact.subject))
    subject = frozenset(terms(changed.subject))
    return (
        bool(subject)
        and subject <= mentioned
        and _comparable_name(fact.attribute) != _comparable_name(changed.attribute)
    )


def _attribute_words(fact: DependenceWording | Fact) -> frozenset[str]:
    return frozenset(words_as_written(fact.attribute.casefold()))


def _stems(fact: Fact) -> frozenset[str]:
    return frozenset(terms(f"{fact.statement} {fact.value} {_without_underscores(fact.attribute)}"))
