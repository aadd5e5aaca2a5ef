"""Webhooks: who is told of what, against a receiver that answers, fails, hangs and redirects."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import Afterword, ProcessingOptions
from afterword.errors import ArgumentInvalid, NotFound
from afterword.pipeline.background import webhook_sending
from afterword.pipeline.background.webhook_sending import AddressRefused, AddressRules, WebhookUrl
from afterword.server.pages.run_pages import waiting_decisions
from afterword.setting_sections import (
    EmbeddingOptions,
    ModelOptions,
    RetryOptions,
    ScheduleOptions,
    StoreOptions,
    WebhookOptions,
)
from afterword.settings import Settings
from commands import Commands
from receiving import Receiver, receiving
from service import said, serving

WORDS = "zanzibar"


class MovableClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def timeout_s() -> float:
    """How long an answer may take: longer than any pause of the machine, unless a test is about the end of it."""
    return 60.0


def settings_of(url: str, **options: Any) -> Settings:
    return Settings(
        store=StoreOptions(url=url),
        embedding=EmbeddingOptions(kind="none"),
        webhooks=WebhookOptions(allow_loopback=True, **options),
        schedule=ScheduleOptions(webhooks=0.001),
        retry=RetryOptions(tries=1),
    )


@pytest.fixture(params=["file", "postgres"])
async def app(
    request: pytest.FixtureRequest, tmp_path: Path, clock: MovableClock, timeout_s: float
) -> AsyncIterator[Afterword]:
    is_file = request.param == "file"
    url = f"sqlite:///{tmp_path}/afterword.db" if is_file else str(request.getfixturevalue("postgres_store_url"))
    async with afterword.open(settings=settings_of(url, tries=3, timeout_s=timeout_s), clock=clock) as opened:
        yield opened


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as listening:
        yield listening


async def fail_a_session(app: Afterword, name: str = "broken") -> None:
    await app.user("mira").process({"no": WORDS}, session_id=name, started_at="2026-03-02")


async def test_a_session_that_is_set_aside_is_told_once_and_signed(
    app: Afterword, receiver: Receiver, repository: Path
) -> None:
    made = await app.webhooks.add(f"{receiver.url}hook?a=b")
    await fail_a_session(app)
    await asyncio.gather(*(app.webhooks.send() for _ in range(4)))
    await app.webhooks.send()
    (post,) = receiver.requests
    content = json.loads(post.body)
    assert (content["event"], content["scope"], content["session"]) == (
        *("session set aside", "default/user/mira"),
        "broken",
    )
    assert post.path == "/hook?a=b"
    assert WORDS not in post.body.decode()
    signed = f"{post.headers['afterword-timestamp']}.".encode() + post.body
    expected = hmac.new(made.secret.encode(), signed, hashlib.sha256).hexdigest()
    assert post.headers["afterword-signature"] == f"v1={expected}"
    page = (repository / "docs" / "service.md").read_text(encoding="utf-8")
    checking: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[1], checking)
    headers = {name.title(): text for name, text in post.headers.items()}
    assert checking["is_genuine"](made.secret, headers, post.body)
    assert not checking["is_genuine"](made.secret, headers, post.body + b" ")
    assert post.headers["afterword-post"] == content["id"]
    assert made.secret not in repr(made)
    (status,) = await app.webhooks.list()
    assert status.posts == {"sent": 1}


async def test_a_review_that_waits_is_told_when_something_new_waits(app: Afterword, receiver: Receiver) -> None:
    mira = app.user("mira")
    await mira.set_policy("hold-all")
    await app.webhooks.add(receiver.url, events=["review waits"])
    await mira.process(said("I live in Oslo."), session_id="monday", started_at="2026-03-02")
    for _ in range(2):
        await app.webhooks.send()
    (post,) = receiver.requests
    content = json.loads(post.body)
    none = {"contests": 0, "erase_requests": 0, "unclear_names": 0, "findings": 0, "dependents": 0}
    assert content["waiting"] == {**none, "held_runs": 1}
    assert "Oslo" not in post.body.decode()
    await app.user("noor").remember("I like tea.")
    await app.webhooks.send()
    assert len(receiver.requests) == 1
    await mira.process(said("I like milk."), session_id="tuesday", started_at="2026-03-03")
    await app.webhooks.send()
    assert json.loads(receiver.requests[-1].body)["waiting"]["held_runs"] == 2
    await fail_a_session(app)
    await app.webhooks.send()
    assert len(receiver.requests) == 2  # it asked for reviews only


async def test_every_decision_that_the_review_asks_for_is_told_by_its_id(app: Afterword, receiver: Receiver) -> None:
    mira = app.user("mira")
    await app.webhooks.add(receiver.url, events=["review waits"])
    await mira.set_finding_policy("planner", agents_with_tools="review")
    for day, text in (
        ("2026-03-01", "Tom Miller likes chess. Tom Baker likes golf. Tom is allergic to nuts."),
        ("2026-03-02", "I live in Graz. My dentist is Dr Moser. I like strong coffee."),
        ("2026-03-03", "I moved to Linz. Please forget that I like strong coffee."),
    ):
        await mira.process(said(text), session_id=day, started_at=day)
    await mira.save_finding("Trains to Oslo are cheap.", agent="planner", topic="travel", after_tools=True)
    await app.webhooks.send()
    review, content = await mira.review(), json.loads(receiver.requests[-1].body)
    assert review.unclear
    assert review.dependents
    assert content["items"] == sorted(decision.id for decision in waiting_decisions(review))
    assert sum(content["waiting"].values()) == len(content["items"]) == 4
    (asked,) = [item for item in content["items"] if item.startswith("erase:")]
    await mira.decide(asked, "reject")
    assert "Tom" not in receiver.requests[-1].body.decode()


@pytest.mark.parametrize(
    ("behaviour", "timeout_s", "failure"),
    [
        ("500", 60.0, "the answer was 500"),
        ("404", 60.0, "the answer was 404"),
        ("redirect", 60.0, "the answer was 307"),
        ("hang", 0.4, "no answer within 0.4 s"),
        ("drip", 0.4, "no answer within 0.4 s"),
        ("no http", 60.0, "no connection (ValueError)"),
    ],
)
async def test_a_post_that_fails_is_tried_again_and_set_aside(
    app: Afterword, receiver: Receiver, clock: MovableClock, behaviour: str, failure: str
) -> None:
    receiver.behaviour = behaviour
    hook = (await app.webhooks.add(receiver.url)).webhook
    await fail_a_session(app)
    pauses = []
    for tries in (1, 2, 3):
        await app.webhooks.send()
        await app.webhooks.send()  # the pause is not over
        (post,) = await app.webhooks.posts(hook.id)
        assert (post.tries, post.failure, len(receiver.requests)) == (tries, failure, tries)
        if post.next_try_at is not None:
            pauses.append((post.next_try_at - clock.now).total_seconds())
            clock.now = post.next_try_at
    assert str(post.state) == "set aside"
    assert pauses == [60, 240]
    assert {request.path for request in receiver.requests} == {"/"}
    assert len({request.body for request in receiver.requests}) == 1
    receiver.behaviour = "204"
    assert await app.webhooks.retry(hook.id) == 1
    await app.webhooks.send()
    assert [str(sent.state) for sent in await app.webhooks.posts(hook.id)] == ["sent"]
    clock.now += timedelta(days=8)
    await app.webhooks.send()
    assert await app.webhooks.posts(hook.id) == ()


async def test_a_webhook_that_hangs_does_not_hold_up_the_others(app: Afterword, receiver: Receiver) -> None:
    async with receiving() as slow:
        slow.behaviour = "hang"
        for url in (slow.url, receiver.url):
            await app.webhooks.add(url)
        for name in ("a", "b"):
            await fail_a_session(app, name)
        sending = asyncio.create_task(app.webhooks.send())
        await receiver.arrived(2)
        assert not sending.done()
        slow.is_let_go.set()
        await sending
        assert len(slow.requests) == 1  # the first failure ends its round


async def test_a_webhook_that_is_slow_gets_a_part_of_its_posts_in_a_round(
    app: Afterword, receiver: Receiver, timeout_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise fifty posts of almost the whole timeout each would hold up the other webhooks for minutes."""
    clock = SimpleNamespace(monotonic=lambda: receiver.slow_answers * 0.75 * timeout_s)
    monkeypatch.setattr(webhook_sending, "time", clock)
    receiver.behaviour = "slow"
    await app.webhooks.add(receiver.url)
    for number in range(8):
        await fail_a_session(app, f"session-{number}")
    await app.webhooks.send()
    assert len(receiver.requests) == 5, "the sixth would begin after more than three timeouts"
    receiver.behaviour = "200"
    await app.webhooks.send()
    sessions = [json.loads(post.body)["session"] for post in receiver.requests]
    assert sorted(sessions) == [f"session-{number}" for number in range(8)]


