"""The command line's root, and the options that several commands share."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

FAILED, USAGE, OUT_OF_BUDGET, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(
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


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from afterword import __version__

        typer.echo(f"afterword {__version__}")
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
