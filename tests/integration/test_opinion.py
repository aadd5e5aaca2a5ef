"""A model's own opinion of facts that no gold knows: what is asked, what is taken back, and that it decides nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.evaluation.opinions import NOTES_A_CALL, ModelOpinion, Note, notes_block
from afterword.extractors.errors import AnswerInvalid, EndpointUnavailable
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.testing import Reply, ScriptedEndpoint
from commands import Commands
from scenarios import moved, session, write

TEA = Note("The user likes tea.", (("2026-01-05", "user", "I like tea."),))
RAIN = Note("It rains.", (("2026-01-05", "user", "It rains, by the way."),))


def opinions(*numbers: int, **answers: bool) -> Reply:
    said = {"true": True, "durable": True, "useful": False, **answers}
    return Reply(json.dumps({"opinions": [{"note": number, "reason": "so", **said} for number in numbers]}))


@asynccontextmanager
async def asked(endpoint: ScriptedEndpoint) -> AsyncIterator[ModelOpinion]:
    async with ModelClient(ModelSettings("scripted", endpoint.base_url, max_retries=0, mode="json_schema")) as client:
        yield ModelOpinion(client)


async def test_every_note_gets_its_own_opinion_in_order() -> None:
    with ScriptedEndpoint([opinions(2, 1)]) as endpoint:
        async with asked(endpoint) as model:
            assert model.version == "model:scripted:opinion-1"
            given_opinions, usage = await model.opinions_on([TEA, RAIN])
    assert [opinion.note for opinion in given_opinions] == [1, 2]
    assert usage.calls == 1
    assert "I like tea." in endpoint.requests[0]["messages"][1]["content"]


async def test_no_notes_are_no_question() -> None:
    with ScriptedEndpoint([]) as endpoint:
        async with asked(endpoint) as model:
            assert (await model.opinions_on([]))[0] == []
    assert endpoint.requests == []


@pytest.mark.parametrize("numbers", [(1,), (1, 2, 2), (1, 2, 3), (0, 1)])
async def test_a_note_left_out_or_made_up_is_asked_for_once_more(numbers: tuple[int, ...]) -> None:
    with ScriptedEndpoint([opinions(*numbers), opinions(1, 2)]) as endpoint:
        async with asked(endpoint) as model:
            given_opinions, usage = await model.opinions_on([TEA, RAIN])
    assert (len(given_opinions), usage.calls) == (2, 2)


async def test_an_answer_that_stays_wrong_is_no_answer() -> None:
    with ScriptedEndpoint(lambda request: opinions(1)) as endpoint:
        async with asked(endpoint) as model:
            with pytest.raises(AnswerInvalid, match="left out"):
                await model.opinions_on([TEA, RAIN])


async def test_an_endpoint_that_is_down_is_no_opinion() -> None:
    with ScriptedEndpoint([Reply(status=503)]) as endpoint:
        async with asked(endpoint) as model:
            with pytest.raises(EndpointUnavailable):
                await model.opinions_on([TEA])


async def test_too_many_notes_are_refused() -> None:
    with ScriptedEndpoint([]) as endpoint:
        async with asked(endpoint) as model:
            with pytest.raises(ValueError, match="at most"):
                await model.opinions_on([TEA] * (NOTES_A_CALL + 1))


@given(
    st.lists(st.builds(Note, st.text(), st.lists(st.tuples(st.just("2026-01-05"), st.text(), st.text())).map(tuple)))
)
def test_no_text_can_close_the_list_or_pass_for_a_note(notes: list[Note]) -> None:
    lines = notes_block(notes).split("\n")
    assert len(lines) == 2 + len(notes) + sum(len(note.passages) for note in notes)
    assert [line for line in lines if "<" in line] == ["<notes>", "</notes>"]


Evaluated = Callable[..., str]


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Evaluated:
    """Run the command with the offline rules, and a model for opinions alone."""
    afterword = Commands(tmp_path, monkeypatch, capsys)

    def run(folder: Path, endpoint: ScriptedEndpoint, *options: str, expected: int = 0) -> str:
        model = {
            "AFTERWORD_MODEL__BASE_URL": endpoint.base_url,
            "AFTERWORD_MODEL__MAX_RETRIES": "0",
            "AFTERWORD_MODEL__MODE": "json_schema",
        }
        return afterword("eval", str(folder), "--judge-unmatched", *options, expected=expected, **model)

    return run


@pytest.fixture
def with_tea(tmp_path: Path) -> Path:
    """A scenario in which something is said that no gold fact knows."""
    scenario_json = moved()
    scenario_json["sessions"].append(session("three", "I am allergic to peanuts.", day=7))
    scenario_json["arrival"].append("three")
    return write(tmp_path / "scenarios", scenario_json)


def test_opinions_stand_apart_and_change_no_figure(with_tea: Path, evaluated: Evaluated) -> None:
    with ScriptedEndpoint(lambda request: opinions(1)) as endpoint:
        report: dict[str, Any] = json.loads(evaluated(with_tea, endpoint, "--json"))
        printed = evaluated(with_tea, endpoint)
    assert report["opinions"]["what"] == "the model's own opinion, no measure"
    (given_,) = report["opinions"]["given"]["moved"]
    assert "peanuts" in given_["statement"]
    assert (given_["true"], given_["useful"]) == (True, False)
    assert report["systems"][0]["total"]["unmatched"] == {"n": 1, "of": 3, "share": 0.3333}
    assert "no measure, of the 1 unmatched facts: 1 true, 1 durable, 0 useful, 0 all three; 0 not answered" in printed


def test_an_opinion_that_was_not_had_is_shown(with_tea: Path, evaluated: Evaluated) -> None:
    with ScriptedEndpoint(lambda request: Reply(status=503)) as endpoint:
        printed = evaluated(with_tea, endpoint, expected=1)
    assert "1 not answered" in printed
    assert "FAILED: an opinion on moved: EndpointUnavailable" in printed


def test_the_model_sees_no_gold(with_tea: Path, evaluated: Evaluated) -> None:
    with ScriptedEndpoint(lambda request: opinions(1)) as endpoint:
        evaluated(with_tea, endpoint)
    assert "home-old" not in json.dumps(endpoint.requests)
