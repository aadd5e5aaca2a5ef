"""Commands for facts: list, search and correct them, and show what an agent is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import afterword
from afterword.cli.app import FactId, Json, ScopeName, User, app, call_memory, call_store, chosen_scope, required_scope
from afterword.cli.printing import (
    count_with_noun,
    date_text,
    fact_table,
    more_with_all_text,
    print_result,
    status_text,
    table,
)
from afterword.client.forms.memory_forms import context_json, fact_json, fact_origin_json, iso_instant, search_json
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword.client.values import Assertion

Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only facts with this tag. May be repeated.")
]

Statuses = Annotated[list[str] | None, typer.Option("--status", help="Only facts with this status. May be repeated.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", help="Only facts of this kind. May be repeated.")]
HeldAt = Annotated[
    str | None, typer.Option("--as-of", help="Show what held at this day or instant (ISO 8601; default: now).")
]
KnownAt = Annotated[
    str | None,
    typer.Option("--known-at", help="Show what was known at this day or instant (ISO 8601; default: now)."),
]


@app.command(name="facts")
def facts_command(
    user: User = None,
    scope: ScopeName = None,
    everything: Annotated[bool, typer.Option("--all", help="Also facts that no longer hold.")] = False,
    status: Statuses = None,
    kind: Kinds = None,
    as_of: HeldAt = None,
    known_at: KnownAt = None,
    tags: Tags = None,
    as_json: Json = False,
) -> None:
    """List the facts of one memory, now or at another time."""
    if everything and status:
        raise ArgumentInvalid("--all shows facts of every status: give it or --status, not both")
    owner, statuses = required_scope(user, scope), "all" if everything else status or None
    filters: dict[str, Any] = {"status": statuses, "kind": kind or None, "tags": tags or ()}
    page = call_memory(owner, lambda memory: memory.facts(**filters, as_of=as_of, known_at=known_at))
    title = f"{owner}: {count_with_noun(page.total, 'fact')}{more_with_all_text(page.other_statuses)}"
    print_result([fact_json(fact) for fact in page.facts], fact_table(page.facts, title=title), as_json=as_json)


@app.command(name="history")
def history_command(fact_id: FactId, user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Show how a fact came to be.

    It shows every statement of the fact with its quotes, and how the statements were compared.
    """
    owner = chosen_scope(user, scope)
    origin = call_store(
        lambda store: store.scope(owner).history(fact_id) if owner else store.history(fact_id), known_scope=owner
    )
    fact = origin.fact
    tags = f", tagged {', '.join(fact.tags)}" if fact.tags else ""
    said, judged = list(map(_statement_row, origin.assertions)), list(map(_verdict_row, origin.verdicts))
    print_result(
        fact_origin_json(origin),
        f"{fact.statement} ({status_text(fact)}, {fact.kind} {fact.subject}/{fact.attribute}{tags})",
        table("statements", ("said at", "session", "statement", "quotes"), said),
        table("comparisons", ("result", "earlier", "later", "reason", "judge", "effect"), judged) if judged else None,
        *(f"{held.id} waits for a person: {held.reason or 'its comparisons do not count yet'}" for held in origin.held),
        as_json=as_json,
    )


def _statement_row(assertion: Assertion) -> tuple[object, ...]:
    quotes = "; ".join(evidence.quote for evidence in assertion.evidence)
    return (iso_instant(assertion.said_at), assertion.session_id, assertion.statement, quotes)


def _verdict_row(recorded: afterword.RecordedVerdict) -> tuple[object, ...]:
    verdict, refused_because = recorded.verdict, recorded.refused_because
    return (
        *(verdict.relation, recorded.earlier.statement, recorded.later.statement, verdict.reason, verdict.judge),
        f"{recorded.effect}: {refused_because}" if refused_because else recorded.effect,
    )


RecalledAt = Annotated[
    str | None, typer.Option("--as-of", help="Search as of this day or instant (ISO 8601; default: now).")
]


@app.command(name="recall")
def recall_command(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: User = None,
    scope: ScopeName = None,
    limit: Annotated[int, typer.Option(min=1, help="The largest number of facts to show.")] = 10,
    as_of: RecalledAt = None,
    tags: Tags = None,
    as_json: Json = False,
) -> None:
    """Search one memory: what holds, what held before, and what was said. The best match comes first."""
    owner = required_scope(user, scope)
    results = call_memory(owner, lambda memory: memory.search(query, limit=limit, as_of=as_of, tags=tags or ()))
    empty = f"no facts {'with these tags ' if tags else ''}are stored in this memory"
    nothing = f"none of the {results.stored} facts matches" if results.stored else empty
    names = ("score", "layer", "text", "said", "by", "score is made of")
    listed = table(f"{owner}: {query}", names, list(map(_hit_row, results.hits))) if results.hits else nothing
    lacking = f"{results.without_vector} texts have no vector yet: `afterword schedule --once` makes them"
    print_result(search_json(results), lacking if results.without_vector else None, listed, as_json=as_json)


