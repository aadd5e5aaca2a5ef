"""A session's messages grouped into acts: who does what until somebody else goes on. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from afterword.evaluation.scenarios import Message


@dataclass(slots=True)
class Act:
    """One utterance of a person, or all that an agent does until it has answered or handed over."""

    source: str
    is_human: bool
    messages: list[Message] = field(default_factory=list)
    memory: str | None = None


def acts(messages: Sequence[Message], everybody: Sequence[str]) -> Iterator[Act]:
    """Yield the acts of a session; a memory belongs to every later act of an agent, system messages to none."""
    memory: str | None = None
    act: Act | None = None
    for message in messages:
        if message.role in ("system", "memory"):
            memory = message.content if message.role == "memory" else memory
        elif message.role == "user":
            if act is not None:
                yield act
            yield Act(message.source, True, [message])
            act = None
        else:
            if act is not None and (act.source != message.source or _is_over(act, message, everybody)):
                yield act
                act = None
            act = act or Act(message.source, False, memory=memory)
            act.messages.append(message)
    if act is not None:
        yield act


def _is_over(act: Act, upcoming: Message, everybody: Sequence[str]) -> bool:
    """Whether an agent has answered, or has handed over and all results are in."""
    last = act.messages[-1].role
    handed_over = any(receiver(one.name, everybody) for one in act.messages)
    return last == "assistant" or (last == "tool_result" and upcoming.role != "tool_result" and handed_over)


def receiver(tool: str, everybody: Sequence[str]) -> str | None:
    """Return to whom a tool hands the conversation, None where it is an ordinary one."""
    return next((name for name in everybody if tool == f"transfer_to_{name}".lower()), None)


def memory_items(memory: str) -> list[str]:
    """Return the single memories of a numbered text, the whole text where it is not numbered."""
    return re.findall(r"^\d+\.\s+(.+)$", memory, re.MULTILINE) or [memory.strip()]
