"""The reference of the Python interface: each public name with its signature and docstring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

import afterword
from generator.markup import block, prose

SOURCE = Path(__file__).parent.parent.parent / "src"
REPEATED = frozenset({"SyncAfterword", "SyncScopeMemory"})
"""Classes with the methods of another class: their docstrings stand there."""
LONGEST_LINE = 96


def public_names() -> str:
    """Return a heading, a signature and a docstring for each public name and each public method of it."""
    module = griffe.load("afterword", search_paths=[SOURCE], resolve_aliases=True, allow_inspection=False)
    return "\n\n".join(
        part for name in afterword.__all__ if not name.startswith("__") for part in _parts(name, module[name])
    )


def _parts(name: str, symbol: Any) -> Iterator[str]:
    yield f"## `{name}`"
    if symbol.is_function:
        yield from _function(name, symbol)
        return
    yield block(f"class {_signature(name, symbol)}")
    if symbol.docstring:
        yield prose(symbol.docstring.value)
    for method_name, method in sorted(symbol.all_members.items()):
        if method_name.startswith("_") or (method.is_attribute and "property" not in method.labels):
            continue
        yield f"### `{name}.{method_name}`"
        yield from _function(method_name, method, has_docstring=name not in REPEATED)


def _function(name: str, function: Any, *, has_docstring: bool = True) -> Iterator[str]:
    if function.is_attribute:
        yield block(f"{name}: {function.annotation}")
    else:
        returns = f" -> {function.returns}" if function.returns is not None else ""
        is_async = "async " if "async" in function.labels else ""
        yield block(f"{is_async}def {_signature(name, function)}{returns}")
    if has_docstring and function.docstring:
        yield prose(function.docstring.value)


def _signature(name: str, symbol: Any) -> str:
    """Return the call of a function or class; a long one has a line for each parameter."""
    # A class whose makers are functions has no parameters of its own.
    text = str(symbol.signature(return_type=False, name=name) or name)
    if len(text) <= LONGEST_LINE:
        return text
    parameters = _split(text[text.index("(") + 1 : -1])
    return "\n".join((f"{name}(", *(f"    {parameter}," for parameter in parameters), ")"))


def _split(parameters: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth = [""], 0
    for letter in parameters:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
