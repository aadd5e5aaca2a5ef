"""Read messages as AutoGen 0.4 and later writes them: in a thread or buffer, and in a model context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from afterword.extractors.readers.utterances import (
    JsonObject,
    ReadingLog,
    SavedConversation,
    Utterance,
    call_or_result_mark,
    call_text,
    compact_json,
    id_in,
    local_instant,
    message_text,
    objects_in,
    output_text,
    speaker_name,
    without_base64,
)
from afterword.facts.transcripts import PROGRAM_NAMES, Role, is_generic_name
from afterword.facts.words import folded
from afterword.privacy.state_keys import EXAMPLE_MARK

_SPOKEN = frozenset({"TextMessage", "MultiModalMessage", "HandoffMessage", "UserMessage"})
_SENT_BY_EITHER = frozenset({"StopMessage", "UserInputRequestedEvent"})


class _Message(NamedTuple):
    """A message with its speaker (`source`). In a model context, a message does not always name its speaker."""

    source: str
    log: ReadingLog
    fields: JsonObject

    @property
    def content(self) -> object:
        return self.fields.get("content")

    def utterance(self, text: str, role: Role | None = None, mark: str = "") -> Utterance:
        said_at = local_instant(self.fields.get("created_at"), self.log)
        return Utterance(self.source, text, role, said_at, id_in(self.fields), mark)


def read_agentchat_messages(messages: object, log: ReadingLog, context_agent: str | None = None) -> list[Utterance]:
    """Return the utterances of a message list in order.

    `context_agent` is the agent in whose model context the messages stand, by default the first agent that they name.
    Messages without a name are taken for that agent's. Messages of unknown types are counted and raise no error.
    """
    utterances: list[Utterance] = []
    context_agent = context_agent or next(model_agent_names(messages), "assistant")
    for fields in objects_in(messages, log):
        if fields.get("type") == "AssistantMessage" and "source" in fields:
            context_agent = speaker_name(fields["source"])
        source = speaker_name(fields["source"]) if "source" in fields else context_agent
        read = _read_message(_Message(source, log, fields))
        utterances.extend((each._replace(role=Role.SYSTEM) for each in read) if EXAMPLE_MARK in fields else read)
    return utterances


@dataclass(slots=True)
class Speakers:
    """The names of speakers in lists of messages: of possible people, of agents that act, and of models that answer."""

    speaking_names: set[str] = field(default_factory=set)
    acting_names: set[str] = field(default_factory=set)
    model_names: set[str] = field(default_factory=set)

    def collect(self, messages: object) -> None:
        """Add the speakers of a list of messages."""
        self.model_names.update(model_agent_names(messages))
        for message in objects_in(messages, ReadingLog()):
            source, kind = speaker_name(message.get("source")), message.get("type", "TextMessage")
            if isinstance(message.get("models_usage"), dict):
                self.model_names.add(source)
            elif isinstance(kind, str) and kind in _SPOKEN:
                self.speaking_names.add(source)
            elif kind not in _SENT_BY_EITHER:
                self.acting_names.add(source)

    @property
    def possible_people(self) -> set[str]:
        """The speakers who are neither agents nor programs, as far as the messages and the names tell."""
        unknown = self.speaking_names - self.acting_names - self.model_names
        return {name for name in unknown if folded(name) not in PROGRAM_NAMES}


def conversation_outside_team(layout: str, messages: object, utterances: list[Utterance]) -> SavedConversation:
    """Return the conversation in a list of messages outside of a team's state."""
    speakers = Speakers()
    speakers.collect(messages)
    # A model may have answered under the name "user" beside a person of that name.
    agents = frozenset(name for name in speakers.model_names | speakers.acting_names if not is_generic_name(name))
    return SavedConversation(layout, utterances, agents, unclear_speakers=frozenset(speakers.possible_people))


