"""Messages with a role instead of a type: chat completions, an OpenAIAgent's history, and v0.2's lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from afterword.extractors.readers.utterances import (
    Item,
    Notes,
    Utterance,
    call_text,
    id_of,
    instant_of,
    items_of,
    text_of,
    without_base64,
)
from afterword.facts.transcripts import Role

Voice = Callable[[Item], tuple[str, Role]]
"""Tells who speaks in a message with the role `user` or `assistant`."""

_SYSTEM_ROLES = frozenset({"system", "developer"})
_TOOL_ROLES = frozenset({"tool", "function"})
# A v0.2 user proxy runs code by itself and answers with its output, under the person's name.
_CODE_OUTPUT = re.compile(r"\s{0,9}exitcode: -?\d{1,9} \(execution (?:succeeded|failed)\)\s*Code output:")


def read_roles(messages: object, notes: Notes, voice: Voice) -> list[Utterance]:
    """Return the utterances of a list of messages with roles, in order; unknown roles are counted."""
    return [said for message in items_of(messages, notes) for said in _read_message(message, notes, voice)]


def is_role_message(item: object) -> bool:
    """Whether the value has the shape of such a message."""
    if not isinstance(item, dict):
        return False
    return isinstance(item.get("role"), str) or item.get("type") in ("function_call", "function_call_output")


def plain_voice(message: Item) -> tuple[str, Role]:
    """Tell who speaks where a role says it: `user` is the person."""
    is_person = message.get("role") == "user"
    name = message.get("name")
    fallback = "user" if is_person else "assistant"
    return (name if isinstance(name, str) and name.strip() else fallback), Role.HUMAN if is_person else Role.AGENT


def _read_message(message: Item, notes: Notes, voice: Voice) -> Iterable[Utterance]:
    role = message.get("role")
    if role in ("user", "assistant"):
        return _spoken(message, notes, voice)
    if not isinstance(role, str):
        return _bare_tool_item(message, notes)
    if role in _SYSTEM_ROLES:
        return [_said(message, notes, role, text_of(message.get("content"), notes), Role.SYSTEM)]
    if role in _TOOL_ROLES:
        return _results(message, notes)
    notes.skip_type(role)
    return ()


def _said(message: Item, notes: Notes, source: str, text: str, role: Role, mark: str = "") -> Utterance:
    at = instant_of(message.get("created_at"), notes) if isinstance(message.get("created_at"), str) else None
    return Utterance(source, text, role, at, id_of(message), mark)


def _spoken(message: Item, notes: Notes, voice: Voice) -> Iterator[Utterance]:
    source, role = voice(message)
    text = text_of(message.get("content"), notes)
    if text:
        is_output = _CODE_OUTPUT.match(text)
        yield _said(message, notes, source, text, Role.TOOL if is_output else role)
    calls = message.get("tool_calls")
    old_call = message.get("function_call")
    caller = source if role is Role.AGENT else "assistant"
    for call in items_of(calls, notes):
        yield _call(message, notes, caller, call.get("function"), call.get("id"))
    if old_call is not None:
        yield _call(message, notes, caller, old_call, None)


def _call(message: Item, notes: Notes, source: str, function: object, call_id: object) -> Utterance:
    parts = function if isinstance(function, dict) else {}
    text = without_base64(call_text(parts.get("name"), parts.get("arguments")))
    return _said(message, notes, source, text, Role.TOOL, _mark("call", call_id))


def _results(message: Item, notes: Notes) -> Iterator[Utterance]:
    name = message.get("name")
    source = name if isinstance(name, str) and name.strip() else "tool"
    responses = message.get("tool_responses")
    for result in items_of(responses, notes) if isinstance(responses, list) and responses else [message]:
        text = without_base64(text_of(result.get("content"), notes))
        yield _said(message, notes, source, text, Role.TOOL, _mark("result", result.get("tool_call_id")))


def _bare_tool_item(message: Item, notes: Notes) -> Iterator[Utterance]:
    """Read a tool call or its output as the Responses API lists them, beside the messages."""
    kind, call_id = message.get("type"), message.get("call_id")
    if kind == "function_call":
        text = without_base64(call_text(message.get("name"), message.get("arguments")))
        yield _said(message, notes, "assistant", text, Role.TOOL, _mark("call", call_id))
    elif kind == "function_call_output":
        text = without_base64(text_of(message.get("output"), notes))
        yield _said(message, notes, "tool", text, Role.TOOL, _mark("result", call_id))
    else:
        notes.skip_type(kind)


def _mark(kind: str, call_id: object) -> str:
    return f"{kind} {call_id}" if isinstance(call_id, str) and call_id else ""
