"""Score what a store holds against a scenario's gold. Pure: no store, no model, no judge.

A stored fact matches a gold fact whose keywords are found in its statement; it may match several. Keywords are blind to
meaning: read what was missed by name before believing a single number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from afterword.evaluation.scenarios import GoldFact, NotFact, Scenario, Story
from afterword.evaluation.scores import Score, Share
from afterword.facts.fact import Fact, Status

T = TypeVar("T")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Match:
    """A gold fact, and the stored facts that match it: all, and those that are current."""

    gold: GoldFact
    found: tuple[Fact, ...]
    live: tuple[Fact, ...]

    @property
    def is_stale(self) -> bool:
        return self.gold.status != "current" and bool(self.live)

    @property
    def is_wrongly_retired(self) -> bool:
        return self.gold.status == "current" and bool(self.found) and not self.live


def score(scenario: Scenario, facts: Sequence[Fact]) -> Score:
    """Score the facts that a store holds for a scenario after its last session, retired ones too."""
    current = [fact for fact in facts if fact.status is Status.CURRENT]
    matches = [_match(gold, facts) for gold in scenario.gold.facts]
    wrong = [(one, _matching(one.keywords, current)) for one in scenario.gold.not_facts]
    grounded = [grounding(fact, scenario) for fact in facts]
    repeats = repeated(matches, current)
    unmatched = unmatched_facts(scenario, facts)
    told = [one for one in matches if one.gold.status != "retracted"]
    never = Counter(one.gold.status for one in told if one.gold.status != "current" and not one.found)
    return Score(
        sessions=len(scenario.sessions),
        facts=len(facts),
        current_facts=len(current),
        never_stored=never.total(),
        duplicates=len(repeats),
        words=sum(len(fact.statement.split()) for fact in facts),
        shares={
            **_of_gold(matches),
            "precision": _share(facts, lambda fact: _is_wanted(fact, matches, wrong)),
            "evidence_ok": Share(sum(one.is_verbatim for one in grounded), len(grounded)),
            "grounded_in_user": Share(sum(one.is_by_a_person for one in grounded), len(grounded)),
            "not_facts_stored": _share(wrong, lambda one: bool(one[1])),
            "unmatched": Share(len(unmatched), len(current)),
        },
        never_stored_by_status=dict(sorted(never.items())),
        not_facts_by_why=_by_why(wrong),
        misses={
            **_missed(matches),
            "not_facts": [_told_wrong(one, found) for one, found in wrong if found],
            "duplicates": repeats,
            "ungrounded": [_shown(fact) for fact, one in zip(facts, grounded, strict=True) if not one.is_verbatim],
            "unmatched": [{"statement": _line(fact.statement)} for fact in unmatched],
        },
    )


def unmatched_facts(scenario: Scenario, facts: Iterable[Fact]) -> list[Fact]:
    """Return the current facts that match no gold fact of the scenario."""
    return [
        fact
        for fact in facts
        if fact.status is Status.CURRENT and not any(found(gold.keywords, fact) for gold in scenario.gold.facts)
    ]


def found(keywords: Sequence[Sequence[str]], fact: Fact) -> bool:
    """Whether every group of keywords has an item that stands in the fact's statement, whatever the case."""
    text = _line(fact.statement)
    return all(any(re.search(item, text, re.IGNORECASE) for item in group) for group in keywords)


@dataclass(frozen=True, slots=True)
class Grounding:
    """Whether a fact has evidence, each quote of which was said where it says; and whether a person said any of it."""

    is_verbatim: bool
    is_by_a_person: bool


def grounding(fact: Fact, story: Story) -> Grounding:
    """Look a fact's evidence up in the sessions: words of people and agents count, white space aside."""
    speakers = [_who_said(item.quote, item.session_id, story) for item in fact.evidence]
    is_verbatim = bool(speakers) and all(speakers)
    return Grounding(is_verbatim, is_verbatim and any("user" in roles for roles in speakers))


def exported(fact: Fact) -> Json:
    """Return a fact as a scorer elsewhere takes it."""
    return {
        "statement": fact.statement,
        "kind": str(fact.kind),
        "status": str(fact.status),
        "valid_from": fact.valid_from.isoformat() if fact.valid_from else None,
        "valid_to": fact.valid_to.isoformat() if fact.valid_to else None,
        "evidence": [{"session_id": item.session_id, "quote": item.quote} for item in fact.evidence],
    }