def model_agent_names(messages: object) -> Iterator[str]:
    """Yield the names of the agents that have answers of a model in a message list."""
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("type") == "AssistantMessage" and "source" in message:
            yield speaker_name(message["source"])


def is_agentchat_message(value: object) -> bool:
    """Whether the value has the shape of an AutoGen message, of a known type or not."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    is_known = isinstance(kind, str) and (kind in _READERS or kind in _WITHOUT_WORDS)
    return is_known or ("source" in value and ("content" in value or "type" in value))


def _read_message(message: _Message) -> Iterable[Utterance]:
    kind = message.fields.get("type", "TextMessage")
    if isinstance(kind, str):
        if kind in _WITHOUT_WORDS:
            message.log.skip(f"event {kind}")
            return ()
        reader = _READERS.get(kind) or (_read_text if kind.startswith("StructuredMessage") else None)
        if reader:
            return reader(message)
    message.log.skip_type(kind)
    return ()


def _read_text(message: _Message, role: Role | None = None) -> Iterator[Utterance]:
    yield message.utterance(message_text(message.content, message.log), role)


def _read_assistant_message(message: _Message) -> Iterator[Utterance]:
    yield from _read_thought(message, message.fields.get("thought"))
    if isinstance(message.content, list):
        yield from _read_calls(message)
    elif message.content != "":
        yield from _read_text(message, Role.AGENT)


def _read_thought(message: _Message, thought: object) -> Iterator[Utterance]:
    if isinstance(thought, str) and thought:
        yield message.utterance(thought, Role.THOUGHT)
    elif thought:
        message.log.skip("unreadable content")


def _read_calls(message: _Message) -> Iterator[Utterance]:
    for call in objects_in(message.content, message.log):
        text = call_text(call.get("name"), call.get("arguments"))
        yield message.utterance(text, Role.TOOL, call_or_result_mark("call", call.get("id")))


def _read_results(message: _Message) -> Iterator[Utterance]:
    for result in objects_in(message.content, message.log):
        text = output_text(result.get("content"), message.log)
        yield message.utterance(text, Role.TOOL, call_or_result_mark("result", result.get("call_id")))


def _read_memories(message: _Message) -> Iterator[Utterance]:
    memories = objects_in(message.content, message.log)
    texts = [message_text(memory.get("content"), message.log) for memory in memories]
    message.log.injected.update(text.strip() for text in texts if text.strip())
    yield message.utterance("\n".join(texts), Role.MEMORY)


def _read_tool_output(message: _Message) -> Iterator[Utterance]:
    yield message.utterance(output_text(message.content, message.log), Role.TOOL)


def _read_code_result(message: _Message) -> Iterator[Utterance]:
    result = message.fields.get("result")
    output = result.get("output") if isinstance(result, dict) else result
    text = output if isinstance(output, str) else compact_json(output)
    yield message.utterance(without_base64(text), Role.TOOL)


_READERS: dict[str, Callable[[_Message], Iterable[Utterance]]] = {
    "TextMessage": _read_text,
    "MultiModalMessage": _read_text,
    "StopMessage": _read_text,
    "HandoffMessage": _read_text,
    "UserMessage": _read_text,
    "AssistantMessage": _read_assistant_message,
    "SystemMessage": lambda message: _read_text(message, Role.SYSTEM),
    "FunctionExecutionResultMessage": _read_results,
    "ToolCallRequestEvent": _read_calls,
    "ToolCallExecutionEvent": _read_results,
    "ToolCallSummaryMessage": _read_tool_output,
    "ThoughtEvent": lambda message: _read_thought(message, message.content),
    "MemoryQueryEvent": _read_memories,
    "CodeGenerationEvent": _read_tool_output,
    "CodeExecutionEvent": _read_code_result,
}
_WITHOUT_WORDS = frozenset(
    {"SelectSpeakerEvent", "SelectorEvent", "UserInputRequestedEvent", "ModelClientStreamingChunkEvent"}
)
