"""Vectors: what makes them, how they are kept, and how near they are to a query.

Everything works without them. numpy comes with the extra `afterword[local]` and is loaded at first use.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from afterword.errors import AfterwordError
from afterword.facts.words import content_words

NEAREST = 100
STANDS_OUT = 2.0
"""How many standard deviations above the mean a unit is near enough to be found without a common word."""

TOO_LITTLE = 1e-6
"""What lies nearer to the mean than this, by squares, is the mean: its direction is an accident of rounding."""

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

    def at(self, places: Any) -> Any:
        """Return the nearness of the units at these places: a list for a list, an array for an array."""
        return self._near[places].tolist() if isinstance(places, list) else self._near[places]


class Vectors:
    """The vectors of units, by their places; a unit without one is neither near nor far.

    `texts` are the words at each place, None where nothing stands; without them something stands at every place.
    """

    def __init__(self, vectors: Sequence[Vector | bytes | None], texts: Sequence[str | None] | None = None) -> None:
        numpy = _numpy()
        known = [place for place, vector in enumerate(vectors) if vector is not None]
        rows = _rows([vectors[place] for place in known])
        self._begin(numpy.array(rows, dtype=numpy.float32, order="F"), known, len(vectors), texts)

    def _begin(self, rows: Any, known: Sequence[int], count: int, texts: Sequence[str | None] | None) -> None:
        """`rows` are the vectors at the `known` places of `count`, column by column: their product with one vector is
        twice as fast as row by row."""
        numpy = _numpy()
        self._rows, self._places, self._count, self._texts = rows, numpy.asarray(known, dtype=int), count, texts
        self.missing = (count if texts is None else sum(text is not None for text in texts)) - len(known)
        self.read_at_s = monotonic()
        if not known:
            return
        # The cosine about the mean, without a second matrix that is moved by it.
        self._mean = rows.mean(axis=0)
        lengths = numpy.einsum("ij,ij->i", rows, rows)
        level = float(self._mean @ self._mean)
        spread = lengths - 2 * (rows @ self._mean) + level
        stands_apart = spread > TOO_LITTLE * (lengths + level)
        self._scale = numpy.where(stands_apart, 1 / numpy.sqrt(numpy.where(stands_apart, spread, 1)), 0)
        self._scale = self._scale.astype(numpy.float32)

    def revised(self, texts: Sequence[str | None], found: Mapping[str, bytes]) -> Vectors:
        """Return the vectors of these texts: those that are held already, and those `found`, by their text."""
        numpy = _numpy()
        held = {text: row for row, place in enumerate(self._places.tolist()) if (text := self._text(place)) is not None}
        known = [place for place, text in enumerate(texts) if text is not None and (text in held or text in found)]
        here = [str(texts[place]) for place in known]
        old = [(number, held[text]) for number, text in enumerate(here) if text in held]
        new = [(number, found[text]) for number, text in enumerate(here) if text not in held]
        if not old:
            rows = numpy.array(_rows([vector for _, vector in new]), dtype=numpy.float32, order="F")
        else:
            rows = numpy.empty((len(known), self._rows.shape[-1]), dtype=numpy.float32, order="F")
            rows[[number for number, _ in old]] = self._rows[[row for _, row in old]]
            for number, vector in new:
                rows[number] = numpy.frombuffer(vector, dtype="<f2")
        revised = object.__new__(Vectors)
        revised._begin(rows, known, len(texts), texts)
        return revised

    def lacks(self, texts: Sequence[str | None]) -> list[str]:
        """Return those of the texts that have no vector here."""
        held = {self._text(place) for place in self._places.tolist()}
        return [text for text in texts if text is not None and text not in held]

    def _text(self, place: int) -> str | None:
        return self._texts[place] if self._texts is not None else None

    @property
    def size(self) -> int:
        """How many bytes they take."""
        return int(self._rows.nbytes)

    def near(self, query: Vector) -> Nearness | None:
        """Return how near the units are to the query; None where no unit has a vector."""
        if not len(self._places):
            return None
        numpy = _numpy()
        wanted = numpy.asarray(query, dtype=numpy.float32) - self._mean
        cosine = self._rows @ wanted
        cosine -= self._mean @ wanted
        cosine *= self._scale
        low, high = float(cosine.min()), float(cosine.max())
        # As `cosine.mean()`, without what that does around it.
        middle = float(numpy.float32(float(numpy.add.reduce(cosine)) / len(cosine)))
        spread = math.sqrt(max(float(cosine @ cosine) / len(cosine) - middle * middle, 0.0))
        floor, width = middle + STANDS_OUT * spread, max(high - low, 1e-9)
        cosine -= low
        cosine /= width
        out = (cosine > (floor - low) / width).nonzero()[0]
        if len(out) > NEAREST:
            out = out[numpy.argpartition(-cosine[out], NEAREST)[:NEAREST]]
        if len(self._places) == self._count:
            return Nearness(cosine, out.tolist())
        whole = numpy.full(self._count, (middle - low) / width, dtype=numpy.float32)
        whole[self._places] = cosine
        return Nearness(whole, self._places[out].tolist())


def require_numpy() -> None:
    """Raise `EmbeddingUnavailable` where vectors could be made, but not kept: before anything is paid for."""
    _numpy()


def packed_vector(vector: Vector) -> bytes:
    """Return a vector as the store keeps it: 2 bytes a number, little-endian."""
    return bytes(_numpy().asarray(vector, dtype="<f2").tobytes())


def vector_key(text: str) -> str:
    """Return the key under which the vector of a text is kept: what changes its words changes its key."""
    # The same as `digest(text)`, which is known by heart of every store, in a third of the time.
    return hashlib.blake2b(f"[{_quoted(text)}]".encode(), digest_size=32).hexdigest()[:20]


_quoted = json.JSONEncoder().encode


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
