"""Importing the memories of another library, as one run. Of all authorities, only that of agents is lower."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import Session

from afterword.extractors.candidate_texts import LONGEST_BY_FIELD
from afterword.extractors.judge import Judge
from afterword.extractors.slot_relation import RELATION_VERSION
from afterword.extractors.transcript_assembly import MOST_AHEAD, no_earlier_than_clock
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
from afterword.normal_form import composed
from afterword.pipeline.budget import Account, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.judging import PairJudging, PairsToJudge
from afterword.pipeline.resolution import required_pairs
from afterword.pipeline.run_storage import retry_or_raise_busy, store_and_apply_run
from afterword.pipeline.sources.other_libraries import ExportedMemory, ExportingLibrary
from afterword.privacy.prompt_injection import is_instruction
from afterword.store import lookup, runs, scope_rows
from afterword.store.database.engine import Store
from afterword.store.forgetting.tombstone_rows import read_forgotten_content
from afterword.store.ledger import RunStatus
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.statement_ids import replacements_of_taken_ids, with_new_ids
from afterword.telemetry import Stage, staged


@dataclass(frozen=True, slots=True)
class MemoryImportResult:
    """The result of an import. `run_id` is None if the same was imported before, or no memory was left."""

    run_id: int | None
    memories: int
    guessed: int = 0
    quarantined: int = 0
    forgotten: int = 0
    held: bool = False


@dataclass(frozen=True, slots=True)
class _ImportPlan:
    """The assertions that an import will add (`new`), what was `known` before, and the pairs to judge."""

    result: MemoryImportResult
    known: Knowledge
    new: Sequence[Assertion]
    to_judge: PairsToJudge


@staged(Stage.IMPORT, "scope", "kind")
async def import_memories(
    store: Store,
    scope: Scope,
    kind: ExportingLibrary,
    memories: Sequence[ExportedMemory],
    *,
    at: datetime,
    file_time: datetime,
    judge: Judge,
    budget: Budget | CostTracker | None = None,
) -> MemoryImportResult:
    """Store the memories of another library as imported facts. Importing them again changes nothing.

    A memory without a date gets that of the file, marked as a guess. A memory that repeats a known statement supports
    it. The others are judged like the statements of a session. Memories that read like an instruction to an assistant,
    or that were forgotten here, are left out and counted. Raises an `ExtractionError` if the judge gave no answer, and
    `ScopeBusy` if other processes kept changing the scope.
    """
    source = _source_of(kind, memories)
    account = Account(as_cost_tracker(budget), store, scope, source, purpose="import")
    assertions = [_imported_assertion(store, scope, kind, memory, file_time) for memory in memories]
    distinct = tuple({assertion.id: assertion for assertion in assertions}.values())
    importing = _MemoryImport(store, scope, source, distinct, at, judge, account, PairJudging(store, scope, judge))
    busy = f"{scope} kept changing while memories were imported; import them again"
    with account.charging_requests():
        return await retry_or_raise_busy(importing.run, busy)


def _source_of(kind: ExportingLibrary, memories: Sequence[ExportedMemory]) -> str:
    """Return the source of the run. The same memories have the same source."""
    bounds = [[str(at) for at in (memory.valid_from, memory.valid_to) if at is not None] for memory in memories]
    keys = [(memory.id, memory.text, str(memory.at), *days) for memory, days in zip(memories, bounds, strict=True)]
    return f"import:{kind}:{digest(keys)}"


@dataclass(frozen=True, slots=True)
class _MemoryImport:
    """An import of these assertions as a run of this `source`."""

    store: Store
    scope: Scope
    source: str
    assertions: Sequence[Assertion]
    at: datetime
    judge: Judge
    account: Account
    judging: PairJudging

    async def run(self) -> MemoryImportResult:
        plan = await self.store.read(self._plan)
        if plan is None:
            return MemoryImportResult(None, len(self.assertions))
        if not plan.new:
            return plan.result
        judged = await self.judging.judge(plan.to_judge)
        verdicts = [*_repetition_verdicts(plan.known.assertions, plan.new), *judged.verdicts]
        run_id = await store_and_apply_run(
            self.store, self._proposal(plan, verdicts), self.account, is_held=plan.result.held
        )
        return replace(plan.result, run_id=run_id)

    def _plan(self, transaction: Session) -> _ImportPlan | None:
        """Return what the import will add, or None if the same memories were imported before."""
        earlier = runs.read_runs(transaction, self.scope, statuses=[RunStatus.APPLIED, RunStatus.HELD])
        if any(run.source == self.source for run in earlier):
            return None
        known = lookup.read_knowledge(transaction, self.scope)
        safe = [assertion for assertion in self.assertions if not is_instruction(assertion.statement)]
        new = self._unforgotten_assertions(transaction, safe)
        policy = scope_rows.approval_policy_of(transaction, self.scope)
        result = MemoryImportResult(
            None,
            len(new),
            guessed=sum(assertion.time_is_guess for assertion in new),
            quarantined=len(self.assertions) - len(safe),
            forgotten=len(safe) - len(new),
            held=bool(new) and policy is not scope_rows.ApprovalPolicy.AUTO,
        )
        combined = known.revised(known.revision, added=new)
        pairs = required_pairs(new, combined, pairs_a_statement=self.judging.pairs_a_statement)
        return _ImportPlan(result, known, new, self.judging.prepare(transaction, known, pairs))

    def _unforgotten_assertions(self, transaction: Session, assertions: Sequence[Assertion]) -> Sequence[Assertion]:
        """Return the assertions that were not forgotten here, with ids that no other scope has."""
        forgotten = read_forgotten_content(transaction, self.scope)
        kept = [assertion for assertion in assertions if not forgotten.is_assertion_forgotten(assertion)]
        return with_new_ids(
            kept, replacements_of_taken_ids(transaction, self.scope, [assertion.id for assertion in kept])
        )

    def _proposal(self, plan: _ImportPlan, verdicts: Sequence[Verdict]) -> Proposal:
        return Proposal(
            scope=self.scope,
            source=self.source,
            purpose="import",
            extractor="import",
            judge=self.judge.version,
            started_at=self.at,
            revision=plan.known.revision,
            readings=(WindowReading(self.source, None, None, tuple(plan.new)),),
            verdicts=tuple({verdict.pair: verdict for verdict in verdicts}.values()),
            counts={"quarantined": plan.result.quarantined, "forgotten": plan.result.forgotten},
        )


def _repetition_verdicts(known: Sequence[Assertion], new: Sequence[Assertion]) -> list[Verdict]:
    """Return a verdict for each new statement with the words of a known one: both say the same, even in two slots."""
    first: dict[tuple[Kind, str], Assertion] = {}
    for assertion in known:
        if assertion.act is SpeechAct.STATE and not assertion.limited_to:
            first.setdefault((assertion.kind, folded(assertion.statement)), assertion)
    verdicts = []
    for assertion in new:
        same = first.get((assertion.kind, folded(assertion.statement)), assertion)
        if same.id != assertion.id:
            earlier, later = sorted((assertion, same), key=lambda either: either.order)
            verdicts.append(Verdict(earlier.id, later.id, Relation.SAME, "the same words", RELATION_VERSION))
    return verdicts


def _imported_assertion(
    store: Store, scope: Scope, kind: ExportingLibrary, memory: ExportedMemory, file_time: datetime
) -> Assertion:
    statement = store.privacy.mask_text(composed(memory.text))[: LONGEST_BY_FIELD["statement"]]
    evidence = (Evidence(EvidenceKind.IMPORT, statement),)
    # A memory with a time in the future would not be told to agents until then.
    known_at = memory.at if memory.at is not None and memory.at <= no_earlier_than_clock(None) + MOST_AHEAD else None
    said_at = known_at or file_time
    days = [at.isoformat() for at in (memory.valid_from, memory.valid_to) if at is not None]
    return Assertion(
        id=assertion_id(scope, None, (kind, memory.id, statement, said_at.isoformat(), *days), evidence),
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
        time_is_guess=known_at is None,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
    )
