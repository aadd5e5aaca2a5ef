"""Cached JSON schemas of answers. Every request needs the schema, and building it is slow."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel

from afterword.recall.tokens import tokens_by_byte_size

T = TypeVar("T", bound=BaseModel)


@cache
def stand_in_class(answer: type[T]) -> type[T]:
    """Return a class to pass to instructor in place of `answer`. Its schema and its instances are those of `answer`.

    It has no fields and thereby halves the time for a request: instructor walks through all nested fields of a class
    eight times for each request, builds its schema, and would itself make a new class each time.
    """
    from instructor import openai_schema

    schema_text = json.dumps(answer.model_json_schema())

    class Envelope(BaseModel):
        @classmethod
        def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
            # Each call returns a new copy, which the caller may change.
            schema: dict[str, Any] = json.loads(schema_text)
            return answer.model_json_schema(*args, **options) if args or options else schema

        @classmethod
        def model_validate_json(cls, *args: Any, **options: Any) -> Any:
            return answer.model_validate_json(*args, **options)

        @classmethod
        def model_validate(cls, *args: Any, **options: Any) -> Any:
            return answer.model_validate(*args, **options)

    Envelope.__name__, Envelope.__doc__ = answer.__name__, answer.__doc__
    envelope: Any = Envelope
    named: type[T] = openai_schema(envelope)
    return named


@cache
def schema_tokens(answer: type[BaseModel], indent: int | None) -> int:
    """Return the estimated number of tokens of an answer's JSON schema, written with this indent."""
    return tokens_by_byte_size(json.dumps(answer.model_json_schema(), indent=indent))
