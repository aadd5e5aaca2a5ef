"""Reads everything that agents may be told of a scope, whatever they ask."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import SourceTurn
from afterword.store.database.engine import Store
from afterword.store.reading.searchable_layers import searchable_layers
from afterword.store.reading.view_cache import view_cache_of


async def read_told_facts(store: Store, scope: Scope, *, at: datetime) -> tuple[Fact, ...]:
    """Return the facts that agents are told: those that hold, in the order of saying, then those that held before."""
    view = await view_cache_of(store).view(store, scope, at)
    searchable = await searchable_layers(store, view)
    holding = [
        view.fact_with_replaced_value(view.snapshot.table.unit_at(place))
        for place in view.served_fact_places().tolist()
    ]
    return (*holding, *(former.fact for former in searchable.former))


async def read_facts_with_ended_parts(store: Store, scope: Scope, *, at: datetime) -> tuple[Fact, ...]:
    """Return the facts of which a part has ended, with their former sentences."""
    searchable = await searchable_layers(store, await view_cache_of(store).view(store, scope, at))
    return tuple(part.fact for part in searchable.former_sentences)


async def read_told_findings(store: Store, scope: Scope, *, at: datetime) -> tuple[AgentFinding, ...]:
    """Return the findings that agents are told, the newest first."""
    view = await view_cache_of(store).view(store, scope, at)
    searchable = await searchable_layers(store, view)
    return tuple(finding for finding, _ in searchable.findings_for("", at=at, is_about_the_past=False))


async def read_told_turns(store: Store, scope: Scope, session_id: str, *, at: datetime) -> tuple[SourceTurn, ...]:
    """Return the turns of a session in order, as far as an agent may be shown them."""
    view = await view_cache_of(store).view(store, scope, at)
    searchable = await searchable_layers(store, view)
    hidden = partial(searchable.hidden.includes, is_about_the_past=False)
    return tuple(searchable.said.shown_turns(session_id, at=at, is_hidden=hidden))
