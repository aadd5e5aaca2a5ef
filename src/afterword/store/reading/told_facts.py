"""What a block could tell an agent of a scope: facts that hold or held before, turns of its owner, and findings."""

from __future__ import annotations

from datetime import datetime

from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import SourceTurn
from afterword.store.database.engine import Store
from afterword.store.reading.layer_sources import layer_source
from afterword.store.reading.view_cache import view_cache_of


async def read_told_facts(store: Store, scope: Scope, *, at: datetime) -> tuple[Fact, ...]:
    """Return the facts that hold, in the order of saying, then those that held before."""
    view = await view_cache_of(store).view(store, scope, at)
    source = await layer_source(store, view)
    holding = [view.shown(view.snapshot.table.unit(place)) for place in view.served_places().tolist()]
    return (*holding, *(former.fact for former in source.former))


async def read_told_findings(store: Store, scope: Scope, *, at: datetime) -> tuple[AgentFinding, ...]:
    """Return what agents found and other agents are told of it, the newest first."""
    view = await view_cache_of(store).view(store, scope, at)
    source = await layer_source(store, view)
    return tuple(finding for finding, _ in source.findings_for("", at=at, is_about_the_past=False))


async def read_told_turns(store: Store, scope: Scope, session_id: str, *, at: datetime) -> tuple[SourceTurn, ...]:
    """Return the turns of a session that may be shown to an agent, as it is shown them, in order."""
    view = await view_cache_of(store).view(store, scope, at)
    source = await layer_source(store, view)
    return tuple(source.said.shown_turns(session_id, at=at, is_hidden=source.hidden.covers_now))
