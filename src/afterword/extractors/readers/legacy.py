"""Lists of AutoGen v0.2 and ag2: the role is relative to whose list it is, only the name says who speaks.

In a user proxy's list the person's own words have the role `assistant`. So names decide wherever a list may be of this
kind, and a name that is not known to be a person's is an agent's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from afterword.extractors.readers.copies import merged
from afterword.extractors.readers.openai_messages import Voice, is_role_message, plain_voice, read_roles
from afterword.extractors.readers.people import People
from afterword.extractors.readers.utterances import Item, Notes, Reading, Utterance
from afterword.facts.transcripts import Role

AGENT_NAME = "assistant"


@dataclass(frozen=True, slots=True)
class Side:
    """From whose side a list is told: `owner` whose it is, `partner` with whom, `is_v02` where the file shows it."""

    people: People
    owner: str | None = None
    partner: str | None = None
    is_v02: bool = False


def read_role_list(messages: object, notes: Notes, side: Side, layout: str) -> Reading:
    """Return what a list of messages with roles says, whichever kind it is."""
    spoken = [item for item in messages if _is_spoken(item)] if isinstance(messages, list) else []
    return Reading(layout, read_roles(messages, notes, _voice(spoken, messages, side)))


def read_chat_messages(lists: Item, notes: Notes, side: Side) -> Reading:
    """Return what a v0.2 agent's `chat_messages` say: one list for each partner, copies merged."""
    found: list[Utterance] = []
    for partner, messages in lists.items():
        if is_role_list(messages):
            told = Side(side.people, side.owner, partner, side.is_v02)
            found = merged(found, read_role_list(messages, notes, told, "").utterances)
    return Reading("v0.2 chat messages", found)


def is_role_list(value: object) -> bool:
    """Whether the value is a list in which at least one message has a role."""
    return isinstance(value, list) and any(is_role_message(item) for item in value)


def _is_spoken(item: object) -> bool:
    return (
        isinstance(item, dict)
        and item.get("role") in ("user", "assistant")
        and item.get("content") not in (None, "", [])
    )


def _name(item: Mapping[str, object]) -> str | None:
    name = item.get("name")
    return name if isinstance(name, str) and name.strip() else None


def _voice(spoken: list[Item], messages: object, side: Side) -> Voice:
    if not side.is_v02 and not _is_told_by_name(spoken, messages, side):
        if side.owner and side.owner != AGENT_NAME and not any(map(_name, spoken)):
            return lambda message: _mirrored(message, side)
        return plain_voice if side.partner != AGENT_NAME else lambda message: _mirrored(message, side)
    return lambda message: _by_name(message, side)


def _is_told_by_name(spoken: list[Item], messages: object, side: Side) -> bool:
    """Whether the list shows that its roles are relative: any of these marks is enough."""
    return _has_tool_responses(messages) or any(_marks(spoken, side))


def _has_tool_responses(messages: object) -> bool:
    return isinstance(messages, list) and any(isinstance(item, dict) and "tool_responses" in item for item in messages)


def _marks(spoken: list[Item], side: Side) -> Iterator[bool]:
    names = [_name(item) for item in spoken]
    yield any(item["role"] == "assistant" and side.people.has(name) for item, name in zip(spoken, names, strict=True))
    yield any(item["role"] == "user" and name == AGENT_NAME for item, name in zip(spoken, names, strict=True))
    if not spoken or None in names:
        return
    yield any(side.people.has(name) for name in names)
    # Fully named with names that nobody knows: either side may be the person, so nobody is taken for one.
    yield any(item["role"] == "assistant" and name != AGENT_NAME for item, name in zip(spoken, names, strict=True))
    yield len({name for item, name in zip(spoken, names, strict=True) if item["role"] == "user"}) > 1


def _by_name(message: Item, side: Side) -> tuple[str, Role]:
    name = _name(message)
    if name is None:
        return _mirrored(message, side)
    return name, Role.HUMAN if side.people.has(name) else Role.AGENT


def _mirrored(message: Item, side: Side) -> tuple[str, Role]:
    """Tell who speaks in a message without a name: the owner where the role is `assistant`, else the partner."""
    is_own = message.get("role") == "assistant"
    speaker = (side.owner if is_own else side.partner) or AGENT_NAME
    return speaker, Role.HUMAN if side.people.has(speaker) else Role.AGENT
