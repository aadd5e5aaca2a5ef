"""The command line's root, and the options that several commands share."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

FAILED, USAGE, OUT_OF_BUDGET, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(
    name="afterword",
    help="Saved AutoGen sessions in, grounded and dated facts out, and back into the next session.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)

User = Annotated[str | None, typer.Option("--user", help="Whose memory: a user of the default tenant.")]
InScope = Annotated[str | None, typer.Option("--scope", help="Whose memory, in the long form tenant/kind/id.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
AsOf = Annotated[str | None, typer.Option("--as-of", help="Statuses as at this instant (ISO 8601; default: now).")]


def _version(wanted: bool) -> None:
    if wanted:
        from afterword import __version__

        typer.echo(f"afterword {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _shown: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
    log_format: Annotated[
        Literal["text", "json"] | None, typer.Option("--log-format", help="Of log records on standard error.")
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option("--log-level", help="What is logged; debug may hold what was said."),
    ] = None,
) -> None:
    """Saved AutoGen sessions in, grounded and dated facts out, and back into the next session."""
    if "--help" not in sys.argv:  # which answers at once, and so loads nothing
        from afterword.cli import logs

        logs.configure(log_format, log_level)
