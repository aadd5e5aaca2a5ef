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
class Nullable:
    """The kind of a value that may be null."""

    kind: Any


_AS_IT_IS: tuple[Any, ...] = (*PLAIN, *map(Nullable, PLAIN))


def itself(result: T) -> T:
    """Return a result. It is the source of a part that shows the whole result."""
    return result


class JsonForm(Generic[T]):
    """How results of type `T` are written as JSON objects.

    Each part is a key with the kind of its value: `bool`, `int`, `float`, `str` (also for enumerations of texts),
    `datetime`, another form, `[kind]` for a list, `{str: kind}` for an object whose keys are not fixed,
    `Nullable(kind)`, or another class, whose values are written by `str`. The value is the attribute with the name of
    the key. In a pair `(kind, source)` the source is the path of another attribute, or a function of the result.
    """

    def __init__(self, name: str, meaning: str, /, **parts: Any) -> None:
        self.name: str = name
        self.meaning: str = meaning
        self.parts: dict[str, tuple[Any, Any]] = {
            key: part if isinstance(part, tuple) else (part, key) for key, part in parts.items()
        }

    def __call__(self, result: T) -> dict[str, Any]:
        """Return a result as a JSON object."""
        return {
            key: get(result) if convert is itself else convert(get(result)) for key, get, convert in self._converters
        }

    def parts_at(self, place: str | Callable[[Any], T]) -> dict[str, Any]:
        """Return the parts of this form for the form of a larger result, which has the result of this form at `place`.

        The place is the path of an attribute, or a function of the larger result.
        """
        return {key: (kind, _source_at(place, source)) for key, (kind, source) in self.parts.items()}

    @cached_property
    def model(self) -> Any:
        """A pydantic model of this form, from which its schema is made. It writes no results."""
        from pydantic import create_model

        fields: dict[str, Any] = {key: (_type_of(kind), ...) for key, (kind, _) in self.parts.items()}
        return create_model(self.name, __doc__=self.meaning, **fields)

    @cached_property
    def _converters(self) -> list[tuple[str, Callable[[T], Any], Callable[[Any], Any]]]:
        return [(key, _getter(source), _converter(kind)) for key, (kind, source) in self.parts.items()]


def _source_at(place: Any, source: Any) -> Any:
    if isinstance(place, str) and isinstance(source, str):
        return f"{place}.{source}"
    outer, inner = _getter(place), _getter(source)
    return lambda result: inner(outer(result))


def _getter(source: Any) -> Callable[[Any], Any]:
    return attrgetter(source) if isinstance(source, str) else source


def _converter(kind: Any) -> Callable[[Any], Any]:
    """Return the function that makes JSON of a value of this kind."""
    if kind in _AS_IT_IS:
        return itself
    if isinstance(kind, list):
        element = _converter(kind[0])
        return list if element is itself else lambda values: [element(value) for value in values]
    if isinstance(kind, dict):
        element = _converter(kind[str])
        return lambda values: {str(key): element(value) for key, value in values.items()}
    if isinstance(kind, Nullable):
        present = _converter(kind.kind)
        return lambda value: None if value is None else present(value)
    if kind is datetime:
        return iso_instant
    return kind if isinstance(kind, JsonForm) else str


def _type_of(kind: Any) -> Any:
    """Return the type of values of this kind, for pydantic.

    mypy knows no types that are made while the program runs.
    """
    if isinstance(kind, Nullable):
        return _type_of(kind.kind) | None
    if isinstance(kind, list):
        return list[_type_of(kind[0])]  # type: ignore[misc]
    if isinstance(kind, dict):
        return dict[str, _type_of(kind[str])]  # type: ignore[misc]
    if isinstance(kind, JsonForm):
        return kind.model
    return kind if kind in (*PLAIN, datetime) else str
