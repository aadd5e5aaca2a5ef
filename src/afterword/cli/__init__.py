"""The command line: every command calls one method of `Afterword` or `ScopeMemory`.

Commands import what they need when they run, so that `--help` answers at once.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import cache

import typer

from afterword.cli.app import FAILED, USAGE, app
from afterword.cli.terminal import terminal_safe_line
from afterword.errors import AfterwordError

# In the order of the help: importing a module registers its commands.
from afterword.cli import session_commands, fact_commands, finding_commands, run_commands  # isort: skip
from afterword.cli import transfer_commands, store_commands, access_commands, evaluation_commands  # isort: skip

__all__ = [
    "access_commands",
    "app",
    "evaluation_commands",
    "fact_commands",
    "finding_commands",
    "main",
    "run_commands",
    "session_commands",
    "store_commands",
    "transfer_commands",
]

NO_COLOR = "--no-color"
OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""How many objects are made before Python looks for garbage. Its own number makes short commands a tenth slower."""


def main() -> None:
    """Run the command line.

    Exit with 0 (done), 1 (something failed and was shown), 2 (usage), 3 (the budget is reached) or 130 (interrupted).
    If the reader of the output goes away, such as `head`, the exit code is 0.
    """
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    out = sys.stdout
    try:
        _command()(_arguments())
    except SystemExit as ended:
        # If the reader of the output has gone, Typer has replaced standard output and exits with 1.
        code = ended.code if sys.stdout is out else 0
        try:
            out.flush()
        except BrokenPipeError:
            # Otherwise Python would report the unwritten output when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        sys.exit(code)
    except AfterwordError as error:
        typer.secho(
            f"afterword: {terminal_safe_line(str(error))}", fg=None if os.environ.get("NO_COLOR") else "red", err=True
        )
        sys.exit(USAGE if error.is_usage else FAILED)


def _arguments() -> list[str]:
    """Return the arguments with `--no-color` moved to the front, because many people write it after the command."""
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    return [*sorted(sys.argv[1:end], key=lambda option: option != NO_COLOR), *sys.argv[end:]]


@cache
def _command() -> Callable[[list[str]], None]:
    """Return the command line. It is cached, because making it takes longer than running most of its commands."""
    return typer.main.get_command(app)
