"""How a route changes something: audited, answered with ids alone, and answered once for each idempotency key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header
from fastapi.responses import JSONResponse

from afterword import Afterword, RunEffect, Scope, ScopeMemory
from afterword.errors import AfterwordError, NotFound
from afterword.server.access import AnyCaller, KeyHolder, Memory
from afterword.server.problems import status_of

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="A text of your choice. The same request with the same key is done once, and answered again.",
        examples=["4b6f2c1e"],
    ),
]

Answer = dict[str, Any]


def effect_answer(effect: RunEffect) -> Answer:
    """Return a run, and the ids of the facts that it changed or is about."""
    return {"run": effect.run.id, "status": effect.run.status, "facts": [fact.id for fact in effect.facts]}


async def change(
    who: KeyHolder,
    action: str,
    work: Callable[[], Awaitable[Answer]],
    *,
    scope: Scope | None = None,
    idempotency_key: str | None = None,
    content: Mapping[str, Any] | None = None,
    status: int = 200,
) -> JSONResponse:
    """Return the answer of `work`, or the one that was given before to the same request."""
    opened = who.app.requests.begin(who.key, action, scope=scope, idempotency_key=idempotency_key, content=content)
    async with opened as request:
        if request.is_repeated:
            headers = {"Idempotency-Replayed": "true"}
            return JSONResponse(dict(request.answer or {}), status, headers=headers)
        request.result = status
        try:
            if request.made and scope is not None:
                answer = await _answer_of_made(who.app, scope, *request.made[-1])
            else:
                answer = await work()
        except AfterwordError as error:
            request.result = status_of(error)
            raise
        request.answer = answer
    return JSONResponse(answer, status)


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A request that changes a memory: who asks, the memory, and the idempotency key."""

    who: KeyHolder
    memory: ScopeMemory
    idempotency_key: str | None

    async def carried_out(
        self, action: str, work: Callable[[], Awaitable[Answer]], content: Mapping[str, Any], *, status: int = 200
    ) -> JSONResponse:
        """Return the answer of `work`, as `change` does. `content` tells this request from others."""
        return await change(
            self.who,
            action,
            work,
            scope=self.memory.scope,
            idempotency_key=self.idempotency_key,
            content=content,
            status=status,
        )

    async def run(
        self, action: str, work: Callable[[], Awaitable[RunEffect]], content: Mapping[str, Any]
    ) -> JSONResponse:
        """Return the answer to a change that makes one run."""

        async def answer() -> Answer:
            return effect_answer(await work())

        return await self.carried_out(action, answer, content)


async def _memory_change(who: AnyCaller, memory: Memory, idempotency_key: IdempotencyKey = None) -> MemoryChange:
    return MemoryChange(who, memory, idempotency_key)


Changing = Annotated[MemoryChange, Depends(_memory_change)]


async def _answer_of_made(app: Afterword, scope: Scope, run_id: int, statement_id: str | None) -> Answer:
    """Return the answer to a request whose run was made before the server stopped."""
    run, facts = await app.run(run_id), list[str]()
    if statement_id is not None:
        with suppress(NotFound):
            facts = [(await app.scope(scope).fact(statement_id)).id]
    return {"run": run.id, "status": run.status, "facts": facts, "id": facts[0] if facts else f"run:{run.id}"}
