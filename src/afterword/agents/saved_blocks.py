"""Memory blocks in saved states. The module that places blocks in live contexts imports AutoGen, this one does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from afterword.recall.block import OPENING

BLOCK_SOURCE = "afterword_memory"
"""The `source` of the user message that holds a block."""


def without_blocks(state: Any) -> Any:
    """Return a saved state, or a value in one, without the blocks in the contexts of its agents."""
    if isinstance(state, Mapping):
        return {name: without_blocks(value) for name, value in state.items()}
    if isinstance(state, list):
        return [without_blocks(value) for value in state if not is_saved_block(value)]
    return state


def is_saved_block(value: Any) -> bool:
    """Return whether a message in a saved state is a memory block."""
    ours = isinstance(value, Mapping) and (value.get("type") == "SystemMessage" or value.get("source") == BLOCK_SOURCE)
    return ours and str(value.get("content")).startswith(OPENING)