async def test_a_tenant_has_no_more_than_fifty_webhooks(app: Afterword) -> None:
    for number in range(50):
        await app.webhooks.add(f"https://hooks.example/{number}")
    with pytest.raises(ArgumentInvalid, match="remove one first"):
        await app.webhooks.add("https://hooks.example/more")
    assert (await app.webhooks.add("https://hooks.example/", tenant="acme")).secret


async def test_a_budget_that_is_reached_is_told_once_a_day(
    app: Afterword, receiver: Receiver, clock: MovableClock
) -> None:
    from afterword.pipeline.budget import Account, Budget, CostTracker
    from afterword.pipeline.errors import BudgetReached

    await app.webhooks.add(receiver.url, events=["budget reached"])
    tracker = CostTracker(Budget(tokens_per_run=1), clock=clock)
    account = Account(tracker, await app.store(), afterword.Scope.user("mira"), "session:a")
    for _ in range(2):
        with pytest.raises(BudgetReached):
            async with tracker.charging(account, model_request()):
                pytest.fail("must not be sent")
    await app.webhooks.send()
    (post,) = receiver.requests
    assert json.loads(post.body)["event"] == "budget reached"


def model_request() -> Any:
    from afterword.extractors.model.metering import ModelRequest

    return ModelRequest("a-model", "extraction", 100, 100, 1)


