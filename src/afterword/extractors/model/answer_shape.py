"""Cache the JSON schemas of answers. Every request needs the schema, and building it is slow."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel

from afterword.recall.tokens import estimated_tokens

T = TypeVar("T", bound=BaseModel)


class Shape(BaseModel):
    """The base of the answers that models give."""

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return pydantic's schema, a new copy each time."""
        if args or options:
            return super().model_json_schema(*args, **options)
        schema: dict[str, Any] = json.loads(_schema_text(cls))
        return schema


@cache
def _schema_text(shape: type[Shape]) -> str:
    return json.dumps(super(Shape, shape).model_json_schema())


@cache
def wrapped(shape: type[T]) -> type[T]:
    """Return a class without fields to pass to instructor in place of a shape. Its answers are instances of the shape.

    It saves time: instructor walks through all nested fields of a class eight times for each request, and would itself
    make such a class each time.
    """
    from instructor import openai_schema

    class Envelope(BaseModel):
        @classmethod
        def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
            return shape.model_json_schema(*args, **options)

        @classmethod
        def model_validate_json(cls, *args: Any, **options: Any) -> Any:
            return shape.model_validate_json(*args, **options)

        @classmethod
        def model_validate(cls, *args: Any, **options: Any) -> Any:
            return shape.model_validate(*args, **options)

    Envelope.__name__, Envelope.__doc__ = shape.__name__, shape.__doc__
    envelope: Any = Envelope
    named: type[T] = openai_schema(envelope)
    return named


@cache
def schema_tokens(shape: type[BaseModel], indent: int | None) -> int:
    """Return the estimated number of tokens of the JSON schema, written with this indent."""
    return estimated_tokens(json.dumps(shape.model_json_schema(), indent=indent))
