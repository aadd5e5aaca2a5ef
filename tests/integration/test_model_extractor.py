"""The extractor that asks a model: what it sends, what it takes back, and its doubles."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

from afterword.composition import open_extractor_and_judge
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.errors import AnswerInvalid, EndpointMisconfigured
from afterword.extractors.extractor import Extractor, Rejection, Window
from afterword.extractors.model.client import Mode, ModelClient, ModelSettings
from afterword.extractors.model.extractor import EXTRACT_EVERYTHING_PROMPT, EXTRACT_PROMPT, ModelExtractor
from afterword.extractors.model.prompts import load_prompt
from afterword.extractors.testing import OracleExtractor, Reply, ScriptedEndpoint, facts_reply, replayed, request_key
from afterword.facts.assertions import Kind
from afterword.facts.transcripts import Role, Turn
from afterword.setting_sections import ModelOptions

TEMPLATE = "I live in {{ 7*7 }} {% raw %} {{ config }} ${HOME} Graz"
SAID = datetime(2025, 9, 8, 18, 42, tzinfo=UTC)


def window(text: str = "I moved to Graz.") -> Window:
    return Window(0, (Turn(1, "lena", Role.HUMAN, text, SAID),), (), ("lena",), ("lena",))


def candidate(value: str = "Graz", quote: str = "I moved to Graz.") -> Candidate:
    return Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute="home_city",
        value=value,
        statement=f"The user lives in {value}.",
        evidence=[Citation(turn=1, quote=quote)],
    )


@asynccontextmanager
async def extractor(endpoint: ScriptedEndpoint, mode: Mode = "json_schema") -> AsyncIterator[ModelExtractor]:
    async with ModelClient(ModelSettings("scripted", endpoint.base_url, max_retries=0, mode=mode)) as client:
        yield ModelExtractor(client)


async def test_a_window_is_one_question() -> None:
    with ScriptedEndpoint([facts_reply(candidate())]) as endpoint:
        async with extractor(endpoint) as model:
            extraction = await model.extract(window())
    assert extraction.candidates == (candidate(),)
    assert extraction.usage.calls == len(endpoint.requests) == 1
    assert [message["role"] for message in endpoint.requests[0]["messages"]] == ["system", "user"]


async def test_everything_that_is_told_is_asked_for_by_a_prompt_of_its_own() -> None:
    with ScriptedEndpoint([facts_reply(candidate())]) as endpoint:
        options = ModelOptions(name="scripted", base_url=endpoint.base_url, mode="json_schema", detail="everything")
        async with open_extractor_and_judge("model", options) as workers:
            await workers.extractor.extract(window())
    assert workers.extractor.version == f"model:scripted:{EXTRACT_EVERYTHING_PROMPT}+repair-1"
    assert endpoint.requests[0]["messages"][0]["content"] == load_prompt(EXTRACT_EVERYTHING_PROMPT)


async def test_no_facts_is_an_answer() -> None:
    with ScriptedEndpoint([facts_reply()]) as endpoint:
        async with extractor(endpoint) as model:
            assert (await model.extract(window())).candidates == ()


async def test_no_answer_is_not_no_facts() -> None:
    with ScriptedEndpoint(lambda request: Reply("nothing here")) as endpoint:
        async with extractor(endpoint) as model:
            with pytest.raises(AnswerInvalid):
                await model.extract(window())


async def test_the_request_depends_on_the_window_alone() -> None:
    """Same window, same bytes: no clock, no store and no earlier question can be in it."""
    with ScriptedEndpoint(lambda request: facts_reply()) as endpoint:
        for _ in range(2):
            async with extractor(endpoint) as model:
                await model.extract(window())
                await model.extract(window("Something else."))
    first, second, third, fourth = endpoint.requests
    assert (first, second) == (third, fourth)
    assert f"{datetime.now(UTC):%Y-%m-%d}" not in json.dumps(endpoint.requests)


@pytest.mark.parametrize("mode", get_args(Mode))
async def test_template_syntax_is_only_text(mode: Mode) -> None:
    """instructor would render it, given the chance: a user's words would be evaluated, or lost."""
    with ScriptedEndpoint([facts_reply(candidate(TEMPLATE, TEMPLATE)), facts_reply(candidate())]) as endpoint:
        async with extractor(endpoint, mode) as model:
            extraction = await model.extract(window(TEMPLATE))
            await model.repair(window(TEMPLATE), [Rejection(extraction.candidates[0], "quote_absent", TEMPLATE)])
    assert extraction.candidates[0].value == TEMPLATE
    extracting, repairing = endpoint.requests
    assert TEMPLATE in extracting["messages"][1]["content"]
    assert all(TEMPLATE in message["content"] for message in repairing["messages"][1:])


