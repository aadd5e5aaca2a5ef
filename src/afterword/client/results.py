"""What the methods of `Afterword` and `ScopeMemory` return: frozen values. All instants are aware.

Values of other packages are used as they are: `Fact`, `Run`, `SavedSession`, `SessionOutcome`, `Receipt`, `Spending`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

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
class FactPage:
    """Facts in the order of saying. `total` counts all that fit, on every page.

    `other_statuses` counts the facts that fit but for their status. `next` is the cursor of the page after this one:
    give it as `after`; None on the last page.
    """

    facts: tuple[Fact, ...]
    total: int
    other_statuses: int = 0
    next: str | None = None


class VerdictEffect(StrEnum):
    """Whether a verdict counts, and why not: code refused it, a person is to decide, its run was undone, was only a
    proposal or was rejected, or another verdict on the same statements counts in its place."""

    COUNTS = "counts"
    REFUSED = "refused"
    WAITS = "waits"
    UNDONE = "undone"
    PROPOSED = "proposed"
    REJECTED = "rejected"
    OVERRULED = "overruled"


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """A judged pair of assertions, when the verdict was recorded, and the ids of the runs that stand on it.

    `effect` says whether it counts, `refused_because` why code refused it.
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
    """How a fact came to be: its assertions in the order of saying, and every verdict on them.

    `held` are the runs that judge the fact too, and wait for a person.
    """

    fact: Fact
    assertions: tuple[Assertion, ...]
    verdicts: tuple[RecordedVerdict, ...]
    held: tuple[HeldRun, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """A turn of a session, the facts that cite it, and its pasted stretches."""

    turn: Turn
    facts: tuple[Fact, ...]
    pasted: tuple[ForeignStretch, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedCandidate:
    """What an extractor proposed and code refused, and why."""

    reason: str
    statement: str
    detail: str


@dataclass(frozen=True, slots=True)
class SessionDetails:
    """A session with its transcript: of each turn the facts that cite it, and what was left out.

    `facts` are all facts that the session supports, with their status now. `rejected` are the candidates that code
    refused; `session.skipped` counts what could not be read or was not kept, by reason. `spent` is what models cost.
    `held` is the run of the session that waits for a person's approval, or None. `unfound` are the requests to forget
    for which no fact was found, and about which a person has not decided.
    """

    session: SavedSession
    turns: tuple[TurnFacts, ...]
    facts: tuple[Fact, ...]
    rejected: tuple[RejectedCandidate, ...]
    spent: Spending
    held: HeldRun | None = None
    unfound: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Sessions, oldest first. `total` counts all that fit; `next` is the cursor of the page after this one."""

    sessions: tuple[SavedSession, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True)
class FindingPage:
    """What agents found, the newest first, as of an instant. `other_statuses` counts those with another status."""

    findings: tuple[AgentFinding, ...]
    other_statuses: int
    at: datetime


@dataclass(frozen=True, slots=True)
class FindingOrigin:
    """A finding, and every time that an agent said it, the oldest first, each with the runs that have it."""

    finding: AgentFinding
    sayings: tuple[tuple[AgentFinding, tuple[int, ...]], ...]


class Layer(StrEnum):
    """The layer of a search hit: a fact that holds now or held before, a turn, or a finding of an agent."""

    NOW = "now"
    BEFORE = "before"
    SAID = "said"
    FOUND = "found"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A fact, turn or finding that matches a query, and its score (0 for an empty query).

    One of `fact`, `turn` and `finding` is set. `matched` are the words of the query that the fact contains. `parts` are
    the parts of the score of a fact: words, meaning, neighbours.
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
        """When it was said."""
        source = self.finding or self.fact or self.turn
        return source.said_at if source is not None else None

    @property
    def speaker(self) -> str | None:
        """Who said it, None where it was entered without a conversation."""
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
    """Hits, best first: facts, then turns, then findings. `stored` counts the facts that could have been found.

    `without_vector` counts the texts that cannot be found by meaning yet, because they have no vector.
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
    """What an agent is told for a query: the text exactly as it is put into the context, empty if nothing is known.

    Of several scopes the blocks stand one after the other.

    `tokens` is an estimate. The block contains `facts` (what holds), `former` (what held before) and `turns` (what
    was said). `left_out` is what holds and is not in it, `left_out_count` how many facts that are. `stable_text` is
    the part that does not depend on the query and stands first in the context, `question_text` the part just before
    the last message. `missing` counts the flagged facts for which there was no room. `findings` are what agents
    found, not what a person said.
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
    """A run and what it cost. `actor` is the id of the key that asked for it, None if no key did."""

    run: Run
    spent: Spending
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs, oldest first. `total` counts all that fit; `next` is the cursor of the page after this one."""

    runs: tuple[RunRecord, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that waits for a person, and the statements in it."""

    run: Run
    statements: tuple[str, ...]

    @property
    def reason(self) -> str | None:
        """Why code holds the run; None if an agent asked for it, or the policy of the scope holds it."""
        return held_reason(self.run.counts)

    @property
    def id(self) -> str:
        """What `decide` takes."""
        return f"run:{self.run.id}"


@dataclass(frozen=True, slots=True)
class Review:
    """What waits for a person: contested pairs, held runs, facts that may no longer fit, and unclear names.

    `erasures` are requests to erase that can be rejected. The items of `contests`, `held` and `erasures` have an `id`
    that `decide` takes. `unclear` are facts whose subject may be several: `edit(fact_id, about=...)` settles them.
    `findings` of agents wait for `approve_finding` or `drop_finding`.
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
    """What somebody asked to be erased, and is hidden. It is erased by itself at `due_at`, None if only on request.

    `statement` is the request; it does not repeat what is to be forgotten. `decide` takes the `id`. If the request
    finds no facts, the turns that hold its words are hidden. What `is_everything` hides nothing but the request.
    """

    id: str
    statement: str
    hidden_since: datetime
    due_at: datetime | None
    finds_facts: bool = True
    is_everything: bool = False


@dataclass(frozen=True, slots=True)
class ScopeCosts:
    """What models cost in one scope: in all, by source (`session:ID` and the like), and by run.

    `without_run` is what led to no run, for example failed tries.
    """

    total: Spending
    by_source: Mapping[str, Spending]
    by_run: Mapping[int, Spending]
    without_run: Spending


@dataclass(frozen=True, slots=True)
class ProcessedSession:
    """What became of one session, and what models cost for it in this call."""

    result: SessionOutcome | Failure | NotStarted | NotDue
    spent: Spending

    @property
    def result_name(self) -> str:
        """The result in one word: "done", "failed", "waiting" for its next try, "left" by a stop, and so on."""
        if isinstance(self.result, SessionOutcome):
            return self.result.result_name
        if isinstance(self.result, Failure):
            return "failed"
        return "left" if isinstance(self.result, NotStarted) else "waiting"


@dataclass(frozen=True, slots=True)
class ProcessingReport:
    """What became of each session, in order. `budget_reached` says which limit stopped the rest, if one did.

    `retried` counts the sessions that had failed and were tried again before it was their time.
    """

    sessions: tuple[ProcessedSession, ...]
    spent: Spending
    budget_reached: str | None = None
    retried: int = 0


@dataclass(frozen=True, slots=True)
class ConsolidatedScope:
    """What a consolidation did in one scope, and what models cost for it."""

    result: ConsolidationResult
    spent: Spending


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """What a consolidation did in each scope. `budget_reached` says which limit stopped the judging, if one did."""

    scopes: tuple[ConsolidatedScope, ...]
    spent: Spending
    budget_reached: str | None = None
