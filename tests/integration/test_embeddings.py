"""Vectors from an endpoint: asked for over HTTP, and a live memory that has them made in the background."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal

import pytest
from autogen_core.memory import MemoryContent
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage
from sqlmodel import select

from afterword import FactMemory
from afterword.extractors.model.embeddings import PURPOSE, EndpointEmbedder
from afterword.extractors.model.prices import Price
from afterword.facts.scopes import Scope
from afterword.pipeline.budget import Account, Budget, CostTracker
from afterword.pipeline.errors import BudgetReached
from afterword.recall.vectors import EmbeddingUnavailable, Vector
from afterword.store import costs
from afterword.store.costs import Spending
from afterword.store.database.engine import Store
from afterword.store.tables import SpendingRow
from embedding_endpoint import EmbeddingEndpoint, serving

PRIVATE = "my therapist is Dr. Quillfeather"


LENA = Scope.user("lena")


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with serving() as served:
        yield served


async def test_vectors_come_in_the_order_of_the_texts(endpoint: EmbeddingEndpoint) -> None:
    async with EndpointEmbedder(endpoint.settings(), 2) as embedder:
        assert await embedder.embed(["a", "bbb"]) == [[1.0, 1.0], [3.0, 1.0]]
        assert (embedder.model, embedder.dimension) == ("lengths", 2)
    assert "dimensions" not in endpoint.requests[0]


async def test_a_shorter_vector_is_asked_for_only_when_told_so(endpoint: EmbeddingEndpoint) -> None:
    async with EndpointEmbedder(endpoint.settings(), 2, is_shortened=True) as embedder:
        await embedder.embed(["a"])
    assert endpoint.requests[0]["dimensions"] == 2


async def test_vectors_of_another_size_are_refused(endpoint: EmbeddingEndpoint) -> None:
    async with EndpointEmbedder(endpoint.settings(), 3) as embedder:
        with pytest.raises(EmbeddingUnavailable, match="set the model's own dimension"):
            await embedder.embed(["a"])


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_fault_names_the_place_and_never_the_words(endpoint: EmbeddingEndpoint, status: int) -> None:
    endpoint.status = status
    async with EndpointEmbedder(endpoint.settings(), 2) as embedder:
        with pytest.raises(EmbeddingUnavailable, match="'lengths'") as refused:
            await embedder.embed([PRIVATE])
    assert "Quillfeather" not in str(refused.value)
    assert refused.value.__context__ is None


async def test_what_is_too_much_at_once_is_asked_for_in_halves(endpoint: EmbeddingEndpoint) -> None:
    endpoint.most_texts, endpoint.longest = 2, 1_000
    texts = ["a", "bb", "ccc", "d" * 1_500, "eeeee"]
    async with EndpointEmbedder(endpoint.settings(), 2) as embedder:
        vectors = await embedder.embed(texts)
    assert [vector[0] for vector in vectors] == [1.0, 2.0, 3.0, 750.0, 5.0]


async def test_a_refusal_of_everything_ends_with_the_first_small_piece(endpoint: EmbeddingEndpoint) -> None:
    endpoint.most_texts = 0
    async with EndpointEmbedder(endpoint.settings(), 2) as embedder:
        with pytest.raises(EmbeddingUnavailable, match="BadRequestError"):
            await embedder.embed(["tea"] * 256)
    assert len(endpoint.requests) == 9


async def test_of_a_long_text_the_beginning_counts(endpoint: EmbeddingEndpoint) -> None:
    async with EndpointEmbedder(endpoint.settings(), 2) as embedder:
        assert await embedder.embed(["x" * 50_000]) == [[6_000.0, 1.0]]


@pytest.mark.parametrize(
    ("tokens", "status", "expected"),
    [
        (42, 200, {"calls": 1, "prompt_tokens": 42, "micro_usd": 84}),
        (None, 200, {"calls": 1, "prompt_tokens": 2, "micro_usd": 4, "estimated_calls": 1}),
        (42, 500, {"calls": 1}),
    ],
)
async def test_what_vectors_cost_is_entered_as_that_of_embedding(
    endpoint: EmbeddingEndpoint, tokens: int | None, status: int, expected: dict[str, int]
) -> None:
    endpoint.tokens, endpoint.status = tokens, status
    price = Price(prompt_usd=Decimal(2), completion_usd=Decimal(0))
    async with Store("sqlite://") as store, EndpointEmbedder(endpoint.settings(), 2) as embedder:
        await store.migrate()
        account = Account(CostTracker(Budget(prices={"lengths": price})), store, LENA, PURPOSE, PURPOSE)
        with account.charging_requests(), suppress(EmbeddingUnavailable):
            await embedder.embed(["tea", "jam"])
        with store.reading() as db:
            assert costs.spending_by_run_source(db, LENA) == {"embedding": Spending(**expected)}
            assert db.exec(select(SpendingRow.purpose, SpendingRow.model)).all() == [("embedding", "lengths")]


async def test_nothing_is_asked_that_a_budget_has_no_room_for(endpoint: EmbeddingEndpoint) -> None:
    async with Store("sqlite://") as store, EndpointEmbedder(endpoint.settings(), 2) as embedder:
        await store.migrate()
        with (
            Account(CostTracker(Budget(tokens_per_day=10)), store, LENA, PURPOSE).charging_requests(),
            pytest.raises(BudgetReached),
        ):
            await embedder.embed(["a long text about tea and jam, and about what else there is"])
    assert endpoint.requests == []


def test_one_embedder_serves_several_event_loops(endpoint: EmbeddingEndpoint) -> None:
    embedder = EndpointEmbedder(endpoint.settings(), 2)
    vectors: list[list[Vector]] = []

    async def ask() -> None:
        vectors.append(await embedder.embed(["tea"]))
        await embedder.close()

    threads = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert vectors == [[[3.0, 1.0]]] * 3


class Counted:
    """An embedder of our own that counts how often it is asked."""

    model, dimension = "counted", 2

    def __init__(self) -> None:
        self.asked = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked += 1
        return [[float("tea" in text.lower()), 1.0] for text in texts]


async def test_a_live_memory_has_its_vectors_made_in_the_background() -> None:
    async with Store("sqlite://") as store:
        await store.migrate()
        embedder = Counted()
        memory = FactMemory(user="lena", store=store, budget_tokens=120, embedder=embedder)
        for number in range(20):
            await memory.add(MemoryContent(content=f"Lena keeps lamp number {number}.", mime_type="text/plain"))
        context = UnboundedChatCompletionContext()
        await context.add_message(UserMessage(content="which lamp?", source="user"))
        await memory.update_context(context)
        async with asyncio.timeout(60):
            while asyncio.all_tasks() != {asyncio.current_task()}:  # noqa: ASYNC110 - it is the memory's own task
                await asyncio.sleep(0.01)
        made = embedder.asked
        assert made >= 1
        await memory.update_context(context)
        await memory.update_context(context)
        assert embedder.asked == made + 2, "one question a turn, and nothing made twice"
        await memory.close()
