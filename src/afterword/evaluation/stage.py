"""A session played through: what its agents say to each other, and what each of them then has in its own context.

The parts are AutoGen's own classes, put where `AssistantAgent` and the group chats put them.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
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

from afterword.evaluation.acts import Act, acts, memory_items, receiver
from afterword.evaluation.scenarios import Message, Session

LIST_MEMORY = "Relevant memory content (in chronological order):"
"""How a block of AutoGen's ListMemory begins."""

Item = BaseChatMessage | BaseAgentEvent


@dataclass(slots=True)
class Player:
    """One agent's own view: its model context, and what was said since its last turn."""

    context: list[LLMMessage] = field(default_factory=list)
    waiting: list[BaseChatMessage] = field(default_factory=list)

    def catch_up(self) -> None:
        """Take in what was said since its last turn."""
        for message in self.waiting:
            if isinstance(message, HandoffMessage):
                self.context += message.context
            self.context.append(message.to_model_message())
        self.waiting.clear()


class Stage:
    """A session as its agents live through it. `thread` is what the manager of a team would keep."""

    def __init__(self, names: Sequence[str], everybody: Sequence[str]) -> None:
        self.players = {name: Player() for name in names}
        self.thread: list[Item] = []
        self.told_at: list[datetime | None] = []
        self.last_speaker: str | None = None
        self._everybody = everybody

    def play(self, act: Act) -> None:
        """Let one act happen. Whoever is no player only says things."""
        if not act.is_human and act.source in self.players:
            self._perform(act)
            return
        for message in act.messages:
            if message.role in ("user", "assistant"):
                self._say(TextMessage(source=act.source, content=message.content), message.at)

    def _log(self, item: Item, at: datetime | None = None) -> None:
        self.thread.append(item)
        self.told_at.append(at)

    def _say(self, message: BaseChatMessage, at: datetime | None = None) -> None:
        self._log(message, at)
        for name, player in self.players.items():
            if name != message.source:
                player.waiting.append(message)

    def _perform(self, act: Act) -> None:
        player, source = self.players[act.source], act.source
        self.last_speaker = source
        player.catch_up()
        if act.memory is not None:
            self._remind(player, source, act.memory)
        thoughts: list[str] = []
        used = Tools()
        has_answered = False
        for role, group in groupby(act.messages, key=lambda message: message.role):
            part = list(group)
            if role == "thought":
                thoughts += [message.content for message in part]
                for message in part:
                    self._log(ThoughtEvent(source=source, content=message.content), message.at)
            elif role == "tool_call":
                used = self._call(player, source, part, joined(thoughts))
                thoughts = []
            elif role == "tool_result":
                self._return(player, source, part, used)
            else:
                has_answered = True
                for message in part:
                    player.context.append(
                        AssistantMessage(content=message.content, thought=joined(thoughts), source=source)
                    )
                    self._say(TextMessage(source=source, content=message.content), message.at)
                thoughts = []
        if thoughts:
            player.context.append(AssistantMessage(content="", thought=joined(thoughts), source=source))
        if used.results and not has_answered:
            self._say(used.reply(source, self._everybody))

    def _remind(self, player: Player, source: str, memory: str) -> None:
        block = f"\n{memory.strip()}\n" if memory.strip().startswith(LIST_MEMORY) else memory
        player.context.append(SystemMessage(content=block))
        parts = [MemoryContent(content=text, mime_type=MemoryMimeType.TEXT) for text in memory_items(memory)]
        self._log(MemoryQueryEvent(source=source, content=parts))

    def _call(self, player: Player, source: str, part: Sequence[Message], thought: str | None) -> Tools:
        calls = [FunctionCall(one.call_id, one.arguments_text, one.name) for one in part]
        player.context.append(AssistantMessage(content=calls, thought=thought, source=source))
        self._log(ToolCallRequestEvent(source=source, content=calls), part[-1].at)
        return Tools(calls, thought)

    def _return(self, player: Player, source: str, part: Sequence[Message], used: Tools) -> None:
        results = [
            FunctionExecutionResult(content=one.content, name=one.name, call_id=one.call_id, is_error=one.is_error)
            for one in part
        ]
        used.results += results
        player.context.append(FunctionExecutionResultMessage(content=list(used.results)))
        self._log(ToolCallExecutionEvent(source=source, content=list(used.results)), part[-1].at)


@dataclass(slots=True)
class Tools:
    """The calls that an agent made last, what it thought before, and what came back."""

    calls: list[FunctionCall] = field(default_factory=list)
    thought: str | None = None
    results: list[FunctionExecutionResult] = field(default_factory=list)

    def reply(self, source: str, everybody: Sequence[str]) -> BaseChatMessage:
        """Return what an AssistantAgent says that ends its turn with tools: a handoff, or a summary of the results."""
        plain = [one for one in self.calls if receiver(one.name, everybody) is None]
        for result in self.results:
            target = receiver(result.name, everybody)
            if target is not None:
                context = self._handed_over(source, plain, everybody)
                return HandoffMessage(source=source, content=result.content, target=target, context=context)
        summary = "\n".join(result.content for result in self.results)
        return ToolCallSummaryMessage(source=source, content=summary, tool_calls=self.calls, results=self.results)

    def _handed_over(self, source: str, plain: list[FunctionCall], everybody: Sequence[str]) -> list[LLMMessage]:
        """Return what the next agent is told of this turn: the other tools' work, else the thought alone."""
        if plain:
            results = [one for one in self.results if receiver(one.name, everybody) is None]
            call = AssistantMessage(content=plain, thought=self.thought, source=source)
            return [call, FunctionExecutionResultMessage(content=results)]
        return [AssistantMessage(content=self.thought, source=source)] if self.thought else []


def play(session: Session, *, single: bool = False) -> Stage:
    """Play a session through; with `single` only the first agent is one, and all others merely speak to it."""
    agents = list(dict.fromkeys(one.source for one in session.messages if one.role not in ("user", "memory", "system")))
    people = list(dict.fromkeys(one.source for one in session.messages if one.role == "user"))
    stage = Stage(agents[:1] if single else agents, [*agents, *people])
    for act in acts(session.messages, [*agents, *people]):
        stage.play(act)
    return stage


def stamp(stage: Stage, session: Session, seed: str) -> None:
    """Give every item of the thread an id that depends on `seed` and its place, and a time.

    Items without a time of their own are spread evenly between their neighbours, the session's start and its end.
    """
    for place, (item, at) in enumerate(zip(stage.thread, _instants(stage.told_at, session), strict=True)):
        item.id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{seed}/{session.session_id}/{place}"))
        item.created_at = at.astimezone(UTC)


def _instants(told_at: Sequence[datetime | None], session: Session) -> list[datetime]:
    if not told_at:
        return []
    known = {place: at for place, at in enumerate(told_at) if at is not None}
    known.setdefault(0, session.started_at)
    known.setdefault(len(told_at) - 1, max(session.ended_at, *known.values()))
    found = []
    for place in range(len(told_at)):
        before, after = max(one for one in known if one <= place), min(one for one in known if one >= place)
        share = (place - before) / (after - before) if after > before else 0
        span_us = (known[after] - known[before]) // timedelta(microseconds=1)
        found.append(known[before] + timedelta(microseconds=int(span_us * share)))
    return found


def joined(thoughts: Sequence[str]) -> str | None:
    """Return several thoughts as one text, None where there are none."""
    return "\n".join(thoughts) if thoughts else None
