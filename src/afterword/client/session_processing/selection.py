"""Selects sessions by the arguments of `process`: paths, a saved state, messages, or the id of a recorded session."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from afterword.client.arguments import Source
from afterword.errors import ArgumentInvalid
from afterword.extractors.readers import parse_state
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import SelectedSessions, select_sessions
from afterword.pipeline.intake import Saved


def selection_from_source(
    source: Source,
    *,
    scope: Scope | None,
    session_id: str | None,
    manifest: str | Path | None,
    trust_manifest: bool = False,
    humans: Sequence[str] = (),
    started_at: datetime | None = None,
    at: datetime,
) -> SelectedSessions:
    """Return the sessions that the arguments of `process` select. Raises `ArgumentInvalid` and `SourceInvalid`."""
    given = _state_or_paths(source)
    if isinstance(given, Mapping | bytes):
        owner, name = _session_of_state(scope, session_id)
        state = parse_state(given) if isinstance(given, bytes) else given
        saved = Saved(owner, name, state=state, humans=humans, started_at=started_at, file_time=at)
        return SelectedSessions([saved], are_named=True)
    is_recorded = _is_recorded_session(given, scope, session_id)
    if (given or manifest is not None) and not is_recorded:
        return select_sessions(
            [Path(path) for path in given],
            session_id=session_id,
            scope=scope,
            manifest=None if manifest is None else Path(manifest),
            trust_manifest=trust_manifest,
        )
    recorded_id = str(given[0]) if is_recorded else session_id
    if scope is None or recorded_id is None:
        raise ArgumentInvalid("say what to process: a path, a state, or a recorded session by scope and session id")
    return SelectedSessions([Saved(scope, recorded_id)], are_named=True)


def _state_or_paths(source: Source) -> Mapping[str, Any] | bytes | list[str | Path]:
    """Return the state that a source is, or the state that holds its messages, or the list of its paths."""
    if isinstance(source, BaseModel):
        return source.model_dump(mode="json")
    if isinstance(source, Mapping | bytes):
        return source
    if source is None or isinstance(source, str | Path):
        return [] if source is None else [source]
    messages = [each.model_dump(mode="json") if isinstance(each, BaseModel) else each for each in source]
    paths = [each for each in messages if isinstance(each, str | Path)]
    return {"messages": messages} if len(messages) > len(paths) else paths


def _session_of_state(scope: Scope | None, session_id: str | None) -> tuple[Scope, str]:
    if scope is None or session_id is None:
        raise ArgumentInvalid("a state belongs to one session of one scope: give the scope and the session id")
    return scope, session_id


def _is_recorded_session(paths: Sequence[str | Path], scope: Scope | None, session_id: str | None) -> bool:
    """Whether the only path is meant as the id of a recorded session of the scope, since no such file exists."""
    if scope is None or session_id is not None or len(paths) != 1:
        return False
    # `Path.exists` raises an error for a long text.
    return isinstance(paths[0], str) and not os.path.exists(paths[0])  # noqa: PTH110
