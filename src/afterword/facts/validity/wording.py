"""The words of a fact after a part of its sentence has ended, and the periods in which they apply. Pure.

When a change ends only a part of a sentence, a judge writes the remainder: the sentence without that part. A judge may
leave words out, change the endings of the others, and link them ("is", "has", articles). A remainder that says anything
else is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from afterword.facts.assertions import Assertion
from afterword.facts.validity.periods import Interval
from afterword.facts.words import folded, folded_words, terms, word_set

_CONNECTIVES = word_set("and or und oder et ou y o e en of i a")
"""Words that may move: "A, B and C" without C is "A and B"."""
_LINKS = word_set(
    "is are am has have the a an of ist sind hat haben der das dem ein eine sont une le la les es tiene el los las"
)
"""Words that a remainder may add to link the others: "Ada is a potter" is a remainder of "Ada, a potter, lives"."""
_AFTER_NEGATION = _CONNECTIVES | _LINKS | word_set("longer more mehr plus más mais meer")
_NUMBER = re.compile(r"[0-9]{1,4}")
_NEGATIONS = word_set(
    """no not never none nothing without cannot nor neither nicht kein keine keinen keinem keiner nie ohne weder ne pas
    jamais sans non nunca sin ni nao nem sem niet geen nooit zonder inte aldrig nie bez don doesn didn isn t aren wasn
    weren won cant couldn shouldn wouldn hasn haven hadn ain"""
)


@dataclass(frozen=True, slots=True)
class Rewording:
    """A period in which a fact is told in words other than those of its leading assertion. `end` None: it is open.

    `ended_by` is the assertion that ended the omitted part of the sentence. It is None if no part is omitted, or if the
    part was wrong, so that agents are not told that it held before.
    """

    start: datetime
    end: datetime | None
    statement: str
    ended_by: str | None = None

    def covers(self, at: datetime) -> bool:
        """Whether the period contains an instant."""
        return self.start <= at and (self.end is None or at < self.end)


@dataclass(frozen=True, slots=True)
class OmittedPart:
    """An interval in which a part of an earlier sentence does not hold, and the `remainder`, which does.

    `later_id` is the statement that ended the part, `order` its place in the order of saying. `held_before` says
    whether the part held until then.
    """

    interval: Interval
    order: int
    remainder: str
    later_id: str
    held_before: bool = True

    def covers(self, at: datetime) -> bool:
        """Whether the interval contains an instant."""
        return _contains(self.interval, at)


def remainder_fault(remainder: str, earlier: Assertion, later: Assertion) -> str | None:
    """Return why a remainder of the earlier sentence may not be used, None if it may."""
    said, words = folded_words(earlier.statement), folded_words(remainder)
    if len(words) >= len(said):
        return "it is not shorter"
    places = _places_in_order(words, said)
    if places is None:
        return "it has other words, or another order"
    omitted = [place for place in range(len(said)) if place not in places]
    if any(said[place] in _NEGATIONS and _denied_place(said, place) in places for place in omitted):
        return "it drops a negation"
    stems, left_out = {*terms(remainder)}, {*terms(earlier.statement)} - {*terms(remainder)}
    if not left_out or not stems - {*terms(earlier.subject)}:
        return "it leaves out nothing, or everything"
    changed_values = filter(None, map(set, map(terms, _changed_values(earlier, later))))
    return "it has the value that changed" if any(value <= stems for value in changed_values) else None


def _changed_values(earlier: Assertion, later: Assertion) -> Sequence[str]:
    """Return the values of a change that a remainder of the earlier sentence may not have."""
    if folded(earlier.attribute) != folded(later.attribute):
        return [later.value]
    # If both have the same value, something else changed: "all but Ada pay cash" ends when Ada pays cash too.
    return [] if folded(earlier.value) == folded(later.value) else [later.value, earlier.value]


def lacks_ended_part(statement: str, earlier: str, remainder: str) -> bool:
    """Return whether a statement contains no word of the part of an earlier sentence that its remainder leaves out."""
    return {*terms(earlier)}.difference(terms(remainder)).isdisjoint(terms(statement))


def leaves_day_out(remainder: str, earlier: str, day: datetime) -> bool:
    """Return whether an earlier sentence contains the number or year of a day, and its remainder does not."""
    return bool(numbers_of_day(earlier, day) - numbers_of_day(remainder, day))


def numbers_of_day(text: str, day: datetime) -> set[int]:
    """Return which of two numbers occur in a text: the day of the month, and the year, of `day`."""
    return {day.day, day.year}.intersection(map(int, _NUMBER.findall(text)))


def combined_remainder(earlier: Assertion, omissions: Iterable[OmittedPart]) -> str | None:
    """Return the sentence without the parts that these omissions leave out, None if no words are left.

    The result is the remainder of the latest omission, without the words that are missing in any other remainder.
    """
    in_order = sorted(set(omissions), key=lambda omission: (omission.order, omission.remainder))
    last = in_order[-1].remainder
    gone = {*folded_words(earlier.statement)}.difference(
        frozenset.intersection(*(frozenset(folded_words(omission.remainder)) for omission in in_order))
    )
    words = [word for word in last.split() if gone.isdisjoint(folded_words(word))]
    if len(words) == len(last.split()):
        return last
    text = " ".join(words).rstrip(" .,;:")
    return f"{text}." if {*terms(text)} - {*terms(earlier.subject)} else None


def rewordings_by_period(earlier: Assertion, omissions: Sequence[OmittedPart]) -> list[Rewording]:
    """Return the periods in which parts of a statement do not hold, each with the words that are left.

    The words are empty if none are left.
    """
    if not omissions:
        return []
    rewordings: list[Rewording] = []
    for start, end in _periods_between(bound for each in omissions for bound in each.interval):
        active = [each for each in omissions if each.covers(start)]
        if active:
            last = max(active, key=lambda each: each.order)
            ended_by = last.later_id if all(each.held_before for each in active) else None
            rewordings.append(Rewording(start, end, combined_remainder(earlier, active) or "", ended_by))
    return rewordings


def fact_rewordings(
    lead_id: str,
    statements: Mapping[str, str],
    spans: Mapping[str, Sequence[Interval]],
    own_rewordings: Mapping[str, Sequence[Rewording]],
) -> tuple[Rewording, ...]:
    """Return the periods in which a fact is told in other words than those of its leading assertion.

    A part of the sentence is left out while none of the fact's statements that hold contains it: it has ended in them,
    or they never had it. `spans` are the periods in which each statement of the fact holds, in the order of saying.
    `own_rewordings` are the rewordings of each statement.
    """
    bounds = {bound for id_ in spans for each in own_rewordings.get(id_, ()) for bound in (each.start, each.end)}
    bounds |= {bound for periods in spans.values() for period in periods for bound in period}
    rewordings: list[Rewording] = []
    for start, end in _periods_between(bounds):
        holding = [id_ for id_, periods in spans.items() if any(_contains(period, start) for period in periods)]
        reworded = {id_: each for id_ in holding if (each := _rewording_at(own_rewordings.get(id_, ()), start))}
        whole = [statements[id_] for id_ in holding if id_ not in reworded]
        parts = [(statements[id_], each.statement) for id_, each in reworded.items()]
        if parts and all(lacks_ended_part(statement, *part) for statement in whole for part in parts):
            told = reworded.get(lead_id) or next(reversed(reworded.values()))
            ended_by = told.ended_by if all(each.ended_by for each in reworded.values()) else None
            _append_rewording(rewordings, Rewording(start, end, told.statement, ended_by))
    return tuple(rewordings)


def _periods_between(bounds: Iterable[datetime | None]) -> Iterable[Interval]:
    """Return the periods that begin at each of these times and end at the next one. The last one is open."""
    ordered = sorted({bound for bound in bounds if bound is not None})
    return zip(ordered, [*ordered[1:], None], strict=False)


def _append_rewording(rewordings: list[Rewording], new: Rewording) -> None:
    """Append a rewording. If the same words apply up to its start, the last rewording is prolonged instead."""
    last = rewordings[-1] if rewordings else None
    if last is not None and (last.end, last.statement) == (new.start, new.statement):
        rewordings[-1] = replace(last, end=new.end, ended_by=last.ended_by and new.ended_by)
    else:
        rewordings.append(new)


def rewordings_with_continuations(
    lead: Assertion, continuing: Sequence[Assertion], rewordings: tuple[Rewording, ...]
) -> tuple[Rewording, ...]:
    """Return the rewordings of a fact that later statements continue ("the trial runs until June").

    Once a continuation is said, its sentence is told. The former sentence follows in parentheses, unless the later one
    repeats its words.
    """
    reworded = rewordings
    for said in continuing:
        terms_told = next((each.statement for each in rewordings if each.covers(said.said_at)), lead.statement)
        stems, value_stems = {*terms(said.statement)}, {*terms(lead.value)}
        repeats_terms = {*terms(terms_told)} <= stems or (len(value_stems) > 1 and value_stems <= stems)
        words = said.statement if repeats_terms else f"{said.statement} ({terms_told})"
        before = (each for each in reworded if each.start < said.said_at)
        ended = (replace(each, end=said.said_at) if each.covers(said.said_at) else each for each in before)
        reworded = (*ended, Rewording(said.said_at, None, words))
    return reworded


def reworded_value(value: str, statement: str) -> str:
    """Return the value of a fact that is told as `statement`: its own value if the statement contains it, else that."""
    return value if {*terms(value)} <= {*terms(statement)} else statement.rstrip(".")


def _places_in_order(words: Sequence[str], said: Sequence[str]) -> set[int] | None:
    """Return the positions of these words in a sentence, None if it does not contain all of them in this order.

    Linking words are skipped, and a word may have another ending than in the sentence.
    """
    places: set[int] = set()
    start = 0
    for word in words:
        if word in _LINKS or (word in _CONNECTIVES and word in said):
            continue
        place = next((place for place in range(start, len(said)) if _are_same_word(said[place], word)), None)
        if place is None:
            return None
        places.add(place)
        start = place + 1
    return places


def _are_same_word(word: str, other: str) -> bool:
    return word == other or bool(terms(word) and terms(word) == terms(other))


def _denied_place(said: Sequence[str], negation: int) -> int | None:
    """Return the position of the word that a negation denies: the next word that is not a function word, if any."""
    return next((place for place in range(negation + 1, len(said)) if said[place] not in _AFTER_NEGATION), None)


def _rewording_at(rewordings: Sequence[Rewording], at: datetime) -> Rewording | None:
    return next((each for each in rewordings if each.covers(at)), None)


def _contains(interval: Interval, at: datetime) -> bool:
    return interval[0] <= at and (interval[1] is None or at < interval[1])
