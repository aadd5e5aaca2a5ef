"""Score stored facts against the gold facts of a scenario, which should be stored.

A stored fact matches a gold fact if all keywords of the gold fact occur in its statement. It may match several gold
facts. Keywords do not understand meaning: read the list of misses before you rely on a single figure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple, TypeVar

from afterword.evaluation.scenarios.scenario import GoldFact, NotFact, Scenario, Story, one_line
from afterword.facts.fact import Fact, Status

Json = dict[str, Any]

T = TypeVar("T")


class Share(NamedTuple):
    """A share: `n` out of `of`."""

    n: int
    of: int

    @property
    def ratio(self) -> float | None:
        """The share as a number, None if the total is 0."""
        return self.n / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Score:
    """How the facts in a store compare with the gold of one scenario, or of several.

    The shares, by name:

        fact_recall       gold facts, except retracted ones, that a stored fact of any status matches
        current_recall    current gold facts that a current stored fact matches
        precision         stored facts of any status that match a gold fact, except current ones that match a not-fact
        update_correct    superseded and expired gold facts that are stored and not current, of those that are stored
        update_of_all     superseded and expired gold facts that are stored and not current, of all of them
        retracted_gone    retracted gold facts that no current stored fact matches
        wrongly_retired   current gold facts that are stored, but not as current
        kind_correct      stored gold facts with the right kind
        valid_to_correct  stored expired gold facts with the right last day
        evidence_ok       stored facts whose quotes were all said in the sessions that they name
        grounded_in_user  those of them that have at least one quote of a person
        not_facts_stored  not-facts that a current stored fact matches
        unmatched         current stored facts that match no gold fact: an upper bound of useless facts; read them

    `misses` lists the mistakes by kind, for a person to read. `never_stored` counts superseded and expired gold facts
    that no stored fact matches.
    """

    sessions: int
    facts: int
    current_facts: int
    never_stored: int
    duplicates: int
    words: int
    shares: Mapping[str, Share]
    never_stored_by_status: Mapping[str, int]
    not_facts_by_why: Mapping[str, Share]
    misses: Mapping[str, Sequence[Json]] = field(default_factory=dict)


def total_score(scores: Iterable[Score]) -> Score:
    """Return the sum of the scores, without their misses. Every gold fact has the same weight."""
    return reduce(_sum_scores, scores, Score(0, 0, 0, 0, 0, 0, {}, {}, {}))


def score_json(score: Score) -> Json:
    """Return a score for machines. A share is {n, of, share}, in which `share` is null if `of` is 0."""
    shares = {
        name: {"n": share.n, "of": share.of, "share": None if share.ratio is None else round(share.ratio, 4)}
        for name, share in score.shares.items()
    }
    return {
        "sessions": score.sessions,
        "facts": score.facts,
        "current_facts": score.current_facts,
        "never_stored": score.never_stored,
        "duplicates": score.duplicates,
        **shares,
        "facts_per_session": round(score.facts / score.sessions, 2) if score.sessions else None,
        "words_per_fact": round(score.words / score.facts, 1) if score.facts else None,
        "never_stored_by_status": dict(score.never_stored_by_status),
        "not_facts_by_why": {why: {"n": share.n, "of": share.of} for why, share in score.not_facts_by_why.items()},
        **({"misses": dict(score.misses)} if score.misses else {}),
    }


def _sum_scores(first: Score, other: Score) -> Score:
    counts = ("sessions", "facts", "current_facts", "never_stored", "duplicates", "words")
    never = Counter(first.never_stored_by_status) + Counter(other.never_stored_by_status)
    return Score(
        **{name: getattr(first, name) + getattr(other, name) for name in counts},
        shares=_sum_shares(first.shares, other.shares),
        never_stored_by_status=dict(sorted(never.items())),
        not_facts_by_why=dict(sorted(_sum_shares(first.not_facts_by_why, other.not_facts_by_why).items())),
    )


def _sum_shares(shares: Mapping[str, Share], others: Mapping[str, Share]) -> dict[str, Share]:
    pairs = {name: (shares.get(name, Share(0, 0)), others.get(name, Share(0, 0))) for name in {**shares, **others}}
    return {name: Share(share.n + other.n, share.of + other.of) for name, (share, other) in pairs.items()}


@dataclass(frozen=True, slots=True)
class _GoldMatch:
    gold: GoldFact
    stored_facts: tuple[Fact, ...]

    @property
    def is_stored(self) -> bool:
        return bool(self.stored_facts)

    @property
    def current_facts(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.stored_facts if fact.status is Status.CURRENT)

    @property
    def is_wrongly_retired(self) -> bool:
        return self.gold.status == "current" and self.is_stored and not self.current_facts

    @property
    def has_right_kind(self) -> bool:
        return any(fact.kind == self.gold.kind for fact in self.stored_facts)

    @property
    def has_right_last_day(self) -> bool:
        last_day = (self.gold.valid_to or "")[:10]
        return any(fact.valid_to and fact.valid_to.date().isoformat() == last_day for fact in self.stored_facts)


class _NotFactMatch(NamedTuple):
    not_fact: NotFact
    stored_facts: tuple[Fact, ...]


def score_facts(scenario: Scenario, facts: Sequence[Fact]) -> Score:
    """Return the score of the facts that a store holds after the scenario's last session, retired facts included."""
    current = [fact for fact in facts if fact.status is Status.CURRENT]
    matches = [_GoldMatch(gold, _facts_with_keywords(gold.keywords, facts)) for gold in scenario.gold.facts]
    not_facts = [
        _NotFactMatch(wrong, _facts_with_keywords(wrong.keywords, current)) for wrong in scenario.gold.not_facts
    ]
    roles = [_quoted_roles(fact, scenario) for fact in facts]
    duplicates = _duplicate_facts(matches, current)
    unmatched = unmatched_current_facts(scenario, facts)
    never_stored = Counter(match.gold.status for match in matches if _is_former(match) and not match.is_stored)
    return Score(
        sessions=len(scenario.sessions),
        facts=len(facts),
        current_facts=len(current),
        never_stored=never_stored.total(),
        duplicates=len(duplicates),
        words=sum(len(fact.statement.split()) for fact in facts),
        shares={
            **_gold_shares(matches),
            "precision": _precision(facts, matches, not_facts),
            "evidence_ok": _share(roles, lambda said_by: said_by is not None),
            "grounded_in_user": _share(roles, lambda said_by: said_by is not None and "user" in said_by),
            "not_facts_stored": _share(not_facts, lambda match: bool(match.stored_facts)),
            "unmatched": Share(len(unmatched), len(current)),
        },
        never_stored_by_status=dict(sorted(never_stored.items())),
        not_facts_by_why=_shares_by_why(not_facts),
        misses={
            **_gold_misses(matches),
            "not_facts": _stored_not_facts(not_facts),
            "duplicates": duplicates,
            "ungrounded": _ungrounded_facts(facts, roles),
            "unmatched": [{"statement": statement} for statement in _statements(unmatched)],
        },
    )


