"""Vectors: the embedders that make them, the form in which they are stored, and their nearness to a query.

Recall works without them. numpy comes with the extra `afterword[local]` and is loaded at first use.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from afterword.errors import AfterwordError
from afterword.facts.words import content_words

MOST_NEAREST = 100
NEAR_DEVIATIONS = 2.0
"""A unit whose nearness is so many standard deviations above the mean is found without a common word."""

ROUNDING_ERROR = 1e-6
"""A vector with a smaller squared distance from the mean, relative to its length, counts as the mean."""

Vector = Sequence[float]


class EmbeddingUnavailable(AfterwordError):
    """Vectors cannot be made here: an extra is not installed, or the endpoint does not answer."""


class Embedder(Protocol):
    """Makes vectors of texts. Vectors of different `model` or `dimension` are never compared."""

    @property
    def model(self) -> str:
        """The name of the model, stored with each vector."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text, in order. Raises `EmbeddingUnavailable`."""


class LocalEmbedder:
    """Word vectors made on this machine without a download: WordLlama in 256 dimensions, stop words left out.

    Raises `EmbeddingUnavailable` at first use where the extra `afterword[local]` is not installed.
    """

    model = "wordllama-l2-supercat-256"
    dimension = 256

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text, in order. Each takes about 0.1 ms."""
        return list(_wordllama().embed([content_words(text) or "nothing" for text in texts], norm=True))


class Nearness:
    """How near each unit is to one query: the cosine about the mean of the units, scaled to 0 to 1."""

    def __init__(self, nearness: Any, nearest: Sequence[int]) -> None:
        self._nearness, self._nearest = nearness, nearest

    def nearest(self) -> Iterable[int]:
        """Return the places of the units that are clearly nearer than most, at most 100."""
        return self._nearest

    def at(self, places: Any) -> Any:
        """Return the nearness of the units at these places: a list for a list, an array for an array."""
        return self._nearness[places].tolist() if isinstance(places, list) else self._nearness[places]


class Vectors:
    """The vectors of units by their places. A unit without a vector counts as neither near nor far.

    `texts` holds the text of the unit at each place, None at a free place. Without `texts` no place is free.
    """

    def __init__(self, vectors: Sequence[Vector | bytes | None], texts: Sequence[str | None] | None = None) -> None:
        numpy = require_numpy()
        places = [place for place, vector in enumerate(vectors) if vector is not None]
        rows = _rows([vectors[place] for place in places])
        self._set(numpy.array(rows, dtype=numpy.float32, order="F"), places, len(vectors), texts)

    def _set(self, rows: Any, places: Sequence[int], count: int, texts: Sequence[str | None] | None) -> None:
        # The rows are stored column by column: their product with a vector is twice as fast so.
        numpy = require_numpy()
        self._rows, self._places, self._count, self._texts = rows, numpy.asarray(places, dtype=int), count, texts
        self.missing = (count if texts is None else sum(text is not None for text in texts)) - len(places)
        self.read_at_s = monotonic()
        if not places:
            return
        # The lengths about the mean, without a second matrix from which the mean is subtracted.
        self._mean = rows.mean(axis=0)
        lengths = numpy.einsum("ij,ij->i", rows, rows)
        mean_length = float(self._mean @ self._mean)
        distances = lengths - 2 * (rows @ self._mean) + mean_length
        is_distinct = distances > ROUNDING_ERROR * (lengths + mean_length)
        scale = numpy.where(is_distinct, 1 / numpy.sqrt(numpy.where(is_distinct, distances, 1)), 0)
        self._scale = scale.astype(numpy.float32)

    def revised(self, texts: Sequence[str | None], made: Mapping[str, bytes]) -> Vectors:
        """Return the vectors of these texts: the ones already here, and the ones in `made`, by their text."""
        numpy = require_numpy()
        row_of = self._row_of_text()
        places = [place for place, text in enumerate(texts) if text is not None and (text in row_of or text in made)]
        known_texts = [str(texts[place]) for place in places]
        old = [(number, row_of[text]) for number, text in enumerate(known_texts) if text in row_of]
        new = [(number, made[text]) for number, text in enumerate(known_texts) if text not in row_of]
        if not old:
            rows = numpy.array(_rows([vector for _, vector in new]), dtype=numpy.float32, order="F")
        else:
            rows = numpy.empty((len(places), self._rows.shape[-1]), dtype=numpy.float32, order="F")
            rows[[number for number, _ in old]] = self._rows[[row for _, row in old]]
            for number, vector in new:
                rows[number] = numpy.frombuffer(vector, dtype="<f2")
        revised = object.__new__(Vectors)
        revised._set(rows, places, len(texts), texts)
        return revised

    def lacks(self, texts: Sequence[str | None]) -> list[str]:
        """Return the texts that have no vector here."""
        row_of = self._row_of_text()
        return [text for text in texts if text is not None and text not in row_of]

    def _row_of_text(self) -> dict[str | None, int]:
        texts = self._texts
        return {texts[place]: row for row, place in enumerate(self._places.tolist())} if texts is not None else {}

    @property
    def size(self) -> int:
        """The number of bytes that the vectors take."""
        return int(self._rows.nbytes)

    def near(self, query: Vector) -> Nearness | None:
        """Return how near the units are to the query, or None where no unit has a vector."""
        if not len(self._places):
            return None
        numpy = require_numpy()
        wanted = numpy.asarray(query, dtype=numpy.float32) - self._mean
        cosine = self._rows @ wanted
        cosine -= self._mean @ wanted
        cosine *= self._scale
        low, high = float(cosine.min()), float(cosine.max())
        # The same as `cosine.mean()`, but faster.
        mean = float(numpy.float32(float(numpy.add.reduce(cosine)) / len(cosine)))
        deviation = math.sqrt(max(float(cosine @ cosine) / len(cosine) - mean * mean, 0.0))
        threshold, width = mean + NEAR_DEVIATIONS * deviation, max(high - low, 1e-9)
        cosine -= low
        cosine /= width
        nearest = (cosine > (threshold - low) / width).nonzero()[0]
        if len(nearest) > MOST_NEAREST:
            nearest = nearest[numpy.argpartition(-cosine[nearest], MOST_NEAREST)[:MOST_NEAREST]]
        if len(self._places) == self._count:
            return Nearness(cosine, nearest.tolist())
        nearness = numpy.full(self._count, (mean - low) / width, dtype=numpy.float32)
        nearness[self._places] = cosine
        return Nearness(nearness, self._places[nearest].tolist())


def require_numpy() -> Any:
    """Return numpy. Raises `EmbeddingUnavailable` where it is not installed."""
    try:
        return importlib.import_module("numpy")
    except ModuleNotFoundError:
        raise EmbeddingUnavailable("vectors need numpy; pip install 'afterword[local]'") from None


def packed_vector(vector: Vector) -> bytes:
    """Return a vector as it is stored: 2 bytes a number, little-endian."""
    return bytes(require_numpy().asarray(vector, dtype="<f2").tobytes())


def vector_key(text: str) -> str:
    """Return the key under which the vector of a text is stored. Different words give a different key."""
    # The same as `digest(text)`, on which stored keys depend, in a third of the time.
    return hashlib.blake2b(f"[{_quoted(text)}]".encode(), digest_size=32).hexdigest()[:20]


_quoted = json.JSONEncoder().encode


def _rows(vectors: Sequence[Vector | bytes | None]) -> Any:
    numpy = require_numpy()
    packed = [vector for vector in vectors if isinstance(vector, bytes)]
    if vectors and len(packed) == len(vectors):
        return numpy.frombuffer(b"".join(packed), dtype="<f2").reshape(len(vectors), -1)
    return [numpy.frombuffer(vector, dtype="<f2") if isinstance(vector, bytes) else vector for vector in vectors]


_loading = threading.Lock()


def _wordllama() -> Any:
    with _loading:
        return _loaded_wordllama()


@cache
def _loaded_wordllama() -> Any:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        library = importlib.import_module("wordllama")
    except ModuleNotFoundError:
        raise EmbeddingUnavailable("no local vectors here; pip install 'afterword[local]'") from None
    finally:
        # The import calls logging.basicConfig, but how an application logs is its own business.
        root.handlers[:] = handlers
        root.setLevel(level)
    return library.WordLlama.load(cache_dir=Path(str(library.__file__)).parent, disable_download=True)
