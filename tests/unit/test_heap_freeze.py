"""What existed before a batch is left out of its garbage collections."""

from __future__ import annotations

import gc

import pytest

from afterword.pipeline.heap_freeze import frozen_heap


@pytest.fixture(autouse=True)
def unfrozen() -> None:
    gc.unfreeze()


def test_the_heap_is_frozen_until_the_last_batch_ends() -> None:
    with frozen_heap():
        assert gc.get_freeze_count() > 0
        with frozen_heap():
            pass
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_what_is_loaded_later_can_be_frozen_too() -> None:
    with frozen_heap() as freeze:
        loaded = [[] for _ in range(1000)]
        before = gc.get_freeze_count()
        freeze()
        assert gc.get_freeze_count() >= before + len(loaded)


def test_a_program_that_has_frozen_its_objects_keeps_them_frozen() -> None:
    gc.freeze()
    count = gc.get_freeze_count()
    with frozen_heap() as freeze:
        freeze()
    assert gc.get_freeze_count() == count
    gc.unfreeze()
