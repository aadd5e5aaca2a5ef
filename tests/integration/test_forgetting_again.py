"""A forgetting that was killed before it had cleared the files can be run again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import afterword
from afterword.errors import NotFound
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import lookup
from afterword.store.database.engine import Store, open_store
from afterword.store.forgetting.erasure import Erasure, ErasureWork, erase_in_scope
from batches import state

LENA, AT = Scope.user("lena"), datetime(2026, 3, 1, tzinfo=UTC)


async def filled(path: Path) -> Store:
    """A store whose files still hold what it holds, as a kill leaves them."""
    store = await open_store(f"sqlite:///{path}")
    saved = Saved(LENA, "monday", state=state("I live in Gnarlsburg."), started_at=AT, ended_at=AT)
    await process_session(store, saved, extractor=afterword.RulesExtractor())
    return store


def words_in_files(path: Path) -> bool:
    return any(b"Gnarlsburg" in file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


async def erased_by_a_killed_process(path: Path, form: str) -> str:
    """Erase without clearing the files, and return the id of the fact that was erased."""
    async with await filled(path) as store:
        [fact] = await store.read(lambda transaction: lookup.read_facts(transaction, LENA, at=AT))
        works: dict[str, ErasureWork] = {
            "session": lambda erasure: erasure.forget_session("monday"),
            "fact": lambda erasure: erasure.forget_statements(fact.assertion_ids),
            "everything": Erasure.forget_everything,
        }
        # The kill: another connection keeps the log from being emptied when this process ends.
        with store.reading() as transaction:
            lookup.read_facts(transaction, LENA, at=AT)
            await erase_in_scope(store, LENA, works[form], at=datetime.now(UTC))
            for suffix in ("", "-wal"):
                copy = path.with_name(f"killed.db{suffix}")
                copy.write_bytes(path.with_name(path.name + suffix).read_bytes())
    return fact.id


@pytest.mark.parametrize("form", ["session", "everything", "fact"])
async def test_a_forgetting_that_was_killed_can_be_run_again(tmp_path: Path, form: str) -> None:
    fact_id = await erased_by_a_killed_process(tmp_path / "store.db", form)
    path = tmp_path / "killed.db"
    assert words_in_files(path)
    async with afterword.open(f"sqlite:///{path}") as app:
        lena = app.user("lena")
        if form == "session":
            receipt = await lena.forget(session="monday")
            assert receipt is not None
            assert receipt.is_clean
        elif form == "everything":
            await lena.forget(everything=True)
        else:
            with pytest.raises(NotFound):
                await lena.forget(fact=fact_id)
        assert not words_in_files(path)
        with pytest.raises(NotFound):
            await lena.forget(session="never said")
