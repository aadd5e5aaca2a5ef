"""Recognise the layout of a saved state by its shape. Version strings are ignored: they did not change with layouts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from afterword.extractors.errors import LayoutUnknown, StateBroken
from afterword.extractors.readers.agent_framework import (
    is_framework_message,
    read_framework_messages,
    read_framework_state,
)
from afterword.extractors.readers.agentchat import (
    conversation_outside_team,
    is_agentchat_message,
    read_agentchat_messages,
)
from afterword.extractors.readers.duplicates import merge_views
from afterword.extractors.readers.limits import parse_json_text
from afterword.extractors.readers.role_messages import (
    SpeakerClues,
    is_role_list,
    is_role_message,
    read_role_list,
    read_v02_chat_messages,
)
from afterword.extractors.readers.teams import context_messages, inner_agent_states, is_team_or_part, read_team
from afterword.extractors.readers.utterances import JsonObject, ReadingLog, SavedConversation

SUPPORTED = (
    "AutoGen agents, teams, TaskResult and message lists (0.4 to 0.7), histories of AutoGen v0.2 and ag2 before 1.0, "
    "Agent Framework sessions, histories and checkpoints, OpenAI Agents SDK sessions and run states, "
    "OpenAI message lists"
)
_DEEPEST_WRAPPING = 4
_MOST_KEYS_SHOWN = 12
_MOST_MESSAGES_CHECKED = 1000
_LISTS = {"chat_history": "v0.2 chat result", "history": "OpenAI agent state", "messages": "messages"}
_KEY_SHOWN = re.compile(r"[A-Za-z_][\w./-]{0,39}")
_TYPE_NAMES = {dict: "object", list: "list", str: "text", int: "number", float: "number", bool: "flag"}


def read_known_layout(state: object, log: ReadingLog, clues: SpeakerClues) -> SavedConversation:
    """Return the conversation that a saved state holds.

    Raises `LayoutUnknown` if nothing in it looks like a saved conversation. The message names only types and keys.
    """
    conversation = _read_value(state, log, clues, 0)
    if conversation is None:
        raise LayoutUnknown(f"no saved conversation is recognised in {_outline(state)}; supported are {SUPPORTED}")
    return conversation


def _read_value(state: object, log: ReadingLog, clues: SpeakerClues, depth: int) -> SavedConversation | None:
    if depth > _DEEPEST_WRAPPING:
        return None
    if isinstance(state, str):
        return _read_text(state, log, clues, depth)
    if isinstance(state, list):
        layout = "message list with roles" if any(map(is_role_message, state[:1])) else "message list"
        conversation = _read_if_messages(state, log, clues, layout)
        return conversation or _joined_conversations("list of states", state, log, clues, depth)
    if isinstance(state, dict):
        values = list(state.values())
        return _read_object(state, log, clues) or _joined_conversations("wrapped state", values, log, clues, depth)
    return None


def _read_text(text: str, log: ReadingLog, clues: SpeakerClues, depth: int) -> SavedConversation | None:
    """Read a state that was saved as a JSON string inside JSON."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return None
    try:
        state = parse_json_text(text)
    except StateBroken:
        return None
    return _read_value(state, log, clues, depth + 1)


def _read_object(state: JsonObject, log: ReadingLog, clues: SpeakerClues) -> SavedConversation | None:
    framework = read_framework_state(state, log)
    if framework is not None:
        return framework
    if "$schemaVersion" in state and "original_input" in state:
        return read_role_list(_run_messages(state), log, clues, "Agents SDK run state")
    if isinstance(state.get("agent_states"), dict):
        return read_team(state["agent_states"], log)
    inner = inner_agent_states(state.get("inner_team_state"))
    if inner is not None:
        return read_team(inner, log, "state of a society of mind")
    if isinstance(state.get("message_thread"), list) or isinstance(state.get("agent_state"), dict):
        return read_team({"": state}, log, "part of a team state")
    return (
        _read_message_list(state, log, clues)
        or _read_agents_or_partners(state, log, clues)
        or _read_state_without_messages(state, log)
    )


def _run_messages(state: JsonObject) -> list[Any]:
    """Return the input and the generated items of a run of the OpenAI Agents SDK (`RunState.to_json`)."""
    began = state["original_input"]
    asked = [{"role": "user", "content": began}] if isinstance(began, str) else _list_or_empty(began)
    # `generated_items` may have been shortened for the next agent.
    generated = _list_or_empty(state.get("session_items")) or _list_or_empty(state.get("generated_items"))
    return asked + [each.get("raw_item") if isinstance(each, dict) else each for each in generated]


