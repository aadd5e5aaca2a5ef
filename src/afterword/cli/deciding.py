"""The commands by which people decide: runs, apply, undo, review, edit, confirm, policy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlmodel import Session

from afterword import settings
from afterword.cli import embedding
from afterword.cli.output import (
    UsageInvalid,
    console,
    day,
    fact_json,
    iso,
    needed_scope,
    opened,
    print_json,
    table,
)
from afterword.cli.output import run as in_store
from afterword.cli.spending import money, spent_json, told
from afterword.composition import configured_tracker, open_extractor_and_judge
from afterword.errors import NotFound
from afterword.facts.assertions import Assertion
from afterword.facts.dependents import Dependent, dependents
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope
from afterword.pipeline.proposals import apply_proposal
from afterword.pipeline.undoing import undo_run
from afterword.store import costs, ledger, lookup, reviews, scope_rows
from afterword.store import runs as ledger_runs
from afterword.store.costs import Spending
from afterword.store.database.engine import Store
from afterword.store.ledger import RunStatus
from afterword.store.reviews import Contest, Decision, Wording
from afterword.store.runs import Run
from afterword.store.scope_rows import Policy


def now() -> datetime:
    """Return the present instant."""
    return datetime.now(UTC)


def list_runs(user: str | None, scope: str | None, *, as_json: bool) -> None:
    """List the runs of a scope."""
    whose = needed_scope(user, scope)

    async def work(store: Store) -> tuple[list[Run], dict[int | None, Spending]]:
        return await store.read(lambda db: (ledger_runs.read_runs(db, whose), costs.spending_by_run(db, whose)))

    found, spent = in_store(work)
    if as_json:
        print_json([{**run_json(one), "spent": spent_json(_spent(one, spent))} for one in found])
        return
    names = ("run", "what", "status", "by", "judge", "started", "tokens", "cost", "counts")
    rows = []
    for one in found:
        cells = (one.id, one.source, one.status, one.extractor, one.judge, day(one.started_at), _tokens(one))
        rows.append((*cells, money(_spent(one, spent)), _counts(one)))
    console().print(table(f"{whose}: {len(found)} runs", names, rows))
    console().print(f"in all: {told(sum(spent.values(), start=Spending()))}")
    if None in spent:
        console().print(f"of which came to no run: {told(spent[None])}")


def _spent(one: Run, spent: Mapping[int | None, Spending]) -> Spending:
    """Return what a run has cost; of one that was made before costs were kept, its tokens, without a price."""
    known = spent.get(one.id)
    return known or Spending(one.calls, one.prompt_tokens, 0, one.completion_tokens, unpriced_calls=one.calls)


Says = dict[int, list[str]]
"""Of each held run the statements that await a decision."""


def run_json(one: Run) -> dict[str, Any]:
    """Return a run as machines get it."""
    return {
        "id": one.id,
        "scope": str(one.scope),
        "source": one.source,
        "purpose": one.purpose,
        "status": one.status,
        "extractor": one.extractor,
        "judge": one.judge,
        "started_at": iso(one.started_at),
        "applied_at": iso(one.applied_at),
        "undone_at": iso(one.undone_at),
        "calls": one.calls,
        "prompt_tokens": one.prompt_tokens,
        "completion_tokens": one.completion_tokens,
        "counts": dict(one.counts),
    }


def apply(run_id: int, *, as_json: bool) -> None:
    """Let a stored proposal count."""

    async def work() -> Run:
        configured = settings.load()
        async with opened() as store, open_extractor_and_judge(configured.extractor, configured.model) as workers:
            spending = configured_tracker(configured, configured.extractor)
            run = await apply_proposal(store, run_id, judge=workers.judge, budget=spending)
            await embedding.refresh(store, configured, [run.scope], spending=spending)
            return run

    _tell(asyncio.run(work()), as_json=as_json)


def undo(run_id: int, *, as_json: bool) -> None:
    """Leave an applied run out."""

    async def work() -> Run:
        configured = settings.load()
        async with opened() as store, open_extractor_and_judge(configured.extractor, configured.model) as workers:
            run = (await undo_run(store, run_id, judge=workers.judge)).run
            await embedding.refresh(store, configured, [run.scope])
            return run

    _tell(asyncio.run(work()), as_json=as_json)


def _tell(one: Run, *, as_json: bool) -> None:
    if as_json:
        print_json(run_json(one))
    else:
        console().print(f"run {one.id} ({one.source} of {one.scope}) is {one.status}")


def review(
    user: str | None,
    scope: str | None,
    *,
    approve: str | None,
    reject: str | None,
    keep_both: str | None,
    as_json: bool,
) -> None:
    """List what awaits a person, or carry out a decision."""
    whose = needed_scope(user, scope)
    given = {Decision.APPROVE: approve, Decision.REJECT: reject, Decision.KEEP_BOTH: keep_both}
    chosen = [(decision, which) for decision, which in given.items() if which is not None]
    if len(chosen) > 1:
        raise UsageInvalid("decide one thing at a time")
    if chosen:
        _decide(whose, *chosen[0], as_json=as_json)
        return
    contests, held, facts, says = in_store(lambda store: _to_review(store, whose))
    hanging, unclear = dependents(facts), [one for one in facts if one.status is Status.PENDING]
    if as_json:
        print_json(
            {
                "contests": [_contest_json(number, one) for number, one in enumerate(contests, 1)],
                "held": [{**run_json(one), "says": says[one.id]} for one in held],
                "dependents": [_dependent_json(one) for one in hanging],
                "unclear_names": [{"fact": fact_json(one), "may_be": list(one.may_be)} for one in unclear],
            }
        )
        return
    _show_waiting(whose, contests, held, says)
    _show_dependents(hanging)
    _show_unclear(unclear)


async def _to_review(store: Store, whose: Scope) -> tuple[list[Contest], list[Run], list[Fact], Says]:
    """Return what awaits a person, the facts that there are, and what each held run says."""
    contests, held = await _waiting(store, whose)

    def work(db: Session) -> tuple[list[Contest], list[Run], list[Fact], dict[int, list[str]]]:
        proposed = {one.id: ledger_runs.read_proposal(db, one)[0] for one in held}
        says = {run_id: [said.statement for said in one.assertions] for run_id, one in proposed.items()}
        return contests, held, lookup.read_facts(db, whose, at=now()), says

    return await store.read(work)


async def _waiting(store: Store, whose: Scope) -> tuple[list[Contest], list[Run]]:
    return await store.read(
        lambda db: (reviews.read_contests(db, whose), ledger_runs.read_runs(db, whose, statuses=[RunStatus.HELD]))
    )


def _show_waiting(whose: Scope, contests: list[Contest], held: list[Run], says: Says) -> None:
    out = console()
    out.print(f"{whose}: {len(contests)} contested, {len(held)} held")
    for number, one in enumerate(contests, 1):
        out.print(f"\n{number}. {one.relation}: {one.judged_because}; refused: {one.refused_because}")
        out.print(f"   earlier ({day(one.earlier.said_at)}): {one.earlier.statement}  “{_quotes(one.earlier)}”")
        out.print(f"   later   ({day(one.later.said_at)}): {one.later.statement}  “{_quotes(one.later)}”")
    for run in held:
        out.print(f"\nrun:{run.id} {run.purpose} {run.source}: {_counts(run)}")
        for statement in says[run.id]:
            out.print(f"   + {statement}")
    if contests or held:
        out.print("\ndecide with --approve, --reject or --keep-both and the number (or run:ID)")


def _show_dependents(hanging: list[Dependent]) -> None:
    out = console()
    for one in hanging:
        because = f"{one.changed.statement.rstrip('.')!r} changed on {day(one.changed.valid_to)} ({one.reason})"
        out.print(f"\nmay no longer fit: {one.fact.statement} because {because}  [{one.fact.id[:8]}]")
    if hanging:
        out.print(
            "\nwhat still fits is kept with `afterword confirm`, what does not is put right with `afterword edit`"
        )


def _show_unclear(unclear: list[Fact]) -> None:
    out = console()
    for one in unclear:
        names = " or ".join(dict.fromkeys(one.may_be))
        out.print(f"\nwho is {one.subject}, {names}? {one.statement}  [{one.id[:8]}]")
    if unclear:
        out.print("\nsay who is meant with `afterword edit FACT --about NAME`")


def _decide(whose: Scope, decision: Decision, which: str, *, as_json: bool) -> None:
    if which.startswith("run:"):
        run_id = _number(which.removeprefix("run:"))
        if decision is Decision.APPROVE:
            apply(run_id, as_json=as_json)
            return
        if decision is Decision.REJECT:
            in_store(lambda store: store.write(lambda db: ledger.reject_run(db, whose, run_id)))
            in_store(lambda store: _told(store, run_id, as_json=as_json))
            return
        raise UsageInvalid("a held run is approved or rejected")
    number = _number(which)

    async def work(store: Store) -> int:
        contests, _ = await _waiting(store, whose)
        if not 1 <= number <= len(contests):
            raise NotFound(f"no contest {number} in {whose}; see `afterword review`")
        one = contests[number - 1]
        return await reviews.decide_contest(store, whose, one.earlier.id, one.later.id, decision, at=now())

    run_id = in_store(work)
    in_store(lambda store: _told(store, run_id, as_json=as_json))


async def _told(store: Store, run_id: int, *, as_json: bool) -> None:
    await store.read(lambda db: _tell(ledger_runs.read_run(db, run_id), as_json=as_json))


def edit(
    fact_id: str,
    user: str | None,
    scope: str | None,
    *,
    statement: str | None,
    value: str | None,
    about: str | None,
    changed: bool,
    as_json: bool,
) -> None:
    """Put a fact right."""
    if statement is None and about is None:
        raise UsageInvalid("say what it should be: --statement, or --about for whom or what it is about")

    async def work(store: Store, whose: Scope, fact: Fact) -> int:
        words = value if value is not None else statement or fact.value
        meant = Wording(statement or fact.statement, words, about or fact.subject)
        return await reviews.edit_fact(store, whose, fact, meant, is_change=changed, at=now())

    _on_fact(fact_id, user, scope, work, as_json=as_json)


def confirm(fact_id: str, user: str | None, scope: str | None, *, as_json: bool) -> None:
    """Stand for a fact."""

    async def work(store: Store, whose: Scope, fact: Fact) -> int:
        return await reviews.confirm_fact(store, whose, fact, at=now())

    _on_fact(fact_id, user, scope, work, as_json=as_json)


def _on_fact(
    fact_id: str,
    user: str | None,
    scope: str | None,
    act: Callable[[Store, Scope, Fact], Awaitable[int]],
    *,
    as_json: bool,
) -> None:
    """Find the fact, act on it, and show what is held of its slot now."""
    whose = needed_scope(user, scope)

    async def work(store: Store) -> tuple[int, list[Fact]]:
        fact, kept = await store.read(
            lambda db: (lookup.read_fact(db, whose, fact_id, at=now()), lookup.read_facts(db, whose, at=now()))
        )
        before = {assertion_id for former in kept for assertion_id in former.assertion_ids}
        run_id = await act(store, whose, fact)
        held = await store.read(lambda db: lookup.read_facts(db, whose, at=now()))
        slot = (fact.subject, fact.attribute)
        return run_id, [
            one for one in held if (one.subject, one.attribute) == slot or not before.issuperset(one.assertion_ids)
        ]

    run_id, held = in_store(work)
    if as_json:
        print_json({"run": run_id, "facts": [fact_json(one) for one in held]})
        return
    console().print(f"run {run_id}, taken back with `afterword undo {run_id}`")
    for one in held:
        console().print(f"  {one.status}: {one.statement}")


def policy(what: str | None, user: str | None, scope: str | None, *, as_json: bool) -> None:
    """Show or set the policy of a scope."""
    whose = needed_scope(user, scope)

    async def work(store: Store) -> Policy:
        if what is not None:
            chosen = Policy(what)
            await store.write(lambda db: scope_rows.set_policy(db, whose, chosen))
        return await store.read(lambda db: scope_rows.policy_of(db, whose))

    found = in_store(work, create=what is not None)
    if as_json:
        print_json({"scope": str(whose), "policy": str(found)})
    else:
        console().print(f"{whose}: {found}")


def _contest_json(number: int, one: Contest) -> dict[str, Any]:
    return {
        "number": number,
        "relation": str(one.relation),
        "judged_because": one.judged_because,
        "refused_because": one.refused_because,
        "earlier": _side(one.earlier),
        "later": _side(one.later),
    }


def _dependent_json(one: Dependent) -> dict[str, Any]:
    return {
        "fact": fact_json(one.fact),
        "changed": fact_json(one.changed),
        "changed_at": iso(one.changed.valid_to),
        "reason": one.reason,
    }


def _side(one: Assertion) -> dict[str, Any]:
    return {
        "id": one.id,
        "said_at": iso(one.said_at),
        "session_id": one.session_id,
        "statement": one.statement,
        "quotes": [item.quote for item in one.evidence],
    }


def _quotes(one: Assertion) -> str:
    return " … ".join(item.quote for item in one.evidence)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageInvalid(f"{text!r} is no number; see `afterword review`")
    return int(text)


def _tokens(one: Run) -> int:
    return one.prompt_tokens + one.completion_tokens


def _counts(one: Run) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(one.counts.items()) if name != "revision" and count)
