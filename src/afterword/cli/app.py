"""What commands share: the root of the command line, common options, calls of `Afterword`, and printing.

Results are tables for people, or JSON for machines. The library for tables is imported only when one is printed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

import afterword
from afterword.cli.terminal import ResponsiveTable, terminal_json, terminal_text
from afterword.errors import ArgumentInvalid, NotFound

if TYPE_CHECKING:
    from rich.console import Console

    from afterword import Fact, Scope, Spending
    from afterword.client.values import RefreshResult

PIPED_WIDTH = 160
"""The width of tables if the output is not a terminal."""
STYLES = {"current": "green", "contested": "yellow", "pending": "yellow"}
NO_PERSON = "no human recognised"
MAY_BE_PERSON = "may be a person's"
"""Why turns of a speaker are in doubt. `NO_PERSON` and this are reasons that the readers of saved states report."""
NAME_PEOPLE = "name the people with `humans` in a manifest, in `process` or in `record_session`"

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


def console(*, to_errors: bool = False) -> Console:
    """Return a console that prints text as it is, never as markup."""
    from afterword.cli.plain_console import PlainConsole

    plain = PlainConsole(stderr=to_errors, markup=False, highlight=False, soft_wrap=True)
    if not plain.is_terminal and "COLUMNS" not in os.environ:
        plain.width = PIPED_WIDTH
    return plain


def print_lines(*lines: object, to_errors: bool = False) -> None:
    """Print texts and tables, each on lines of its own. What is None is left out."""
    out = console(to_errors=to_errors)
    for line in lines:
        if line is not None:
            out.print(terminal_text(line) if isinstance(line, str) else line)


def print_result(value: Any, *lines: object, as_json: bool) -> None:
    """Print a value as JSON, or the lines that show it to people."""
    if as_json:
        print_json(value)
    else:
        print_lines(*lines)


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    sys.stdout.write(terminal_json(json.dumps(value, ensure_ascii=False, indent=1)) + "\n")


def print_pairs(pairs: dict[str, Any], *, as_json: bool) -> None:
    """Print names with their values, as JSON or one per line."""
    shown = {
        name: ", ".join(f"{count} {key}" for key, count in value.items()) if isinstance(value, dict) else value
        for name, value in pairs.items()
    }
    words = {"None": "none", "True": "yes", "False": "no", "": "nothing"}
    lines = (f"{name.replace('_', ' ')}: {words.get(str(value), value)}" for name, value in shown.items())
    print_result(pairs, *lines, as_json=as_json)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 fact", "2 facts", "2 memories"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("y") and noun != "key" else f"{count} {noun}s"


def day(instant: datetime | None) -> str:
    """Return the date of an instant in its own time zone, or an empty text for None."""
    return instant.date().isoformat() if instant else ""


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], styles: Sequence[str] | None = None
) -> ResponsiveTable:
    """Return a table, which becomes a list where the terminal is too narrow for it. Each row may have a style."""
    return ResponsiveTable(title, columns, rows, styles)


def status_text(fact: Fact) -> str:
    """Return the status of a fact as people read it."""
    return "withdrawn" if fact.status == "retracted" else str(fact.status)


def fact_table(facts: Sequence[Fact], *, title: str) -> ResponsiveTable:
    """Return a table of facts, coloured by status."""
    columns = ("id", "kind", "status", "statement", "since", "until", "times", "tags")
    rows = [
        (
            fact.id[:8],
            fact.kind,
            status_text(fact),
            fact.statement,
            day(fact.valid_from),
            day(fact.ends_at),
            fact.support,
            ", ".join(fact.tags),
        )
        for fact in facts
    ]
    return table(title, columns, rows, [STYLES.get(fact.status, "dim") for fact in facts])


NO_FACT_FOUND = "asked to be forgotten; no fact was found"
"""Shown for a request to forget that matches no fact."""


SKIPPED = {
    "secrets masked": "{count} secret{s} masked",
    NO_PERSON: f"no speaker was taken for a person, so nothing was learned: {NAME_PEOPLE}",
    MAY_BE_PERSON: f"{{count}} turn{{s}} of a speaker taken for an agent {MAY_BE_PERSON}: {NAME_PEOPLE}",
    "time in the future": "{count} time{s} in the future, taken as unknown",
    "off the record": "{count} turn{s} off the record",
    "forgotten": "{count} turn{s} left out: forgotten, or the same words as something forgotten",
}
"""How the command line says what was left out of a session, by the reason that the readers report."""


def skipped_text(reason: str, count: int) -> str:
    """Return a sentence that says what was left out of a session, and how often."""
    if reason not in SKIPPED:
        return f"skipped: {reason}: {count}"
    return SKIPPED[reason].format(count=count, s="s" if count > 1 else "")


def counts_text(counts: dict[str, int]) -> str:
    """Return counts in one line, by name."""
    names = {name: name.removesuffix("s") if count == 1 else name for name, count in counts.items()}
    return ", ".join(f"{counts[name]} {shown}" for name, shown in sorted(names.items()))


def money(spent: Spending) -> str:
    """Return a cost in dollars, and how many calls have no known price."""
    if spent.usd is None:
        return "no price known"
    from afterword.client.values import dollars

    unpriced = f" and {spent.unpriced_calls} calls without a known price" if spent.unpriced_calls else ""
    return f"{dollars(spent.usd)}{unpriced}"


def spending_text(spent: Spending) -> str:
    """Return the calls, tokens and cost in one line."""
    if not spent.calls:
        return "no model was asked"
    estimated = f" ({spent.estimated_calls} calls estimated)" if spent.estimated_calls else ""
    tokens = f"{spent.prompt_tokens:,} prompt and {spent.completion_tokens:,} completion tokens"
    return f"{spent.calls:,} calls, {tokens}, {money(spent)}{estimated}"


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"afterword {afterword.__version__}")
        raise typer.Exit


@app.callback()
def configure_logging(
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
    work: Callable[[afterword.Afterword], Awaitable[T]], *, create: bool = False, known: Scope | None = None
) -> T:
    """Return the result of `work` on the configured store. The store is created only with `create`.

    Raises `NotFound` if nothing was ever stored for the scope `known`.
    """

    async def call() -> T:
        async with afterword.open(create=create, on_vectors=show_vectors) as store:
            if known is not None:
                await store.scope(known).check_known()
            return await work(store)

    return asyncio.run(call())


def call_memory(scope: Scope, work: Callable[[afterword.ScopeMemory], Awaitable[T]], *, create: bool = False) -> T:
    """Return the result of `work` on the memory of a scope. The store and the memory are created only with `create`.

    If the memory is new and a known one has a similar name, a hint is printed on standard error.
    """

    async def call(store: afterword.Afterword) -> T:
        if create:
            await hint_at_known(store.scope(scope))
        return await work(store.scope(scope))

    return call_store(call, create=create, known=None if create else scope)


async def hint_at_known(memory: afterword.ScopeMemory) -> None:
    """Print on standard error which known memory may be meant, if nothing was ever stored in this one."""
    try:
        await memory.check_known()
    except NotFound as error:
        if error.nearest:
            print_lines(str(error), to_errors=True)


def show_vectors(refreshed: RefreshResult) -> None:
    """Print on standard error how many vectors a command made, and how many memories still lack some."""
    if refreshed.made:
        print_lines(f"vectors: {refreshed.made} made", to_errors=True)
    if refreshed.left:
        reason = f" ({refreshed.error})" if refreshed.error else ""
        later = "`afterword schedule` tries again; until then recall searches them by words alone"
        print_lines(f"vectors: {refreshed.left} memories still lack some{reason}; {later}", to_errors=True)
