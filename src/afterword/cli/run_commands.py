"""Commands for runs: list them, apply, undo and redo them, and decide what waits for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from afterword.cli.app import Json, RunId, ScopeName, User, app
from afterword.cli.calls import call_memory, call_store, chosen_scope, required_scope
from afterword.cli.output import (
    console,
    counted,
    counts_text,
    day,
    money,
    print_json,
    print_setting,
    spending_text,
    status_text,
    table,
)
from afterword.client.json_forms import iso_instant, review_json, run_json, run_record_json
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword import Afterword
    from afterword.client.results import HeldRun, Review, RunPage, ScopeCosts, WaitingErasure
    from afterword.client.values import AgentFinding, Assertion, Contest, Dependent, Fact, Run, RunEffect, Scope


@app.command(name="runs")
def runs_command(user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """List the runs of one memory or of all, with their cost and state.

    A run is one change of a memory: by a session, by a person, or by a comparison of facts.
    """

    owner = chosen_scope(user, scope)

    async def runs_and_costs(store: Afterword) -> tuple[RunPage, ScopeCosts | None]:
        if owner is None:
            return await store.runs(), None
        return await store.scope(owner).runs(), await store.scope(owner).costs()

    page, costs = call_store(runs_and_costs, known=owner)
    if as_json:
        print_json([run_record_json(record) for record in page.runs])
        return
    rows = []
    for record in page.runs:
        run = record.run
        cells = (
            run.id,
            "" if owner else str(run.scope),
            run.source,
            run.status,
            run.extractor,
            run.judge,
            day(run.started_at),
        )
        tokens = run.prompt_tokens + run.completion_tokens
        rows.append((*cells, tokens, money(record.spent), _run_counts(run)))
    names = ("run", "scope", "source", "state", "extractor", "judge", "started", "tokens", "cost", "counts")
    console().print(table(f"{owner or 'all memories'}: {counted(page.total, 'run')}", names, rows))
    if costs is None:
        return
    console().print(f"in all: {spending_text(costs.total)}")
    if costs.without_run.calls:
        console().print(f"of which came to no run: {spending_text(costs.without_run)}")


def _run_counts(run: Run) -> str:
    return counts_text({name: count for name, count in run.counts.items() if name != "revision" and count})


@app.command(name="apply")
def apply_command(run_id: RunId, as_json: Json = False) -> None:
    """Apply a proposed or held run, so that its facts count."""
    _print_run(call_store(lambda store: store.apply(run_id)), as_json=as_json)


@app.command(name="undo")
def undo_command(run_id: RunId, as_json: Json = False) -> None:
    """Undo a run with everything that it caused."""
    _print_run(call_store(lambda store: store.undo(run_id)), as_json=as_json)


@app.command(name="redo")
def redo_command(run_id: RunId, as_json: Json = False) -> None:
    """Redo an undone run, as if it had never been undone."""
    _print_run(call_store(lambda store: store.redo(run_id)), as_json=as_json)


def _print_run(effect: RunEffect, *, as_json: bool) -> None:
    run = effect.run
    if as_json:
        print_json(run_json(run))
        return
    out = console()
    out.print(f"run {run.id} ({run.source} of {run.scope}) is {run.status}")
    for change in effect.changes:
        if change.after is None and change.before is not None:
            out.print(f"  gone: {change.before.statement}")
        elif change.after is not None:
            out.print(f"  {status_text(change.after)}: {change.after.statement}")


@app.command(name="review")
def review_command(
    user: User = None,
    scope: ScopeName = None,
    approve: Annotated[
        str | None,
        typer.Option(
            metavar="ITEM", help="Let the later statement of a contest count (give its number), or a held run (run:N)."
        ),
    ] = None,
    reject: Annotated[
        str | None,
        typer.Option(
            metavar="ITEM",
            help="Withdraw the later statement of a contest (its number), reject a held run (run:N), or stop an "
            "erasure (erase:ID).",
        ),
    ] = None,
    keep_both: Annotated[
        str | None,
        typer.Option("--keep-both", metavar="ITEM", help="Let both statements of a contest count (give its number)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List what waits for a person's decision, in one memory or in all, or decide it."""
    options = {"approve": approve, "reject": reject, "keep-both": keep_both}
    decisions = [(item_id, decision) for decision, item_id in options.items() if item_id is not None]
    if len(decisions) > 1:
        raise ArgumentInvalid("decide one item at a time")
    if decisions:
        item_id, decision = decisions[0]
        if not item_id.removeprefix("run:").isdecimal() and not item_id.startswith("erase:"):
            raise ArgumentInvalid(
                f"{item_id!r} is no item; give a number, run:N or erase:ID, as `afterword review` shows"
            )
        owner = required_scope(user, scope)
        _print_run(call_memory(owner, lambda memory: memory.decide(item_id, decision)), as_json=as_json)
        return
    chosen = chosen_scope(user, scope)
    if chosen is None:
        _review_all(as_json=as_json)
        return
    review = call_memory(chosen, lambda memory: memory.review())
    if as_json:
        print_json(review_json(review))
    else:
        _show_review(chosen, review)


def _review_all(*, as_json: bool) -> None:
    reviews = call_store(lambda store: store.reviews())
    if as_json:
        print_json({str(owner): review_json(review) for owner, review in reviews.items()})
        return
    if not reviews:
        console().print("nothing waits for a person in any memory")
    for owner, review in reviews.items():
        _show_review(owner, review)


def _show_review(owner: Scope, review: Review) -> None:
    _show_undecided(owner, review.contests, review.held)
    _show_erasures(review.erasures)
    _show_dependents(review.dependents)
    _show_unclear_names(review.unclear)
    _show_findings(review.findings)


