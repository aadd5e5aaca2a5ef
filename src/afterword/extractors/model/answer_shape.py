"""The shape of an answer, whose JSON schema is made once: it is asked for with every question, and slow to make."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel

from afterword.recall.tokens import estimated_tokens

T = TypeVar("T", bound=BaseModel)


class Shape(BaseModel):
    """What a model answers."""

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the schema as pydantic makes it, a new copy each time."""
        if args or options:
            return super().model_json_schema(*args, **options)
        schema: dict[str, Any] = json.loads(_schema(cls))
        return schema


@cache
def _schema(shape: type[Shape]) -> str:
    return json.dumps(super(Shape, shape).model_json_schema())


@cache
def wrapped(shape: type[T]) -> type[T]:
    """Return the class that instructor would otherwise make anew of the shape for every question."""
    from instructor import openai_schema

    return openai_schema(shape)


@cache
def schema_tokens(shape: type[BaseModel], indent: int | None) -> int:
    """Return how long the schema of a shape is for a model, written with this indent."""
    return estimated_tokens(json.dumps(shape.model_json_schema(), indent=indent))
