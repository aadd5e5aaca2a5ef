"""A LangGraph store that serves facts. It is read-only, because facts are learned from sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, Op, Result, SearchItem, SearchOp

from afterword import Layer, telemetry
from afterword.agents.memory_content import content_of_fact
from afterword.client.agent_access import AgentAccess
from afterword.client.app import Afterword
from afterword.client.synchronous.portal import Portal
from afterword.errors import ArgumentInvalid, NotFound, StoreError
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope

FACTS = "facts"

_log = telemetry.logs(__name__)

Namespace = tuple[str, ...]


def scope_of_namespace(namespace: Namespace) -> Scope:
    """Return the scope that a namespace names: ("facts", user), or ("facts", tenant, kind, id).

    Raises `ArgumentInvalid` for any other namespace, so that no search reads the memories of several people.
    """
    match namespace:
        case (root, user) if root == FACTS:
            return Scope.user(user)
        case (root, tenant, kind, name) if root == FACTS:
            return Scope.parse(f"{tenant}/{kind}/{name}")
    raise ArgumentInvalid(f'{namespace!r} names nobody: give ("{FACTS}", user) or ("{FACTS}", tenant, kind, id)')


class FactStore(BaseStore):
    """Serves facts to the nodes of a graph, for example `builder.compile(store=FactStore(app))`.

    `store.search(("facts", "mira"), query=...)` returns the facts that hold, best first, as an agent may be told them.
    `value["text"]` is the sentence, and the other values are its details and its evidence. `filter` compares values for
    equality. With `filter={"layer": "before"}`, facts that held before are returned. `scope_of` maps a namespace to a
    scope; a mapping of your own allows scopes whose names LangGraph does not accept, such as those with a dot.

    A search never makes a graph fail: if the store does not answer within the timeout of the settings, it finds
    nothing. `put` and `delete` raise `ArgumentInvalid`, since a fact needs evidence: record sessions, or use
    `app.user(...).remember`. So do searches in a namespace that names no scope, and `list_namespaces`. `app` must stay
    open.
    """

    __slots__ = ("_app", "_portal", "_scope_of")

    def __init__(self, app: Afterword, *, scope_of: Callable[[Namespace], Scope | str] = scope_of_namespace) -> None:
        self._app, self._scope_of, self._portal = app, scope_of, Portal()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `abatch` in a thread with an event loop, wait for it, and return its results."""
        return self._portal.run(lambda: self.abatch(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Return the result of each operation. Raises `ArgumentInvalid` for an operation other than get and search."""
        return [await self._result(operation) for operation in ops]

    def close(self) -> None:
        """Stop the thread that `batch` uses. The next `batch` starts it again. The app stays open."""
        self._portal.close(partial(asyncio.sleep, 0))

    async def _result(self, operation: Op) -> Result:
        match operation:
            case GetOp(namespace=namespace, key=key):
                return await self._fact(namespace, key)
            case SearchOp():
                return await self._search(operation)
        raise ArgumentInvalid(
            f"{type(operation).__name__} is not possible: this store reads facts of one person or project. They are "
            "learned from sessions, or entered with `remember`"
        )

    def _access(self, namespace: Namespace) -> AgentAccess:
        return self._app.scope(self._scope_of(namespace)).for_agent()

    async def _fact(self, namespace: Namespace, key: str) -> Item | None:
        try:
            fact = await self._access(namespace).fact(key)
        except NotFound:
            return None
        return Item(
            value=_value(fact), key=fact.id, namespace=namespace, created_at=fact.said_at, updated_at=fact.said_at
        )

    async def _search(self, search: SearchOp) -> list[SearchItem]:
        access = self._access(search.namespace_prefix)
        try:
            async with asyncio.timeout(self._app.settings.recall.timeout_s):
                hits = (await access.search(search.query or "", limit=None)).hits
        except (StoreError, TimeoutError) as error:
            _log.warning("the facts of a search were not read (%s)", type(error).__name__)
            return []
        wanted = {"layer": str(Layer.NOW), **(search.filter or {})}
        matches = [
            SearchItem(search.namespace_prefix, hit.fact.id, value, hit.fact.said_at, hit.fact.said_at, hit.score)
            for hit in hits
            if hit.fact is not None
            for value in [_value(hit.fact)]
            if all(value.get(name) == expected for name, expected in wanted.items())
        ]
        return matches[search.offset : search.offset + search.limit]


def _value(fact: Fact) -> dict[str, Any]:
    content = content_of_fact(fact)
    return {"text": content.content, **(content.metadata or {})}