async def test_other_tenants_are_not_told(app: Afterword, receiver: Receiver) -> None:
    hook = (await app.webhooks.add(receiver.url, tenant="acme")).webhook
    await fail_a_session(app)
    await app.webhooks.send()
    assert receiver.requests == []
    for call in (app.webhooks.posts, app.webhooks.remove, app.webhooks.test, app.webhooks.retry):
        with pytest.raises(NotFound):
            await call(hook.id, tenant="default")


async def test_what_is_forgotten_is_not_told(app: Afterword, receiver: Receiver, clock: MovableClock) -> None:
    hook = (await app.webhooks.add(receiver.url)).webhook
    for name in ("a", "b"):
        await fail_a_session(app, name)
    clock.now = datetime.now(UTC)
    await app.user("mira").forget(session="a")
    assert [post.content["session"] for post in await app.webhooks.posts(hook.id)] == ["b"]
    await app.user("mira").forget(everything=True)
    assert await app.webhooks.posts(hook.id) == ()


REFUSED_URLS = (
    *("http://hooks.example/", "ftp://hooks.example/", "https://", "hooks.example", "https://user:pw@hooks.example/"),
    *("https://hooks.example/#a", "https://hooks.example/ a", "https://hooks.example:99999/", "https://[::1/"),
    *("https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/", "https://192.168.1.1/", "https://169.254.169.254/"),
    *("https://[::ffff:10.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[2002:a00:1::]/", "https://0.0.0.0/"),
    *("https://[64:ff9b:1::a00:1]/", "https://[::7f00:1]/", "https://[::ffff:0:7f00:1]/", "https://[::1%25lo]/"),
    *("https://[fd00::1]/", "https://[fe80::1]/", "https://224.0.0.1/", "https://100.64.0.1/", "http://8.8.8.8/"),
)


@pytest.mark.parametrize("url", REFUSED_URLS)
async def test_addresses_that_are_refused(tmp_path: Path, url: str) -> None:
    async with afterword.open("sqlite://", settings=Settings()) as app:
        with pytest.raises(ArgumentInvalid):
            await app.webhooks.add(url)


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f.1"])
async def test_names_that_mean_this_machine_are_refused_when_they_are_looked_up(host: str) -> None:
    with pytest.raises(AddressRefused):
        await WebhookUrl(True, host, 443, "/").resolve_addresses(AddressRules())


