"""The memory of live agents of Agent Framework: a context provider that serves the facts of a person."""

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
    json_message,
    masked_messages,
    read_record,
    spoken_words,
    transcript_digests,
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
from afterword.agents.placement import enter_conversation, latest_question, user_texts
from afterword.agents.tools import MemoryTool, RecallTool, RememberTool, WithdrawTool
from afterword.agents.turn_guard import TurnGuard
from afterword.errors import ScopeInvalid
from afterword.extractors.extractor import Extractor
from afterword.extractors.readers.agent_framework import is_injected, is_loop_text
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import HUMAN_NAMES
from afterword.facts.words import folded
from afterword.recall.vectors import Embedder

TOOLS = (RememberTool, RecallTool, WithdrawTool)

_log = telemetry.logs(__name__)
SOURCE_ID = "afterword"
IDLE_S = 5.0
LONGEST_ANSWER_S = 120.0
"""After this time without an answer a session is processed as it is: the model failed, or the stream was abandoned."""
MOST_MEMORIES = 1_000
MOST_TRANSCRIPTS = 10_000
FindUser = Callable[[AgentSession], str | Scope]
"""Returns the user, or the scope, that a session belongs to."""


def run_tools(memory: FactMemory, said: Sequence[LLMMessage], extractor: Extractor | None) -> list[FunctionTool]:
    """Return the tools `remember`, `recall` and `withdraw` for a run in which this was said so far."""
    humans = {message.source for message in said if isinstance(message, UserMessage)} | HUMAN_NAMES
    return [_function_tool(kind(memory, humans=humans, extractor=extractor), memory, said) for kind in TOOLS]


def said_messages(messages: Sequence[JsonMessage]) -> list[LLMMessage]:
    """Return what people and agents said, without what other memories and the framework itself put in."""
    said: list[LLMMessage] = []
    for message in messages:
        text = spoken_words(message)
        if not text or is_injected(message["additional_properties"]):
            continue
        author = message.get("author_name")
        if message["role"] == "user" and not is_loop_text(text):
            said.append(UserMessage(content=text, source=author or "user"))
        elif message["role"] == "assistant":
            said.append(AssistantMessage(content=text, source=author or "assistant"))
    return said


def _function_tool(tool: MemoryTool[Any], memory: FactMemory, said: Sequence[LLMMessage]) -> FunctionTool:
    async def answer(**arguments: Any) -> str:
        # The tool finds what the person has said by the conversation of its task.
        enter_conversation(memory.scope, UnboundedChatCompletionContext(initial_messages=list(said)))
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
    """One run of an agent: whose it is, what came in, and the record of its session as far as it could be read.

    `unsaved` are messages of earlier runs of the session that the store did not take.
    """

    scope: Scope
    session_id: str
    incoming: list[JsonMessage]
    unsaved: list[JsonMessage] = field(default_factory=list)
    record: SessionRecord | None = None
    saving: asyncio.Task[None] | None = None

    @property
    def key(self) -> tuple[Scope, str]:
        """The scope, and the id that the session has for its caller."""
        return self.scope, self.session_id


