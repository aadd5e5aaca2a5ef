"""Checks the types of all arguments of the Python interface, by the annotations of its methods."""

from __future__ import annotations

import functools
import inspect
import re
import reprlib
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace, UnionType
from typing import Any, TextIO, TypeVar, Union, get_args, get_origin, get_type_hints

from afterword.errors import ArgumentInvalid


class TypeCheckedMethods:
    """The base of classes whose public methods raise `ArgumentInvalid` for an argument of another type than annotated.

    True and False are no numbers. One text is no collection of texts, unless the annotation also names `str`.
    """

    def __init_subclass__(cls) -> None:
        for name, member in list(vars(cls).items()):
            if inspect.isfunction(member) and not name.startswith("_"):
                setattr(cls, name, _checked_method(member))


def _checked_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with a check of its arguments before each call."""

    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        _check_arguments(method, arguments, options)
        return method(*arguments, **options)

    @functools.wraps(method)
    async def call_awaited(*arguments: Any, **options: Any) -> Any:
        _check_arguments(method, arguments, options)
        return await method(*arguments, **options)

    return call_awaited if inspect.iscoroutinefunction(method) else call


def _check_arguments(method: Callable[..., Any], arguments: Sequence[object], options: dict[str, object]) -> None:
    names, hints = _parameter_types(method)
    for name, value in (*zip(names, arguments, strict=False), *options.items()):
        # A name that the method does not have raises a TypeError when it is called.
        if name in hints and not _has_type(value, hints[name]):
            expected = _type_description(hints[name])
            raise ArgumentInvalid(f"{name}={reprlib.repr(value)} is not possible; give {expected}")


@functools.cache
def _parameter_types(method: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names of the parameters of a method, and their types. The type of the result may be unknown here."""
    annotations = {name: text for name, text in inspect.get_annotations(method).items() if name != "return"}
    hints = get_type_hints(SimpleNamespace(__annotations__=annotations), inspect.unwrap(method).__globals__)
    return tuple(inspect.signature(method).parameters), hints


def _has_type(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_has_type(value, part) for part in parts)
    if isinstance(hint, TypeVar):
        return _has_type(value, hint.__bound__)
    if hint is TextIO:
        return hasattr(value, "write")  # an open file is no instance of this type
    if isinstance(value, bool):
        return hint is bool
    if origin in (Collection, Sequence):
        is_collection = isinstance(value, origin) and not isinstance(value, str | bytes)
        return is_collection and all(_has_type(each, parts[0]) for each in value)
    return isinstance(value, int | float if hint is float else origin or hint)


def _type_description(hint: Any) -> str:
    if isinstance(hint, TypeVar):
        hint = hint.__bound__
    if getattr(hint, "_is_protocol", False):
        # Its description begins with what fits: "An agent or a team: ...".
        fitting = (inspect.getdoc(hint) or hint.__name__).partition(":")[0]
        return fitting[:1].lower() + fitting[1:]
    return re.sub(r"[\w.]+\.", "", hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint))
