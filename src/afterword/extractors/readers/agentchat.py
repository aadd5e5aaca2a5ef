"""Messages as AutoGen 0.4 and later writes them: those of a thread or buffer, and those of a model context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from afterword.extractors.readers.utterances import (
    Item,
    Notes,
    Utterance,
    call_text,
    compact,
    id_of,
    instant_of,
    items_of,
    name_of,
    text_of,
    without_base64,
)
from afterword.facts.transcripts import Role


class _Head(NamedTuple):
    """What every message of a thread carries, and a model context's lacks in part."""

    source: str
    notes: Notes
    message: Item

    def said(self, text: str, role: Role | None = None, mark: str = "") -> Utterance:
        at = instant_of(self.message.get("created_at"), self.notes)
        return Utterance(self.source, text, role, at, id_of(self.message), mark)


def read_messages(messages: object, notes: Notes, owner: str | None = None) -> list[Utterance]:
    """Return the utterances of a message list in order.

    `owner` is whose context it is, for what carries no name there (None: whoever answers first in it). Unknown types
    are counted, never an error.
    """
    found: list[Utterance] = []
    owner = owner or _first_author(messages)
    for message in items_of(messages, notes):
        if message.get("type") == "AssistantMessage" and "source" in message:
            owner = name_of(message["source"])
        source = name_of(message["source"]) if "source" in message else owner
        found.extend(_read_message(_Head(source, notes, message)))
    return found


def _first_author(messages: object) -> str:
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("type") == "AssistantMessage" and "source" in message:
            return name_of(message["source"])
    return "assistant"


def is_message(item: object) -> bool:
    """Whether the value has the shape of such a message, known type or not."""
    if not isinstance(item, dict):
        return False
    kind = item.get("type")
    known = isinstance(kind, str) and (kind in _READERS or kind in _WITHOUT_WORDS)
    return known or ("source" in item and ("content" in item or "type" in item))


def _read_message(head: _Head) -> Iterable[Utterance]:
    kind = head.message.get("type", "TextMessage")
    if isinstance(kind, str):
        if kind in _WITHOUT_WORDS:
            head.notes.skip(f"event {kind}")
            return ()
        reader = _READERS.get(kind) or (_words if kind.startswith("StructuredMessage") else None)
        if reader:
            return reader(head)
    head.notes.skip_type(kind)
    return ()


def _words(head: _Head) -> Iterator[Utterance]:
    yield head.said(text_of(head.message.get("content"), head.notes))


def _model_words(head: _Head) -> Iterator[Utterance]:
    yield from _thought(head, head.message.get("thought"))
    content = head.message.get("content")
    if isinstance(content, list):
        yield from _calls(head)
    elif content != "":
        yield head.said(text_of(content, head.notes), Role.AGENT)


def _thought(head: _Head, thought: object) -> Iterator[Utterance]:
    if isinstance(thought, str) and thought:
        yield head.said(thought, Role.THOUGHT)
    elif thought:
        head.notes.skip("unreadable content")


def _calls(head: _Head) -> Iterator[Utterance]:
    for call in items_of(head.message.get("content"), head.notes):
        text = without_base64(call_text(call.get("name"), call.get("arguments")))
        yield head.said(text, Role.TOOL, _mark("call", call.get("id")))


def _results(head: _Head) -> Iterator[Utterance]:
    for result in items_of(head.message.get("content"), head.notes):
        text = without_base64(text_of(result.get("content"), head.notes))
        yield head.said(text, Role.TOOL, _mark("result", result.get("call_id")))


def _mark(kind: str, call_id: object) -> str:
    return f"{kind} {call_id}" if isinstance(call_id, str) and call_id else ""


def _memories(head: _Head) -> Iterator[Utterance]:
    texts = [text_of(item.get("content"), head.notes) for item in items_of(head.message.get("content"), head.notes)]
    head.notes.injected.update(text.strip() for text in texts if text.strip())
    yield head.said("\n".join(texts), Role.MEMORY)


def _system(head: _Head) -> Iterator[Utterance]:
    yield head.said(text_of(head.message.get("content"), head.notes), Role.SYSTEM)


def _machine_words(head: _Head) -> Iterator[Utterance]:
    yield head.said(without_base64(text_of(head.message.get("content"), head.notes)), Role.TOOL)


def _thought_event(head: _Head) -> Iterator[Utterance]:
    return _thought(head, head.message.get("content"))


def _code_result(head: _Head) -> Iterator[Utterance]:
    result = head.message.get("result")
    output = result.get("output") if isinstance(result, dict) else result
    text = output if isinstance(output, str) else compact(output)
    yield head.said(without_base64(text), Role.TOOL)


_READERS: dict[str, Callable[[_Head], Iterable[Utterance]]] = {
    "TextMessage": _words,
    "MultiModalMessage": _words,
    "StopMessage": _words,
    "HandoffMessage": _words,
    "UserMessage": _words,
    "AssistantMessage": _model_words,
    "SystemMessage": _system,
    "FunctionExecutionResultMessage": _results,
    "ToolCallRequestEvent": _calls,
    "ToolCallExecutionEvent": _results,
    "ToolCallSummaryMessage": _machine_words,
    "ThoughtEvent": _thought_event,
    "MemoryQueryEvent": _memories,
    "CodeGenerationEvent": _machine_words,
    "CodeExecutionEvent": _code_result,
}
_WITHOUT_WORDS = frozenset(
    {"SelectSpeakerEvent", "SelectorEvent", "UserInputRequestedEvent", "ModelClientStreamingChunkEvent"}
)
