"""Vectors by the settings: what commands make after they have done their work, and what they tell of it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from afterword import FactMemory, embedder
from afterword.extractors.model.embeddings import EndpointEmbedder
from afterword.recall.vectors import LocalEmbedder
from afterword.settings import load
from commands import Commands
from embedding_endpoint import KEY, EmbeddingEndpoint, serving

DAY = "2026-03-01T12:00:00Z"
NONE: Mapping[str, str] = {}


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with serving() as served:
        yield served


@pytest.fixture
def afterword(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    for name in [*os.environ]:
        if name.startswith(("AFTERWORD_", "OPENAI_")):
            monkeypatch.delenv(name)
    return Commands(tmp_path, monkeypatch, capsys)


def session(afterword: Commands, name: str, *said: str, user: str = "lena") -> None:
    messages = [{"content": text, "source": "user", "type": "TextMessage", "created_at": DAY} for text in said]
    folder = afterword.folder / "saved" / user
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"messages": messages}))


def status(afterword: Commands, environment: Mapping[str, str] = NONE) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(afterword.within(environment, "status", "--json"))
    return told


def vectors(afterword: Commands, environment: Mapping[str, str] = NONE) -> list[tuple[str, int, bool, int, int]]:
    return [tuple(one.values()) for one in status(afterword, environment)["vectors"]]


def checked(afterword: Commands, environment: Mapping[str, str] = NONE, *, expected: int = 0) -> dict[str, Any]:
    told = json.loads(afterword.within(environment, "doctor", "--json", expected=expected))
    found: dict[str, Any] = next(one for one in told if one["check"] == "embedding")
    return found


def test_without_an_embedder_nothing_is_made_and_nothing_is_said(afterword: Commands) -> None:
    (afterword.folder / "afterword.toml").write_text('[embedding]\nkind = "none"\n')
    session(afterword, "one", "I live in Graz.")
    afterword("run", "saved")
    assert vectors(afterword) == []
    assert checked(afterword)["ok"]
    told = json.loads(afterword("recall", "--user", "lena", "Graz", "--json"))
    assert (told["without_vector"], len(told["facts"])) == (0, 1)


def test_a_run_makes_the_vectors_of_what_is_new(afterword: Commands, endpoint: EmbeddingEndpoint) -> None:
    env = endpoint.environment()
    session(afterword, "one", "I live in Graz.", "My password is hunter2hunter2.")
    afterword.within(env, "run", "saved")
    made = len(endpoint.texts)
    assert made >= 2
    assert vectors(afterword, env) == [("lengths", 2, True, made, 0)]
    assert "hunter2" not in str(endpoint.requests), "what is sent is what is kept: masked"
    assert endpoint.keys == {f"Bearer {KEY}"}
    afterword.within(env, "run", "saved")
    assert len(endpoint.texts) == made, "nothing is made twice"


def test_a_memory_that_a_rename_gives_back_has_its_vectors(afterword: Commands, endpoint: EmbeddingEndpoint) -> None:
    env = endpoint.environment()
    session(afterword, "one", "I live in Graz.")
    afterword.within(env, "run", "saved")
    renamed = json.loads(afterword.within(env, "rename", "default/user/lena", "default/user/magda", "--json"))
    assert vectors(afterword, env)[0][-1] == 0
    afterword.within(env, "undo", str(renamed["id"]))
    assert vectors(afterword, env)[0][-1] == 0


def test_what_vectors_cost_is_told_with_the_rest(afterword: Commands, endpoint: EmbeddingEndpoint) -> None:
    endpoint.tokens = 1_000_000
    prices = {"AFTERWORD_PRICES": '{"lengths": {"prompt_usd": "0.5", "completion_usd": 0}}'}
    session(afterword, "one", "I live in Graz.")
    afterword.within(endpoint.environment() | prices, "run", "saved")
    assert status(afterword)["spent"]["total"] | {"cached_tokens": 0} == {
        "calls": 1,
        "prompt_tokens": 1_000_000,
        "cached_tokens": 0,
        "completion_tokens": 0,
        "usd": "0.500000",
        "unpriced_calls": 0,
        "estimated_calls": 0,
    }
    afterword.within(endpoint.environment() | prices, "recall", "--user", "lena", "Graz")
    assert status(afterword)["spent"]["total"]["usd"] == "1.000000"


def test_an_endpoint_that_is_down_costs_no_session_and_the_schedule_mends_it(
    afterword: Commands, endpoint: EmbeddingEndpoint
) -> None:
    env = endpoint.environment()
    endpoint.status = 401
    session(afterword, "one", "I live in Graz.")
    (done,) = json.loads(afterword.within(env, "run", "saved", "--json"))
    assert done["result"] == "done"
    ((_, _, _, made, lacking),) = vectors(afterword, env)
    assert (made, lacking > 0) == (0, True)
    assert len(json.loads(afterword.within(env, "recall", "--user", "lena", "Graz", "--json"))["facts"]) == 1
    short = {"AFTERWORD_SCHEDULE__LEASE_S": "0.01"}
    told = afterword.within(env | short, "schedule", "--once", "--json", expected=1)
    assert json.JSONDecoder().raw_decode(told)[0]["embedding refresh"]["failures"] == {"EmbeddingUnavailable": 1}
    (job,) = (one for one in status(afterword, env)["jobs"] if one["job"] == "embedding refresh")
    assert job["failure"] == "EmbeddingUnavailable"
    endpoint.status = 200
    ended = json.loads(afterword.within(env | short, "schedule", "--once", "--json"))
    assert ended["embedding refresh"]["counts"] == {"vectors made": lacking}
    assert vectors(afterword, env) == [("lengths", 2, True, lacking, 0)]


def test_another_model_takes_the_place_of_the_former_one(afterword: Commands, endpoint: EmbeddingEndpoint) -> None:
    session(afterword, "one", "I live in Graz.")
    afterword.within(endpoint.environment(), "run", "saved")
    other = endpoint.environment(MODEL="other")
    before = vectors(afterword, other)
    assert [one[:3] for one in before] == [("lengths", 2, False), ("other", 2, True)]
    afterword.within(other, "schedule", "--once", "--json")
    assert [(*one[:3], one[4]) for one in vectors(afterword, other)] == [("other", 2, True, 0)]


def test_forget_import_and_undo_leave_the_vectors_complete(afterword: Commands, endpoint: EmbeddingEndpoint) -> None:
    env = endpoint.environment()
    session(afterword, "one", "I live in Graz.", "I like tea.")
    session(afterword, "two", "I live in Linz.")
    done = json.loads(afterword.within(env, "run", "saved", "--json"))
    afterword.within(env, "undo", str(done[1]["run"]))
    assert vectors(afterword, env)[0][4] == 0
    afterword.within(env, "forget", "--user", "lena", "--session", "one", "--yes")
    afterword.within(env, "run", "saved")
    assert all(one[4] == 0 for one in vectors(afterword, env))
    afterword("export", "all.jsonl")
    elsewhere = {**env, "AFTERWORD_STORE__URL": "sqlite:///elsewhere.db"}
    afterword.within(elsewhere, "import", "all.jsonl")
    assert all(one[4] == 0 for one in vectors(afterword, elsewhere))


def test_the_doctor_says_whether_the_embedder_answers(afterword: Commands, endpoint: EmbeddingEndpoint) -> None:
    env = endpoint.environment()
    told = checked(afterword, env)
    assert (told["ok"], endpoint.requests) == (True, [])
    assert "'lengths'" in told["found"]
    assert KEY not in json.dumps(told)
    for number in (0.0, float("nan"), None):
        endpoint.number = number
        expected = 0 if number is None else 1
        found = json.loads(afterword.within(env, "doctor", "--probe", "--json", expected=expected))
        told = next(one for one in found if one["check"] == "embedding")
        assert told["ok"] is (number is None)
        assert told["ok"] or told["mend"] == "the vector has to be 2 finite numbers that are not all zero"
    endpoint.dimension = 3
    found = json.loads(afterword.within(env, "doctor", "--probe", "--json", expected=1))
    told = next(one for one in found if one["check"] == "embedding")
    assert not told["ok"]
    assert "set the model's own dimension" in told["mend"]
    assert KEY not in json.dumps(found)


def test_the_doctor_says_what_is_missing(afterword: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afterword.doctor.find_spec", lambda name: None if name == "wordllama" else object())
    told = checked(afterword, {"AFTERWORD_EMBEDDING__KIND": "local"}, expected=1)
    assert (told["ok"], told["mend"]) == (False, "pip install 'afterword[local]'")
    monkeypatch.setattr("afterword.doctor.find_spec", lambda _: object())
    told = checked(afterword, {"AFTERWORD_EMBEDDING__KIND": "endpoint"}, expected=1)
    assert "OPENAI_API_KEY" in told["mend"]
    bad = {"AFTERWORD_EMBEDDING__KIND": "endpoint", "AFTERWORD_EMBEDDING__BASE_URL": "localhost:1"}
    assert "http://" in checked(afterword, bad, expected=1)["mend"]
    limited = {**bad, "AFTERWORD_EMBEDDING__BASE_URL": "http://me:hidden@localhost:1/v1"}
    limited |= {"AFTERWORD_EMBEDDING__MODEL": "own", "AFTERWORD_BUDGET__USD_PER_DAY": "1"}
    told = checked(afterword, limited, expected=1)
    assert '[prices."own"]' in told["mend"]
    assert "hidden" not in json.dumps(told)


def test_applications_get_the_configured_embedder(
    afterword: Commands, monkeypatch: pytest.MonkeyPatch, endpoint: EmbeddingEndpoint
) -> None:
    monkeypatch.chdir(afterword.folder)
    assert isinstance(embedder(), LocalEmbedder), "without a setting the local one, where it is installed"
    (afterword.folder / "afterword.toml").write_text('[embedding]\nkind = "none"\n')
    assert embedder() is None
    for name, value in endpoint.environment().items():
        monkeypatch.setenv(name, value)
    made = embedder()
    assert isinstance(made, EndpointEmbedder)
    assert (made.model, made.dimension) == ("lengths", 2)
    assert KEY not in repr(made.settings) + repr(load())
    assert asyncio.run(made.embed(["tea"])) == [[3.0, 1.0]]
    FactMemory(user="lena", embedder=made)


def test_local_vectors_find_by_meaning(afterword: Commands) -> None:
    pytest.importorskip("wordllama")
    env = {"AFTERWORD_EMBEDDING__KIND": "auto"}
    session(afterword, "one", *(f"I like {thing}." for thing in ("tea", "chess", "sailing", "gardening", "violins")))
    afterword.within(env, "run", "saved")
    assert vectors(afterword, env)[0][0:3] == ("wordllama-l2-supercat-256", 256, True)
    told = json.loads(afterword.within(env, "recall", "--user", "lena", "orchestral music", "--json"))
    assert "violins" in told["facts"][0]["statement"]
    without = {"AFTERWORD_EMBEDDING__KIND": "none"}
    told = json.loads(afterword.within(without, "recall", "--user", "lena", "orchestral music", "--json"))
    assert told["facts"] == []
