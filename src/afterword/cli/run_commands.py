"""Commands for runs, for what waits for a person, and for one memory.

They list, apply, undo and redo runs, take decisions, set the policy or the time zone of a memory, pause it, resume it,
merge it and rename it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from afterword.cli.app import Json, RunId, ScopeName, User, app, call_memory, call_store, chosen_scope, required_scope
from afterword.cli.printing import (
    NO_FACT_FOUND,
    cost_text,
    count_with_noun,
    counts_text,
    date_text,
    print_result,
    spending_text,
    status_text,
    table,
)
from afterword.client.forms.memory_forms import iso_instant, review_json, run_json, run_record_json
from afterword.errors import ArgumentInvalid, NotFound, StoreMissing

if TYPE_CHECKING:
    from afterword import Afterword, Review, Run, RunEffect, RunPage, Scope, ScopeCosts
    from afterword.cli.terminal import ResponsiveTable
    from afterword.client.results import WaitingErasure
    from afterword.client.values import Contest


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

    page, costs = call_store(runs_and_costs, known_scope=owner)
    print_result(
        list(map(run_record_json, page.runs)), _run_table(page, owner), *_run_cost_lines(costs), as_json=as_json
    )


def _run_table(page: RunPage, owner: Scope | None) -> ResponsiveTable:
    rows = [
        (
            *(run.id, "" if owner else str(run.scope), run.source, run.status, run.extractor, run.judge),
            *(
                date_text(run.started_at),
                run.prompt_tokens + run.completion_tokens,
                cost_text(record.spent),
                _run_counts_text(run),
            ),
        )
        for record in page.runs
        for run in [record.run]
    ]
    names = ("run", "scope", "source", "state", "extractor", "judge", "started", "tokens", "cost", "counts")
    return table(f"{owner or 'all memories'}: {count_with_noun(page.total, 'run')}", names, rows)


def _run_cost_lines(costs: ScopeCosts | None) -> Iterator[str]:
    if costs:
        yield f"in all: {spending_text(costs.total)}"
        if costs.without_run.calls:
            yield f"of which came to no run: {spending_text(costs.without_run)}"


def _run_counts_text(run: Run) -> str:
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
    changes = (
        f"  {status_text(change.after) if change.after else 'gone'}: {fact.statement}"
        for change in effect.changes
        if (fact := change.after or change.before) is not None
    )
    print_result(
        run_json(run), f"run {run.id} ({run.source} of {run.scope}) is {run.status}", *changes, as_json=as_json
    )


ItemToApprove = Annotated[
    str | None,
    typer.Option(
        metavar="ITEM", help="Accept the later statement of a contest (give its number), or a held run (run:N)."
    ),
]
ItemToReject = Annotated[
    str | None,
    typer.Option(
        metavar="ITEM",
        help="Withdraw the later statement of a contest (its number), reject a held run (run:N), or stop an "
        "erasure (erase:ID).",
    ),
]
ContestToKeep = Annotated[
    str | None,
    typer.Option("--keep-both", metavar="ITEM", help="Keep both statements of a contest (give its number)."),
]


@app.command(name="review")
def review_command(
    user: User = None,
    scope: ScopeName = None,
    approve: ItemToApprove = None,
    reject: ItemToReject = None,
    keep_both: ContestToKeep = None,
    as_json: Json = False,
) -> None:
    """List what waits for a person's decision, in one memory or in all, or decide it."""
    options = {"approve": approve, "reject": reject, "keep-both": keep_both}
    decisions = [(item_id, decision) for decision, item_id in options.items() if item_id is not None]
    if len(decisions) > 1:
        raise ArgumentInvalid("decide one item at a time")
    if decisions:
        ((item_id, decision),) = decisions
        owner = required_scope(user, scope)
        _print_run(call_memory(owner, lambda memory: memory.decide(item_id, decision)), as_json=as_json)
    else:
        _print_waiting_items(chosen_scope(user, scope), as_json=as_json)


def _print_waiting_items(scope: Scope | None, *, as_json: bool) -> None:
    if scope is not None:
        review = call_memory(scope, lambda memory: memory.review())
        print_result(review_json(review), *_review_lines(scope, review), as_json=as_json)
        return
    reviews = call_store(lambda store: store.reviews())
    lines = [line for owner, review in reviews.items() for line in _review_lines(owner, review)]
    print_result(
        {str(owner): review_json(review) for owner, review in reviews.items()},
        *(lines or ["nothing waits for a person in any memory"]),
        as_json=as_json,
    )


def _review_lines(scope: Scope, review: Review) -> Iterator[str]:
    """Yield lines that list what waits in a memory, and say how each kind is decided."""
    contests, held = review.contests, review.held
    asked = f", {len(review.erasures)} to erase" if review.erasures else ""
    yield f"{scope}: {len(contests)} contested, {len(held)} held{asked}"
    for number, contest in enumerate(contests, 1):
        yield from _contest_lines(number, contest)
    for waiting in held:
        yield f"\n{waiting.id} {waiting.run.purpose} {waiting.run.source}: {_run_counts_text(waiting.run)}"
        yield from [f"   held: {waiting.reason}"] if waiting.reason else []
        yield from (f"   + {statement}" for statement in waiting.statements)
    if contests or held:
        yield "\ndecide with --approve, --reject or --keep-both and the number (or run:ID)"
    yield from _erasure_lines(scope, review.erasures)
    yield from _maybe_outdated_lines(review)
    yield from _unclear_name_lines(review)
    yield from _finding_lines(review)


