"""The floor: numpy's product of the query's vector with all vectors, and the best ten of it, in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import given
import numpy


async def fill(folder: Path, one: given.Given) -> None:
    """Write nothing: the vectors are in memory."""


@asynccontextmanager
async def opened(_: Path, one: given.Given) -> AsyncIterator[given.Ask]:
    """Hand over the product; making an array of the query's vector is part of it."""

    async def ask(query: str) -> list[str]:
        near = one.vectors @ numpy.array(one.asked[query], dtype="float32")
        best = numpy.argpartition(-near, given.LIMIT)[: given.LIMIT]
        return [one.texts[row] for row in best[numpy.argsort(-near[best])]]

    yield ask


def texts(answer: list[str]) -> list[str]:
    """Return the answer, which is texts already."""
    return answer


if __name__ == "__main__":
    given.main(["numpy"], fill, opened, texts)
