"""Markdown: tables, code, and what a type is called."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Iterable, Sequence
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr

TYPE_NAMES = {str: "text", int: "number", float: "number", Decimal: "number", bool: "true or false", Path: "path"}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a line for each row."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return the text as code within a line."""
    return f"`{text}`"


def block(text: str, language: str = "python") -> str:
    """Return the text as a block of code."""
    return f"```{language}\n{text}\n```"


def prose(text: str) -> str:
    """Return the text of a docstring, in which a `<` outside of code begins no tag."""
    parts = inspect.cleandoc(text).split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def type_name(annotation: Any) -> str:
    """Return what a person calls a type, such as "text" or "one of `a`, `b`"."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_name(kind) for kind in arguments if kind is not type(None)))
    if origin is Literal:
        return f"one of {', '.join(map(code, arguments))}"
    if origin in (list, tuple):
        return f"list of {type_name(arguments[0])}"
    if origin is dict:
        return f"table of {type_name(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of {', '.join(code(member.value) for member in annotation)}"
    if dataclasses.is_dataclass(annotation):
        return ", ".join(code(field.name) for field in dataclasses.fields(annotation))
    return "secret text" if annotation is SecretStr else TYPE_NAMES.get(annotation, getattr(annotation, "__name__", ""))
