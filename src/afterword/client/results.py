"""The frozen dataclasses that methods of `Afterword` and `ScopeMemory` return. All datetimes have a time zone.

Some results are classes of other packages: `Fact`, `Run`, `SavedSession`, `SessionOutcome`, `Receipt`, `Spending`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from afterword.client.paging import Page
from afterword.facts.assertions import Assertion, Verdict
from afterword.facts.dependents import Dependent
from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.removals import held_reason
from afterword.facts.transcripts import SourceTurn, Turn
from afterword.pipeline.batch import Failure, NotDue, NotStarted
from afterword.pipeline.consolidation import ConsolidationResult
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.privacy.foreign.stretches import ForeignStretch
from afterword.store.costs import Spending
from afterword.store.reviews import Contest
from afterword.store.runs import Run
from afterword.store.sessions import SavedSession


@dataclass(frozen=True, slots=True)
class FactPage(Page[Fact]):
    """A page of facts, by default in the order in which they were said.

    `total` counts the matching facts on all pages. `other_statuses` counts the facts that match all filters but the
    status. `next` is the cursor of the next page, to be passed as `after`; None on the last page.
    """

    facts: tuple[Fact, ...]
    total: int
    other_statuses: int = 0
    next: str | None = None


class VerdictEffect(StrEnum):
    """Whether a verdict takes effect, and if not, why.

    A rule of the code may refuse it, or another verdict on the same statements may overrule it. It may wait for a
    person's decision. Its run may be undone, rejected or only proposed.
    """

    COUNTS = "counts"
    REFUSED = "refused"
    WAITS = "waits"
    UNDONE = "undone"
    PROPOSED = "proposed"
    REJECTED = "rejected"
    OVERRULED = "overruled"


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """The verdict on a pair of assertions, the time when it was recorded, and the ids of the runs that contain it.

    `refused_because` is the reason if a rule of the code refused the verdict.
    """

    verdict: Verdict
    earlier: Assertion
    later: Assertion
    recorded_at: datetime
    run_ids: tuple[int, ...]
    effect: VerdictEffect = VerdictEffect.COUNTS
    refused_because: str | None = None


@dataclass(frozen=True, slots=True)
class FactOrigin:
    """Where a fact comes from: its assertions in the order in which they were said, and every verdict on them.

    `held` are the runs that contain a verdict on the fact and wait for a person's approval.
    """

    fact: Fact
    assertions: tuple[Assertion, ...]
    verdicts: tuple[RecordedVerdict, ...]
    held: tuple[HeldRun, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """A turn of a session, the facts that cite it, and the parts of it that the speaker pasted from elsewhere."""

    turn: Turn
    facts: tuple[Fact, ...]
    pasted: tuple[ForeignStretch, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedCandidate:
    """A candidate that the extractor proposed and a check refused, with the reason."""

    reason: str
    statement: str
    detail: str


@dataclass(frozen=True, slots=True)
class SessionDetails:
    """A session with its transcript, the facts that rest on it, and what was left out.

    `facts` are all facts that the session supports, with their present status. `rejected` are the candidates that a
    check refused. `session.skipped` counts, by reason, what could not be read or was not stored. `spent` is what models
    cost. `held` is the run of the session that waits for a person's approval, or None. `unfound` are requests to forget
    that matched no fact and wait for a person.
    """

    session: SavedSession
    turns: tuple[TurnFacts, ...]
    facts: tuple[Fact, ...]
    rejected: tuple[RejectedCandidate, ...]
    spent: Spending
    held: HeldRun | None = None
    unfound: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionPage(Page[SavedSession]):
    """A page of sessions, by default oldest first.

    `total` and `next` are like those of `FactPage`.
    """

    sessions: tuple[SavedSession, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True)
class FindingPage(Page[AgentFinding]):
    """The findings of agents, newest first, with the status that they have at the time `at`.

    `other_statuses` counts the findings that match all filters but the status.
    """

    findings: tuple[AgentFinding, ...]
    other_statuses: int
    at: datetime


@dataclass(frozen=True, slots=True)
class FindingOrigin:
    """A finding, and each time that an agent stated it, oldest first, with the ids of the runs that recorded it."""

    finding: AgentFinding
    sayings: tuple[tuple[AgentFinding, tuple[int, ...]], ...]


class Layer(StrEnum):
    """What a search hit is: a fact that holds now, a fact that held before, a turn, or a finding of an agent."""

    NOW = "now"
    BEFORE = "before"
    SAID = "said"
    FOUND = "found"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A fact, turn or finding that matches a query, and its score (0 for an empty query).

    Exactly one of `fact`, `turn` and `finding` is set. `matched` are the words of the query that the fact contains.
    `parts` are the summands of a fact's score: words, meaning, neighbours.
    """

    layer: Layer
    score: float
    fact: Fact | None = None
    turn: SourceTurn | None = None
    matched: tuple[str, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)
    finding: AgentFinding | None = None

    @property
    def said_at(self) -> datetime | None:
        """When the fact, turn or finding was said."""
        source = self.finding or self.fact or self.turn
        return source.said_at if source is not None else None

    @property
    def speaker(self) -> str | None:
        """Who said the fact, turn or finding; None for a fact that was entered outside of a conversation."""
        if self.fact is not None:
            return next((evidence.speaker for evidence in self.fact.evidence if evidence.speaker), None)
        return self.finding.agent if self.finding is not None else self.turn.speaker if self.turn is not None else None

    @property
    def text(self) -> str:
        """The sentence of the fact or finding, or the words of the turn."""
        source = self.finding or self.fact
        return source.statement if source is not None else self.turn.text if self.turn is not None else ""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The hits of a search: facts, then turns, then findings, each sorted by score.

    `stored` counts the facts that were searched. `without_vector` counts the texts that have no vector yet, and so
    can be found by their words only.
    """

    hits: tuple[SearchHit, ...]
    stored: int
    without_vector: int = 0

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts alone, best first."""
        return tuple(hit.fact for hit in self.hits if hit.fact is not None)

    def of_layer(self, layer: Layer | str) -> tuple[SearchHit, ...]:
        """Return the hits of one layer, best first."""
        return tuple(hit for hit in self.hits if hit.layer == layer)