def unmatched_current_facts(scenario: Scenario, facts: Iterable[Fact]) -> list[Fact]:
    """Return the current facts that match no gold fact of the scenario."""
    return [
        fact
        for fact in facts
        if fact.status is Status.CURRENT and not any(_has_keywords(fact, gold.keywords) for gold in scenario.gold.facts)
    ]


def fact_json_for_scorers(fact: Fact) -> Json:
    """Return a fact in the form that other scoring tools read."""
    return {
        "statement": fact.statement,
        "kind": str(fact.kind),
        "status": str(fact.status),
        "valid_from": fact.valid_from.isoformat() if fact.valid_from else None,
        "valid_to": fact.valid_to.isoformat() if fact.valid_to else None,
        "evidence": [{"session_id": evidence.session_id, "quote": evidence.quote} for evidence in fact.evidence],
    }


def _has_keywords(fact: Fact, keywords: Sequence[Sequence[str]]) -> bool:
    """Return whether the statement of a fact contains a keyword of every group, regardless of case."""
    text = one_line(fact.statement)
    return all(any(re.search(keyword, text, re.IGNORECASE) for keyword in group) for group in keywords)


def _facts_with_keywords(keywords: Sequence[Sequence[str]], facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if _has_keywords(fact, keywords))


def _quoted_roles(fact: Fact, story: Story) -> set[str] | None:
    """Return the roles that said a fact's quotes in the sessions that it names, or None if a quote was not said.

    Only messages of people and agents are searched. Differences in white space do not count.
    """
    roles: list[set[str]] = [
        {message.role for message in story.messages_with(evidence.quote, evidence.session_id)}
        for evidence in fact.evidence
    ]
    return set().union(*roles) if roles and all(roles) else None


