"""Make the state that AutoGen saves after a session, for the kind of agent or team in the scenario.

As in real files, v0.2 and OpenAI lists contain no thoughts, and only teams contain the times of single messages.
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

from afterword.evaluation.scenarios.scenario import Message, Session
from afterword.evaluation.scenarios.simulation import Simulation, memory_entries, simulate
from afterword.pipeline.errors import SourceInvalid

Json = dict[str, Any]

TEACHABILITY = "# Memories that might help"
"""The first line of the memories that v0.2's Teachability appends to a message."""


def saved_state(session: Session, seed: str) -> Json | list[Json]:
    """Return the saved state of a session. The ids in it depend only on `seed` and on the position.

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
    """Return the state of an AssistantAgent that has read every message, also those after its last turn."""
    simulation = simulate(session, single=True)
    if not simulation.agents:
        people = [message for message in session.messages if message.role == "user"]
        return _agent_state([UserMessage(content=message.content, source=message.source) for message in people])
    (agent,) = simulation.agents.values()
    agent.catch_up()
    return _agent_state(agent.context)


def _agent_state(context: list[LLMMessage]) -> Json:
    messages = {"messages": [message.model_dump(mode="json") for message in context]}
    return AssistantAgentState(llm_context=messages).model_dump(mode="json")


def _team_state(session: Session, seed: str) -> Json:
    """Return the state of a team that has stopped after the session's last message."""
    simulation = simulate(session)
    if not simulation.agents:
        raise SourceInvalid(
            f"session {session.session_id!r} is a {session.container}, but no agent speaks in it; "
            "give it messages of an agent, or another container"
        )
    simulation.set_ids_and_times(session, seed)
    states = {
        name: ChatAgentContainerState(
            agent_state=_agent_state(agent.context), message_buffer=[message.dump() for message in agent.unread]
        ).model_dump(mode="json")
        for name, agent in simulation.agents.items()
    }
    name, manager = _manager(session.container, simulation)
    return TeamState(agent_states={**states, name: manager.model_dump(mode="json")}).model_dump(mode="json")


def _manager(container: str, simulation: Simulation) -> tuple[str, BaseGroupChatManagerState]:
    thread, last_speaker = [message.dump() for message in simulation.thread], simulation.last_speaker
    if container == "selector":
        selector = SelectorManagerState(message_thread=thread, previous_speaker=last_speaker)
        return "SelectorGroupChatManager", selector
    if container == "swarm":
        return "SwarmGroupChatManager", SwarmManagerState(message_thread=thread, current_speaker=last_speaker or "")
    names = list(simulation.agents)
    next_index = (names.index(last_speaker) + 1) % len(names) if last_speaker else 0
    return "RoundRobinGroupChatManager", RoundRobinManagerState(message_thread=thread, next_speaker_index=next_index)


def _v02_history(messages: list[Message]) -> Iterator[Json]:
    """Yield the chat history of v0.2's user proxy, in which its own messages have the role "assistant"."""
    proxy = next((message.source for message in messages if message.role == "user"), "user")
    memories = ""
    for role, group in groupby(messages, key=lambda message: message.role):
        same_role = list(group)
        if role == "memory":
            entries = memory_entries(same_role[-1].content)
            memories = f"\n\n{TEACHABILITY}\n" + "".join(f"- {entry}\n" for entry in entries)
        elif role == "user":
            for message in same_role:
                yield {"content": message.content + memories, "role": "assistant", "name": message.source}
        elif role == "assistant":
            yield from ({"content": message.content, "role": "user", "name": message.source} for message in same_role)
        elif role == "tool_call":
            yield {"tool_calls": [_tool_call(message) for message in same_role], "content": None, "role": "assistant"}
        elif role == "tool_result":
            content = "\n\n".join(message.content for message in same_role)
            responses = [_tool_result(message) for message in same_role]
            yield {"content": content, "tool_responses": responses, "role": "tool", "name": proxy}


def _openai_messages(messages: list[Message]) -> Iterator[Json]:
    """Yield the messages of the chat-completions API. Memory and system messages both become system messages."""
    for role, group in groupby(messages, key=lambda message: message.role):
        same_role = list(group)
        if role in ("system", "memory"):
            yield from ({"role": "system", "content": message.content} for message in same_role)
        elif role in ("user", "assistant"):
            for message in same_role:
                name = {} if message.source in ("user", "assistant") else {"name": message.source}
                yield {"role": role, "content": message.content, **name}
        elif role == "tool_call":
            yield {"role": "assistant", "content": None, "tool_calls": [_tool_call(message) for message in same_role]}
        elif role == "tool_result":
            yield from (_tool_result(message) for message in same_role)


def _tool_call(call: Message) -> Json:
    return {"id": call.call_id, "type": "function", "function": {"arguments": call.arguments_text, "name": call.name}}


def _tool_result(message: Message) -> Json:
    return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