def repeated(matches: Sequence[_Match], current: Sequence[Fact]) -> list[Json]:
    """Return the current facts that match gold facts, yet only such as other current facts match already.

    Those that match most are kept first; of equals the one that comes first.
    """
    hits = [{one.gold.id for one in matches if any(fact is live for live in one.live)} for fact in current]
    covered: set[str] = set()
    waiting = [place for place, ids in enumerate(hits) if ids]
    while waiting:
        best = max(waiting, key=lambda place: len(hits[place] - covered))
        if hits[best] <= covered:
            break
        covered |= hits[best]
        waiting.remove(best)
    return [{"gold": sorted(hits[place]), "statement": _line(current[place].statement)} for place in waiting]


def _match(gold: GoldFact, facts: Sequence[Fact]) -> _Match:
    stored = _matching(gold.keywords, facts)
    return _Match(gold, stored, tuple(fact for fact in stored if fact.status is Status.CURRENT))


def _matching(keywords: Sequence[Sequence[str]], facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if found(keywords, fact))


def _of_gold(matches: Sequence[_Match]) -> dict[str, Share]:
    """Return the shares that are counted over gold facts."""
    retracted = [one for one in matches if one.gold.status == "retracted"]
    told = [one for one in matches if one.gold.status != "retracted"]
    current = [one for one in told if one.gold.status == "current"]
    former = [one for one in told if one.gold.status != "current"]
    stored_former = [one for one in former if one.found]
    dated = [one for one in stored_former if one.gold.status == "expired" and one.gold.valid_to]
    return {
        "fact_recall": _share(told, lambda one: bool(one.found)),
        "current_recall": _share(current, lambda one: bool(one.live)),
        "update_correct": _share(stored_former, lambda one: not one.live),
        "update_of_all": _share(former, lambda one: bool(one.found) and not one.live),
        "retracted_gone": _share(retracted, lambda one: not one.live),
        "wrongly_retired": _share(current, lambda one: one.is_wrongly_retired),
        "kind_correct": _share([one for one in told if one.found], _has_its_kind),
        "valid_to_correct": _share(dated, _has_its_last_day),
    }


def _has_its_kind(one: _Match) -> bool:
    return any(fact.kind == one.gold.kind for fact in one.found)


def _has_its_last_day(one: _Match) -> bool:
    days = {fact.valid_to.date().isoformat() for fact in one.found if fact.valid_to}
    return (one.gold.valid_to or "")[:10] in days


def _is_wanted(fact: Fact, matches: Sequence[_Match], wrong: Sequence[tuple[NotFact, tuple[Fact, ...]]]) -> bool:
    is_gold = any(fact is stored for one in matches for stored in one.found)
    return is_gold and not any(fact is stored for _, stored_as in wrong for stored in stored_as)


def _who_said(quote: str, session_id: str | None, story: Story) -> set[str]:
    wanted = _line(quote)
    return {
        message.role
        for session in story.sessions
        for message in session.messages
        if session.session_id == session_id and message.role in ("user", "assistant")
        if wanted and wanted in _line(message.content)
    }


def _missed(matches: Sequence[_Match]) -> dict[str, list[Json]]:
    missed = [one for one in matches if one.gold.status != "retracted" and not one.found]
    return {
        "missed": [{**_named(one), "status": one.gold.status} for one in missed],
        "stale": [
            {**_named(one), "status": one.gold.status, "stored": [_line(fact.statement) for fact in one.live]}
            for one in matches
            if one.is_stale
        ],
        "wrongly_retired": [
            {**_named(one), "stored": [[str(fact.status), _line(fact.statement)] for fact in one.found]}
            for one in matches
            if one.is_wrongly_retired
        ],
    }


def _named(one: _Match) -> Json:
    return {"gold": one.gold.id, "statement": one.gold.statement}


def _told_wrong(one: NotFact, stored: Sequence[Fact]) -> Json:
    return {"why": one.why, "statement": one.statement, "stored": [_line(fact.statement) for fact in stored]}


def _shown(fact: Fact) -> Json:
    return {"statement": _line(fact.statement), "evidence": exported(fact)["evidence"]}


def _by_why(wrong: Sequence[tuple[NotFact, tuple[Fact, ...]]]) -> dict[str, Share]:
    reasons = sorted({one.why for one, _ in wrong})
    return {why: _share([item for item in wrong if item[0].why == why], lambda one: bool(one[1])) for why in reasons}


def _share(items: Iterable[T], is_so: Callable[[T], bool]) -> Share:
    answers = [is_so(item) for item in items]
    return Share(sum(answers), len(answers))


def _line(text: str) -> str:
    """Return the text with each run of white space as one space."""
    return " ".join(text.split())
