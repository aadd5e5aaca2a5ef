"""Commands for facts: list and search them, show what an agent is told, and correct them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from afterword.cli.app import FactId, Json, ScopeName, User, app
from afterword.cli.calls import call_memory, call_store, chosen_scope, required_scope
from afterword.cli.output import console, counted, day, fact_table, print_json, status_text, table
from afterword.client.json_forms import context_json, fact_json, iso_instant, origin_json, search_json

if TYPE_CHECKING:
    from afterword import ScopeMemory
    from afterword.client.values import RunEffect, Scope


Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only facts with this tag. May be repeated.")
]


@app.command(name="facts")
def facts_command(
    user: User = None,
    scope: ScopeName = None,
    everything: Annotated[bool, typer.Option("--all", help="Also facts that no longer hold.")] = False,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="Show what held at this day or instant (ISO 8601; default: now).")
    ] = None,
    known_at: Annotated[
        str | None,
        typer.Option("--known-at", help="Show what was known at this day or instant (ISO 8601; default: now)."),
    ] = None,
    tags: Tags = None,
    as_json: Json = False,
) -> None:
    """List the facts of one memory, now or at another time."""
    owner, status = required_scope(user, scope), "all" if everything else None
    page = call_memory(
        owner, lambda memory: memory.facts(status=status, as_of=as_of, known_at=known_at, tags=tags or ())
    )
    if as_json:
        print_json([fact_json(fact) for fact in page.facts])
        return
    hidden = f", {page.other_statuses} more with --all" if page.other_statuses else ""
    console().print(fact_table(page.facts, title=f"{owner}: {counted(page.total, 'fact')}{hidden}"))


@app.command(name="history")
def history_command(fact_id: FactId, user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Show how a fact came to be.

    It shows every statement of the fact with its quotes, and how the statements were compared.
    """
    owner = chosen_scope(user, scope)
    origin = call_store(
        lambda store: store.scope(owner).history(fact_id) if owner else store.history(fact_id), known=owner
    )
    if as_json:
        print_json(origin_json(origin))
        return
    out, fact = console(), origin.fact
    tags = f", tagged {', '.join(fact.tags)}" if fact.tags else ""
    out.print(f"{fact.statement} ({status_text(fact)}, {fact.kind} {fact.subject}/{fact.attribute}{tags})")
    said = [
        (
            iso_instant(assertion.said_at),
            assertion.session_id,
            assertion.statement,
            "; ".join(evidence.quote for evidence in assertion.evidence),
        )
        for assertion in origin.assertions
    ]
    out.print(table("statements", ("said at", "session", "statement", "quotes"), said))
    judged = [
        (
            recorded.verdict.relation,
            recorded.earlier.statement,
            recorded.later.statement,
            recorded.verdict.reason,
            recorded.verdict.judge,
            f"{recorded.effect}: {recorded.refused_because}" if recorded.refused_because else recorded.effect,
        )
        for recorded in origin.verdicts
    ]
    out.print(table("comparisons", ("result", "earlier", "later", "reason", "judge", "effect"), judged))
    for held in origin.held:
        out.print(f"{held.id} waits for a person: {held.reason or 'its comparisons do not count yet'}")


@app.command(name="recall")
def recall_command(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: User = None,
    scope: ScopeName = None,
    limit: Annotated[int, typer.Option(min=1, help="The largest number of facts to show.")] = 10,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="Search as of this day or instant (ISO 8601; default: now).")
    ] = None,
    tags: Tags = None,
    as_json: Json = False,
) -> None:
    """Search one memory: what holds, what held before, and what was said. The best match comes first."""
    owner = required_scope(user, scope)
    results = call_memory(owner, lambda memory: memory.search(query, limit=limit, as_of=as_of, tags=tags or ()))
    if as_json:
        print_json(search_json(results))
        return
    if results.without_vector:
        console().print(f"{results.without_vector} texts have no vector yet: `afterword schedule --once` makes them")
    if not results.hits:
        empty = f"no facts {'with these tags ' if tags else ''}are stored in this memory"
        console().print(f"none of the {results.stored} facts matches" if results.stored else empty)
        return
    rows = [
        (f"{hit.score:.2f}", hit.layer, hit.text, day(hit.said_at), hit.speaker or "", _score_parts(hit.parts))
        for hit in results.hits
    ]
    console().print(table(f"{owner}: {query}", ("score", "layer", "text", "said", "by", "score is made of"), rows))


