"""Commands that keep the store working, and move or erase what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from afterword.cli.app import InScope, Json, User, app


@app.command()
def status(as_json: Json = False) -> None:
    """Show what the store holds, what waits, and what failed and why."""
    from afterword.cli import upkeep

    upkeep.status(as_json=as_json)


@app.command()
def retry(
    session: Annotated[str | None, typer.Argument(help="A session's id.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every session that failed or was set aside.")] = False,
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Put sessions back that failed or were set aside: the next run tries them again."""
    from afterword.cli import scheduling

    scheduling.retry(session, user, scope, everything=everything, as_json=as_json)


@app.command()
def schedule(
    once: Annotated[bool, typer.Option("--once", help="Do what is due now and end, for cron and the like.")] = False,
    as_json: Json = False,
) -> None:
    """Process, retry and consolidate when it is due, until stopped; several of these share the work."""
    from afterword.cli import scheduling

    scheduling.schedule(once=once, as_json=as_json)


@app.command()
def worker(
    concurrency: Annotated[int, typer.Option(min=1, help="So many sessions at once.")] = 4,
    once: Annotated[bool, typer.Option("--once", help="End when the queue is empty.")] = False,
) -> None:
    """Process what `run --defer` and `schedule` hand out, beside other workers (PostgreSQL, afterword[workers])."""
    from afterword.cli import fleet

    fleet.work(concurrency=concurrency, once=once)


@app.command()
def forget(
    user: User = None,
    scope: InScope = None,
    session: Annotated[str | None, typer.Option(help="This session alone.")] = None,
    fact: Annotated[str | None, typer.Option(help="This fact alone: its id, or the first 6 digits or more.")] = None,
    before: Annotated[str | None, typer.Option(help="What was said before this day or instant (ISO 8601).")] = None,
    asked: Annotated[bool, typer.Option("--asked", help="What people have asked for in conversations.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; else it is only shown, or asked for.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Only clear the database's files of deleted words.")] = False,
    tombstones: Annotated[Path | None, typer.Option(help="Write what keeps things forgotten to this file.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Forget again what this file of tombstones stands for.")] = None,
    as_json: Json = False,
) -> None:
    """Erase for good, and keep it from coming back. What is said again later is new."""
    from afterword.cli import forgetting

    if clean:
        forgetting.clean(as_json=as_json)
        return
    what = forgetting.Asked(user, scope, session, fact, before, asked, tombstones, replay, yes)
    forgetting.forget(what, as_json=as_json)


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="The file to write; it must not be there yet.")],
    user: User = None,
    scope: InScope = None,
    readable: Annotated[bool, typer.Option("--readable", help="Facts, quotes, dates: Markdown, or .json.")] = False,
    even_asked: Annotated[
        bool, typer.Option("--even-asked", help="Even where somebody has asked for something to be forgotten.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the whole store, or one memory, as JSON Lines that `import` takes in elsewhere."""
    from afterword.cli import transferring

    transferring.export(path, user, scope, readable=readable, even_asked=even_asked, as_json=as_json)


@app.command(name="import")
def take_in(
    path: Annotated[Path, typer.Argument(help="A file of `afterword export`, or one of another library.")],
    kind: Annotated[
        Literal["mem0", "langmem", "listmemory"] | None, typer.Option("--from", help="The library that exported it.")
    ] = None,
    user: User = None,
    scope: InScope = None,
    as_json: Json = False,
) -> None:
    """Take in an export; importing again changes nothing, and what was forgotten here stays so."""
    from afterword.cli import transferring

    transferring.take_in(path, user, scope, kind=kind, as_json=as_json)


@app.command()
def backup(path: Annotated[Path, typer.Argument(help="The file to write.")], as_json: Json = False) -> None:
    """Copy the SQLite store to a file, while it is in use."""
    from afterword.cli import transferring

    transferring.backup(path, as_json=as_json)


@app.command()
def migrate(as_json: Json = False) -> None:
    """Bring the store's tables up to date."""
    from afterword.cli import upkeep

    upkeep.migrate(as_json=as_json)


@app.command()
def doctor(
    probe: Annotated[bool, typer.Option("--probe", help="Also ask the model a tiny question in every mode.")] = False,
    as_json: Json = False,
) -> None:
    """Say what is configured, what can be reached, and how to mend the rest."""
    from afterword.cli import upkeep

    upkeep.doctor(probe=probe, as_json=as_json)
