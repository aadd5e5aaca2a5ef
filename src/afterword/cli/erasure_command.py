"""The command that erases for good, and the tombstones that keep erased things from coming back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afterword.cli.app import Json, ScopeName, User, app
from afterword.cli.calls import call_store, chosen_scope, required_scope
from afterword.cli.output import console, counted, counts_text, print_json
from afterword.client.json_forms import receipt_json
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword import Afterword
    from afterword.client.values import Receipt, Scope


@app.command(name="forget")
def forget_command(
    user: User = None,
    scope: ScopeName = None,
    session: Annotated[str | None, typer.Option(help="Erase this session alone.")] = None,
    fact: Annotated[
        str | None, typer.Option(help="Erase this fact alone: its id, or at least its first 6 digits.")
    ] = None,
    finding: Annotated[str | None, typer.Option(help="Erase this finding of an agent alone, by its id.")] = None,
    before: Annotated[
        str | None, typer.Option(help="Erase what was said before this day or instant (ISO 8601).")
    ] = None,
    asked: Annotated[
        bool, typer.Option("--asked", help="Erase what people asked to be forgotten in their conversations.")
    ] = False,
    retention: Annotated[
        bool, typer.Option("--retention", help="Erase what is older than the retention settings allow.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Erase without asking. Without it, counts are shown first.")
    ] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Only rewrite the database's files, so that they hold no erased words.")
    ] = False,
    tombstones: Annotated[
        Path | None, typer.Option(help="Write the tombstones to this file, to keep with backups.")
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(help="Erase again what the tombstones in this file stand for (after a backup was restored)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Erase for good, and keep it from coming back. What is said again later is remembered again."""
    if clean:
        _clean(as_json=as_json)
        return
    owner = chosen_scope(user, scope)
    if tombstones is not None:
        written = call_store(lambda store: store.write_tombstones(tombstones, scope=owner))
        _print_line({"tombstones": written.count, "file": str(written.path)}, as_json=as_json)
        return
    if replay is not None:
        _replay(replay, as_json=as_json)
        return
    named = sum((session is not None, fact is not None, finding is not None, before is not None, asked, retention))
    if named > 1:
        raise ArgumentInvalid(
            "name one of --session, --fact, --finding, --before, --asked, --retention; without any, all is erased"
        )
    if session is not None or fact is not None or finding is not None or not named:
        owner = required_scope(user, scope)
    erasure = _Erasure(
        owner, session=session, fact=fact, finding=finding, before=before, asked=asked, retention=retention
    )
    receipts = call_store(erasure.forget if yes else erasure.preview, known=owner)
    if not yes and receipts and _is_agreed(receipts, as_json=as_json):
        receipts = call_store(erasure.forget)
    _print_receipts(receipts, as_json=as_json)


def _replay(path: Path, *, as_json: bool) -> None:
    replayed = call_store(lambda store: store.replay_tombstones(path))
    counts = {"tombstones": replayed.tombstones, "erased": dict(replayed.erased), "files_clean": replayed.is_clean}
    _print_line(counts, as_json=as_json)
    if not any(replayed.erased.values()):
        console(to_errors=True).print("nothing changed: nothing is here that these tombstones stand for")


class _Erasure:
    """The target that the options name, in one memory or in all."""

    def __init__(
        self,
        scope: Scope | None,
        *,
        session: str | None,
        fact: str | None,
        finding: str | None,
        before: str | None,
        asked: bool,
        retention: bool,
    ) -> None:
        self._scope, self._is_retention = scope, retention
        self._in_store: dict[str, Any] = {"before": before, "asked": asked}
        everything = all(name is None for name in (session, fact, finding, before)) and not asked
        self._in_scope: dict[str, Any] = {
            **self._in_store,
            "fact": fact,
            "finding": finding,
            "session": session,
            "everything": everything,
        }

    async def preview(self, store: Afterword) -> Sequence[Receipt]:
        """Return what would be erased."""
        if self._is_retention:
            return await self._apply_retention(store, preview=True)
        if self._scope is None:
            return await store.preview_forget(**self._in_store)
        receipt = await store.scope(self._scope).preview_forget(**self._in_scope)
        return [receipt] if receipt else []

    async def forget(self, store: Afterword) -> Sequence[Receipt]:
        """Erase it, and return what was erased."""
        if self._is_retention:
            return await self._apply_retention(store, preview=False)
        if self._scope is None:
            return await store.forget(**self._in_store)
        receipt = await store.scope(self._scope).forget(**self._in_scope)
        return [receipt] if receipt else []

    async def _apply_retention(self, store: Afterword, *, preview: bool) -> Sequence[Receipt]:
        if self._scope is None:
            return await store.apply_retention(preview=preview)
        receipt = await store.scope(self._scope).apply_retention(preview=preview)
        return [receipt] if receipt else []


def _is_agreed(receipts: Sequence[Receipt], *, as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        return False
    for receipt in receipts:
        console().print(_receipt_text(receipt))
    return typer.confirm("Forget this for good? It cannot be undone")


def _print_receipts(receipts: Sequence[Receipt], *, as_json: bool) -> None:
    if as_json:
        print_json([receipt_json(receipt) for receipt in receipts])
        return
    out = console()
    if not receipts:
        out.print("nothing to forget")
    for receipt in receipts:
        out.print(_receipt_text(receipt))
    if any(receipt.is_clean is None for receipt in receipts):
        out.print("nothing was forgotten yet: give --yes to forget this for good; it cannot be undone")
    elif any(receipt.is_clean is False for receipt in receipts):
        out.print("other processes use the store: its files may still hold the words; run `afterword forget --clean`")


def _receipt_text(receipt: Receipt) -> str:
    state = "forgotten" if receipt.is_clean is not None else "would be forgotten"
    rows = dict(receipt.erased)
    facts = rows.pop("facts", 0)
    further = rows.pop("assertions", 0) - facts
    versions = counted(further, "earlier version") if further > 0 else ""
    erased = ", ".join(filter(None, (versions, counts_text(rows))))
    return (
        f"{receipt.scope}: {state}: {counted(facts, 'fact')}; also removed: {erased or 'nothing'}; "
        f"blanked in what stays: {counts_text(dict(receipt.blanked)) or 'none'}; tombstones: {receipt.tombstones}"
    )


def _print_line(pairs: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(pairs)
    else:
        console().print(", ".join(f"{name}: {value}" for name, value in pairs.items()))


def _clean(*, as_json: bool) -> None:
    is_clean = call_store(lambda store: store.clean_files())
    if as_json:
        print_json({"files_clean": is_clean})
    else:
        console().print(
            "the files hold nothing that was forgotten" if is_clean else "other processes use the store; try again"
        )
