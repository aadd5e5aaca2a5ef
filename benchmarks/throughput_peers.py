"""One other memory library taking in the same sessions; `throughput.py` starts it with the library's own Python.

    python benchmarks/throughput_peers.py mem0|langmem BASE_URL SESSIONS.json CONCURRENCY

Nothing but the library is imported. A session is one `add` (mem0, with a Qdrant collection in a folder) or one
`ainvoke` of a memory store manager (langmem, with a store in memory); sessions of one user come one after another.
Prints JSON: the seconds of all, after two sessions of each user that are not counted, and what the endpoint was asked.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

Message = dict[str, str]
Add = Callable[[str, list[Message]], Awaitable[object]]
WARM = 2


def mem0(url: str, folder: str) -> Add:
    """Return what adds a session to mem0."""
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=folder)
    from mem0 import AsyncMemory

    model = {"model": "scripted", "api_key": "none", "openai_base_url": url}
    memory = AsyncMemory.from_config(
        {
            "llm": {"provider": "openai", "config": model},
            "embedder": {"provider": "openai", "config": {**model, "embedding_dims": 64}},
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": f"{folder}/qdrant", "embedding_model_dims": 64, "on_disk": False},
            },
            "history_db_path": f"{folder}/history.db",
        }
    )
    return lambda user, messages: memory.add(messages, user_id=user)


def langmem(url: str, _folder: str) -> Add:
    """Return what adds a session to langmem."""
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings
    from langgraph.store.memory import InMemoryStore
    from langmem import create_memory_store_manager

    embeddings = OpenAIEmbeddings(model="scripted", base_url=url, api_key="none", check_embedding_ctx_length=False)
    manager = create_memory_store_manager(
        ChatOpenAI(model="scripted", base_url=url, api_key="none"),
        namespace=("memories", "{langgraph_user_id}"),
        store=InMemoryStore(index={"dims": 64, "embed": embeddings}),
    )
    of = lambda user: {"configurable": {"langgraph_user_id": user}}  # noqa: E731
    return lambda user, messages: manager.ainvoke({"messages": messages}, config=of(user))


async def main(name: str, url: str, sessions: list[tuple[str, list[Message]]], concurrency: int) -> None:
    """Add the sessions and print what it took."""
    by_user: dict[str, list[list[Message]]] = defaultdict(list)
    for user, messages in sessions:
        by_user[user].append(messages)
    at_once = asyncio.Semaphore(concurrency)

    failures: list[str] = []

    async def taken(add: Add, user: str, of_user: list[list[Message]]) -> None:
        for messages in of_user:
            async with at_once:
                try:
                    await add(user, messages)
                except Exception as error:  # noqa: BLE001 - a library's fault is part of what is measured
                    failures.append(type(error).__name__)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        add = {"mem0": mem0, "langmem": langmem}[name](url, folder)
        await asyncio.gather(*(taken(add, user, of_user[:WARM]) for user, of_user in by_user.items()))
        failures.clear()
        before, since, worked = counts(url), time.perf_counter(), time.process_time()
        await asyncio.gather(*(taken(add, user, of_user[WARM:]) for user, of_user in by_user.items()))
        seconds, worked_s = time.perf_counter() - since, time.process_time() - worked
    asked = {kind: count - before.get(kind, 0) for kind, count in counts(url).items()}
    number = len(sessions) - WARM * len(by_user)
    found = {"sessions": number, "seconds": seconds, "worked_s": worked_s, "asked": asked, "failed": len(failures)}
    sys.stdout.write(json.dumps(found) + "\n")


def counts(url: str) -> dict[str, int]:
    """Return how often the endpoint was asked so far."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts") as reply:
        found: dict[str, int] = json.loads(reply.read())
    return found


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(Path(sys.argv[3]).read_bytes()), int(sys.argv[4])))
