"""Get vectors of texts from any OpenAI-compatible endpoint. The openai package is imported at the first request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

from afterword.extractors.extractor import Usage
from afterword.extractors.model.client import ModelSettings, open_connection
from afterword.extractors.model.metering import Bill, ModelRequest, charging_to_current_meter
from afterword.recall.tokens import tokens_by_byte_size
from afterword.recall.vectors import EmbeddingUnavailable, Vector

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAIError

PURPOSE = "embedding"
LONGEST_TEXT = 6_000
"""The most characters of a text that are sent. Endpoints refuse a text that is too long for their model."""
SHORTEST_TEXT = 500
"""If a text is refused, its first half is sent, and so on as long as at least this many characters are left."""
TOO_LONG_STATUSES = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class _EmbeddingFailure:
    """Why there are no vectors. If `is_too_long` is set, fewer or shorter texts may be accepted."""

    reason: str
    is_too_long: bool = False


class EndpointEmbedder:
    """Makes vectors of `dimension` numbers with the model and the endpoint of `settings`.

    Close it, or use `async with`. With `is_shortened`, the endpoint is asked for vectors of that length, which not
    every model supports. Without it, the model's vectors must already have that length. Only the first 6,000 characters
    of a text are used. The embedder may be used from several event loops, and has separate connections for each. If a
    meter is set, it must admit each request and records the cost. The store keeps the vectors under the name `model`.
    """

    def __init__(self, settings: ModelSettings, dimension: int, *, is_shortened: bool = False) -> None:
        self.settings = settings
        self.model: str = settings.model
        self.dimension = dimension
        self._is_shortened = is_shortened
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of the running event loop. A later request opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text, in order.

        If the request is refused as too long, the texts are sent in two halves, and a single text is shortened. Raises
        `EmbeddingUnavailable` if the endpoint does not answer, refuses even the shortest text, or returns vectors of
        another number or length.
        """
        if not texts:
            return []
        vectors = await self._vectors([text[:LONGEST_TEXT] for text in texts])
        # Raised here and not in an `except` block, because the original exception may contain the texts.
        if isinstance(vectors, _EmbeddingFailure):
            raise EmbeddingUnavailable(f"no vectors from {self.settings.place}: {vectors.reason}")
        if [len(vector) for vector in vectors] != [self.dimension] * len(texts):
            sizes = sorted({len(vector) for vector in vectors})
            reason = f"expected {len(texts)} vectors of {self.dimension} numbers, but got {len(vectors)} of {sizes}"
            raise EmbeddingUnavailable(f"{self.settings.place}: {reason}; set the model's own dimension")
        return vectors

    async def _vectors(self, texts: Sequence[str]) -> list[Vector] | _EmbeddingFailure:
        tokens = sum(map(tokens_by_byte_size, texts))
        request = ModelRequest(self.model, PURPOSE, tokens, completion_limit=0, answers=1, operation="embeddings")
        async with charging_to_current_meter(request) as bill:
            vectors = await self._request(texts, request, bill)
        if not isinstance(vectors, _EmbeddingFailure) or not vectors.is_too_long:
            return vectors
        if len(texts) > 1:
            first = await self._vectors(texts[: len(texts) // 2])
            if isinstance(first, _EmbeddingFailure):
                return first
            second = await self._vectors(texts[len(texts) // 2 :])
            return second if isinstance(second, _EmbeddingFailure) else first + second
        half = texts[0][: len(texts[0]) // 2]
        return await self._vectors([half]) if len(half) >= SHORTEST_TEXT else vectors

    async def _request(
        self, texts: Sequence[str], request: ModelRequest, bill: Bill
    ) -> list[Vector] | _EmbeddingFailure:
        from openai import OpenAIError, omit
        from openai.types import CreateEmbeddingResponse

        bill.usage = Usage(calls=1)
        try:
            answer = await self._connection().embeddings.create(
                model=self.settings.model,
                input=list(texts),
                dimensions=self.dimension if self._is_shortened else omit,
                encoding_format="float",
            )
        except OpenAIError as error:
            return _billed_failure(error, request, bill)
        if not isinstance(answer, CreateEmbeddingResponse):
            bill.fault = "NoAnswer"
            return _EmbeddingFailure("the answer holds no vectors; is /v1 missing in the base URL?")
        reported = getattr(answer.usage, "prompt_tokens", None)
        bill.usage = Usage(1, reported) if reported else request.worst_case
        bill.is_estimate, bill.is_answered = not reported, True
        return [entry.embedding for entry in sorted(answer.data, key=lambda entry: entry.index)]

    def _connection(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = open_connection(self.settings)
        return self._clients[loop]


def _billed_failure(error: OpenAIError, request: ModelRequest, bill: Bill) -> _EmbeddingFailure:
    """Write an error on the bill, and return the failure. What a request cost that timed out is unknown."""
    from openai import APIStatusError, APITimeoutError

    if isinstance(error, APITimeoutError):
        bill.usage, bill.is_estimate = request.worst_case, True
    bill.fault = type(error).__name__
    status = error.status_code if isinstance(error, APIStatusError) else None
    return _EmbeddingFailure(bill.fault, is_too_long=status in TOO_LONG_STATUSES)
