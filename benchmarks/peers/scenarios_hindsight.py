"""What Hindsight tells about a conversation, for each question: `told.json` for `scenarios_beside.py`.

    python benchmarks/peers/wordllama_endpoint.py PORT
    python benchmarks/peers/scenarios_hindsight.py CONVERSATION.json FOLDER ADDRESS

CONVERSATION.json is what `--write` of `scenarios_beside.py` writes, ADDRESS that of a running service of
hindsight-api-slim[embedded-db]. It asks the model at HINDSIGHT_API_LLM_BASE_URL; its embedder is set to the endpoint of
the first command (HINDSIGHT_API_EMBEDDINGS_PROVIDER=openai, ..._OPENAI_BASE_URL, ..._OPENAI_DIMENSIONS=256), and its
ranking by another model is left out (HINDSIGHT_API_RERANKER_PROVIDER=rrf). Hindsight gets one session at a time, each
message with its speaker, and ends what it does in the background before the next. What its search finds is told best
first, each with its days; `scenarios_beside.py` cuts it to the budget.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import httpx

WAIT_S, AT_REST_S = 7200, 6


def wait_until_idle(http: httpx.Client, bank: str) -> None:
    """Wait until nothing is left to do in the background, for some seconds."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < AT_REST_S:
        stats = http.get(f"/v1/default/banks/{bank}/stats").raise_for_status().json()
        if stats["pending_operations"] or stats.get("pending_consolidation"):
            quiet_since = time.monotonic()
        time.sleep(1)


def days(memory: dict[str, Any]) -> str:
    """Return when it happened, or was said."""
    begin, end = ((memory.get(name) or "")[:10] for name in ("occurred_start", "occurred_end"))
    said = (memory.get("mentioned_at") or "")[:10]
    when = begin if begin == end else f"{begin} - {end}"
    return f" ({when or f'said {said}'})" if when or said else ""


def told(http: httpx.Client, bank: str, question: str, budget_tokens: int) -> str:
    """Return the memories found for a question, best first."""
    asked = {"query": question, "max_tokens": budget_tokens}
    found = http.post(f"/v1/default/banks/{bank}/memories/recall", json=asked).raise_for_status().json()
    return "\n".join(f"- {memory['text']}{days(memory)}" for memory in found["results"])


def main() -> None:
    """Add the sessions, and write what is told."""
    conversation, folder = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    bank, budget, texts = folder.name, 2 * conversation["budget_tokens"], {}
    after = dict.fromkeys(conversation["questions"], len(conversation["sessions"])) | conversation.get("after", {})
    with httpx.Client(base_url=sys.argv[3], timeout=WAIT_S) as http:
        http.put(f"/v1/default/banks/{bank}", json={}).raise_for_status()
        for number, session in enumerate(conversation["sessions"], 1):
            said = "\n".join(f"{message['source']}: {message['content']}" for message in session["messages"])
            item = {"content": said, "timestamp": f"{session['day']}T12:00:00Z", "document_id": f"session-{number}"}
            http.post(f"/v1/default/banks/{bank}/memories", json={"items": [item]}).raise_for_status()
            wait_until_idle(http, bank)
            for question in (question for question, count in after.items() if count == number):
                texts[question] = told(http, bank, question, budget)
    (folder / "told.json").write_text(json.dumps(texts, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
