"""Scores: what was counted over one scenario or several, and how it adds up. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

Json = dict[str, Any]


class Share(NamedTuple):
    """So many of so many."""

    n: int
    of: int

    @property
    def ratio(self) -> float | None:
        """The share as a number, None where there is nothing to share."""
        return self.n / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Score:
    """What a store holds of one scenario, or of several, against the gold.

    The shares, by name:

        fact_recall       gold facts, retracted ones aside, that a stored fact of any status matches
        current_recall    gold current facts that a current stored fact matches
        precision         stored facts of any status that match a gold fact, save current ones that match a not-fact
        update_correct    gold superseded and expired facts that were stored and are current no more, of those stored
        update_of_all     the same, of all such gold facts: one that was never stored earns nothing
        retracted_gone    gold retracted facts that no current stored fact matches
        wrongly_retired   gold current facts that were stored, but are current no more
        kind_correct      gold facts that were stored, with the right kind
        valid_to_correct  gold expired facts that were stored, with the right last day
        evidence_ok       stored facts, each quote of which somebody said in the session that it names
        grounded_in_user  those of them of which a person said at least one quote
        not_facts_stored  not-facts that a current stored fact matches
        unmatched         current stored facts that match no gold fact: an upper bound of junk, to be read

    `misses` holds, under a name each, what to read.
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
    """Return the scenarios' sums, without what to read: every gold fact weighs the same."""
    return reduce(_sum, scores, Score(0, 0, 0, 0, 0, 0, {}, {}, {}))


def as_json(one: Score) -> Json:
    """Return a score for machines: shares as {n, of, share}; share is null where there is nothing to share."""
    return {
        "sessions": one.sessions,
        "facts": one.facts,
        "current_facts": one.current_facts,
        "never_stored": one.never_stored,
        "duplicates": one.duplicates,
        **{name: _share_json(share) for name, share in one.shares.items()},
        "facts_per_session": round(one.facts / one.sessions, 2) if one.sessions else None,
        "words_per_fact": round(one.words / one.facts, 1) if one.facts else None,
        "never_stored_by_status": dict(one.never_stored_by_status),
        "not_facts_by_why": {why: {"n": share.n, "of": share.of} for why, share in one.not_facts_by_why.items()},
        **({"misses": dict(one.misses)} if one.misses else {}),
    }


def _share_json(share: Share) -> Json:
    return {"n": share.n, "of": share.of, "share": None if share.ratio is None else round(share.ratio, 4)}


def _sum(one: Score, other: Score) -> Score:
    never = Counter(one.never_stored_by_status) + Counter(other.never_stored_by_status)
    return Score(
        sessions=one.sessions + other.sessions,
        facts=one.facts + other.facts,
        current_facts=one.current_facts + other.current_facts,
        never_stored=one.never_stored + other.never_stored,
        duplicates=one.duplicates + other.duplicates,
        words=one.words + other.words,
        shares=_sums(one.shares, other.shares),
        never_stored_by_status=dict(sorted(never.items())),
        not_facts_by_why=dict(sorted(_sums(one.not_facts_by_why, other.not_facts_by_why).items())),
    )


def _sums(some: Mapping[str, Share], others: Mapping[str, Share]) -> dict[str, Share]:
    nothing = Share(0, 0)
    names = dict.fromkeys([*some, *others])
    pairs = {name: (some.get(name, nothing), others.get(name, nothing)) for name in names}
    return {name: Share(one.n + other.n, one.of + other.of) for name, (one, other) in pairs.items()}
