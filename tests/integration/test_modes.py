"""How an answer is asked for: tried once where nobody has set it, remembered, and never in the way of what was set."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from afterword import doctor
from afterword.extractors.errors import AnswerCut, AnswerInvalid, EndpointMisconfigured, EndpointUnavailable
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.modes import MODES, PROBE_ANSWER, Mode, save_mode, saved_mode
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, is_probe

QUESTION = [{"role": "system", "content": "Name the city."}, {"role": "user", "content": "Where?"}]


class City(BaseModel):
    name: str


def mode_of(request: Json) -> Mode:
    if request.get("tools"):
        return "tools"
    return "json_schema" if request["response_format"]["type"] == "json_schema" else "json"


class Endpoint(ScriptedEndpoint):
    """Answers in the modes that it knows, and in the others as it is told."""

    def __init__(self, known: Collection[Mode], otherwise: Reply | None = None) -> None:
        unknown = otherwise or Reply(status=400, content="unknown field response_format")

        def respond(request: Json) -> Reply:
            if mode_of(request) not in known:
                return unknown
            return Reply(PROBE_ANSWER if is_probe(request) else '{"name": "Graz"}')

        super().__init__(respond, answers_probes=False)

    @property
    def asked(self) -> list[tuple[str, bool]]:
        """The mode of each request, and whether it was the tiny question."""
        return [(mode_of(request), is_probe(request)) for request in self.requests]


def settings(endpoint: ScriptedEndpoint, modes_file: Path | None = None) -> ModelSettings:
    return ModelSettings("small", endpoint.base_url, "key", max_retries=0, mode="auto", modes_file=modes_file)


@pytest.mark.parametrize("works", MODES)
@pytest.mark.parametrize("otherwise", [Reply(status=400), Reply(status=404), Reply("As you wish!"), Reply("{}")])
async def test_the_first_mode_that_works_is_taken_and_tried_once(works: Mode, otherwise: Reply) -> None:
    with Endpoint([works], otherwise) as endpoint:
        async with ModelClient(settings(endpoint)) as client:
            first, usage = await client.ask(QUESTION, City)
            second, later = await client.ask(QUESTION, City)
    tried = MODES[: MODES.index(works) + 1]
    assert endpoint.asked == [*((mode, True) for mode in tried), (works, False), (works, False)]
    assert (first.name, second.name) == ("Graz", "Graz")
    assert (usage.calls, later.calls) == (len(tried) + 1, 1)


async def test_questions_at_once_try_only_once() -> None:
    with Endpoint(["tools"]) as endpoint:
        async with ModelClient(settings(endpoint)) as client:
            await asyncio.gather(*(client.ask(QUESTION, City) for _ in range(5)))
    assert sum(is_probe for _, is_probe in endpoint.asked) == 2


async def test_what_was_found_is_remembered_for_the_next_process(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "modes.json"
    with Endpoint(["tools"]) as endpoint:
        for _ in range(2):
            async with ModelClient(settings(endpoint, file)) as client:
                await client.ask(QUESTION, City)
        place = settings(endpoint).place
        async with ModelClient(replace(settings(endpoint, file), model="other")) as client:
            await client.ask(QUESTION, City)
    assert endpoint.asked[3:4] == [("tools", False)]
    assert [is_probe for _, is_probe in endpoint.asked] == [True, True, False, False, True, True, False]
    assert saved_mode(file, f"{place}/") == "tools"
    assert "key" not in file.read_text()


async def test_a_mode_that_is_set_is_never_tried(tmp_path: Path) -> None:
    file = tmp_path / "modes.json"
    with Endpoint(["json"]) as endpoint:
        async with ModelClient(replace(settings(endpoint, file), mode="json")) as client:
            await client.ask(QUESTION, City)
    assert (endpoint.asked, file.exists()) == ([("json", False)], False)


@pytest.mark.parametrize(
    ("reply", "error", "calls"),
    [
        (Reply(status=503), EndpointUnavailable, 1),
        (Reply(status=401), EndpointMisconfigured, 1),
        (Reply(status=400), EndpointMisconfigured, 3),
        (Reply("no"), AnswerInvalid, 3),
        (Reply("{", finish_reason="length"), AnswerCut, 3),
    ],
)
async def test_where_no_mode_works_nothing_is_remembered(
    reply: Reply, error: type[Exception], calls: int, tmp_path: Path
) -> None:
    """An endpoint that is down says nothing about modes: it is tried again next time."""
    file = tmp_path / "modes.json"
    with Endpoint([], reply) as endpoint:
        async with ModelClient(settings(endpoint, file)) as client:
            with pytest.raises(error):
                await client.ask(QUESTION, City)
    assert (len(endpoint.requests), file.exists()) == (calls, False)


def test_a_file_that_cannot_be_used_costs_a_try_and_no_more(tmp_path: Path) -> None:
    file = tmp_path / "modes.json"
    for broken in ("", "[]", '{"here": "yaml"}', "\x00"):
        file.write_text(broken)
        assert saved_mode(file, "here") is None
    assert save_mode(file, "here", "json")
    assert saved_mode(file, "here") == "json"
    assert not save_mode(file / "below", "here", "json")
    assert [written.name for written in tmp_path.iterdir()] == ["modes.json"]


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Settings of a model at an endpoint, as the environment gives them."""

    def configure(endpoint: ScriptedEndpoint, mode: str = "auto") -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        given = {"BASE_URL": endpoint.base_url, "API_KEY": "key", "NAME": "small", "MAX_RETRIES": "0", "MODE": mode}
        for name, value in given.items():
            monkeypatch.setenv(f"AFTERWORD_MODEL__{name}", value)
        monkeypatch.setenv("AFTERWORD_EXTRACTOR", "model")

    return configure


async def probed() -> doctor.CheckResult:
    return (await doctor.run_checks(probe=True))[-1]


async def test_the_doctor_tries_every_mode_and_says_which_to_set(configured: Any, tmp_path: Path) -> None:
    with Endpoint(["tools", "json"]) as endpoint:
        configured(endpoint)
        check = await probed()
        assert (check.ok, check.finding) == (True, "json_schema fails, tools works, json works; auto: tools is used")
        assert "tools" in (tmp_path / "afterword" / "modes.json").read_text()
        configured(endpoint, "json_schema")
        check = await probed()
        assert (check.ok, check.fix) == (False, 'set mode = "tools" or "auto"')


async def test_the_doctor_says_what_is_wrong_with_a_model_that_answers_in_no_mode(configured: Any) -> None:
    with Endpoint([], Reply(status=401)) as endpoint:
        configured(endpoint)
        check = await probed()
    assert not check.ok
    assert "HTTP 401; check the API key" in check.fix


async def test_without_being_asked_to_the_doctor_asks_no_model(configured: Any) -> None:
    with Endpoint(MODES) as endpoint:
        configured(endpoint)
        await doctor.run_checks()
    assert endpoint.requests == []
