"""Commands for facts and for what agents found: list, search and correct them, and show what an agent is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

import typer

import afterword
from afterword.cli.app import (
    FactId,
    Json,
    ScopeName,
    User,
    app,
    call_memory,
    call_store,
    chosen_scope,
    counted,
    day,
    fact_table,
    print_json,
    print_lines,
    print_result,
    required_scope,
    status_text,
    table,
)
from afterword.client.forms.finding_forms import finding_json, finding_origin_json, findings_json
from afterword.client.forms.memory_forms import context_json, fact_json, iso_instant, origin_json, search_json
from afterword.errors import ArgumentInvalid

Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only facts with this tag. May be repeated.")
]


@app.command(name="facts")
def facts_command(
    user: User = None,
    scope: ScopeName = None,
    everything: Annotated[bool, typer.Option("--all", help="Also facts that no longer hold.")] = False,
    status: Annotated[
        list[str] | None, typer.Option("--status", help="Only facts with this status. May be repeated.")
    ] = None,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only facts of this kind. May be repeated.")] = None,
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
    if everything and status:
        raise ArgumentInvalid("--all shows facts of every status: give it or --status, not both")
    owner, statuses = required_scope(user, scope), "all" if everything else status or None
    page = call_memory(
        owner,
        lambda memory: memory.facts(
            status=statuses, kind=kind or None, as_of=as_of, known_at=known_at, tags=tags or ()
        ),
    )
    if as_json:
        print_json([fact_json(fact) for fact in page.facts])
        return
    hidden = f", {page.other_statuses} more with --all" if page.other_statuses else ""
    print_lines(fact_table(page.facts, title=f"{owner}: {counted(page.total, 'fact')}{hidden}"))


@app.command(name="history")
def history_command(fact_id: FactId, user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Show how a fact came to be.

    It shows every statement of the fact with its quotes, and how the statements were compared.
    """
    owner = chosen_scope(user, scope)
    origin = call_store(
        lambda store: store.scope(owner).history(fact_id) if owner else store.history(fact_id), known=owner
    )
    fact = origin.fact
    tags = f", tagged {', '.join(fact.tags)}" if fact.tags else ""
    said = [
        (
            *(iso_instant(assertion.said_at), assertion.session_id, assertion.statement),
            "; ".join(evidence.quote for evidence in assertion.evidence),
        )
        for assertion in origin.assertions
    ]
    judged = [
        (
            *(recorded.verdict.relation, recorded.earlier.statement, recorded.later.statement),
            *(recorded.verdict.reason, recorded.verdict.judge),
            f"{recorded.effect}: {recorded.refused_because}" if recorded.refused_because else recorded.effect,
        )
        for recorded in origin.verdicts
    ]
    print_result(
        origin_json(origin),
        f"{fact.statement} ({status_text(fact)}, {fact.kind} {fact.subject}/{fact.attribute}{tags})",
        table("statements", ("said at", "session", "statement", "quotes"), said),
        table("comparisons", ("result", "earlier", "later", "reason", "judge", "effect"), judged) if judged else None,
        *(f"{held.id} waits for a person: {held.reason or 'its comparisons do not count yet'}" for held in origin.held),
        as_json=as_json,
    )


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
    rows = [
        (
            *(f"{hit.score:.2f}", hit.layer, hit.text, day(hit.said_at), hit.speaker or ""),
            ", ".join(f"{name} {share:.2f}" for name, share in sorted(hit.parts.items(), key=lambda part: -part[1])),
        )
        for hit in results.hits
    ]
    empty = f"no facts {'with these tags ' if tags else ''}are stored in this memory"
    nothing = f"none of the {results.stored} facts matches" if results.stored else empty
    listed = table(f"{owner}: {query}", ("score", "layer", "text", "said", "by", "score is made of"), rows)
    lacking = f"{results.without_vector} texts have no vector yet: `afterword schedule --once` makes them"
    print_result(
        search_json(results),
        lacking if results.without_vector else None,
        listed if rows else nothing,
        as_json=as_json,
    )


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
    print_result(
        context_json(block),
        block.text or "an agent is told nothing",
        f"\nabout {block.tokens} tokens of {block.budget_tokens}; {counted(len(block.left_out), 'fact')} left out",
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
    _change(
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
    _change(
        required_scope(user, scope),
        lambda memory: memory.edit(fact_id, statement=statement, value=value, about=about, changed=changed),
        as_json=as_json,
    )


@app.command(name="confirm")
def confirm_command(fact_id: FactId, user: User = None, scope: ScopeName = None, as_json: Json = False) -> None:
    """Mark a fact as confirmed by a person."""
    _change(required_scope(user, scope), lambda memory: memory.confirm(fact_id), as_json=as_json)


@app.command(name="flag")
def flag_command(
    fact_id: FactId,
    off: Annotated[bool, typer.Option("--off", help="Remove the mark.")] = False,
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


def _change(
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


@app.command(name="findings")
def findings_command(
    finding_id: Annotated[
        str | None,
        typer.Argument(metavar="FINDING", help="Show how this finding came to be: its id, or the beginning of it."),
    ] = None,
    user: User = None,
    scope: ScopeName = None,
    everything: Annotated[bool, typer.Option("--all", help="Also findings that were dropped or expired.")] = False,
    agent: Annotated[str | None, typer.Option(help="Only findings of this agent.")] = None,
    approve: Annotated[
        str | None, typer.Option(metavar="FINDING", help="Approve a finding that waits or was dropped.")
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(
            metavar="FINDING", help="Drop a finding: no agent is told it any more, even if it is found again."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List what agents found, or decide about a finding. No person said it, and it never becomes a fact."""
    owner = required_scope(user, scope)
    if sum(name is not None for name in (finding_id, approve, drop)) > 1:
        raise ArgumentInvalid("show, approve or drop one finding at a time")
    if finding_id is not None:
        _show_origin(call_memory(owner, lambda memory: memory.finding_history(finding_id)), as_json=as_json)
        return
    if approve is not None or drop is not None:
        finding = call_memory(
            owner,
            lambda memory: memory.approve_finding(approve) if approve is not None else memory.drop_finding(str(drop)),
        )
        print_result(finding_json(finding), f"{finding.review}: {finding.statement}", as_json=as_json)
        return
    page = call_memory(owner, lambda memory: memory.findings(status="all" if everything else None, agent=agent))
    rows = [
        (
            *(finding.id[:8], finding.agent, "advice" if finding.is_advice else "finding", finding.statement),
            *(finding.status_at(page.at), day(finding.said_at), day(finding.expires_at)),
        )
        for finding in page.findings
    ]
    hidden = f", {page.other_statuses} more with --all" if page.other_statuses else ""
    names = ("id", "agent", "kind", "statement", "state", "said", "until")
    listed = table(f"{owner}: {counted(len(rows), 'finding')} of agents{hidden}", names, rows)
    print_result(findings_json(page), listed, as_json=as_json)


def _show_origin(origin: afterword.FindingOrigin, *, as_json: bool) -> None:
    rows = [
        (
            *(day(saying.said_at), saying.agent, saying.session_id or "saved by a tool"),
            " … ".join(cited.quote for cited in saying.evidence),
            ", ".join(map(str, run_ids)),
        )
        for saying, run_ids in origin.sayings
    ]
    print_result(
        finding_origin_json(origin),
        f"{origin.finding.statement} ({origin.finding.topic}; {origin.finding.review})",
        table("sayings", ("said", "agent", "session", "words", "runs"), rows),
        as_json=as_json,
    )


@app.command(name="agents")
def agents_command(
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="[AGENT]...", help='Keep findings of these agents; "*" is all.')
    ] = None,
    user: User = None,
    scope: ScopeName = None,
    none: Annotated[bool, typer.Option("--none", help="Keep findings of no agent.")] = False,
    with_tools: Annotated[
        Literal["review", "keep"] | None,
        typer.Option("--with-tools", help="Findings of agents that used tools wait for a review, or are kept at once."),
    ] = None,
    advice: Annotated[
        bool | None, typer.Option("--advice/--no-advice", help="Also keep what these agents advised.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="After how many days a finding expires.")] = None,
    as_json: Json = False,
) -> None:
    """Show or set the agents whose findings a memory keeps."""
    owner = required_scope(user, scope)
    if none and agents:
        raise ArgumentInvalid("give names of agents or --none, not both")
    if any((agents, none, with_tools, advice is not None, days is not None)):
        names = None if not agents and not none else tuple(agents or ())
        policy = call_memory(
            owner,
            lambda memory: memory.set_finding_policy(names, agents_with_tools=with_tools, advice=advice, days=days),
            create=True,
        )
    else:
        policy = call_memory(owner, lambda memory: memory.finding_policy())
    kinds = "findings and advice" if policy.advice else "findings"
    tools = "wait for a review" if policy.agents_with_tools == "review" else "are kept at once"
    print_result(
        {"scope": str(owner), **policy.as_json()},
        f"{owner}: {kinds} of {', '.join(policy.agents) or 'no agent'}, for {policy.days:g} days; "
        f"after tool output they {tools}",
        as_json=as_json,
    )


@app.command(name="others")
def others_command(
    are_told: Annotated[
        Literal["tell", "hide"] | None,
        typer.Argument(help="Tell agents the words of people who are not the owner of the memory, or hide them."),
    ] = None,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Show or set whether agents are told the words of people who are not the owner of a memory."""
    owner = required_scope(user, scope)
    current = call_memory(
        owner,
        lambda memory: (
            memory.tells_other_people() if are_told is None else memory.set_other_people(are_told=are_told == "tell")
        ),
        create=are_told is not None,
    )
    shown = f"{owner}: words of other people are {'told' if current else 'not told'}"
    print_result({"scope": str(owner), "other_people": current}, shown, as_json=as_json)
