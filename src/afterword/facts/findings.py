"""Findings: results and advice that agents stated. They are kept apart from facts and never change them. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from afterword.facts.assertions import Evidence
from afterword.facts.scopes import Scope
from afterword.facts.words import folded, terms

EVERY_AGENT = "*"
"""Among the agents of a policy: findings of all agents are kept."""
DAYS, MOST_DAYS = 90, 36_500
LONGEST_STATEMENT, LONGEST_TOPIC, LONGEST_SOURCE = 400, 60, 300
MOST_PER_SESSION = 40
"""How many findings are kept of one session."""

_NO_WORD = re.compile(r"\W+")
_ECHO = 0.8
"""A finding repeats a note if one line of the agent's notes contains at least this share of the finding's words."""


class ToolFindingPolicy(StrEnum):
    """What happens to a finding if the agent used tools before: it waits for a person, or is kept at once."""

    REVIEW = "review"
    KEEP = "keep"


class FindingReview(StrEnum):
    """What a person has decided about a finding."""

    OPEN = "open"
    WAITING = "waiting"
    APPROVED = "approved"
    DROPPED = "dropped"


class FindingStatus(StrEnum):
    """The state of a finding at an instant. Only current ones are told to agents."""

    CURRENT = "current"
    WAITING = "waiting"
    DROPPED = "dropped"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class FindingPolicy:
    """The agents whose findings a scope keeps.

    By default there are none; `EVERY_AGENT` stands for all. With `advice` their advice is kept too. `agents_with_tools`
    says what happens to findings after an agent has used tools. A finding expires after `days` days unless it is found
    again.
    """

    agents: tuple[str, ...] = ()
    agents_with_tools: ToolFindingPolicy = ToolFindingPolicy.REVIEW
    advice: bool = False
    days: float = DAYS

    @property
    def is_on(self) -> bool:
        """Whether findings of any agent are kept."""
        return bool(self.agents)

    def keeps_findings_of(self, agent: str) -> bool:
        """Return whether findings of this agent are kept."""
        return EVERY_AGENT in self.agents or folded(agent) in map(folded, self.agents)

    def expiry(self, said_at: datetime, stated_end: datetime | None = None) -> datetime:
        """Return when a finding expires. If the agent named an end, `stated_end`, it expires then at the latest."""
        # Earlier versions stored days without an upper bound, and also "not a number".
        usual = said_at + timedelta(days=self.days if 0 < self.days <= MOST_DAYS else MOST_DAYS)
        return usual if stated_end is None else min(usual, stated_end)

    def as_json(self) -> dict[str, Any]:
        """Return the policy as it is stored."""
        return {**asdict(self), "agents": list(self.agents), "agents_with_tools": str(self.agents_with_tools)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FindingPolicy:
        """Return a stored policy."""
        mode = ToolFindingPolicy(stored["agents_with_tools"])
        return cls(tuple(stored["agents"]), mode, bool(stored["advice"]), float(stored["days"]))


@dataclass(frozen=True, slots=True)
class AgentFinding:
    """A statement that an agent made: a finding, or advice with `is_advice`.

    `evidence` holds the quoted words of the agent. It is empty if the agent saved the finding with a tool. `source` is
    the source that the agent named, if any. `after_tools` says that the agent had used tools before. If the statement
    was made several times, `sayings` holds the ids of all of these findings, the newest last, and `first_said_at` is
    the time of the first. The other fields are those of the newest.
    """

    id: str
    scope: Scope
    session_id: str | None
    agent: str
    topic: str
    statement: str
    said_at: datetime
    expires_at: datetime
    is_advice: bool = False
    source: str | None = None
    after_tools: bool = False
    review: FindingReview = FindingReview.OPEN
    evidence: tuple[Evidence, ...] = ()
    first_said_at: datetime | None = None
    sayings: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The normalised statement: findings with the same key are the same finding."""
        return statement_key(self.statement)

    def status_at(self, at: datetime) -> FindingStatus:
        """Return the state of the finding at an instant."""
        if self.review is FindingReview.DROPPED:
            return FindingStatus.DROPPED
        if at >= self.expires_at:
            return FindingStatus.EXPIRED
        return FindingStatus.WAITING if self.review is FindingReview.WAITING else FindingStatus.CURRENT


def statement_key(statement: str) -> str:
    """Return a statement in lower case, with single spaces in place of punctuation and white space."""
    return _NO_WORD.sub(" ", folded(statement)).strip()


def united_findings(sayings: Iterable[AgentFinding]) -> list[AgentFinding]:
    """Return one finding for each statement that was said once or several times, the newest first.

    A person's decision about one of several equal statements counts for all of them. Without a decision, a statement
    waits only if all of them wait.
    """
    groups: dict[str, list[AgentFinding]] = defaultdict(list)
    for saying in sorted(sayings, key=lambda saying: (saying.said_at, saying.id)):
        groups[saying.key].append(saying)
    ranked = (FindingReview.DROPPED, FindingReview.APPROVED, FindingReview.OPEN, FindingReview.WAITING)
    united = [
        replace(
            group[-1],
            review=min((saying.review for saying in group), key=ranked.index),
            expires_at=max(saying.expires_at for saying in group),
            first_said_at=group[0].said_at,
            sayings=tuple(saying.id for saying in group),
        )
        for group in groups.values()
    ]
    return sorted(united, key=lambda finding: (finding.said_at, finding.id), reverse=True)


def repeats_note(statement: str, notes: Iterable[str]) -> bool:
    """Return whether an agent's statement repeats a line of the notes that it was given."""
    words = set(terms(statement))
    lines = (line for text in notes for line in text.splitlines())
    return bool(words) and any(len(words.intersection(terms(line))) >= _ECHO * len(words) for line in lines)
