"""Attacks on the service: each row is something that a client tries, and what it gets."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import httpx2
import pytest

import afterword
from afterword import Afterword, Scope
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from mcp_clients import serving_http
from service import ServiceClient, said, serving

JSON = {"Content-Type": "application/json"}
ACCEPTS = {"Accept": "application/json, text/event-stream"}
OWN_PAGE = "https://pages.example"


@pytest.fixture(params=["file", "postgres"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Afterword]:
    is_file = request.param == "file"
    url = f"sqlite:///{tmp_path}/afterword.db" if is_file else str(request.getfixturevalue("postgres_store_url"))
    async with afterword.open(url, settings=Settings(embedding=EmbeddingOptions(kind="none"))) as opened:
        for user, city in (("mira", "Oslo"), ("noor", "Quito")):
            await opened.user(user).remember(f"I live in {city}.", attribute="home", value=city)
        yield opened


@pytest.fixture
async def call(app: Afterword) -> AsyncIterator[ServiceClient]:
    async with serving(app, requests_per_minute=100_000, cors_origins=[OWN_PAGE]) as client:
        yield client


def nested(levels: int, *, queue: bool) -> str:
    """Return the body of a session whose state is nested so deep."""
    content = "[" * levels + '"I live in Rome."' + "]" * levels
    messages = f'[{{"content": {content}, "source": "user", "type": "UserMessage"}}]'
    state = f'{{"type": "AssistantAgentState", "llm_context": {{"messages": {messages}}}}}'
    return f'{{"session_id": "deep", "queue": {json.dumps(queue)}, "state": {state}}}'


@pytest.mark.parametrize("levels", [250, 500, 940, 5_000, 100_000])
async def test_a_state_that_is_nested_deep_is_refused(call: ServiceClient, levels: int) -> None:
    for queue in (False, True):
        for headers in (JSON, {**JSON, "Idempotency-Key": f"deep {queue}"}):
            answer = await call("POST", "/v1/me/sessions", content=nested(levels, queue=queue), headers=headers)
            assert answer.status_code in (400, 422), answer.text
    assert (await call.app.user("mira").sessions()).total == 0


@pytest.mark.parametrize("name", ["李", "a b", "é", "a?b", "a#b", "a%2Fb", "%", "\u202e"])
async def test_the_address_of_a_job_is_an_address(call: ServiceClient, name: str) -> None:
    admin = {"Authorization": f"Bearer {(await call.app.keys.create(admin=True)).secret}"}
    body = {"session_id": "monday", "state": said("I live in Rome."), "queue": True}
    path = f"/v1/scopes/default/user/{quote(name, safe='')}/sessions"
    answer = await call("POST", path, json=body, headers=admin)
    assert answer.status_code == 202
    job = answer.headers["Location"]
    assert job.isascii()
    assert (await call("GET", job, headers=admin)).json()["scope"] == f"default/user/{name}"


@pytest.mark.parametrize("name", [".", ".."])
async def test_a_session_id_that_clients_remove_from_a_path_is_refused(call: ServiceClient, name: str) -> None:
    for queue in (False, True):
        body = {"session_id": name, "state": said("I live in Rome."), "queue": queue}
        answer = await call("POST", "/v1/me/sessions", json=body)
        assert answer.status_code == 422
        assert "remove" in answer.json()["errors"][0]["message"]
    dots = {"session_id": "...", "state": said("I live in Rome.")}
    assert (await call("POST", "/v1/me/sessions", json=dots)).status_code == 200


@pytest.mark.parametrize("path", ["runs/{}/undo", "runs/{}/redo", "runs/{}/apply", "review/run:{}"])
async def test_the_number_of_a_run_of_another_memory_is_like_one_that_does_not_exist(
    call: ServiceClient, path: str
) -> None:
    others = (await call.app.user("noor").runs()).runs[0].run.id
    details = []
    for number in (others, 123_456_789):
        body = {"decision": "reject"} if path.startswith("review") else None
        answer = await call("POST", f"/v1/me/{path.format(number)}", json=body)
        assert answer.status_code == 404
        details.append(answer.json()["detail"].replace(str(number), "N"))
    assert details[0] == details[1]


@pytest.mark.parametrize("after", ["9" * 18, "9" * 19, "9" * 200, "-1", "١", "1e9", " ", "\x00", "' OR 1=1 --", "../1"])
async def test_a_cursor_that_was_tampered_with(call: ServiceClient, after: str) -> None:
    admin = {"Authorization": f"Bearer {(await call.app.keys.create(user='mira', admin=True)).secret}"}
    for path in ("facts", "runs", "sessions"):
        answer = await call("GET", f"/v1/me/{path}", params={"after": after})
        assert answer.status_code in ((400,) if path == "facts" else (200, 400))
        assert "Quito" not in answer.text
        assert "database" not in answer.text
    for path in ("scopes", "queue", "failures", "audit"):
        answer = await call("GET", f"/v1/admin/{path}", params={"after": after}, headers=admin)
        assert answer.status_code in (200, 400)
        assert "database" not in answer.text


@pytest.mark.parametrize("before", ["0001-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_a_day_at_the_end_of_the_calendar_fails_no_service(call: ServiceClient, before: str) -> None:
    answer = await call("POST", "/v1/me/forget/preview", json={"before": before})
    assert answer.status_code in (200, 400), answer.text
    refused = await call("GET", "/v1/me/facts", params={"as_of": "9999-12-31T23:59:59-14:00"})
    assert "'9999-12-31T23:59:59-14:00' is not a date or time" in refused.json()["detail"]
    assert (await call.app.user("mira").facts()).total == 1


async def test_the_job_and_the_session_of_another_memory(call: ServiceClient) -> None:
    await call.app.user("noor").process(said("I live in Lima."), session_id="monday")
    for path in ("sessions/monday", "sessions/monday/job", "sessions/%2E%2E%2Fnoor%2Fmonday/job"):
        answer = await call("GET", f"/v1/me/{path}")
        assert answer.status_code == 404
        assert "Lima" not in answer.text


async def test_an_idempotency_key_belongs_to_one_key_and_one_memory(call: ServiceClient) -> None:
    headers, body = {"Idempotency-Key": "one"}, {"content": "I like tea."}
    first = await call("POST", "/v1/memory/remember", json=body, headers=headers)
    other = await call("POST", "/v1/memory/remember", json=body, headers=headers, user="noor")
    assert "Idempotency-Replayed" not in other.headers
    assert other.json()["id"] != first.json()["id"]
    admin = {**headers, "Authorization": f"Bearer {(await call.app.keys.create(admin=True)).secret}"}
    answers = [
        await call("POST", f"/v1/scopes/default/user/{user}/facts", json={"statement": "I like jam."}, headers=admin)
        for user in ("mira", "noor")
    ]
    assert [answer.status_code for answer in answers] == [200, 422]
    assert "jam" not in str((await call.app.user("noor").facts()).facts)


async def test_an_etag_tells_nothing_of_another_memory(call: ServiceClient) -> None:
    tag = (await call("GET", "/v1/me/facts", user="noor")).headers["ETag"]
    answer = await call("GET", "/v1/me/facts", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert "Oslo" in answer.text
    assert "private" in answer.headers["Cache-Control"]


async def test_a_confirmation_belongs_to_one_key_one_memory_and_one_target(call: ServiceClient) -> None:
    preview = await call("POST", "/v1/me/forget/preview", json={"everything": True}, user="noor")
    confirmation = preview.json()["confirmation"]
    body = {"everything": True, "confirmation": confirmation}
    other_key = {"Authorization": f"Bearer {(await call.app.keys.create(user='noor')).secret}"}
    assert (await call("POST", "/v1/me/forget", json=body)).status_code == 403
    assert (await call("POST", "/v1/me/forget", json=body, headers=other_key)).status_code == 403
    session = {"session": "monday", "confirmation": confirmation}
    assert (await call("POST", "/v1/me/forget", json=session, user="noor")).status_code == 403
    late = {**body, "confirmation": f"1{confirmation}"}
    assert (await call("POST", "/v1/me/forget", json=late, user="noor")).status_code == 403
    assert (await call.app.user("noor").facts()).total == 1


async def test_an_administrator_of_one_tenant_has_no_power_over_another(call: ServiceClient) -> None:
    app = call.app
    acme = app.scope(Scope.user("vera", tenant="acme"))
    await acme.remember("I live in Bern.")
    hook = await app.webhooks.add("https://hooks.example/x", tenant="acme")
    owner = (await app.keys.create(scope="acme/user/vera")).key
    admin = {"Authorization": f"Bearer {(await app.keys.create(admin=True)).secret}"}
    hidden = f"/v1/admin/webhooks/{hook.webhook.id}"
    refused = [
        *(("GET", f"/v1/scopes/acme/user/vera/{path}") for path in ("facts", "export?form=full", "sessions", "costs")),
        *(("POST", f"{hidden}/{action}") for action in ("test", "retry")),
        *(("GET", f"{hidden}/posts"), ("DELETE", hidden)),
    ]
    for method, path in refused:
        assert (await call(method, path, headers=admin)).status_code == 404
    retried = await call("POST", "/v1/admin/retry", json={"scope": "acme/user/vera"}, headers=admin)
    assert retried.status_code == 404
    for path in ("scopes", "scopes?prefix=vera", "queue", "failures", "jobs", "webhooks", "audit?scope=acme/user/vera",
                 f"audit?key={owner.id}"):  # fmt: skip
        answer = await call("GET", f"/v1/admin/{path}", headers=admin)
        assert answer.status_code == 200
        assert "acme" not in answer.text
    assert [hook.id for hook in [each.webhook for each in await app.webhooks.list()]] == [hook.webhook.id]


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"X-HTTP-Method-Override": "DELETE", "X-Method-Override": "DELETE"}, 200),
        ("GET", {"X-Original-URL": "/v1/scopes/default/user/noor/facts", "X-Rewrite-URL": "/v1/admin/scopes"}, 200),
        ("GET", {"X-Forwarded-User": "noor", "X-Forwarded-Prefix": "/v1/scopes/default/user/noor"}, 200),
        ("GET", {"Host": "evil.example", "X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}, 421),
        ("HEAD", {}, 405),
        ("OPTIONS", {}, 405),
        ("TRACE", {}, 405),
        ("PUT", {}, 405),
    ],
)
async def test_methods_and_headers_that_mean_nothing_here(
    call: ServiceClient, method: str, headers: dict[str, str], status: int
) -> None:
    answer = await call(method, "/v1/me/facts", headers=headers)
    assert answer.status_code == status
    assert "Quito" not in answer.text
    assert ("Oslo" in answer.text) == (status == 200)


async def test_a_compressed_body_is_not_unpacked(call: ServiceClient) -> None:
    bomb = gzip.compress(b'{"content": "' + b"a" * 5_000_000 + b'"}')
    answer = await call("POST", "/v1/memory/remember", content=bomb, headers={**JSON, "Content-Encoding": "gzip"})
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    "path", ["/v1/me/facts", "/v1/me/sessions", "/mcp", "/pages/sign-in", "/pages/reader", "/none"]
)
@pytest.mark.parametrize("key", [{}, {"Authorization": "Bearer aw_guessed"}, {"Cookie": "afterword_session=guessed"}])
async def test_a_long_body_of_a_stranger_is_not_read(call: ServiceClient, path: str, key: dict[str, str]) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 10_000
            yield b" " * 10_000

    for length in ({}, {"Content-Length": "5000000"}):
        answer = await call.http.post(path, content=endless(), headers={**JSON, **key, **length})
        assert answer.status_code == 401
        assert answer.headers["Connection"] == "close"
    assert read <= 2 * 30_000


@pytest.mark.parametrize("path", ["/v1/me/facts", "/pages/default/user/mira/facts"])
async def test_a_long_body_of_a_browser_whose_key_was_revoked_is_not_read(call: ServiceClient, path: str) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 10_000
            yield b" " * 10_000

    made = await call.app.keys.create(user="mira")
    signed_in = await call.http.post(
        "/pages/sign-in", data={"key": made.secret}, headers={"Origin": "http://localhost"}
    )
    cookie = {"Cookie": f"afterword_session={signed_in.cookies['afterword_session']}"}
    await call.app.keys.revoke(made.key.id)
    answer = await call.http.post(path, content=endless(), headers={**JSON, **cookie})
    assert (answer.status_code, answer.headers["Connection"]) == (401, "close")
    assert read <= 30_000
    with_key = {**JSON, **cookie, "Authorization": f"Bearer {await call.secret('mira')}"}
    body = b" " * 30_000 + b'{"content": "I like tea."}'
    assert (await call.http.post("/v1/memory/remember", content=body, headers=with_key)).status_code == 200


async def test_one_key_cannot_fill_the_memory_with_bodies_that_do_not_end(call: ServiceClient) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b" " * 30_000
        await asyncio.sleep(60)

    await call.secret("mira")
    sending = [asyncio.create_task(call("POST", "/v1/me/facts", content=slow(), headers=JSON)) for _ in range(30)]
    ended, waiting = set[asyncio.Task[httpx.Response]](), set(sending)
    while len(waiting) > 8:  # these stay open for a minute
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        ended |= done
    assert {task.result().status_code for task in ended} == {429}
    body = b" " * 30_000 + b'{"content": "I like tea."}'
    of_another = await call("POST", "/v1/memory/remember", content=body, headers=JSON, user="noor")
    assert of_another.status_code == 200
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert (await call("POST", "/v1/memory/remember", content=body, headers=JSON)).status_code == 200


async def test_a_tag_is_one_line_and_no_separator_makes_two(call: ServiceClient) -> None:
    body = {"content": "I like tea.", "tags": ["home\nsecret", "a\u2028b", "x\x1ey"]}
    await call("POST", "/v1/memory/remember", json=body)
    for tag in ("secret", "a", "b", "x"):
        assert (await call("GET", "/v1/me/facts", params={"tag": tag})).json()["total"] == 0
    assert (await call("GET", "/v1/me/facts", params={"tag": "home secret"})).json()["total"] == 1


async def test_pages_of_a_named_origin_may_call_the_mcp_server(call: ServiceClient) -> None:
    asked = {
        "Origin": OWN_PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version,mcp-method,mcp-name",
    }
    assert (await call.http.options("/mcp", headers=asked)).status_code == 200
    assert (await call.http.options("/mcp", headers={**asked, "Origin": "https://evil.example"})).status_code == 400


@pytest.fixture
async def address(app: Afterword) -> AsyncIterator[str]:
    """The address of a service that runs in this process."""
    async with serving_http(app) as served:
        yield served


async def test_no_stream_of_the_mcp_server_stays_open(app: Afterword, address: str) -> None:
    """One key could hold all connections of the service."""
    secret = (await app.keys.create(user="mira")).secret
    headers = {**ACCEPTS, "Authorization": f"Bearer {secret}", "Mcp-Session-Id": "stolen"}
    async with httpx.AsyncClient(timeout=60) as http:
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            assert (await http.request(method, f"{address}/mcp", headers=headers)).status_code == 405
        assert (await http.get(f"{address}/mcp", headers=ACCEPTS)).status_code == 401


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


async def call_tool(address: str, secret: str, tool: str, fact_id: str, **more: Any) -> dict[str, Any]:
    """Return the answer to a call as a client of the new protocol sends it."""
    headers = {
        **ACCEPTS,
        "Authorization": f"Bearer {secret}",
        "MCP-Protocol-Version": "2026-07-28",
        "MCP-Method": "tools/call",
        "MCP-Name": tool,
    }
    params = {"name": tool, "arguments": {"fact_id": fact_id}, "_meta": META, **more}
    async with httpx2.AsyncClient(headers=headers) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer: dict[str, Any] = (await http.post(f"{address}/mcp", json=body)).json()
        return answer


async def test_an_answer_of_the_person_counts_for_what_was_asked_alone(app: Afterword, address: str) -> None:
    """Neither for another fact, nor for another tool, another key, a read-only key, or without the sealed question."""
    secret = (await app.keys.create(user="mira")).secret
    read_only = (await app.keys.create(user="mira", read_only=True)).secret
    await app.user("mira").remember("I own a boat.")
    home, boat = (fact.id for fact in (await app.user("mira").facts()).facts)
    asked = (await call_tool(address, secret, "forget", home))["result"]
    (question,) = asked["inputRequests"]
    agreed = {question: {"action": "accept", "content": {"erase": True}}}
    carried = {"inputResponses": agreed, "requestState": asked["requestState"]}
    for key, tool, fact, more in (
        (secret, "forget", boat, carried),
        (secret, "withdraw_fact", boat, carried),
        (secret, "withdraw_fact", home, carried),
        (read_only, "forget", home, carried),
        (secret, "forget", home, {**carried, "requestState": asked["requestState"][:-2]}),
    ):
        assert "error" in await call_tool(address, key, tool, fact, **more)
    unasked = await call_tool(address, secret, "forget", boat, inputResponses=agreed)
    assert unasked["result"]["resultType"] == "input_required"
    assert (await app.user("mira").facts()).total == 2


@pytest.mark.parametrize(
    ("request_line", "headers", "statuses"),
    [
        ("GET /v1/me/facts?q=" + "a" * 1_000_000, "", (400, 414, 431)),
        ("GET http://localhost/v1/scopes/default/user/noor/facts", "", (404,)),
        ("GET /v1/me/facts", "Host: evil.example\r\n", (400,)),
        ("GET /v1/me/facts", "Content-Length: 1\r\nContent-Length: 2\r\n", (400,)),
        ("POST /v1/memory/remember", "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n", (400,)),
        ("POST /v1/memory/remember", "Expect: 100-continue\r\nContent-Length: 99999999\r\n", (413,)),
        ("GET /v1/me/facts", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n", (200,)),
    ],
    ids=["long query", "absolute", "two hosts", "two lengths", "odd encoding", "announced length", "upgrade"],
)
async def test_odd_requests_on_the_wire(
    app: Afterword, address: str, request_line: str, headers: str, statuses: tuple[int, ...]
) -> None:
    secret = (await app.keys.create(user="mira")).secret
    head = f"{request_line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n{headers}\r\n"
    answer = await asyncio.to_thread(first_bytes, address, head.encode())
    assert int(answer.split()[1]) in statuses
    assert b"Quito" not in answer


def first_bytes(address: str, request: bytes) -> bytes:
    """Return the beginning of the answer to a request."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request)
        return connection.recv(2000)


