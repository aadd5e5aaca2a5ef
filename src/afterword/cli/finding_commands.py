"""Commands for what agents found, and for what agents are told of people who do not own a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import afterword
from afterword.cli.app import Json, ScopeName, User, app, call_memory, required_scope
from afterword.cli.printing import count_with_noun, date_text, more_with_all_text, print_result, table
from afterword.client.forms.finding_forms import finding_json, finding_origin_json, findings_json
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword.cli.terminal import ResponsiveTable

FindingToShow = Annotated[
    str | None,
    typer.Argument(metavar="FINDING", help="Show how this finding came to be: its id, or the beginning of it."),
]
FindingToApprove = Annotated[
    str | None, typer.Option(metavar="FINDING", help="Approve a finding that waits or was dropped.")
]
FindingToDrop = Annotated[
    str | None,
    typer.Option(metavar="FINDING", help="Drop a finding: no agent is told it any more, even if it is found again."),
]


@app.command(name="findings")
def findings_command(
    finding_id: FindingToShow = None,
    user: User = None,
    scope: ScopeName = None,
    everything: Annotated[bool, typer.Option("--all", help="Also findings that were dropped or expired.")] = False,
    agent: Annotated[str | None, typer.Option(help="Only findings of this agent.")] = None,
    approve: FindingToApprove = None,
    drop: FindingToDrop = None,
    as_json: Json = False,
) -> None:
    """List what agents found, or decide about a finding. No person said it, and it never becomes a fact."""
    owner = required_scope(user, scope)
    if sum(name is not None for name in (finding_id, approve, drop)) > 1:
        raise ArgumentInvalid("show, approve or drop one finding at a time")
    if finding_id is not None:
        _print_origin(call_memory(owner, lambda memory: memory.finding_history(finding_id)), as_json=as_json)
    elif approve is not None:
        _print_decision(call_memory(owner, lambda memory: memory.approve_finding(approve)), as_json=as_json)
    elif drop is not None:
        _print_decision(call_memory(owner, lambda memory: memory.drop_finding(drop)), as_json=as_json)
    else:
        statuses = "all" if everything else None
        page = call_memory(owner, lambda memory: memory.findings(status=statuses, agent=agent))
        print_result(findings_json(page), _finding_table(owner, page), as_json=as_json)


def _print_decision(finding: afterword.AgentFinding, *, as_json: bool) -> None:
    print_result(finding_json(finding), f"{finding.review}: {finding.statement}", as_json=as_json)


def _finding_table(owner: afterword.Scope, page: afterword.FindingPage) -> ResponsiveTable:
    rows = [
        (
            *(finding.id[:8], finding.agent, "advice" if finding.is_advice else "finding", finding.statement),
            *(finding.status_at(page.at), date_text(finding.said_at), date_text(finding.expires_at)),
        )
        for finding in page.findings
    ]
    names = ("id", "agent", "kind", "statement", "state", "said", "until")
    title = f"{owner}: {count_with_noun(len(rows), 'finding')} of agents{more_with_all_text(page.other_statuses)}"
    return table(title, names, rows)


def _print_origin(origin: afterword.FindingOrigin, *, as_json: bool) -> None:
    rows = [
        (
            *(date_text(saying.said_at), saying.agent, saying.session_id or "saved by a tool"),
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


AgentNames = Annotated[
    list[str] | None, typer.Argument(metavar="[AGENT]...", help='Keep findings of these agents; "*" is all.')
]
AgentsWithTools = Annotated[
    Literal["review", "keep"] | None,
    typer.Option("--with-tools", help="Findings of agents that used tools wait for a review, or are kept at once."),
]


@app.command(name="agents")
def agents_command(
    agents: AgentNames = None,
    user: User = None,
    scope: ScopeName = None,
    none: Annotated[bool, typer.Option("--none", help="Keep findings of no agent.")] = False,
    agents_with_tools: AgentsWithTools = None,
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
    names = tuple(agents or ()) if agents or none else None
    options: dict[str, Any] = {"agents_with_tools": agents_with_tools, "advice": advice, "days": days}
    is_changed = names is not None or any(option is not None for option in options.values())
    policy = call_memory(
        owner,
        lambda memory: memory.set_finding_policy(names, **options) if is_changed else memory.finding_policy(),
        create=is_changed,
    )
    print_result({"scope": str(owner), **policy.as_json()}, f"{owner}: {_policy_text(policy)}", as_json=as_json)


def _policy_text(policy: afterword.FindingPolicy) -> str:
    kinds = "findings and advice" if policy.advice else "findings"
    tools = "wait for a review" if policy.agents_with_tools == "review" else "are kept at once"
    agents = ", ".join(policy.agents) or "no agent"
    return f"{kinds} of {agents}, for {policy.days:g} days; after tool output they {tools}"


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
