"""What AutoGen leaves on disk after a session of a scenario, by the kind of agent or team that held it.

A thought is lost in v0.2 and in OpenAI lists, and so is every single time in everything but teams, as in life.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from autogen_agentchat.state import (
    AssistantAgentState,
    BaseGroupChatManagerState,
    ChatAgentContainerState,
    RoundRobinManagerState,
    SelectorManagerState,
    SwarmManagerState,
    TeamState,
)
from autogen_core.models import LLMMessage, UserMessage

from afterword.evaluation.acts import memory_items
from afterword.evaluation.scenarios import Message, Session
from afterword.evaluation.stage import Stage, play, stamp
from afterword.pipeline.errors import SourceInvalid

Json = dict[str, Any]

TEACHABILITY = "# Memories that might help"
"""How the memories begin that v0.2's Teachability appends to a message."""


def saved_state(session: Session, seed: str) -> Json | list[Json]:
    """Return what lies on disk after the session; ids depend on `seed` and the place alone.

    Raises `SourceInvalid` for a team in which no agent speaks.
    """
    if session.container == "v02":
        return list(_v02_history(session.messages))
    if session.container == "openai":
        return list(_openai_messages(session.messages))
    if session.container == "assistant":
        return _assistant_state(session)
    return _team_state(session, seed)


def _assistant_state(session: Session) -> Json:
    """Return the state of an AssistantAgent that has taken in all that was said, also after its last turn."""
    stage = play(session, single=True)
    if not stage.players:
        said = [one for one in session.messages if one.role == "user"]
        return _agent_state([UserMessage(content=one.content, source=one.source) for one in said])
    (player,) = stage.players.values()
    player.catch_up()
    return _agent_state(player.context)


def _agent_state(context: list[LLMMessage]) -> Json:
    held = {"messages": [message.model_dump(mode="json") for message in context]}
    return AssistantAgentState(llm_context=held).model_dump(mode="json")


def _team_state(session: Session, seed: str) -> Json:
    """Return the state of a team that has stopped after the session's last message."""
    stage = play(session)
    if not stage.players:
        raise SourceInvalid(f"session {session.session_id!r} is a {session.container}, but no agent speaks in it")
    stamp(stage, session, seed)
    states = {
        name: ChatAgentContainerState(
            agent_state=_agent_state(player.context), message_buffer=[one.dump() for one in player.waiting]
        ).model_dump(mode="json")
        for name, player in stage.players.items()
    }
    name, manager = _manager(session.container, stage)
    return TeamState(agent_states={**states, name: manager.model_dump(mode="json")}).model_dump(mode="json")


def _manager(container: str, stage: Stage) -> tuple[str, BaseGroupChatManagerState]:
    thread = [item.dump() for item in stage.thread]
    if container == "selector":
        state = SelectorManagerState(message_thread=thread, previous_speaker=stage.last_speaker)
        return "SelectorGroupChatManager", state
    if container == "swarm":
        return "SwarmGroupChatManager", SwarmManagerState(
            message_thread=thread, current_speaker=stage.last_speaker or ""
        )
    names = list(stage.players)
    upcoming = (names.index(stage.last_speaker) + 1) % len(names) if stage.last_speaker else 0
    return "RoundRobinGroupChatManager", RoundRobinManagerState(message_thread=thread, next_speaker_index=upcoming)


def _v02_history(messages: list[Message]) -> Iterator[Json]:
    """Yield a chat history as v0.2's user proxy has it: its own words have the role "assistant"."""
    proxy = next((one.source for one in messages if one.role == "user"), "user")
    appended = ""
    for role, group in groupby(messages, key=lambda one: one.role):
        part = list(group)
        if role == "memory":
            appended = f"\n\n{TEACHABILITY}\n" + "".join(f"- {one}\n" for one in memory_items(part[-1].content))
        elif role == "user":
            yield from ({"content": one.content + appended, "role": "assistant", "name": one.source} for one in part)
        elif role == "assistant":
            yield from ({"content": one.content, "role": "user", "name": one.source} for one in part)
        elif role == "tool_call":
            calls = [{"id": one.call_id, "function": _function(one), "type": "function"} for one in part]
            yield {"tool_calls": calls, "content": None, "role": "assistant"}
        elif role == "tool_result":
            results = [{"tool_call_id": one.call_id, "role": "tool", "content": one.content} for one in part]
            together = "\n\n".join(one.content for one in part)
            yield {"content": together, "tool_responses": results, "role": "tool", "name": proxy}


def _openai_messages(messages: list[Message]) -> Iterator[Json]:
    """Yield the messages of the chat-completions API; memory and system are both system messages."""
    for role, group in groupby(messages, key=lambda one: one.role):
        part = list(group)
        if role in ("system", "memory"):
            yield from ({"role": "system", "content": one.content} for one in part)
        elif role in ("user", "assistant"):
            for one in part:
                name = {} if one.source in ("user", "assistant") else {"name": one.source}
                yield {"role": role, "content": one.content, **name}
        elif role == "tool_call":
            calls = [{"id": one.call_id, "type": "function", "function": _function(one)} for one in part]
            yield {"role": "assistant", "content": None, "tool_calls": calls}
        elif role == "tool_result":
            yield from ({"role": "tool", "tool_call_id": one.call_id, "content": one.content} for one in part)


def _function(call: Message) -> Json:
    return {"arguments": call.arguments_text, "name": call.name}