def _score_parts(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.2f}" for name, share in sorted(parts.items(), key=lambda part: -part[1]))


@app.command(name="context")
def context_command(
    query: Annotated[str, typer.Argument(help="The question that the agent is asked; without one, no question.")] = "",
    user: User = None,
    scope: ScopeName = None,
    budget_tokens: Annotated[
        int | None, typer.Option("--budget-tokens", min=1, help="The largest size of the text, in tokens.")
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPE", help="Another memory that the agent reads (tenant/kind/id). May be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what an agent with this memory would be told.

    It shows the text exactly as an agent gets it for a question, and which facts are left out of it and why.
    """
    block = call_memory(
        required_scope(user, scope),
        lambda memory: memory.context(query, budget_tokens=budget_tokens, also=also or ()),
    )
    if as_json:
        print_json(context_json(block))
        return
    out = console()
    out.print(block.text or "an agent is told nothing")
    out.print(
        f"\nabout {block.tokens} tokens of {block.budget_tokens}; {counted(len(block.left_out), 'fact')} left out"
    )
    for omitted in block.left_out:
        out.print(f"  {omitted.reason}: {omitted.fact.statement}")


@app.command(name="remember")
def remember_command(
    statement: Annotated[str, typer.Argument(help="What to remember, as one sentence.")],
    user: User = None,
    scope: ScopeName = None,
    kind: Annotated[
        Literal["preference", "entity", "decision"], typer.Option(help="What kind of fact it is.")
    ] = "entity",
    about: Annotated[str, typer.Option(help='Whom or what it is about; "user" is the owner of the memory.')] = "user",
    tags: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="A word to find it by. May be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a fact to a memory."""
    owner = required_scope(user, scope)
    effect = call_memory(
        owner, lambda memory: memory.remember(statement, kind=kind, subject=about, tags=tags or ()), create=True
    )
    _print_effect(effect, as_json=as_json)


@app.command(name="edit")
def edit_command(
    fact_id: FactId,
    statement: Annotated[str | None, typer.Option(help="The correct sentence.")] = None,
    value: Annotated[str | None, typer.Option(help="The correct value, if it is not the sentence.")] = None,
    about: Annotated[str | None, typer.Option(help="Whom or what the fact is about.")] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="The fact was right until now. Without it, it was always wrong.")
    ] = False,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Correct a fact. A person's correction takes precedence over what was found in sessions."""

    def edit(memory: ScopeMemory) -> Awaitable[RunEffect]:
        return memory.edit(fact_id, statement=statement, value=value, about=about, changed=changed)

    _change(required_scope(user, scope), edit, as_json=as_json)


@app.command(name="confirm")
def confirm_command(fact_id: FactId, user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Mark a fact as confirmed by a person."""
    _change(required_scope(user, scope), lambda memory: memory.confirm(fact_id), as_json=as_json)


@app.command(name="flag")
def flag_command(
    fact_id: FactId,
    off: Annotated[bool, typer.Option("--off", help="The fact need not come first.")] = False,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Mark a fact that an agent must never miss. It comes first where not all facts fit."""
    _change(required_scope(user, scope), lambda memory: memory.flag(fact_id, flagged=not off), as_json=as_json)


@app.command(name="withdraw")
def withdraw_command(fact_id: FactId, user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Mark a fact as no longer true. Its past is kept; `afterword forget` erases."""
    _change(required_scope(user, scope), lambda memory: memory.withdraw(fact_id), as_json=as_json)


def _change(scope: Scope, work: Callable[[ScopeMemory], Awaitable[RunEffect]], *, as_json: bool) -> None:
    _print_effect(call_memory(scope, work), as_json=as_json)


def _print_effect(effect: RunEffect, *, as_json: bool) -> None:
    run_id = effect.run.id
    if as_json:
        print_json({"run": run_id, "facts": [fact_json(fact) for fact in effect.facts]})
        return
    if effect.run.status == "held":
        console().print(f"run {run_id} waits for a person; see `afterword review`")
        return
    console().print(f"run {run_id}; `afterword undo {run_id}` takes it back")
    for fact in effect.facts:
        console().print(f"  {fact.id[:8]} {status_text(fact)}: {fact.statement}")