def _list_or_empty(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_message_list(state: JsonObject, log: ReadingLog, clues: SpeakerClues) -> SavedConversation | None:
    """Read an object that holds its messages in one list."""
    context = context_messages(state)
    if context is not None and ("llm_context" in state or "model_context" in state):
        return conversation_outside_team("agent state", context, read_agentchat_messages(context, log))
    is_chat_result = not {"chat_id", "cost", "human_input"}.isdisjoint(state)
    for name, layout in _LISTS.items():
        messages = state.get(name)
        if isinstance(messages, list):
            list_clues = replace(clues, is_v02=name == "chat_history" and is_chat_result)
            list_layout = "task result" if "stop_reason" in state else layout
            conversation = _read_if_messages(messages, log, list_clues, list_layout)
            if conversation is not None:
                return conversation
    return None


def _read_if_messages(
    messages: list[object], log: ReadingLog, clues: SpeakerClues, layout: str
) -> SavedConversation | None:
    """Return the conversation in a list of messages, of whichever form they are. None if they are no messages."""
    checked = messages[:_MOST_MESSAGES_CHECKED]
    if any(map(is_framework_message, checked)):
        return read_framework_messages(messages, log)
    with_role, with_type = sum(map(is_role_message, checked)), sum(map(is_agentchat_message, checked))
    if with_role > with_type:
        return read_role_list(messages, log, clues, layout)
    if with_type or not messages:
        return conversation_outside_team(layout, messages, merge_views((), read_agentchat_messages(messages, log)))
    return None


def _read_agents_or_partners(state: JsonObject, log: ReadingLog, clues: SpeakerClues) -> SavedConversation | None:
    """Read a mapping: of agents (`<type>/<key>`) to states in a runtime, or of partners to messages in v0.2."""
    if any(is_team_or_part(value) and "agent_states" not in value for value in state.values()):
        return read_team(state, log, "runtime state")
    if any(map(is_role_list, state.values())):
        return read_v02_chat_messages(state, log, clues)
    return None


def _read_state_without_messages(state: JsonObject, log: ReadingLog) -> SavedConversation | None:
    """Recognise states without messages: of executors and proxies, and of agents whose thread is stored elsewhere."""
    kind, context = state.get("type"), state.get("llm_context", state.get("model_context"))
    messages = context.get("messages") if isinstance(context, dict) else context
    if not isinstance(kind, str) or not kind.endswith("State") or messages is not None:
        return None  # what is in the place of the messages would have been read if it were a list
    if "thread_id" in state:
        log.skip("words kept by the provider")
    return SavedConversation("state without words", [])


def _joined_conversations(
    layout: str, values: list[object], log: ReadingLog, clues: SpeakerClues, depth: int
) -> SavedConversation | None:
    """Return the conversations in all values joined into one, or None if there is none."""
    candidates = [value for value in values if isinstance(value, (dict, str)) or (isinstance(value, list) and value)]
    recognised = (_read_value(value, log, clues, depth + 1) for value in candidates)
    conversations = [conversation for conversation in recognised if conversation is not None]
    if not conversations:
        return None
    agents: frozenset[str] = frozenset().union(*(conversation.agents for conversation in conversations))
    return SavedConversation(
        conversations[0].layout if len(conversations) == 1 else layout,
        [utterance for conversation in conversations for utterance in conversation.utterances],
        agents,
        frozenset().union(*(conversation.outsiders for conversation in conversations)),
        frozenset().union(*(conversation.unclear_speakers for conversation in conversations)) - agents,
    )


def _outline(state: object) -> str:
    """Return a description of the top level of a state, without any words of a conversation."""
    if isinstance(state, dict):
        shown = [f"{_shown_key(key)} ({_type_name(state[key])})" for key in list(state)[:_MOST_KEYS_SHOWN]]
        more = f" and {len(state) - len(shown)} more" if len(state) > len(shown) else ""
        return f"an object with the keys {', '.join(shown)}{more}" if shown else "an empty object"
    if isinstance(state, list):
        return f"a list of {len(state)} whose first item is: {_type_name(state[0])}" if state else "an empty list"
    return f"a single value: {_type_name(state)}"


def _shown_key(key: object) -> str:
    return key if isinstance(key, str) and _KEY_SHOWN.fullmatch(key) else "(a longer key)"


def _type_name(value: object) -> str:
    return _TYPE_NAMES.get(type(value), "null" if value is None else type(value).__name__)
