"""Commands for what agents found: list it, decide about it, and set whose findings a memory keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from afterword.cli.app import Json, ScopeName, User, app
from afterword.cli.calls import call_memory, required_scope
from afterword.cli.output import console, counted, day, print_json, print_setting, table
from afterword.client.findings.finding_forms import finding_json, finding_origin_json, findings_json
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword.client.results import FindingOrigin
    from afterword.client.values import FindingPolicy, Scope


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
        str | None, typer.Option(metavar="FINDING", help="Let a finding count that waits or was dropped.")
    ] = None,
    drop: Annotated[
        str | None, typer.Option(metavar="FINDING", help="Tell no agent this finding any more, also if found again.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List what agents found, or decide about a finding. No person said it, and no fact rests on it."""
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
        if as_json:
            print_json(finding_json(finding))
        else:
            console().print(f"{finding.review}: {finding.statement}")
        return
    page = call_memory(owner, lambda memory: memory.findings(status="all" if everything else None, agent=agent))
    if as_json:
        print_json(findings_json(page))
        return
    rows = [
        (
            finding.id[:8],
            finding.agent,
            "advice" if finding.is_advice else "finding",
            finding.statement,
            finding.status_at(page.at),
            day(finding.said_at),
            day(finding.expires_at),
        )
        for finding in page.findings
    ]
    hidden = f", {page.other_statuses} more with --all" if page.other_statuses else ""
    names = ("id", "agent", "kind", "statement", "state", "said", "until")
    console().print(table(f"{owner}: {counted(len(rows), 'finding')} of agents{hidden}", names, rows))


def _show_origin(origin: FindingOrigin, *, as_json: bool) -> None:
    if as_json:
        print_json(finding_origin_json(origin))
        return
    out = console()
    out.print(f"{origin.finding.statement} ({origin.finding.topic}; {origin.finding.review})")
    rows = [
        (
            day(saying.said_at),
            saying.agent,
            saying.session_id or "saved by a tool",
            " … ".join(cited.quote for cited in saying.evidence),
            ", ".join(map(str, run_ids)),
        )
        for saying, run_ids in origin.sayings
    ]
    out.print(table("sayings", ("said", "agent", "session", "words", "runs"), rows))


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
    if agents or none or with_tools or advice is not None or days is not None:
        names = None if not agents and not none else tuple(agents or ())
        policy = call_memory(
            owner,
            lambda memory: memory.set_finding_policy(names, agents_with_tools=with_tools, advice=advice, days=days),
            create=True,
        )
    else:
        policy = call_memory(owner, lambda memory: memory.finding_policy())
    _print_policy(owner, policy, as_json=as_json)


def _print_policy(owner: Scope, policy: FindingPolicy, *, as_json: bool) -> None:
    if as_json:
        print_json({"scope": str(owner), **policy.as_json()})
        return
    names = ", ".join(policy.agents) or "no agent"
    kinds = "findings and advice" if policy.advice else "findings"
    tools = "wait for a review" if policy.agents_with_tools == "review" else "are kept at once"
    console().print(f"{owner}: {kinds} of {names}, for {policy.days:g} days; after tool output they {tools}")


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
    if are_told is None:
        current = call_memory(owner, lambda memory: memory.tells_other_people())
    else:
        current = call_memory(owner, lambda memory: memory.set_other_people(are_told=are_told == "tell"), create=True)
    shown = f"words of other people are {'told' if current else 'not told'}"
    print_setting(owner, "other_people", current, as_json=as_json, shown=shown)
