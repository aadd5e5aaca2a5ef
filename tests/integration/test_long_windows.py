"""Sessions that are too long for the model: windows are halved, nothing said is lost, nothing is asked twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.errors import AnswerCut
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, facts_reply
from afterword.facts.assertions import Kind
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import lookup, runs
from afterword.store.database.engine import Store
from batches import state

MIRA = Scope.user("mira")
STARTED = datetime(2026, 3, 2, 9, tzinfo=UTC)
AT_MOST = 12
"""How many facts an answer holds before it is cut."""

_TURN = re.compile(r"^\[(\d+)(, already read)?\] (\w+)", re.MULTILINE)
_TOLD = re.compile(r"My thing(\d+) is hue\d+\.")


def told(number: int) -> str:
    return f"My thing{number} is hue{number}."


def read(request: Json) -> list[tuple[int, int]]:
    """Return (turn, item) of everything told in the turns of a question that are to be read."""
    shown = request["messages"][1]["content"]
    heads = [*_TURN.finditer(shown)]
    ends = [head.start() for head in heads[1:]] + [len(shown)]
    new = [(int(head[1]), shown[head.end() : end]) for head, end in zip(heads, ends, strict=True) if not head[2]]
    return [(turn, int(item)) for turn, text in new for item in _TOLD.findall(text)]


def found(turn: int, item: int) -> Candidate:
    return Candidate(
        kind=Kind.ENTITY,
        subject=f"thing{item}",
        attribute=f"hue_of_{item}",
        value=f"hue{item}",
        statement=f"thing{item} hue{item}",
        evidence=[Citation(turn=turn, quote=told(item))],
    )


def cutting(request: Json) -> Reply:
    """Answer with everything that is told, cut where that is more than fits."""
    everything = facts_reply(*(found(turn, item) for turn, item in read(request)))
    if len(read(request)) > AT_MOST:
        return Reply(everything.content[:200], finish_reason="length")
    return everything


def refusing(request: Json) -> Reply:
    """Refuse whatever is longer than a small model's context."""
    if len(request["messages"][1]["content"]) > 9_000:
        return Reply(status=400, code="context_length_exceeded")
    return facts_reply(*(found(turn, item) for turn, item in read(request)))


def many(count: int) -> list[str]:
    return [f"{told(number)} {'And so on. ' * 6}" for number in range(1, count + 1)]


async def process(store: Store, endpoint: ScriptedEndpoint, said: list[str]) -> SessionOutcome:
    ended = STARTED + timedelta(hours=8)
    saved = Saved(MIRA, "long", state=state(*said), started_at=STARTED, ended_at=ended)
    async with ModelClient(ModelSettings("scripted", endpoint.base_url, max_retries=0, mode="json_schema")) as client:
        return await process_session(store, saved, extractor=ModelExtractor(client))


async def items(store: Store) -> dict[str, tuple[int | None, str]]:
    """Return of each item the turn and the words that support it."""
    with store.reading() as db:
        held = lookup.read_facts(db, MIRA, at=datetime(2026, 4, 1, tzinfo=UTC))
    assert all(len(fact.evidence) == 1 for fact in held)
    return {fact.subject: (fact.evidence[0].turn, fact.evidence[0].quote) for fact in held}


@pytest.mark.parametrize("turns", [200, pytest.param(400, marks=pytest.mark.soak)])
@pytest.mark.parametrize("limited", [cutting, refusing])
async def test_a_long_session_loses_nothing_to_a_model_that_is_too_small(
    limited: Callable[[Json], Reply], turns: int
) -> None:
    async with Store("sqlite://") as store:
        await store.migrate()
        with ScriptedEndpoint(limited) as endpoint:
            first = await process(store, endpoint, many(turns))
            calls = len(endpoint.requests)
            assert first.splits > 0
            assert first.usage.calls == calls
            assert await items(store) == {f"thing{number}": (number, told(number)) for number in range(1, turns + 1)}
            with store.reading() as db:
                (run,) = runs.read_runs(db, MIRA)
            assert run.counts["splits"] == first.splits

            again = await process(store, endpoint, many(turns))
            assert (again.run_id, len(endpoint.requests)) == (None, calls)

            grown = await process(store, endpoint, many(turns + 1))
            later = {turn for request in endpoint.requests[calls:] for turn, _ in read(request)}
            assert 0 < len(endpoint.requests) - calls < calls
            assert later == set(range(min(later), turns + 2))
            assert min(later) > turns // 2
            assert grown.applied
            assert len(await items(store)) == turns + 1


@pytest.mark.parametrize("count", [100, pytest.param(200, marks=pytest.mark.soak)])
async def test_a_turn_of_120_kilobytes_is_split_inside_and_its_words_are_found_in_it(count: int) -> None:
    """Every word is shown once as new; what is found in any part stands in the one turn."""
    long = " ".join(f"{told(number)} {'word ' * 235}." for number in range(1, count + 1))
    assert len(long) > 1_175 * count
    said = ["Here are my notes.", long, told(999)]
    async with Store("sqlite://") as store:
        await store.migrate()
        with ScriptedEndpoint(refusing) as endpoint:
            outcome = await process(store, endpoint, said)
            assert outcome.splits > 0
            where = await items(store)
            assert where == {f"thing{number}": (2, told(number)) for number in range(1, count + 1)} | {
                "thing999": (3, told(999))
            }
            with store.reading() as db:
                held = lookup.read_facts(db, MIRA, at=datetime(2026, 4, 1, tzinfo=UTC))
            assert all(long[start : start + len(quote)] == quote for quote, start in spans(held) if start)
            calls = len(endpoint.requests)
            await process(store, endpoint, said)
            assert len(endpoint.requests) == calls


def spans(held: list[Any]) -> list[tuple[str, int | None]]:
    return [(item.quote, item.start) for fact in held for item in fact.evidence if item.turn == 2]


async def test_a_repair_that_is_cut_halves_the_window_too() -> None:
    """The model is asked to mend so much that it cannot say it at once; no candidate is dropped for that."""

    def respond(request: Json) -> Reply:
        if len(request["messages"]) > 2:
            wrong = json.loads(request["messages"][2]["content"])["facts"]
            if len(wrong) > AT_MOST:
                return Reply("{", finish_reason="length")
            return facts_reply(*(found(turn, item) for turn, item in read(request)))
        spoilt = [found(turn, item) for turn, item in read(request)]
        return facts_reply(
            *(one.model_copy(update={"evidence": [Citation(turn=1, quote="never said")]}) for one in spoilt)
        )

    async with Store("sqlite://") as store:
        await store.migrate()
        with ScriptedEndpoint(respond) as endpoint:
            outcome = await process(store, endpoint, many(30))
        assert outcome.splits > 0
        assert len(await items(store)) == 30


async def test_where_nothing_is_left_to_halve_the_error_names_the_turns_and_what_was_spent() -> None:
    async with Store("sqlite://") as store:
        await store.migrate()
        with ScriptedEndpoint(lambda request: Reply("{", finish_reason="length")) as endpoint:
            with pytest.raises(AnswerCut, match="turns 1 to 2 alone are too long already") as caught:
                await process(store, endpoint, many(40))
            assert caught.value.usage.calls == len(endpoint.requests) > 3
            assert caught.value.usage.prompt_tokens > 0
        assert await items(store) == {}
