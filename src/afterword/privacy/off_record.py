"""What was said off the record: never stored, never extracted. Pure.

A person says so at the beginning of a turn. "off the record: ..." hides that turn and the answers to it, "off the
record from now on" and "/off-record" everything until "back on the record" or "/on-record". What is hidden leaves a
placeholder, so that turns keep their numbers, and a saved state that is taken up again stays off the record.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

from afterword.facts.transcripts import Role, Turn

HIDDEN = "[off the record]"
HIDDEN_FROM_HERE = "[off the record from now on]"

OFF = ("off the record", "/off-record")
ON = ("back on the record", "on the record again", "/on-record")

_BEFORE = (
    r"\s*+(?:(?:ok|okay|so|now|well|thanks|thank you|please|alright|all right)\b[,.!:]?\s{1,3}){0,2}"
    r"(?:(?:this is|that's|that is|it's|let's go|let us go|let's be|we're|we are|i'm|going|go)\s(?:strictly\s|now\s)?)?"
)
_FROM_NOW = r"[,:]?\s{1,3}(?:from (?:now|here) on(?:wards)?|for the rest|until (?:i|we|further)\b)"
_ALONE = r"(?:\s(?:now|please|then|again))*\s*+[.!]*\s*+\Z"
_NO_WORDS = frozenset({"SystemMessage", "MemoryQueryEvent"})
_STRUCTURE = frozenset(
    {
        *("type", "source", "id", "created_at", "role", "name", "call_id", "tool_call_id", "models_usage", "version"),
        *("mime_type", "target", "format_string", "is_error", "finish_reason", "full_message_id"),
    }
)
_LONG = 20


class Mark(Enum):
    """What a person's turn says about the record."""

    THIS = "this turn"
    OFF = "from here on"
    ON = "back"


@dataclass(frozen=True, slots=True)
class Markers:
    """The phrases that take a conversation off the record and back, whatever the letter case."""

    off: tuple[str, ...] = OFF
    on: tuple[str, ...] = ON

    def read(self, text: str) -> Mark | None:
        """Return what a person's turn says about the record; "he told me off the record" says nothing."""
        if text.startswith(HIDDEN_FROM_HERE):
            return Mark.OFF
        if text.strip() == HIDDEN:
            return Mark.THIS
        return next((mark for mark, expression in _expressions(self.off, self.on) if expression.match(text)), None)


def off_record(turns: Sequence[Turn], markers: Markers) -> tuple[Turn, ...]:
    """Return the turns with placeholders for what was said off the record; numbers, speakers and times stay."""
    record = _Record(markers)
    return tuple(_shown(turn, record) for turn in turns)


def off_record_state(state: Mapping[str, Any], markers: Markers, humans: Collection[str]) -> dict[str, Any]:
    """Return a copy of a saved state in which what was said off the record is gone from every list of messages.

    `humans` are the names of people. Every message stays where it was, with its type, so that AutoGen loads the state.
    """
    hiding = _Hiding(markers, frozenset(name.casefold() for name in humans))
    hiding.find(state)
    return {key: hiding.without(value) for key, value in state.items()}


def hidden_turns(turns: Iterable[Turn]) -> int:
    """Return how many turns are off the record."""
    return sum(turn.text in (HIDDEN, HIDDEN_FROM_HERE) for turn in turns)


class _Record:
    """Whether we are on the record, turn by turn."""

    def __init__(self, markers: Markers) -> None:
        self._markers = markers
        self._is_off = self._is_aside = False

    def hides(self, text: str, *, by_person: bool) -> str | None:
        """Return what stands in the place of what is said next, None where it is on the record."""
        if not by_person:
            return HIDDEN if self._is_off or self._is_aside else None
        mark = self._markers.read(text)
        self._is_aside = mark is Mark.THIS
        if mark is Mark.OFF:
            self._is_off = True
            return HIDDEN_FROM_HERE
        if mark is Mark.ON:
            self._is_off = False
        return HIDDEN if self._is_off or self._is_aside else None


