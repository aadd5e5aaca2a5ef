"""Make vectors of texts, pack them for the store, and compare them with a query. Recall works without vectors."""

from __future__ import annotations

import hashlib
import importlib
import logging
import math
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from json.encoder import encode_basestring_ascii
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol

import numpy

from afterword.errors import AfterwordError
from afterword.facts.words import lower_without_stop_words
from afterword.recall.bm25 import NO_RELATED, Array, Related

MOST_NEAREST = 100
NEAR_DEVIATIONS = 2.0
"""A unit whose nearness exceeds the mean by this many standard deviations is found even without a common word.

Among few units `NEAR_SHARE` decides instead.
"""

FEW = 10
"""Up to this number of units, few or none can exceed the mean by that much, since each is a large part of it.

A fact and its turn are two near units. With the local vectors, two deviations found none of them among 3 facts with
their turns and half among 5. `NEAR_SHARE` finds three quarters, and finds fewer other facts.
"""

NEAR_SHARE = 0.25
"""A unit among few is near if it covers this share of the way from the least similar unit to the query.

A share is the same for embedders whose unrelated texts have a cosine of 0.1 as for those with 0.75. With the local
vectors, a quarter finds 7 to 8 of 10 facts that are asked for in other words, and fewer than 1 of 100 other facts.
"""

UNRELATED = (0.0, 0.8)
"""The way begins within this range of cosines, in which unrelated texts lie with the embedders in common use.

So a unit whose cosine is above 0.85 is near even if it is the only one, and none is near because another is opposite.
"""

ROUNDING_ERROR = 1e-6
"""A vector with a smaller squared distance from the mean, relative to its length, counts as the mean."""

BLOCK = 4096
"""The number of vectors that are processed at once, so that they stay in the processor's cache."""

USABLE = "finite numbers that are not all zero"
"""What a vector must consist of. One other would spoil the mean of a whole memory."""

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
        """The number of numbers in a vector."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text, in order. Raises `EmbeddingUnavailable`."""


