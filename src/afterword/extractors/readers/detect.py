"""Recognise a saved state by its shape alone: version strings never changed when layouts did."""

from __future__ import annotations

import re
from collections.abc import Iterator

from afterword.extractors.errors import LayoutUnknown, StateBroken
from afterword.extractors.readers.agentchat import is_message, read_messages
from afterword.extractors.readers.copies import merged
from afterword.extractors.readers.legacy import Side, is_role_list, read_chat_messages, read_role_list
from afterword.extractors.readers.limits import parse_text
from afterword.extractors.readers.openai_messages import is_role_message
from afterword.extractors.readers.teams import context_of, is_team_part, read_agent, read_team
from afterword.extractors.readers.utterances import Item, Notes, Reading

SUPPORTED = (
    "states of AutoGen agents and teams (0.4 to 0.7), TaskResult and message lists, chat histories of AutoGen v0.2 and "
    "ag2 before 1.0, and OpenAI message lists"
)
_DEEPEST_WRAPPING = 4
_MOST_KEYS_SHOWN = 12
_MOST_LOOKED_AT = 1000
_LISTS = {"chat_history": "v0.2 chat result", "history": "OpenAI agent state", "messages": "messages"}
_KEY_SHOWN = re.compile(r"[A-Za-z_][\w./-]{0,39}")
_TYPE_NAMES = {dict: "object", list: "list", str: "text", int: "number", float: "number", bool: "flag"}


def recognise(data: object, notes: Notes, side: Side) -> Reading:
    """Return what the saved state says.

    Raises `LayoutUnknown`, naming types and keys only, where nothing in it looks like a saved conversation.
    """
    reading = _recognise(data, notes, side, 0)
    if reading is None:
        raise LayoutUnknown(f"no saved conversation is recognised in {_described(data)}; supported are {SUPPORTED}")
    return reading


def _recognise(data: object, notes: Notes, side: Side, depth: int) -> Reading | None:
    if depth > _DEEPEST_WRAPPING:
        return None
    if isinstance(data, str):
        return _in_text(data, notes, side, depth)
    if isinstance(data, list):
        return _in_list(data, notes, side, depth)
    if isinstance(data, dict):
        return _in_object(data, notes, side) or _inside(data, notes, side, depth)
    return None


def _in_text(text: str, notes: Notes, side: Side, depth: int) -> Reading | None:
    """Read a state that was saved as one more JSON string."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return None
    try:
        data = parse_text(text)
    except StateBroken:
        return None
    return _recognise(data, notes, side, depth + 1)


def _in_list(data: list[object], notes: Notes, side: Side, depth: int) -> Reading | None:
    layout = "message list with roles" if any(map(is_role_message, data[:1])) else "message list"
    return _in_messages(data, notes, side, layout) or _joined("list of states", data, notes, side, depth)


def _shapes(items: list[object]) -> tuple[int, int]:
    """Count the items with a role and those with a type; the first thousand tell."""
    looked_at = items[:_MOST_LOOKED_AT]
    return sum(map(is_role_message, looked_at)), sum(map(is_message, looked_at))


def _in_object(data: Item, notes: Notes, side: Side) -> Reading | None:
    if isinstance(data.get("agent_states"), dict):
        return read_team(data["agent_states"], notes)
    inner = data.get("inner_team_state")
    if isinstance(inner, dict) and isinstance(inner.get("agent_states"), dict):
        return read_team(inner["agent_states"], notes, "state of a society of mind")
    if isinstance(data.get("message_thread"), list) or isinstance(data.get("agent_state"), dict):
        return read_team({"": data}, notes, "part of a team state")
    return _in_lists(data, notes, side) or _in_map(data, notes, side) or _without_words(data, notes)


def _in_lists(data: Item, notes: Notes, side: Side) -> Reading | None:
    """Read an object that holds its words in one list."""
    if context_of(data) is not None and ("llm_context" in data or "model_context" in data):
        return read_agent(data, notes)
    for name, layout in _LISTS.items():
        messages = data.get(name)
        if isinstance(messages, list):
            told = Side(side.people, side.owner, side.partner, name == "chat_history" and _is_chat_result(data))
            reading = _in_messages(messages, notes, told, "task result" if "stop_reason" in data else layout)
            if reading is not None:
                return reading
    return None


def _in_messages(messages: list[object], notes: Notes, side: Side, layout: str) -> Reading | None:
    roles, typed = _shapes(messages)
    if roles > typed:
        return read_role_list(messages, notes, side, layout)
    if typed or not messages:
        return Reading(layout, merged((), read_messages(messages, notes)))
    return None


def _is_chat_result(data: Item) -> bool:
    return "chat_id" in data or "cost" in data or "human_input" in data


def _in_map(data: Item, notes: Notes, side: Side) -> Reading | None:
    """Read a map by name: a runtime's `<type>/<key>`, or a v0.2 agent's list for each partner."""
    if any(is_team_part(value) and "agent_states" not in value for value in data.values()):
        return read_team(data, notes, "runtime state")
    if any(map(is_role_list, data.values())):
        return read_chat_messages(data, notes, side)
    return None


def _without_words(data: Item, notes: Notes) -> Reading | None:
    """Recognise states that never hold words: of executors and proxies, or of agents whose thread is elsewhere."""
    kind = data.get("type")
    if not isinstance(kind, str) or not kind.endswith("State"):
        return None
    if "thread_id" in data:
        notes.skip("words kept by the provider")
    return Reading("state without words", [])


def _inside(data: Item, notes: Notes, side: Side, depth: int) -> Reading | None:
    return _joined("wrapped state", list(data.values()), notes, side, depth)


def _joined(layout: str, values: list[object], notes: Notes, side: Side, depth: int) -> Reading | None:
    found = list(_all_recognised(values, notes, side, depth))
    if not found:
        return None
    return Reading(
        found[0].layout if len(found) == 1 else layout,
        [said for reading in found for said in reading.utterances],
        frozenset().union(*(reading.agents for reading in found)),
        frozenset().union(*(reading.outsiders for reading in found)),
    )


def _all_recognised(values: list[object], notes: Notes, side: Side, depth: int) -> Iterator[Reading]:
    for value in values:
        is_candidate = isinstance(value, (dict, str)) or (isinstance(value, list) and value)
        reading = _recognise(value, notes, side, depth + 1) if is_candidate else None
        if reading is not None:
            yield reading


def _described(data: object) -> str:
    """Say what the top level looks like, without a word of anyone's."""
    if isinstance(data, dict):
        shown = [f"{_shown(key)} ({_type_name(data[key])})" for key in list(data)[:_MOST_KEYS_SHOWN]]
        more = f" and {len(data) - len(shown)} more" if len(data) > len(shown) else ""
        return f"an object with the keys {', '.join(shown)}{more}" if shown else "an empty object"
    if isinstance(data, list):
        return f"a list of {len(data)} whose first item is: {_type_name(data[0])}" if data else "an empty list"
    return f"a single value: {_type_name(data)}"


def _shown(key: object) -> str:
    return key if isinstance(key, str) and _KEY_SHOWN.fullmatch(key) else "(a longer key)"


def _type_name(value: object) -> str:
    return _TYPE_NAMES.get(type(value), "null" if value is None else type(value).__name__)
