"""Clean a model's reply before it is parsed, and translate the errors of the libraries that parse it. Pure.

The content of a reply is never changed, and the text of an exception is never passed on.

Small models put JSON into a code fence or a sentence, or split one answer over several tool calls. Without this module
instructor would ask again in the first case, and silently ignore all but one call in the second.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from afterword.extractors.errors import (
    AnswerCut,
    AnswerInvalid,
    AnswerRefused,
    EndpointMisconfigured,
    EndpointUnavailable,
    ExtractionError,
)

if TYPE_CHECKING:
    from openai import APIStatusError

LONGEST_REPLY = 250_000
"""The most characters of a reply. A longer one is dropped, and is not shown to the model that is asked again.

No real answer to one window is that long.
"""

_MOST_BRACES = 50

TRANSIENT_STATUSES = frozenset({408, 409, 429})
WINDOW_TOO_LONG = frozenset({"context_length_exceeded", "string_above_max_length"})
# llama.cpp, vLLM and LM Studio give no such code, but these words.
_TELLS_TOO_LONG = re.compile(r"exceed_context_size|\bcontext (?:length|size|window)\b", re.IGNORECASE)


def clean_completion(completion: object) -> None:
    """Reduce the answer in a chat completion of the openai package to the JSON that was asked for, in place.

    A completion of any other form is left unchanged.
    """
    choices = getattr(completion, "choices", None)
    message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    if isinstance(content := getattr(message, "content", None), str):
        setattr(message, "content", unwrapped_json(content))  # noqa: B010 - the message is of unknown type
    calls = getattr(message, "tool_calls", None)
    functions = [getattr(call, "function", None) for call in calls] if isinstance(calls, list) else []
    arguments = [getattr(function, "arguments", None) for function in functions]
    texts = [unwrapped_json(text) for text in arguments if isinstance(text, str)]
    if functions and len(texts) == len(functions):
        setattr(functions[0], "arguments", joined_arguments(texts))  # noqa: B010 - the function is of unknown type


def unwrapped_json(text: str) -> str:
    """Return the JSON object in a text, without code fence and prose, or the unchanged text if the object is not clear.

    It is not clear if there are several, or if it is empty and may be an example. The model is then asked again.
    """
    if len(text) > LONGEST_REPLY:
        return ""
    if text.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            json.loads(text)
            return text
    objects = _json_objects(text)
    is_clear = len(objects) == 1 and any(objects[0].values())
    return json.dumps(objects[0], ensure_ascii=False) if is_clear else text


def joined_arguments(arguments: Sequence[str]) -> str:
    """Return the arguments of several calls of one tool as those of one call, with their lists concatenated.

    If they cannot be joined, return an empty text. The model is then asked again, so that no part is silently lost.
    """
    if len(arguments) == 1:
        return arguments[0]
    parsed = [_json_objects(text) for text in arguments]
    if any(len(objects) != 1 for objects in parsed):
        return ""
    calls = [objects[0] for objects in parsed]
    are_lists = all(isinstance(value, list) for call in calls for value in call.values())
    if not are_lists or any(call.keys() != calls[0].keys() for call in calls):
        return ""
    joined = {name: [entry for call in calls for entry in call[name]] for name in calls[0]}
    return json.dumps(joined, ensure_ascii=False)


def _json_objects(text: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects in a text, or none if the text has too many braces."""
    decoder = json.JSONDecoder()
    objects: list[dict[str, Any]] = []
    place = text.find("{")
    for _ in range(_MOST_BRACES):
        if place < 0:
            return objects
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            objects.append(value)
        place = text.find("{", end)
    return []


def translated_error(error: Exception, place: str) -> ExtractionError:
    """Return the `ExtractionError` for an exception of openai or instructor. `place` is the model and its address."""
    from instructor.core import IncompleteOutputException
    from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

    cause = error.__cause__ if isinstance(error.__cause__, OpenAIError) else error
    if isinstance(error, IncompleteOutputException):
        return AnswerCut(
            f"{place}: the answer was cut at its length limit; use a model with a larger limit, or ask for less"
        )
    if isinstance(cause, APIStatusError):
        return _status_error(cause, place)
    if isinstance(cause, APITimeoutError):
        return EndpointUnavailable(f"{place}: no answer in time; the session is tried again, or raise the timeout")
    if isinstance(cause, APIConnectionError):
        return EndpointUnavailable(f"{place}: no connection; check that the endpoint runs and can be reached")
    if isinstance(cause, OpenAIError):
        return EndpointMisconfigured(
            f"{place}: no request could be made; set an API key, or a base URL that needs none"
        )
    return _answer_error(error, place)


def refusal_error(place: str) -> AnswerRefused:
    """Return the error for an answer that the model refused to give."""
    return AnswerRefused(f"{place}: the model declined to answer; look at the session, or try another model")


def is_refusal(completion: Any) -> bool:
    """Return whether the model refused to answer, or a content filter stopped it."""
    return any(
        getattr(getattr(choice, "message", None), "refusal", None)
        or getattr(choice, "finish_reason", None) == "content_filter"
        for choice in getattr(completion, "choices", None) or []
    )


def _status_error(error: APIStatusError, place: str) -> ExtractionError:
    status = error.status_code
    is_too_long = str(error.code) in WINDOW_TOO_LONG or (status == 400 and _TELLS_TOO_LONG.search(str(error.body)))
    if status == 413 or is_too_long:
        return AnswerCut(
            f"{place}: HTTP {status}, the request is too long; use a model with a larger context, or ask for less"
        )
    if status in TRANSIENT_STATUSES or status >= 500:
        return EndpointUnavailable(f"{place}: HTTP {status} after all retries; the session is tried again later")
    next_step = {
        401: "check the API key",
        403: "check what the API key may use",
        404: "check the model's name and the base URL",
    }.get(status, "check the model's name, and with `afterword doctor --probe` which mode the endpoint knows")
    return EndpointMisconfigured(f"{place}: HTTP {status}; {next_step}", status=status)


def _answer_error(error: Exception, place: str) -> ExtractionError:
    # If the model refuses to call the tool, instructor raises an AssertionError before it stores the completion.
    if isinstance(error.__cause__, AssertionError) or is_refusal(getattr(error, "last_completion", None)):
        return refusal_error(place)
    attempts = getattr(error, "n_attempts", 1)
    return AnswerInvalid(
        f"{place}: no answer fitted the schema in {attempts} attempts; try another mode or a more capable model"
    )
