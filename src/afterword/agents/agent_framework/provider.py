"""`FactMemoryProvider`: a context provider of Agent Framework that gives an agent the facts of a person."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from agent_framework import AgentSession, ContextProvider, FunctionTool, Message, SessionContext, SupportsAgentRun
from autogen_core import CancellationToken
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import AssistantMessage, LLMMessage, UserMessage

from afterword import telemetry
from afterword.agents.agent_framework.session_record import (
    JsonMessage,
    SessionRecord,
    masked_messages,
    read_or_new_record,
    storable_message,
    text_of_message,
    transcript_prefix_digests,
)
from afterword.agents.memory import FactMemory
from afterword.agents.memory_settings import (
    SessionProcessor,
    SharedStore,
    StoreReference,
    chosen_processor,
    named_scope,
    utc_now,
)
from afterword.agents.placement import latest_user_text, set_conversation_of_task, user_texts
from afterword.agents.tools import MemoryTool, RecallTool, RememberTool, WithdrawTool
from afterword.agents.turn_guard import TurnGuard
from afterword.errors import ScopeInvalid
from afterword.extractors.extractor import Extractor
from afterword.extractors.readers.agent_framework import is_framework_prompt, is_injected_message
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import HUMAN_NAMES
from afterword.facts.words import folded
from afterword.recall.vectors import Embedder

TOOLS = (RememberTool, RecallTool, WithdrawTool)

_log = telemetry.logs(__name__)
SOURCE_ID = "afterword"
IDLE_S = 5.0
LONGEST_ANSWER_S = 120.0
"""After this time a session is processed without the answer: the model failed, or nobody read its stream to the end."""
MOST_MEMORIES = 1_000
MOST_TRANSCRIPTS = 10_000
FindUser = Callable[[AgentSession], str | Scope]
"""A function that returns the user or the scope that a session belongs to."""


def function_tools(
    memory: FactMemory, messages: Sequence[LLMMessage], extractor: Extractor | None
) -> list[FunctionTool]:
    """Return the tools `remember`, `recall` and `withdraw` for a run. `messages` are those of the conversation."""
    humans = {message.source for message in messages if isinstance(message, UserMessage)} | HUMAN_NAMES
    return [_function_tool(kind(memory, humans=humans, extractor=extractor), memory, messages) for kind in TOOLS]


def spoken_messages(messages: Sequence[JsonMessage]) -> list[LLMMessage]:
    """Return the messages of people and agents, without those that other memories or the framework have added."""
    said: list[LLMMessage] = []
    for message in messages:
        text = text_of_message(message)
        if not text or is_injected_message(message["additional_properties"]):
            continue
        author = message.get("author_name")
        if message["role"] == "user" and not is_framework_prompt(text):
            said.append(UserMessage(content=text, source=author or "user"))
        elif message["role"] == "assistant":
            said.append(AssistantMessage(content=text, source=author or "assistant"))
    return said


def _function_tool(tool: MemoryTool[Any], memory: FactMemory, messages: Sequence[LLMMessage]) -> FunctionTool:
    async def answer(**arguments: Any) -> str:
        # The tool reads what the person has said from the conversation that its task belongs to.
        context = UnboundedChatCompletionContext()
        for message in messages:
            await context.add_message(message)
        set_conversation_of_task(memory.scope, context)
        return (await tool.run(tool.arguments(**arguments), CancellationToken())).text

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        approval_mode="never_require",
        func=answer,
        input_model=tool.arguments,
    )


@dataclass(slots=True)
class _Run:
    """One run of an agent: its scope and session, its incoming messages, and the record of the session.

    `unsaved` are messages of earlier runs of the session that could not be stored. `record` is None if the record could
    not be read in time.
    """

    scope: Scope
    session_id: str
    incoming: list[JsonMessage]
    unsaved: list[JsonMessage] = field(default_factory=list)
    record: SessionRecord | None = None
    saving: asyncio.Task[None] | None = None

    @property
    def key(self) -> tuple[Scope, str]:
        """The scope, and the session id that the caller uses (the stored session may have another id)."""
        return self.scope, self.session_id


class FactMemoryProvider(ContextProvider):
    """Gives an agent a person's facts, for example `Agent(..., context_providers=[FactMemoryProvider("lena")])`.

    `user` is the name of the person. For an agent that serves many people, it is a function that returns the person of
    a session. (In a workflow, each executor has its own session; there the function can read a `ContextVar`.) `scope`,
    `also`, `store`, `budget_tokens`, `timeout_s` and `embedder` are those of `FactMemory`.

    Before each run, the known facts are added to the instructions. Unless `record` is False, the messages are stored
    before and after each run, and the session is queued for processing. With `process`, it is processed in the
    background after `idle_s` seconds without a message; pass True, or what `Afterword.processor` returned. With
    `tools`, the agent gets the tools `remember`, `recall` and `withdraw`; `extractor` is that of `memory_tools`.
    `humans` are the names of speakers who are people. By default, everybody in the role of the user is. If another
    agent calls this agent as its tool, pass an empty `humans`.

    A failure of the memory is logged, and does not make a run fail. Raises `ScopeInvalid` unless exactly one of `user`
    and `scope` is given, and `StoreError` for an unsupported URL.
    """

    def __init__(
        self,
        user: str | FindUser | None = None,
        *,
        scope: Scope | str | None = None,
        also: Collection[Scope | str] = (),
        store: StoreReference | None = None,
        budget_tokens: int | None = None,
        timeout_s: float | None = None,
        record: bool = True,
        process: bool | SessionProcessor = False,
        idle_s: float = IDLE_S,
        tools: bool = False,
        extractor: Extractor | None = None,
        humans: Collection[str] | None = None,
        clock: Callable[[], datetime] = utc_now,
        embedder: Embedder | Literal["settings"] | None = "settings",
        source_id: str = SOURCE_ID,
    ) -> None:
        super().__init__(source_id)
        if callable(user) and scope is not None:
            raise ScopeInvalid("name the memory: give exactly one of user and scope")
        self._find_user = user if callable(user) else None
        self._fixed_scope = None if callable(user) else named_scope(user, scope)
        self._options: dict[str, Any] = {"also": also, "budget_tokens": budget_tokens, "timeout_s": timeout_s}
        self._options |= {"clock": clock, "embedder": embedder}
        # This memory opens the store, which the memories of all people share.
        self._store_opener = FactMemory(scope=self._fixed_scope or Scope.user(source_id), store=store, clock=clock)
        self._store: StoreReference = SharedStore("", self._store_opener.opened)
        self._memories: OrderedDict[Scope, FactMemory] = OrderedDict()
        self._guard = TurnGuard(source_id)
        self._is_recording, self._idle_s = record, idle_s
        self._processor = chosen_processor(process, store) if record else None
        self._has_tools, self._extractor, self._clock = tools, extractor, clock
        self._humans = None if humans is None else frozenset(folded(name) for name in humans)
        self._continued_sessions: OrderedDict[tuple[Scope, str], str] = OrderedDict()
        self._unsaved_messages: dict[tuple[Scope, str], list[JsonMessage]] = {}

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the known facts and the tools to the run, and store what the person says. No error is raised."""
        await self._guard.attempt(self._begin_run(session, context))

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the answer, and with `process` let the session be processed soon. No error is raised."""
        run = context.metadata.get(self.source_id)
        if self._is_recording and isinstance(run, _Run):
            await self._guard.attempt(self._end_run(run, context))

    async def finish(self) -> None:
        """Wait until all messages are stored, and with `process` until all sessions are processed.

        If messages cannot be stored, this is logged.
        """
        await self._save_remaining_messages()
        if self._processor is not None:
            await self._processor.finish()

    async def close(self) -> None:
        """Wait until all messages are stored, and close the store if it was opened here. The next use opens it again.

        If messages cannot be stored, this is logged. They are stored with the next run of their session.
        """
        await self._save_remaining_messages()
        for memory in list(self._memories.values()):
            await memory.close()
        await self._store_opener.close()

    async def _begin_run(self, session: AgentSession, context: SessionContext) -> None:
        memory = self._memory_of(self._scope_of(session))
        clock = asyncio.get_running_loop().time
        late_at = clock() + memory.timeout_s
        run = _Run(memory.scope, context.session_id or "", self._json_messages(context.input_messages))
        context.metadata[self.source_id] = run
        if self._is_recording:
            await self._begin_recording(run, memory.timeout_s / 2)
        said = spoken_messages(run.record.messages if run.record else run.incoming)
        text = await memory.instructions(latest_user_text(said), user_texts(said), late_at - clock())
        if text:
            context.extend_instructions(self.source_id, text)
        if self._has_tools:
            context.extend_tools(self.source_id, function_tools(memory, said, self._extractor))
        if run.saving is not None:
            await self._guard.attempt(self._guard.result_of(run.saving, late_at - clock()))

    async def _begin_recording(self, run: _Run, timeout_s: float) -> None:
        """Start to save the incoming messages. Wait until the record of the session is read, or the time is over."""
        run.unsaved = list(self._unsaved_messages.get(run.key, ()))
        self._add_unsaved_messages(run, run.incoming)
        reading = self._guard.start(self._record_with_messages(run))
        # This task goes on if the run is cancelled: the messages were said nevertheless.
        run.saving = self._guard.start(self._save_input(run, reading))
        run.record = await self._guard.attempt(self._guard.result_of(reading, timeout_s))

    async def _end_run(self, run: _Run, context: SessionContext) -> None:
        response = context.response
        if response is None:
            return
        answers = self._json_messages(response.messages)
        saving = self._guard.start(self._save_answers(run, answers))
        await self._guard.result_of(saving, self._memory_of(run.scope).timeout_s)
        # A caller without sessions appends either the messages of the answer or only its text to its transcript.
        for answered in (answers, self._json_messages([Message("assistant", [response.text])])):
            for digest in transcript_prefix_digests([*run.incoming, *answered])[:1]:
                self._continued_sessions[run.scope, digest] = run.record.session_id if run.record else run.session_id
        while len(self._continued_sessions) > MOST_TRANSCRIPTS:
            self._continued_sessions.popitem(last=False)

    async def _record_with_messages(self, run: _Run) -> SessionRecord:
        """Return the record of the session, with the messages of this run added.

        A caller without sessions may send the whole transcript each time. If the transcript continues that of an
        earlier session, the record of that session is returned.
        """
        store = await self._store_opener.opened()
        record = await read_or_new_record(
            store, run.scope, self._continued_sessions.get((run.scope, run.session_id), run.session_id)
        )
        if not record.messages:
            for digest in transcript_prefix_digests(run.incoming):
                if session_id := self._continued_sessions.get((run.scope, digest)):
                    record = await read_or_new_record(store, run.scope, session_id)
                    self._continued_sessions[run.scope, run.session_id] = session_id
                    break
        if run.unsaved:
            record.merge_transcript(masked_messages(store, run.unsaved))
        is_transcript = any(message["role"] != "user" for message in run.incoming)
        record.add_new_messages(masked_messages(store, run.incoming) if is_transcript else run.incoming)
        return record

    async def _save_input(self, run: _Run, reading: asyncio.Task[SessionRecord]) -> None:
        await self._save_record(run, await reading, [*run.unsaved, *run.incoming], process_after_s=LONGEST_ANSWER_S)

    async def _save_answers(self, run: _Run, answers: list[JsonMessage]) -> None:
        """Store the answers. If that fails, they are stored with the next run of the session."""
        self._add_unsaved_messages(run, answers)
        if run.saving is not None:
            await asyncio.wait({run.saving})
        said = [*run.unsaved, *run.incoming, *answers]
        record = run.record or await self._record_with_messages(replace(run, unsaved=said, incoming=[]))
        if run.record is not None:
            record.messages = [*record.messages, *answers]
        await self._save_record(run, record, said, process_after_s=self._idle_s)

    async def _save_record(
        self, run: _Run, record: SessionRecord, said: Sequence[JsonMessage], *, process_after_s: float
    ) -> None:
        """Store a record, remove the messages `said` from the unsaved ones, and let the session be processed."""
        await record.save_and_queue(await self._store_opener.opened(), sorted(self._humans or ()))
        saved = {id(message) for message in said}
        unsaved = [message for message in self._unsaved_messages.pop(run.key, ()) if id(message) not in saved]
        if unsaved:
            self._unsaved_messages[run.key] = unsaved
        if self._processor is not None:
            self._processor.start(record.scope, record.session_id, after_s=process_after_s)

    def _add_unsaved_messages(self, run: _Run, messages: Sequence[JsonMessage]) -> None:
        """Keep messages in memory until they are stored."""
        self._unsaved_messages.setdefault(run.key, []).extend(messages)
        if len(self._unsaved_messages) > MOST_MEMORIES:
            scope, session_id = next(iter(self._unsaved_messages))
            del self._unsaved_messages[scope, session_id]
            _log.error("messages of session %r were lost: too many sessions could not be stored", session_id)

    async def _save_remaining_messages(self) -> None:
        """Wait for the background tasks, and try once more to store the messages that could not be stored."""
        await self._guard.wait_for_tasks()
        for (scope, session_id), messages in list(self._unsaved_messages.items()):
            await self._guard.attempt(self._save_unsaved_messages(_Run(scope, session_id, [], list(messages))))
        for _, session_id in self._unsaved_messages:
            _log.error("the last messages of session %r are not stored yet", session_id)

    async def _save_unsaved_messages(self, run: _Run) -> None:
        await self._save_record(run, await self._record_with_messages(run), run.unsaved, process_after_s=self._idle_s)

    def _json_messages(self, messages: Sequence[Message]) -> list[JsonMessage]:
        return [storable_message(message, self._clock(), self._humans) for message in messages]

    def _scope_of(self, session: AgentSession) -> Scope:
        if self._find_user is None:
            return self._fixed_scope or named_scope(None, None)
        user = self._find_user(session)
        return user if isinstance(user, Scope) else Scope.user(user)

    def _memory_of(self, scope: Scope) -> FactMemory:
        memory = self._memories.get(scope)
        if memory is None:
            memory = self._memories[scope] = FactMemory(scope=scope, store=self._store, **self._options)
        self._memories.move_to_end(scope)
        if len(self._memories) > MOST_MEMORIES:
            self._memories.popitem(last=False)
        return memory
