"""The reference of the Python interface: each public name with its signature and docstring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

import afterword
from generator.markup import block, prose

SOURCE = Path(__file__).parent.parent.parent / "src"
REPEATED = frozenset(
    {
        "SyncAfterword",
        "SyncAgentAccess",
        "SyncBackgroundProcessor",
        "SyncKeyedRequests",
        "SyncKeys",
        "SyncScopeMemory",
        "SyncWebhooks",
    }
)
"""Classes with the methods of another class: their docstrings stand there."""
LONGEST_LINE = 96
PUBLIC_MODULES = ("extractors.testing", "agents.agent_framework", "langgraph")
NAMED_ON_PAGES = ("extractors.candidates.Answer",)
"""Classes that the other pages import from elsewhere."""
INTERNAL = frozenset({"afterword.client.resources.Resources"})
"""What a public class holds, and nobody else uses."""


def public_names() -> str:
    """Return a heading, a signature and a docstring for each public name and each public method of it.

    After the names of `afterword` follow those of other public modules, and the classes that all of these take, hold
    or return.
    """
    package = griffe.load("afterword", search_paths=[SOURCE], resolve_aliases=True, allow_inspection=False)
    main = {name: _target(package[name]) for name in afterword.__all__ if not name.startswith("__")}
    known = {symbol.path for symbol in main.values()}
    further = [symbol for symbol in (*_errors(package), *_of_public_modules(package)) if symbol.path not in known]
    further += [package[path] for path in NAMED_ON_PAGES]
    further += _reached(package, [*main.values(), *further])
    parts = [part for name, symbol in main.items() for part in _parts(name, symbol)]
    for symbol in further:
        heading, signature, *rest = _parts(symbol.name, symbol)
        parts += [heading, signature, f"In `{symbol.parent.path}`.", *rest]
    return "\n\n".join(parts)


def _errors(package: Any) -> Iterator[Any]:
    """Yield the errors that a caller may catch, by module."""
    for module in package.modules.values():
        if not module.is_alias:
            yield from _errors(module)
    for symbol in package.classes.values():
        if not symbol.is_alias and not symbol.name.startswith("_") and _is_error(symbol):
            yield symbol


def _is_error(symbol: Any) -> bool:
    bases = (base for base in symbol.resolved_bases if base.is_class)
    return symbol.path == "afterword.errors.AfterwordError" or any(_is_error(_target(base)) for base in bases)


def _of_public_modules(package: Any) -> Iterator[Any]:
    """Yield the classes, functions and types of the public modules: those they export, else those they define."""
    for path in PUBLIC_MODULES:
        module = package[path]
        defined = [name for name, member in module.members.items() if name[0] != "_" and not member.is_alias]
        symbols = (_target(module[str(name)]) for name in module.exports or defined)
        yield from (symbol for symbol in symbols if symbol.is_class or symbol.is_function or _is_type(symbol))


def _is_type(symbol: Any) -> bool:
    """Whether it is another name of a type, such as `Json = dict[str, Any]`."""
    return bool(symbol.is_attribute) and symbol.name[0].isupper() and not symbol.name.isupper()


def _reached(package: Any, known: list[Any]) -> list[Any]:
    """Return the classes of the package that these symbols name in their signatures, and so on, in order."""
    seen, waiting, found = {symbol.path for symbol in known}, list(known), list[Any]()
    while waiting:
        for path in _named_in(waiting.pop(0)):
            symbol = _class_at(package, path)
            if symbol is not None and symbol.path not in seen:
                seen.add(symbol.path)
                waiting.append(symbol)
                found.append(symbol)
    return sorted(found, key=lambda symbol: str(symbol.name))


def _named_in(symbol: Any) -> Iterator[str]:
    if symbol.is_function:
        for annotation in (symbol.returns, *(parameter.annotation for parameter in symbol.parameters)):
            yield from _paths(annotation)
    elif symbol.is_class:
        for name, alias in symbol.all_members.items():
            member = _target(alias)
            if not name.startswith("_"):
                yield from _paths(member.annotation) if member.is_attribute else _named_in(member)


def _paths(annotation: Any) -> Iterator[str]:
    if isinstance(annotation, griffe.Expr):
        yield from (part.canonical_path for part in annotation.iterate() if isinstance(part, griffe.ExprName))


def _class_at(package: Any, path: str) -> Any | None:
    inner = path.removeprefix(f"{package.path}.")
    if inner == path:
        return None
    try:
        symbol = _target(package[inner])
    except KeyError:  # the name of a type variable
        return None
    return symbol if symbol.is_class and symbol.path not in INTERNAL else None


def _target(symbol: Any) -> Any:
    return symbol.final_target if symbol.is_alias else symbol


def _parts(name: str, symbol: Any) -> Iterator[str]:
    yield f"## `{name}`"
    if symbol.is_function:
        yield from _function(name, symbol)
        return
    if symbol.is_attribute:
        yield block(f"{name} = {symbol.value}")
        return
    yield block(_class(name, symbol))
    if symbol.docstring:
        yield prose(symbol.docstring.value)
    if any(str(base).endswith("Enum") for base in symbol.bases):
        values = (member.value for member in symbol.members.values() if member.is_attribute and member.value)
        yield f"Values: {', '.join(f'`{value}`' for value in values)}."
    for method_name, method in sorted(symbol.all_members.items()):
        if method_name.startswith("_") or (method.is_attribute and "property" not in method.labels):
            continue
        yield f"### `{name}.{method_name}`"
        yield from _function(method_name, method, has_docstring=name not in REPEATED)


def _class(name: str, symbol: Any) -> str:
    """Return how a class is made; of an error what else it is, and of a class without parameters its fields."""
    signature = _signature(name, symbol)
    if _is_error(symbol):
        line = f"class {name}({', '.join(map(str, symbol.bases))})"
        return line if signature in (name, f"{name}()") else f"{line}\n\n{signature}"
    fields = [] if signature != name else list(_fields(symbol))
    return "\n".join((f"class {signature}:" if fields else f"class {signature}", *fields))


def _fields(symbol: Any) -> Iterator[str]:
    for name, alias in symbol.all_members.items():
        member = _target(alias)
        is_field = member.is_attribute and member.annotation is not None and "property" not in member.labels
        if is_field and not name.startswith("_") and name != "model_config":
            yield f"    {name}: {member.annotation}"


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
