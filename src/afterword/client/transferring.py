"""Export, import and backup for the door."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlmodel import Session

from afterword.client.resources import Resources
from afterword.client.store_results import BackupFile, ExportedFile, TombstoneReplay
from afterword.errors import ArgumentInvalid, NotFound, StoreInvalid
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.store import lookup, scope_rows
from afterword.store.database.compaction import copy_file
from afterword.store.database.private_files import opened_private
from afterword.store.forgetting import tombstone_replay
from afterword.store.transfer import exports, imports
from afterword.store.transfer.fact_json import fact_json
from afterword.store.transfer.imports import ImportResult
from afterword.store.transfer.markdown import facts_as_markdown

SELDOM = (50_000, 20, 100)
"""How seldom Python looks for reference cycles during an import: rows by the hundred thousand hold none, and looking
took two fifths of the time."""


async def write_export(
    resources: Resources, scopes: Sequence[Scope] | None, path: Path, *, even_asked: bool
) -> ExportedFile:
    """Write these scopes (None: all) as JSON Lines."""
    return ExportedFile(path, await exports.export_scopes(await resources.store(), path, scopes, even_asked=even_asked))


async def export_readable(resources: Resources, scope: Scope, path: Path) -> ExportedFile:
    """Write the facts of a scope for people: JSON if the name ends in .json, else Markdown."""
    at = resources.now()

    def work(transaction: Session) -> list[Fact]:
        if scope_rows.scope_row(transaction, scope) is None:
            raise NotFound(f"nothing was ever kept for {scope}")
        return lookup.read_facts(transaction, scope, at=at)

    facts = await (await resources.store()).read(work)
    as_json = json.dumps([fact_json(fact) for fact in facts], ensure_ascii=False, indent=1) + "\n"
    with opened_private(path) as file:
        file.write(as_json if path.suffix == ".json" else facts_as_markdown(scope, facts))
    return ExportedFile(path, len(facts))


async def import_export(resources: Resources, path: Path) -> ImportResult:
    """Take in a file of `export_scopes`, and make the vectors that are missing."""
    if not await asyncio.to_thread(path.is_file):
        raise ArgumentInvalid(f"there is no file {path}")
    with _seldom_collecting():
        arrived = await imports.import_file(await resources.store(), path)
    await resources.refresh_vectors(None)
    return arrived


async def backup(resources: Resources, path: Path) -> BackupFile:
    """Copy the SQLite file as of one moment."""
    store = await resources.store()
    if store.path is None:
        raise StoreInvalid(
            f"{store.shown_url} is no SQLite file: use `pg_dump --format=custom` for PostgreSQL, "
            "or `afterword export` for a file that any store takes in"
        )
    await asyncio.to_thread(copy_file, store.path, path)
    return BackupFile(path, (await asyncio.to_thread(path.stat)).st_size)


async def take_tombstones(resources: Resources, path: Path) -> TombstoneReplay:
    """Take in tombstones of another store, and forget again what they stand for."""
    if not await asyncio.to_thread(path.is_file):
        raise NotFound(f"there is no file {path}; `afterword forget --tombstones FILE` writes one")
    store = await resources.store()
    replayed = await tombstone_replay.replay_tombstones(store, path, at=resources.now())
    is_clean = await store.compact()
    await resources.refresh_vectors(None)
    return TombstoneReplay(replayed.tombstones, replayed.erased, is_clean)


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    usual = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