class _Hiding:
    """The lists of messages in a state: which of their messages are off the record."""

    def __init__(self, markers: Markers, humans: frozenset[str]) -> None:
        self._markers, self._humans = markers, humans
        self._ids: set[str] = set()
        self._texts: set[str] = set()

    def find(self, value: Any) -> None:
        """Note the ids and the longer texts of what is hidden: copies lie where no marker does."""
        if isinstance(value, list):
            for message, placeholder in self._messages(value):
                if placeholder is not None and isinstance(message, Mapping):
                    self._note(message)
        for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
            self.find(inner)

    def without(self, value: Any) -> Any:
        """Return the value without what is hidden."""
        if isinstance(value, str):
            return HIDDEN if value in self._texts else value
        if isinstance(value, Mapping):
            return {key: inner if key in _STRUCTURE else self.without(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [
                self.without(one) if cover is None else _covered(one, cover) for one, cover in self._messages(value)
            ]
        return value

    def _messages(self, items: list[Any]) -> Iterable[tuple[Any, str | None]]:
        """Yield the items of a list, each with what takes its place if it is a message off the record."""
        record = _Record(self._markers)
        for item in items:
            if not _is_message(item):
                yield item, None
                continue
            cover = record.hides(_words(item), by_person=self._is_person(item))
            yield item, cover or (HIDDEN if item.get("id") in self._ids else None)

    def _is_person(self, message: Mapping[str, Any]) -> bool:
        if message.get("type") in ("AssistantMessage", "ToolCallSummaryMessage"):
            return False
        names = (message.get(key) for key in ("source", "name", "role"))
        speaker = next((name for name in names if isinstance(name, str) and name), "")
        return speaker.casefold() in self._humans

    def _note(self, message: Mapping[str, Any]) -> None:
        if isinstance(message.get("id"), str):
            self._ids.add(message["id"])
        self._texts |= {text for text in _strings(message) if len(text) >= _LONG}


@lru_cache(maxsize=16)
def _expressions(off: tuple[str, ...], on: tuple[str, ...]) -> tuple[tuple[Mark, re.Pattern[str]], ...]:
    away, commands = _any(off), _any(tuple(phrase for phrase in off if phrase.startswith("/")))
    found = {
        Mark.OFF: rf"{_BEFORE}(?:{commands}(?!\w)|{away}(?:{_FROM_NOW}|{_ALONE}))",
        Mark.ON: rf"{_BEFORE}{_any(on)}(?!\w)",
        Mark.THIS: rf"{_BEFORE}{away}\s?[:,;.!\n–—-]",
    }
    return tuple((mark, re.compile(text, re.IGNORECASE)) for mark, text in found.items())


def _any(phrases: tuple[str, ...]) -> str:
    words = (r"[\s-]".join(map(re.escape, phrase.split())) for phrase in phrases if phrase.strip())
    return f"(?:{'|'.join(words) or '(?!)'})"


def _shown(turn: Turn, record: _Record) -> Turn:
    if turn.role in (Role.SYSTEM, Role.MEMORY):
        return turn
    cover = record.hides(turn.text, by_person=turn.role is Role.HUMAN)
    return turn if cover is None or cover == turn.text else replace(turn, text=cover)


def _is_message(item: object) -> bool:
    if not isinstance(item, Mapping) or item.get("type") in _NO_WORDS or item.get("role") in ("system", "developer"):
        return False
    return "content" in item and ("source" in item or "role" in item or "name" in item or "type" in item)


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


def _strings(value: Any, key: str = "") -> Iterable[str]:
    if isinstance(value, str) and key not in _STRUCTURE:
        yield value
    elif isinstance(value, Mapping) and key not in _STRUCTURE:
        for name, inner in value.items():
            yield from _strings(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, key)


def _covered(message: Mapping[str, Any], cover: str) -> dict[str, Any]:
    covered = {key: value if key in _STRUCTURE else _blank(value, key, cover) for key, value in message.items()}
    content = message.get("content")
    if isinstance(content, list) and not any(_is_tool_part(part) for part in content):
        # Words and pictures: what is left is one word.
        covered["content"] = [cover]
    return covered


def _is_tool_part(part: object) -> bool:
    return isinstance(part, Mapping) and not {"arguments", "call_id"}.isdisjoint(part)


def _blank(value: Any, key: str, cover: str) -> Any:
    if isinstance(value, str):
        return ("{}" if key == "arguments" else cover) if value else value
    if isinstance(value, Mapping):
        if key == "metadata":
            return {}
        return {name: inner if name in _STRUCTURE else _blank(inner, name, cover) for name, inner in value.items()}
    if isinstance(value, list):
        return [_blank(inner, key, cover) for inner in value]
    return value
