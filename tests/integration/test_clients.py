"""A question to an endpoint: its answer, its price, and what every fault becomes."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
from pydantic import BaseModel

from afterword.extractors.errors import (
    AnswerCut,
    AnswerInvalid,
    AnswerRefused,
    EndpointMisconfigured,
    EndpointUnavailable,
    ExtractionError,
)
from afterword.extractors.model.client import Mode, ModelClient, ModelSettings
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, completion, schema_echoed
from batches import wait_until

PRIVATE = "my therapist is Dr. Quillfeather"
KEY = "sk-secret-key-of-lena"
MODES = get_args(Mode)


class City(BaseModel):
    name: str


GRAZ = Reply(City(name="Graz").model_dump_json())
QUESTION = [{"role": "system", "content": "Name the city."}, {"role": "user", "content": PRIVATE}]


def settings(endpoint: ScriptedEndpoint, mode: Mode = "json_schema", timeout_s: float = 20) -> ModelSettings:
    return ModelSettings("scripted", endpoint.base_url, KEY, timeout_s=timeout_s, max_retries=1, mode=mode)


async def asked(chosen: ModelSettings) -> City:
    async with ModelClient(chosen) as client:
        answer, _ = await client.ask(QUESTION, City)
    return answer


@pytest.mark.parametrize("mode", MODES)
async def test_every_mode_gets_its_answer(mode: Mode) -> None:
    with ScriptedEndpoint([GRAZ]) as endpoint:
        assert (await asked(settings(endpoint, mode))).name == "Graz"
    assert endpoint.authorizations == [f"Bearer {KEY}"]


@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_that_does_not_fit_is_asked_for_once_more(mode: Mode) -> None:
    with ScriptedEndpoint([Reply('{"town": 1}'), GRAZ]) as endpoint:
        async with ModelClient(settings(endpoint, mode)) as client:
            answer, usage = await client.ask(QUESTION, City)
    assert (answer.name, usage.calls, len(endpoint.requests)) == ("Graz", 2, 2)
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens == len('{"town": 1}') // 4 + len(GRAZ.content) // 4


async def test_retries_on_the_wire_are_counted() -> None:
    with ScriptedEndpoint([Reply(status=503), GRAZ]) as endpoint:
        async with ModelClient(settings(endpoint)) as client:
            _, usage = await client.ask(QUESTION, City)
    assert usage.calls == len(endpoint.requests) == 2


async def test_an_endpoint_that_reports_no_usage_costs_no_tokens() -> None:
    with ScriptedEndpoint([replace(GRAZ, usage=False)]) as endpoint:
        async with ModelClient(settings(endpoint)) as client:
            _, usage = await client.ask(QUESTION, City)
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 0, 0)


async def test_another_tools_name_is_no_reason_to_lose_the_answer() -> None:
    with ScriptedEndpoint([replace(GRAZ, tool_name="not_the_one")]) as endpoint:
        assert (await asked(settings(endpoint, "tools"))).name == "Graz"


LLAMA_CPP_TOO_LONG = (
    '{"error": {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds the available size"}}'
)
VLLM_TOO_LONG = '{"object": "error", "code": 400, "message": "This model\'s maximum context length is 4096 tokens."}'
FAULTS: dict[str, tuple[Reply | Callable[[Json], Reply], type[ExtractionError]]] = {
    "rate limit": (Reply(status=429), EndpointUnavailable),
    "server error": (Reply(status=500, content=PRIVATE), EndpointUnavailable),
    "overloaded": (Reply(status=503), EndpointUnavailable),
    "bad request": (Reply(status=400, content=PRIVATE), EndpointMisconfigured),
    "wrong key": (Reply(status=401, content=KEY), EndpointMisconfigured),
    "forbidden": (Reply(status=403), EndpointMisconfigured),
    "no such model": (Reply(status=404), EndpointMisconfigured),
    "unknown field": (Reply(status=422), EndpointMisconfigured),
    "request too long": (Reply(status=400, code="context_length_exceeded"), AnswerCut),
    "too long for llama.cpp": (Reply(status=400, body=LLAMA_CPP_TOO_LONG), AnswerCut),
    "too long for vLLM": (Reply(status=400, body=VLLM_TOO_LONG), AnswerCut),
    "cut": (Reply('{"name": "Gr', finish_reason="length"), AnswerCut),
    "refusal": (Reply(refusal=PRIVATE), AnswerRefused),
    "withheld": (Reply(finish_reason="content_filter"), AnswerRefused),
    "no choices": (Reply(choices=False), AnswerInvalid),
    "empty": (Reply(""), AnswerInvalid),
    "two answers in prose": (Reply(f"Sure! {PRIVATE}: {GRAZ.content} or {GRAZ.content}"), AnswerInvalid),
    "withheld, with half an answer": (replace(GRAZ, finish_reason="content_filter"), AnswerRefused),
    "words of no encoding": (Reply(body=b'{"choices": "\xff\xfe"}'), AnswerInvalid),
    "no JSON": (Reply(PRIVATE), AnswerInvalid),
    "another shape": (Reply('{"town": "' + PRIVATE + '"}'), AnswerInvalid),
    "the schema itself": (schema_echoed, AnswerInvalid),
    "a huge reply": (Reply(PRIVATE * 50_000), AnswerInvalid),
    "a page instead of JSON": (
        Reply(body="<html>login</html>", headers={"Content-Type": "text/html"}),
        EndpointMisconfigured,
    ),
    "broken JSON on the wire": (Reply(body='{"choices": ['), AnswerInvalid),
    "null": (Reply(body="null"), AnswerInvalid),
    "an error with status 200": (Reply(body='{"error": {"message": "no"}}'), AnswerInvalid),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("mode", MODES)
async def test_every_fault_is_an_error_of_its_own_that_keeps_private_words(
    fault: str, mode: Mode, caplog: pytest.LogCaptureFixture
) -> None:
    """instructor puts whole prompts and answers into its messages and logs them as errors; none of it may pass."""
    reply, expected = FAULTS[fault]
    caplog.set_level(logging.DEBUG)
    with ScriptedEndpoint(lambda request: reply(request) if callable(reply) else reply) as endpoint:
        chosen = settings(endpoint, mode)
        with pytest.raises(ExtractionError) as caught:
            await asked(chosen)
    assert type(caught.value) is expected
    assert "scripted" in str(caught.value)
    assert chosen.place in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    shown = str(caught.value) + "".join(r.getMessage() for r in caplog.records if r.levelno > logging.DEBUG)
    assert PRIVATE not in shown
    assert KEY not in shown


ODD_BODIES = (
    "",
    "[1]",
    '"x"',
    '{"choices": {}}',
    '{"choices": [null]}',
    '{"choices": [{"message": null}], "usage": {}}',
    '{"choices": [{"message": {"content": 5}, "finish_reason": 7}], "usage": {"prompt_tokens": "x"}}',
    '{"choices": [{"message": {"tool_calls": [{}]}}], "usage": 5}',
)


@pytest.mark.parametrize("body", ODD_BODIES)
@pytest.mark.parametrize("mode", MODES)
async def test_whatever_an_endpoint_sends_only_our_own_errors_come_out(body: str, mode: Mode) -> None:
    with ScriptedEndpoint(lambda request: Reply(body=body)) as endpoint, pytest.raises(ExtractionError):
        await asked(settings(endpoint, mode))


async def test_an_error_body_of_any_shape_is_read_for_its_status_alone() -> None:
    odd = Reply(status=400, body='{"error": {"code": [1]}}')
    with ScriptedEndpoint([odd]) as endpoint, pytest.raises(EndpointMisconfigured, match="HTTP 400"):
        await asked(settings(endpoint))


async def test_an_endpoint_that_hangs_is_given_up() -> None:
    with ScriptedEndpoint(lambda request: Reply(hangs=True)) as endpoint:
        with pytest.raises(EndpointUnavailable, match="in time"):
            await asked(settings(endpoint, timeout_s=0.2))
        await asyncio.to_thread(wait_until, lambda: len(endpoint.requests) >= 2)
        assert len(endpoint.requests) == 2


async def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    with ScriptedEndpoint() as endpoint:
        gone = settings(endpoint)
    with pytest.raises(EndpointUnavailable, match="no connection"):
        await asked(gone)


async def test_cancelling_a_question_is_not_an_error_of_the_endpoint() -> None:
    with ScriptedEndpoint(lambda request: Reply(hangs=True)) as endpoint:
        async with ModelClient(settings(endpoint)) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.ask(QUESTION, City), 0.3)


async def test_questions_are_asked_at_once_over_one_client() -> None:
    """The barrier opens only when all eight requests are in."""
    barrier = threading.Barrier(8, timeout=20)

    def together(request: Json) -> Reply:
        barrier.wait()
        return GRAZ

    with ScriptedEndpoint(together) as endpoint:
        async with ModelClient(settings(endpoint)) as client:
            answers = await asyncio.gather(*(client.ask(QUESTION, City) for _ in range(8)))
    assert [(answer.name, usage.calls) for answer, usage in answers] == [("Graz", 1)] * 8


async def test_a_closed_client_opens_again_when_asked() -> None:
    with ScriptedEndpoint([GRAZ, GRAZ]) as endpoint:
        client = ModelClient(settings(endpoint))
        for _ in range(2):
            assert (await client.ask(QUESTION, City))[0].name == "Graz"
            await client.close()
        await client.close()


async def test_the_answers_length_is_limited_only_when_asked() -> None:
    with ScriptedEndpoint([GRAZ, GRAZ]) as endpoint:
        await asked(settings(endpoint))
        await asked(replace(settings(endpoint), max_completion_tokens=300))
    assert [request.get("max_completion_tokens") for request in endpoint.requests] == [None, 300]


async def test_the_applications_own_use_of_instructor_still_logs(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedEndpoint([GRAZ]) as endpoint:
        await asked(settings(endpoint))
    logging.getLogger("instructor.v2.retry").error("something of the application's")
    assert "something of the application's" in caplog.text


async def test_no_key_of_the_environment_goes_to_another_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedEndpoint([GRAZ]) as endpoint:
        await asked(replace(settings(endpoint), api_key=None))
    assert KEY not in endpoint.authorizations[0]


async def test_without_any_key_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_ADMIN_KEY", raising=False)
    with pytest.raises(EndpointMisconfigured, match="set an API key"):
        await asked(ModelSettings("gpt-4o-mini"))


def test_a_key_is_never_shown() -> None:
    chosen = ModelSettings("m", f"https://lena:{KEY}@example.org/v1?token={KEY}", KEY)
    assert KEY not in repr(replace(chosen, base_url=None))
    assert chosen.place == "model 'm' at https://example.org/v1"


@pytest.mark.parametrize(
    ("model", "base_url", "mode"),
    [(" ", None, "json"), ("m", "localhost:11434/v1", "json"), ("m", "ftp://x", "json"), ("m", None, "yaml")],
)
def test_settings_that_no_request_can_use_are_refused(model: str, base_url: str | None, mode: Mode) -> None:
    with pytest.raises(EndpointMisconfigured):
        ModelSettings(model, base_url, mode=mode)


def test_importing_loads_neither_openai_nor_instructor() -> None:
    """They take most of a second, which `afterword --help` cannot spare."""
    modules = ", ".join(
        f"afterword.extractors.{name}" for name in ("model.client", "model", "testing", "model.prompts")
    )
    check = f"import sys, {modules}; print({{'openai', 'instructor'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", ["cut", "refusal", "another shape", "empty", "withheld", "rate limit", "no choices"])
async def test_what_a_failed_question_has_cost_is_on_its_error(fault: str, mode: Mode) -> None:
    """Useless answers are paid for like good ones."""
    reply, _ = FAULTS[fault]
    assert isinstance(reply, Reply)
    with ScriptedEndpoint(lambda request: reply) as endpoint, pytest.raises(ExtractionError) as caught:
        await asked(settings(endpoint, mode))
    bills = [completion(request, reply)["usage"] for request in endpoint.requests]
    expected = (
        (0, 0)
        if fault == "rate limit"
        else tuple(sum(bill[name] for bill in bills) for name in ("prompt_tokens", "completion_tokens"))
    )
    spent = caught.value.usage
    assert spent.calls == len(endpoint.requests)
    assert (spent.prompt_tokens, spent.completion_tokens) == expected
