"""Decide which removals of facts wait for a person's approval. Pure.

A removal ends a fact or hides it. A session may end facts from other sessions, so a pasted page, a misread sentence or
a misled model could empty a memory. So the words that cause each removal must name the fact. More than `MOST_UNNAMED`
unnamed removals wait for approval, and so does a single unnamed removal of a fact about health or safety.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from afterword.facts.assertions import OWNER, Assertion, EvidenceKind, Kind, Relation, SpeechAct
from afterword.facts.fact import Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.safety import concerns_health_or_safety, is_standing_instruction
from afterword.facts.words import folded, terms, word_set, words_as_written

MOST_UNNAMED = 3
"""How many facts of other sessions one session may end or hide without naming them."""

_TAKES_BACK = re.compile(
    r"\b(?:forget|delete|erase|remove|wipe|drop|discard|withdraw|no longer|any ?(?:more|longer)|used to|never (?:was|"
    r"had|have been|said)|not true|untrue|wrong|mistak\w+|misdiagnos\w+|outgrown|outgrew|stopped|quit|healed|recovered|"
    r"cured|gone|over|is out|leave (?:it|that) out|no idea where|isn't|am not|I'm not|don't have|doesn't|didn't|"
    r"vergiss|"
    r"lösch\w*|nicht mehr|kein\w* mehr|weglassen|stimmt nicht|olvida\w*|borra\w*|ya no|oublie\w*|efface\w*|ne \w+ plus|"
    r"dimentica\w*|cancella\w*|non \w+ più|esquec\w*|apaga\w*|já não|não \w+ mais|vergeet|verwijder\w*|niet meer|"
    r"geen \w+ meer)\b",
    re.IGNORECASE,
)
_ASKED_TO_KEEP = re.compile(
    r"\b(?:do(?:n['’]?t| not)|never|nicht|no|non|ne|não|niet) (?:ever )?(?:forget|delete|erase|remove|drop|vergiss|"
    r"vergessen|olvid\w+|oubli\w+|dimentic\w+|esque\w+|vergeet|vergeten)\b|\bvergiss nicht\b",
    re.IGNORECASE,
)
_ALL = word_set("everything all anything me us")
_OF_ALL = word_set(
    "you know about have remember remembered stored saved kept learned learnt that of my our data memory memories "
    "notes information the user completely entirely i ve said told mentioned wrote shared to just"
)
_GENERIC = frozenset(terms("note said story thing part user name value current new old type kind"))


@dataclass(frozen=True, slots=True)
class Removal:
    """A fact that held, and the statement `removed_by` that ends or hides it.

    `is_replaced` says whether another value takes its place.
    """

    fact: Fact
    removed_by: Assertion
    is_replaced: bool


@dataclass(frozen=True, slots=True)
class UnnamedRemovalCounts:
    """How many facts of other sessions one session would remove without naming them, and how many are about health."""

    fact_count: int = 0
    health_fact_count: int = 0

    @property
    def must_wait(self) -> bool:
        """Whether a person must approve the removals first."""
        return self.fact_count > MOST_UNNAMED or self.health_fact_count > 0

    def counts_if_waiting(self) -> dict[str, int]:
        """Return the numbers as counts of a run, without zeros. Empty if nothing must wait."""
        counts = {UNNAMED: self.fact_count, UNNAMED_HEALTH: self.health_fact_count} if self.must_wait else {}
        return {name: count for name, count in counts.items() if count}


UNNAMED, UNNAMED_HEALTH = "unnamed_removals", "unnamed_health_removals"
"""The names of the two numbers among the counts of a run."""


def removals_between(
    facts_before: Iterable[Fact],
    retired: Iterable[tuple[Fact, Fact | None]],
    hidden_ids: frozenset[str],
    after: Knowledge,
) -> list[Removal]:
    """Return the removals among these changes.

    `retired` holds ended facts with their successors. A fact of `facts_before` is removed if all its assertions
    are in `hidden_ids`; the request to erase that hides it must be in `after`.
    """
    removals = [
        Removal(fact, after.by_id[fact.retired_by], successor is not None)
        for fact, successor in retired
        if fact.retired_by is not None and fact.retired_by in after.by_id
    ]
    for fact in facts_before:
        if fact.is_served and hidden_ids.issuperset(fact.assertion_ids):
            requests = (
                after.by_id[verdict.later_id]
                for verdict in after.verdicts_by_id.get(fact.assertion_ids[0], ())
                if verdict.relation is Relation.RETRACTS and verdict.later_id in after.by_id
            )
            removals += [Removal(fact, said, False) for said in requests if said.act is SpeechAct.ERASE][:1]
    return removals


def asks_to_erase_everything(said: Assertion) -> bool:
    """Return whether a request asks to erase everything about somebody, without naming any single fact."""
    words = set(words_as_written(said.value.casefold()))
    return said.act is SpeechAct.ERASE and not words.isdisjoint(_ALL) and words <= _ALL | _OF_ALL


def has_matched_statement(request: Assertion, after: Knowledge) -> bool:
    """Return whether a request to erase matched any statement, even if a person has overruled it since."""
    verdicts = after.verdicts_by_id.get(request.id, ())
    return any(verdict.later_id == request.id and verdict.relation is Relation.RETRACTS for verdict in verdicts)


def count_unnamed_removals(removals: Iterable[Removal]) -> UnnamedRemovalCounts:
    """Count the removals that the person did not name: the most of any session, and all that are about health."""
    facts: Counter[str] = Counter()
    health = 0
    for removal in removals:
        session_id = removal.removed_by.session_id
        is_foreign = any(cited.session_id != session_id for cited in removal.fact.evidence)
        if not is_foreign or session_id is None:
            continue  # a session may correct itself, and an entry without a session belongs to none
        is_unnamed_health = is_about_health(removal.fact) and not _is_fact_named_as_ended(removal)
        health += is_unnamed_health
        facts[session_id] += is_unnamed_health or not _is_fact_named(removal)
    return UnnamedRemovalCounts(max(facts.values(), default=0), health)


def count_unnamed_withdrawal(fact: Fact, said: str) -> UnnamedRemovalCounts:
    """Count a withdrawal as unnamed if the fact is about health and a person's words do not say that it is over."""
    is_unnamed = is_about_health(fact) and not _says_that_it_ends(fact, said)
    return UnnamedRemovalCounts(int(is_unnamed), int(is_unnamed))


