"""What the service refuses: a table, each row a test; and two users who never see each other's facts."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlmodel import col, update
from starlette.types import Message

import afterword
from afterword import Afterword
from afterword.errors import ArgumentInvalid, ScopeInvalid
from afterword.server.access import NO_SUCH_MEMORY
from afterword.server.app import create_app
from afterword.server.listener import is_loopback, serve
from afterword.setting_sections import EmbeddingOptions, ServerOptions, StoreOptions
from afterword.settings import Settings
from afterword.store.access.tables import ApiKeyRow
from service import ServiceClient, said, serving

SECRET_WORDS = "zanzibar quokka"
MANY = 100_000


def words_alone(url: str) -> Settings:
    return Settings(store=StoreOptions(url=url), embedding=EmbeddingOptions(kind="none"))


pytestmark = pytest.mark.asyncio(loop_scope="module")


@asynccontextmanager
async def app_on_copy(template: Path, folder: Path) -> AsyncIterator[Afterword]:
    path = shutil.copy(template, folder / "afterword.db")
    async with afterword.open(settings=words_alone(f"sqlite:///{path}")) as opened:
        yield opened


@asynccontextmanager
async def service_on_copy(template: Path, folder: Path, **options: Any) -> AsyncIterator[ServiceClient]:
    async with app_on_copy(template, folder) as opened, serving(opened, **options) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def app(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[Afterword]:
    async with app_on_copy(sqlite_template, tmp_path) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def call(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> AsyncIterator[ServiceClient]:
    """The service of all tests that change nothing of what Mira and Noor have said."""
    folder, limits = tmp_path_factory.mktemp("service"), {"longest_body_bytes": 20_000}
    async with service_on_copy(sqlite_template, folder, **limits, requests_per_minute=MANY) as client:
        await client.app.user("mira").remember("I live in Oslo.")
        await client.app.user("noor").remember("I live in Quito.")
        yield client


async def headers_of(app: Afterword, case: str) -> dict[str, str]:
    """Return the Authorization header of a case."""
    made = await app.keys.create(user="mira")
    if case == "none":
        return {}
    if case == "revoked":
        await app.keys.revoke(made.key.id)
    if case == "expired":
        made = await app.keys.create(user="mira", expires_at=datetime.now(UTC) + timedelta(days=1))
        expired = update(ApiKeyRow).where(col(ApiKeyRow.id) == made.key.id).values(expires_at=datetime.now(UTC))
        await (await app.store()).write(lambda transaction: transaction.exec(expired))
    texts = {
        "wrong": "Bearer afterword_wrong",
        "id for the key": f"Bearer {made.key.id}",
        "no scheme": made.secret,
        "other scheme": f"Basic {made.secret}",
        "empty": "Bearer ",
        "longer": f"Bearer {made.secret}x",
        "shorter": f"Bearer {made.secret[:-1]}",
        "other case": f"Bearer {made.secret.swapcase()}",
        "huge": f"Bearer {'a' * 5000}",
    }
    return {"Authorization": texts.get(case, f"Bearer {made.secret}")}


@pytest.mark.parametrize(
    "case",
    ["none", "wrong", "revoked", "expired", "id for the key", "no scheme", "other scheme", "empty", "longer", "shorter",
     "other case", "huge"],
)  # fmt: skip
async def test_who_has_no_valid_key_gets_401(call: ServiceClient, case: str) -> None:
    headers = await headers_of(call.app, case)
    for method, path in (("GET", "/v1/me/facts"), ("GET", "/v1/memory/recall"), ("GET", "/openapi.json")):
        answer = await call.http.request(method, path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert "Oslo" not in answer.text


def routes_of_memory() -> list[tuple[str, str]]:
    """Return method and path, below the prefix of a memory, of every route of one memory."""
    routes = create_app(afterword.open("sqlite://", settings=Settings()), ServerOptions()).openapi()["paths"]
    prefix = "/v1/me"
    below = f"{prefix}/"
    return sorted(
        (method.upper(), path.removeprefix(prefix))
        for path, methods in routes.items()
        if path.startswith(below)
        for method in methods
    )


ROUTES = routes_of_memory()
DECIDED = {"finding_id": "0" * 20, "decision": "drop"}
BODIES: dict[str, dict[str, Any]] = {
    "/facts": {"statement": "I like tea."},
    "/facts/{fact_id}": {"value": "Rome"},
    "/facts/{fact_id}/flag": {"flagged": True},
    "/sessions": {"session_id": "s", "state": said("I live in Rome.")},
    "/review/{item_id}": {"decision": "reject"},
    "/forget/preview": {"everything": True},
    "/forget": {"everything": True, "confirmation": "9999999999.x"},
}


def request_of(route: tuple[str, str], ids: dict[str, str]) -> tuple[str, str, dict[str, Any] | None]:
    """Return method, path and body of a call of a route."""
    method, path = route
    return method, path.format(**ids), BODIES.get(path) if method in ("POST", "PATCH") else None


async def test_there_are_routes() -> None:
    assert len(ROUTES) > 20


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
async def test_no_route_opens_the_memory_of_somebody_else(call: ServiceClient, route: tuple[str, str]) -> None:
    noor = call.app.user("noor")
    (fact,) = (await noor.facts()).facts
    run_id = (await noor.runs()).runs[0].run.id
    ids = {"fact_id": fact.id, "session_id": "s", "run_id": str(run_id), "item_id": f"run:{run_id}"}
    ids |= DECIDED
    method, path, body = request_of(route, ids)
    # What a route changes, it changes for its own user.
    user = f"user of {method} {path}".replace("/", "-")
    for scope in ("default/user/noor", "default/user/nobody", f"acme/user/{user}", f"default/team/{user}"):
        answer = await call(method, f"/v1/scopes/{scope}{path}", json=body, user=user)
        assert (answer.status_code, answer.json()["detail"]) == (404, NO_SUCH_MEMORY)
    own = await call(method, f"/v1/me{path}", json=body, user=user)
    assert "Quito" not in own.text
    assert [found.statement for found in (await noor.facts()).facts] == ["I live in Quito."]
    assert (await noor.runs()).total == 1


@pytest.mark.parametrize("route", [route for route in ROUTES if route[0] != "GET"], ids=" ".join)
async def test_a_read_only_key_changes_nothing(call: ServiceClient, route: tuple[str, str]) -> None:
    method, path, body = request_of(
        route, {"fact_id": "0" * 20, "session_id": "s", "run_id": "1", "item_id": "run:1"} | DECIDED
    )
    headers = {"Authorization": f"Bearer {await call.secret('mira', read_only=True)}"}
    answer = await call(method, f"/v1/me{path}", json=body, headers=headers)
    assert answer.status_code == 403
    assert (await call("GET", "/v1/me/facts", headers=headers)).status_code == 200
    assert (await call.app.user("mira").runs()).total == 1
    assert (await call("POST", "/v1/memory/remember", json={"content": "x"}, headers=headers)).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/v1/scopes/default/user/mira/../noor/facts",
        "/v1/scopes/default/user/mira%2F..%2Fnoor/facts",
        "/v1/scopes/default/user/mira%00/facts",
        "/v1/scopes/default/user/%6eoor/facts",
        "/v1/scopes/default/user/n%256foor/facts",
        "/v1/scopes/default/USER/mira/facts",
        "/v1/scopes/default/user/mira%20/facts",
        "/v1/scopes/default/user/Mira/facts",
        "/v1/scopes/default/user/m%C3%ADra/facts",
        "/v1/scopes/default%2Fuser/user/mira/facts",
        "/v1/scopes//user/mira/facts",
        "/v1/scopes/default/user/%ff/facts",
        "/v1/scopes/*/user/mira/facts",
        "//v1/me/facts",
        "/v1/me/facts/",
        "/V1/me/facts",
    ],
)
async def test_path_tricks_lead_nowhere(call: ServiceClient, path: str) -> None:
    answer = await call("GET", httpx.URL("http://localhost").copy_with(raw_path=path.encode()))
    assert answer.status_code == 404
    assert "Oslo" not in answer.text
    assert "Quito" not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil:80", "[::2]", "a b"])
async def test_another_host_is_refused(call: ServiceClient, host: str) -> None:
    assert (await call("GET", "/v1/me/facts", headers={"Host": host})).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8321", "[::1]:8321", "LOCALHOST"])
async def test_this_machine_is_answered(call: ServiceClient, host: str) -> None:
    assert (await call("GET", "/v1/me/facts", headers={"Host": host})).status_code == 200


async def test_no_page_of_another_origin_may_read_unless_it_is_named(app: Afterword) -> None:
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    async with serving(app) as call:
        for method in ("OPTIONS", "GET"):
            answer = await call(method, "/v1/me/facts", headers=origin)
            assert "access-control-allow-origin" not in answer.headers
    async with serving(app, cors_origins=["https://good.example"]) as call:
        refused = await call("GET", "/v1/me/facts", headers=origin)
        assert "access-control-allow-origin" not in refused.headers
        allowed = await call("GET", "/v1/me/facts", headers={"Origin": "https://good.example"})
        assert allowed.headers["access-control-allow-origin"] == "https://good.example"


async def _chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        await asyncio.sleep(0)
        yield b'{"content": "' + b"a" * 1000


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"content": b"a" * 20_001}, 413),
        ({"content": _chunks(30)}, 413),
        ({"content": b"{"}, 422),
        ({"content": b"[" * 9_000}, 400),
        ({"content": b"\xff\xfe"}, 400),
        ({"json": {"content": "x", "scope": "default/user/noor"}}, 422),
        ({"json": {"content": ""}}, 422),
        ({"json": {"content": "a\x00b"}}, 422),
        ({"json": {"content": "x", "tags": ["a"] * 51}}, 422),
        ({"json": ["content"]}, 422),
        ({"json": {"content": "x"}, "headers": {"Idempotency-Key": "k" * 256}}, 422),
    ],
)
async def test_bodies_that_do_not_fit(call: ServiceClient, arguments: dict[str, Any], status: int) -> None:
    given_headers = {"Content-Type": "application/json", **arguments.get("headers", {})}
    answer = await call("POST", "/v1/memory/remember", **{**arguments, "headers": given_headers})
    assert answer.status_code in (status, 422 if status == 400 else status), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (await call.app.user("mira").runs()).total == 1


async def test_a_body_that_does_not_arrive_in_time_holds_up_nobody(app: Afterword) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b'{"content": "'
            await asyncio.sleep(0.1)

    async with serving(app, body_timeout_s=0.3) as call:
        answering = asyncio.create_task(call("POST", "/v1/memory/remember", content=endless()))
        assert (await call("GET", "/v1/me/facts")).status_code == 200
        answer = await answering
    assert answer.status_code == 408
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (await app.user("mira").runs()).total == 0


async def test_requests_are_limited_by_key(app: Afterword) -> None:
    async with serving(app, requests_per_minute=3) as call:
        answers = [await call("GET", "/v1/me/facts") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert int(answers[-1].headers["Retry-After"]) >= 1
        assert (await call("GET", "/v1/me/facts", user="noor")).status_code == 200


async def test_answers_carry_security_headers(call: ServiceClient) -> None:
    for answer in (await call("GET", "/v1/me/facts"), await call.http.get("/v1/me/facts")):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Frame-Options"] == "DENY"


async def test_no_words_and_no_keys_in_logs_and_errors(
    call: ServiceClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, logger="afterword")
    await call("POST", "/v1/memory/remember", json={"content": f"I like {SECRET_WORDS}."})
    await call("GET", "/v1/memory/recall", params={"q": SECRET_WORDS})
    await call("GET", f"/v1/me/facts/{SECRET_WORDS}")

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"a fault with {SECRET_WORDS}")

    monkeypatch.setattr(afterword.ScopeMemory, "facts", fail)
    answer = await call("GET", "/v1/me/facts")
    assert answer.status_code == 500
    assert "zanzibar" not in answer.text
    assert answer.headers["X-Request-ID"] in caplog.text
    assert "zanzibar" not in caplog.text
    assert await call.secret("mira") not in caplog.text
    assert "noor" not in caplog.text
    for entry in (await call.app.audit()).entries:
        assert "zanzibar" not in repr(entry)


async def test_the_log_names_the_lines_of_our_own_code_at_which_a_write_failed(
    app: Afterword, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(app) as client:
        await app.user("mira").remember("I live in Oslo.")
        with closing(sqlite3.connect(tmp_path / "afterword.db")) as plain:
            plain.execute("CREATE TRIGGER t BEFORE INSERT ON assertions BEGIN SELECT RAISE(ABORT, 'zanzibar'); END")
        answer = await client("POST", "/v1/memory/remember", json={"content": "I like tea."})
    assert answer.status_code == 500
    (failure,) = [record.getMessage() for record in caplog.records if " failed (" in record.getMessage()]
    assert re.search(r"\(IntegrityError, store/\w+\.py:\d+, store/\S+, store/database/statements\.py:\d+\)$", failure)
    assert "zanzibar" not in failure


async def test_a_store_that_does_not_answer_is_not_named(tmp_path: Path) -> None:
    app = afterword.open(settings=words_alone("postgresql://me:hunter2@127.0.0.1:1/none"))
    async with serving(app) as call:
        for path in ("/readyz", "/v1/me/facts"):
            answer = await call.http.get(path, headers={"Authorization": "Bearer x"})
            assert answer.status_code == 503
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert "127.0.0.1" not in answer.text
            assert "hunter2" not in answer.text
        assert (await call.http.get("/healthz")).status_code == 200
    await app.close()


async def test_an_open_address_needs_a_key(app: Afterword) -> None:
    with pytest.raises(ArgumentInvalid, match="keys create"):
        await serve(app, ServerOptions(host="0.0.0.0", port=0))
    await app.keys.create(user="mira")
    with pytest.raises(ArgumentInvalid, match="cannot be used"):
        await serve(app, ServerOptions(host="localhost.invalid", port=0))
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "10.0.0.1", "me.lan")] == [
        *(True, True, True),
        *(False, False, False, False),
    ]


NAMES = st.text(min_size=1, max_size=12) | st.sampled_from(
    [
        "mira",
        "mira ",
        " mira",
        "Mira",
        "mira/",
        "/mira",
        "mira/x",
        "m%69ra",
        "mira\u200b",
        "..",
        "me",
        "mira%2Fx",
        "mïra",
    ]
)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def unlimited(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> AsyncIterator[ServiceClient]:
    """A service whose users are those of the examples."""
    async with service_on_copy(sqlite_template, tmp_path_factory.mktemp("names"), requests_per_minute=MANY) as client:
        yield client


PLACES = count()


@example(names=(".", "0"))
@given(names=st.tuples(NAMES, NAMES).filter(lambda names: names[0] != names[1]))
@hypothesis_settings(max_examples=25)
async def test_look_alike_users_never_see_each_other(unlimited: ServiceClient, names: tuple[str, str]) -> None:
    await _two_users(unlimited, *names, place=f"Quito{next(PLACES)}x")


async def _two_users(call: ServiceClient, first: str, second: str, place: str) -> None:
    try:
        await call.app.user(first).remember(f"The first one lives in {place}.")
        await call.secret(first)
        await call.secret(second)
    except ScopeInvalid:
        return
    for path in ("facts?status=all", f"recall?q={place}", f"context?q={place}", "runs", "sessions", "review", "export"):
        own = await call("GET", f"/v1/me/{path}", user=second)
        assert place not in own.text
        named = await call("GET", f"/v1/scopes/default/user/{quote(first, safe='')}/{path}", user=second)
        assert named.status_code == 404
    # A client takes "." and ".." out of a path before it sends it, so such a name is reached as /v1/me alone.
    own_paths = ["me", *([] if first in (".", "..") else [f"scopes/default/user/{quote(first, safe='')}"])]
    for path in own_paths:
        seen = await call("GET", f"/v1/{path}/facts", user=first)
        assert place in seen.text


async def test_the_guard_leaves_other_kinds_of_connections_alone(app: Afterword) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await create_app(app)({"type": "websocket", "path": "/", "headers": [], "subprotocols": []}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]
