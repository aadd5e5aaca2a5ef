"""What HL-Mem tells about a conversation, for each question: `told.json` for `locomo.py` and `scenarios_beside.py`.

    python benchmarks/peers/scenarios_hl_mem.py CONVERSATION.json FOLDER PORT

It runs in an environment of its own with hl-mem and wordllama. CONVERSATION.json is what `--write` of these programs
writes. HL-Mem's service and its worker get each message as an event, one session after the other, and ask the model at
OPENAI_BASE_URL. Its embeddings come from the model that afterword uses without an endpoint (WordLlama, 256 numbers),
and its ranking by another model and its rewriting of questions are off. Its search is asked for 100 memories, which are
told best first, each with its days; `locomo.py` cuts them to the budget.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import wordllama_endpoint

LIMIT, WAIT_S = 100, 7200
CONFIGURATION = """
[database]
path = "hl_mem.db"
[extraction]
mode = "llm"
batch_max_wait_seconds = 1.0
[llm]
provider = "openai_compatible"
base_url = "{model}"
model = "relay"
timeout = {wait}.0
[worker]
poll_interval = 0.5
job_lease_minutes = 600
daily_token_limit = 100000000
[embedding]
mode = "real"
dim = {dimension}
base_url = "{embeddings}"
[recall]
query_expansion_mode = "off"
[reranker]
mode = "off"
"""


@contextmanager
def serving(folder: Path, port: int) -> Iterator[httpx.Client]:
    """Run HL-Mem's service and worker in the folder, and yield what asks it."""
    configuration = CONFIGURATION.format(
        model=os.environ["OPENAI_BASE_URL"],
        wait=WAIT_S,
        dimension=wordllama_endpoint.DIMENSION,
        embeddings=wordllama_endpoint.started(),
    )
    (folder / "hl_mem.toml").write_text(configuration, encoding="utf-8")
    program = Path(sys.executable).parent / "hlmem"
    command = [str(program), "--config", "hl_mem.toml", "server", "--port", str(port)]
    keys = {"LLM_API_KEY": "unused", "EMBEDDING_API_KEY": "unused"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env={**os.environ, **keys}, stdout=log, stderr=log)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
                yield http
        finally:
            process.terminate()
            process.wait(30)


def wait_until_idle(http: httpx.Client) -> None:
    """Wait until no job waits or runs."""
    while True:
        time.sleep(2)
        try:
            jobs = http.get("/v1/jobs").raise_for_status().json()
        except httpx.TransportError:
            continue
        if not any(job["status"] in ("pending", "running") for job in jobs["jobs"]):
            return


def days(memory: dict[str, Any]) -> str:
    """Return when a memory holds."""
    begin, end = ((memory.get(name) or "")[:10] for name in ("valid_from", "valid_to"))
    return f" ({begin or 'date unknown'} - {end or 'present'})"


def told(http: httpx.Client, question: str) -> str:
    """Return the memories found for a question, best first."""
    found = http.post("/v1/recall", json={"query": question, "limit": LIMIT}).raise_for_status().json()
    return "\n".join(f"- {memory['text']}{days(memory)}" for memory in found["results"])


def main() -> None:
    """Add the sessions, and write what is told."""
    conversation, folder = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    texts = {}
    after = dict.fromkeys(conversation["questions"], len(conversation["sessions"])) | conversation.get("after", {})
    with serving(folder, int(sys.argv[3])) as http:
        wait_until_idle(http)
        for number, session in enumerate(conversation["sessions"], 1):
            for place, said in enumerate(session["messages"]):
                event = {
                    "session_id": f"session-{number}",
                    "actor_type": said.get("role", "user"),
                    "actor_id": said["source"],
                    "content": said["content"],
                    "occurred_at": f"{session['day']}T12:{place % 60:02}:00+00:00",
                }
                http.post("/v1/events", json=event).raise_for_status()
            wait_until_idle(http)
            for question in (question for question, count in after.items() if count == number):
                texts[question] = told(http, question)
    (folder / "told.json").write_text(json.dumps(texts, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
