"""Commands that move memories or erase them for good: forget, export, import and backup."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Annotated, Any, Literal

import typer

import afterword
from afterword.cli.app import FAILED, Json, ScopeName, User, app, call_memory, call_store, chosen_scope, required_scope
from afterword.cli.printing import count_with_noun, counts_text, print_lines, print_pairs, print_result
from afterword.client.forms.memory_forms import receipt_json
from afterword.errors import ArgumentInvalid

STANDARD_OUTPUT = Path("-")
NAMED_ROWS = "session", "turn", "finding"
"""The rows that a receipt counts by name. All other rows are counted together."""
FILES_NOT_CLEAN = (
    "the files may still hold the words: other processes use the store, or its user does not own the tables; "
    "run `afterword forget --clean` later"
)
NOTHING_FORGOTTEN_YET = "nothing was forgotten yet: give --yes to forget this for good; it cannot be undone"

FactToForget = Annotated[
    str | None, typer.Option(help="Erase this fact alone: its id, or at least its first 6 digits.")
]
ForgetBefore = Annotated[str | None, typer.Option(help="Erase what was said before this day or instant (ISO 8601).")]
ForgetAsked = Annotated[
    bool, typer.Option("--asked", help="Erase what people asked to be forgotten in their conversations.")
]
ForgetOld = Annotated[bool, typer.Option("--retention", help="Erase what is older than the retention settings allow.")]
ForgetWithoutAsking = Annotated[
    bool, typer.Option("--yes", help="Erase without asking. Without this option, counts are shown first.")
]
CleanFiles = Annotated[
    bool, typer.Option("--clean", help="Only rewrite the database's files, so that they hold no erased words.")
]
TombstonesToWrite = Annotated[
    Path | None, typer.Option(help="Write the tombstones to this file, to keep with backups.")
]
TombstonesToReplay = Annotated[
    Path | None,
    typer.Option(
        help="After restoring a backup: erase again what the tombstones in this file, or in an export, mark as "
        "forgotten."
    ),
]


@app.command(name="forget")
def forget_command(
    user: User = None,
    scope: ScopeName = None,
    session: Annotated[str | None, typer.Option(help="Erase this session alone.")] = None,
    fact: FactToForget = None,
    finding: Annotated[str | None, typer.Option(help="Erase this finding of an agent alone, by its id.")] = None,
    before: ForgetBefore = None,
    asked: ForgetAsked = False,
    retention: ForgetOld = False,
    yes: ForgetWithoutAsking = False,
    clean: CleanFiles = False,
    tombstones: TombstonesToWrite = None,
    replay: TombstonesToReplay = None,
    as_json: Json = False,
) -> None:
    """Erase memories for good, and keep them from coming back. What is said again later is remembered again."""
    owner = chosen_scope(user, scope)
    of_one_memory = [name is not None for name in (session, fact, finding)]
    named = [*of_one_memory, before is not None, asked, retention]
    file_work = [clean, tombstones is not None, replay is not None]
    if sum([*named, *file_work]) > 1:
        raise ArgumentInvalid(
            "name one of --session, --fact, --finding, --before, --asked, --retention, --clean, --tombstones and "
            "--replay; without any, all is erased"
        )
    if any(file_work):
        _maintain_files(owner, tombstones, replay, as_json=as_json)
        return
    if any(of_one_memory) or not any(named):
        owner = required_scope(user, scope)
    target = {"before": before, "asked": asked}
    if owner is not None:
        target |= {"fact": fact, "finding": finding, "session": session, "everything": not any(named)}
    _forget(owner, None if retention else target, yes=yes, as_json=as_json)


def _maintain_files(
    owner: afterword.Scope | None, tombstones: Path | None, replay: Path | None, *, as_json: bool
) -> None:
    """Write the tombstones, replay them, or with neither rewrite the files of the database."""
    if tombstones is not None:
        written = call_store(lambda store: store.write_tombstones(tombstones, scope=owner))
        print_pairs({"tombstones": written.count, "file": str(written.path)}, as_json=as_json)
    elif owner is not None:
        raise ArgumentInvalid("--clean and --replay concern the whole store: leave --user and --scope out")
    elif replay is not None:
        _replay_tombstones(replay, as_json=as_json)
    else:
        is_clean = call_store(lambda store: store.clean_files())
        state = "the files hold nothing that was forgotten" if is_clean else FILES_NOT_CLEAN
        print_result({"files_clean": is_clean}, state, as_json=as_json)


def _replay_tombstones(path: Path, *, as_json: bool) -> None:
    replayed = call_store(lambda store: store.replay_tombstones(path))
    counts = {"tombstones": replayed.tombstones, "erased": dict(replayed.erased), "files_clean": replayed.is_clean}
    print_pairs(counts, as_json=as_json)
    if not any(replayed.erased.values()):
        print_lines("nothing changed: the store holds nothing that these tombstones mark as forgotten", to_errors=True)


def _forget(owner: afterword.Scope | None, target: dict[str, Any] | None, *, yes: bool, as_json: bool) -> None:
    """Erase a target, or without one what is older than the retention settings allow, in one memory or in all."""
    erase = partial(_erase_target, owner=owner, target=target)
    receipts = call_store(partial(erase, is_preview=not yes), known_scope=owner)
    if not yes and receipts and not as_json and sys.stdin.isatty():
        print_lines(*map(_receipt_text, receipts))
        if typer.confirm("Forget this for good? It cannot be undone"):
            receipts = call_store(partial(erase, is_preview=False))
    advice, is_preview = None, any(receipt.is_clean is None for receipt in receipts)
    if is_preview:
        advice = NOTHING_FORGOTTEN_YET
    elif any(receipt.is_clean is False for receipt in receipts):
        advice = FILES_NOT_CLEAN
    shown = [_receipt_text(receipt) for receipt in receipts] or ["nothing to forget"]
    print_result([receipt_json(receipt) for receipt in receipts], *shown, advice, as_json=as_json)
    if is_preview:
        sys.exit(FAILED)


async def _erase_target(
    store: afterword.Afterword, *, owner: afterword.Scope | None, target: dict[str, Any] | None, is_preview: bool
) -> Sequence[afterword.Receipt]:
    """Erase as `_forget` describes, or count what would be erased. Return the receipts that are not empty."""
    memory: Any = store if owner is None else store.scope(owner)
    if target is None:
        erased = await memory.apply_retention(preview=is_preview)
    else:
        erased = await (memory.preview_forget if is_preview else memory.forget)(**target)
    receipts: Sequence[afterword.Receipt] = erased if isinstance(erased, Sequence) else [erased] if erased else []
    return [receipt for receipt in receipts if any((*receipt.erased.values(), *receipt.blanked.values()))]


def _receipt_text(receipt: afterword.Receipt) -> str:
    state = "forgotten" if receipt.is_clean is not None else "would be forgotten"
    rows = dict(receipt.erased)
    facts = rows.pop("facts", 0)
    further = rows.pop("assertions", 0) - facts
    counts = [(max(further, 0), "earlier version"), *((rows.pop(f"{noun}s", 0), noun) for noun in NAMED_ROWS)]
    removed = [count_with_noun(count, noun) for count, noun in (*counts, (sum(rows.values()), "row")) if count]
    return (
        f"{receipt.scope}: {state}: {count_with_noun(facts, 'fact')}; also removed: {', '.join(removed) or 'nothing'}; "
        f"blanked in what stays: {counts_text(dict(receipt.blanked)) or 'none'}; tombstones: {receipt.tombstones}"
    )


Readable = Annotated[
    bool,
    typer.Option(
        "--readable",
        help="Write facts and what was said for people: as JSON for a name that ends in .json, else as Markdown.",
    ),
]
EvenAsked = Annotated[
    bool, typer.Option("--even-asked", help="Export even if somebody asked for something to be forgotten.")
]


@app.command(name="export")
def export_command(
    path: Annotated[Path, typer.Argument(help="The file to write, which must not exist yet; - is standard output.")],
    user: User = None,
    scope: ScopeName = None,
    readable: Readable = False,
    even_asked: EvenAsked = False,
    as_json: Json = False,
) -> None:
    """Write the store, or one memory, to a JSON Lines file.

    `afterword import` reads it, also into another database.
    """
    owner = required_scope(user, scope) if readable else chosen_scope(user, scope)
    with nullcontext() if path != STANDARD_OUTPUT else TemporaryFile("w+", encoding="utf-8") as file:
        options: dict[str, Any] = {"even_asked": even_asked, "file": file}
        if owner is None:
            written = call_store(lambda store: store.export(path, **options))
        else:
            written = call_memory(owner, lambda memory: memory.export(path, readable=readable, **options))
        if file is not None:
            # The file has no name, so the system removes it even if the process is killed.
            file.seek(0)
            copyfileobj(file, sys.stdout)
    if path != STANDARD_OUTPUT:
        print_pairs({"file": str(written.path), "facts" if readable else "lines": written.count}, as_json=as_json)


Library = Annotated[
    Literal["mem0", "langmem", "listmemory", "chromadb", "graphiti", "zep"] | None,
    typer.Option("--from", help="The library that exported the file."),
]


@app.command(name="import")
def import_command(
    path: Annotated[Path, typer.Argument(help="A file of `afterword export`, or an export of another library.")],
    library: Library = None,
    user: User = None,
    scope: ScopeName = None,
    as_json: Json = False,
) -> None:
    """Import an export, or the memories of another library.

    A second import changes nothing, and what was forgotten here stays forgotten. Nothing is erased. If the file lists
    something as forgotten that this store still holds, it is counted.
    """
    if not path.is_file():
        raise ArgumentInvalid(f"there is no file {path}")
    if library is not None:
        _import_memories(path, library, required_scope(user, scope), as_json=as_json)
    elif chosen_scope(user, scope) is not None:
        raise ArgumentInvalid("an export names its memories itself; --user and --scope go with --from")
    else:
        _import_export(path, as_json=as_json)


def _import_memories(path: Path, library: str, owner: afterword.Scope, *, as_json: bool) -> None:
    """Import the memories of another library into one memory, and print counts of them."""
    imported = call_memory(owner, lambda memory: memory.import_(path, kind=library), create=True)
    counts = {"run": imported.run_id, "memories": imported.memories, "without_date": imported.guessed}
    counts |= {"quarantined": imported.quarantined, "forgotten": imported.forgotten, "held": imported.held}
    print_pairs(counts, as_json=as_json)
    if imported.run_id is None:
        reason = (
            "every memory in it reads like an instruction to an assistant, or was forgotten before"
            if imported.quarantined
            else "all of it was imported, or forgotten, before"
        )
        print_lines(f"nothing changed: {reason}", to_errors=True)


def _import_export(path: Path, *, as_json: bool) -> None:
    """Import a file that `afterword export` wrote, and print counts of its rows."""
    arrived = call_store(lambda store: store.import_(path), create=True)
    if arrived.still_here:
        print_lines(
            "the file lists things as forgotten that this store still holds; "
            f"`afterword forget --replay {path}` erases them",
            to_errors=True,
        )
    by_state = {"imported": arrived.imported, "forgotten": arrived.forgotten, "here_already": arrived.here_already}
    if arrived.is_repetition and not as_json:
        del by_state["imported"]  # lines that belong to what is here already
    counts = {state: {kind: count for kind, count in by_kind.items() if count} for state, by_kind in by_state.items()}
    if as_json or arrived.still_here:
        counts["still_here"] = dict(arrived.still_here)
    print_pairs(counts, as_json=as_json)
    if arrived.is_repetition:
        print_lines("nothing changed: every session and run is here already, or was forgotten here", to_errors=True)


@app.command(name="backup")
def backup_command(path: Annotated[Path, typer.Argument(help="The file to write.")], as_json: Json = False) -> None:
    """Copy the SQLite store to a file while it is in use."""
    copied = call_store(lambda store: store.backup(path))
    print_pairs({"file": str(copied.path), "bytes": copied.size_bytes}, as_json=as_json)