def says_that_something_ends(said: str) -> bool:
    """Return whether these words say that something is over or is to be forgotten."""
    return bool(_TAKES_BACK.search(said)) and not _ASKED_TO_KEEP.search(said)


def is_about_health(fact: Fact) -> bool:
    """Return whether a fact is about health or safety, by its words or its flag.

    A model also flags standing requests, which are preferences or decisions. So for these two kinds only a flag that a
    person set counts.
    """
    words = f"{fact.statement} {fact.attribute.replace('_', ' ')} {fact.value}"
    is_flagged = fact.is_flagged and not is_standing_instruction(fact.kind, fact.statement)
    by_person = any(cited.kind is EvidenceKind.PERSON for cited in fact.evidence)
    return (is_flagged and (fact.kind is Kind.ENTITY or by_person)) or concerns_health_or_safety(words)


def held_reason(counts: Mapping[str, int]) -> str | None:
    """Return why a run with these counts waits for a person, None if the counts give no reason."""
    if counts.get("quarantined"):
        return "it reads like an instruction to an assistant"
    unnamed, health = counts.get(UNNAMED, 0), counts.get(UNNAMED_HEALTH, 0)
    if not unnamed:
        return None
    among = f", {health} of them about health or safety" if health else ""
    return f"it would end or hide {unnamed} facts of other sessions that the person did not name{among}"


def _is_fact_named(removal: Removal) -> bool:
    """Whether the person's words name the fact: a word of its value, its subject or its attribute."""
    fact = removal.fact
    subject = "" if folded(fact.subject) == OWNER else fact.subject
    names = {*terms(fact.value), *terms(subject), *terms(fact.attribute.replace("_", " "))} - _GENERIC
    return not names or not names.isdisjoint(terms(_words_of_last_speaker(removal.removed_by)))


def _is_fact_named_as_ended(removal: Removal) -> bool:
    """Whether the person's words name the fact's value or subject, and say that it is over or should be forgotten.

    If a statement of another value replaces the fact, the words need not say that it is over.
    """
    said = _words_of_last_speaker(removal.removed_by)
    if removal.is_replaced and removal.removed_by.act is SpeechAct.STATE:
        return _names_value_or_subject(removal.fact, said)
    return _says_that_it_ends(removal.fact, said)


def _says_that_it_ends(fact: Fact, said: str) -> bool:
    return _names_value_or_subject(fact, said) and says_that_something_ends(said)


def _names_value_or_subject(fact: Fact, said: str) -> bool:
    subject = "" if folded(fact.subject) == OWNER else fact.subject
    names = ({*terms(fact.value), *terms(subject)} - _GENERIC) or {*terms(fact.statement)}
    return not names.isdisjoint(terms(said))


def _words_of_last_speaker(assertion: Assertion) -> str:
    """Return the quoted words of the person who spoke last, without quotes of other speakers such as an agent."""
    speaker = assertion.evidence[-1].speaker
    return " ".join(cited.quote for cited in assertion.evidence if cited.speaker == speaker)
