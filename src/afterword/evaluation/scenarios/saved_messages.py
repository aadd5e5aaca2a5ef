"""Write a session of a scenario as a list of AutoGen's messages, in the order in which an agent or a team had them.

The list reads into the same turns as the state that AutoGen saves. Only messages of a team have times. The own system
message of an agent is not in its state, and an agent is told its memory again in each of its turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from afterword.evaluation.scenarios.scenario import Message, Session

Json = dict[str, Any]

LIST_MEMORY = "Relevant memory content (in chronological order):"
"""The first line of a block of AutoGen's ListMemory, which stands between line breaks."""
HANDOFF = "transfer_to_"
"""The beginning of the names of the tools with which an agent hands over."""
TEAMS = frozenset({"round_robin", "selector", "swarm", "team"})
_TYPES = {
    "user": "TextMessage",
    "assistant": "TextMessage",
    "thought": "ThoughtEvent",
    "system": "SystemMessage",
    "tool_call": "ToolCallRequestEvent",
    "tool_result": "ToolCallExecutionEvent",
}
_WITHOUT_THOUGHTS = frozenset({"v02", "openai"})
TimedMessage = tuple[Json, datetime | None]
"""A saved message, and the time at which it was said if the scenario gives one."""


def saved_messages(session: Session) -> list[Json]:
    """Return the messages of a session as AutoGen saves them."""
    turns = [session.messages] if session.container == "openai" else _speaker_turns(session.messages)
    timed = [message for turn in turns for message in _saved_turn(turn, session.container)]
    if session.container not in TEAMS:
        return [message for message, _ in timed]
    times = _message_times([at for _, at in timed], session)
    return [{**message, "created_at": at.isoformat()} for (message, _), at in zip(timed, times, strict=True)]


def _speaker_turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield the turns of the speakers: one message of a person, or all that an agent does until it has answered.

    The turn of an agent begins with its memory at that time.
    """
    memory: Message | None = None
    turn: list[Message] = []
    for message in messages:
        if message.role == "memory":
            memory = message
        elif message.role != "system":
            if turn and _is_turn_over(turn, message):
                yield turn
                turn = []
            if not turn and memory is not None and message.role != "user":
                turn.append(memory.model_copy(update={"source": message.source}))
            turn.append(message)
    if turn:
        yield turn


def _is_turn_over(turn: Sequence[Message], following: Message) -> bool:
    """Return whether another speaker follows, or an agent has answered, or has handed over and has all its results."""
    last = turn[-1]
    if "user" in (last.role, following.role) or last.source != following.source or last.role == "assistant":
        return True
    has_results = last.role == "tool_result" and following.role != "tool_result"
    return has_results and any(message.name.startswith(HANDOFF) for message in turn)


def _saved_turn(turn: Sequence[Message], container: str) -> Iterator[TimedMessage]:
    """Yield the saved messages of a turn. A member of a team that ends it with tools says their results."""
    for role, group in groupby(turn, key=lambda message: message.role):
        yield from _saved_group(role, list(group), container)
    results = [message for message in turn if message.role == "tool_result"]
    if container in TEAMS and results and turn[-1].role != "assistant":
        yield _said_results(results), None


def _saved_group(role: str, messages: Sequence[Message], container: str) -> Iterator[TimedMessage]:
    """Yield the saved messages of adjacent messages with the same role."""
    if role == "memory":
        yield _told_memory_json(messages[-1], is_team=container in TEAMS), None
    elif role in ("tool_call", "tool_result"):
        contents = list(map(_call_json if role == "tool_call" else _result_json, messages))
        yield _message_json(role, messages[0], contents), messages[-1].at
    elif not (role == "thought" and container in _WITHOUT_THOUGHTS):
        yield from ((_message_json(role, message, message.content), message.at) for message in messages)


def _said_results(results: Sequence[Message]) -> Json:
    """Return the message with which a member of a team says the results of its tools, or hands over."""
    handed_over = next((message for message in results if message.name.startswith(HANDOFF)), None)
    if handed_over is not None:
        return {"type": "HandoffMessage", "source": handed_over.source, "content": handed_over.content}
    summary = "\n".join(result.content for result in results)
    return {"type": "ToolCallSummaryMessage", "source": results[0].source, "content": summary}


def _message_json(role: str, message: Message, content: object) -> Json:
    return {"type": _TYPES[role], "source": message.source or role, "content": content}


def _told_memory_json(message: Message, *, is_team: bool) -> Json:
    """Return what an agent is told from its memory: in a team's thread entry by entry, else as a system message."""
    if not is_team:
        is_block = message.content.strip().startswith(LIST_MEMORY)
        return _message_json("system", message, f"\n{message.content.strip()}\n" if is_block else message.content)
    entries = re.findall(r"^\d+\.\s+(.+)$", message.content, re.MULTILINE) or [message.content.strip()]
    contents = [{"content": entry, "mime_type": "text/plain"} for entry in entries]
    return {"type": "MemoryQueryEvent", "source": message.source, "content": contents}


def _call_json(message: Message) -> Json:
    return {"id": message.call_id, "name": message.name, "arguments": message.arguments_text}


def _result_json(message: Message) -> Json:
    return {
        "call_id": message.call_id,
        "name": message.name,
        "content": message.content,
        "is_error": message.is_error,
    }


def _message_times(said_at: Sequence[datetime | None], session: Session) -> list[datetime]:
    """Return a time for each message. Those without one are spread evenly between their neighbours."""
    known = {place: at for place, at in enumerate(said_at) if at is not None}
    known.setdefault(0, session.started_at)
    known.setdefault(len(said_at) - 1, max(session.ended_at, *known.values()))
    times = []
    for place in range(len(said_at)):
        before, after = max(index for index in known if index <= place), min(index for index in known if index >= place)
        share = (place - before) / (after - before) if after > before else 0
        span_us = (known[after] - known[before]) // timedelta(microseconds=1)
        times.append(known[before] + timedelta(microseconds=int(span_us * share)))
    return times
