"""Which facts may no longer fit because another one has changed: "commute" after "moved". Pure.

Nothing is retired for it and nothing of it is kept: the list is derived whenever it is asked for, and only asks a
person to look. A fact hangs on a changed one where it names the old value, or where the table of families says that
such things go together. What has been said again, confirmed or edited since the change is not on it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from afterword.facts.assertions import OWNER, Kind
from afterword.facts.attribute_groups import ATTRIBUTE_GROUPS, QUALIFIERS, AttributeGroup
from afterword.facts.fact import Fact, Status
from afterword.facts.words import folded, phrase_pattern, terms, word_set


@dataclass(frozen=True, slots=True)
class Dependent:
    """A fact that may no longer fit, the superseded fact that it hangs on, and in which way it does."""

    fact: Fact
    changed: Fact
    reason: str


# What somebody is, knows or likes goes with them, whatever their sentence mentions besides.
_LASTING = word_set(
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
_DENIED = phrase_pattern("not", "no", "never", "without", "former", "ex")
_NUMBERED = re.compile(r"\d+(?:st|nd|rd|th|am|pm)?")
# Words that name nothing by themselves: how things are said, when they happen and how much they are.
_PLAIN = frozenset(
    terms(
        """user want prefer like need take use get go make say keep live work move change switch plan start begin end
        leave daily weekly monthly yearly every week weekend month year today tomorrow morning noon afternoon evening
        night hour minute monday tuesday wednesday thursday friday saturday sunday january february march april june
        july august september october november december euro euros dollar dollars pound pounds percent none true false
        unknown other another small large high early late first second third one two three four five six seven eight
        nine ten twelve date dates departure arrival"""
    )
)
_OCCASION = frozenset(terms("trip travel travels holiday vacation journey event visit book booked ticket take place"))


def dependents(facts: Sequence[Fact]) -> list[Dependent]:
    """Return the served facts that may no longer fit, in the given order, each with what it hangs on and why.

    `facts` are all facts of one scope with their status at one instant, the superseded ones included. A fact counts
    where it was last said before the other ceased to hold; of several changes of one slot the latest is named.
    """
    known = _Known(facts)
    found: dict[tuple[str, tuple[str, str]], Dependent] = {}
    superseded = [one for one in facts if one.status is Status.SUPERSEDED and one.valid_to is not None]
    for changed in sorted(superseded, key=_changed_at):
        for fact, reason in known.hanging_on(changed):
            found[fact.id, _slot(changed)] = Dependent(fact, changed, reason)
    place = {one.id: index for index, one in enumerate(facts)}
    return sorted(found.values(), key=lambda one: (place[one.fact.id], place[one.changed.id]))


class _Known:
    """The facts of a scope, found by the words and the families that they speak of."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.served = {one.id: one for one in facts if one.is_served}
        self.by_assertion = {said: one for one in facts for said in one.assertion_ids}
        self.naming: dict[str, set[str]] = defaultdict(set)
        self.speaking: dict[int, dict[str, str]] = defaultdict(dict)
        for one in self.served.values():
            for stem in _said(one):
                self.naming[stem].add(one.id)
            for number, word in _families_of(one):
                self.speaking[number][one.id] = word

    def hanging_on(self, changed: Fact) -> Iterable[tuple[Fact, str]]:
        """Yield the facts that hang on a superseded one, with the reason."""
        successor = self.by_assertion.get(changed.retired_by or "")
        if successor is not None and _only_says_more(changed, successor):
            return
        reasons = self._by_family(changed) | self._by_name(changed)
        for fact_id, reason in reasons.items():
            fact = self.served[fact_id]
            if _slot(fact) != _slot(changed) and fact is not successor and _is_older(fact, changed, successor):
                yield fact, reason

    def _by_name(self, changed: Fact) -> dict[str, str]:
        stems = _names(changed)
        if not stems:
            return {}
        naming = set.intersection(*(self.naming.get(stem, set()) for stem in stems))
        return {
            one: f"it names “{changed.value}”"
            for one in naming
            if _may_name(self.served[one], changed) and _means(self.served[one], changed, stems)
        }

    def _by_family(self, changed: Fact) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, family in enumerate(ATTRIBUTE_GROUPS):
            if not _changes(changed, family):
                continue
            for one, word in self.speaking[number].items():
                if _belongs(self.served[one], changed, family, word):
                    found[one] = f"“{word}” often hangs on the {family.name}"
        return found


def _changed_at(fact: Fact) -> datetime:
    return fact.valid_to or fact.said_at


def _slot(fact: Fact) -> tuple[str, str]:
    return folded(fact.subject), folded(fact.attribute)


def _is_older(fact: Fact, changed: Fact, successor: Fact | None) -> bool:
    """Whether the fact was last said while it could not know of the change."""
    last_said_at = fact.last_said_at or fact.said_at
    if last_said_at >= _changed_at(changed):
        return False
    if successor is None:
        return True
    if successor.said_at < changed.said_at and last_said_at < changed.said_at:
        return False  # what held when it was said holds again
    names_old, names_new = _names_all(_names(changed), fact), _names_all(_names(successor), fact)
    return not names_new or (names_old and last_said_at < successor.said_at)


def _only_says_more(changed: Fact, successor: Fact) -> bool:
    """Whether what took its place says all of it and more: a fact told more exactly has not changed."""
    stems = frozenset(terms(changed.value))
    is_denied = bool(_DENIED.search(successor.value)) and not _DENIED.search(changed.value)
    return bool(stems) and stems <= frozenset(terms(successor.value)) and not is_denied


