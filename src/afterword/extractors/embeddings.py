"""Vectors of texts from any OpenAI-compatible endpoint. The openai package is loaded at the first question."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from afterword.extractors.clients import ModelSettings
from afterword.store.embedding import EmbeddingUnavailable, Vector

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class EndpointEmbedder:
    """Makes vectors with the model and at the address of `settings`, `dimension` numbers each.

    Close it, or use `async with`. With `is_shortened` the endpoint is asked for so many numbers, which not every model
    can; else its vectors must have that many by themselves.
    """

    def __init__(self, settings: ModelSettings, dimension: int, *, is_shortened: bool = False) -> None:
        self.settings = settings
        self.dimension = dimension
        self._is_shortened = is_shortened
        self._openai: AsyncOpenAI | None = None

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
        """Close the connections; the next question would open new ones."""
        client, self._openai = self._openai, None
        if client is not None:
            await client.close()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in order.

        Raises `EmbeddingUnavailable` where the endpoint does not answer, or with other vectors than asked for.
        """
        found, fault = await self._asked(texts)
        # Raised here, outside of any handler: the original exception may hold the texts.
        if fault:
            raise EmbeddingUnavailable(f"no vectors from {self.settings.place}: {fault}")
        if [len(one) for one in found] != [self.dimension] * len(texts):
            sizes = sorted({len(one) for one in found})
            reason = f"{len(texts)} vectors of {self.dimension} numbers were asked for, {len(found)} of {sizes} came"
            raise EmbeddingUnavailable(f"{self.settings.place}: {reason}; set the model's own dimension")
        return found

    async def _asked(self, texts: Sequence[str]) -> tuple[list[Vector], str]:
        from openai import OpenAIError, omit

        try:
            answer = await self._opened().embeddings.create(
                model=self.settings.model,
                input=list(texts),
                dimensions=self.dimension if self._is_shortened else omit,
                encoding_format="float",
            )
        except OpenAIError as error:
            return [], type(error).__name__
        return [one.embedding for one in sorted(answer.data, key=lambda one: one.index)], ""

    def _opened(self) -> AsyncOpenAI:
        if self._openai is None:
            from openai import AsyncOpenAI

            settings = self.settings
            # The key that openai finds in the environment belongs to its own endpoint; others get none by accident.
            key = settings.api_key or (None if settings.base_url is None else "none")
            self._openai = AsyncOpenAI(
                api_key=key, base_url=settings.base_url, timeout=settings.timeout_s, max_retries=settings.max_retries
            )
        return self._openai
