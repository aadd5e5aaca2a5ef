"""Commands that move memories: export, import and backup."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import typer

from afterword.cli.app import Json, ScopeName, User, app
from afterword.cli.calls import call_memory, call_store, chosen_scope, required_scope
from afterword.cli.output import console, print_pairs
from afterword.errors import ArgumentInvalid

STANDARD_OUTPUT = Path("-")


@app.command(name="export")
def export_command(
    path: Annotated[Path, typer.Argument(help="The file to write, which must not exist yet; - is standard output.")],
    user: User = None,
    scope: ScopeName = None,
    readable: Annotated[
        bool, typer.Option("--readable", help="Write facts, quotes and dates to read: Markdown, or JSON for .json.")
    ] = False,
    even_asked: Annotated[
        bool, typer.Option("--even-asked", help="Export even if somebody asked for something to be forgotten.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the store, or one memory, to a JSON Lines file.

    `afterword import` reads it, also into another database.
    """
    owner = required_scope(user, scope) if readable else chosen_scope(user, scope)
    with _written_file(path) as target:
        if owner is None:
            written = call_store(lambda store: store.export(target, even_asked=even_asked))
        else:
            written = call_memory(owner, lambda memory: memory.export(target, readable=readable, even_asked=even_asked))
    if path != STANDARD_OUTPUT:
        unit = "facts" if readable else "lines"
        print_pairs({"file": str(written.path), unit: written.count}, as_json=as_json)


@contextmanager
def _written_file(path: Path) -> Iterator[Path]:
    """Yield the file to write. What is meant for standard output is written to a private file, and then copied."""
    if path != STANDARD_OUTPUT:
        yield path
        return
    with TemporaryDirectory() as folder:
        target = Path(folder) / "export"
        yield target
        sys.stdout.write(target.read_text(encoding="utf-8"))


@app.command(name="import")
def import_command(
    path: Annotated[Path, typer.Argument(help="A file of `afterword export`, or an export of another library.")],
    kind: Annotated[
        Literal["mem0", "langmem", "listmemory", "chromadb", "graphiti", "zep"] | None,
        typer.Option("--from", help="The library that exported the file."),
    ] = None,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Import an export, or the memories of another library.

    A second import changes nothing, and what was forgotten here stays forgotten.
    """
    if not path.is_file():
        raise ArgumentInvalid(f"there is no file {path}")
    if kind is not None:
        owner = required_scope(user, scope)
        imported = call_memory(owner, lambda memory: memory.import_(path, kind=kind), create=True)
        counts = {"run": imported.run_id, "memories": imported.memories, "without_date": imported.guessed}
        counts |= {"quarantined": imported.quarantined, "forgotten": imported.forgotten, "held": imported.held}
        print_pairs(counts, as_json=as_json)
        if imported.run_id is None:
            reason = (
                "every memory in it reads like an instruction to an assistant, or was forgotten before"
                if imported.quarantined
                else "all of it was imported, or forgotten, before"
            )
            console(to_errors=True).print(f"nothing changed: {reason}")
        return
    if chosen_scope(user, scope) is not None:
        raise ArgumentInvalid("an export names its memories itself; --user and --scope go with --from")
    arrived = call_store(lambda store: store.import_(path), create=True)
    by_state = {"imported": arrived.imported, "forgotten": arrived.forgotten, "here_already": arrived.here_already}
    print_pairs(
        {state: {kind: count for kind, count in counts.items() if count} for state, counts in by_state.items()},
        as_json=as_json,
    )
    if arrived.is_repetition:
        console(to_errors=True).print("nothing changed: every session and run is here already, or was forgotten here")


@app.command(name="backup")
def backup_command(path: Annotated[Path, typer.Argument(help="The file to write.")], as_json: Json = False) -> None:
    """Copy the SQLite store to a file while it is in use."""
    copied = call_store(lambda store: store.backup(path))
    print_pairs({"file": str(copied.path), "bytes": copied.size_bytes}, as_json=as_json)