def _contest_lines(number: int, contest: Contest) -> Iterator[str]:
    yield f"\n{number}. {contest.relation}: {contest.judged_because}; refused: {contest.refused_because}"
    for name, assertion in (("earlier", contest.earlier), ("later  ", contest.later)):
        quotes = " … ".join(evidence.quote for evidence in assertion.evidence)
        yield f"   {name} ({date_text(assertion.said_at)}): {assertion.statement}  “{quotes}”"


def _maybe_outdated_lines(review: Review) -> Iterator[str]:
    for dependent in review.dependents:
        changed = dependent.changed
        reason = f"{changed.statement.rstrip('.')!r} changed on {date_text(changed.valid_to)} ({dependent.reason})"
        yield f"\nmay no longer fit: {dependent.fact.statement} because {reason}  [{dependent.fact.id[:8]}]"
    if review.dependents:
        yield "\nconfirm what still fits with `afterword confirm`, and correct the others with `afterword edit`"


def _erasure_lines(scope: Scope, erasures: Sequence[WaitingErasure]) -> Iterator[str]:
    for erasure in erasures:
        due = f"erased by itself on {iso_instant(erasure.due_at)}" if erasure.due_at else "hidden until it is erased"
        unfound = "asked to erase the whole memory" if erasure.is_everything else NO_FACT_FOUND
        yield f"\n{erasure.id} {erasure.statement} ({due if erasure.finds_facts else unfound})"
    if any(erasure.finds_facts for erasure in erasures):
        yield "\n`--reject` and the id keeps them: the facts count again; `afterword forget --asked` erases them now"
    if any(not (erasure.finds_facts or erasure.is_everything) for erasure in erasures):
        yield (
            "\nwhere no fact was found, agents no longer see the turns that contain these words: `afterword forget "
            "--asked` erases the words, `--reject` and the id shows them again"
        )
    if any(erasure.is_everything for erasure in erasures):
        whose = f"--user {scope.id}" if str(scope) == f"default/user/{scope.id}" else f"--scope {scope}"
        yield f"\n`afterword forget {whose}` erases the whole memory, and `--reject` and the id keeps it"


def _unclear_name_lines(review: Review) -> Iterator[str]:
    for fact in review.unclear:
        names = " or ".join(dict.fromkeys(fact.may_be))
        question = f"which {names} is meant?" if names == fact.subject else f"who is {fact.subject}, {names}?"
        yield f"\n{question} {fact.statement}  [{fact.id[:8]}]"
    if review.unclear:
        yield "\nsay who is meant with `afterword edit FACT --about NAME`"


def _finding_lines(review: Review) -> Iterator[str]:
    yield from (f"\n{finding.agent} found: {finding.statement}  [{finding.id[:8]}]" for finding in review.findings)
    if review.findings:
        yield "\n`afterword findings --approve` or `--drop` and the id decide what other agents are told"


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
    current = call_memory(owner, lambda memory: memory.policy() if policy is None else memory.set_policy(policy))
    print_result({"scope": str(owner), "policy": str(current)}, f"{owner}: {current}", as_json=as_json)


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
    chosen = None if zone == "profile" else zone
    current = call_memory(
        owner,
        lambda memory: memory.zone() if zone is None else memory.set_zone(chosen),
        create=zone is not None,
    )
    print_result({"scope": str(owner), "zone": current}, f"{owner}: {current}", as_json=as_json)


@app.command(name="pause")
def pause_command(
    user: User = None,
    scope: ScopeName = None,
    new: Annotated[bool, typer.Option("--new", help="Also pause a memory in which nothing was ever stored.")] = False,
    as_json: Json = False,
) -> None:
    """Stop remembering a user or a project for a while.

    No session of this memory is kept until `afterword resume`. Nothing that is known is forgotten.
    """
    owner = required_scope(user, scope)
    try:
        pause = call_memory(owner, lambda memory: memory.pause(), create=new)
    except (NotFound, StoreMissing) as error:
        # A misspelt name would pause another memory, and the sessions of the intended person would still be kept.
        unpaused = f"{error}. Nothing was paused; --new pauses a memory before anything is kept in it"
        raise type(error)(unpaused) from error
    shown = f"{owner} is paused since {date_text(pause.paused_at)}; `afterword resume` ends the pause"
    print_result({"scope": str(owner), "paused_at": iso_instant(pause.paused_at)}, shown, as_json=as_json)


@app.command(name="resume")
def resume_command(user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Remember again after `afterword pause`."""
    owner = required_scope(user, scope)
    pause = call_memory(owner, lambda memory: memory.resume_keeping())
    not_kept = pause.sessions_not_kept if pause else 0
    ended = f"the pause of {owner} has ended; {count_with_noun(not_kept, 'session')} not kept meanwhile"
    print_result(
        {"scope": str(owner), "was_paused": pause is not None, "sessions_not_kept": not_kept},
        ended if pause else f"{owner} was not paused",
        as_json=as_json,
    )


@app.command(name="merge")
def merge_command(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The memory that is moved: tenant/kind/id.")],
    target: Annotated[str, typer.Argument(metavar="INTO", help="The memory that takes it in: tenant/kind/id.")],
    as_json: Json = False,
) -> None:
    """Merge one memory into another that exists. `afterword undo` takes it back."""
    _print_run(call_store(lambda store: store.merge(source, into=target)), as_json=as_json)


@app.command(name="rename")
def rename_command(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The memory to rename: tenant/kind/id.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Its new name, which no memory has yet: tenant/kind/id.")],
    as_json: Json = False,
) -> None:
    """Rename a memory. `afterword undo` takes it back."""
    _print_run(call_store(lambda store: store.rename(source, target)), as_json=as_json)
