"""Make the texts, vectors and queries of all runners, as recall_speed does: `python make.py FILE SIZE`."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

import numpy
from recall_speed import DIMENSION, Given, sentence

QUERIES = 200


def main(file: Path, size: int) -> None:
    """Write `size` texts and 200 queries with their vectors."""
    for_texts, for_queries = random.Random(1), random.Random(2)
    numpy.savez(
        file,
        texts=numpy.array([sentence(for_texts) for _ in range(size)]),
        vectors=_unit(numpy.array(asyncio.run(Given().embed([""] * size)))),
        queries=numpy.array([sentence(for_queries, 4) for _ in range(QUERIES)]),
        query_vectors=_unit(numpy.random.default_rng(5).standard_normal((QUERIES, DIMENSION), dtype="float32")),
    )


def _unit(vectors: Any) -> Any:
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
