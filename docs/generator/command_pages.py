"""The reference of commands: each with its arguments and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from typer.main import get_command

from afterword.cli import app
from generator.markup import code, prose, table, type_name


def command_tables() -> str:
    """Return a heading, the help, and a table of arguments and options for each command."""
    return "\n\n".join(_parts(["afterword"], get_command(app)))


def commands_and_options() -> Iterator[tuple[str, list[str]]]:
    """Yield each command that does something, with the names of its arguments and options."""
    for path, command in _commands(["afterword"], get_command(app)):
        yield " ".join(path), [_name(parameter) for parameter in command.params]


def _commands(path: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    yield path, command
    inner: Mapping[str, Any] = getattr(command, "commands", {})
    for name in sorted(inner):
        yield from _commands([*path, name], inner[name])


def _parts(path: list[str], root: Any) -> Iterator[str]:
    for names, command in _commands(path, root):
        yield f"{'##' if len(names) == 1 else '###'} `{' '.join(names)}`"
        yield prose(command.help or "").replace("\b\n", "")
        if command.params:
            yield table(("argument or option", "value", "meaning"), map(_row, command.params))


def _row(parameter: Any) -> tuple[str, str, str]:
    is_flag = bool(getattr(parameter, "is_flag", False))
    is_option = parameter.param_type_name == "option"
    kind = type_name(parameter.type_descriptor.annotation)
    value = "" if is_flag else (is_option and parameter.metavar) or kind
    repeated = ", several times" if getattr(parameter, "multiple", False) else ""
    default = "" if is_flag or parameter.default in (None, [], ()) else f" Default: {code(str(parameter.default))}."
    needed = " Required." if parameter.required else ""
    return code(_name(parameter)), f"{value}{repeated}", f"{parameter.help or ''}{default}{needed}"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return ", ".join((*parameter.opts, *parameter.secondary_opts))