def _duplicate_facts(matches: Sequence[_GoldMatch], current: Sequence[Fact]) -> list[Json]:
    """Return the current facts whose gold facts are all matched by other current facts, too.

    Facts that match the most gold facts are taken first, and are not duplicates. Of equal ones, the first is taken.
    """
    gold_ids = [{match.gold.id for match in matches if _is_among(fact, match.current_facts)} for fact in current]
    covered: set[str] = set()
    remaining = [place for place, ids in enumerate(gold_ids) if ids]
    while remaining:
        best = max(remaining, key=lambda place: len(gold_ids[place] - covered))
        if gold_ids[best] <= covered:
            break
        covered |= gold_ids[best]
        remaining.remove(best)
    return [{"gold": sorted(gold_ids[place]), "statement": one_line(current[place].statement)} for place in remaining]


def _is_former(match: _GoldMatch) -> bool:
    return match.gold.status in ("superseded", "expired")


def _gold_shares(matches: Sequence[_GoldMatch]) -> dict[str, Share]:
    retracted = [match for match in matches if match.gold.status == "retracted"]
    current = [match for match in matches if match.gold.status == "current"]
    former = [match for match in matches if _is_former(match)]
    stored_former = [match for match in former if match.is_stored]
    stored = [match for match in (*current, *former) if match.is_stored]
    dated = [match for match in stored_former if match.gold.status == "expired" and match.gold.valid_to]
    return {
        "fact_recall": _share((*current, *former), lambda match: match.is_stored),
        "current_recall": _share(current, lambda match: bool(match.current_facts)),
        "update_correct": _share(stored_former, lambda match: not match.current_facts),
        "update_of_all": _share(former, lambda match: match.is_stored and not match.current_facts),
        "retracted_gone": _share(retracted, lambda match: not match.current_facts),
        "wrongly_retired": _share(current, lambda match: match.is_wrongly_retired),
        "kind_correct": _share(stored, lambda match: match.has_right_kind),
        "valid_to_correct": _share(dated, lambda match: match.has_right_last_day),
    }


def _precision(facts: Sequence[Fact], matches: Iterable[_GoldMatch], not_facts: Iterable[_NotFactMatch]) -> Share:
    right = [fact for match in matches for fact in match.stored_facts]
    wrong = [fact for match in not_facts for fact in match.stored_facts]
    return _share(facts, lambda fact: _is_among(fact, right) and not _is_among(fact, wrong))


def _shares_by_why(not_facts: Sequence[_NotFactMatch]) -> dict[str, Share]:
    """Return by reason how many not-facts are stored."""
    reasons = sorted({match.not_fact.why for match in not_facts})
    stored = {why: [bool(match.stored_facts) for match in not_facts if match.not_fact.why == why] for why in reasons}
    return {why: _share(answers, bool) for why, answers in stored.items()}


def _is_among(fact: Fact, facts: Iterable[Fact]) -> bool:
    return any(fact is other for other in facts)


def _statements(facts: Iterable[Fact]) -> list[str]:
    return [one_line(fact.statement) for fact in facts]


def _gold_misses(matches: Sequence[_GoldMatch]) -> dict[str, list[Json]]:
    return {
        "missed": [
            _gold_miss(match, status=match.gold.status)
            for match in matches
            if match.gold.status != "retracted" and not match.is_stored
        ],
        "stale": [
            _gold_miss(match, status=match.gold.status, stored=_statements(match.current_facts))
            for match in matches
            if match.gold.status != "current" and match.current_facts
        ],
        "wrongly_retired": [
            _gold_miss(match, stored=[[str(fact.status), one_line(fact.statement)] for fact in match.stored_facts])
            for match in matches
            if match.is_wrongly_retired
        ],
    }


def _gold_miss(match: _GoldMatch, **details: object) -> Json:
    return {"gold": match.gold.id, "statement": match.gold.statement, **details}


def _stored_not_facts(not_facts: Iterable[_NotFactMatch]) -> list[Json]:
    return [
        {"why": wrong.why, "statement": wrong.statement, "stored": _statements(stored)}
        for wrong, stored in not_facts
        if stored
    ]


def _ungrounded_facts(facts: Sequence[Fact], roles: Sequence[set[str] | None]) -> list[Json]:
    return [
        {"statement": one_line(fact.statement), "evidence": fact_json_for_scorers(fact)["evidence"]}
        for fact, said_by in zip(facts, roles, strict=True)
        if said_by is None
    ]


def _share(population: Iterable[T], is_counted: Callable[[T], bool]) -> Share:
    answers = [is_counted(member) for member in population]
    return Share(sum(answers), len(answers))
