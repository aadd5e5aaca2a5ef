"""Score the facts in a store against a scenario's gold. Pure: no store, no model, no judge.

A stored fact matches a gold fact if all keywords of the gold fact occur in its statement. It may match several gold
facts. Keywords do not understand meaning: read the list of misses before you rely on a single figure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from afterword.evaluation.scenarios.scenario import GoldFact, NotFact, Scenario, Story, one_line
from afterword.evaluation.scoring.scores import Score, Share
from afterword.facts.fact import Fact, Status

T = TypeVar("T")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _GoldMatch:
    """A gold fact with the stored facts that match it: all of them, and the current ones."""

    gold: GoldFact
    stored: tuple[Fact, ...]
    current: tuple[Fact, ...]

    @property
    def is_outdated(self) -> bool:
        return self.gold.status != "current" and bool(self.current)

    @property
    def is_wrongly_retired(self) -> bool:
        return self.gold.status == "current" and bool(self.stored) and not self.current


@dataclass(frozen=True, slots=True)
class _NotFactMatch:
    """A not-fact with the current facts that match it."""

    not_fact: NotFact
    stored: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class _QuoteCheck:
    """Whether every quote of a fact was said in the session that it names, and whether a person said any of them."""

    is_verbatim: bool
    is_by_a_person: bool


def score_facts(scenario: Scenario, facts: Sequence[Fact]) -> Score:
    """Return the score of the facts that a store holds after the scenario's last session, retired facts included."""
    current = [fact for fact in facts if fact.status is Status.CURRENT]
    matches = [_gold_match(gold, facts) for gold in scenario.gold.facts]
    not_facts = [_NotFactMatch(wrong, _matching(wrong.keywords, current)) for wrong in scenario.gold.not_facts]
    checks = [_quote_check(fact, scenario) for fact in facts]
    duplicates = _duplicates(matches, current)
    unmatched = unmatched_facts(scenario, facts)
    never_stored = Counter(
        match.gold.status for match in matches if match.gold.status not in ("current", "retracted") and not match.stored
    )
    return Score(
        sessions=len(scenario.sessions),
        facts=len(facts),
        current_facts=len(current),
        never_stored=never_stored.total(),
        duplicates=len(duplicates),
        words=sum(len(fact.statement.split()) for fact in facts),
        shares={
            **_gold_shares(matches),
            "precision": _share(facts, lambda fact: _is_wanted(fact, matches, not_facts)),
            "evidence_ok": _share(checks, lambda check: check.is_verbatim),
            "grounded_in_user": _share(checks, lambda check: check.is_by_a_person),
            "not_facts_stored": _share(not_facts, lambda match: bool(match.stored)),
            "unmatched": Share(len(unmatched), len(current)),
        },
        never_stored_by_status=dict(sorted(never_stored.items())),
        not_facts_by_why=_not_facts_by_reason(not_facts),
        misses={
            **_gold_misses(matches),
            "not_facts": [_not_fact_json(match) for match in not_facts if match.stored],
            "duplicates": duplicates,
            "ungrounded": [
                {"statement": one_line(fact.statement), "evidence": exported_fact(fact)["evidence"]}
                for fact, check in zip(facts, checks, strict=True)
                if not check.is_verbatim
            ],
            "unmatched": [{"statement": one_line(fact.statement)} for fact in unmatched],
        },
    )


def unmatched_facts(scenario: Scenario, facts: Iterable[Fact]) -> list[Fact]:
    """Return the current facts that match no gold fact of the scenario."""
    return [
        fact
        for fact in facts
        if fact.status is Status.CURRENT and not any(_matches(gold.keywords, fact) for gold in scenario.gold.facts)
    ]


def exported_fact(fact: Fact) -> Json:
    """Return a fact in the form that other scoring tools read."""
    return {
        "statement": fact.statement,
        "kind": str(fact.kind),
        "status": str(fact.status),
        "valid_from": fact.valid_from.isoformat() if fact.valid_from else None,
        "valid_to": fact.valid_to.isoformat() if fact.valid_to else None,
        "evidence": [{"session_id": evidence.session_id, "quote": evidence.quote} for evidence in fact.evidence],
    }


def _matches(keywords: Sequence[Sequence[str]], fact: Fact) -> bool:
    """Return whether every group has a keyword that occurs in the fact's statement, in upper or lower case."""
    text = one_line(fact.statement)
    return all(any(re.search(keyword, text, re.IGNORECASE) for keyword in group) for group in keywords)


def _matching(keywords: Sequence[Sequence[str]], facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if _matches(keywords, fact))


def _gold_match(gold: GoldFact, facts: Sequence[Fact]) -> _GoldMatch:
    stored = _matching(gold.keywords, facts)
    return _GoldMatch(gold, stored, tuple(fact for fact in stored if fact.status is Status.CURRENT))


