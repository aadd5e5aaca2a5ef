"""Saving the state of an agent or team when a conversation ends, and loading it again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from sqlmodel import Session

from afterword import telemetry
from afterword.agents.live_agents import user_proxy_names, with_marked_examples
from afterword.agents.memory_settings import (
    SessionProcessor,
    StoreReference,
    StoreSettings,
    chosen_processor,
    named_scope,
    opened_store,
    settings_for_opening,
)
from afterword.agents.message_origins import MessagesInState, SessionName, session_in_progress
from afterword.agents.saved_blocks import without_blocks
from afterword.agents.state_queue import QueuedTurns, store_and_queue_state
from afterword.errors import NotFound, StateConflict, StoreError
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role
from afterword.store import sessions
from afterword.store.merging.moves import former_session_names, present_and_former_names
from afterword.store.scope_rows import scope_key

_RECORD_AGAIN = "the agent or team still holds what was said, and recording it again, in an empty block, saves it"

_LONGEST_CHECK_S = 0.5
"""How long the beginning of a conversation may wait for the store, in seconds. A slow store must not hold it up."""

_log = telemetry.logs(__name__)


@runtime_checkable
class Recordable(Protocol):
    """An agent or a team: any object whose state can be saved and loaded."""

    async def save_state(self) -> Mapping[str, Any]:
        """Return the state, as JSON values."""
        ...

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Load a saved state."""
        ...


AgentOrTeam = TypeVar("AgentOrTeam", bound=Recordable)


@asynccontextmanager
async def record_session(
    agent_or_team: AgentOrTeam,
    *,
    user: str | None = None,
    scope: Scope | str | None = None,
    session_id: str,
    store: StoreReference | None = None,
    humans: Collection[str] = (),
    off_the_record: bool = False,
    process: bool | SessionProcessor = False,
    clock: Callable[[], datetime] | None = None,
) -> AsyncIterator[AgentOrTeam]:
    """Save the state of an agent or team at the end of the block, and queue the session for processing.

    With `process=True`, the session is processed in the background after the block, with the settings of the profile
    and the environment. Instead of True, pass what `Afterword.processor` returned to use its settings. If the program
    ends before that, the session stays queued. It is then processed with the next session of its scope, or by
    `run_pending`.

    The state is saved even if the block fails or is cancelled. The error of the block is raised afterwards, and a
    failure to save is then only logged. A team that is still running when the block ends is saved in its present state.
    What the same agent or team said in another session that was recorded or resumed is left out: messages that it holds
    belong to the session in which they were first saved, or left out on purpose. This is known only in this process.

    A `UserProxyAgent` counts as a person. `humans` are the names of other people. The `initial_messages` of a model
    context count as nobody's words. Secrets are masked, and what was said off the record is left out. With
    `off_the_record` no words are saved, only keyed hashes of the new turns. By these they stay left out if the same
    session is recorded again. `clock` returns the time at which the new messages were said, by default the present
    time.

    Raises `ScopeInvalid` unless exactly one of `user` and `scope` is given. Raises `StateConflict` if the session id is
    empty or another kind of agent saved this session: before the block, if the store can be read then. Raises
    `StoreError` if the state could not be stored. Recording the same agent again, in an empty block, then saves it.
    A store that is not opened yet, by default the configured one, is opened with the settings of the profile and the
    environment. Raises `SettingsInvalid` before the block if these cannot be read.
    """
    processor = chosen_processor(process, store)
    owner, is_kept = named_scope(user, scope), not off_the_record
    settings = settings_for_opening(store)
    recording = _Recording(agent_or_team, owner, session_id, store, settings, tuple(humans), processor, clock, is_kept)
    if not session_id.strip():
        raise StateConflict("the session id is empty; give each conversation an id of its own")
    with session_in_progress(agent_or_team, (owner, session_id)):
        async with recording:
            yield agent_or_team


async def resume(
    agent_or_team: Recordable,
    *,
    user: str | None = None,
    scope: Scope | str | None = None,
    session_id: str,
    store: StoreReference | None = None,
    missing_ok: bool = False,
) -> bool:
    """Load the saved state of a session into an agent or team of the same kind; return whether there was one.

    The loaded messages belong to this session, also if the agent or team is recorded under another session id later.
    Secrets that were masked when the state was saved stay masked. Blocks of memories are not loaded: the memories that
    the agents have now write theirs. Raises `NotFound` if this scope has no such session
    (with `missing_ok` it returns False instead), `StateConflict` if another kind of agent or team saved it, or one with
    other participants, and `SettingsInvalid` as `record_session` does.
    """
    owner, component = named_scope(user, scope), _component_name(agent_or_team)
    try:
        state = await _read_saved_state(store, owner, session_id, component)
    except NotFound:
        if missing_ok:
            return False
        raise
    try:
        await agent_or_team.load_state(state)
    except (ValueError, KeyError) as error:
        raise StateConflict(
            f"session {session_id!r} does not fit this {component} ({type(error).__name__}); "
            "build it with the same participants as when it was saved"
        ) from error
    MessagesInState(agent_or_team, await agent_or_team.save_state()).assign_loaded_messages((owner, session_id))
    return True


