"""Hide turns that a person said off the record, so that they are neither stored nor searched for facts. Pure.

The request stands at the beginning of a turn. "off the record: ..." hides that turn and the answers to it. "off the
record from now on" and "/off-record" hide everything until "back on the record" or "/on-record". A placeholder replaces
each hidden turn, so turns keep their numbers, and a saved state that is resumed stays off the record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from afterword.facts.transcripts import Role, Turn
from afterword.facts.words import STOP_WORDS
from afterword.normal_form import composed
from afterword.privacy.record_requests import HIDDEN, HIDDEN_FROM_HERE, Markers, RecordChange
from afterword.privacy.record_wishes.clauses import is_wish_word
from afterword.privacy.state_keys import (
    CODE_OUTPUT,
    NEVER_HIDDEN,
    TOOL_ROLES,
    is_tool_call,
    is_tool_result,
    split_content,
    without_application_data,
)

_NO_WORDS = frozenset({"SystemMessage", "MemoryQueryEvent"})
_WITHOUT_CONTENT = frozenset({"CodeExecutionEvent", "function_call", "function_call_output"})
"""Messages of AutoGen and of the Responses API that hold a call or a result of a tool, but not under `content`."""
_LONG = 20
_FEWEST_REPEATED = 2
_FEW_WORDS = 4
_WORD = re.compile(r"\w{2,40}")
# A name or a number inside of a sentence.
_NAME = re.compile(r"(?<=[a-z,;:'\"(] )[A-ZÀ-Þ]\w{3,40}|\b\w*\d\w{2,40}|\b[A-ZÀ-Þ]{2,6}\b")
_CONTENT_LETTERS, _TELLING_LETTERS = 4, 3
_COMMON = frozenset(
    "record back please thanks know think want need like really going just this that with from have about what when "
    "where there would could should will they them then than your their been were tell told said says make made good "
    "great nice sure yes yeah bin ist und der die nicht ich que por para mais sono che non het een niet oui pas les "
    "des".split()
)


def hide_off_record(
    turns: Sequence[Turn], markers: Markers, also_hidden_numbers: Collection[int] = ()
) -> tuple[Turn, ...]:
    """Return the turns, with a placeholder as the text of each that was said off the record.

    Numbers, speakers and times stay. `also_hidden_numbers` are the numbers of more turns to hide, as if the
    person had marked them.
    """
    tracker, shown = _OffRecordTracker(markers), list(turns)
    for index, turn in enumerate(turns):
        if turn.role not in (Role.SYSTEM, Role.MEMORY):
            is_person, is_also_hidden = turn.role is Role.HUMAN, turn.number in also_hidden_numbers
            placeholder = tracker.next_placeholder(turn.text, is_person=is_person, is_also_hidden=is_also_hidden)
            if placeholder is not None and placeholder != turn.text:
                shown[index] = replace(turn, text=placeholder)
    return tuple(shown)


def hide_off_record_in_state(
    state: Mapping[str, Any], markers: Markers, humans: Collection[str], also_hidden_texts: Collection[str] = ()
) -> dict[str, Any]:
    """Return a copy of a saved state without what was said off the record, in every list of messages.

    `humans` are the names of people. `also_hidden_texts` are the texts of more messages to hide, as if the person
    had marked them. Every message keeps its position and type, so that AutoGen can load the state.
    """
    hiding = _StateHiding(
        markers, frozenset(composed(name).casefold() for name in humans), frozenset(also_hidden_texts)
    )
    hiding.collect_hidden(state)
    return {key: hiding.without_hidden(value) for key, value in state.items()}


def is_off_record(turn: Turn) -> bool:
    """Return whether the text of a turn is a placeholder for hidden words."""
    return turn.text in (HIDDEN, HIDDEN_FROM_HERE)


def newly_hidden_indexes(before: Sequence[Turn], after: Sequence[Turn]) -> set[int]:
    """Return the indexes of the turns of which `after` has a placeholder for hidden words, but not `before`."""
    pairs = zip(before, after, strict=True)
    return {index for index, (old, new) in enumerate(pairs) if is_off_record(new) and not is_off_record(old)}


class _OffRecordTracker:
    """Follows a conversation turn by turn and decides which turns are off the record."""

    def __init__(self, markers: Markers) -> None:
        self._markers = markers
        self._is_off = self._is_aside = False
        self._hidden_words: set[str] = set()
        self._hidden_names: set[str] = set()
        self._open_words: set[str] = set()

    def next_placeholder(self, text: str, *, is_person: bool, is_also_hidden: bool = False) -> str | None:
        """Return the placeholder for the next turn, or None if it is on the record."""
        if not is_person:
            return HIDDEN if self._is_hidden_answer(text) else None
        change = RecordChange.THIS if is_also_hidden else self._markers.requested_change(text)
        self._is_aside = change is RecordChange.THIS
        self._is_off = change is RecordChange.OFF or (self._is_off and change is not RecordChange.ON)
        if not (self._is_off or self._is_aside):
            self._remember_open_words(text)
            return None
        self._remember_hidden_words(text)
        return HIDDEN_FROM_HERE if change is RecordChange.OFF else HIDDEN

    def _is_hidden_answer(self, text: str) -> bool:
        """Return whether an agent's turn answers a hidden turn, or repeats its words later."""
        return self._is_off or self._is_aside or self._repeats_hidden(text)

    def _remember_hidden_words(self, text: str) -> None:
        # In a text that is all in capitals, a capital letter does not mark a name.
        names = {name.casefold() for name in _NAME.findall(text) if any(map(str.islower, text)) or not name.isalpha()}
        names -= STOP_WORDS | _COMMON
        self._hidden_names |= {name for name in names - self._open_words if not is_wish_word(name)}
        self._hidden_words |= _content_words(text) - self._open_words
        # In a short remark each word may reveal what was said: "I'm infertile".
        telling = {word for word in _content_words(text, _TELLING_LETTERS) if not is_wish_word(word)} - _COMMON
        if len(telling) <= _FEW_WORDS:
            self._hidden_names |= telling - self._open_words

    def _remember_open_words(self, text: str) -> None:
        """Remove the words of an on-the-record turn from the hidden words, because the person has said them openly."""
        words = {word.casefold() for word in _WORD.findall(text)}
        self._hidden_words -= words
        self._hidden_names -= words
        self._open_words |= words

    def _repeats_hidden(self, text: str) -> bool:
        """Return whether an agent's later turn repeats what was said off the record: a name, or two other words."""
        words = {word.casefold() for word in _WORD.findall(text)}
        return bool(words & self._hidden_names) or len(words & self._hidden_words) >= _FEWEST_REPEATED


