"""Message lists of AutoGen v0.2 and ag2: a role depends on whose list it is, and only the name says who speaks.

In a user proxy's list the person's own words have the role `assistant`. So names decide wherever a list may be of this
kind, and a name that is not known to be a person's is an agent's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from afterword.extractors.readers.duplicates import merge_views
from afterword.extractors.readers.openai_messages import FindSpeaker, is_role_message, read_roles, speaker_by_role
from afterword.extractors.readers.utterances import (
    JsonObject,
    People,
    ReadingLog,
    SavedConversation,
    Utterance,
    name_in,
)
from afterword.facts.transcripts import Role

AGENT_NAME = "assistant"


@dataclass(frozen=True, slots=True)
class Perspective:
    """Whose message list it is.

    `owner` is the agent or person who kept the list, `partner` the other side, `is_v02` true if the file shows that it
    comes from v0.2.
    """

    people: People
    owner: str | None = None
    partner: str | None = None
    is_v02: bool = False


def read_role_list(messages: object, log: ReadingLog, perspective: Perspective, layout: str) -> SavedConversation:
    """Return the conversation of a list of messages with roles, of v0.2 or not."""
    spoken: list[JsonObject] = [
        message
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict)
        and message.get("role") in ("user", "assistant")
        and message.get("content") not in (None, "", [])
    ]
    return SavedConversation(layout, read_roles(messages, log, _find_speaker(spoken, messages, perspective)))


def read_chat_messages(lists: JsonObject, log: ReadingLog, perspective: Perspective) -> SavedConversation:
    """Return the conversation of a v0.2 agent's `chat_messages`: one list for each partner, without duplicates."""
    utterances: list[Utterance] = []
    for partner, messages in lists.items():
        if is_role_list(messages):
            conversation = read_role_list(messages, log, replace(perspective, partner=partner), "")
            utterances = merge_views(utterances, conversation.utterances)
    return SavedConversation("v0.2 chat messages", utterances)


def is_role_list(value: object) -> bool:
    """Whether the value is a list in which at least one message has a role."""
    return isinstance(value, list) and any(map(is_role_message, value))


def _find_speaker(spoken: list[JsonObject], messages: object, perspective: Perspective) -> FindSpeaker:
    if perspective.is_v02 or any(_signs_of_relative_roles(spoken, messages, perspective)):
        return lambda message: _speaker_by_name(message, perspective)
    is_owners_list = perspective.owner not in (None, "", AGENT_NAME) and not any(map(name_in, spoken))
    if is_owners_list or perspective.partner == AGENT_NAME:
        return lambda message: _speaker_by_owner(message, perspective)
    return speaker_by_role


def _signs_of_relative_roles(spoken: list[JsonObject], messages: object, perspective: Perspective) -> Iterator[bool]:
    """Yield whether a list shows that its roles depend on whose list it is: any of these signs is enough."""
    yield isinstance(messages, list) and any(isinstance(each, dict) and "tool_responses" in each for each in messages)
    speakers = [(message["role"], name_in(message)) for message in spoken]
    yield any(role == "assistant" and perspective.people.has(name) for role, name in speakers)
    yield any(role == "user" and name == AGENT_NAME for role, name in speakers)
    if not speakers or any(name is None for _, name in speakers):
        return
    yield any(perspective.people.has(name) for _, name in speakers)
    # Fully named with names that nobody knows: either side may be the person, so nobody is taken for one.
    yield any(role == "assistant" and name != AGENT_NAME for role, name in speakers)
    yield len({name for role, name in speakers if role == "user"}) > 1


def _speaker_by_name(message: JsonObject, perspective: Perspective) -> tuple[str, Role]:
    name = name_in(message)
    if name is None:
        return _speaker_by_owner(message, perspective)
    return name, Role.HUMAN if perspective.people.has(name) else Role.AGENT


def _speaker_by_owner(message: JsonObject, perspective: Perspective) -> tuple[str, Role]:
    """Return the speaker of a message without a name: the owner if the role is `assistant`, else the partner."""
    is_own = message.get("role") == "assistant"
    speaker = (perspective.owner if is_own else perspective.partner) or AGENT_NAME
    return speaker, Role.HUMAN if perspective.people.has(speaker) else Role.AGENT