class Omission(StrEnum):
    """Why an agent is not told a fact."""

    NO_ROOM = "no room"
    UNCLEAR_SUBJECT = "unclear subject"


@dataclass(frozen=True, slots=True)
class OmittedFact:
    """A fact that an agent is not told, and why."""

    fact: Fact
    reason: Omission


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """The text about a scope that an agent gets for a query, exactly as it is put into the agent's context.

    `text` is empty if nothing is known. For several scopes it contains one block after the other. `tokens` is an
    estimate. The text contains `facts` (they hold now), `former` (facts that held before), `turns` (what was said) and
    `findings` (what agents found). `left_out` are facts that hold now and are not in the text; `left_out_count` counts
    all of these. `stable_text` is the part at the beginning of the context, which does not depend on the query.
    `question_text` is the part just before the last message. `missing` counts the flagged facts that did not fit.
    """

    text: str
    tokens: int
    budget_tokens: int
    facts: tuple[Fact, ...]
    turns: tuple[SourceTurn, ...]
    left_out: tuple[OmittedFact, ...]
    former: tuple[Fact, ...] = ()
    stable_text: str = ""
    question_text: str = ""
    missing: int = 0
    findings: tuple[AgentFinding, ...] = ()
    left_out_count: int = 0


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run and what it cost. `actor` is the id of the API key that requested it, None if it was made without a key."""

    run: Run
    spent: Spending
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class RunPage(Page[RunRecord]):
    """A page of runs, by default oldest first. `total` and `next` are like those of `FactPage`."""

    runs: tuple[RunRecord, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that waits for a person's approval, and the statements in it."""

    run: Run
    statements: tuple[str, ...]

    @property
    def reason(self) -> str | None:
        """Which check holds the run; None if it waits because an agent requested it or the policy demands it."""
        return held_reason(self.run.counts)

    @property
    def id(self) -> str:
        """The id by which `decide` takes this run."""
        return f"run:{self.run.id}"


@dataclass(frozen=True, slots=True)
class Review:
    """Everything in a scope that waits for a person's decision.

    `contests` are pairs of statements that contradict each other. `held` are runs that need approval. `erasures` are
    requests to forget something, which can be rejected. Pass the `id` of an item in these three lists to `decide`.
    `dependents` are facts that may no longer hold since another fact has changed. `unclear` are facts about a name that
    fits several people: `edit(fact_id, about=...)` names the right one. `findings` of agents wait for `approve_finding`
    or `drop_finding`.
    """

    contests: tuple[Contest, ...]
    held: tuple[HeldRun, ...]
    dependents: tuple[Dependent, ...]
    unclear: tuple[Fact, ...]
    erasures: tuple[WaitingErasure, ...] = ()
    findings: tuple[AgentFinding, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not (self.contests or self.held or self.dependents or self.unclear or self.erasures or self.findings)


@dataclass(frozen=True, slots=True)
class WaitingErasure:
    """A person's request to forget something. What it names is hidden until it is erased.

    It is erased automatically at `due_at`, or if this is None, only by `forget`. `statement` is the request without the
    words to be forgotten. `decide` takes the `id`. If not `finds_facts`, the turns with these words are hidden. A
    request to forget everything (`is_everything`) hides only itself.
    """

    id: str
    statement: str
    hidden_since: datetime
    due_at: datetime | None
    finds_facts: bool = True
    is_everything: bool = False


@dataclass(frozen=True, slots=True)
class ScopeCosts:
    """What requests to models have cost in one scope: in total, by source (for example `session:ID`), and by run.

    `without_run` is the cost of requests that led to no run, for example of failed attempts.
    """

    total: Spending
    by_source: Mapping[str, Spending]
    by_run: Mapping[int, Spending]
    without_run: Spending


@dataclass(frozen=True, slots=True)
class ProcessedSession:
    """The result of processing one session, and what requests to models cost for it in this call."""

    result: SessionOutcome | Failure | NotStarted | NotDue
    spent: Spending

    @property
    def result_name(self) -> str:
        """The result in a word or two, such as "done", "failed", "waiting" (for a retry) or "left" (by a stop)."""
        if isinstance(self.result, SessionOutcome):
            return self.result.result_name
        if isinstance(self.result, Failure):
            return "failed"
        return "left" if isinstance(self.result, NotStarted) else "waiting"


@dataclass(frozen=True, slots=True)
class ProcessingReport:
    """The result of each session, in order. `budget_reached` names the limit that stopped the processing, if one did.

    `retried` counts the sessions that had failed before and were tried again without waiting for their pause to end.
    """

    sessions: tuple[ProcessedSession, ...]
    spent: Spending
    budget_reached: str | None = None
    retried: int = 0


@dataclass(frozen=True, slots=True)
class ConsolidatedScope:
    """What a consolidation did in one scope, and what requests to models cost for it."""

    result: ConsolidationResult
    spent: Spending


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """What a consolidation did in each scope. `budget_reached` names the limit that stopped it, if one did."""

    scopes: tuple[ConsolidatedScope, ...]
    spent: Spending
    budget_reached: str | None = None
