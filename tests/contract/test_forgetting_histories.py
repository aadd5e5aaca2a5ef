"""Random memories and random requests to forget: what went does not come back, and all else is as if it had never been.

What is promised, and held here: after forgetting a fact, no table and no byte of the file has its words; after a
session, a day or a memory, none of what only those said. Processing everything again changes nothing. What is left
equals, in all that a fact tells but its ids and the numbers of its turns, a memory in which that was never said.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlmodel import SQLModel

from afterword.extractors.rules import RulesJudge
from afterword.extractors.testing import OracleExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.consolidation import compare_without_calls_after_erasure
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import lookup
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure as forgetting
from afterword.store.forgetting.erasure import Erasure, ErasureWork
from batches import state
from deciding_words import find

LENA = Scope.user("lena")
NOW, LATER = datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
SAYINGS = tuple(
    f"{slot}: {value}"
    for slot, values in {
        "home": ("Gnarlsburg", "Quillhaven", "Zwettlow"),
        "employer": ("Frobozzia", "Xylotron"),
        "drink": ("oolongish", "mauveberry"),
        "pet": ("wombatoid",),
    }.items()
    for value in values
)
Sessions = Sequence[Sequence[str]]
"""What each session says, turn by turn; of several sayings in a turn one after the other, with "; " between."""
sessions = st.lists(
    st.lists(
        st.lists(st.sampled_from(SAYINGS), min_size=1, max_size=2, unique_by=lambda one: one.split(":")[0]).map(
            "; ".join
        ),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=4,
)


@dataclass(frozen=True)
class Request:
    """What is to be forgotten: the saying, the session or the day with this number, or everything."""

    kind: str
    number: int


requests = st.builds(Request, st.sampled_from(["fact", "session", "before", "everything"]), st.integers(0, 7))


def day(number: int) -> datetime:
    return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=number)


@pytest.fixture(scope="module")
def template() -> Path:
    """An empty store's file."""
    path = Path(tempfile.mkdtemp()) / "template.db"

    async def made() -> None:
        async with Store(f"sqlite:///{path}") as store:
            await store.migrate()

    asyncio.run(made())
    return path


async def process(store: Store, said: Sessions) -> None:
    for number, turns in enumerate(said):
        if turns:
            saved = Saved(LENA, f"s{number}", state=state(*turns), started_at=day(number), ended_at=day(number))
            await process_session(store, saved, extractor=OracleExtractor(find))


async def told(store: Store) -> list[tuple[object, ...]]:
    """All that the facts tell, but ids and the places of their words."""
    with store.reading() as transaction:
        facts = lookup.read_facts(transaction, LENA, at=LATER)
    return sorted(
        (
            one.attribute,
            one.value,
            one.statement,
            str(one.status),
            one.said_at,
            one.valid_from,
            str(one.valid_to),
            one.support,
        )
        for one in facts
    )


async def work_of(store: Store, request: Request, said: Sessions) -> tuple[ErasureWork, Sessions] | None:
    """Return what forgets, and what would have been said had the forgotten never been; None where there is nothing."""
    if request.kind == "everything":
        return Erasure.forget_everything, [[] for _ in said]
    if request.kind == "session":
        number = request.number % len(said)
        return (lambda erasure: erasure.forget_session(f"s{number}")), [*said[:number], [], *said[number + 1 :]]
    if request.kind == "before":
        moment = day(request.number)
        return (lambda erasure: erasure.forget_before(moment)), [
            [] if day(number) < moment else turns for number, turns in enumerate(said)
        ]
    saying = SAYINGS[request.number % len(SAYINGS)]
    with store.reading() as transaction:
        facts = lookup.read_facts(transaction, LENA, at=LATER)
    found = [one for one in facts if f"{one.attribute}: {one.value}" == saying]
    if not found:
        return None
    ids = [name for one in found for name in one.assertion_ids]
    return (lambda erasure: erasure.forget_statements(ids)), [_without(turns, saying) for turns in said]


def _without(turns: Sequence[str], saying: str) -> list[str]:
    left = ["; ".join(part for part in turn.split("; ") if part != saying) for turn in turns]
    return [turn for turn in left if turn]


async def everything(store: Store) -> str:
    kept: list[str] = []
    with store.connecting(writing=False) as connection:
        for table in SQLModel.metadata.sorted_tables:
            for row in connection.execute(table.select()).all():
                kept += [zlib.decompress(one).decode() if isinstance(one, bytes) else str(one) for one in row]
    assert store.path is not None
    kept += [file.read_bytes().decode("latin-1") for file in store.path.parent.glob(f"{store.path.name}*")]
    return "\n".join(kept)


async def check(template: Path, folder: Path, said: Sessions, request: Request) -> None:
    for name in ("here", "twin"):
        shutil.copy(template, folder / f"{name}.db")
    async with Store(f"sqlite:///{folder}/here.db") as here, Store(f"sqlite:///{folder}/twin.db") as twin:
        await process(here, said)
        asked = await work_of(here, request, said)
        if asked is None:
            return
        work, left = asked
        await forgetting.erase_in_scope(here, LENA, work, at=NOW)
        await compare_without_calls_after_erasure(here, [LENA], RulesJudge())
        assert await here.compact()
        await process(twin, left)
        wanted = await told(twin)
        assert await told(here) == wanted
        words = {one.split(": ")[1] for one in SAYINGS} - {
            part.split(": ")[1] for turns in left for turn in turns for part in turn.split("; ")
        }
        assert not [word for word in words if word in await everything(here)]
        await process(here, said)
        assert await told(here) == wanted
        assert await here.compact()
        assert not [word for word in words if word in await everything(here)]


@pytest.mark.parametrize("examples", [12, pytest.param(400, marks=pytest.mark.soak)])
def test_what_was_forgotten_stays_so_and_the_rest_is_as_if_it_had_never_been(template: Path, examples: int) -> None:
    @settings(max_examples=examples)
    @example([["home: Gnarlsburg"]] * 3, Request("session", 1))
    @given(sessions, requests)
    def holds(said: Sessions, request: Request) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(check(template, Path(folder), said, request))

    holds()
