"""Read states of agents and teams: the manager's thread, and messages that stand only in an agent's own state."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from afterword.extractors.readers.agentchat import (
    Speakers,
    is_agentchat_message,
    model_agent_names,
    read_agentchat_messages,
)
from afterword.extractors.readers.duplicates import merge_views
from afterword.extractors.readers.memory_marks import is_system_memory, repeats_injected_text
from afterword.extractors.readers.role_messages import read_role_messages, speaker_by_role
from afterword.extractors.readers.utterances import (
    JsonObject,
    ReadingLog,
    SavedConversation,
    Utterance,
)
from afterword.facts.transcripts import Role
from afterword.facts.words import folded

MANAGERS = frozenset(
    {
        "RoundRobinGroupChatManager",
        "SelectorGroupChatManager",
        "SwarmGroupChatManager",
        "MagenticOneOrchestrator",
        "GraphManager",
        "group_chat_manager",
    }
)
_TEAM_PARTS = frozenset({"agent_state", "message_thread", "agent_states", "llm_context", "inner_team_state"})
_TEAM_SUFFIX = re.compile(r"_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
# The state of a `UserProxyAgent`, and of a code executor or a filter.
_WITHOUT_CONTENT = frozenset({"type", "version"})


@dataclass(slots=True)
class _TeamContents:
    """The messages and names that are collected from the states of a team and of the teams inside it.

    `threads` are those of managers, `views` the contexts and buffers of members, and `histories` their messages with
    roles. `speakers` are those of the threads.
    """

    threads: list[list[Utterance]] = field(default_factory=list)
    views: list[list[Utterance]] = field(default_factory=list)
    histories: list[object] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    without_content: set[str] = field(default_factory=set)
    managers: set[str] = field(default_factory=lambda: set(MANAGERS))
    speakers: Speakers = field(default_factory=Speakers)


def read_team(states: JsonObject, log: ReadingLog, layout: str = "team state") -> SavedConversation:
    """Return the conversation of a team. `states` are those of its members and manager, by `<name>` or `<name>/<key>`.

    Speakers who are neither members nor managers nor programs are outsiders of the conversation: they may be people.
    """
    contents = _TeamContents()
    _collect_states(states, contents, log)
    utterances: list[Utterance] = []
    for thread in contents.threads:
        utterances = merge_views(utterances, thread)
    has_thread = bool(utterances)
    for view in contents.views:
        utterances = merge_views(
            utterances, _without_injected_memory(view, log, has_thread), unrelated_goes_first=has_thread
        )
    if not utterances and len(contents.members) == 1:
        for history in contents.histories:
            utterances += read_role_messages(history, log, speaker_by_role)
    utterances = _prepend_tasks(utterances, contents)
    agents = frozenset(contents.speakers.model_names | contents.managers)
    # If no member is known, members and outsiders cannot be distinguished.
    outsiders = contents.speakers.possible_people - agents - contents.members if contents.members else ()
    unclear = contents.without_content & contents.speakers.possible_people - agents
    return SavedConversation(layout, utterances, agents, frozenset(outsiders), frozenset(unclear))


def is_team_or_part(state: object) -> bool:
    """Whether the value is the state of a team, or of a member or a manager of one."""
    return isinstance(state, dict) and not _TEAM_PARTS.isdisjoint(state)


def inner_agent_states(state: object) -> JsonObject | None:
    """Return the states of a team's agents, or None if the value is no state of a team."""
    states = state.get("agent_states") if isinstance(state, dict) else None
    return states if isinstance(states, dict) else None


def context_messages(state: JsonObject) -> list[object] | None:
    """Return the messages of an agent's model context, or None if it has none."""
    for name in ("llm_context", "model_context"):
        context = state.get(name)
        messages = context.get("messages") if isinstance(context, dict) else context
        if isinstance(messages, list):
            return messages
    messages = state.get("messages")
    return messages if isinstance(messages, list) and any(map(is_agentchat_message, messages)) else None


def _collect_states(states: JsonObject, contents: _TeamContents, log: ReadingLog) -> None:
    inner: list[JsonObject] = []
    for key, state in states.items():
        if not isinstance(state, dict):
            if state is not None:
                log.skip("unreadable agent state")
            continue
        name = _TEAM_SUFFIX.sub("", key.rsplit("/", 1)[0])
        if "message_thread" in state:
            _collect_manager(name, state, contents, log)
        else:
            inner += _collect_member_and_find_inner_teams(name, state, contents, log)
    tasks = len(contents.tasks)
    for team in inner:
        _collect_states(team, contents, log)
    # The tasks of an inner team may come from agents of the outer team, so they are not taken for words of a person.
    del contents.tasks[tasks:]


def _collect_manager(name: str, state: JsonObject, contents: _TeamContents, log: ReadingLog) -> None:
    """Add the thread of a manager, and the task that it stores beside the thread."""
    contents.managers.add(name)
    contents.threads.append(read_agentchat_messages(state["message_thread"], log))
    contents.speakers.collect(state["message_thread"])
    if isinstance(task := state.get("task"), str) and task.strip():
        contents.tasks.append(task)


def _collect_member_and_find_inner_teams(
    name: str, state: JsonObject, contents: _TeamContents, log: ReadingLog
) -> list[JsonObject]:
    """Add what an agent has seen, and return the states of the teams inside it."""
    contents.members.add(name)
    own = state.get("agent_state", state)
    if not isinstance(own, dict):
        log.skip("unreadable agent state")
        own = {}
    if own.get("type") == "BaseState" and own.keys() <= _WITHOUT_CONTENT:
        contents.without_content.add(name)
    context = context_messages(own)
    contents.speakers.model_names.update(model_agent_names(context))
    if isinstance(own.get("history"), list):
        # Roles do not distinguish people from other agents, so the history is used only if the team has one agent.
        contents.histories.append(own["history"])
    buffer = state.get("message_buffer")
    contents.views.append([*read_agentchat_messages(context, log, name), *read_agentchat_messages(buffer, log, name)])
    teams = (inner_agent_states(own), inner_agent_states(own.get("inner_team_state")))
    return [team for team in teams if team is not None]


def _without_injected_memory(view: list[Utterance], log: ReadingLog, has_thread: bool) -> list[Utterance]:
    """Return the view without system messages that repeat memory from a memory query in the thread."""
    if not (has_thread and log.injected):
        return view
    first_lines = {text.splitlines()[0].strip() for text in log.injected}
    return [
        utterance
        for utterance in view
        if utterance.role is not Role.SYSTEM or not _is_injected(utterance.text, first_lines, log)
    ]


def _is_injected(text: str, first_lines: set[str], log: ReadingLog) -> bool:
    return text.strip() in log.injected or (is_system_memory(text) and repeats_injected_text(text, first_lines))


def _prepend_tasks(utterances: list[Utterance], contents: _TeamContents) -> list[Utterance]:
    """Add the tasks that managers store beside the thread, at the start, unless the thread contains their words."""
    inside = contents.speakers.model_names | contents.managers
    from_outside = (utterance for utterance in utterances if utterance.role is None and utterance.source not in inside)
    said = " ".join(folded(utterance.text) for utterance in from_outside)
    missing = [Utterance("user", task, Role.HUMAN) for task in contents.tasks if folded(task) not in said]
    return missing + utterances