async def _read_saved_state(store: StoreReference | None, scope: Scope, session_id: str, component: str) -> Any:
    """Return the saved state of a session with masked secrets and without blocks. Raises `NotFound`."""
    async with opened_store(store, settings_for_opening(store)) as source:
        saved = await source.read(lambda transaction: sessions.load_state(transaction, scope, session_id, component))
        return without_blocks(source.privacy.mask_state(saved))


@dataclass(frozen=True, slots=True)
class _Recording:
    recorded: Recordable
    scope: Scope
    session_id: str
    store: StoreReference | None
    settings: StoreSettings
    humans: tuple[str, ...]
    processor: SessionProcessor | None
    clock: Callable[[], datetime] | None
    is_kept: bool

    async def __aenter__(self) -> None:
        """Refuse a session that another kind of agent has saved, before anything is said in it."""
        if not self.is_kept:
            return
        try:
            async with asyncio.timeout(_LONGEST_CHECK_S), opened_store(self.store, self.settings) as store:
                component = _component_name(self.recorded)
                await store.read(
                    lambda transaction: sessions.read_state_row(transaction, self.scope, self.session_id, component)
                )
        except StateConflict:
            raise
        except (StoreError, TimeoutError) as error:
            reason = type(error).__name__
            _log.warning("session %r begins, but the store cannot be read now (%s)", self.session_id, reason)

    async def __aexit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Save the state, even if the block has failed. A failure to save is then only logged."""
        saving, cancellation = asyncio.ensure_future(self._save()), None
        try:
            await asyncio.wait({saving})
        except asyncio.CancelledError as cancelled:
            # Go on saving: to lose half a conversation is worse than a short delay of the cancellation.
            await asyncio.wait({saving})
            cancellation = cancelled
        failure = saving.exception()
        if failure is not None and (error or cancellation) is None:
            if isinstance(failure, StoreError):
                failure.args = (f"{failure}; session {self.session_id!r} was not saved: {_RECORD_AGAIN}",)
            raise failure
        if failure is not None:
            reason = type(failure).__name__
            _log.error("session %r was not saved (%s): %s", self.session_id, reason, _RECORD_AGAIN)
        elif self.processor is not None and self.is_kept:
            self.processor.start(self.scope, self.session_id)
        if cancellation is not None:
            raise cancellation

    async def _save(self) -> None:
        name = self.scope, self.session_id
        with telemetry.stage(telemetry.Stage.RECORD, scope=self.scope, session_id=self.session_id):
            component, state = _component_name(self.recorded), await self.recorded.save_state()
            messages = MessagesInState(self.recorded, state)
            humans = tuple(dict.fromkeys((*self.humans, *user_proxy_names(self.recorded))))
            async with opened_store(self.store, self.settings) as store:
                at = self.clock() if self.clock else None
                save = partial(store_and_queue_state, component=component, humans=humans, at=at, is_kept=self.is_kept)
                state = with_marked_examples(state, self.recorded, store.privacy)
                if messages.has_messages_of_other_sessions({name}):
                    state = messages.state_without_other_sessions(
                        state, await store.read(lambda transaction: _session_names(transaction, *name))
                    )
                queued = await save(store, self.scope, self.session_id, state)
            messages.assign_new_messages(name)
            if queued is not None:
                self._log_warnings(component, queued)

    def _log_warnings(self, component: str, queued: QueuedTurns) -> None:
        """Warn in the log if nothing was said in the session, or if another chat has replaced the saved one."""
        if all(turn.role in (Role.SYSTEM, Role.MEMORY) for turn in queued.turns):
            _log.warning(
                "session %r has no messages: the %s holds none of it at the end of the block; "
                "record each conversation before a reset, and a SocietyOfMindAgent by a team that it is a member of",
                self.session_id,
                component,
            )
        elif queued.replaces_other_chat:
            _log.warning(
                "session %r was saved before with another chat, which cannot be resumed any more; "
                "resume a session before you record it again, or use a new session id",
                self.session_id,
            )


def _session_names(transaction: Session, scope: Scope, session_id: str) -> set[SessionName]:
    """Return the names that a session has and had: its scope may have been renamed, or another one merged into it."""
    former = former_session_names(transaction, scope_key(transaction, scope), [session_id])
    return {*((name, session_id) for name in present_and_former_names(transaction, scope)), *former.get(session_id, ())}


def _component_name(agent_or_team: Recordable) -> str:
    return type(agent_or_team).__name__
