"""Merging and renaming scopes for the door."""

from __future__ import annotations

from afterword.client.resources import Resources
from afterword.client.results import RunEffect
from afterword.facts.scopes import Scope
from afterword.pipeline.merging import merge_scopes


async def merge(resources: Resources, scope: Scope, into: Scope, *, is_rename: bool) -> RunEffect:
    """Move everything that is known of a scope into another one."""
    store, clock = await resources.store(), resources.now
    async with resources.extractor_and_judge() as workers:
        merged = await merge_scopes(store, scope, into, judge=workers.judge, is_rename=is_rename, clock=clock)
    await resources.refresh_vectors([into])
    changed = tuple(change.after for change in merged.changes if change.after is not None)
    return RunEffect(merged.run, merged.changes, changed)
