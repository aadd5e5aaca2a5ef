"""Read messages with roles: chat completions, the history of an OpenAIAgent, and lists of AutoGen v0.2 and ag2.

In AutoGen v0.2 each agent has its own list, in which its own words have the role `assistant`, even those of a person in
the list of a user proxy. So in a list that may come from v0.2 the name decides who speaks. A name that is not known as
a person's is taken for an agent's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from afterword.extractors.readers.duplicates import merge_views
from afterword.extractors.readers.utterances import (
    JsonObject,
    People,
    ReadingLog,
    SavedConversation,
    Utterance,
    call_or_result_mark,
    call_text,
    id_in,
    local_instant,
    message_text,
    objects_in,
    output_text,
    speaker_name_in,
)
from afterword.facts.transcripts import Role
from afterword.privacy.state_keys import CODE_OUTPUT, TOOL_ROLES, split_content

FindSpeaker = Callable[[JsonObject], tuple[str, Role]]
"""Returns who speaks in a message with the role `user` or `assistant`, and whether that is a person or an agent."""

_WITHOUT_WORDS = frozenset({"reasoning", "compaction", "item_reference"})
"""Items of the Responses API without words: thoughts and summaries, which are mostly encrypted, and references."""
_SYSTEM_ROLES = frozenset({"system", "developer"})
AGENT_NAME = "assistant"


def read_role_messages(messages: object, log: ReadingLog, find_speaker: FindSpeaker) -> list[Utterance]:
    """Return the utterances of a list of messages with roles, in order.

    Messages with unknown roles are left out and counted in the log.
    """
    return [
        utterance for message in objects_in(messages, log) for utterance in _read_message(message, log, find_speaker)
    ]


def is_role_message(value: object) -> bool:
    """Whether the value has the shape of a message with a role, or of a tool call or output beside such messages."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("role"), str) or value.get("type") in ("function_call", "function_call_output")


def speaker_by_role(message: JsonObject) -> tuple[str, Role]:
    """Return the speaker of a message by its role: `user` is a person, `assistant` an agent."""
    if message.get("role") == "user":
        return speaker_name_in(message) or "user", Role.HUMAN
    return speaker_name_in(message) or "assistant", Role.AGENT


def _read_message(message: JsonObject, log: ReadingLog, find_speaker: FindSpeaker) -> Iterable[Utterance]:
    role = message.get("role")
    if role in ("user", "assistant"):
        return _read_words(message, log, find_speaker)
    if not isinstance(role, str):
        return _read_responses_item(message, log)
    if role in _SYSTEM_ROLES:
        return [_utterance(message, log, role, message_text(message.get("content"), log), Role.SYSTEM)]
    if role in TOOL_ROLES:
        return _read_results(message, log)
    log.skip_type(role)
    return ()


def _utterance(message: JsonObject, log: ReadingLog, source: str, text: str, role: Role, mark: str = "") -> Utterance:
    created_at = message.get("created_at")
    said_at = local_instant(created_at, log) if isinstance(created_at, str) else None
    return Utterance(source, text, role, said_at, id_in(message), mark)


def _read_words(message: JsonObject, log: ReadingLog, find_speaker: FindSpeaker) -> Iterator[Utterance]:
    source, role = find_speaker(message)
    parts = split_content(message.get("content"))
    for result in parts.results:
        yield _read_result(message, log, "tool", result.get("content"), result.get("tool_use_id"))
    text = message_text(parts.words, log)
    if text:
        yield _utterance(message, log, source, text, Role.TOOL if CODE_OUTPUT.match(text) else role)
    caller = source if role is Role.AGENT else "assistant"
    for call in parts.calls:
        function = {"name": call.get("name"), "arguments": call.get("input", {})}
        yield _read_call(message, log, caller, function, call.get("id"))
    for call in objects_in(message.get("tool_calls"), log):
        yield _read_call(message, log, caller, call.get("function"), call.get("id"))
    if message.get("function_call") is not None:
        yield _read_call(message, log, caller, message["function_call"], None)


def _read_call(message: JsonObject, log: ReadingLog, source: str, function: object, call_id: object) -> Utterance:
    call = function if isinstance(function, dict) else {}
    text = call_text(call.get("name"), call.get("arguments"))
    return _utterance(message, log, source, text, Role.TOOL, call_or_result_mark("call", call_id))


def _read_results(message: JsonObject, log: ReadingLog) -> Iterator[Utterance]:
    source = speaker_name_in(message) or "tool"
    responses = message.get("tool_responses")
    for result in objects_in(responses, log) if isinstance(responses, list) and responses else [message]:
        yield _read_result(message, log, source, result.get("content"), result.get("tool_call_id"))


def _read_result(message: JsonObject, log: ReadingLog, source: str, output: object, call_id: object) -> Utterance:
    mark = call_or_result_mark("result", call_id)
    return _utterance(message, log, source, output_text(output, log), Role.TOOL, mark)


