"""How a command calls `Afterword`: its options name a memory, the store is opened, and the result is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import afterword
from afterword.errors import ArgumentInvalid

if TYPE_CHECKING:
    from afterword.client.values import RefreshResult, Scope

T = TypeVar("T")


def chosen_scope(user: str | None, scope: str | None) -> Scope | None:
    """Return the scope that the options name, None if they name none. Raises `ArgumentInvalid` if they name two."""
    if user is not None and scope is not None:
        raise ArgumentInvalid("give --user or --scope, not both")
    if scope is not None:
        return afterword.Scope.parse(scope)
    return afterword.Scope.user(user) if user is not None else None


def required_scope(user: str | None, scope: str | None) -> Scope:
    """Return the scope that the options name. Raises `ArgumentInvalid` if they name none."""
    chosen = chosen_scope(user, scope)
    if chosen is None:
        raise ArgumentInvalid("say whose memory: --user NAME, or --scope tenant/kind/id")
    return chosen


def call_store(
    work: Callable[[afterword.Afterword], Awaitable[T]], *, create: bool = False, known: Scope | None = None
) -> T:
    """Return the result of `work` on the configured store. The store is created only with `create`.

    Raises `NotFound` if nothing was ever kept for the scope that must be `known`.
    """

    async def call() -> T:
        async with afterword.open(create=create, on_vectors=show_vectors) as store:
            if known is not None:
                await store.scope(known).check_known()
            return await work(store)

    return asyncio.run(call())


def call_memory(scope: Scope, work: Callable[[afterword.ScopeMemory], Awaitable[T]], *, create: bool = False) -> T:
    """Return the result of `work` on the memory of a scope. The store and the memory are created only with `create`."""
    return call_store(lambda store: work(store.scope(scope)), create=create, known=None if create else scope)


def show_vectors(refreshed: RefreshResult) -> None:
    """Say on standard error how many vectors a command made, and how many memories still lack some."""
    from afterword.cli.output import console

    if refreshed.made:
        console(to_errors=True).print(f"vectors: {refreshed.made} made")
    if refreshed.left:
        reason = f" ({refreshed.error})" if refreshed.error else ""
        later = "`afterword schedule` tries again; until then recall searches them by words alone"
        console(to_errors=True).print(f"vectors: {refreshed.left} memories still lack some{reason}; {later}")