async def test_repair_shows_what_was_refused_and_why() -> None:
    wrong = candidate(quote="I have moved to Graz.")
    with ScriptedEndpoint([facts_reply(candidate())]) as endpoint:
        async with extractor(endpoint) as model:
            mended = await model.repair(window(), [Rejection(wrong, "quote_absent", "not in turn 1")])
    assert mended.candidates == (candidate(),)
    messages = endpoint.requests[0]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert json.loads(messages[2]["content"])["facts"][0]["evidence"][0]["quote"] == "I have moved to Graz."
    assert "1. quote_absent: not in turn 1" in messages[3]["content"]


async def test_repair_continues_the_question_so_that_the_prompt_cache_serves_it() -> None:
    with ScriptedEndpoint(lambda request: facts_reply()) as endpoint:
        async with extractor(endpoint) as model:
            await model.extract(window())
            await model.repair(window(), [Rejection(candidate(), "quote_absent", "")])
    extracting, repairing = endpoint.requests
    assert repairing["messages"][:2] == extracting["messages"]


async def test_nothing_refused_is_nothing_asked() -> None:
    with ScriptedEndpoint() as endpoint:
        async with extractor(endpoint) as model:
            assert (await model.repair(window(), [])).candidates == ()
    assert endpoint.requests == []


async def test_nothing_said_reaches_the_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with ScriptedEndpoint([Reply('{"facts": [{"value": "Graz"}]}'), facts_reply(candidate())]) as endpoint:
        async with extractor(endpoint) as model:
            await model.extract(window())
    assert "Graz" not in caplog.text


async def test_the_version_names_model_and_prompts() -> None:
    with ScriptedEndpoint() as endpoint:
        async with extractor(endpoint) as model:
            assert model.version == "model:scripted:extract-4+repair-1"


async def test_statements_can_be_asked_for_in_one_language() -> None:
    """One memory may hold sessions in several languages; what was read for another one is read again."""
    with ScriptedEndpoint([facts_reply(candidate())] * 3) as endpoint:
        async with ModelClient(ModelSettings("scripted", endpoint.base_url, mode="json_schema")) as client:
            plain, translating = ModelExtractor(client), ModelExtractor(client, language="English")
            await plain.extract(window())
            await translating.extract(window())
    own, english = (request["messages"][0]["content"] for request in endpoint.requests)
    assert own == load_prompt(EXTRACT_PROMPT)
    assert english.startswith(own)
    assert "in English, whatever the language of the session" in english
    assert translating.version == f"{plain.version}+English"


async def test_recorded_replies_are_played_back(tmp_path: Path) -> None:
    """What a large model once answered is asked again, byte by byte; anything else must not pass unnoticed."""
    with ScriptedEndpoint([facts_reply(candidate())]) as endpoint:
        async with extractor(endpoint) as model:
            await model.extract(window())
    cassette = tmp_path / "cassette.jsonl"
    recorded = {"key": request_key(endpoint.requests[0]), "reply": facts_reply(candidate()).content}
    cassette.write_text(json.dumps(recorded) + "\n\n", encoding="utf-8")
    with ScriptedEndpoint(replayed(cassette)) as endpoint:
        async with extractor(endpoint) as model:
            assert (await model.extract(window())).candidates == (candidate(),)
            with pytest.raises(EndpointMisconfigured, match="404"):
                await model.extract(window("Never recorded."))


def test_the_key_of_a_request_leaves_out_what_may_vary() -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "hé"}]}
    assert request_key(request) == request_key({**request, "timeout": 3, "user": "x", "max_completion_tokens": 9})
    assert request_key(request) == "194dff74d626ff213b6914c4b3a1e73cff3378e4fe43bf3f7aacb2a0746c0588"


def test_a_script_that_is_over_answers_404_and_an_endpoint_that_is_over_has_no_address() -> None:
    endpoint = ScriptedEndpoint()
    with pytest.raises(RuntimeError, match="does not serve"):
        _ = endpoint.base_url
    with endpoint:
        assert endpoint.base_url.startswith("http://127.0.0.1:")


async def test_the_oracle_knows_windows_by_their_words() -> None:
    oracle: Extractor = OracleExtractor({"moved to Graz": [candidate()], "piano": [candidate("piano")]})
    assert (await oracle.extract(window())).candidates == (candidate(),)
    assert (await oracle.extract(window("hello"))).candidates == ()
    assert (await oracle.repair(window(), [Rejection(candidate(), "x", "")])).candidates == ()


async def test_the_oracle_may_be_a_function_and_mend() -> None:
    oracle = OracleExtractor(lambda asked: [candidate(asked.turns[0].text)], lambda _, refused: [candidate("mended")])
    assert (await oracle.extract(window("Linz"))).candidates == (candidate("Linz"),)
    refused = Rejection(candidate(), "quote_absent", "")
    assert (await oracle.repair(window(), [refused])).candidates == (candidate("mended"),)
    assert (oracle.rejections, [len(oracle.windows), oracle.version]) == ([refused], [1, "oracle:1"])
