"""Bringing in what another memory library knew: as one run, at the lowest authority but an agent's, undone as one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import Overtaken
from afterword.extractors.grounding import LONGEST
from afterword.extractors.judge import Judge
from afterword.extractors.slot_relation import RELATION_VERSION
from afterword.facts.assertions import (
    OWNER,
    Assertion,
    Authority,
    Evidence,
    EvidenceKind,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
    assertion_id,
    digest,
)
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.words import folded
from afterword.pipeline.budget import Account, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.errors import ScopeBusy
from afterword.pipeline.judging import Docket, gone
from afterword.pipeline.resolution import required_pairs
from afterword.pipeline.run_entry import entered
from afterword.pipeline.sources.other_libraries import Memory, Origin
from afterword.privacy.prompt_injection import is_instruction
from afterword.privacy.tombstones import Forgotten
from afterword.store import lookup, runs, scope_rows
from afterword.store.database.engine import Store, pause_s
from afterword.store.forgetting.tombstone_rows import read_forgotten
from afterword.store.ledger import RunStatus
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.scope_rows import Policy
from afterword.telemetry import Stage

TRIES = 20


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of an import. `run_id` is None where it was here already, or nothing was left of it."""

    run_id: int | None
    memories: int
    guessed: int = 0
    quarantined: int = 0
    forgotten: int = 0
    held: bool = False


@telemetry.staged(Stage.IMPORT, "scope", "kind")
async def import_memories(
    store: Store,
    scope: Scope,
    kind: Origin,
    found: Sequence[Memory],
    *,
    at: datetime,
    file_time: datetime,
    judge: Judge,
    budget: Budget | CostTracker | None = None,
) -> Imported:
    """Keep the memories of another library as imported facts; the same again changes nothing.

    Each is dated as its export says; one without a date gets the file's, as a guess. What says the same as what is
    known supports it, the rest is judged like what is said in a session. What reads like an instruction to an assistant
    and what was forgotten here is left out, and counted. Raises an `ExtractionError` where the judge gave no answer,
    `ScopeBusy` where others kept changing the scope.
    """
    source = f"import:{kind}:{digest([(one.id, one.text, str(one.at)) for one in found])}"
    said = [_assertion(store, scope, kind, one, file_time) for one in found]
    importing = _Importing(store, scope, source, list({one.id: one for one in said}.values()), judge, at)
    account = Account(as_cost_tracker(budget), store, scope, source, purpose="import")
    with account.open():
        outcome = await importing.run()
    if outcome.run_id is not None:
        await account.tie(outcome.run_id)
    return outcome


class _Importing:
    """One import: what it says, and what judges it against what is known."""

    def __init__(
        self, store: Store, scope: Scope, source: str, said: Sequence[Assertion], judge: Judge, at: datetime
    ) -> None:
        self.store, self.scope, self.source, self.at = store, scope, source, at
        self.said, self.judge = said, judge
        self.harmless = [one for one in said if not is_instruction(one.statement)]
        self.docket = Docket(store, scope, judge)

    def _kept(self, db: Session) -> tuple[bool, Knowledge, Forgotten, Policy]:
        known, hidden = lookup.read_knowledge(db, self.scope), read_forgotten(db, self.scope)
        return _is_here(db, self.scope, self.source), known, hidden, scope_rows.policy_of(db, self.scope)

    async def run(self) -> Imported:
        """Judge and write, again where others were faster."""
        for attempt in range(TRIES):
            is_here, known, gone_before, policy = await self.store.read(self._kept)
            if is_here:
                return Imported(None, len(self.said))
            is_held = policy is not Policy.AUTO
            kept = gone_before.assertions(self.harmless)
            outcome = self._outcome(kept, is_held=is_held)
            if not kept:
                return outcome
            try:
                proposal = await self._judged(known, kept, outcome)
                return replace(outcome, run_id=await entered(self.store, proposal, is_held=is_held))
            except Overtaken:
                await asyncio.sleep(pause_s(attempt))
        raise ScopeBusy(f"{self.scope} kept changing while memories were imported; import them again")

    def _outcome(self, kept: Sequence[Assertion], *, is_held: bool) -> Imported:
        return Imported(
            None,
            len(kept),
            guessed=sum(one.time_is_guess for one in kept),
            quarantined=len(self.said) - len(self.harmless),
            forgotten=len(self.harmless) - len(kept),
            held=is_held and bool(kept),
        )

    async def _judged(self, known: Knowledge, kept: Sequence[Assertion], outcome: Imported) -> Proposal:
        pairs = required_pairs(kept, known.revised(known.revision, added=kept).index)
        judged = await self.docket.judge(pairs, hidden=gone(known, pairs))
        again = _repeated(known.assertions, kept)
        return Proposal(
            scope=self.scope,
            source=self.source,
            purpose="import",
            extractor="import",
            judge=self.judge.version,
            started_at=self.at,
            revision=known.revision,
            readings=(WindowReading(self.source, None, None, tuple(kept)),),
            verdicts=tuple({(one.earlier_id, one.later_id): one for one in (*again, *judged.verdicts)}.values()),
            counts={"quarantined": outcome.quarantined, "forgotten": outcome.forgotten},
        )


def _is_here(db: Session, scope: Scope, source: str) -> bool:
    known = runs.read_runs(db, scope, statuses=[RunStatus.APPLIED, RunStatus.HELD])
    return any(one.source == source for one in known)


def _repeated(known: Sequence[Assertion], said: Sequence[Assertion]) -> list[Verdict]:
    """Return that what was known in the same words is the same, whatever slot it is in."""
    first: dict[tuple[Kind, str], Assertion] = {}
    for other in known:
        if other.act is SpeechAct.STATE and not other.limited_to:
            first.setdefault((other.kind, folded(other.statement)), other)
    found = []
    for one in said:
        other = first.get((one.kind, folded(one.statement)), one)
        if other.id != one.id:
            earlier, later = sorted((one, other), key=lambda item: item.order)
            found.append(Verdict(earlier.id, later.id, Relation.SAME, "the same words", RELATION_VERSION))
    return found


def _assertion(store: Store, scope: Scope, kind: Origin, one: Memory, file_time: datetime) -> Assertion:
    statement = store.privacy.mask_text(one.text)[: LONGEST["statement"]]
    evidence = (Evidence(EvidenceKind.IMPORT, statement),)
    said_at = one.at or file_time
    return Assertion(
        id=assertion_id(scope, None, (kind, one.id, statement, said_at.isoformat()), evidence),
        scope=scope,
        session_id=None,
        act=SpeechAct.STATE,
        kind=Kind.ENTITY,
        subject=OWNER,
        attribute="note",
        value=statement,
        statement=statement,
        speaker=None,
        authority=Authority.IMPORTED,
        said_at=said_at,
        evidence=evidence,
        time_is_guess=one.at is None,
    )
