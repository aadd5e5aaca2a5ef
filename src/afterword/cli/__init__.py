"""The command line. Commands import what they need when they run, so that `--help` answers at once."""

from __future__ import annotations

import sys

import typer

from afterword.cli.app import FAILED, USAGE
from afterword.cli.commands import app
from afterword.errors import AfterwordError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line.

    Exit with 0 (done), 1 (something failed and was shown), 2 (usage), 3 (the budget is reached) or 130 (interrupted).
    """
    try:
        app()
    except AfterwordError as error:
        typer.secho(f"afterword: {error}", fg="red", err=True)
        sys.exit(USAGE if error.is_usage else FAILED)
