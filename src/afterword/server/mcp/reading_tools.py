"""The tools that read. None of them creates a scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from afterword.server.mcp.answers import (
    ContextAnswer,
    FactsAnswer,
    FindingListAnswer,
    HistoryAnswer,
    RecallAnswer,
    SessionsAnswer,
)
from afterword.server.mcp.server import CallerContext, memory_of, tool_errors

MOST_ROWS = 100
Kinds = Literal["preference", "entity", "decision"]
Query = Annotated[str, Field(max_length=2000, description="A question, or a few words about what you want to know.")]
Limit = Annotated[int, Field(ge=1, le=MOST_ROWS, description="At most how many.")]
After = Annotated[str | None, Field(description="`next` of the page before.")]
Tags = Annotated[list[str] | None, Field(description="Only facts that have all of these tags.")]
FactId = Annotated[str, Field(min_length=6, description="The id of a fact, or at least its first 6 digits.")]


async def recall_notes(
    query: Query, ctx: CallerContext, limit: Limit = 10, kind: Kinds | None = None, tags: Tags = None
) -> RecallAnswer:
    """Find facts and what the person said that match a question, best first, each with its session and turn.

    With a kind or tags only facts are found. An empty query gives every fact.
    """
    with tool_errors():
        return RecallAnswer.of(await memory_of(ctx).search(query, limit=limit, kind=kind, tags=tags or ()))


async def list_told_facts(
    ctx: CallerContext,
    status: Annotated[
        Literal["holds", "held before", "all"], Field(description="Whether the facts hold now, or held before.")
    ] = "holds",
    kind: Kinds | None = None,
    about: Annotated[str | None, Field(description="A person or thing by name; user for the memory's owner.")] = None,
    tags: Tags = None,
    limit: Limit = 50,
    after: After = None,
) -> FactsAnswer:
    """List facts in the order in which they were said, in pages."""
    statuses = {"holds": None, "held before": ("superseded", "expired"), "all": "all"}[status]
    with tool_errors():
        page = await memory_of(ctx).facts(
            status=statuses, kind=kind, about=about, tags=tags or (), limit=limit, after=after
        )
        return FactsAnswer.of(page)


async def show_fact(fact_id: FactId, ctx: CallerContext) -> HistoryAnswer:
    """Show one fact with its evidence and its history: who said it in which session and turn, and what it replaced."""
    with tool_errors():
        return HistoryAnswer.of(await memory_of(ctx).history(fact_id))


async def show_context(
    ctx: CallerContext,
    question: Annotated[str, Field(max_length=2000, description="The question to answer; empty for an overview.")] = "",
    budget_tokens: Annotated[
        int | None, Field(ge=1, le=20_000, description="The largest size of the block; by default as configured.")
    ] = None,
) -> ContextAnswer:
    """Return the block of notes that an agent with this memory is told for a question."""
    with tool_errors():
        return ContextAnswer.of(await memory_of(ctx).context(question, budget_tokens=budget_tokens, most_left_out=0))


async def list_told_findings(
    ctx: CallerContext,
    agent: Annotated[str | None, Field(max_length=100, description="Only findings of the agent of this name.")] = None,
    limit: Limit = 20,
) -> FindingListAnswer:
    """List what agents found by their own work and later conversations may use, the newest first."""
    with tool_errors():
        return FindingListAnswer.of(await memory_of(ctx).findings(agent=agent, limit=limit))


async def list_told_sessions(ctx: CallerContext, limit: Limit = 50, after: After = None) -> SessionsAnswer:
    """List the conversations that the memory knows, oldest first. The resource memory://sessions/{id} shows one."""
    with tool_errors():
        return SessionsAnswer.of(await memory_of(ctx).sessions(limit=limit, after=after))


READING_TOOLS: Mapping[str, Callable[..., Awaitable[BaseModel]]] = {
    "recall": recall_notes,
    "list_facts": list_told_facts,
    "get_fact": show_fact,
    "get_context": show_context,
    "list_sessions": list_told_sessions,
    "list_findings": list_told_findings,
}
