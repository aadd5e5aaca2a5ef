"""Scores: counts over one scenario or several, and their sums. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

Json = dict[str, Any]


class Share(NamedTuple):
    """A count `n` out of a total `of`."""

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
        update_of_all     the same, of all superseded and expired gold facts, stored or not
        retracted_gone    retracted gold facts that no current stored fact matches
        wrongly_retired   current gold facts that are stored, but not as current
        kind_correct      stored gold facts with the right kind
        valid_to_correct  stored expired gold facts with the right last day
        evidence_ok       stored facts whose every quote was said in the session that it names
        grounded_in_user  stored facts of `evidence_ok` with at least one quote that a person said
        not_facts_stored  not-facts that a current stored fact matches
        unmatched         current stored facts that match no gold fact: an upper bound of useless facts; read them

    `misses` lists what went wrong, by kind, for a person to read.
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


def total(scores: Iterable[Score]) -> Score:
    """Return the sum of the scores, without their misses: every gold fact weighs the same."""
    return reduce(_sum, scores, Score(0, 0, 0, 0, 0, 0, {}, {}, {}))


def score_json(score: Score) -> Json:
    """Return a score for machines. A share is {n, of, share}, in which `share` is null if `of` is 0."""
    return {
        "sessions": score.sessions,
        "facts": score.facts,
        "current_facts": score.current_facts,
        "never_stored": score.never_stored,
        "duplicates": score.duplicates,
        **{name: _share_json(share) for name, share in score.shares.items()},
        "facts_per_session": round(score.facts / score.sessions, 2) if score.sessions else None,
        "words_per_fact": round(score.words / score.facts, 1) if score.facts else None,
        "never_stored_by_status": dict(score.never_stored_by_status),
        "not_facts_by_why": {why: {"n": share.n, "of": share.of} for why, share in score.not_facts_by_why.items()},
        **({"misses": dict(score.misses)} if score.misses else {}),
    }


def _share_json(share: Share) -> Json:
    return {"n": share.n, "of": share.of, "share": None if share.ratio is None else round(share.ratio, 4)}


def _sum(first: Score, other: Score) -> Score:
    never = Counter(first.never_stored_by_status) + Counter(other.never_stored_by_status)
    return Score(
        sessions=first.sessions + other.sessions,
        facts=first.facts + other.facts,
        current_facts=first.current_facts + other.current_facts,
        never_stored=first.never_stored + other.never_stored,
        duplicates=first.duplicates + other.duplicates,
        words=first.words + other.words,
        shares=_sums(first.shares, other.shares),
        never_stored_by_status=dict(sorted(never.items())),
        not_facts_by_why=dict(sorted(_sums(first.not_facts_by_why, other.not_facts_by_why).items())),
    )


def _sums(shares: Mapping[str, Share], others: Mapping[str, Share]) -> dict[str, Share]:
    sums = dict(shares)
    for name, other in others.items():
        share = sums.get(name, Share(0, 0))
        sums[name] = Share(share.n + other.n, share.of + other.of)
    return sums
