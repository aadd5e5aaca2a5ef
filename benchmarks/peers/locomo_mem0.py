"""What mem0 tells about a conversation, for each question: `told.json` for `locomo.py` and `scenarios_beside.py`.

    python benchmarks/peers/locomo_mem0.py CONVERSATION.json FOLDER

It runs in an environment of its own with mem0ai, faiss-cpu and wordllama. CONVERSATION.json is what
`--write` of these programs writes. mem0 adds one session at a time, each message with its speaker, and asks the
model at OPENAI_BASE_URL. Its embedder is replaced by the one that afterword uses without a model (WordLlama, 256
numbers). Its search is asked for 100 memories, which are told best first, each with the day of its session, as far as
four characters for each token of the budget reach; `locomo.py` cuts them to the budget.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"

import wordllama
from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase

DIMENSION, LIMIT = 256, 100


class Embedder(EmbeddingBase):
    """WordLlama's vectors."""

    def __init__(self) -> None:
        super().__init__()
        self._model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
        """Return the vector of the text."""
        return [float(number) for number in self._model.embed([text], norm=True)[0]]


def opened(folder: Path) -> Memory:
    """Return a memory in the folder."""
    place = {"path": str(folder / "faiss"), "collection_name": "facts", "embedding_model_dims": DIMENSION}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "faiss", "config": {**place, "distance_strategy": "cosine"}},
            "history_db_path": str(folder / "history.db"),
            "llm": {"provider": "openai", "config": {"model": "relay", "temperature": 0}},
        }
    )
    memory.embedding_model = Embedder()
    return memory


def told(memory: Memory, question: str, user: str, characters: int) -> str:
    """Return the memories found for a question, best first, in at most so many characters."""
    found: dict[str, Any] = memory.search(question, top_k=LIMIT, filters={"user_id": user}, threshold=0.0)
    lines, room = [], characters
    for result in found["results"]:
        line = f"- {result['metadata']['day']}: {result['memory']}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    """Add the sessions that were not added before, and write what is told."""
    conversation, folder = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    memory, added = opened(folder), folder / "added"
    done = int(added.read_text()) if added.exists() else 0
    characters = 4 * conversation["budget_tokens"]
    told_file = folder / "told.json"
    texts = json.loads(told_file.read_text(encoding="utf-8")) if told_file.exists() else {}
    after = dict.fromkeys(conversation["questions"], len(conversation["sessions"])) | conversation.get("after", {})
    for number, session in enumerate(conversation["sessions"][done:], done + 1):
        messages = [
            {
                "role": said.get("role", "user"),
                "name": said["source"],
                "content": f"{said['source']}: {said['content']}",
            }
            for said in session["messages"]
        ]
        messages[0]["content"] = f"(conversation of {session['day']}) {messages[0]['content']}"
        memory.add(messages, user_id=conversation["user"], metadata={"day": session["day"]})
        asked_now = [question for question, count in after.items() if count == number]
        texts |= {question: told(memory, question, conversation["user"], characters) for question in asked_now}
        told_file.write_text(json.dumps(texts, ensure_ascii=False, indent=1), encoding="utf-8")
        added.write_text(str(number))


if __name__ == "__main__":
    main()
