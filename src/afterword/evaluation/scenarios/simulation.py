"""Simulate a session: what its agents say to each other, and what each agent then has in its model context.

The messages are objects of AutoGen's own classes, stored where `AssistantAgent` and the group chats store them.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby

from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    HandoffMessage,
    MemoryQueryEvent,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
    ToolCallSummaryMessage,
)
from autogen_core import FunctionCall
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
)

from afterword.evaluation.scenarios.scenario import Message, Session

LIST_MEMORY = "Relevant memory content (in chronological order):"
"""The first line of a block of AutoGen's ListMemory."""
ThreadMessage = BaseChatMessage | BaseAgentEvent


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


@dataclass(slots=True)
class AgentView:
    """What one agent has seen: its model context, and the unread messages since its last turn."""

    context: list[LLMMessage] = field(default_factory=list)
    unread: list[BaseChatMessage] = field(default_factory=list)

    def catch_up(self) -> None:
        """Move the messages since its last turn into the context."""
        for message in self.unread:
            if isinstance(message, HandoffMessage):
                self.context += message.context
            self.context.append(message.to_model_message())
        self.unread.clear()


class Simulation:
    """A session as its agents see it. `thread` is what the manager of a team would store."""

    def __init__(self, agents: Sequence[str], speakers: Sequence[str]) -> None:
        self.agents: dict[str, AgentView] = {name: AgentView() for name in agents}
        self.thread: list[ThreadMessage] = []
        self.said_at: list[datetime | None] = []
        self.last_speaker: str | None = None
        self._speakers = speakers

    def play(self, turn: SpeakerTurn) -> None:
        """Play one speaker turn. The messages of a speaker who is not a simulated agent are only sent to the agents."""
        if not turn.is_human and turn.source in self.agents:
            self._play_agent(turn)
            return
        for message in turn.messages:
            if message.role in ("user", "assistant"):
                self._say(TextMessage(source=turn.source, content=message.content), message.at)

    def set_ids_and_times(self, session: Session, seed: str) -> None:
        """Give every message of the thread an id, which depends on `seed` and its place, and a time.

        Messages without a time of their own are spread evenly between their neighbours, the session's start and its
        end.
        """
        for place, (message, at) in enumerate(zip(self.thread, _instants(self.said_at, session), strict=True)):
            message.id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{seed}/{session.session_id}/{place}"))
            message.created_at = at.astimezone(UTC)

    def _log(self, message: ThreadMessage, at: datetime | None = None) -> None:
        self.thread.append(message)
        self.said_at.append(at)

    def _say(self, message: BaseChatMessage, at: datetime | None = None) -> None:
        self._log(message, at)
        for name, agent in self.agents.items():
            if name != message.source:
                agent.unread.append(message)

    def _play_agent(self, turn: SpeakerTurn) -> None:
        agent, source = self.agents[turn.source], turn.source
        self.last_speaker = source
        agent.catch_up()
        if turn.memory is not None:
            self._add_memory(agent, source, turn.memory)
        thoughts: list[str] = []
        tool_use = ToolUse()
        has_answered = False
        for role, group in groupby(turn.messages, key=lambda message: message.role):
            messages = list(group)
            if role == "thought":
                thoughts += [message.content for message in messages]
                for message in messages:
                    self._log(ThoughtEvent(source=source, content=message.content), message.at)
            elif role == "tool_call":
                tool_use = self._call_tools(agent, source, messages, _one_thought(thoughts))
                thoughts = []
            elif role == "tool_result":
                self._return_results(agent, source, messages, tool_use)
            else:
                has_answered = True
                for message in messages:
                    thought = _one_thought(thoughts)
                    agent.context.append(AssistantMessage(content=message.content, thought=thought, source=source))
                    self._say(TextMessage(source=source, content=message.content), message.at)
                thoughts = []
        if thoughts:
            agent.context.append(AssistantMessage(content="", thought=_one_thought(thoughts), source=source))
        if tool_use.results and not has_answered:
            self._say(tool_use.reply(source, self._speakers))

    def _add_memory(self, agent: AgentView, source: str, memory: str) -> None:
        block = f"\n{memory.strip()}\n" if memory.strip().startswith(LIST_MEMORY) else memory
        agent.context.append(SystemMessage(content=block))
        entries = [MemoryContent(content=text, mime_type=MemoryMimeType.TEXT) for text in memory_entries(memory)]
        self._log(MemoryQueryEvent(source=source, content=entries))

    def _call_tools(self, agent: AgentView, source: str, messages: Sequence[Message], thought: str | None) -> ToolUse:
        calls = [FunctionCall(message.call_id, message.arguments_text, message.name) for message in messages]
        agent.context.append(AssistantMessage(content=calls, thought=thought, source=source))
        self._log(ToolCallRequestEvent(source=source, content=calls), messages[-1].at)
        return ToolUse(calls, thought)

    def _return_results(self, agent: AgentView, source: str, messages: Sequence[Message], tool_use: ToolUse) -> None:
        tool_use.results += [
            FunctionExecutionResult(
                content=message.content, name=message.name, call_id=message.call_id, is_error=message.is_error
            )
            for message in messages
        ]
        agent.context.append(FunctionExecutionResultMessage(content=list(tool_use.results)))
        self._log(ToolCallExecutionEvent(source=source, content=list(tool_use.results)), messages[-1].at)


