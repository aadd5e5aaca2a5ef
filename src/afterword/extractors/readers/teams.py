"""States of agents and of teams: the thread of the manager first, then whatever only an agent or a buffer still has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from afterword.extractors.readers.agentchat import is_message, read_messages
from afterword.extractors.readers.copies import merged
from afterword.extractors.readers.memory_marks import is_system_memory, repeats
from afterword.extractors.readers.openai_messages import plain_voice, read_roles
from afterword.extractors.readers.utterances import Item, Notes, Reading, Utterance, items_of, name_of
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
_SPOKEN = frozenset({"TextMessage", "MultiModalMessage", "HandoffMessage"})


@dataclass(slots=True)
class _Parts:
    """What lies in the states of a team and of the teams inside it."""

    threads: list[list[Utterance]] = field(default_factory=list)
    views: list[list[Utterance]] = field(default_factory=list)
    histories: list[object] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    managers: set[str] = field(default_factory=lambda: set(MANAGERS))
    speakers: set[str] = field(default_factory=set)
    actors: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)

    @property
    def outsiders(self) -> set[str]:
        """Who speaks to the team from outside; where no member is known, nobody can be told from one."""
        return self.speakers - self.inside if self.members else set()

    @property
    def inside(self) -> set[str]:
        """Everyone whom the states show to be part of the team, people who are members included."""
        return self.members | self.managers | self.actors | self.models


def read_agent(state: Item, notes: Notes) -> Reading:
    """Return what one agent's state (or its bare model context) says."""
    messages = context_of(state)
    return Reading("agent state", read_messages(messages, notes))


def read_team(states: Item, notes: Notes, layout: str = "team state") -> Reading:
    """Return what the states of a team's members and manager say, by `<name>` or `<name>/<key>`.

    Speakers of a thread who are neither members nor managers are outsiders: taken for people, on no other ground.
    """
    parts = _Parts()
    _collect(states, parts, notes)
    found: list[Utterance] = []
    for thread in parts.threads:
        found = merged(found, thread)
    has_thread = bool(found)
    for view in parts.views:
        found = merged(found, _unrepeated(view, notes, has_thread), earlier=has_thread)
    if not found and len(parts.members) == 1:
        found = [said for history in parts.histories for said in read_roles(history, notes, plain_voice)]
    found = _with_tasks(found, parts)
    return Reading(layout, found, frozenset(parts.models | parts.managers), frozenset(parts.outsiders))


def is_team_part(state: object) -> bool:
    """Whether the value is the state of a member or a manager of a team, or of a team inside."""
    return isinstance(state, dict) and not _TEAM_PARTS.isdisjoint(state)


def context_of(state: Item) -> object:
    """Return the messages of an agent's model context, None where it has none."""
    for name in ("llm_context", "model_context"):
        context = state.get(name)
        if isinstance(context, dict) and isinstance(context.get("messages"), list):
            return context["messages"]
        if isinstance(context, list):
            return context
    messages = state.get("messages")
    is_context = isinstance(messages, list) and any(is_message(item) for item in messages)
    return messages if is_context else None


def _collect(states: Item, parts: _Parts, notes: Notes) -> None:
    inner: list[Item] = []
    for key, state in states.items():
        if not isinstance(state, dict):
            if state is not None:
                notes.skip("unreadable agent state")
            continue
        name = _TEAM_SUFFIX.sub("", key.rsplit("/", 1)[0])
        if "message_thread" in state:
            parts.managers.add(name)
            _collect_manager(state, parts, notes)
        else:
            parts.members.add(name)
            inner += _collect_member(name, state, parts, notes)
    for team in inner:
        _collect(team, parts, notes)


def _collect_manager(state: Item, parts: _Parts, notes: Notes) -> None:
    parts.threads.append(read_messages(state["message_thread"], notes))
    _note_speakers(state["message_thread"], parts)
    task = state.get("task")
    if isinstance(task, str) and task.strip():
        parts.tasks.append(task)


def _collect_member(name: str, state: Item, parts: _Parts, notes: Notes) -> list[Item]:
    """Add an agent's view, and return the states of the team inside it."""
    own = state.get("agent_state", state)
    if not isinstance(own, dict):
        notes.skip("unreadable agent state")
        own = {}
    context = context_of(own)
    if isinstance(context, list):
        parts.models.update(_model_names(context))
    if isinstance(own.get("history"), list):
        # Its roles do not tell people from other agents: of use only where nobody else could have spoken.
        parts.histories.append(own["history"])
    buffer = state.get("message_buffer")
    parts.views.append([*read_messages(context, notes, name), *read_messages(buffer, notes, name)])
    return list(_inner_states(own))


def _inner_states(state: Item) -> Iterator[Item]:
    inner = state.get("inner_team_state")
    for team in (state, inner):
        if isinstance(team, dict) and isinstance(team.get("agent_states"), dict):
            yield team["agent_states"]


def _note_speakers(thread: object, parts: _Parts) -> None:
    """Note who speaks in the thread as a person may, who acts as only agents do, and whose words a model wrote."""
    for message in items_of(thread, Notes()):
        source, kind = name_of(message.get("source")), message.get("type", "TextMessage")
        if isinstance(message.get("models_usage"), dict):
            parts.models.add(source)
        elif isinstance(kind, str) and kind in _SPOKEN:
            parts.speakers.add(source)
        elif kind != "StopMessage":
            parts.actors.add(source)


def _model_names(context: Iterable[object]) -> Iterator[str]:
    for message in context:
        if isinstance(message, Mapping) and message.get("type") == "AssistantMessage" and "source" in message:
            yield name_of(message["source"])


def _unrepeated(view: list[Utterance], notes: Notes, has_thread: bool) -> list[Utterance]:
    """Leave out the system messages that inject what the thread tells as a memory query."""
    if not (has_thread and notes.injected):
        return view
    first_lines = {text.splitlines()[0].strip() for text in notes.injected}
    return [said for said in view if said.role is not Role.SYSTEM or not _is_told(said.text, first_lines, notes)]


def _is_told(text: str, first_lines: set[str], notes: Notes) -> bool:
    return text.strip() in notes.injected or (is_system_memory(text) and repeats(text, first_lines))


def _with_tasks(found: list[Utterance], parts: _Parts) -> list[Utterance]:
    """Put a task before the thread that the manager keeps beside it, unless the thread has its words."""
    inside = parts.models | parts.managers
    said = " ".join(folded(item.text) for item in found if item.role is None and item.source not in inside)
    missing = [Utterance("user", task, Role.HUMAN) for task in parts.tasks if folded(task) not in said]
    return missing + found
