"""The console of the command line. It is imported only when something is printed, because rich is a large library."""

from __future__ import annotations

import os

from rich.console import Console

PIPED_WIDTH = 160
"""The width of tables if the output is not a terminal."""


class PlainConsole(Console):
    """A console that prints text as it is, never as markup, on standard output or with `to_errors` on standard error.

    If the reader of the output has gone, the console raises `BrokenPipeError` and does not exit by itself.
    """

    def __init__(self, *, to_errors: bool) -> None:
        super().__init__(stderr=to_errors, markup=False, highlight=False, soft_wrap=True)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = PIPED_WIDTH

    def on_broken_pipe(self) -> None:
        """Raise the `BrokenPipeError` that is being handled."""
        raise
