"""The commands that carry memories elsewhere: export, import, backup."""

from __future__ import annotations

import asyncio
import gc
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from afterword import settings
from afterword.cli import embedding
from afterword.cli.output import (
    UsageInvalid,
    chosen_scope,
    console,
    fact_json,
    instant,
    needed_scope,
    opened,
    print_json,
    run,
)
from afterword.composition import configured_tracker, open_extractor_and_judge
from afterword.errors import NotFound, StoreInvalid
from afterword.pipeline.memory_import import import_memories
from afterword.pipeline.sources.other_libraries import Origin, memories
from afterword.store import lookup, scope_rows
from afterword.store.database.compaction import copy_file
from afterword.store.database.engine import Store
from afterword.store.database.private_files import opened_private
from afterword.store.transfer import exports, imports
from afterword.store.transfer.markdown import facts_as_markdown

SELDOM = (50_000, 20, 100)
"""When Python looks for cycles while an export is taken in."""


def export(path: Path, user: str | None, scope: str | None, *, readable: bool, even_asked: bool, as_json: bool) -> None:
    """Write a scope, or the whole store, to a file."""
    whose = needed_scope(user, scope) if readable else chosen_scope(user, scope)

    async def work(store: Store) -> int:
        if whose is None or not readable:
            return await exports.export_scopes(store, path, None if whose is None else [whose], even_asked=even_asked)
        row, facts = await store.read(
            lambda db: (scope_rows.scope_row(db, whose), lookup.read_facts(db, whose, at=instant(None)))
        )
        if row is None:
            raise NotFound(f"nothing was ever kept for {whose}")
        as_data = json.dumps([fact_json(fact) for fact in facts], ensure_ascii=False, indent=1) + "\n"
        with opened_private(path) as file:
            file.write(as_data if path.suffix == ".json" else facts_as_markdown(whose, facts))
        return len(facts)

    count = run(work)
    name = "facts" if readable else "lines"
    _tell({"file": str(path), name: count}, as_json=as_json)


def take_in(path: Path, user: str | None, scope: str | None, *, kind: str | None, as_json: bool) -> None:
    """Import a file of `afterword export`, or one of another library."""
    if not path.is_file():
        raise UsageInvalid(f"there is no file {path}")
    if kind is None:
        if chosen_scope(user, scope) is not None:
            raise UsageInvalid("an export says itself whose memories it holds; --user and --scope go with --from")
        # Rows by the hundred thousand hold no cycles; looking for them at each turn took two fifths of the time.
        gc.set_threshold(*SELDOM)
        arrived = run(lambda store: _arrived(store, path), create=True)
        counts = {"imported": arrived.imported, "forgotten": arrived.forgotten, "here_already": arrived.here_already}
        _tell(
            {name: {key: one for key, one in found.items() if one} for name, found in counts.items()}, as_json=as_json
        )
        return
    file_time = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    _tell(asyncio.run(_foreign(path, user, scope, Origin(kind), file_time)), as_json=as_json)


async def _arrived(store: Store, path: Path) -> imports.ImportResult:
    arrived = await imports.import_file(store, path)
    await embedding.refresh(store, settings.load(), None)
    return arrived


async def _foreign(
    path: Path, user: str | None, scope: str | None, kind: Origin, file_time: datetime
) -> dict[str, Any]:
    configured, whose = settings.load(), needed_scope(user, scope)
    try:
        exported = json.loads(await asyncio.to_thread(path.read_text, encoding="utf-8"))
    except ValueError:
        raise UsageInvalid(f"{path} is no JSON") from None
    found = memories(kind, exported)
    async with (
        opened(create=True) as store,
        open_extractor_and_judge(configured.extractor, configured.model) as workers,
    ):
        done = await import_memories(
            store,
            whose,
            kind,
            found,
            at=instant(None),
            file_time=file_time,
            judge=workers.judge,
            budget=configured_tracker(configured, configured.extractor),
        )
        await embedding.refresh(store, configured, [whose])
    told = {"run": done.run_id, "memories": done.memories, "without_date": done.guessed}
    return {**told, "quarantined": done.quarantined, "forgotten": done.forgotten, "held": done.held}


def backup(path: Path, *, as_json: bool) -> None:
    """Copy the SQLite file as of one moment."""

    async def work(store: Store) -> None:
        if store.path is None:
            raise StoreInvalid(
                f"{store.shown_url} is no SQLite file: use `pg_dump --format=custom` for PostgreSQL, "
                "or `afterword export` for a file that any store takes in"
            )
        await asyncio.to_thread(copy_file, store.path, path)

    run(work)
    _tell({"file": str(path), "bytes": path.stat().st_size}, as_json=as_json)


def _tell(told: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    for name, value in told.items():
        shown = ", ".join(f"{count} {key}" for key, count in value.items()) if isinstance(value, dict) else value
        console().print(f"{name.replace('_', ' ')}: {shown if shown != '' else 'nothing'}")