def test_what_settings_allow() -> None:
    private, loopback = AddressRules(allow_private=True), AddressRules(allow_loopback=True)
    private.check_ip_address("10.0.0.1", is_encrypted=True)
    loopback.check_ip_address("127.0.0.1", is_encrypted=False)
    AddressRules().check_ip_address("8.8.8.8", is_encrypted=True)
    for rules, address, is_encrypted in (
        (private, "10.0.0.1", False),
        (private, "127.0.0.1", True),
        (private, "169.254.169.254", True),
        (loopback, "10.0.0.1", True),
        (loopback, "8.8.8.8", False),
    ):
        with pytest.raises(AddressRefused):
            rules.check_ip_address(address, is_encrypted=is_encrypted)


async def test_the_routes_of_an_administrator(app: Afterword, receiver: Receiver) -> None:
    async with serving(app) as call:
        root = {"Authorization": f"Bearer {await call.secret('root', admin=True)}"}
        other = {"Authorization": f"Bearer {(await app.keys.create(tenant='acme', admin=True)).secret}"}
        refused = await call.http.post("/v1/admin/webhooks", json={"url": "http://10.0.0.1/"}, headers=root)
        assert refused.status_code == 400
        made = (await call.http.post("/v1/admin/webhooks", json={"url": receiver.url}, headers=root)).json()
        path = f"/v1/admin/webhooks/{made['id']}"
        listed = await call.http.get("/v1/admin/webhooks", headers=root)
        assert made["secret"] not in listed.text
        assert [hook["url"] for hook in listed.json()["webhooks"]] == [receiver.url]
        assert (await call.http.post(f"{path}/test", headers=root)).json()["state"] == "sent"
        assert json.loads(receiver.requests[0].body)["event"] == "test"
        assert len((await call.http.get(f"{path}/posts", headers=root)).json()["posts"]) == 1
        assert (await call.http.post(f"{path}/retry", headers=root)).json() == {"queued": 0}
        assert (await call.http.get("/v1/admin/webhooks", headers=other)).json() == {"webhooks": []}
        assert (await call.http.delete(path, headers=other)).status_code == 404
        assert (await call("GET", "/v1/admin/webhooks")).status_code == 403
        assert (await call.http.delete(path, headers=root)).json()["id"] == made["id"]
        assert {entry.action for entry in (await app.audit()).entries} >= {"webhook add", "webhook remove"}


async def test_the_schedule_sends(app: Afterword, receiver: Receiver) -> None:
    await app.webhooks.add(receiver.url)
    await fail_a_session(app)
    (report,) = (report for report in await app.run_due_jobs() if report.name == "webhooks")
    assert (str(report.ending), report.counts) == ("done", {"posts sent": 1})
    assert len(receiver.requests) == 1


