"""Blanks forgotten words in the strings of a saved state. Pure."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from afterword.privacy.blanking import FORGOTTEN, letters_and_digits
from afterword.privacy.state_keys import (
    NEVER_BLANKED,
    is_tool_call,
    is_tool_result,
    split_content,
    without_application_data,
)

_SHORTEST_INSIDE = 4


def _blanked_list(_: list[Any], blanked: list[Any]) -> list[Any]:
    return blanked


def blank_saved_state(
    value: Any,
    blank: Callable[[str], str],
    blank_list: Callable[[list[Any], list[Any]], list[Any]] = _blanked_list,
) -> Any:
    """Return a copy of a saved state with each of its strings blanked, except names and ids.

    `blank_list` gets each list, and the same list with blanked strings, and returns what replaces it. A message
    that was blanked loses what the application stored beside its words (`without_application_data`), because that may
    hold one of them, for example the attribute of a fact.
    """
    if isinstance(value, str):
        return blank(value)
    if isinstance(value, Mapping):
        blanked = {name: _blanked_entry(value, name, blank, blank_list) for name in value}
        is_changed = any(blanked.get(name) != value.get(name) for name in ("content", "contents", "text"))
        return without_application_data(blanked) if is_changed else blanked
    if isinstance(value, list):
        return blank_list(value, [blank_saved_state(inner, blank, blank_list) for inner in value])
    return value


def _blanked_entry(
    value: Mapping[str, Any],
    name: str,
    blank: Callable[[str], str],
    blank_list: Callable[[list[Any], list[Any]], list[Any]],
) -> Any:
    inner = value[name]
    if isinstance(inner, str) and name in NEVER_BLANKED:
        return inner
    if name == "input" and is_tool_call(value):
        return _blanked_arguments(inner, blank)
    return blank_saved_state(inner, blank, blank_list)


def _blanked_arguments(arguments: Any, blank: Callable[[str], str]) -> Any:
    """Return the arguments of a tool, blanked first as they are written in a turn, and then string by string.

    None of them stay if that leaves no JSON object, for example because a number or a key was forgotten.
    """
    written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    shown = keep_json_valid(written, blank(written))
    return _blanked_strings(arguments if shown == written else json.loads(shown), blank)


def _blanked_strings(value: Any, blank: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return blank(value)
    if isinstance(value, Mapping):
        return {name: _blanked_strings(inner, blank) for name, inner in value.items()}
    return [_blanked_strings(inner, blank) for inner in value] if isinstance(value, list) else value


class StateBlanking:
    """Blanks the strings of a saved state in the same way as the turns that were read from it.

    `pairs` are the texts of these turns before and after, `forgotten_texts` the letters and digits of turns that were
    forgotten completely, and `blank_words` blanks forgotten words in any other text.
    """

    def __init__(
        self, blank_words: Callable[[str], str], pairs: Iterable[tuple[str, str]], forgotten_texts: Iterable[str]
    ) -> None:
        self._blank_words = blank_words
        self._forgotten_texts = frozenset(filter(None, forgotten_texts))
        self._lengths = {len(turn) for turn in self._forgotten_texts}
        # A searched text has no line break, so a match lies within one turn.
        self._joined_texts = "\n".join(self._forgotten_texts)
        self._replacements: dict[str, list[str | None]] = defaultdict(list)
        self._seen: Counter[str] = Counter()
        for old, new in pairs:
            self._replacements[letters_and_digits(old)].append(None if old == new else new)

    def blank(self, text: str) -> str:
        """Return a string of the state without forgotten words."""
        plain = letters_and_digits(text)
        if plain in self._replacements:
            # Of several turns with the same words, only the earlier ones were forgotten. A state lists turns in order.
            replacements = self._replacements[plain]
            replacement = replacements[self._seen[plain] % len(replacements)]
            self._seen[plain] += 1
            return text if replacement is None else replacement
        if len(plain) >= _SHORTEST_INSIDE and (plain in self._joined_texts or self._holds_whole_turn(plain)):
            return keep_json_valid(text, FORGOTTEN)
        return keep_json_valid(text, self._blank_words(text))

    def without_pictures_if_emptied(self, parts: list[Any], blanked: list[Any]) -> list[Any]:
        """Return the blanked parts of a message; only its placeholder if its words were forgotten completely."""
        said = split_content(parts).words
        texts = [letters_and_digits(text) for text in map(_text_of_part, said) if text]
        has_pictures = 0 < len(texts) < len(said)
        if not has_pictures or not all(text and text in self._joined_texts for text in texts):
            return blanked
        first = next((part for part in split_content(blanked).words if _text_of_part(part)), None)
        return [part for part in blanked if part is first or is_tool_call(part) or is_tool_result(part)]

    def _holds_whole_turn(self, plain: str) -> bool:
        """Return whether these letters and digits contain a turn that was forgotten completely."""
        if len(plain) * len(self._lengths) > len(self._forgotten_texts):
            return any(turn in plain for turn in self._forgotten_texts)
        return any(
            plain[start : start + length] in self._forgotten_texts
            for length in self._lengths
            for start in range(len(plain) - length + 1)
        )


def keep_json_valid(text: str, shown: str) -> str:
    """Return `shown`, or an empty JSON object or list if `text` is JSON and `shown` is not."""
    if shown == text or text[:1] not in ("{", "["):
        return shown
    try:
        json.loads(text)
    except ValueError:
        return shown
    try:
        json.loads(shown)
    except ValueError:
        return "{}" if text.startswith("{") else "[]"
    return shown


def _text_of_part(part: object) -> str:
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else ""
