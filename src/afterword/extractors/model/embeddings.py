"""Vectors of texts from any OpenAI-compatible endpoint. The openai package is loaded at the first question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

from afterword.extractors.extractor import Usage
from afterword.extractors.model.client import ModelSettings
from afterword.extractors.model.metering import Bill, Question, metered
from afterword.recall.tokens import estimated_tokens
from afterword.recall.vectors import EmbeddingUnavailable, Vector

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PURPOSE = "embedding"
LONGEST = 6_000
"""How many characters of a text count: endpoints refuse what is longer than their model's window."""
SHORTEST = 500
"""A text that is refused is asked for again with its first half, down to this length."""
TOO_MUCH = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why no vectors came; `is_too_much` where fewer or shorter texts may do."""

    reason: str
    is_too_much: bool = False


class EndpointEmbedder:
    """Makes vectors with the model and at the address of `settings`, `dimension` numbers each.

    Close it, or use `async with`. With `is_shortened` the endpoint is asked for so many numbers, which not every model
    can; else its vectors must have that many by themselves. Of a text the first 6,000 characters count. It may be used
    from several event loops, and each has connections of its own. Where a meter is set, it is asked before each
    question, and told what the question has cost.
    """

    def __init__(self, settings: ModelSettings, dimension: int, *, is_shortened: bool = False) -> None:
        self.settings = settings
        self.dimension = dimension
        self._is_shortened = is_shortened
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = WeakKeyDictionary()

    @property
    def model(self) -> str:
        """The name of the model, as the store keeps it."""
        return self.settings.model

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of the running loop; the next question would open new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in order.

        Raises `EmbeddingUnavailable` where the endpoint does not answer, or with other vectors than asked for. Texts
        that are refused as too much at once are asked for in halves, which ends with the first that is refused alone.
        """
        found = await self._found([text[:LONGEST] for text in texts])
        # Raised here, outside of any handler: the original exception may hold the texts.
        if isinstance(found, _Fault):
            raise EmbeddingUnavailable(f"no vectors from {self.settings.place}: {found.reason}")
        if [len(one) for one in found] != [self.dimension] * len(texts):
            sizes = sorted({len(one) for one in found})
            reason = f"{len(texts)} vectors of {self.dimension} numbers were asked for, {len(found)} of {sizes} came"
            raise EmbeddingUnavailable(f"{self.settings.place}: {reason}; set the model's own dimension")
        return found

    async def _found(self, texts: Sequence[str]) -> list[Vector] | _Fault:
        found = await self._asked(texts)
        if not isinstance(found, _Fault) or not found.is_too_much:
            return found
        if len(texts) > 1:
            first = await self._found(texts[: len(texts) // 2])
            second = first if isinstance(first, _Fault) else await self._found(texts[len(texts) // 2 :])
            return second if isinstance(first, _Fault) or isinstance(second, _Fault) else first + second
        half = texts[0][: len(texts[0]) // 2]
        return await self._found([half]) if len(half) >= SHORTEST else found

    async def _asked(self, texts: Sequence[str]) -> list[Vector] | _Fault:
        question = Question(
            self.model,
            PURPOSE,
            sum(map(estimated_tokens, texts)),
            completion_limit=0,
            answers=1,
            operation="embeddings",
        )
        async with metered(question) as bill:
            return await self._answer(texts, question, bill)

    async def _answer(self, texts: Sequence[str], question: Question, bill: Bill) -> list[Vector] | _Fault:
        from openai import APIStatusError, APITimeoutError, OpenAIError, omit

        bill.usage = Usage(calls=1)
        try:
            answer = await self._opened().embeddings.create(
                model=self.settings.model,
                input=list(texts),
                dimensions=self.dimension if self._is_shortened else omit,
                encoding_format="float",
            )
        except OpenAIError as error:
            if isinstance(error, APITimeoutError):
                bill.usage, bill.is_estimate = question.bound, True
            bill.fault = type(error).__name__
            status = error.status_code if isinstance(error, APIStatusError) else None
            return _Fault(bill.fault, is_too_much=status in TOO_MUCH)
        told = getattr(answer.usage, "prompt_tokens", None)
        bill.usage = Usage(1, told) if told else question.bound
        bill.is_estimate, bill.is_answered = not told, True
        return [one.embedding for one in sorted(answer.data, key=lambda one: one.index)]

    def _opened(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            from openai import AsyncOpenAI

            settings = self.settings
            # The key that openai finds in the environment belongs to its own endpoint; others get none by accident.
            key = settings.api_key or (None if settings.base_url is None else "none")
            client = self._clients[loop] = AsyncOpenAI(
                api_key=key, base_url=settings.base_url, timeout=settings.timeout_s, max_retries=settings.max_retries
            )
        return client
