"""Group the messages of a session by speaker turn. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from afterword.evaluation.scenarios.scenario import Message


@dataclass(slots=True)
class SpeakerTurn:
    """One message of a person, or all that an agent does until it has answered or handed over.

    `memory` is the text of the agent's memory at that point.
    """

    source: str
    is_human: bool
    messages: list[Message] = field(default_factory=list)
    memory: str | None = None


def speaker_turns(messages: Sequence[Message], speakers: Sequence[str]) -> Iterator[SpeakerTurn]:
    """Yield the speaker turns of a session.

    A memory message belongs to every later turn of an agent. System messages belong to no turn.
    """
    memory: str | None = None
    turn: SpeakerTurn | None = None
    for message in messages:
        if message.role in ("system", "memory"):
            memory = message.content if message.role == "memory" else memory
        elif message.role == "user":
            if turn is not None:
                yield turn
            yield SpeakerTurn(message.source, True, [message])
            turn = None
        else:
            if turn is not None and (turn.source != message.source or _is_over(turn, message, speakers)):
                yield turn
                turn = None
            turn = turn or SpeakerTurn(message.source, False, memory=memory)
            turn.messages.append(message)
    if turn is not None:
        yield turn


def _is_over(turn: SpeakerTurn, next_message: Message, speakers: Sequence[str]) -> bool:
    """Return whether the agent has answered, or has handed over and has all its tool results."""
    last = turn.messages[-1].role
    handed_over = any(handoff_target(message.name, speakers) for message in turn.messages)
    return last == "assistant" or (last == "tool_result" and next_message.role != "tool_result" and handed_over)


def handoff_target(tool: str, speakers: Sequence[str]) -> str | None:
    """Return the speaker to whom a tool hands the conversation, None if it is an ordinary tool."""
    return next((name for name in speakers if tool == f"transfer_to_{name}".lower()), None)


def memory_entries(memory: str) -> list[str]:
    """Return the entries of a numbered memory text, or the whole text if it is not numbered."""
    return re.findall(r"^\d+\.\s+(.+)$", memory, re.MULTILINE) or [memory.strip()]