def _quote_check(fact: Fact, story: Story) -> _QuoteCheck:
    """Look up the quotes of a fact in the sessions: messages of people and agents count, white space does not."""
    roles = [
        {message.role for _, message in story.messages_with(evidence.quote, evidence.session_id)}
        for evidence in fact.evidence
    ]
    is_verbatim = bool(roles) and all(roles)
    return _QuoteCheck(is_verbatim, is_verbatim and any("user" in said_by for said_by in roles))


def _duplicates(matches: Sequence[_GoldMatch], current: Sequence[Fact]) -> list[Json]:
    """Return the current facts that match gold facts, but only gold facts that other current facts match already.

    The facts that match the most gold facts are not duplicates; of equals the first is not.
    """
    gold_ids = [
        {match.gold.id for match in matches if any(fact is stored for stored in match.current)} for fact in current
    ]
    covered: set[str] = set()
    remaining = [place for place, ids in enumerate(gold_ids) if ids]
    while remaining:
        best = max(remaining, key=lambda place: len(gold_ids[place] - covered))
        if gold_ids[best] <= covered:
            break
        covered |= gold_ids[best]
        remaining.remove(best)
    return [{"gold": sorted(gold_ids[place]), "statement": one_line(current[place].statement)} for place in remaining]


def _gold_shares(matches: Sequence[_GoldMatch]) -> dict[str, Share]:
    """Return the shares that are counted over gold facts."""
    retracted = [match for match in matches if match.gold.status == "retracted"]
    expected = [match for match in matches if match.gold.status != "retracted"]
    current = [match for match in expected if match.gold.status == "current"]
    former = [match for match in expected if match.gold.status != "current"]
    stored_former = [match for match in former if match.stored]
    dated = [match for match in stored_former if match.gold.status == "expired" and match.gold.valid_to]
    return {
        "fact_recall": _share(expected, lambda match: bool(match.stored)),
        "current_recall": _share(current, lambda match: bool(match.current)),
        "update_correct": _share(stored_former, lambda match: not match.current),
        "update_of_all": _share(former, lambda match: bool(match.stored) and not match.current),
        "retracted_gone": _share(retracted, lambda match: not match.current),
        "wrongly_retired": _share(current, lambda match: match.is_wrongly_retired),
        "kind_correct": _share([match for match in expected if match.stored], _has_right_kind),
        "valid_to_correct": _share(dated, _has_right_last_day),
    }


def _has_right_kind(match: _GoldMatch) -> bool:
    return any(fact.kind == match.gold.kind for fact in match.stored)


def _has_right_last_day(match: _GoldMatch) -> bool:
    days = {fact.valid_to.date().isoformat() for fact in match.stored if fact.valid_to}
    return (match.gold.valid_to or "")[:10] in days


def _is_wanted(fact: Fact, matches: Sequence[_GoldMatch], not_facts: Sequence[_NotFactMatch]) -> bool:
    is_gold = any(fact is stored for match in matches for stored in match.stored)
    return is_gold and not any(fact is stored for match in not_facts for stored in match.stored)


def _gold_misses(matches: Sequence[_GoldMatch]) -> dict[str, list[Json]]:
    return {
        "missed": [
            {**_gold_json(match), "status": match.gold.status}
            for match in matches
            if match.gold.status != "retracted" and not match.stored
        ],
        "stale": [
            {
                **_gold_json(match),
                "status": match.gold.status,
                "stored": [one_line(fact.statement) for fact in match.current],
            }
            for match in matches
            if match.is_outdated
        ],
        "wrongly_retired": [
            {**_gold_json(match), "stored": [[str(fact.status), one_line(fact.statement)] for fact in match.stored]}
            for match in matches
            if match.is_wrongly_retired
        ],
    }


def _gold_json(match: _GoldMatch) -> Json:
    return {"gold": match.gold.id, "statement": match.gold.statement}


def _not_fact_json(match: _NotFactMatch) -> Json:
    stored = [one_line(fact.statement) for fact in match.stored]
    return {"why": match.not_fact.why, "statement": match.not_fact.statement, "stored": stored}


def _not_facts_by_reason(not_facts: Sequence[_NotFactMatch]) -> dict[str, Share]:
    reasons = sorted({match.not_fact.why for match in not_facts})
    return {
        reason: _share([match for match in not_facts if match.not_fact.why == reason], lambda match: bool(match.stored))
        for reason in reasons
    }


def _share(population: Iterable[T], is_counted: Callable[[T], bool]) -> Share:
    answers = [is_counted(member) for member in population]
    return Share(sum(answers), len(answers))
