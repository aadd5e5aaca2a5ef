"""The console of the command line. It is loaded when something is printed with it, since the library is large."""

from rich.console import Console


class PlainConsole(Console):
    """A console that leaves it to the program what happens where the reader of the output has gone."""

    def on_broken_pipe(self) -> None:
        """Raise the `BrokenPipeError` that is being handled."""
        raise