@dataclass(frozen=True, slots=True)
class _Placeholders:
    """What replaces the words of a message, and each of its calls and results of tools. None means: on the record."""

    words: str | None = None
    calls: tuple[str | None, ...] = ()
    results: tuple[str | None, ...] = ()

    @property
    def hide_something(self) -> bool:
        """Whether a part of the message is off the record."""
        return any((self.words, *self.calls, *self.results))


class _StateHiding:
    """Finds and hides the messages of a saved state that are off the record."""

    def __init__(self, markers: Markers, humans: frozenset[str], also_hidden: frozenset[str]) -> None:
        self._markers, self._humans, self._also_hidden = markers, humans, also_hidden
        self._ids: set[str] = set()
        self._texts: set[str] = set()

    def collect_hidden(self, value: Any) -> None:
        """Collect the ids and longer texts of hidden messages, to find copies of them elsewhere in the state."""
        if isinstance(value, list):
            for message, placeholders in self._messages_with_placeholders(value):
                if placeholders.words is not None and isinstance(message.get("id"), str):
                    self._ids.add(message["id"])
                if placeholders.hide_something:
                    self._texts |= {text for text in _hidden_strings(message, placeholders) if len(text) >= _LONG}
        for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
            self.collect_hidden(inner)

    def without_hidden(self, value: Any) -> Any:
        """Return the value without hidden messages and their copies."""
        if isinstance(value, str):
            return HIDDEN if value in self._texts else value
        if isinstance(value, Mapping):
            return {key: inner if key in NEVER_HIDDEN else self.without_hidden(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [
                self._without_hidden_parts(message, placeholders)
                for message, placeholders in self._messages_with_placeholders(value)
            ]
        return value

    def _without_hidden_parts(self, message: Any, placeholders: _Placeholders) -> Any:
        if not placeholders.hide_something:
            return self.without_hidden(message)
        if not split_content(message.get("content")).are_of_tools:
            return _hidden_message(message, placeholders.words or HIDDEN)
        shown = self.without_hidden(message)
        rest = shown if placeholders.words is None else _replace_strings(shown, "", placeholders.words)
        return {**rest, "content": list(_hidden_parts(shown["content"], placeholders))}

    def _messages_with_placeholders(self, messages: list[Any]) -> Iterable[tuple[Any, _Placeholders]]:
        """Yield each element of a list with its placeholders. An element that is no message has none."""
        tracker = _OffRecordTracker(self._markers)
        for message in messages:
            yield message, self._placeholders(message, tracker) if _is_message(message) else _Placeholders()

    def _placeholders(self, message: Mapping[str, Any], tracker: _OffRecordTracker) -> _Placeholders:
        """Return what replaces the parts of a message. The tracker gets its turns in order: results, words, calls."""
        parts = split_content(message.get("content"))
        results = [tracker.next_placeholder(_result_text(part), is_person=False) for part in parts.results]
        text, words = _message_text(message), None
        is_person = self._is_from_person(message) and not CODE_OUTPUT.match(text)
        # No turn is read from a person's message without words and pictures, so it does not end what is off the record.
        if text.strip() or _has_pictures(_words(message)) or not (is_person or parts.are_of_tools):
            is_also_hidden = bool(self._also_hidden) and composed(text) in self._also_hidden
            words = tracker.next_placeholder(text, is_person=is_person, is_also_hidden=is_also_hidden)
        calls = [words or tracker.next_placeholder(_call_text(part), is_person=False) for part in parts.calls]
        if message.get("id") in self._ids:
            return _Placeholders(words or HIDDEN, (HIDDEN,) * len(calls), (HIDDEN,) * len(results))
        return _Placeholders(words, tuple(calls), tuple(results))

    def _is_from_person(self, message: Mapping[str, Any]) -> bool:
        if message.get("type") in ("AssistantMessage", "ToolCallSummaryMessage") or message.get("role") in TOOL_ROLES:
            return False
        names = (message.get(key) for key in ("source", "author_name", "name", "role"))
        speaker = next((name for name in names if isinstance(name, str) and name), "")
        return composed(speaker).casefold() in self._humans


def _content_words(text: str, fewest_letters: int = _CONTENT_LETTERS) -> set[str]:
    return (
        {word for word in map(str.casefold, _WORD.findall(text)) if len(word) >= fewest_letters} - STOP_WORDS - _COMMON
    )


def _is_message(value: object) -> bool:
    if not isinstance(value, Mapping) or value.get("type") in _NO_WORDS or value.get("role") in ("system", "developer"):
        return False
    if value.get("type") in _WITHOUT_CONTENT:
        return True
    has_content = "content" in value or isinstance(value.get("contents"), list)
    return has_content and any(key in value for key in ("source", "role", "name", "type"))


def _words(message: Mapping[str, Any]) -> Any:
    return split_content(message["content"]).words if "content" in message else message.get("contents")


def _message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message, including its thought, the arguments of its tool calls, and results of tools."""
    if message.get("type") in _WITHOUT_CONTENT:
        return "\n".join(_strings(message))
    content = _words(message)
    parts = content if isinstance(content, list) else [content]
    texts = ("\n".join(_strings(part)) if _is_tool_part(part) else _part_text(part) for part in parts)
    beside = (message.get("thought"), *_strings(message.get("tool_calls")), *_strings(message.get("function_call")))
    return "\n".join(text for text in (*texts, *beside) if isinstance(text, str))


def _part_text(part: object) -> object:
    return part.get("text") if isinstance(part, Mapping) else part


def _strings(value: Any, key: str = "") -> Iterable[str]:
    if isinstance(value, str) and key not in NEVER_HIDDEN:
        yield value
    elif isinstance(value, Mapping) and key not in NEVER_HIDDEN:
        for name, inner in value.items():
            yield from _strings(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, key)


def _hidden_message(message: Mapping[str, Any], placeholder: str) -> Any:
    hidden, content = _replace_strings(message, "", placeholder), message.get("content")
    if isinstance(content, list) and not any(map(_is_tool_part, content)):
        # A list of words and pictures becomes a list of one placeholder.
        hidden["content"] = [placeholder]
    return hidden


def _hidden_strings(message: Mapping[str, Any], placeholders: _Placeholders) -> Iterable[str]:
    """Yield the strings of a message that are off the record."""
    parts = split_content(message.get("content"))
    if placeholders.words is not None:
        yield from _strings({**message, "content": parts.words})
    for part, placeholder in zip(
        (*parts.calls, *parts.results), (*placeholders.calls, *placeholders.results), strict=True
    ):
        if placeholder is not None:
            yield from _strings(part)


def _hidden_parts(content: list[Any], placeholders: _Placeholders) -> Iterable[Any]:
    """Yield the parts of a message. A hidden call and its result keep their ids, which connect them."""
    words, calls, results = placeholders.words, iter(placeholders.calls), iter(placeholders.results)
    for part in content:
        if is_tool_result(part):
            placeholder = next(results)
            yield part if placeholder is None else {**_never_hidden(part), "content": placeholder}
        elif is_tool_call(part):
            yield part if next(calls) is None else {**_never_hidden(part), "input": {}}
        elif placeholders.words is None:
            yield part
        elif words is not None:
            yield {"type": "text", "text": words}
            words = None


def _never_hidden(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name in NEVER_HIDDEN}


def _result_text(part: Mapping[str, Any]) -> str:
    return "\n".join(_strings(part))


def _call_text(part: Mapping[str, Any]) -> str:
    return f"{part.get('name')} {json.dumps(part.get('input'), ensure_ascii=False)}"


def _has_pictures(words: Any) -> bool:
    """Return whether the content of a message holds something besides text."""
    parts = words if isinstance(words, list) else [words]
    return any(isinstance(part, Mapping) and not isinstance(part.get("text"), str) for part in parts)


def _is_tool_part(part: object) -> bool:
    """Return whether a part of a message of AutoGen is a call of a tool, or its result."""
    return isinstance(part, Mapping) and not {"arguments", "call_id"}.isdisjoint(part)


def _replace_strings(value: Any, key: str, placeholder: str) -> Any:
    """Return a value of a message, which stands under this key, with each of its strings replaced."""
    if isinstance(value, str):
        return ("{}" if key == "arguments" else placeholder) if value else value
    if isinstance(value, Mapping):
        return {
            name: inner if name in NEVER_HIDDEN else _replace_strings(inner, name, placeholder)
            for name, inner in without_application_data(value).items()
        }
    if isinstance(value, list):
        return [_replace_strings(inner, key, placeholder) for inner in value]
    return value
