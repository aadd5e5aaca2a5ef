"""Forgetting clears what the process keeps of the words: its caches of texts, and its view of the scope."""

from __future__ import annotations

from datetime import UTC, datetime

from afterword.store.database.engine import Store
from afterword.store.forgetting.erasure import Erasure, erase_in_scope
from afterword.store.reading.recall import search
from afterword.store.reading.view_cache import view_cache_of
from afterword.text_caches import cached_text_count
from kept import LENA, facts_of, run, stated


async def test_forgetting_leaves_no_words_in_the_caches_of_the_process(store: Store) -> None:
    run(store, "session:a", (stated("Lena lives in Gnarlsburg."),))
    now, views = datetime.now(UTC), view_cache_of(store)
    (fact,) = await facts_of(store)

    def forget(erasure: Erasure) -> None:
        erasure.forget_statements(fact.assertion_ids)

    assert (await search(store, LENA, "Gnarlsburg", at=now)).facts
    await erase_in_scope(store, LENA, forget, at=now, is_preview=True)
    assert views.is_loaded(LENA)
    assert cached_text_count()
    await erase_in_scope(store, LENA, forget, at=now)
    assert not views.is_loaded(LENA)
    assert not cached_text_count()
    assert not (await search(store, LENA, "Gnarlsburg", at=now)).facts
