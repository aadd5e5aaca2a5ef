"""The console of the command line. It is imported only when something is printed, because rich is a large library."""

from rich.console import Console


class PlainConsole(Console):
    """A console that raises `BrokenPipeError` if the reader of the output has gone, and does not exit by itself."""

    def on_broken_pipe(self) -> None:
        """Raise the `BrokenPipeError` that is being handled."""
        raise
