"""The commands that end things for good: forget, and the tombstones that keep it so."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from afterword import settings
from afterword.cli import embedding
from afterword.cli.output import UsageInvalid, chosen_scope, console, instant, needed_scope, opened, print_json
from afterword.errors import NotFound
from afterword.extractors.rules import RulesJudge
from afterword.facts.scopes import Scope
from afterword.pipeline.forget_requests import compare_again
from afterword.store import lookup, scope_rows
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure as forgetting
from afterword.store.forgetting import tombstone_replay
from afterword.store.forgetting.erasure import Erasure, ErasureWork, Receipt


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks to be forgotten, and how."""

    user: str | None
    scope: str | None
    session: str | None
    fact: str | None
    before: str | None
    asked: bool
    tombstones: Path | None
    replay: Path | None
    yes: bool


def forget(what: Asked, *, as_json: bool) -> None:
    """Forget for good what was named, after saying what that is; or write or replay tombstones."""
    if what.tombstones is not None or what.replay is not None:
        asyncio.run(_tombstones(what, as_json=as_json))
        return
    _check(what)
    receipts = asyncio.run(_forget(what, is_preview=not what.yes))
    if not what.yes and receipts and _is_agreed(receipts, as_json=as_json):
        receipts = asyncio.run(_forget(what, is_preview=False))
    _show(receipts, as_json=as_json)


def _check(what: Asked) -> None:
    named = [one for one in (what.session, what.fact, what.before, what.asked or None) if one is not None]
    if len(named) > 1:
        raise UsageInvalid("name one of --session, --fact, --before and --asked; without any, all of a memory goes")
    if what.session is not None or what.fact is not None or not named:
        needed_scope(what.user, what.scope)


async def _forget(what: Asked, *, is_preview: bool) -> list[Receipt]:
    at, configured = instant(None), settings.load()
    async with opened() as store:
        whose = chosen_scope(what.user, what.scope)
        scopes = await store.read(lambda db: [whose] if whose is not None else scope_rows.read_scopes(db))
        receipts = [one for scope in scopes if (one := await _forgotten(store, scope, what, at, is_preview))]
        if is_preview or not receipts:
            return receipts
        is_clean = await store.compact()
        if configured.extractor == "rules":
            await compare_again(store, [one.scope for one in receipts], RulesJudge())
        # What was forgotten took the vectors of its whole memory along.
        await embedding.refresh(store, configured, [one.scope for one in receipts])
    return [replace(one, is_clean=is_clean) for one in receipts]


async def _forgotten(store: Store, scope: Scope, what: Asked, at: Any, is_preview: bool) -> Receipt | None:
    if what.asked:
        return await forgetting.forget_requested_statements(store, scope, at=at, is_preview=is_preview)
    work = await _work(store, scope, what, at)
    return await forgetting.erase_in_scope(store, scope, work, at=at, is_preview=is_preview)


async def _work(store: Store, scope: Scope, what: Asked, at: Any) -> ErasureWork:
    if what.session is not None:
        session_id = what.session
        return lambda erasure: erasure.forget_session(session_id)
    if what.before is not None:
        moment = _beginning(what.before)
        return lambda erasure: erasure.forget_before(moment)
    if what.fact is None:
        return Erasure.forget_everything
    fact_id = what.fact
    ids = await store.read(lambda db: lookup.read_fact(db, scope, fact_id, at=at).assertion_ids)
    return lambda erasure: erasure.forget_statements(ids)


def _beginning(text: str) -> Any:
    """Return the instant that --before names; a bare date is its beginning."""
    return instant(f"{text}T00:00:00Z" if len(text) == len("2026-01-01") else text)


def _is_agreed(receipts: Sequence[Receipt], *, as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        return False
    for one in receipts:
        console().print(_told(one))
    return typer.confirm("Forget this for good? It cannot be undone")


def _show(receipts: Sequence[Receipt], *, as_json: bool) -> None:
    if as_json:
        print_json([_as_json(one) for one in receipts])
        return
    out = console()
    if not receipts:
        out.print("nothing to forget")
    for one in receipts:
        out.print(_told(one))
    if any(one.is_clean is None for one in receipts):
        out.print("nothing was forgotten yet: give --yes to forget this for good; it cannot be undone")
    elif any(one.is_clean is False for one in receipts):
        out.print("other processes use the store: its files may still hold the words; run `afterword forget --clean`")


def _as_json(one: Receipt) -> dict[str, Any]:
    return {
        "scope": str(one.scope),
        "done": one.is_clean is not None,
        "erased": dict(one.erased),
        "blanked": dict(one.blanked),
        "tombstones": one.tombstones,
        "files_clean": one.is_clean,
    }


def _told(one: Receipt) -> str:
    said = "forgotten" if one.is_clean is not None else "would be forgotten"
    erased = ", ".join(f"{count} {name}" for name, count in sorted(one.erased.items())) or "no rows"
    blanked = ", ".join(f"{count} {name}" for name, count in sorted(one.blanked.items())) or "none"
    return f"{one.scope}: {said}: {erased}; blanked in what stays: {blanked}; tombstones: {one.tombstones}"


async def _tombstones(what: Asked, *, as_json: bool) -> None:
    async with opened() as store:
        whose = chosen_scope(what.user, what.scope)
        if what.tombstones is not None:
            count = await tombstone_replay.write_tombstones(store, what.tombstones, [whose] if whose else None)
            told = {"tombstones": count, "file": str(what.tombstones)}
        else:
            if what.replay is None or not what.replay.is_file():
                raise NotFound(f"there is no file {what.replay}; `afterword forget --tombstones FILE` writes one")
            replayed = await tombstone_replay.replay_tombstones(store, what.replay, at=instant(None))
            is_clean = await store.compact()
            told = {"tombstones": replayed.tombstones, "erased": dict(replayed.erased), "files_clean": is_clean}
            await embedding.refresh(store, settings.load(), None)
    if as_json:
        print_json(told)
    else:
        console().print(", ".join(f"{name}: {value}" for name, value in told.items()))


def clean(*, as_json: bool) -> None:
    """Write the database anew, so that its files hold nothing that was deleted."""

    async def work() -> bool:
        async with opened() as store:
            return await store.compact()

    is_clean = asyncio.run(work())
    if as_json:
        print_json({"files_clean": is_clean})
    else:
        console().print("the files hold nothing that was forgotten" if is_clean else "others use the store; try again")
