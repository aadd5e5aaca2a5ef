"""What reads a part of a memory says the same as what reads all of it: single facts, sessions, runs, the review."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from sqlmodel import Session

import afterword
from afterword import Afterword, FactChange, ScopeMemory
from afterword.facts.dependents import dependents
from afterword.facts.fact import ENDED_STATUSES, Status, fact_changes
from afterword.facts.scopes import Scope
from afterword.facts.validity.judged_pairs import JudgedPairs
from afterword.store import lookup
from changing import INSTANTS, MIRA, add_what_is_rare, change_something

MOMENT = timedelta(microseconds=1)


async def check_facts(app: Afterword, chance: random.Random) -> None:
    store, scope, at = await app.store(), Scope.parse(MIRA), chance.choice(INSTANTS)

    def work(transaction: Session) -> None:
        whole = lookup.read_facts(transaction, scope, at=at)
        assert lookup.read_facts_by_id(transaction, scope, [fact.id for fact in whole], at=at) == whole
        for fact in chance.sample(whole, min(4, len(whole))):
            assert lookup.read_facts_by_id(transaction, scope, [fact.id], at=at) == [fact]

    await store.read(work)


async def check_review(memory: ScopeMemory, app: Afterword) -> None:
    review, counts = await memory.review(), await memory.fact_counts()
    facts = (await memory.facts(status="all")).facts
    assert review.dependents == tuple(dependents(facts))
    assert review.unclear == tuple(fact for fact in facts if fact.status is Status.PENDING)
    assert {status: count for status, count in counts.by_status.items() if count} == Counter(
        fact.status for fact in facts
    )
    assert counts.by_subject == Counter(fact.subject for fact in facts if fact.is_served)

    def work(transaction: Session) -> set[tuple[str, str]]:
        known = lookup.read_knowledge(transaction, memory.scope)
        return {
            refusal.verdict.pair
            for refusal in JudgedPairs(known.assertions, known.verdicts, known.names).refused_retirements
        }

    over = {id_ for fact in facts if fact.status in ENDED_STATUSES for id_ in fact.assertion_ids}
    asked = {pair for pair in await (await app.store()).read(work) if over.isdisjoint(pair)}
    assert {(contest.earlier.id, contest.later.id) for contest in review.contests} == asked


async def check_sessions(memory: ScopeMemory) -> None:
    facts = (await memory.facts(status="all")).facts
    for session in (await memory.sessions()).sessions:
        resting = [fact for fact in facts if any(each.session_id == session.session_id for each in fact.evidence)]
        assert (await memory.session(session.session_id)).facts == tuple(resting)


async def check_runs(memory: ScopeMemory) -> None:
    for record in (await memory.runs()).runs:
        at = record.run.applied_at
        if at is None:
            continue
        before = await memory.facts(status="all", as_of=at, known_at=at - MOMENT)
        after = await memory.facts(status="all", as_of=at, known_at=at)
        expected = {pair(change) for change in fact_changes(before.facts, after.facts)}
        assert {pair(change) for change in await memory.run_changes(record.run.id)} == expected


def pair(change: FactChange) -> tuple[object, ...]:
    return tuple(
        None if fact is None else (fact.id, fact.statement, fact.status, fact.valid_to)
        for fact in (change.before, change.after)
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2))])
async def test_a_part_that_is_read_says_what_the_whole_says(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    async with afterword.open(url=f"sqlite:///{tmp_path}/a.db") as app:
        memory = app.scope(MIRA)
        await add_what_is_rare(app)
        for _ in range(6):
            await change_something(app, chance)
            await check_facts(app, chance)
            await check_review(memory, app)
        await check_sessions(memory)
        await check_runs(memory)
