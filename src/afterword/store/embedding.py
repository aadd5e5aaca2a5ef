"""Vectors: what makes them, how they are kept, and how near they are to a query.

Everything works without them. numpy comes with the extra `afterword[local]` and is loaded at first use.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from afterword.store.assertions import digest
from afterword.store.errors import AfterwordError
from afterword.store.words import content_words

NEAREST = 100
STANDS_OUT = 2.0
"""How many standard deviations above the mean a unit is near enough to be found without a common word."""

Vector = Sequence[float]


class EmbeddingUnavailable(AfterwordError):
    """Vectors cannot be made here: an extra is not installed, or the endpoint does not answer."""


class Embedder(Protocol):
    """What makes vectors of texts. Vectors of different `model` or `dimension` are never compared."""

    @property
    def model(self) -> str:
        """The name of the model, as the store keeps it."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in order. Raises `EmbeddingUnavailable`."""


class LocalEmbedder:
    """Static word vectors on this machine, no download: WordLlama's 256 dimensions, of the words that carry meaning.

    Raises `EmbeddingUnavailable` at first use where the extra `afterword[local]` is not installed.
    """

    model = "wordllama-l2-supercat-256"
    dimension = 256

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in order: some 0.1 ms each."""
        vectors = _wordllama().embed([content_words(text) or "nothing" for text in texts], norm=True)
        return list(vectors)


class Nearness:
    """How near each unit is to one query: cosine about the mean of the units, spread over 0 to 1."""

    def __init__(self, near: Any, stands_out: Sequence[int]) -> None:
        self._near = near
        self._stands_out = stands_out

    def nearest(self) -> Iterable[int]:
        """Return the places of the units that stand out, at most 100."""
        return self._stands_out

    def at(self, places: Sequence[int]) -> Sequence[float]:
        """Return the nearness of the units at these places."""
        taken: list[float] = self._near[list(places)].tolist()
        return taken


class Vectors:
    """The vectors of units, in their order; a unit without one is neither near nor far."""

    def __init__(self, vectors: Sequence[Vector | bytes | None]) -> None:
        numpy = _numpy()
        known = [place for place, vector in enumerate(vectors) if vector is not None]
        rows = _rows([vectors[place] for place in known])
        self._places = numpy.asarray(known)
        self._count = len(vectors)
        self.missing = len(vectors) - len(known)
        self._rows = numpy.array(rows, dtype=numpy.float32)
        self._mean = self._rows.mean(axis=0) if known else None
        if known:
            self._rows -= self._mean
            self._rows /= numpy.maximum(numpy.linalg.norm(self._rows, axis=1, keepdims=True), 1e-9)

    @property
    def size(self) -> int:
        """How many bytes they take."""
        return int(self._rows.nbytes)

    def near(self, query: Vector) -> Nearness | None:
        """Return how near the units are to the query; None where no unit has a vector."""
        if self._mean is None:
            return None
        numpy = _numpy()
        cosine = self._rows @ (numpy.asarray(query, dtype=numpy.float32) - self._mean)
        low, high = float(cosine.min()), float(cosine.max())
        floor = float(cosine.mean()) + STANDS_OUT * float(cosine.std())
        cosine -= low
        cosine /= max(high - low, 1e-9)
        out = numpy.flatnonzero(cosine > (floor - low) / max(high - low, 1e-9))
        if len(out) > NEAREST:
            out = out[numpy.argpartition(-cosine[out], NEAREST)[:NEAREST]]
        if len(self._places) == self._count:
            return Nearness(cosine, out.tolist())
        whole = numpy.full(self._count, float(cosine.mean()), dtype=numpy.float32)
        whole[self._places] = cosine
        return Nearness(whole, self._places[out].tolist())


def packed(vector: Vector) -> bytes:
    """Return a vector as the store keeps it: 2 bytes a number, little-endian."""
    return bytes(_numpy().asarray(vector, dtype="<f2").tobytes())


def vector_key(text: str) -> str:
    """Return the key under which the vector of a text is kept: what changes its words changes its key."""
    return digest(text)


def _rows(vectors: Sequence[Vector | bytes | None]) -> Any:
    numpy = _numpy()
    packed_ones = [one for one in vectors if isinstance(one, bytes)]
    if vectors and len(packed_ones) == len(vectors):
        return numpy.frombuffer(b"".join(packed_ones), dtype="<f2").reshape(len(vectors), -1)
    return [numpy.frombuffer(one, dtype="<f2") if isinstance(one, bytes) else one for one in vectors]


def _numpy() -> Any:
    try:
        return importlib.import_module("numpy")
    except ModuleNotFoundError:
        raise EmbeddingUnavailable("vectors need numpy; pip install 'afterword[local]'") from None


_loading = threading.Lock()
_loaded: list[Any] = []


def _wordllama() -> Any:
    with _loading:
        if not _loaded:
            _loaded.append(_load_wordllama())
    return _loaded[0]


def _load_wordllama() -> Any:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        library = importlib.import_module("wordllama")
    except ModuleNotFoundError:
        raise EmbeddingUnavailable("no local vectors here; pip install 'afterword[local]'") from None
    finally:
        # Importing it calls logging.basicConfig; how an application logs is its own business.
        root.handlers[:] = handlers
        root.setLevel(level)
    return library.WordLlama.load(cache_dir=Path(str(library.__file__)).parent, disable_download=True)
