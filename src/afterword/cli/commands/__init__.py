"""Every command, in the order of the help: importing this registers them."""

from afterword.cli.app import app

from afterword.cli.commands import using, deciding, keeping  # isort: skip

__all__ = ["app", "deciding", "keeping", "using"]