def _show_undecided(scope: Scope, contests: Sequence[Contest], held: Sequence[HeldRun]) -> None:
    out = console()
    out.print(f"{scope}: {len(contests)} contested, {len(held)} held")
    for number, contest in enumerate(contests, 1):
        out.print(f"\n{number}. {contest.relation}: {contest.judged_because}; refused: {contest.refused_because}")
        for name, assertion in (("earlier", contest.earlier), ("later  ", contest.later)):
            out.print(f"   {name} ({day(assertion.said_at)}): {assertion.statement}  “{_quotes(assertion)}”")
    for waiting in held:
        out.print(f"\n{waiting.id} {waiting.run.purpose} {waiting.run.source}: {_run_counts(waiting.run)}")
        if waiting.reason:
            out.print(f"   held: {waiting.reason}")
        for statement in waiting.statements:
            out.print(f"   + {statement}")
    if contests or held:
        out.print("\ndecide with --approve, --reject or --keep-both and the number (or run:ID)")


def _quotes(assertion: Assertion) -> str:
    return " … ".join(evidence.quote for evidence in assertion.evidence)


def _show_erasures(erasures: Sequence[WaitingErasure]) -> None:
    out = console()
    for waiting in erasures:
        due = f"erased by itself on {iso_instant(waiting.due_at)}" if waiting.due_at else "hidden until it is erased"
        out.print(f"\n{waiting.id} {waiting.statement} ({due})")
    if erasures:
        out.print("\n`--reject` and the id stops it: the facts count again; `afterword forget --asked` erases them now")


def _show_dependents(dependents: Sequence[Dependent]) -> None:
    out = console()
    for dependent in dependents:
        changed = dependent.changed
        reason = f"{changed.statement.rstrip('.')!r} changed on {day(changed.valid_to)} ({dependent.reason})"
        out.print(f"\nmay no longer fit: {dependent.fact.statement} because {reason}  [{dependent.fact.id[:8]}]")
    if dependents:
        out.print("\nconfirm what still fits with `afterword confirm`, and correct the others with `afterword edit`")


def _show_unclear_names(facts: Sequence[Fact]) -> None:
    out = console()
    for fact in facts:
        names = " or ".join(dict.fromkeys(fact.may_be))
        out.print(f"\nwho is {fact.subject}, {names}? {fact.statement}  [{fact.id[:8]}]")
    if facts:
        out.print("\nsay who is meant with `afterword edit FACT --about NAME`")


def _show_findings(findings: Sequence[AgentFinding]) -> None:
    out = console()
    for finding in findings:
        out.print(f"\n{finding.agent} found: {finding.statement}  [{finding.id[:8]}]")
    if findings:
        out.print("\n`afterword findings --approve` or `--drop` and the id decide what other agents are told")


@app.command(name="policy")
def policy_command(
    policy: Annotated[
        Literal["auto", "hold-retirements", "hold-all"] | None,
        typer.Argument(help="Which runs wait for a person: none, those that end a fact, or all."),
    ] = None,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Show or set which runs wait for a person before they count."""
    owner = required_scope(user, scope)
    if policy is None:
        current = call_memory(owner, lambda memory: memory.policy())
    else:
        current = call_memory(owner, lambda memory: memory.set_policy(policy))
    print_setting(owner, "policy", str(current), as_json=as_json)


@app.command(name="zone")
def zone_command(
    zone: Annotated[
        str | None, typer.Argument(help="Time zone, for example Europe/Vienna; 'profile' for that of the profile.")
    ] = None,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Show or set the time zone of a user's sessions, for saved times that name none."""
    owner = required_scope(user, scope)
    if zone is None:
        current = call_memory(owner, lambda memory: memory.zone())
    else:
        chosen = None if zone == "profile" else zone
        current = call_memory(owner, lambda memory: memory.set_zone(chosen), create=True)
    print_setting(owner, "zone", current, as_json=as_json)


@app.command(name="pause")
def pause_command(user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Stop remembering a user or a project for a while.

    No session of this memory is kept until `afterword resume`. Nothing that is known is forgotten.
    """
    owner = required_scope(user, scope)
    pause = call_memory(owner, lambda memory: memory.pause(), create=True)
    if as_json:
        print_json({"scope": str(owner), "paused_at": iso_instant(pause.paused_at)})
    else:
        console().print(f"{owner} is paused since {day(pause.paused_at)}; `afterword resume` ends the pause")


@app.command(name="resume")
def resume_command(user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Remember again after `afterword pause`."""
    owner = required_scope(user, scope)
    pause = call_memory(owner, lambda memory: memory.resume_keeping())
    not_kept = pause.sessions_not_kept if pause else 0
    if as_json:
        print_json({"scope": str(owner), "was_paused": pause is not None, "sessions_not_kept": not_kept})
    elif pause is None:
        console().print(f"{owner} was not paused")
    else:
        console().print(f"the pause of {owner} has ended; {counted(not_kept, 'session')} not kept meanwhile")


@app.command(name="merge")
def merge_command(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The memory that is moved: tenant/kind/id.")],
    target: Annotated[str, typer.Argument(metavar="INTO", help="The memory that takes it in: tenant/kind/id.")],
    as_json: Json = False,
) -> None:
    """Merge one memory into another. `afterword undo` takes it back."""
    _print_run(call_store(lambda store: store.merge(source, into=target)), as_json=as_json)


@app.command(name="rename")
def rename_command(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The memory to rename: tenant/kind/id.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Its new name, not in use yet: tenant/kind/id.")],
    as_json: Json = False,
) -> None:
    """Rename a memory. `afterword undo` takes it back."""
    _print_run(call_store(lambda store: store.rename(source, target)), as_json=as_json)