class FactMemoryProvider(ContextProvider):
    """Serves a person's facts to an agent, for example `Agent(..., context_providers=[FactMemoryProvider("lena")])`.

    `user` is the person, or a function that returns the person of a session, for agents that serve many. The executors
    of a workflow have sessions of their own: let the function look into a `ContextVar` there. `scope`, `also`, `store`,
    `budget_tokens`, `timeout_s` and `embedder` are those of `FactMemory`.

    Before each run the block of known facts is added to the instructions. What is said is stored before and after each
    run, and queued (`record=False`: not). With `process` a session is processed in the background when nothing was said
    for `idle_s` seconds; pass `True`, or what `Afterword.processor` returned. With `tools` the agent gets `remember`,
    `recall` and `withdraw`, for which `extractor` is that of `memory_tools`. `humans` are the speakers whose words
    count. By default these are all in the user's role; give none if another agent calls this one as its tool.

    A failure of the memory is logged and never fails a run. Raises `ScopeInvalid` unless exactly one of `user` and
    `scope` is given, and `StoreError` for an unsupported URL.
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
            raise ScopeInvalid("whose memory? give exactly one of user and scope")
        self._find_user = user if callable(user) else None
        self._fixed_scope = None if callable(user) else named_scope(user, scope)
        self._options: dict[str, Any] = {"also": also, "budget_tokens": budget_tokens, "timeout_s": timeout_s}
        self._options |= {"clock": clock, "embedder": embedder}
        # It opens the store for the memories of all people.
        self._anchor = FactMemory(scope=self._fixed_scope or Scope.user(source_id), store=store, clock=clock)
        self._store: StoreReference = SharedStore("", self._anchor.opened)
        self._memories: OrderedDict[Scope, FactMemory] = OrderedDict()
        self._guard = TurnGuard(source_id)
        self._is_recording, self._idle_s = record, idle_s
        self._processor = chosen_processor(process, store) if record else None
        self._has_tools, self._extractor, self._clock = tools, extractor, clock
        self._humans = None if humans is None else frozenset(folded(name) for name in humans)
        self._continued: OrderedDict[tuple[Scope, str], str] = OrderedDict()
        self._unsaved: dict[tuple[Scope, str], list[JsonMessage]] = {}

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the block of known facts and the tools, and store what the person says. Nothing is raised."""
        await self._guard.attempt(self._begin(session, context))

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the answer, and let the session be processed soon if that is wanted. Nothing is raised."""
        run = context.metadata.get(self.source_id)
        if self._is_recording and isinstance(run, _Run):
            await self._guard.attempt(self._end(run, context))

    async def finish(self) -> None:
        """Wait until everything is stored, and processed if that is wanted. What cannot be stored is logged."""
        await self._settle()
        if self._processor is not None:
            await self._processor.finish()

    async def close(self) -> None:
        """Wait until everything is stored, and close what was opened here. It is opened again at the next use.

        What cannot be stored is logged, and stored with the next run of its session.
        """
        await self._settle()
        for memory in list(self._memories.values()):
            await memory.close()
        await self._anchor.close()

    async def _begin(self, session: AgentSession, context: SessionContext) -> None:
        memory = self._memory(self._scope_of(session))
        clock = asyncio.get_running_loop().time
        late_at = clock() + memory.timeout_s
        run = _Run(memory.scope, context.session_id or "", self._json(context.input_messages))
        context.metadata[self.source_id] = run
        said = said_messages(run.incoming)
        saving = None
        if self._is_recording:
            run.unsaved = list(self._unsaved.get(run.key, ()))
            self._add_unsaved(run, run.incoming)
            reading = self._guard.start(self._read(run))
            # A run that is cancelled now has been heard nevertheless.
            saving = run.saving = self._guard.start(self._save_input(run, reading))
            run.record = await self._guard.attempt(self._guard.finished(reading, memory.timeout_s / 2))
            said = said_messages(run.record.messages) if run.record else said
        text = await memory.instructions(latest_question(said), user_texts(said), late_at - clock())
        if text:
            context.extend_instructions(self.source_id, text)
        if self._has_tools:
            context.extend_tools(self.source_id, run_tools(memory, said, self._extractor))
        if saving is not None:
            await self._guard.attempt(self._guard.finished(saving, late_at - clock()))

    async def _end(self, run: _Run, context: SessionContext) -> None:
        response = context.response
        if response is None:
            return
        answers = self._json(response.messages)
        saving = self._guard.start(self._save_answers(run, answers))
        await self._guard.finished(saving, self._memory(run.scope).timeout_s)
        # Callers append the messages of the answer to their transcript, or its text alone.
        for answered in (answers, self._json([Message("assistant", [response.text])])):
            for digest in transcript_digests([*run.incoming, *answered])[:1]:
                self._continued[run.scope, digest] = run.record.session_id if run.record else run.session_id
        while len(self._continued) > MOST_TRANSCRIPTS:
            self._continued.popitem(last=False)

    async def _read(self, run: _Run) -> SessionRecord:
        """Return the record of the session with the messages of this run.

        A caller without sessions may send the whole transcript each time. The record is then that of the session whose
        transcript it continues.
        """
        store = await self._anchor.opened()
        record = await read_record(store, run.scope, self._continued.get((run.scope, run.session_id), run.session_id))
        if not record.messages:
            for digest in transcript_digests(run.incoming):
                if session_id := self._continued.get((run.scope, digest)):
                    record = await read_record(store, run.scope, session_id)
                    self._continued[run.scope, run.session_id] = session_id
                    break
        if run.unsaved:
            record.add_transcript(masked_messages(store, run.unsaved))
        is_transcript = any(message["role"] != "user" for message in run.incoming)
        record.add(masked_messages(store, run.incoming) if is_transcript else run.incoming)
        return record

    async def _save_input(self, run: _Run, reading: asyncio.Task[SessionRecord]) -> None:
        await self._save(run, await reading, [*run.unsaved, *run.incoming], process_after_s=LONGEST_ANSWER_S)

    async def _save_answers(self, run: _Run, answers: list[JsonMessage]) -> None:
        """Store the answers. If the store does not answer, they are stored with the next run of the session."""
        self._add_unsaved(run, answers)
        if run.saving is not None:
            await asyncio.wait({run.saving})
        said = [*run.unsaved, *run.incoming, *answers]
        record = run.record or await self._read(replace(run, unsaved=said, incoming=[]))
        if run.record is not None:
            record.messages = [*record.messages, *answers]
        await self._save(run, record, said, process_after_s=self._idle_s)

    async def _save(
        self, run: _Run, record: SessionRecord, said: Sequence[JsonMessage], *, process_after_s: float
    ) -> None:
        """Store a record, drop the messages that it contains (`said`) from the unsaved ones, and have it processed."""
        await record.save(await self._anchor.opened(), sorted(self._humans or ()))
        saved = {id(message) for message in said}
        unsaved = [message for message in self._unsaved.pop(run.key, ()) if id(message) not in saved]
        if unsaved:
            self._unsaved[run.key] = unsaved
        if self._processor is not None:
            self._processor.start(record.scope, record.session_id, after_s=process_after_s)

    def _add_unsaved(self, run: _Run, messages: Sequence[JsonMessage]) -> None:
        """Keep messages until they are stored."""
        self._unsaved.setdefault(run.key, []).extend(messages)
        if len(self._unsaved) > MOST_MEMORIES:
            scope, session_id = next(iter(self._unsaved))
            del self._unsaved[scope, session_id]
            _log.error("what was said in session %r was lost: too many sessions could not be stored", session_id)

    async def _settle(self) -> None:
        """Wait for the tasks in the background, and try once more to store what the store did not take."""
        await self._guard.settle()
        for (scope, session_id), messages in list(self._unsaved.items()):
            await self._guard.attempt(self._save_later(_Run(scope, session_id, [], list(messages))))
        for _, session_id in self._unsaved:
            _log.error("what was said last in session %r is not stored yet", session_id)

    async def _save_later(self, run: _Run) -> None:
        await self._save(run, await self._read(run), run.unsaved, process_after_s=self._idle_s)

    def _json(self, messages: Sequence[Message]) -> list[JsonMessage]:
        return [json_message(message, self._clock(), self._humans) for message in messages]

    def _scope_of(self, session: AgentSession) -> Scope:
        if self._find_user is None:
            return self._fixed_scope or named_scope(None, None)
        user = self._find_user(session)
        return user if isinstance(user, Scope) else Scope.user(user)

    def _memory(self, scope: Scope) -> FactMemory:
        memory = self._memories.get(scope)
        if memory is None:
            memory = self._memories[scope] = FactMemory(scope=scope, store=self._store, **self._options)
        self._memories.move_to_end(scope)
        if len(self._memories) > MOST_MEMORIES:
            self._memories.popitem(last=False)
        return memory