def _changes(changed: Fact, family: AttributeGroup) -> bool:
    """Whether it is of the family's attributes, or says so where its attribute says little."""
    if changed.kind is Kind.PREFERENCE and (family.is_dated or not family.has_wishes):
        return False
    words = _attribute_words(changed)
    if words & family.attributes and words <= family.attributes | QUALIFIERS:
        return not (family.name == "stack" and words == {"language"} and folded(changed.subject) == OWNER)
    return bool(family.opening and family.opening.match(changed.statement))


def _families_of(fact: Fact) -> Iterable[tuple[int, str]]:
    """Yield the families that the fact speaks of, each with the word that does."""
    if _attribute_words(fact) & (_LASTING | _OCCUPATION):
        return
    for number, family in enumerate(ATTRIBUTE_GROUPS):
        if fact.kind is Kind.PREFERENCE and not family.has_wishes:
            continue
        word = family.hanging.search(_told_for(fact, family))
        if word:
            yield number, word.group().casefold()


def _told_for(fact: Fact, family: AttributeGroup) -> str:
    """Return what the fact tells, without phrases that are aside of the family or an attribute that stands for one."""
    attribute = fact.attribute.replace("_", " ")
    if family.aside is None:
        return f"{attribute}. {fact.statement}"
    statement = family.aside.sub(" ", fact.statement)
    return f"{family.aside.sub(' ', attribute)}. {statement}" if statement == fact.statement else statement


def _belongs(fact: Fact, changed: Fact, family: AttributeGroup, word: str) -> bool:
    """Whether the two are about the same subject (or the owner's household, or the same occasion)."""
    if family.is_dated:
        return _is_same_occasion(fact, changed)
    if _has_same_subject(fact, changed) or (folded(changed.subject) == OWNER and _is_the_owners(word, fact)):
        return True
    return family.is_shared and _is_of_household(fact) and _is_of_household(changed)


def _has_same_subject(fact: Fact, changed: Fact) -> bool:
    subject = folded(changed.subject)
    if folded(fact.subject) == subject:
        return True
    return subject != OWNER and frozenset(terms(subject)) <= frozenset(terms(fact.subject)) and bool(terms(subject))


def _is_the_owners(word: str, fact: Fact) -> bool:
    """Whether the fact tells of the owner's own one, as in "Anna is the user's boss"."""
    told = rf"\buser['’]s (?:new |local |family |line )?{re.escape(word)}\b"
    return bool(re.search(told, f"{fact.subject}. {fact.statement}", re.IGNORECASE))


def _is_of_household(fact: Fact) -> bool:
    subject = folded(fact.subject)
    return subject == OWNER or bool(_HOUSEHOLD.match(subject) or _HOUSEHOLD.match(fact.statement))


def _is_same_occasion(fact: Fact, changed: Fact) -> bool:
    subject = "" if folded(changed.subject) == OWNER else changed.subject
    told = frozenset(terms(f"{subject} {changed.attribute.replace('_', ' ')} {changed.statement}"))
    told = frozenset(stem for stem in told - _PLAIN if not _NUMBERED.fullmatch(stem))
    return bool((told - _OCCASION or told) & _said(fact))


def _names(changed: Fact) -> frozenset[str]:
    """Return the stems by which the old value is named; none where they name nothing by themselves."""
    stems = frozenset(terms(changed.value))
    telling = [stem for stem in stems - _PLAIN if len(stem) >= 4 and not _NUMBERED.fullmatch(stem)]
    return stems if telling else frozenset()


def _means(fact: Fact, changed: Fact, stems: frozenset[str]) -> bool:
    """Whether the fact means the old value by its words: several, a proper name, or one in the same context."""
    if len(stems) > 1:
        return True
    return _is_capital(fact, stems) if _is_capital(changed, stems) else bool(_context(changed) & _said(fact))


def _is_capital(fact: Fact, stems: frozenset[str]) -> bool:
    """Whether the sentence (its value, where the sentence has other words) writes the word with a capital letter."""
    written = [word for word in re.findall(r"[^\W_]+", fact.statement) if stems & frozenset(terms(word))]
    return any(not word.islower() for word in written or [fact.value])


def _context(changed: Fact) -> frozenset[str]:
    told = frozenset(terms(f"{changed.attribute.replace('_', ' ')} {changed.statement}"))
    return told - frozenset(terms(changed.value)) - frozenset(terms(changed.subject)) - _PLAIN


def _may_name(fact: Fact, changed: Fact) -> bool:
    """Whether naming the old value means hanging on it: not for what is past, nor for what others have of their own."""
    if _attribute_words(fact) & _LASTING or _PAST.search(fact.statement):
        return False
    if _has_same_subject(fact, changed):
        return True
    told = frozenset(terms(fact.statement)) - frozenset(terms(fact.subject))
    subject = frozenset(terms(changed.subject))
    return bool(subject) and subject <= told and folded(fact.attribute) != folded(changed.attribute)


def _attribute_words(fact: Fact) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", fact.attribute.casefold()))


def _names_all(stems: frozenset[str], fact: Fact) -> bool:
    return bool(stems) and stems <= _said(fact)


def _said(fact: Fact) -> frozenset[str]:
    return frozenset(terms(f"{fact.statement} {fact.value} {fact.attribute.replace('_', ' ')}"))
