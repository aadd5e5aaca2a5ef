"""Commands by which people decide what counts."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from afterword.cli.app import InScope, Json, User, app


@app.command()
def runs(user: User = None, scope: InScope = None, as_json: Json = False) -> None:
    """List the runs of one memory: what was processed by whom, what it cost, and where it stands."""
    from afterword.cli import deciding

    deciding.list_runs(user, scope, as_json=as_json)


@app.command()
def apply(run_id: Annotated[int, typer.Argument(help="A proposed or held run.")], as_json: Json = False) -> None:
    """Let a stored proposal count."""
    from afterword.cli import deciding

    deciding.apply(run_id, as_json=as_json)


@app.command()
def undo(run_id: Annotated[int, typer.Argument(help="An applied run.")], as_json: Json = False) -> None:
    """Leave a run out, with everything it caused, as if it had never been."""
    from afterword.cli import deciding

    deciding.undo(run_id, as_json=as_json)


@app.command()
def review(
    user: User = None,
    scope: InScope = None,
    approve: Annotated[str | None, typer.Option(help="A contest's number, or a held run as run:ID.")] = None,
    reject: Annotated[str | None, typer.Option(help="A contest's number, or a held run as run:ID.")] = None,
    keep_both: Annotated[str | None, typer.Option("--keep-both", help="A contest's number.")] = None,
    as_json: Json = False,
) -> None:
    """List what awaits a person's decision, or decide it."""
    from afterword.cli import deciding

    deciding.review(user, scope, approve=approve, reject=reject, keep_both=keep_both, as_json=as_json)


@app.command()
def edit(
    fact: Annotated[str, typer.Argument(help="A fact's id, or the first 6 digits or more.")],
    statement: Annotated[str | None, typer.Option(help="The sentence as it should be.")] = None,
    value: Annotated[str | None, typer.Option(help="The value alone, where it differs.")] = None,
    about: Annotated[str | None, typer.Option(help="Whom or what it is about, where that is wrong or unclear.")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="It held until now; else it was wrong.")] = False,
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Put a fact right: a person's word outranks extraction."""
    from afterword.cli import deciding

    deciding.edit(fact, user, scope, statement=statement, value=value, about=about, changed=changed, as_json=as_json)


@app.command()
def confirm(
    fact: Annotated[str, typer.Argument(help="A fact's id, or the first 6 digits or more.")],
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Stand for a fact as it is."""
    from afterword.cli import deciding

    deciding.confirm(fact, user, scope, as_json=as_json)


@app.command()
def policy(
    what: Annotated[
        Literal["auto", "hold-retirements", "hold-all"] | None, typer.Argument(help="What a person sees first.")
    ] = None,
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Show or set what is held for a person before it counts."""
    from afterword.cli import deciding

    deciding.policy(what, user, scope, as_json=as_json)


@app.command()
def reprocess(
    session: Annotated[str | None, typer.Argument(help="A session's id; without one, lists what is outdated.")] = None,
    user: User = None,
    scope: InScope = None,
    extractor: Annotated[Literal["rules", "model"] | None, typer.Option(help="Who proposes facts.")] = None,
    now: Annotated[bool, typer.Option("--apply", help="Let it count at once; else it is proposed and shown.")] = False,
    as_json: Json = False,
) -> None:
    """Read a session's kept turns again with the present extractor, and show the difference first."""
    from afterword.cli import processing

    processing.reprocess(session, user, scope, extractor=extractor, now=now, as_json=as_json)


@app.command()
def consolidate(
    user: User = None,
    scope: InScope = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Hold the result for `apply`.")] = False,
    as_json: Json = False,
) -> None:
    """Judge what was left unjudged over all sessions of one memory (of every memory without --user)."""
    from afterword.cli import processing

    processing.consolidate(user, scope, dry_run=dry_run, as_json=as_json)