class LocalEmbedder:
    """Word vectors made on this machine without a download: WordLlama in 256 dimensions, stop words left out.

    `is_local` says that no text leaves the process. Raises `EmbeddingUnavailable` at first use where the extra
    `afterword[local]` is not installed.
    """

    is_local = True
    model = "wordllama-l2-supercat-256"
    dimension = 256

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text, in order. Each takes about 0.1 ms."""
        return list(wordllama().embed([lower_without_stop_words(text) or "nothing" for text in texts], norm=True))


class Nearness(NamedTuple):
    """How near each unit of a search index (a fact or a turn) is to one query.

    `by_place` has, at the position of each unit in the index, the cosine similarity after subtracting the mean of the
    units, scaled to the range from 0 to 1. `nearest` are the positions of the units that are clearly nearer than most,
    at most 100. `related` are the words that mean nearly the same as those of the query.
    """

    by_place: Array
    nearest: Array
    related: Related = NO_RELATED


class _VectorRows:
    """Memory for vectors by place, shared by successive `Vectors`. Only the latest of these may write to it."""

    def __init__(self, size: int, dimension: int) -> None:
        capacity = size + max(size // 8, 64)
        # Column-major order makes the product with a vector twice as fast.
        self.vectors = numpy.zeros((capacity, dimension), dtype=numpy.float32, order="F")
        self.lengths = numpy.zeros(capacity, dtype=numpy.float32)
        self.lock = threading.Lock()
        self.latest: object = None

    def write(self, places: Sequence[int], vectors: Sequence[bytes]) -> Array:
        """Store packed vectors at these places, and return which of them are usable. Zeros replace the others."""
        rows = numpy.frombuffer(b"".join(vectors), dtype="<f2").reshape(len(places), -1).astype(numpy.float32)
        lengths = numpy.einsum("ij,ij->i", rows, rows)
        # A squared length in this precision is finite exactly if all 16-bit numbers are.
        is_usable: Array = (lengths > 0) & (lengths < math.inf)
        if not is_usable.all():
            rows[~is_usable], lengths[~is_usable] = 0, 0
        self.vectors[places], self.lengths[places] = rows, lengths
        return is_usable

    def sum(self, is_chosen: Array) -> Array:
        """Return the sum of the chosen vectors."""
        places = is_chosen.nonzero()[0]
        total = numpy.zeros(self.vectors.shape[1])
        for start in range(0, len(places), BLOCK):
            total += self.vectors[places[start : start + BLOCK]].sum(axis=0, dtype=float)
        return total


class Vectors:
    """The vectors of wanted units by place. A unit without a vector counts as neither near nor far. Immutable.

    `is_wanted` says for each place whether its unit is wanted. `made` is the number of wanted units with a vector,
    `missing` that of those without.
    """

    def __init__(self, dimension: int) -> None:
        self._rows = _VectorRows(0, dimension)
        self._rows.latest = self
        self._sum = numpy.zeros(dimension)
        self._update(numpy.zeros(0, dtype=bool), numpy.zeros(0, dtype=bool))

    def revised(self, is_wanted: Array, made: Mapping[int, bytes]) -> Vectors:
        """Return the vectors of these wanted units. `made` holds new packed vectors by place.

        A unit whose vector is unusable (see `usable_vectors`) has none.
        """
        after = object.__new__(Vectors)
        is_known = _resized(self.is_known, len(is_wanted))
        after._rows = self._rows_for(after, len(is_wanted))
        places = list(made)
        for start in range(0, len(places), BLOCK):
            block = places[start : start + BLOCK]
            is_known[block] = after._rows.write(block, [made[place] for place in block])
        before, now = _resized(self.is_wanted & self.is_known, len(is_wanted)), is_wanted & is_known
        # Sums of stored numbers are exact in this precision, so they do not depend on the order of changes.
        after._sum = self._sum + after._rows.sum(now & ~before) - after._rows.sum(before & ~now)
        after._update(is_wanted, is_known)
        return after

    @property
    def memory_bytes(self) -> int:
        """The memory of the vectors in bytes."""
        return int(self._rows.vectors.nbytes)

    def missing_places(self, is_wanted: Array) -> list[int]:
        """Return the places of the wanted units that have no vector here."""
        places: list[int] = (is_wanted & ~_resized(self.is_known, len(is_wanted))).nonzero()[0].tolist()
        return places

    def _rows_for(self, after: Vectors, size: int) -> _VectorRows:
        with self._rows.lock:
            if self._rows.latest is self and size <= len(self._rows.lengths):
                self._rows.latest = after
                return self._rows
        rows, count = _VectorRows(size, self._rows.vectors.shape[1]), len(self.is_known)
        rows.vectors[:count], rows.lengths[:count] = self._rows.vectors[:count], self._rows.lengths[:count]
        rows.latest = after
        return rows

    def _update(self, is_wanted: Array, is_known: Array) -> None:
        self.is_wanted: Array = is_wanted
        self.is_known: Array = is_known
        self._places = (is_wanted & is_known).nonzero()[0]
        self.known_count: int = len(self._places)
        self.missing_count: int = int(is_wanted.sum()) - self.known_count
        self._mean = (self._sum / max(self.known_count, 1)).astype(numpy.float32)
        self._scale: Array | None = None
        self.read_at_s: float = monotonic()

    def nearness_to(self, query: Vector) -> Nearness | None:
        """Return how near the units are to the query, or None if no unit has a vector.

        Raises `EmbeddingUnavailable` if the query is no usable vector.
        """
        if not self.known_count:
            return None
        asked = self._usable_query(query)
        is_complete = self.known_count == len(self.is_known)
        cosine = self._centred_cosines(asked)
        if not is_complete:
            cosine = cosine[self._places]
        low, high = float(cosine.min()), float(cosine.max())
        # The same as `cosine.mean()`, but faster.
        mean = float(numpy.float32(float(numpy.add.reduce(cosine)) / len(cosine)))
        deviation = math.sqrt(max(float(cosine @ cosine) / len(cosine) - mean * mean, 0.0))
        threshold, width = mean + NEAR_DEVIATIONS * deviation, max(high - low, 1e-9)
        cosine -= low
        cosine /= width
        if self.known_count > FEW:
            nearest = (cosine > (threshold - low) / width).nonzero()[0]
        else:
            nearest = self._raise_nearest_of_few(cosine, asked)
        if len(nearest) > MOST_NEAREST:
            nearest = nearest[numpy.argpartition(-cosine[nearest], MOST_NEAREST)[:MOST_NEAREST]]
        if is_complete:
            return Nearness(cosine, nearest)
        nearness = numpy.full(len(self.is_known), (mean - low) / width, dtype=numpy.float32)
        nearness[self._places] = cosine
        return Nearness(nearness, self._places[nearest])

    def _raise_nearest_of_few(self, nearness: Array, asked: Array) -> Array:
        """Return the positions of the vectors near the query among few ones, and raise their nearness to their share.

        Equal vectors do not differ from their mean, so their nearness would be 0.
        """
        share = self._share_of_way(asked)
        nearest: Array = (share > NEAR_SHARE).nonzero()[0]
        nearness[nearest] = numpy.maximum(nearness[nearest], share[nearest])
        return nearest

    def _usable_query(self, query: Vector) -> Array:
        with numpy.errstate(over="ignore", invalid="ignore"):
            asked: Array = numpy.asarray(query, dtype=numpy.float32)
            is_usable = asked.shape == self._mean.shape and 0 < asked @ asked < math.inf
        if not is_usable:
            raise EmbeddingUnavailable(f"the vector of the question is not {len(self._mean)} {USABLE}")
        return asked

    def _centred_cosines(self, asked: Array) -> Array:
        """Return the cosine of each vector and the query after the mean is subtracted, without the query's length."""
        wanted = asked - self._mean
        cosine, scale = self._products(wanted)
        cosine -= self._mean @ wanted
        cosine *= scale
        return cosine

    def _share_of_way(self, asked: Array) -> Array:
        """Return for each vector which share of the way it covers from the least similar one to the query."""
        cosine = (
            self._rows.vectors[self._places] @ asked / numpy.sqrt(self._rows.lengths[self._places] * (asked @ asked))
        )
        least = float(cosine.min().clip(*UNRELATED))
        share: Array = (cosine - least) / (1 - least)
        return share

    def _products(self, wanted: Array) -> tuple[Array, Array]:
        """Return the dot product of each vector with `wanted`, and the inverse of its distance from the mean."""
        count = len(self.is_known)
        vectors, scale = self._rows.vectors, self._scale
        if scale is not None:
            return vectors[:count] @ wanted, scale
        # Both products of a block while it is in the processor's cache: the vectors are read from memory once.
        products, scale = numpy.empty(count, dtype=numpy.float32), numpy.empty(count, dtype=numpy.float32)
        mean_length = float(self._mean @ self._mean)
        for start in range(0, count, BLOCK):
            block = slice(start, min(start + BLOCK, count))
            products[block], lengths = vectors[block] @ wanted, self._rows.lengths[block]
            # The squared distances from the mean, without a second matrix from which the mean is subtracted.
            distances = lengths - 2 * (vectors[block] @ self._mean) + mean_length
            distances[distances <= ROUNDING_ERROR * (lengths + mean_length)] = numpy.inf
            scale[block] = 1 / numpy.sqrt(distances)
        self._scale = scale
        return products, scale