async def test_a_job_that_failed_is_told_by_the_webhook_and_the_probe(app: Afterword, receiver: Receiver) -> None:
    """The pending job is done, and yet it failed: the model does not answer."""
    dead = ModelOptions(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    settings = app.settings.model_copy(update={"extractor": "model", "model": dead})
    await app.webhooks.add(receiver.url, events=["job failed"])
    async with afterword.open(settings=settings) as deaf, serving(deaf) as call:
        assert (await call.http.get("/readyz")).json() == {"status": "ok", "failed_jobs": []}
        agent = AssistantAgent("assistant", ReplayChatCompletionClient(["Noted."]))
        async with deaf.user("noor").record(agent, session_id="monday"):
            await agent.run(task=f"I live in {WORDS}.")
        await deaf.run_due_jobs()
        assert (await call.http.get("/readyz")).json() == {"status": "ok", "failed_jobs": ["pending"]}
        (pending,) = (job for job in await deaf.jobs() if job.name == "pending")
        root = {"Authorization": f"Bearer {await call.secret('root', admin=True)}"}
        listed = {job["job"]: job for job in (await call.http.get("/v1/admin/jobs", headers=root)).json()["jobs"]}
        assert (await call("GET", "/v1/admin/jobs")).status_code == 403
    assert (pending.failure or "").startswith("1 × ")
    assert (listed["pending"]["counts"], listed["pending"]["failures"]) == ({"sessions processed": 0}, 1)
    assert (listed["retries"]["counts"], listed["retries"]["failures"]) == ({"sessions queued again": 0}, 0)
    assert all(job["ended_at"] for job in listed.values())
    assert "failure" not in listed["pending"], "a reason may name an address"
    await app.webhooks.send()
    (post,) = receiver.requests
    content = json.loads(post.body)
    assert (content["event"], content["job"], content["failures"]) == ("job failed", "pending", 1)
    assert WORDS not in post.body.decode()
    assert "127.0.0.1" not in post.body.decode()


async def test_a_queued_session_that_fails_in_the_service_is_told_once_a_day(
    app: Afterword, receiver: Receiver, clock: MovableClock
) -> None:
    await app.webhooks.add(receiver.url, events=["job failed"])
    await app.webhooks.add(receiver.url, events=["job failed"], tenant="acme")
    dead = ModelOptions(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    settings = app.settings.model_copy(update={"extractor": "model", "model": dead})
    async with afterword.open(settings=settings, clock=clock) as failing, serving(failing) as call:
        for name in ("one", "two"):
            queued = {"session_id": name, "state": said(WORDS), "queue": True}
            await call("POST", "/v1/me/sessions", json=queued)
            await until_failed(app, name)
        await until_posts(app, 1)
        clock.now += timedelta(days=1)
        await call("POST", "/v1/me/sessions", json={**queued, "session_id": "three"})
        await until_posts(app, 2)
    await app.webhooks.send()
    contents = [json.loads(post.body) for post in receiver.requests]
    told = [(content["event"], content["tenant"], content["job"], content["failures"]) for content in contents]
    assert told == [("job failed", "default", "queued sessions", 1)] * 2
    assert not [post for post in receiver.requests if WORDS in post.body.decode()]


async def until_failed(app: Afterword, name: str) -> None:
    for _ in range(1200):
        if [
            session
            for session in (await app.sessions(state=("failed", "set aside"))).sessions
            if session.session_id == name
        ]:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(name)


async def until_posts(app: Afterword, count: int) -> None:
    for _ in range(1200):
        if sum(sum(hook.posts.values()) for hook in await app.webhooks.list()) == count:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(await app.webhooks.list())


async def test_a_session_that_fails_beside_a_program_is_told(
    app: Afterword, receiver: Receiver, clock: MovableClock
) -> None:
    """Also where nothing could be processed at all, since no request can be made with the settings."""
    await app.webhooks.add(receiver.url, events=["job failed"])
    unusable = ModelOptions(base_url="localhost:9", api_key="none")
    settings = app.settings.model_copy(update={"extractor": "model", "model": unusable})
    async with afterword.open(settings=settings) as program:
        processor = program.processor(ProcessingOptions())
        agent = AssistantAgent("assistant", ReplayChatCompletionClient(["Noted."]))
        async with program.user("noor").record(agent, session_id="monday"):
            await agent.run(task=f"I live in {WORDS}.")
        processor.start(program.user("noor").scope, "monday")
        await processor.finish()
    clock.now += timedelta(minutes=1)
    await app.webhooks.send()
    (post,) = receiver.requests
    content = json.loads(post.body)
    assert (content["event"], content["job"], content["failures"]) == ("job failed", "queued sessions", 1)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    return Commands(tmp_path, monkeypatch, capsys)


def test_the_commands(run: Commands) -> None:
    made = json.loads(run("webhooks", "add", "https://hooks.invalid/x", "--event", "budget reached", "--json"))
    assert made["secret"].startswith("afterword_webhook_")
    assert made["events"] == ["budget reached"]
    assert made["id"] in run("webhooks", "list")
    assert json.loads(run("webhooks", "list", "--json"))[0]["posts"] == {}
    assert "no address" in run("webhooks", "test", made["id"], expected=1)
    assert "test" in run("webhooks", "list", made["id"])
    assert "0 posts" in run("webhooks", "retry", made["id"])
    assert "removed" in run("webhooks", "remove", made["id"])
    assert json.loads(run("webhooks", "list", "--json")) == []
