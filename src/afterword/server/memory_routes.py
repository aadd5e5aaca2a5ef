"""The remember/recall interface that many agent programs know: texts with tags, and a search."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse

from afterword import Layer, SearchHit
from afterword.client.json_forms import iso_instant
from afterword.server.access import Memory, own_memory
from afterword.server.changes import Answer, Changing, effect_answer
from afterword.server.contents import Memories, RememberBody, Remembered

router = APIRouter(prefix="/v1/memory", tags=["remember and recall"], dependencies=[Depends(own_memory)])


@router.post("/remember", response_model=Remembered)
async def remember_text(body: RememberBody, changing: Changing) -> JSONResponse:
    """Remember a text. It counts as said by the application, and is kept as it is."""

    async def work() -> Answer:
        effect = await changing.memory.remember_text(body.content, tags=body.tags)
        answer = effect_answer(effect)
        return {**answer, "id": next(iter(answer["facts"]), f"run:{effect.run.id}")}

    return await changing.carried_out("remember", work, body.model_dump())


@router.get("/recall", response_model=Memories)
async def recall_texts(
    memory: Memory,
    q: Annotated[str, Query(max_length=2000, description="The question; empty for everything.")] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 10,
    tags: Annotated[list[str], Query(description="All of these; several, or one text with commas.")] = [],  # noqa: B006
) -> JSONResponse:
    """Return what holds now and matches a question, best first."""
    names = [name.strip() for text in tags for name in text.split(",") if name.strip()]
    results = await memory.search(q, limit=limit, tags=names, turns=False, explain=False)
    hits = [hit for hit in results.hits if hit.layer is Layer.NOW]
    return JSONResponse({"memories": [_memory_json(hit) for hit in hits]})


def _memory_json(hit: SearchHit) -> dict[str, Any]:
    fact = hit.fact
    if fact is None:
        raise TypeError("a hit of this layer has a fact")
    return {
        "id": fact.id,
        "content": fact.statement,
        "tags": list(fact.tags),
        "score": hit.score,
        "created_at": iso_instant(fact.recorded_at),
        "kind": str(fact.kind),
        "about": fact.subject,
        "source": next((evidence.session_id for evidence in fact.evidence if evidence.session_id), None),
    }