def _resized(values: Array, size: int) -> Array:
    """Return a copy of a boolean array with `size` elements. Added elements are False."""
    resized = numpy.zeros(size, dtype=bool)
    resized[: len(values)] = values
    return resized


def packed_vector(vector: Vector) -> bytes:
    """Return a vector in its stored form: 16-bit floats, little-endian. A number that is too large is infinite."""
    with numpy.errstate(over="ignore"):
        return bytes(numpy.asarray(vector, dtype="<f2").tobytes())


def usable_vectors(packed: Mapping[str, bytes], dimension: int) -> dict[str, bytes]:
    """Return the packed vectors of `dimension` finite numbers that are not all zero."""
    keys, usable = [key for key, vector in packed.items() if len(vector) == 2 * dimension], dict[str, bytes]()
    for start in range(0, len(keys), BLOCK):
        block = keys[start : start + BLOCK]
        bits = numpy.frombuffer(b"".join([packed[key] for key in block]), dtype="<u2").reshape(len(block), -1)
        # Without the sign, the bits of a greater number are greater, and those of infinity and NaN the greatest.
        greatest = (bits & 0x7FFF).max(axis=1).tolist()
        usable |= {key: packed[key] for key, one in zip(block, greatest, strict=True) if 0 < one < 0x7C00}
    return usable


def vector_key(text: str) -> str:
    """Return the key under which the vector of a text is stored. Different words give a different key."""
    # The same as `digest(text)`, on which stored keys depend, in a third of the time.
    return hashlib.blake2b(f"[{encode_basestring_ascii(text)}]".encode(), digest_size=32).hexdigest()[:20]


_loading = threading.Lock()


def wordllama() -> Any:
    """Return the local model of word vectors, loaded once. Raises `EmbeddingUnavailable` without `afterword[local]`."""
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
        # The import calls logging.basicConfig, which would change how the application logs.
        root.handlers[:] = handlers
        root.setLevel(level)
    return library.WordLlama.load(cache_dir=Path(str(library.__file__)).parent, disable_download=True)
