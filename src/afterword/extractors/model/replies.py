"""Put right the wrapping of a model's reply before it is read, never what it says. Pure.

Small models put JSON into a fence or a sentence, and split one answer over several tool calls; instructor would ask
again for the first, and take one part of the second without a word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST_REPLY = 250_000
"""How many characters of a reply are read. No answer to one window is as long; what is longer is shown to nobody, not
even to the model that is asked again."""

_STARTS = 50


def mended(completion: object) -> None:
    """Put the answer of a chat completion, as the openai package reads it, into the form in which it was asked for.

    Whatever has another shape is left as it is.
    """
    choices = getattr(completion, "choices", None)
    message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    if isinstance(content := getattr(message, "content", None), str):
        setattr(message, "content", unwrapped(content))  # noqa: B010 - the message is of unknown type
    calls = getattr(message, "tool_calls", None)
    functions = [getattr(call, "function", None) for call in calls] if isinstance(calls, list) else []
    arguments = [getattr(function, "arguments", None) for function in functions]
    texts = [unwrapped(text) for text in arguments if isinstance(text, str)]
    if functions and len(texts) == len(functions):
        setattr(functions[0], "arguments", joined(texts))  # noqa: B010 - the function is of unknown type


def unwrapped(text: str) -> str:
    """Return the one JSON object that a text holds, without fence and prose; the text itself where that is not clear.

    Two objects, or one that holds nothing, may be examples: they are left for the model to say again.
    """
    if len(text) > LONGEST_REPLY:
        return ""
    if text.lstrip().startswith("{") and _is_json(text):
        return text
    found = _objects(text)
    is_clear = len(found) == 1 and any(found[0].values())
    return json.dumps(found[0], ensure_ascii=False) if is_clear else text


def joined(arguments: Sequence[str]) -> str:
    """Return the arguments of several calls of one tool as those of one call, their lists one after the other.

    Where they cannot be joined, nothing is returned, so that the model is asked again and no part is lost in silence.
    """
    if len(arguments) == 1:
        return arguments[0]
    parts = [_objects(text) for text in arguments]
    if any(len(found) != 1 for found in parts):
        return ""
    first, *others = [found[0] for found in parts]
    if not all(_is_joinable(first, other) for other in others):
        return ""
    return json.dumps({name: [item for part in parts for item in part[0][name]] for name in first}, ensure_ascii=False)


def _is_joinable(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(isinstance(value, list) for value in (*one.values(), *other.values()))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that stand in a text side by side; none where it has too many braces to be sure."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    place = text.find("{")
    for _ in range(_STARTS):
        if place < 0:
            return found
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            found.append(value)
        place = text.find("{", end)
    return []
