"""Importing the memories of another library, as one run. Of all authorities, only that of agents is lower."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from sqlmodel import Session

from afterword.extractors.grounding import LONGEST
from afterword.extractors.judge import Judge
from afterword.extractors.slot_relation import RELATION_VERSION
from afterword.extractors.transcript_assembly import MOST_AHEAD, latest_present
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
from afterword.pipeline.run_storage import retry_if_overtaken, store_run
from afterword.pipeline.sources.other_libraries import Memory, Origin
from afterword.privacy.prompt_injection import is_instruction
from afterword.store import lookup, runs, scope_rows
from afterword.store.database.engine import Store
from afterword.store.forgetting.tombstone_rows import read_forgotten
from afterword.store.ledger import RunStatus
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.statement_ids import replacement_ids, with_new_ids
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
class _Plan:
    """What an import will add (`new`), and what that is judged against."""

    result: MemoryImportResult
    known: Knowledge
    new: Sequence[Assertion]
    to_judge: PairsToJudge


@staged(Stage.IMPORT, "scope", "kind")
async def import_memories(
    store: Store,
    scope: Scope,
    kind: Origin,
    memories: Sequence[Memory],
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
    bounds = [[str(at) for at in (memory.valid_from, memory.valid_to) if at is not None] for memory in memories]
    keys = [(memory.id, memory.text, str(memory.at), *days) for memory, days in zip(memories, bounds, strict=True)]
    source = f"import:{kind}:{digest(keys)}"
    account = Account(as_cost_tracker(budget), store, scope, source, purpose="import")
    judging = PairJudging(store, scope, judge)
    by_id = {
        assertion.id: assertion
        for assertion in (_assertion(store, scope, kind, memory, file_time) for memory in memories)
    }

    async def run() -> MemoryImportResult:
        planned = await store.read(partial(_plan, scope, source, list(by_id.values()), judging))
        if planned is None:
            return MemoryImportResult(None, len(by_id))
        if not planned.new:
            return planned.result
        judged = await judging.judge(planned.to_judge)
        verdicts = [*_repetitions(planned.known.assertions, planned.new), *judged.verdicts]
        proposal = Proposal(
            scope=scope,
            source=source,
            purpose="import",
            extractor="import",
            judge=judge.version,
            started_at=at,
            revision=planned.known.revision,
            readings=(WindowReading(source, None, None, tuple(planned.new)),),
            verdicts=tuple({verdict.pair: verdict for verdict in verdicts}.values()),
            counts={"quarantined": planned.result.quarantined, "forgotten": planned.result.forgotten},
        )
        run_id = await store_run(store, proposal, account, is_held=planned.result.held)
        return replace(planned.result, run_id=run_id)

    with account.open():
        return await retry_if_overtaken(run, f"{scope} kept changing while memories were imported; import them again")


def _plan(
    scope: Scope, source: str, assertions: Sequence[Assertion], judging: PairJudging, transaction: Session
) -> _Plan | None:
    """Return what the import will add, or None if the same memories were imported before."""
    earlier = runs.read_runs(transaction, scope, statuses=[RunStatus.APPLIED, RunStatus.HELD])
    if any(run.source == source for run in earlier):
        return None
    known = lookup.read_knowledge(transaction, scope)
    safe = [assertion for assertion in assertions if not is_instruction(assertion.statement)]
    forgotten = read_forgotten(transaction, scope)
    unforgotten = [assertion for assertion in safe if not forgotten.covers(assertion)]
    new = with_new_ids(unforgotten, replacement_ids(transaction, scope, [assertion.id for assertion in unforgotten]))
    result = MemoryImportResult(
        None,
        len(new),
        guessed=sum(assertion.time_is_guess for assertion in new),
        quarantined=len(assertions) - len(safe),
        forgotten=len(safe) - len(new),
        held=bool(new) and scope_rows.approval_policy_of(transaction, scope) is not scope_rows.ApprovalPolicy.AUTO,
    )
    pairs = required_pairs(new, known.revised(known.revision, added=new), pairs_a_statement=judging.pairs_a_statement)
    return _Plan(result, known, new, judging.prepare(transaction, known, pairs))


def _repetitions(known: Sequence[Assertion], new: Sequence[Assertion]) -> list[Verdict]:
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


def _assertion(store: Store, scope: Scope, kind: Origin, memory: Memory, file_time: datetime) -> Assertion:
    statement = store.privacy.mask_text(composed(memory.text))[: LONGEST["statement"]]
    evidence = (Evidence(EvidenceKind.IMPORT, statement),)
    # A memory with a time in the future would not be told to agents until then.
    is_dated = memory.at is not None and memory.at <= latest_present(None) + MOST_AHEAD
    said_at = memory.at if memory.at is not None and is_dated else file_time
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
        time_is_guess=not is_dated,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
    )
