"""What Graphiti tells about a conversation, for each question: `told.json` for `locomo.py` and `scenarios_beside.py`.

    python benchmarks/peers/scenarios_graphiti.py CONVERSATION.json FOLDER

It runs in an environment of its own with graphiti-core[kuzu], httpx and wordllama. CONVERSATION.json is what `--write`
of these programs writes. Graphiti gets one session at a time as an episode, each message with its speaker, and asks the
model at OPENAI_BASE_URL. Its embedder is replaced by the one that afterword uses without a model (WordLlama, 256
numbers), and its ranking by another model is left out: search combines words and vectors by their ranks. The facts that
it finds are told first, best first, each with its days, then the summaries of the entities; `locomo.py` cuts them to
the budget. Kuzu is the database that needs no server.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

os.environ |= {"GRAPHITI_TELEMETRY_ENABLED": "false", "EMBEDDING_DIM": "256"}

import wordllama
from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.driver import GraphProvider
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF
from openai import AsyncOpenAI

GROUP = "user"
MOST_FACTS, MOST_ENTITIES = 60, 20
WAIT_S = 7200.0


class Embedder(EmbedderClient):
    """WordLlama's vectors."""

    def __init__(self) -> None:
        self._model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)

    async def create(self, input_data: Any) -> list[float]:
        """Return the vector of a text, or of the first of several."""
        text = input_data if isinstance(input_data, str) else next(iter(input_data))
        return [float(number) for number in self._model.embed([text], norm=True)[0]]

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        return [await self.create(text) for text in input_data_list]


class Unranked(CrossEncoderClient):
    """Leaves the order as it is."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:  # noqa: ARG002
        """Return the passages in their order."""
        return [(passage, 1.0 - place / 1000) for place, passage in enumerate(passages)]


async def opened(folder: Path) -> Graphiti:
    """Return a graph in the folder."""
    driver: Any = KuzuDriver(str(folder / "graph.kuzu"))
    driver._database = GROUP  # version 0.31.2 reads it, but does not set it for Kuzu
    model = AsyncOpenAI(timeout=WAIT_S)
    config = LLMConfig(api_key="unused", model="relay", small_model="relay", temperature=0)
    client = OpenAIGenericClient(config, client=model)
    graph = Graphiti(graph_driver=driver, llm_client=client, embedder=Embedder(), cross_encoder=Unranked())
    for statement in get_fulltext_indices(GraphProvider.KUZU):
        await driver.execute_query(statement)
    return graph


def days(fact: Any) -> str:
    """Return when a fact holds."""
    begin, end = (at.date().isoformat() if at else "" for at in (fact.valid_at, fact.invalid_at))
    return f" ({begin or 'date unknown'} - {end or 'present'})"


async def told(graph: Graphiti, question: str) -> str:
    """Return the facts and entities found for a question, best first."""
    config = COMBINED_HYBRID_SEARCH_RRF.model_copy(update={"limit": MOST_FACTS})
    found = await graph.search_(question, config=config, group_ids=[GROUP])
    facts = [f"- {fact.fact}{days(fact)}" for fact in found.edges]
    entities = [f"- {node.name}: {node.summary}" for node in found.nodes[:MOST_ENTITIES] if node.summary]
    return "\n".join([*facts, *entities])


async def asked(conversation: dict[str, Any], folder: Path) -> dict[str, str]:
    """Return what is told for each question, once its sessions are added."""
    graph, texts = await opened(folder), {}
    after = dict.fromkeys(conversation["questions"], len(conversation["sessions"])) | conversation.get("after", {})
    for number, session in enumerate(conversation["sessions"], 1):
        said = "\n".join(f"{message['source']}: {message['content']}" for message in session["messages"])
        at = datetime.fromisoformat(session["day"]).replace(hour=12, tzinfo=UTC)
        await graph.add_episode(f"session {number}", said, "a conversation", at, group_id=GROUP)
        for question in (question for question, count in after.items() if count == number):
            texts[question] = await told(graph, question)
    return texts


def main() -> None:
    """Add the sessions, and write what is told."""
    conversation, folder = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    texts = asyncio.run(asked(conversation, folder))
    (folder / "told.json").write_text(json.dumps(texts, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
