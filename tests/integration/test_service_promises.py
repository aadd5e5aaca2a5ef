"""What the page of the service promises of single routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import ValidationError

import afterword
from afterword import Afterword
from afterword.setting_sections import WebhookOptions
from afterword.settings import Settings
from service import ServiceClient, check_documented, said, service_document, serving


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Afterword]:
    settings = Settings(webhooks=WebhookOptions(allow_loopback=True))
    async with afterword.open(f"sqlite:///{tmp_path}/afterword.db", settings=settings) as opened:
        yield opened


@pytest.fixture
async def call(app: Afterword) -> AsyncIterator[ServiceClient]:
    async with serving(app) as client:
        yield client


async def root(call: ServiceClient) -> dict[str, str]:
    """Return the headers of an administrator who has a memory, too."""
    return {"Authorization": f"Bearer {await call.secret('mira', admin=True)}"}


async def test_a_paused_memory_says_so_at_once_and_later(call: ServiceClient) -> None:
    first = {"session_id": "first", "state": said("I live in Oslo.")}
    assert (await call("POST", "/v1/me/sessions", json=first)).json()["result"] == "done"
    await call.app.user("mira").pause()
    body = {"session_id": "queued", "state": said("I like tea."), "queue": True}
    for replayed in (None, "true"):
        answer = await call("POST", "/v1/me/sessions", json=body, headers={"Idempotency-Key": "once"})
        assert (answer.status_code, answer.json()) == (200, {"result": "paused"})
        assert "Location" not in answer.headers
        assert answer.headers.get("Idempotency-Replayed") == replayed
    again = await call("POST", "/v1/me/sessions/first/reprocess")
    assert (again.status_code, again.json()["result"]) == (200, "paused")
    assert (await call("GET", "/v1/me/sessions")).json()["total"] == 1
    await call.app.user("mira").resume_keeping()
    queued = {**body, "session_id": "second", "state": said("I like milk.")}
    for _ in range(2):
        answer = await call("POST", "/v1/me/sessions", json=queued, headers={"Idempotency-Key": "twice"})
        assert (answer.status_code, answer.json()) == (202, {"progress": "pending"})
        assert answer.headers["Location"] == "/v1/me/sessions/second/job"


async def test_a_repeated_change_of_webhooks_is_made_once(call: ServiceClient) -> None:
    headers = {**await root(call), "Idempotency-Key": "one"}
    body = {"url": "http://127.0.0.1:9/"}
    first, second = [await call.http.post("/v1/admin/webhooks", json=body, headers=headers) for _ in range(2)]
    assert first.status_code == 200
    assert second.json() == first.json()
    assert second.headers["Idempotency-Replayed"] == "true"
    other = await call.http.post("/v1/admin/webhooks", json={"url": "http://127.0.0.1:8/"}, headers=headers)
    assert other.status_code == 422
    path = f"/v1/admin/webhooks/{first.json()['id']}"
    for method, below in (("POST", "/test"), ("POST", "/retry"), ("DELETE", "")):
        headers["Idempotency-Key"] = f"{method} {below}"
        answers = [await call.http.request(method, path + below, headers=headers) for _ in range(2)]
        assert answers[0].json() == answers[1].json()
        assert [answer.headers.get("Idempotency-Replayed") for answer in answers] == [None, "true"]


@pytest.mark.parametrize(
    "state",
    [
        {"type": "AssistantAgentState", "llm_context": {"messages": "nope"}},
        {"type": "AssistantAgentState", "llm_context": "nope"},
    ],
)
async def test_a_damaged_state_is_refused(call: ServiceClient, state: dict[str, Any]) -> None:
    answer = await call("POST", "/v1/me/sessions", json={"session_id": "a", "state": state})
    assert answer.status_code == 422, answer.text
    assert "no saved conversation is recognised" in answer.json()["detail"]


async def test_a_state_without_words_is_none_that_is_damaged(call: ServiceClient) -> None:
    for state in ({"type": "CodeExecutorAgentState"}, {"type": "AssistantAgentState", "llm_context": {}}):
        answer = await call("POST", "/v1/me/sessions", json={"session_id": state["type"], "state": state})
        assert (answer.status_code, answer.json()["result"]) == (200, "empty")


@pytest.mark.parametrize("session_id", ["", " ", "\t\n", "\u00a0"])
async def test_a_session_has_an_id(call: ServiceClient, session_id: str) -> None:
    answer = await call("POST", "/v1/me/sessions", json={"session_id": session_id, "state": said("I like tea.")})
    assert answer.status_code == 422, answer.text


async def test_a_finding_is_forgotten_by_its_id(call: ServiceClient) -> None:
    memory = call.app.user("mira")
    await memory.set_finding_policy("planner")
    await memory.save_finding("The night train to Oslo is cheapest.", agent="planner", topic="travel")
    (finding,) = (await call("GET", "/v1/me/findings")).json()["findings"]
    target = {"finding": finding["id"]}
    preview = (await call("POST", "/v1/me/forget/preview", json=target)).json()
    done = await call("POST", "/v1/me/forget", json={**target, "confirmation": preview["confirmation"]})
    assert done.status_code == 200, done.text
    assert (await call("GET", "/v1/me/findings")).json()["findings"] == []
    for none in ({}, {**target, "fact": "a"}):
        refused = await call("POST", "/v1/me/forget/preview", json=none)
        assert (refused.status_code, "exactly one of fact, finding, " in refused.text) == (400, True)


async def test_what_stops_a_full_export_is_said_for_every_door(call: ServiceClient) -> None:
    for day, text in (("2026-03-02", "I like coffee."), ("2026-03-03", "Please forget that I like coffee.")):
        await call.app.user("mira").process(said(text), session_id=day, started_at=day)
    answer = await call("GET", "/v1/me/export", params={"form": "full"}, headers=await root(call))
    assert answer.status_code == 400
    assert "first forget it (with `asked`) or reject the request" in answer.json()["detail"]


async def test_the_document_names_the_answer_of_another_host_and_of_a_queued_session(call: ServiceClient) -> None:
    document = (await call("GET", "/openapi.json")).json()
    operations = [each for path in document["paths"].values() for each in path.values()]
    for operation in operations:
        assert "421" in operation["responses"], operation["operationId"]
    described = document["paths"]["/v1/me/sessions"]["post"]["responses"]["202"]["description"]
    assert "Location" in described


async def test_the_document_declares_the_form_of_every_answer() -> None:
    """Programs are generated from it. The client of these tests checks every answer against it."""
    document = service_document()
    kinds = {
        f"{method} {path} {status}": media.get("schema", {})
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for status, answer in operation["responses"].items()
        for media in answer.get("content", {}).values()
    }
    assert len(kinds) > 500
    assert [name for name, schema in kinds.items() if not schema.keys() & {"$ref", "type", "anyOf"}] == []
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description"), name
        assert all(part.keys() & {"$ref", "type", "anyOf", "const"} for part in schema.get("properties", {}).values())


@pytest.mark.parametrize("kind", ["missing", "unknown"])
async def test_an_answer_of_another_form_than_the_document_declares_is_noticed(call: ServiceClient, kind: str) -> None:
    answer = await call("GET", "/v1/me/facts")
    content = {**answer.json(), "more": 1} if kind == "unknown" else {"facts": []}
    with pytest.raises(ValidationError):
        await check_documented(httpx.Response(200, json=content, request=answer.request))
