"""Declares how results are written as JSON: each key once, with its type, for the values and for their schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, TypeVar

T = TypeVar("T")
PLAIN = (bool, int, float, str)
"""The types whose values are JSON as they are."""


def iso_instant(instant: datetime | None) -> str | None:
    """Return an instant in ISO 8601 with its offset (Z for UTC); None stays None."""
    return instant.isoformat().replace("+00:00", "Z") if instant else None


@dataclass(frozen=True, slots=True)
class Maybe:
    """The kind of a value that may be null."""

    kind: Any


def itself(result: T) -> T:
    """Return a result. It is the source of a part that shows the whole result."""
    return result


class JsonForm(Generic[T]):
    """How results of type `T` are written as JSON objects.

    Each part is a key with the kind of its value: `bool`, `int`, `float`, `str` (also for enumerations of texts),
    `datetime`, another form, `[kind]` for a list, `{str: kind}` for an object whose keys are not fixed, `Maybe(kind)`,
    or another class, whose values are written by `str`. The value is the attribute with the name of the key. In a pair
    `(kind, source)` the source is the path of another attribute, or a function of the result.
    """

    def __init__(self, name: str, meaning: str, /, **parts: Any) -> None:
        self.name, self.meaning = name, meaning
        self.parts = {key: part if isinstance(part, tuple) else (part, key) for key, part in parts.items()}

    def __call__(self, result: T) -> dict[str, Any]:
        """Return a result as a JSON object."""
        return self._write(result)

    def below(self, place: str | Callable[[Any], T]) -> dict[str, Any]:
        """Return the parts of this form, for a form of what has such a result at `place`, a path or a function."""
        return {key: (kind, _below(place, source)) for key, (kind, source) in self.parts.items()}

    @cached_property
    def model(self) -> Any:
        """A pydantic model of this form, from which its schema is made. It writes no results."""
        from pydantic import create_model

        fields: dict[str, Any] = {key: (_type_of(kind), ...) for key, (kind, _) in self.parts.items()}
        return create_model(self.name, __doc__=self.meaning, **fields)

    @cached_property
    def _write(self) -> Callable[[T], dict[str, Any]]:
        # The code of one dict display, as dataclasses make code for `__init__`: a loop over the parts takes 1.5 times
        # as long, which a list of facts shows. It consists of the keys and paths of the form, which no user names.
        names: dict[str, Any] = {"iso_instant": iso_instant}
        shown = []
        for key, (kind, source) in self.parts.items():
            value = f"result.{source}" if isinstance(source, str) else f"{_named(source, names)}(result)"
            shown.append(f"{key!r}: {_written(kind, value, names)}")
        write: Callable[[T], dict[str, Any]] = eval(f"lambda result: {{{', '.join(shown)}}}", names)
        return write


def _below(place: Any, source: Any) -> Any:
    if isinstance(place, str) and isinstance(source, str):
        return f"{place}.{source}"
    outer, inner = (attrgetter(each) if isinstance(each, str) else each for each in (place, source))
    return lambda result: inner(outer(result))


def _named(function: Any, names: dict[str, Any]) -> str:
    """Add a function to the names that an expression uses, and return its name."""
    name = f"function_{len(names)}"
    names[name] = function
    return name


def _written(kind: Any, value: str, names: dict[str, Any]) -> str:
    """Return the expression that makes JSON of the value of another expression."""
    if isinstance(kind, Maybe) and kind.kind not in (*PLAIN, datetime):
        return f"None if (value := {value}) is None else {_written(kind.kind, 'value', names)}"
    if isinstance(kind, Maybe):
        kind = kind.kind
    if isinstance(kind, list):
        element = _written(kind[0], "each", names)
        return f"list({value})" if element == "each" else f"[{element} for each in {value}]"
    if isinstance(kind, dict):
        return f"{{str(key): {_written(kind[str], 'each', names)} for key, each in {value}.items()}}"
    if kind in PLAIN:
        return value
    function = "iso_instant" if kind is datetime else _named(kind, names) if isinstance(kind, JsonForm) else "str"
    return f"{function}({value})"


def _type_of(kind: Any) -> Any:
    """Return the type of values of this kind, for pydantic."""
    if isinstance(kind, Maybe):
        return _type_of(kind.kind) | None
    if isinstance(kind, list):
        return list[_type_of(kind[0])]  # type: ignore[misc]
    if isinstance(kind, dict):
        return dict[str, _type_of(kind[str])]  # type: ignore[misc]
    if isinstance(kind, JsonForm):
        return kind.model
    return kind if kind in (*PLAIN, datetime) else str
