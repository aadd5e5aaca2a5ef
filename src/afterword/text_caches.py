"""Caches for functions that take texts of people. Forgetting clears them all, so that no text stays in the process."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")
_caches: list[_lru_cache_wrapper[Any]] = []


def text_cache(most: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Return a decorator that caches the results of a function for the last `most` texts, until words are forgotten."""

    def cached(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cache = lru_cache(maxsize=most)(function)
        _caches.append(cache)
        return cache

    return cached


def cached_text_count() -> int:
    """Return how many results are cached."""
    return sum(cache.cache_info().currsize for cache in _caches)


def clear_text_caches() -> None:
    """Clear every cache of texts of this process."""
    for cache in _caches:
        cache.cache_clear()
