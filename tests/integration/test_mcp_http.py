"""The MCP server on the HTTP service, called by the official client with the keys of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

import afterword
from afterword import Afterword
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from mcp_clients import MODES, Person, call, connected, error_of, serving_http

READING = {"recall", "list_facts", "get_fact", "get_context", "list_sessions", "list_findings"}
BEGIN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPTS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Afterword]:
    settings = Settings(embedding=EmbeddingOptions(kind="none"))
    async with afterword.open(f"sqlite:///{tmp_path}/afterword.db", settings=settings) as opened:
        for user, city in (("mira", "Porto"), ("noor", "Cairo")):
            await opened.user(user).remember(f"I live in {city}.", attribute="home", value=city)
        yield opened


@pytest.fixture
async def address(app: Afterword) -> AsyncIterator[str]:
    """The address of a service that runs in this process."""
    async with serving_http(app, cors_origins=["https://pages.example"]) as served:
        yield served


async def secret_of(app: Afterword, user: str = "mira", **rights: Any) -> str:
    return (await app.keys.create(user=user, **rights)).secret


@pytest.mark.parametrize("mode", MODES)
async def test_a_key_opens_its_memory_alone(app: Afterword, address: str, mode: str) -> None:
    mira, noor = await secret_of(app), await secret_of(app, "noor")
    async with connected(address, mira, mode) as first, connected(address, noor, mode) as second:
        for _ in range(3):
            answers = await asyncio.gather(*(call(client, "list_facts") for client in (first, second, first, second)))
            assert [[fact["value"] for fact in answer["facts"]] for answer in answers] == [["Porto"], ["Cairo"]] * 2
        (fact,) = (await app.user("noor").facts()).facts
        assert "no fact" in await error_of(first, "get_fact", fact_id=fact.id)
        assert len((await first.list_tools()).tools) == len(READING) + 5


@pytest.mark.parametrize("mode", MODES)
async def test_a_read_only_key_sees_read_tools_alone(app: Afterword, address: str, mode: str) -> None:
    async with connected(address, await secret_of(app, read_only=True), mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING
        assert "read-only" in await error_of(client, "remember", statement="The user likes tea.")
        assert [fact["value"] for fact in (await call(client, "list_facts"))["facts"]] == ["Porto"]
    assert not (await app.user("mira").review()).held


async def test_the_person_is_asked_by_the_new_protocol(app: Afterword, address: str) -> None:
    person = Person("accept")
    async with connected(address, await secret_of(app), person=person) as client:
        assert (await call(client, "remember", statement="The user likes tea."))["status"] == "done"
        (porto, _) = (await call(client, "list_facts"))["facts"]
        assert (await call(client, "forget", fact_id=porto["id"]))["status"] == "erased"
        assert "exactly one" in await error_of(client, "forget")
    assert len(person.questions) == 2
    assert [fact.statement for fact in (await app.user("mira").facts()).facts] == ["The user likes tea."]
    entries = (await app.audit()).entries
    assert {(entry.action, entry.result) for entry in entries} == {
        ("mcp remember", 200),
        ("mcp forget", 200),
        ("mcp forget", 400),
    }
    assert [run_id for entry in entries for run_id in entry.run_ids]


async def test_the_person_declines_by_the_new_protocol(app: Afterword, address: str) -> None:
    (porto,) = (await app.user("mira").facts()).facts
    async with connected(address, await secret_of(app), person=Person("decline")) as client:
        assert (await call(client, "withdraw_fact", fact_id=porto.id))["status"] == "declined"
        assert (await call(client, "forget", fact_id=porto.id))["status"] == "declined"
    assert (await app.user("mira").facts()).total == 1


async def test_the_old_protocol_cannot_ask_without_a_session(app: Afterword, address: str) -> None:
    (porto,) = (await app.user("mira").facts()).facts
    async with connected(address, await secret_of(app), "legacy", Person("accept")) as client:
        waiting = await call(client, "remember", statement="The user likes tea.")
        assert waiting["status"] == "waits for review"
        assert "this client cannot ask" in await error_of(client, "forget", fact_id=porto.id)
    assert [held.id for held in (await app.user("mira").review()).held] == [waiting["request"]]


async def test_who_is_refused(app: Afterword, address: str) -> None:
    good, revoked = await secret_of(app), await app.keys.create(user="mira")
    await app.keys.revoke(revoked.key.id)
    admin = (await app.keys.create(admin=True)).secret

    async def status(headers: Mapping[str, str], method: str = "POST") -> int:
        async with httpx2.AsyncClient(headers={**ACCEPTS, **headers}) as http:
            body = BEGIN if method == "POST" else None
            return (await http.request(method, f"{address}/mcp", json=body)).status_code

    bearer = {"Authorization": f"Bearer {good}"}
    assert await status(bearer) == 200
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": f"Bearer {revoked.secret}"}):
        assert await status(headers) == 401
    assert await status({"Authorization": f"Basic {good}"}) == 401
    assert await status({"Authorization": f"Bearer {admin}"}) == 403
    assert await status({**bearer, "Host": "evil.example"}) == 421
    assert await status({**bearer, "Origin": "https://evil.example"}) == 403
    assert await status({**bearer, "Origin": "https://pages.example"}) == 200
    assert await status({**bearer, "Origin": address}) == 200
    assert await status(bearer, "DELETE") in (400, 405)


async def test_a_key_that_is_revoked_meanwhile(app: Afterword, address: str) -> None:
    made = await app.keys.create(user="mira")
    async with connected(address, made.secret) as client:
        assert (await call(client, "list_facts"))["total"] == 1
        await app.keys.revoke(made.key.id)
        with pytest.raises(MCPError, match="error response"):
            await client.call_tool("list_facts", {})


async def test_no_sealed_answer_of_another_key_counts(app: Afterword, address: str) -> None:
    """The state that a client carries to its next request belongs to the key that got it."""
    (porto,) = (await app.user("mira").facts()).facts
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }

    async def forget(secret: str, **more: Any) -> dict[str, Any]:
        headers = {
            **ACCEPTS,
            "Authorization": f"Bearer {secret}",
            "MCP-Protocol-Version": "2026-07-28",
            "MCP-Method": "tools/call",
            "MCP-Name": "forget",
        }
        params = {"name": "forget", "arguments": {"fact_id": porto.id}, "_meta": meta, **more}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with httpx2.AsyncClient(headers=headers) as http:
            answer: dict[str, Any] = (await http.post(f"{address}/mcp", json=body)).json()
            return answer

    first, second = await secret_of(app), await secret_of(app)
    asked = (await forget(first))["result"]
    assert asked["resultType"] == "input_required"
    (question,) = asked["inputRequests"]
    answers = {question: {"action": "accept", "content": {"erase": True}}}
    carried = {"inputResponses": answers, "requestState": asked["requestState"]}
    refused = await forget(second, **carried)
    assert "error" in refused
    assert (await app.user("mira").facts()).total == 1
    erased = await forget(first, **carried)
    assert erased["result"]["structuredContent"]["status"] == "erased"
    assert (await app.user("mira").facts()).total == 0


async def test_a_finding_has_the_name_of_the_key(app: Afterword, address: str) -> None:
    """The agent is named by whoever made the key, and not by itself."""
    await app.user("mira").set_finding_policy(["researcher"], agents_with_tools="keep")
    finding = {"statement": "Nylgut strings last longer than steel strings.", "topic": "strings"}
    async with connected(address, await secret_of(app, name="writer")) as client:
        assert (await call(client, "save_finding", **finding))["status"] == "not kept"
    async with connected(address, await secret_of(app, name="researcher")) as client:
        assert (await call(client, "save_finding", **finding))["status"] == "done"
        assert [each["agent"] for each in (await call(client, "list_findings"))["findings"]] == ["researcher"]
    assert "mcp save_finding" in {entry.action for entry in (await app.audit()).entries}
    async with connected(address, await secret_of(app, read_only=True, name="researcher")) as client:
        assert "read-only" in await error_of(client, "save_finding", **finding)
    async with connected(address, await secret_of(app, "noor")) as client:
        assert (await call(client, "list_findings"))["findings"] == []


@pytest.mark.parametrize("mode", MODES)
async def test_no_words_of_a_client_are_logged(
    app: Afterword, address: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(address, await secret_of(app), mode) as client:
        for name, arguments in (("memory", {"topic": "zanzibar"}), ("zanzibar", {})):
            with pytest.raises(MCPError, match=r"no such prompt|wrong arguments"):
                await client.get_prompt(name, arguments)
        await error_of(client, "zanzibar")
        await error_of(client, "recall", query="seat", limit="zanzibar")
        with pytest.raises(MCPError):
            await client.read_resource("memory://zanzibar")
    assert "zanzibar" not in caplog.text
