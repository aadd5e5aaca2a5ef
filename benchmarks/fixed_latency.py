"""An OpenAI-compatible endpoint that answers after a fixed time, in a process of its own.

It finds "my X is Y" in what it is shown and answers in the shape that was asked for: that of afterword's extraction and
judging, of mem0 2 and of langmem. Embeddings are made of a hash of the text. It counts what it was asked.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from aiohttp import web

from afterword.extractors.testing import Reply, completion, schema_of, shown_pairs

Json = dict[str, Any]
SAID = re.compile(r"my (\w+) is (\w+)")
TURN = re.compile(r"^\D*(\d+).*?(my (\w+) is (\w+))", re.MULTILINE)
DIMENSION = 64


def answered(request: Json) -> Json:
    """Return the completion that answers a request."""
    shown = request["messages"][-1]["content"]
    names = [tool["function"]["name"] for tool in request.get("tools") or ()]
    if "findings" in ((schema_of(request) or {}).get("properties") or {}):
        same = {"reason": "-", "relation": "beside", "same_subject": True}
        findings = [{"pair": number, **same} for number in shown_pairs(shown)]
        return completion(request, Reply(json.dumps({"findings": findings})))
    if "facts" in ((schema_of(request) or {}).get("properties") or {}):
        return completion(request, Reply(json.dumps({"facts": list(_facts(shown))})))
    if names:
        return _called(request, names, json.dumps(request["messages"]))
    new = shown.rpartition("## New Messages")[2] or shown
    texts = [{"id": str(n), "text": f"User's {one} is {it}"} for n, (one, it) in enumerate(SAID.findall(new))]
    return completion(request, Reply(json.dumps({"memory": texts})))


def _facts(shown: str) -> Iterator[Json]:
    for turn, quote, attribute, value in TURN.findall(shown):
        statement, cited = f"The user's {attribute} is {value}.", [{"turn": int(turn), "quote": quote}]
        told = {"attribute": attribute, "value": value, "statement": statement, "evidence": cited}
        yield {"kind": "entity", "subject": "user", **told}


def _called(request: Json, names: list[str], shown: str) -> Json:
    """Answer langmem: one call of its search tool, or one of its memory tool for each thing said."""
    body = completion(request, Reply(""))
    if "Memory" in names:
        found = dict(SAID.findall(shown))
        calls = [("Memory", {"content": f"User's {one} is {it}"}) for one, it in found.items()]
    else:
        calls = [(names[0], {"query": "what is known of the user"})]
    functions = [{"name": name, "arguments": json.dumps(given)} for name, given in calls]
    made = [{"id": f"call_{n}", "type": "function", "function": one} for n, one in enumerate(functions)]
    body["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": made}
    return body


def embedded(request: Json) -> Json:
    """Return a vector for each text."""
    texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
    data = [{"object": "embedding", "index": n, "embedding": _vector(str(text))} for n, text in enumerate(texts)]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "model": request.get("model"), "data": data, "usage": usage}


def _vector(text: str) -> list[float]:
    return [byte / 255 for byte in hashlib.blake2b(text.encode(), digest_size=DIMENSION).digest()]


def _serve(latency_s: float, told: Connection) -> None:
    counts: Counter[str] = Counter()

    async def answer(request: web.Request) -> web.Response:
        since, kind = time.perf_counter(), request.path.rpartition("/")[2]
        counts[kind] += 1
        body = await request.json()
        text = json.dumps(embedded(body) if kind == "embeddings" else answered(body))
        await asyncio.sleep(max(0.0, latency_s - (time.perf_counter() - since)))
        return web.Response(text=text, content_type="application/json")

    async def count(_: web.Request) -> web.Response:
        return web.json_response(counts)

    async def main() -> None:
        app = web.Application(client_max_size=10**8)
        app.router.add_post("/v1/chat/completions", answer)
        app.router.add_post("/v1/embeddings", answer)
        app.router.add_get("/counts", count)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=256).start()
        told.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(main())


@contextmanager
def endpoint(latency_s: float) -> Iterator[str]:
    """Serve until the end of the block; yields the base URL."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(latency_s, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{mine.recv()}/v1"
    finally:
        process.terminate()
        process.join()
