"""What commands share: the root of the command line, common options, exit codes, and calls of `Afterword`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

import afterword
from afterword.cli.printing import print_lines
from afterword.errors import ArgumentInvalid, NotFound

if TYPE_CHECKING:
    from afterword import Scope
    from afterword.client.values import RefreshResult

FAILED, USAGE, OUT_OF_BUDGET, INTERRUPTED = 1, 2, 3, 130
app: typer.Typer = typer.Typer(
    name="afterword",
    help="Turn saved AutoGen sessions into dated facts with their evidence, for the next session.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
User = Annotated[str | None, typer.Option("--user", help="The user whose memory it is.")]
ScopeName = Annotated[
    str | None, typer.Option("--scope", help="The memory by its full name, for example default/user/mira.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ExtractorKind = Annotated[
    Literal["rules", "model"] | None,
    typer.Option("--extractor", help="What finds facts: offline rules or a model (default: as configured)."),
]
FactId = Annotated[str, typer.Argument(metavar="FACT", help="The id of a fact, or the beginning of it.")]
RunId = Annotated[int, typer.Argument(metavar="RUN", help="The number of a run; see `afterword runs`.")]
T = TypeVar("T")


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"afterword {afterword.__version__}")
        raise typer.Exit


@app.callback()
def apply_global_options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
    log_format: Annotated[
        Literal["text", "json"] | None, typer.Option("--log-format", help="The format of log records.")
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option("--log-level", help="The least severe level that is logged. debug may show what users said."),
    ] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="Print no colours; NO_COLOR=1 does the same.")] = False,
) -> None:
    """Turn saved AutoGen sessions into dated facts with their evidence, for the next session."""
    if no_color:
        os.environ["NO_COLOR"] = "1"
    if "--help" not in sys.argv:  # --help must answer at once, so it loads no settings
        from afterword.cli import logs

        logs.configure(log_format, log_level)


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
    work: Callable[[afterword.Afterword], Awaitable[T]], *, create: bool = False, known_scope: Scope | None = None
) -> T:
    """Return the result of `work` on the configured store. The store is created only with `create`.

    Raises `NotFound` if nothing was ever stored for `known_scope`.
    """

    async def call() -> T:
        async with afterword.open(create=create, on_vectors=print_vector_counts) as store:
            if known_scope is not None:
                await store.scope(known_scope).check_known()
            return await work(store)

    return asyncio.run(call())


def call_memory(scope: Scope, work: Callable[[afterword.ScopeMemory], Awaitable[T]], *, create: bool = False) -> T:
    """Return the result of `work` on the memory of a scope. The store and the memory are created only with `create`.

    If the memory is new and a known one has a similar name, a hint is printed on standard error.
    """

    async def call(store: afterword.Afterword) -> T:
        if create:
            await hint_at_similar_memory(store.scope(scope))
        return await work(store.scope(scope))

    return call_store(call, create=create, known_scope=None if create else scope)


async def hint_at_similar_memory(memory: afterword.ScopeMemory) -> None:
    """Print on standard error which memory with a similar name may be meant, if nothing was ever stored in `memory`."""
    try:
        await memory.check_known()
    except NotFound as error:
        if error.nearest:
            print_lines(str(error), to_errors=True)


def print_vector_counts(refreshed: RefreshResult) -> None:
    """Print on standard error how many vectors a command made, and how many memories still lack some."""
    if refreshed.made:
        print_lines(f"vectors: {refreshed.made} made", to_errors=True)
    if refreshed.left:
        reason = f" ({refreshed.error})" if refreshed.error else ""
        later = "`afterword schedule` tries again; until then recall searches them by words alone"
        print_lines(f"vectors: {refreshed.left} memories still lack some{reason}; {later}", to_errors=True)
