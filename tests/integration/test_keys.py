"""Keys of the service, who did what with them, and requests that are repeated: on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlmodel import Session, select

import afterword
from afterword import Afterword, OpenRequest, Scope
from afterword.client.access import keys as requests
from afterword.errors import ArgumentInvalid, KeyInvalid, NotFound, RequestPending, RequestReused, ScopeInvalid
from afterword.settings import Settings
from afterword.store.access.tables import RepeatableRequestRow
from commands import Commands

MIRA = Scope.user("mira")


class MovableClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture(params=["file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store_url"))
    return f"sqlite:///{tmp_path}/afterword.db"


@pytest.fixture
async def app(url: str, clock: MovableClock) -> AsyncIterator[Afterword]:
    async with afterword.open(url, settings=Settings(), clock=clock) as opened:
        yield opened


async def test_a_key_opens_its_memory_and_nothing_else(app: Afterword) -> None:
    made = await app.keys.create(user="mira", name="laptop")
    key = await app.keys.verify(made.secret)
    assert (key.scope, key.name, key.is_read_only, key.is_admin) == (MIRA, "laptop", False, False)
    assert key.opens(MIRA)
    for other in ("mira ", "Mira", "mir", "mira/x"):
        assert not key.opens(Scope.user(other))
    assert not key.opens(Scope.parse("acme/user/mira"))
    admin = (await app.keys.create(tenant="acme", admin=True)).key
    assert admin.opens(Scope.parse("acme/team/x"))
    assert not admin.opens(MIRA)
    assert made.secret not in repr(made)
    assert (await app.scopes()).total == 0  # a key makes no scope


async def test_keys_that_cannot_be_used(app: Afterword, clock: MovableClock) -> None:
    made = await app.keys.create(user="mira", expires_at=clock.now + timedelta(hours=1))
    assert await app.keys.get(made.key.id)
    clock.now += timedelta(hours=1)
    with pytest.raises(KeyInvalid, match="expired"):
        await app.keys.verify(made.secret)
    other = await app.keys.create(user="mira")
    assert (await app.keys.revoke(other.key.id)).revoked_at == clock.now
    with pytest.raises(KeyInvalid, match="revoked"):
        await app.keys.verify(other.secret)
    with pytest.raises(KeyInvalid, match="revoked"):
        await app.keys.get(other.key.id)
    for wrong in ("", "x", made.key.id, made.secret + "x", "a" * 10_000, "\ud800"):
        with pytest.raises(KeyInvalid, match="no such key"):
            await app.keys.verify(wrong)
    for wrong_id in ("nobody", made.secret):
        with pytest.raises(NotFound):
            await app.keys.revoke(wrong_id)


async def test_arguments_of_a_key_are_checked(app: Afterword, clock: MovableClock) -> None:
    with pytest.raises(ArgumentInvalid):
        await app.keys.create()
    with pytest.raises(ArgumentInvalid):
        await app.keys.create(user="mira", scope=MIRA)
    with pytest.raises(ArgumentInvalid):
        await app.keys.create(user="mira", tenant="acme")
    with pytest.raises(ArgumentInvalid):
        await app.keys.create(user="mira", expires_at=clock.now)
    with pytest.raises(ScopeInvalid):
        await app.keys.create(admin=True, tenant="a/b")


async def test_the_last_use_is_written_seldom(app: Afterword, clock: MovableClock) -> None:
    made, first = await app.keys.create(user="mira"), clock.now
    await app.keys.verify(made.secret)
    clock.now += timedelta(minutes=5)
    await app.keys.verify(made.secret)
    assert (await app.keys.list())[0].last_used_at == first
    clock.now += timedelta(minutes=5)
    await app.keys.verify(made.secret)
    assert (await app.keys.list())[0].last_used_at == clock.now


async def test_only_a_hash_of_a_key_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "afterword.db"
    async with afterword.open(f"sqlite:///{path}", settings=Settings()) as app:
        secret = (await app.keys.create(user="mira")).secret
    assert secret.removeprefix("afterword_") not in await asyncio.to_thread(_dump, path)


def _dump(path: Path) -> str:
    with closing(sqlite3.connect(path)) as file:
        return "\n".join(file.iterdump())


async def test_a_run_names_the_key_that_asked_for_it(app: Afterword) -> None:
    key = (await app.keys.create(user="mira")).key
    mira = app.user("mira")
    async with app.requests.begin(key, "remember", scope=MIRA) as request:
        effect = await mira.remember("I like tea.")
        request.answer = {"run": effect.run.id}
    await mira.remember("I like coffee.")
    assert [record.actor for record in (await mira.runs()).runs] == [key.id, None]
    (entry,) = (await app.audit(scope=MIRA)).entries
    assert (entry.key_id, entry.action, entry.scope, entry.result) == (key.id, "remember", MIRA, 200)
    assert entry.run_ids == (effect.run.id,)
    assert (await app.audit(tenant="acme")).entries == (await app.audit(key_id="other")).entries == ()
    async with app.requests.begin(key, "export"):
        pass
    first = await app.audit(limit=1)
    assert [entry.action for entry in first.entries] == ["export"]
    assert [entry.action for entry in (await app.audit(after=first.next)).entries] == ["remember"]


async def test_a_repeated_request_is_answered_once(app: Afterword) -> None:
    key = (await app.keys.create(user="mira")).key
    mira = app.user("mira")

    def begin(statement: str, name: str = "one") -> AbstractAsyncContextManager[OpenRequest]:
        content = {"content": statement}
        return app.requests.begin(key, "remember", scope=MIRA, idempotency_key=name, content=content)

    async with begin("I like tea.") as request:
        request.answer = {"run": (await mira.remember("I like tea.")).run.id}
    async with begin("I like tea.") as request:
        assert request.is_repeated
        assert request.answer == {"run": 1}
    with pytest.raises(RequestReused):
        async with begin("I like coffee."):
            pytest.fail("must not begin")
    async with begin("I like milk.", "two"):
        with pytest.raises(RequestPending):
            async with begin("I like milk.", "two"):
                pytest.fail("must not begin")
    with pytest.raises(ArgumentInvalid):
        async with begin("I like tea.", "x" * 256):
            pytest.fail("must not begin")
    # The same idempotency key of another key is another request.
    other = (await app.keys.create(user="mira")).key
    async with app.requests.begin(other, "remember", scope=MIRA, idempotency_key="one") as request:
        assert not request.is_repeated


async def test_what_is_stored_of_a_request_does_not_confirm_its_words(tmp_path: Path) -> None:
    """A plain hash would tell whoever guesses a forgotten sentence that it was right."""
    content = {"content": "I like tea."}
    async with afterword.open(f"sqlite:///{tmp_path}/afterword.db", settings=Settings()) as app:
        key = (await app.keys.create(user="mira")).key
        for name in ("one", "two"):
            async with app.requests.begin(key, "remember", scope=MIRA, idempotency_key=name, content=content):
                pass
    with closing(sqlite3.connect(tmp_path / "afterword.db")) as connection:
        prints = [row[0] for row in connection.execute("select fingerprint from repeatable_requests")]
    request = json.dumps(["remember", str(MIRA), content], sort_keys=True).encode()
    assert hashlib.sha256(request).hexdigest() not in prints
    assert len(set(prints)) == len(prints)


async def test_what_failed_may_be_tried_again(app: Afterword) -> None:
    key = (await app.keys.create(user="mira")).key

    async def ask() -> None:
        async with app.requests.begin(key, "confirm", scope=MIRA, idempotency_key="a") as request:
            assert not request.is_repeated
            await app.user("mira").confirm("000000")

    for _ in range(2):
        with pytest.raises(NotFound):
            await ask()
    assert [entry.result for entry in (await app.audit()).entries] == [400, 400]


async def test_a_request_whose_server_died_is_taken_over_and_made_once(app: Afterword, clock: MovableClock) -> None:
    key = (await app.keys.create(user="mira")).key
    mira = app.user("mira")

    class Died(BaseException):
        """The process ended."""

    async def ask_and_die() -> None:
        async with app.requests.begin(key, "remember", scope=MIRA, idempotency_key="a"):
            await mira.remember("I like tea.")
            raise Died

    with pytest.raises(Died):
        await ask_and_die()
    with pytest.raises(RequestPending):
        async with app.requests.begin(key, "remember", scope=MIRA, idempotency_key="a"):
            pytest.fail("must not begin")
    clock.now += timedelta(minutes=2)
    async with app.requests.begin(key, "remember", scope=MIRA, idempotency_key="a") as request:
        ((run_id, statement_id),) = request.made
        assert run_id == 1
        assert statement_id is not None
        assert (await mira.fact(statement_id)).statement == "I like tea."
        request.answer = {"run": run_id}
    assert (await mira.runs()).total == 1


async def test_a_request_is_held_as_long_as_its_process_works(
    app: Afterword, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "LEASE_S", 0.06)
    store, key = await app.store(), (await app.keys.create(user="mira")).key

    def held_until(transaction: Session) -> datetime:
        return transaction.exec(select(RepeatableRequestRow.held_until)).one()

    async with app.requests.begin(key, "session", scope=MIRA, idempotency_key="a"):
        for _ in range(3):
            clock.now += timedelta(seconds=0.05)
            async with asyncio.timeout(60):
                while await store.read(held_until) < clock.now + timedelta(seconds=0.06):  # noqa: ASYNC110 - a task of its own does it
                    await asyncio.sleep(0.01)
            with pytest.raises(RequestPending):
                async with app.requests.begin(key, "session", scope=MIRA, idempotency_key="a"):
                    pytest.fail("must not begin")


async def test_old_answers_are_discarded_and_a_forgotten_scope_takes_its_answers(
    app: Afterword, clock: MovableClock
) -> None:
    key = (await app.keys.create(user="mira")).key

    async def ask(name: str) -> bool:
        async with app.requests.begin(key, "remember", scope=MIRA, idempotency_key=name) as request:
            if not request.is_repeated:
                await app.user("mira").remember(f"I like {name}.")
            request.answer = {"run": 1}
        return request.is_repeated

    assert [await ask("tea"), await ask("tea")] == [False, True]
    clock.now += timedelta(hours=25)
    await app.requests.discard_old_answers()
    assert not await ask("tea")
    clock.now = datetime.now(UTC)
    await app.user("mira").forget(everything=True)
    assert not await ask("tea")
    assert len((await app.audit(scope=MIRA)).entries) == 3


async def test_keys_follow_a_renamed_and_a_merged_memory_and_come_back(app: Afterword) -> None:
    mira, noor = (await app.keys.create(user="mira")).key.id, (await app.keys.create(user="noor")).key.id
    await app.user("mira").remember("I like tea.")
    renamed = await app.rename(MIRA, "default/user/mia")

    async def opened(key_id: str) -> str:
        return str((await app.keys.get(key_id)).scope)

    assert await opened(mira) == "default/user/mia"
    await app.user("noor").remember("I like milk.")
    merged = await app.merge("default/user/mia", into="default/user/noor")
    later = (await app.keys.create(user="noor")).key.id
    assert [await opened(key) for key in (mira, noor)] == ["default/user/noor"] * 2
    await app.user("noor").undo(merged.run.id)
    assert [await opened(key) for key in (mira, noor, later)] == [
        "default/user/mia",
        "default/user/noor",
        "default/user/noor",
    ]
    await app.user("noor").redo(merged.run.id)
    assert await opened(mira) == "default/user/noor"
    await app.user("noor").undo(merged.run.id)
    await app.user("mia").undo(renamed.run.id)
    assert [await opened(key) for key in (mira, noor)] == ["default/user/mira", "default/user/noor"]


async def test_erasing_a_memory_revokes_its_keys(app: Afterword, clock: MovableClock) -> None:
    clock.now = datetime.now(UTC)
    mira, noor = (await app.keys.create(user="mira")).key.id, (await app.keys.create(user="noor")).key.id
    admin = (await app.keys.create(user="mira", admin=True)).key.id
    await app.user("mira").remember("I like tea.")
    await app.user("mira").preview_forget(everything=True)
    assert await app.keys.get(mira)
    await app.user("mira").forget(everything=True)
    with pytest.raises(KeyInvalid, match="revoked"):
        await app.keys.get(mira)
    assert [(await app.keys.get(key)).revoked_at for key in (noor, admin)] == [None, None]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    return Commands(tmp_path, monkeypatch, capsys)


def test_the_commands(run: Commands) -> None:
    made = json.loads(run("keys", "create", "--user", "mira", "--name", "laptop", "--read-only", "--json"))
    assert made["key"].startswith("afterword_")
    assert made["read_only"]
    shown = run("keys", "list")
    assert made["id"] in shown
    assert "laptop" in shown
    assert made["key"] not in shown
    assert run("keys", "create", "--scope", "acme/team/x", "--admin").startswith("afterword_")
    assert "revoked" in run("keys", "revoke", made["id"])
    assert json.loads(run("keys", "list", "--json"))[0]["revoked_at"]
    assert json.loads(run("audit", "--json")) == []
    assert "no requests" in run("audit", "--user", "mira")