@dataclass(slots=True)
class ToolUse:
    """The last tool calls of an agent, its thought before them, and their results."""

    calls: list[FunctionCall] = field(default_factory=list)
    thought: str | None = None
    results: list[FunctionExecutionResult] = field(default_factory=list)

    def reply(self, source: str, speakers: Sequence[str]) -> BaseChatMessage:
        """Return the message of an AssistantAgent that ends its turn with tools: a handoff, or a summary of results."""
        for result in self.results:
            target = handoff_target(result.name, speakers)
            if target is not None:
                context = self._handoff_context(source, speakers)
                return HandoffMessage(source=source, content=result.content, target=target, context=context)
        summary = "\n".join(result.content for result in self.results)
        return ToolCallSummaryMessage(source=source, content=summary, tool_calls=self.calls, results=self.results)

    def _handoff_context(self, source: str, speakers: Sequence[str]) -> list[LLMMessage]:
        """Return the messages that a handoff passes on: other tool calls with results, or else the thought."""
        calls = [call for call in self.calls if handoff_target(call.name, speakers) is None]
        if calls:
            results = [result for result in self.results if handoff_target(result.name, speakers) is None]
            request = AssistantMessage(content=calls, thought=self.thought, source=source)
            return [request, FunctionExecutionResultMessage(content=results)]
        return [AssistantMessage(content=self.thought, source=source)] if self.thought else []


def simulate(session: Session, *, single: bool = False) -> Simulation:
    """Play a whole session. With `single` only the first agent is simulated, and all others only speak to it."""
    other_roles = ("user", "memory", "system")
    agents = list(dict.fromkeys(message.source for message in session.messages if message.role not in other_roles))
    people = list(dict.fromkeys(message.source for message in session.messages if message.role == "user"))
    simulation = Simulation(agents[:1] if single else agents, [*agents, *people])
    for turn in speaker_turns(session.messages, [*agents, *people]):
        simulation.play(turn)
    return simulation


def _instants(said_at: Sequence[datetime | None], session: Session) -> list[datetime]:
    if not said_at:
        return []
    known = {place: at for place, at in enumerate(said_at) if at is not None}
    known.setdefault(0, session.started_at)
    known.setdefault(len(said_at) - 1, max(session.ended_at, *known.values()))
    instants = []
    for place in range(len(said_at)):
        before, after = max(index for index in known if index <= place), min(index for index in known if index >= place)
        share = (place - before) / (after - before) if after > before else 0
        span_us = (known[after] - known[before]) // timedelta(microseconds=1)
        instants.append(known[before] + timedelta(microseconds=int(span_us * share)))
    return instants


def _one_thought(thoughts: Sequence[str]) -> str | None:
    return "\n".join(thoughts) if thoughts else None