@pytest.mark.parametrize("is_page", [False, True])
async def test_a_merge_is_redone_and_undone_by_an_administrator_alone(call: ServiceClient, is_page: bool) -> None:
    merged = await call.app.merge("default/user/noor", into="default/user/mira")
    admin = (await call.app.keys.create(user="mira", admin=True)).secret

    async def switch(action: str, secret: str) -> int:
        if not is_page:
            headers = {"Authorization": f"Bearer {secret}"}
            return (await call.http.post(f"/v1/me/runs/{merged.run.id}/{action}", headers=headers)).status_code
        await call.http.post("/pages/sign-in", data={"key": secret})
        path = f"/pages/default/user/mira/runs/{merged.run.id}"
        page = (await call.http.get(path)).text
        assert (f"{path}/{action}" in page) == (secret == admin)
        csrf = re.search(r'name="csrf" value="([^"]+)"', page)
        assert csrf
        return (await call.http.post(f"{path}/{action}", data={"csrf": csrf.group(1)})).status_code

    mira = await call.secret("mira")
    assert await switch("undo", mira) == 403
    assert await switch("undo", admin) == 200
    assert await switch("redo", mira) == 403
    assert "Quito" not in (await call("GET", "/v1/me/facts?status=all")).text
    assert await switch("redo", admin) == 200
    assert "Quito" in (await call("GET", "/v1/me/facts?status=all")).text