def _read_responses_item(message: JsonObject, log: ReadingLog) -> Iterator[Utterance]:
    """Read a tool call or its output as the Responses API lists them, beside the messages."""
    kind, call_id = message.get("type"), message.get("call_id")
    if kind == "function_call":
        yield _read_call(message, log, "assistant", message, call_id)
    elif kind == "function_call_output":
        yield _read_result(message, log, "tool", message.get("output"), call_id)
    elif kind not in _WITHOUT_WORDS:
        log.skip_type(kind)


@dataclass(frozen=True, slots=True)
class SpeakerClues:
    """What is known of the speakers in a list of messages with roles, besides the list.

    `people` are the names of people. `partner` is the other speaker in a list of a v0.2 agent, and `is_v02` says that
    the file is surely of v0.2.
    """

    people: People
    partner: str | None = None
    is_v02: bool = False

    def is_person(self, name: str | None) -> bool:
        """Whether the name is a person's: a known one, or that of the user whose memory it is."""
        return name is not None and (self.people.is_known(name) or self.people.is_user(name))


def read_role_list(messages: object, log: ReadingLog, clues: SpeakerClues, layout: str) -> SavedConversation:
    """Return the conversation of a list of messages with roles, of v0.2 or not."""
    return SavedConversation(layout, read_role_messages(messages, log, _find_speaker(messages, clues)))


def read_v02_chat_messages(lists: JsonObject, log: ReadingLog, clues: SpeakerClues) -> SavedConversation:
    """Return the conversation in the `chat_messages` of a v0.2 agent: one list for each partner, without duplicates.

    A sign of v0.2 in one list, or in the name of a partner, holds for all. Other mappings have lists that tell nothing
    about each other.
    """
    clues_by_partner = {
        partner: replace(clues, partner=partner) for partner, messages in lists.items() if is_role_list(messages)
    }
    is_v02 = any(
        partner == AGENT_NAME
        or partner_clues.is_person(partner)
        or any(_signs_of_relative_roles(lists[partner], partner_clues))
        for partner, partner_clues in clues_by_partner.items()
    )
    utterances: list[Utterance] = []
    for partner, partner_clues in clues_by_partner.items():
        conversation = read_role_list(lists[partner], log, replace(partner_clues, is_v02=is_v02), "")
        utterances = merge_views(utterances, conversation.utterances)
    return SavedConversation("v0.2 chat messages", utterances)


def is_role_list(value: object) -> bool:
    """Whether the value is a list in which at least one message has a role."""
    return isinstance(value, list) and any(map(is_role_message, value))


def _find_speaker(messages: object, clues: SpeakerClues) -> FindSpeaker:
    if clues.is_v02 or any(_signs_of_relative_roles(messages, clues)):
        return lambda message: _speaker_by_name(message, clues)
    return speaker_by_role


def _signs_of_relative_roles(messages: object, clues: SpeakerClues) -> Iterator[bool]:
    """Yield signs of a list of v0.2, whose roles depend on the agent that owns the list. One true sign is enough."""
    listed = [each for each in (messages if isinstance(messages, list) else ()) if isinstance(each, dict)]
    yield any("tool_responses" in message for message in listed)
    speakers = _roles_and_names(listed)
    yield any(role == "assistant" and clues.is_person(name) for role, name in speakers)
    yield any(role == "user" and name in (AGENT_NAME, clues.partner or AGENT_NAME) for role, name in speakers)
    if not speakers or any(name is None for _, name in speakers):
        return
    yield any(clues.is_person(name) for _, name in speakers)
    # All messages have unknown names. Either side may be the person, so nobody is taken for a person.
    yield any(role == "assistant" and name != AGENT_NAME for role, name in speakers)
    yield len({name for role, name in speakers if role == "user"}) > 1


def _roles_and_names(messages: Iterable[JsonObject]) -> list[tuple[str, str | None]]:
    """Return the role and the name, if any, of each message with words of a person or an agent."""
    return [
        (message["role"], speaker_name_in(message))
        for message in messages
        if message.get("role") in ("user", "assistant") and message.get("content") not in (None, "", [])
    ]


def _speaker_by_name(message: JsonObject, clues: SpeakerClues) -> tuple[str, Role]:
    name = speaker_name_in(message)
    if name is None:
        return _nameless_speaker(message, clues)
    return name, Role.HUMAN if clues.is_person(name) else Role.AGENT


def _nameless_speaker(message: JsonObject, clues: SpeakerClues) -> tuple[str, Role]:
    """Return the speaker of a message without a name: the agent if the role is `assistant`, else the partner."""
    speaker = AGENT_NAME if message.get("role") == "assistant" else clues.partner or AGENT_NAME
    return speaker, Role.HUMAN if clues.is_person(speaker) else Role.AGENT
