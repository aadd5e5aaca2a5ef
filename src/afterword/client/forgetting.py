"""Erases data for `Afterword.forget` and `ScopeMemory.forget`, and then rewrites the files of the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime, time
from functools import partial

from afterword.client.arguments import Instant, check_not_future, instant
from afterword.client.resources import Resources
from afterword.errors import ArgumentInvalid, NotFound
from afterword.extractors.rules import RulesJudge
from afterword.facts.local_time import read_zone
from afterword.facts.scopes import Scope
from afterword.pipeline.consolidation import compare_without_calls_after_erasure
from afterword.store import fact_ids, scope_rows
from afterword.store.database.clock import MOST_AHEAD
from afterword.store.database.engine import Store
from afterword.store.findings.stored_findings import read_finding
from afterword.store.forgetting import erasure
from afterword.store.forgetting.erasure import Erasure, ErasureWork, Receipt
from afterword.store.forgetting.retention import apply_retention

SHORTEST_ID = 6
"""How many digits of a fact's id must be given to erase it, so that a mistyped number does not match a fact."""


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """The arguments of `forget`. Raises `ArgumentInvalid` unless exactly one field is set."""

    fact: str | None = None
    session: str | None = None
    before: Instant | None = None
    everything: bool = False
    asked: bool = False
    finding: str | None = None

    def __post_init__(self) -> None:
        named = (value for value in astuple(self) if value is not None and value is not False)
        if len(list(named)) != 1:
            raise ArgumentInvalid("give exactly one of fact, finding, session, before, everything and asked")
        if not all(isinstance(value, str | None) for value in (self.fact, self.session, self.finding)):
            raise ArgumentInvalid("the id of a fact, finding or session must be a text")


async def forget(
    resources: Resources, scopes: Sequence[Scope], target: ForgetTarget, *, is_preview: bool
) -> list[Receipt]:
    """Erase the target in these scopes, and return a receipt for each scope in which something was erased.

    With `is_preview` nothing is changed, and `is_clean` of each receipt is None.
    """
    store = await resources.store()
    try:
        receipts = await _erase(resources, store, scopes, target, is_preview=is_preview)
    except NotFound:
        # An earlier attempt may have been killed after it had erased the target and before it had cleaned the files.
        if not is_preview:
            await store.compact()
        raise
    if is_preview:
        return receipts
    if not receipts:
        await store.compact()
    return await _clean_up(resources, store, receipts)


async def _erase(
    resources: Resources, store: Store, scopes: Sequence[Scope], target: ForgetTarget, *, is_preview: bool
) -> list[Receipt]:
    at = resources.now()
    if target.asked:
        asked = [
            await erasure.forget_requested_statements(store, scope, at=at, is_preview=is_preview) for scope in scopes
        ]
        return [receipt for receipt in asked if receipt is not None]
    # Check the target in all scopes before anything is erased: a date may lie in the future in some time zones only.
    works = [(scope, await _erasure_work(resources, store, scope, target)) for scope in scopes]
    return [await erasure.erase_in_scope(store, scope, work, at=at, is_preview=is_preview) for scope, work in works]


async def forget_older_than_allowed(
    resources: Resources, scopes: Sequence[Scope], *, is_preview: bool
) -> list[Receipt]:
    """Erase what is older than the settings allow. Return a receipt for each scope in which something was erased."""
    store, at, retention = await resources.store(), resources.now(), resources.settings.retention.policy()
    receipts = [await apply_retention(store, scope, retention, at=at, is_preview=is_preview) for scope in scopes]
    erased = [receipt for receipt in receipts if receipt is not None]
    return erased if is_preview else await _clean_up(resources, store, erased)


async def _clean_up(resources: Resources, store: Store, receipts: Sequence[Receipt]) -> list[Receipt]:
    """Rewrite the database files, and restore the vectors and verdicts that other statements have lost."""
    if not receipts:
        return []
    is_clean, scopes = await store.compact(), [receipt.scope for receipt in receipts]
    # Statements that were compared only with erased ones need new pairs. No request is sent to a model for this.
    if resources.settings.extractor == "rules":
        await compare_without_calls_after_erasure(store, scopes, RulesJudge())
    # Forgetting deletes all vectors of the scope.
    await resources.refresh_vectors(scopes)
    return [replace(receipt, is_clean=is_clean) for receipt in receipts]


async def _erasure_work(resources: Resources, store: Store, scope: Scope, target: ForgetTarget) -> ErasureWork:
    """Return a function that erases the target in this scope. Raises `ArgumentInvalid` and `NotFound`."""
    match target:
        case ForgetTarget(session=session_id) if session_id is not None:
            return lambda erasure: erasure.forget_session(session_id)
        case ForgetTarget(before=before) if before is not None:
            moment = await _past_instant(resources, store, scope, before)
            return lambda erasure: erasure.forget_before(moment)
        case ForgetTarget(finding=name) if name is not None:
            finding = await store.read(lambda transaction: read_finding(transaction, scope, name))
            return lambda erasure: erasure.forget_findings({finding.key})
        case ForgetTarget(fact=fact_id) if fact_id is not None:
            ids = await _assertion_ids(resources, store, scope, fact_id)
            return lambda erasure: erasure.forget_statements(ids)
        case ForgetTarget(everything=True):
            return Erasure.forget_everything
    raise ArgumentInvalid("to forget everything, give everything=True")


async def _past_instant(resources: Resources, store: Store, scope: Scope, before: Instant) -> datetime:
    """Return the argument `before` as a datetime in the zone of the scope. Raises `ArgumentInvalid`."""
    default = read_zone(resources.settings.zone)
    zone = await store.read(lambda transaction: scope_rows.zone_of(transaction, scope, default))
    moment = instant(before, day_time=time.min, zone=zone)
    check_not_future("before", moment, now=resources.now(), margin=MOST_AHEAD)
    return moment


async def _assertion_ids(resources: Resources, store: Store, scope: Scope, fact_id: str) -> tuple[str, ...]:
    """Return the ids of the assertions of a fact. Raises `ArgumentInvalid` if too few digits of its id are given."""
    if len(fact_id) < SHORTEST_ID:
        raise ArgumentInvalid(
            f"{fact_id!r} is too short: to erase a fact, give at least {SHORTEST_ID} digits of its id"
        )
    read = partial(fact_ids.read_fact, scope=scope, id_or_prefix=fact_id, at=resources.now())
    return (await store.read(read)).assertion_ids