def _hit_row(hit: afterword.SearchHit) -> tuple[object, ...]:
    shares = sorted(hit.parts.items(), key=itemgetter(1), reverse=True)
    return (
        *(f"{hit.score:.2f}", hit.layer, hit.text, date_text(hit.said_at), hit.speaker or ""),
        ", ".join(f"{name} {share:.2f}" for name, share in shares),
    )


BlockSize = Annotated[
    int | None, typer.Option("--budget-tokens", min=1, help="The largest size of the text, in tokens.")
]
AdditionalScopes = Annotated[
    list[str] | None,
    typer.Option(metavar="SCOPE", help="Another memory that the agent reads (tenant/kind/id). May be repeated."),
]


@app.command(name="context")
def context_command(
    query: Annotated[
        str,
        typer.Argument(help="The question for which the context is shown. Without it: what an agent reads unasked."),
    ] = "",
    user: User = None,
    scope: ScopeName = None,
    budget_tokens: BlockSize = None,
    also: AdditionalScopes = None,
    as_json: Json = False,
) -> None:
    """Show what an agent with this memory would be told.

    It shows the text exactly as an agent gets it for a question, and which facts are left out of it and why.
    """
    block = call_memory(
        required_scope(user, scope),
        lambda memory: memory.context(query, budget_tokens=budget_tokens, also=also or ()),
    )
    left_out = count_with_noun(len(block.left_out), "fact")
    print_result(
        context_json(block),
        block.text or "an agent is told nothing",
        f"\nabout {block.tokens} tokens of {block.budget_tokens}; {left_out} left out",
        *(f"  {omitted.reason}: {omitted.fact.statement}" for omitted in block.left_out),
        as_json=as_json,
    )


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
    _change_memory(
        required_scope(user, scope),
        lambda memory: memory.remember(statement, kind=kind, subject=about, tags=tags or ()),
        as_json=as_json,
        create=True,
    )


@app.command(name="edit")
def edit_command(
    fact_id: FactId,
    statement: Annotated[str | None, typer.Option(help="The correct sentence.")] = None,
    value: Annotated[str | None, typer.Option(help="The correct value, if it differs from the sentence.")] = None,
    about: Annotated[str | None, typer.Option(help="Whom or what the fact is about.")] = None,
    changed: Annotated[
        bool,
        typer.Option(
            "--changed", help="The fact was right until now. Without this option, it was wrong from the start."
        ),
    ] = False,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Correct a fact. A person's correction takes precedence over what was found in sessions."""
    _change_memory(
        required_scope(user, scope),
        lambda memory: memory.edit(fact_id, statement=statement, value=value, about=about, changed=changed),
        as_json=as_json,
    )


@app.command(name="confirm")
def confirm_command(fact_id: FactId, user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Mark a fact as confirmed by a person."""
    _change_memory(required_scope(user, scope), lambda memory: memory.confirm(fact_id), as_json=as_json)


@app.command(name="flag")
def flag_command(
    fact_id: FactId,
    off: Annotated[bool, typer.Option("--off", help="Remove the mark.")] = False,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Mark a fact that an agent must never miss. It comes first where not all facts fit."""
    _change_memory(required_scope(user, scope), lambda memory: memory.flag(fact_id, flagged=not off), as_json=as_json)


@app.command(name="withdraw")
def withdraw_command(fact_id: FactId, user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Mark a fact as no longer true. Its past is kept; `afterword forget` erases."""
    _change_memory(required_scope(user, scope), lambda memory: memory.withdraw(fact_id), as_json=as_json)


def _change_memory(
    scope: afterword.Scope,
    work: Callable[[afterword.ScopeMemory], Awaitable[afterword.RunEffect]],
    *,
    as_json: bool,
    create: bool = False,
) -> None:
    effect = call_memory(scope, work, create=create)
    run_id = effect.run.id
    lines = [f"run {run_id}; `afterword undo {run_id}` takes it back"]
    lines += [f"  {fact.id[:8]} {status_text(fact)}: {fact.statement}" for fact in effect.facts]
    if effect.run.status == "held":
        lines = [f"run {run_id} waits for a person; see `afterword review`"]
    print_result({"run": run_id, "facts": [fact_json(fact) for fact in effect.facts]}, *lines, as_json=as_json)
